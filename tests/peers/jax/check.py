#!/usr/bin/python3
"""Has `shardproof compare` judge the JAX peer, right and wrong.

    check.py SHARDPROOF PYTHON FOLDER

PYTHON has JAX (requirements.txt), the Python that runs this has h5py and NumPy. Right runs, in f32
and in bf16: each value must be there, and right. Each fault: the first value that compare finds
different must be the one that the fault made wrong, and its first explanation that fault. Exits 1
where one of these does not hold.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import h5py
import numpy as np

PEER = pathlib.Path(__file__).with_name("peer.py")
# A fault of peer.py: the first wrong value, what compare's diagnosis calls it, and its axes.
FAULTS = {"no-psum": ("prefill.c0.layer1.k", "reduction missing", "x"),
          "axis-order": ("prefill.c0.layer1.up", "axes in another order", "yz"),
          "position-off": ("decode.1.layer1.q_rot", "position off", ""),
          "stale-slot": ("decode.1.layer1.v_cache", "stale slot", "")}


class Peer:
    """Runs it, and what compare says of its traces."""

    def __init__(self, program, python, folder):
        self.program, self.python = program, python
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.weights = self.folder / "w.h5"
        subprocess.run([program, "weights", "generate", "--model", "palm-tiny", "--seed", "3",
                        "--out", self.weights], check=True, stdout=subprocess.DEVNULL)
        with h5py.File(self.weights) as file:
            np.savez(self.folder / "w.npz", **{name: array[()] for name, array in file.items()})

    def judged(self, *flags):
        trace = self.folder / "jax.npz"
        trace.unlink(missing_ok=True)
        subprocess.run([self.python, PEER, self.folder / "w.npz", trace, *flags], check=True)
        done = subprocess.run([self.program, "compare", trace, "--weights", self.weights, "--json"],
                              stdout=subprocess.PIPE, text=True)
        return done.returncode, json.loads(done.stdout or "{}")


def right_words(act):
    """Verdicts of right values; of bf16 a bound over every way of rounding may be wide."""
    words = {"equal", "within", "within 1-2^-41"}
    return words if act == "f32" else words | {"near", "loose"}


def right(peer, act):
    """What is not as it should be of a run without faults."""
    code, said = peer.judged("--act", act)
    wrong = [f"exit code {code}"] if code != 0 else []
    # A prompt is given, and follows from nothing.
    wrong += [f"{value['id']} {value['fit']}" for value in said.get("values", [])
              if value["fit"] not in right_words(act) and not (
                  value["id"].startswith("prefill.") and value["id"].endswith(".ids"))]
    if said.get("unknown") != [] or said["compared"] != said["of"]:
        wrong.append(f"{said.get('compared')} of {said.get('of')} values, unknown: "
                     f"{said.get('unknown')}")
    print(f"right run, {act}: {said.get('compared')} of {said.get('of')} values compared; "
          f"{'; '.join(wrong) or 'all right'}", flush=True)
    return not wrong


def found(peer, fault):
    """Whether compare finds the fault where it is, and names it."""
    step, kind, axes = FAULTS[fault]
    code, said = peer.judged("--fault", fault)
    first = said.get("first", {}).get("step")
    top = (said.get("diagnosis") or [{}])[0]
    named = top.get("explains") is True and (top["fault"], set(top["axes"])) == (kind, set(axes))
    print(f"{fault}: exit code {code}, first divergence {first}, "
          f"{top.get('fault', 'no explanation')} {top.get('axes', '')}", flush=True)
    if code != 1 or first != step or not named:
        print(f"  it should be exit code 1, {step}, {kind} {axes}")
        return False
    return True


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("shardproof")
    arguments.add_argument("python", help="one that has JAX")
    arguments.add_argument("folder", help="for weights and traces")
    options = arguments.parse_args()
    started = time.time()
    peer = Peer(options.shardproof, options.python, options.folder)
    held = [right(peer, act) for act in ("f32", "bf16")] + [found(peer, fault) for fault in FAULTS]
    print(f"{sum(held)} of {len(held)} held in {time.time() - started:.0f} s")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
