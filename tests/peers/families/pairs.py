#!/usr/bin/python3
"""Has `shardproof compare A B` hold two runs of one model against each other: f32 on 2x2x2, and bf16
on 4x1x1 with the roundings of a public library.

    pairs.py SHARDPROOF FOLDER [--seeds N] [--faults NAME,...]

Right runs must be apart by rounding in every value. Each fault, in A, then in B: the first wrong
value must be named, with its side; a fault in each of them at different layers: both. A near tie is
told from a wrong token. Exits 1 where one of these does not hold.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np

from check import first_difference
from faults import FAULTS
from families import model_text
from judge import Judge
from places import STYLES
from setting import Setting

SIZE, FAMILY = "eight", "llama"
# Of each kind that people met some: attention, positions, caches, weights, sums, layers, lookups.
CHOSEN = ("without-newest", "scale-one", "decode-at-12", "other-theta", "slot-unwritten",
          "rows-exchanged", "gate-up-in-equal-blocks", "w_out-device-order", "wq-of-layer-0",
          "partial-sum-left-out", "layer-skipped", "norm-in-mid", "rows-not-zeroed",
          "token-of-chip-0")
NEAR_TIE = 66  # the first seed at which bf16 chooses another token


def setting(seed, form, torus, axes, style):
    """Both read the same prompt; all else is what the two engines have of their own."""
    found = Setting(seed, form, family=FAMILY, size=SIZE, form=form, chips=8, passes=(2, 5, 5, 3),
                    dump_set="full", style=style, places=STYLES[style], attention="probs",
                    wire="f32", together=False, functions={}, fused=(), bias_first=False,
                    axes=axes, random=seed)
    found.torus = torus
    found.shown["partials"] = found.shown["last"] = False
    return found


class Pairs:
    def __init__(self, program, folder):
        self.judge = Judge(program, folder)
        self.judge.make_weights([FAMILY])
        self.bad = 0

    @property
    def weights(self):
        """Numbers of bf16, for both."""
        return self.judge.weights(FAMILY, SIZE, "bf16")

    def model(self):
        from judge import model_of
        return model_of(self.weights, FAMILY)

    def path(self, name):
        return self.judge.folder / f"pair_{name}.npz"

    def write(self, name, of, run):
        of.write(self.path(name), run, model_text(FAMILY, SIZE, of.form))

    def compared(self):
        done = subprocess.run(
            [self.judge.program, "compare", self.path("a"), self.path("b"), "--weights",
             self.weights, "--json", "--runs", "0"], capture_output=True, text=True)
        if not done.stdout.strip():
            sys.exit(f"pairs: {done.stderr}")
        return done.returncode, json.loads(done.stdout)

    def expect(self, what, holds, said):
        self.bad += not holds
        if not holds:
            others = {v["id"]: (v["verdict"], v.get("why")) for v in said["values"]
                      if v["verdict"] not in ("the same bits", "apart by rounding")
                      and "only" not in v}
            print(f"NOT {what}: {said['sentence']} {dict(list(others.items())[:4])}", flush=True)

    @staticmethod
    def sides(seed):
        return (setting(seed, "f32", "2x2x2", "xyz", "spec"),
                setting(seed, "bf16", "4x1x1", "x", "eager"))

    def right(self, seed):
        a, b = self.sides(seed)
        self.write("a", a, a.run(self.model()))
        self.write("b", b, b.run(self.model()))
        code, said = self.compared()
        verdicts = {v["verdict"] for v in said["values"] if "only" not in v}
        self.expect(f"right, seed {seed}", code == 0 and verdicts == {
            "the same bits", "apart by rounding"} and said["first"] is None, said)
        kept = sum(v["verdict"] == "apart by rounding" for v in said["values"])
        parted = [t["says"] for t in said["tokens"]]
        print(f"right runs, seed {seed}: {len(said['values'])} values, {kept} apart by rounding, "
              f"tokens that part: {parted}", flush=True)
        return a, b

    def planted(self, of, plant):
        """The run with a fault, and the value that it makes wrong first."""
        right, wrong = of.run(self.model()), of.run(self.model(), plant)
        step, off = first_difference(of.trace_of(right), right, wrong)
        return wrong, step, off

    def fault(self, name, a, b):
        fault = FAULTS[name]
        for side, of, other in (("a", a, b), ("b", b, a)):
            wrong, step, off = self.planted(of, fault.plant)
            if not off > 0.02:
                print(f"NOTHING {name} in {side}: off by {off:.2g}")
                self.bad += 1
                continue
            self.write(side, of, wrong)
            self.write("ba"[side == "b"], other, other.run(self.model()))
            code, said = self.compared()
            first = {"a": said["first_of_a"], "b": said["first_of_b"]}
            self.expect(f"{name} in {side} at {step}", code == 1 and first[side] == step
                        and first["ba"[side == "b"]] is None and said["first"] == step, said)

    def near_tie(self, seed):
        """The prompt of this seed has a near tie: two engines choose other tokens, which is no
        fault. The same token on A's own logits is one."""
        a, b = self.sides(seed)
        run = a.run(self.model())
        self.write("a", a, run)
        self.write("b", b, b.run(self.model()))
        code, said = self.compared()
        self.expect("near tie", code == 0 and [t["says"] for t in said["tokens"]] == ["near tie"],
                    said)
        parted = said["tokens"][0]
        step = f"{parted['pass']}.token"
        run.values[step] = run.values[step].copy()
        run.values[step].reshape(-1, 2)[:, parted["row"]] = parted["tokens"][1]
        self.write("a", a, run)
        code, said = self.compared()
        self.expect("wrong token", code == 1 and said["first_of_a"] == step
                    and said["first_of_b"] is None, said)

    def both(self, a, b):
        """A fault in layer 1 of A's attention, another in layer 0 of B's hidden."""
        def late(run):
            run.weights["layer1.wq"] = run.weights["layer1.wq"] * np.float32(1.5)

        def early(run):
            run.weights["layer0.w_up"] = run.weights["layer0.w_up"] * np.float32(1.5)
        first = {}
        for side, of, plant in (("a", a, late), ("b", b, early)):
            wrong, first[side], _ = self.planted(of, plant)
            self.write(side, of, wrong)
        code, said = self.compared()
        self.expect(f"faults in both at {first}", code == 1 and said["first_of_a"] == first["a"]
                    and said["first_of_b"] == first["b"], said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shardproof")
    parser.add_argument("folder", type=pathlib.Path, help="for weights and traces")
    parser.add_argument("--seeds", type=int, default=2, help="right runs")
    parser.add_argument("--faults", default=",".join(CHOSEN))
    options = parser.parse_args()
    pairs = Pairs(options.shardproof, options.folder)
    for seed in range(1, options.seeds + 1):
        a, b = pairs.right(seed)
    for name in options.faults.split(","):
        pairs.fault(name, a, b)
    pairs.near_tie(NEAR_TIE)
    pairs.both(a, b)
    print(f"{len(options.faults.split(','))} faults in A, then in B, and one in each: "
          f"{pairs.bad} did not hold")
    return 0 if pairs.bad == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
