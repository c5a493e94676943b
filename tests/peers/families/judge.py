"""Writes traces and has `shardproof compare` judge them."""
import functools
import itertools
import json
import os
import pathlib
import subprocess

from families import FAMILIES, SIZES, Model, model_text, write_rounded
from roundings import ROUND


class Answer:
    """What compare says. The one place that knows its JSON."""

    def __init__(self, done):
        self.code, self.error = done.returncode, done.stderr.strip()
        said = json.loads(done.stdout) if done.stdout.strip() else {}
        self.values = said.get("values", [])
        self.fits = {value["name"]: value["fit"] for value in self.values}
        self.unknown = said.get("unknown", [])
        first = said.get("first") or {}
        self.first = first.get("name", first.get("step"))
        self.diagnosis = said.get("diagnosis") or []

    @property
    def lacks_operands(self):
        """Whether what was not judged is of values whose operands the trace lacks."""
        return all("operands" in (value.get("why") or "") for value in self.values
                   if value["fit"] == "not judged" and not value["name"].endswith(".ids"))

    def summary(self):
        """Values that no verdict was found for, each with why."""
        return {value["name"]: value.get("why") for value in self.values
                if value["fit"] == "not judged" and not value["name"].endswith(".ids")}


@functools.lru_cache(maxsize=None)
def model_of(path, family):
    return Model(path, family)


class Judge:
    families = list(FAMILIES)

    def __init__(self, program, folder):
        self.program, self.folder = str(program), pathlib.Path(folder)

    def weights(self, family, size, form):
        return self.folder / f"{family}_{size}_{form}.h5"

    def make_weights(self, families):
        """A file for each family, extents and format, but for those that are there. Generated ones
        are f32."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for number, (family, size) in enumerate(itertools.product(families, SIZES)):
            made = {}
            for form in ROUND:
                if self.weights(family, size, form).exists():
                    continue
                text, target = model_text(family, size, form), self.weights(family, size, form)
                if text not in made:
                    made[text] = target if form == "f32" else self.folder / "generated.h5"
                    subprocess.run([self.program, "weights", "generate", "--model", text, "--seed",
                                    str(number + 3), "--out", made[text]], check=True,
                                   stdout=subprocess.DEVNULL)
                if made[text] != target:
                    write_rounded(made[text], target, form, FAMILIES[family].gain_plus_one)

    def model(self, setting):
        return model_of(self.weights(setting.family, setting.size, setting.form), setting.family)

    def any_model(self, family):
        return model_of(self.weights(family, "eight", "f32"), family)

    def verdict(self, setting, run, path=None):
        """What compare says of a run's trace."""
        path = path or self.folder / f"trace_{os.getpid()}.npz"
        setting.write(path, run, model_text(setting.family, setting.size, setting.form))
        weights = self.weights(setting.family, setting.size, setting.form)
        return Answer(subprocess.run([self.program, "compare", path, "--weights", weights,
                                      "--json"], capture_output=True, text=True))
