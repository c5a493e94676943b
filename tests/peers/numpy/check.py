#!/usr/bin/python3
"""Has `shardproof compare` judge the NumPy peer, right and wrong.

    check.py SHARDPROOF FOLDER [--seed S] [--sites N] [--faults NAME,...] [--healthy-only]
                               [--plain]

Right runs, in every strategy, arithmetic and form: each value must be within, or equal where sums
are exact. Each fault, at N sites that the seed draws: the first value that compare finds different
must be the one that the fault made wrong, in all; the first explanation must be that fault on those
axes in 95 of 100; and no other may be first and leave nothing unexplained, unless it makes the same
trace. Exits 1 where one of these does not hold.
"""
import argparse
import collections
import itertools
import json
import pathlib
import random
import subprocess
import sys
import time

from bug import FAULTS, Bugs
from dump import FORMS, Dump
from peer import Peer, equivalent, planted
from plan import STRATEGIES

# What compare's diagnosis calls them.
KINDS = {
    "axis-order": "axes in another order", "ring-reversed": "chunks in another order",
    "partial-sum-missing": "partial sum missing", "partial-sum-twice": "partial sum twice",
    "reduction-missing": "reduction missing",
    "reduction-wrong-axis": "reduction over another axis",
    "other-chip-block": "another chip's block", "all-to-all-swapped": "split and concat swapped",
    "stale-slot": "stale slot", "position-off": "position off", "scale-missing": "scale missing",
    "scale-doubled": "scale doubled", "mask-off": "mask", "head-order": "head order",
    "transposed-weight": "transposed weight", "wrong-layer-weight": "another layer's weight",
    "local-statistics": "local statistics", "rounding-bf16": "rounding",
    "gate-up-swapped": "gate and up swapped", "residual-added-n-times": "addend not added once",
}

# name: (model, case). Multiquery, grouped and serial, multihead with square weights, biases;
# unequal axes, axes of one chip.
CASES = {
    "palm": ("palm-tiny,layers=2,E=48,F=96,H=24,Q=4,V=48",
             "torus=2x3x2 batch=12 prompt=5 chunk=3 gen=3"),
    "llama": ("llama,layers=2,E=48,F=72,H=24,K=6,Q=4,V=72",
              "torus=3x2x2 batch=12 prompt=4 gen=3"),
    "square": ("palm-tiny,layers=2,E=48,F=48,H=12,K=12,Q=4,V=96",
               "torus=2x3x2 batch=12 prompt=3 chunk=2 gen=2"),
    "wide": ("palm-tiny,layers=2,E=48,F=96,H=24,K=4,Q=4,V=72",
             "torus=4x2x3 batch=24 prompt=3 gen=2"),
    "flat": ("palm-tiny,layers=2,E=36,F=36,H=18,K=3,Q=6,V=54,bias=qkv",
             "torus=3x3x1 batch=9 prompt=4 chunk=2 gen=3"),
}
ORDERS = {"2d": ["", "e=y f=xz h=zx stream=yxz", "e=z f=yx h=xy stream=zyx"],
          "1d": ["", "f=yxz h=yzx"], "1d-rs": ["", "f=zyx h=zxy stream=yzx"],
          "wg": ["", "e=z f=xy h=yx"]}
MESHES = ["x y z", "z x y", "data=x model=y seq=z", "seq=z data=x model=y"]


class Compare:
    """Writes traces and has them judged."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for number, (name, (model, _)) in enumerate(CASES.items()):
            subprocess.run([program, "weights", "generate", "--model", model, "--seed",
                            str(number + 3), "--out", self.weights(name)], check=True,
                           stdout=subprocess.DEVNULL)

    def weights(self, name):
        return self.folder / f"{name}.h5"

    def judged(self, name, peer, dump, run, container):
        """What compare says: exit code, verdict of each value, first divergence, diagnosis."""
        path = self.folder / f"trace{container}"
        path.unlink(missing_ok=True)
        dump.write(path, run, peer.attributes())
        done = subprocess.run([self.program, "compare", path, "--weights", self.weights(name),
                               "--json"], capture_output=True, text=True)
        return Answer(done)


class Answer:
    """The one place that knows compare's JSON."""

    def __init__(self, done):
        self.code, self.error = done.returncode, done.stderr.strip()
        said = json.loads(done.stdout) if done.stdout.strip() else {}
        self.fits = {value["name"]: value["fit"] for value in said.get("values", [])}
        first = said.get("first") or {}
        self.first = first.get("name", first.get("step"))
        self.diagnosis = said.get("diagnosis") or first.get("diagnosis") or []


