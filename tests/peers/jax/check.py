"""Judges the JAX peer, right and wrong.

    PYTHONPATH=tools/python SHARDPROOF_LIBRARY=build/libshardproof.so \\
        PYTHON check.py SHARDPROOF FOLDER

PYTHON has what requirements.txt says. In f32, with a loop over layers, and in bf16, with a scan:
each value of the right run must be there, and right, in memory as in the file. Of each fault the
first divergence must be the value that it makes wrong first, and what is said to explain it must be
true of it; in f32 at least that many are explained first by their fault as RANKED says. Exits 1
where one of these does not hold.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import peer  # first: it says what JAX reads at its import
import jax.numpy as jnp
import numpy as np

import shardproof as sp
from faults import FAULTS
from shardproof.jax import trace

MODEL = "palm-tiny,K=4,bias=all"
# Of the faults, in f32.
RANKED = 10
# Verdicts of right values; of bf16 a bound over every way of rounding may be wide.
RIGHT = {"f32": {"equal", "within", "within 1-2^-41"}}
RIGHT["bf16"] = RIGHT["f32"] | {"near", "loose"}


class Peer:
    """One compiled program, which is told what is wrong with it."""

    def __init__(self, weights, act, scanned):
        self.act, self.weights = act, weights
        arrays = {name: np.array(array) for name, array in weights.items()}
        self.prompt = peer.prompt_of(arrays)
        kind = jnp.bfloat16 if act == "bf16" else jnp.float32
        self.model = peer.Model(arrays, kind, "any", scanned)

    def trace(self, fault=None):
        passes = self.model.run(self.prompt, fault)
        without = FAULTS[fault].without if fault else ""
        if without:
            passes = {at: {text: value for text, value in taps.items()
                           if f'.{without}"' not in text} for at, taps in passes.items()}
        # Of bf16 every named order of eight chips would be tried, for 5 s a trace; nothing is said
        # of the one that XLA takes.
        order = {"reduction": "any"} if self.act == "bf16" else {}
        return trace(peer.case_of(MODEL, self.act), passes, weights="file", masked="any", **order)

    def right(self, program, folder):
        """What is not as it should be of a run without faults."""
        made = self.trace()
        said = sp.judge(made, self.weights).json
        # A prompt is given, and follows from nothing.
        wrong = [f"{value['id']} {value['fit']}" for value in said["values"]
                 if value["fit"] not in RIGHT[self.act] and not (
                     value["id"].startswith("prefill.") and value["id"].endswith(".ids"))]
        if said["verdict"] != "right" or said["unknown"] or said["compared"] != said["of"]:
            wrong.append(f"{said['sentence']} {said['compared']} of {said['of']} values, unknown: "
                         f"{said['unknown']}")
        made.save(folder / "jax.h5")
        done = subprocess.run([program, "compare", folder / "jax.h5", "--json", "--weights",
                               folder / "w.h5"], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0 or json.loads(done.stdout)["values"] != said["values"]:
            wrong.append(f"the file is judged otherwise, exit code {done.returncode}")
        print(f"right run, {self.act}: {said['compared']} of {said['of']} values compared; "
              f"{'; '.join(wrong) or 'all right'}", flush=True)
        return not wrong

    def found(self, name):
        """Whether the fault is found where it is and nothing false is said of it, and whether it is
        the first cause."""
        fault = FAULTS[name]
        verdict = sp.judge(self.trace(name), self.weights)
        cause = verdict.cause
        true = cause is None or (cause.fault in fault.kinds and (
            not fault.axes or set(cause.axes) == set(fault.axes)))
        print(f"{name}, {self.act}: {verdict.first}: "
              f"{'no explanation' if cause is None else f'{cause.fault}: {cause.detail}'}",
              flush=True)
        if verdict.first != fault.first or not true or verdict.right:
            print(f"  it should be {fault.first}: {', '.join(fault.kinds)} {fault.axes}")
            return False, False
        return True, cause is not None


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("shardproof")
    arguments.add_argument("folder", help="for weights and traces")
    options = arguments.parse_args()
    started, folder = time.time(), pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = sp.Weights.generate(MODEL, 3)
    weights.save(folder / "w.h5")
    held, ranked = [], {}
    for act, scanned in (("f32", False), ("bf16", True)):
        one = Peer(weights, act, scanned)
        held.append(one.right(options.shardproof, folder))
        found = [one.found(fault) for fault in FAULTS]
        held += [right for right, _ in found]
        ranked[act] = sum(first for _, first in found)
        print(f"{act}: the cause is first in {ranked[act]} of {len(FAULTS)}")
    held.append(ranked["f32"] >= RANKED)
    print(f"{sum(held)} of {len(held)} held in {time.time() - started:.0f} s")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
