"""Small models on few chips, run so that every machine gets the same bits, and written as traces
without a weights file: a case's seed gives the weights."""
import dataclasses
import io
import json
import subprocess
import zipfile

import numpy as np

from arithmetic import Arithmetic
from families import Model
from forward import Run
from functions import Functions
from mesh import Mesh
from places import STYLES
from roundings import ROUND, Roundings
from trace import DIMS, Trace



class WholeTrace(Trace):
    """Whole values of a run on one chip."""

    def __init__(self, run, dump_set, **shown):
        super().__init__(run, dump_set, "whole", **shown)


class TokensTrace(Trace):
    """Values of a run on one chip, cut over the chips along a sequence's tokens."""

    def __init__(self, run, dump_set, **shown):
        super().__init__(run, dump_set, **shown)
        self.mesh = run.shown_mesh

    def cut_of(self, name):
        return ("L", self.mesh.axes, self.mesh.n) if "L" in DIMS[name] else ("", "", 1)

    def blocks(self, name, a):
        if "L" not in DIMS[name]:
            return a
        return np.stack(np.split(a[0], self.mesh.n, axis=DIMS[name].index("L")))


class OwnTokensTrace(Trace):
    """Around the MLP each chip has its own tokens; what it makes of them with its columns alone is
    no value of the model."""

    def __init__(self, run, dump_set, **shown):
        super().__init__(run, dump_set, **shown)
        self.names = [name for name in self.names if name not in ("gate", "up", "hidden")]

    def cut_of(self, name):
        return ("L", self.mesh.axes, self.n) if name in ("norm2", "ffn_out", "out") else (
            super().cut_of(name))

    def blocks(self, name, a):
        return np.stack(np.split(a[0], self.n, axis=1)) if self.cut_of(name)[0] == "L" else a


class PartsTrace(Trace):
    """Partial sums are shown, too."""

    def __init__(self, run, dump_set, **shown):
        super().__init__(run, dump_set, partials=True, **shown)

    def has_bias(self, step, name):
        return False


class WeightsTrace(Trace):
    """A weight as the chips have it, too."""

    def filled(self):
        name = "layer0.w_out"
        self.arrays[name] = self.mesh.on_chips(self.run.weights[name])
        self.said[name] = {"layout": f"F_{self.mesh.axes}E"}
        return super().filled()


class SlopesTrace(Trace):
    """The slopes that the chips read, too."""

    def filled(self):
        self.arrays["alibi_slopes"] = self.mesh.on_chips(self.run.slopes)
        self.said["alibi_slopes"] = {"layout": f"H_{self.mesh.axes}"}
        return super().filled()


class NormTrace(WholeTrace):
    """norm2 is cut along E over x, the other values are whole."""

    def filled(self):
        super().filled()
        X, Y, Z = self.run.shown_mesh.shape
        for step in [step for step in self.arrays if step.endswith(".norm2")]:
            blocks = np.stack(np.split(self.arrays[step], X, axis=-1))[:, None, None]
            self.arrays[step] = np.broadcast_to(blocks, (X, Y, Z, *blocks.shape[3:]))
            self.said[step] = {"layout": "BLE_x"}
        return self


SEED = 3
# Every sum of products one after the other: what a library's do depends on the processor.
ORDERS = dict.fromkeys(("norm", "norm2", "final_norm", "q", "k", "v", "score", "denom", "attn",
                        "gate", "up", "attn_out", "ffn_out", "logits"), "chain")


@dataclasses.dataclass(frozen=True)
class Subject:
    """What is run: `keys` of the model behind its family, and the passes, (batch, prompt, chunk,
    gen). `more`: other words of the case. `scattered`: outputs are shown cut along E."""
    keys: str = ""
    family: str = "llama"
    sizes: str = "E=16,F=24,H=8,K=4,Q=4,V=24"
    layers: int = 1
    torus: str = "4x1x1"
    axes: str = "xyz"
    passes: tuple = (2, 5, 5, 1)
    form: str = "f32"
    more: str = ""
    scattered: bool = False
    trace: type = Trace

    @property
    def model(self):
        keys = f",{self.keys}" if self.keys else ""
        return f"{self.family}{keys},layers={self.layers},{self.sizes}"

    @property
    def case(self):
        batch, prompt, chunk, gen = self.passes
        more = f" {self.more}" if self.more else ""
        form = " weights=bf16 act=bf16" if self.form == "bf16" else ""
        return (f"torus={self.torus} model={self.model}{form} batch={batch} prompt={prompt} "
                f"chunk={chunk} gen={gen} seed={SEED}{more}")


class Models:
    """Weights of the case's seed, as the program generates them, int8 ones as it quantizes them."""

    def __init__(self, program, folder):
        self.program, self.folder, self.known = program, folder, {}

    def __call__(self, subject):
        int8 = "weights=int8" in subject.more
        key = (subject.model, int8, subject.form)
        if key not in self.known:
            path = self.folder / f"{len(self.known)}.h5"
            self.weights("generate", "--model", subject.model, "--seed", str(SEED), "--out", path)
            if int8:
                self.weights("quantize", path, path.with_suffix(".int8.h5"))
                path = path.with_suffix(".int8.h5")
            self.known[key] = self.model(path, subject)
        return self.known[key]

    def weights(self, *words):
        subprocess.run([self.program, "weights", *words], check=True, stdout=subprocess.DEVNULL)

    @staticmethod
    def model(path, subject):
        model = Model(path, subject.family.replace("-", ""))
        model.layers = subject.layers
        for name, a in model.weights.items():
            if a.ndim > 1 and not name.startswith("rope_"):
                model.weights[name] = ROUND[subject.form](a.astype(np.float32))
        return model


def run_of(subject, model, plant=None):
    arithmetic = Arithmetic(Roundings(subject.form, STYLES["spec"]), Functions(exp="cephes"),
                            ORDERS)
    shown = Mesh(subject.torus, subject.axes)
    mesh = Mesh("1x1x1") if subject.trace in (WholeTrace, TokensTrace, NormTrace) else shown
    run = Run(model, mesh, arithmetic, "xa" if model.serial else "xaf")
    run.shown_mesh = shown
    if plant is not None:
        plant(run)
    batch, prompt, chunk, gen = subject.passes
    ids = np.random.default_rng(SEED).integers(0, model.V, (batch, prompt))
    with np.errstate(all="ignore"):
        return run.generate(ids.astype(np.int32), chunk, gen)


def trace_of(subject, run, dump_set):
    return subject.trace(run, dump_set, scattered=subject.scattered).filled()


def attributes_of(subject, trace):
    said = {"format": "shardproof trace", "version": 1, "case": subject.case}
    if subject.form == "f32":
        said["arithmetic"] = "f32"
    return said | trace.__dict__.get("attributes", {}) | {"values": trace.said}


def archive(arrays, attributes):
    """The bytes of an npz, without the time at which it is written."""
    made = io.BytesIO()
    members = dict(arrays) | {"shardproof": np.array(json.dumps(attributes))}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, a in members.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(a), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, member.getvalue())
    return made.getvalue()