class Setting:
    """A case, how it is sharded, and how it is dumped."""

    def __init__(self, chance, strategy=None, arithmetic=None, form=None, name=None):
        self.name = name or chance.choice(list(CASES))
        self.strategy = strategy or chance.choice(STRATEGIES[1:])
        if self.name == "flat" and self.strategy == "2d:batch-x":
            self.strategy = "2d:batch"
        self.axes = chance.choice(ORDERS.get(self.strategy.split(":")[0], [""]))
        if self.strategy == "2d:batch-x":
            self.axes = ""
        self.arithmetic = arithmetic or chance.choice(["f32", "f64", "exact"])
        self.form = form or chance.choice(FORMS)
        self.container = chance.choice([".h5", ".npz"])
        self.mesh = chance.choice(MESHES)
        self.garbage = chance.random() < 0.2
        self.partial_sums = chance.random() < 0.3
        self.stages = chance.random() < 0.5
        self.padded = chance.choice([0, 0, 9])

    def __str__(self):
        words = [self.name, self.strategy, self.axes, self.arithmetic, self.form, self.container,
                 f"mesh={self.mesh}", "garbage" * self.garbage, "partial sums" * self.partial_sums,
                 "stages" * self.stages,
                 f"padded={self.padded}" * bool(self.padded)]
        return ", ".join(word for word in words if word)

    def peer(self, compare):
        return Peer(compare.weights(self.name), CASES[self.name][1], self.strategy,
                    self.arithmetic, self.axes, self.garbage, self.partial_sums, self.stages)

    def dump(self):
        return Dump(self.form, self.mesh, self.padded)


def healthy(compare, chance):
    """Runs without faults that are found wrong."""
    bad, runs, values = [], 0, 0
    names = itertools.cycle(CASES)
    for strategy, arithmetic, form in itertools.product(STRATEGIES, ("f32", "f64", "exact"), FORMS):
        setting = Setting(chance, strategy, arithmetic, form, next(names))
        peer = setting.peer(compare)
        run = peer.run(Bugs())
        answer = compare.judged(setting.name, peer, setting.dump(), run, setting.container)
        wanted = {"equal"} if arithmetic == "exact" else {"equal", "within", "within 1-2^-41"}
        # Ids of a prompt follow from nothing.
        wrong = {name: fit for name, fit in answer.fits.items()
                 if fit not in wanted and not (name.endswith(".ids") and fit == "not judged")}
        runs, values = runs + 1, values + len(answer.fits)
        if answer.code != 0 or wrong or len(answer.fits) < sum(
                setting.form != "logical" or not v.layout.partial for v in run.values.values()):
            bad.append(str(setting))
            print(f"RIGHT RUN, exit {answer.code}, {len(answer.fits)} of {len(run.values)}: "
                  f"{setting}: {answer.error} {dict(list(wrong.items())[:4])}")
    print(f"right runs: {runs}, of {values} values; {len(bad)} found wrong")
    return not bad


def one_site(compare, fault, seed, plain):
    """A trace with the fault: what it is, what compare says."""
    chance = random.Random(f"{fault} {seed}")
    for _ in range(200):
        # A whole array shows one replica only, and reductions are seen by their shards.
        setting = Setting(chance, form=chance.choice(["stacked", "chips"]))
        peer, dump = setting.peer(compare), setting.dump()
        # What a value is made of must be in the trace: all that happens between two values of it
        # is one fault, and not a fault and collectives after it. Unless it is to be plain.
        setting.stages = peer.stages = not plain
        if fault == "mask-off":  # what a masked slot holds must count
            peer.garbage = setting.garbage = False
        try:
            run, truth = planted(peer, dump, fault, chance.randrange(1 << 30))
        except ValueError:
            continue
        return setting, peer, dump, run, truth, compare.judged(setting.name, peer, dump, run,
                                                               setting.container)
    sys.exit(f"check: no case has a site for {fault}")


