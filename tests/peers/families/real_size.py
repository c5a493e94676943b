#!/usr/bin/python3
"""Has `shardproof compare` judge one layer of real extents, E=4096 and F=11008 on 8 chips in f32.

    real_size.py SHARDPROOF FOLDER [--tokens N]

The right run has no value that is different, unlikely, loose or not judged. With a fault too small
for one bound of the worst case, the value in which it is made is the first that is different or
unlikely. Takes some minutes, 4 GB of memory and 1 GB in FOLDER. Exits 1 where one of these does not
hold.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

from arithmetic import Arithmetic
from families import Model
from forward import Run
from judge import Answer
from mesh import Mesh
from roundings import ROUND
from trace import Trace

TEXT = "llama,layers=1,E=4096,F=11008,H=32,K=8,Q=128,V=256"


def to_tf32(a):
    """To 10 bits after the first, to nearest."""
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def operands_in_tf32(run):
    times = run.times
    run.times = lambda name, x, w: (times(name, to_tf32(x), to_tf32(w)) if name == "gate"
                                    else times(name, x, w))


def matrix_in_bf16(run):
    run.weights["layer0.w_gate"] = ROUND["bf16"](run.weights["layer0.w_gate"])


def one_wire_in_bf16(run, chip):
    reduced = run.reduced

    def with_one(name, layer, parts):
        if name == "ffn_out":
            parts[chip] = ROUND["bf16"](parts[chip])
        return reduced(name, layer, parts)
    run.reduced = with_one


FAULTS = {
    "both operands of gate in tf32": (operands_in_tf32, "gate"),
    "w_gate in bf16": (matrix_in_bf16, "gate"),
    "the first chip's partial sum of ffn_out in bf16": (lambda run: one_wire_in_bf16(run, 0),
                                                    "ffn_out"),
    "the last chip's partial sum of ffn_out in bf16": (lambda run: one_wire_in_bf16(run, 7),
                                                   "ffn_out"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shardproof")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=16)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    weights, path = options.folder / "real.h5", options.folder / "real.npz"
    subprocess.run([options.shardproof, "weights", "generate", "--model", TEXT, "--seed", "3",
                    "--out", weights], check=True, stdout=subprocess.DEVNULL)
    model = Model(weights, "llama")
    model.layers = 1
    ids = np.random.default_rng(1).integers(0, model.V, (1, options.tokens)).astype(np.int32)
    failed = 0
    for name, (plant, step) in {"right": (None, None), **FAULTS}.items():
        run = Run(model, Mesh("2x2x2", "xyz"), Arithmetic(), "xa", False, True)
        if plant is not None:
            plant(run)
        run.generate(ids, options.tokens, 1)
        Trace(run, "full", form="stacked").filled().write(
            path, f"torus=2x2x2 model={TEXT} batch=1 prompt={options.tokens} gen=1",
            arithmetic="f32")
        start = time.time()
        answer = Answer(subprocess.run([options.shardproof, "compare", path, "--weights", weights,
                                        "--json"], capture_output=True, text=True))
        seconds = time.time() - start
        bad = {value: fit for value, fit in answer.fits.items()
               if fit in ("different", "unlikely", "loose")}
        right = answer.code == 0 and not bad and not answer.error
        found = answer.code == 1 and (answer.first or "").endswith("." + (step or "none"))
        failed += not (found if step else right)
        print(f"{name}: exit {answer.code} {answer.error}, first {answer.first}, {bad}, "
              f"{seconds:.0f} s", flush=True)
        for value in answer.values:
            if value["name"].split(".")[-1] in ("q", "gate", "up", "hidden", "ffn_out"):
                print(f"    {value['name']}: {value['fit']}, found {value['found']:.2g}, allowed "
                      f"{value['allowed']:.2g}, likely {value['allowed_likely']:.2g}")
    os.remove(path), os.remove(weights)
    print(f"{1 + len(FAULTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