def faulty(compare, faults, seed, sites, plain):
    at_step, named, asked, total, misled = 0, collections.Counter(), collections.Counter(), 0, []
    for fault in faults:
        for site in range(sites):
            setting, peer, dump, run, truth, answer = one_site(compare, fault, f"{seed} {site}",
                                                                  plain)
            total += 1
            where = answer.code == 1 and answer.first == truth["step"]
            at_step += where
            top = answer.diagnosis[0] if answer.diagnosis else {"fault": "none", "axes": ""}
            # Partial sums over axes of one size make the same sums: of either the same is said.
            alike = [d for d in answer.diagnosis[:1] + answer.diagnosis[1:] * bool(
                top.get("explains")) if (d["fault"], d["residual"]) == (
                    KINDS[fault], top["residual"])]
            right = top["fault"] == KINDS[fault] and any(
                set(d["axes"]) == set(truth["axes"]) for d in alike)
            same = None
            if where and not right and top.get("explains"):
                for other in (name for name, kind in KINDS.items() if kind == top["fault"]):
                    same = equivalent(peer, dump, other, truth["step"], run)
                right = bool(same) and set(same["axes"]) == set(top["axes"])
            # Of embed no sum of partial sums is replayed.
            if truth["step"].endswith("embed_partial"):
                if not where:
                    print(f"STEP {fault}: {setting}: {truth['step']}, not {answer.first}")
                continue
            asked[fault] += 1
            named[fault] += right
            wrong = not right and top["fault"] != KINDS[fault] and top.get("residual") == 0
            misled += [str(setting)] * wrong
            if not where or not right:
                kind = "STEP" if not where else "MISLED" if wrong else "WHY"
                print(f"{kind} {fault}: {setting}: {truth['step']} "
                      f"over {truth['axes'] or 'no axes'}, {truth['detail']}\n"
                      f"    compare: exit {answer.code} {answer.error} {answer.first}; " +
                      "; ".join(f"{d['fault']} over {d['axes'] or 'no axes'} ({d['detail']}; "
                                f"explains {d.get('explains')}, residual {d['residual']})"
                                for d in answer.diagnosis[:3]), flush=True)
        print(f"{fault}: {named[fault]} of {asked[fault]} named", flush=True)
    count, of = sum(named.values()), sum(asked.values())
    print(f"faults: {total} planted, {at_step} found at their step; of {of} that are no partial "
          f"sums {count} named with their axes, {len(misled)} explained wrongly without a residual")
    return at_step == total and (plain or count * 100 >= of * 95) and not misled


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("shardproof")
    arguments.add_argument("folder", help="for weights and traces")
    arguments.add_argument("--seed", type=int, default=1, help="draws settings and sites")
    arguments.add_argument("--sites", type=int, default=5, help="of each fault")
    arguments.add_argument("--faults", default=",".join(FAULTS), help="of those of peer.py")
    arguments.add_argument("--healthy-only", action="store_true")
    arguments.add_argument("--faults-only", action="store_true")
    arguments.add_argument("--plain", action="store_true",
                           help="traces have no values between collectives; any rate will do")
    options = arguments.parse_args()
    started, held = time.time(), True
    compare = Compare(options.shardproof, options.folder)
    if not options.faults_only:
        held = healthy(compare, random.Random(options.seed)) and held
    if not options.healthy_only:
        held = faulty(compare, options.faults.split(","), options.seed, options.sites,
                      options.plain) and held
    print(f"{'all held' if held else 'NOT ALL HELD'} in {time.time() - started:.0f} s")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
