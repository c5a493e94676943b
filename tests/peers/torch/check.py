"""Models of transformers under PyTorch's DTensor, on simulated ranks, judged by Shardproof: right,
and with twelve faults each. Exits with 1 on a false alarm, another first divergence, or a wrong
cause; in f32 the cause has to be named in at least six of twelve."""
import argparse
import logging
import pathlib
import sys
import time
from importlib import metadata

import numpy as np
import torch

import shardproof as sp
import shardproof.torch as spt
from families import FAMILIES, model_of
from faults import FAULTS, Run
from parallel import Parallel

LENGTHS = (8, 1)


def run_of(name, dtype, fault):
    """What a run shows, with a fault or none."""
    family = FAMILIES[name]

    def program(mesh):
        model = model_of(name, dtype, seed=1)
        reference = spt.reference(model)
        run = Run(model, family, mesh)
        parallel = Parallel(model, family, mesh, fault.broken if fault else frozenset())
        run.cuts, run.whole = (parallel.over, parallel.kv, parallel.kv), parallel.whole
        with run.undo:
            if fault and fault.before:
                fault.before(run)
            parallel.cut()
            ids = torch.from_numpy(np.random.default_rng(3).integers(0, 128, (2, sum(LENGTHS))))
            with spt.tap(model, reference, mesh) as tap:
                if fault and fault.after:
                    fault.after(run)
                cache, at = {}, 0
                for length in LENGTHS:
                    out = model(ids[:, at:at + length], use_cache=True, **cache)
                    cache, at = {"cache": out.cache}, at + length
        return tap
    return spt.ranks(family.ranks, family.mesh).run(program)


def verdict_of(tap):
    return sp.judge(tap.trace())


def judged(verdict, fault):
    """(what is wrong with the verdict, or "", and whether it names the cause)."""
    if fault is None:
        return "" if verdict.right else f"false alarm: {verdict.headline}", False
    if verdict.first is None:
        return f"not found: {verdict.headline}", False
    first = verdict.first.removesuffix("_before")
    wanted = fault.first if fault.first.startswith("decode") else "prefill.c0." + fault.first
    if first != wanted:
        return f"first divergence {first}, not {wanted}", False
    if verdict.cause is None:
        return "", False
    said = f"{verdict.cause.fault}: {verdict.cause.detail}"
    true = any(word in said for word in fault.causes)
    return ("" if true else f"wrong cause: {said}"), true


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--families", default=",".join(FAMILIES))
    options.add_argument("--types", default="float32,bfloat16")
    options.add_argument("--faults", default="", help="only those whose names contain this")
    options.add_argument("--newest", action="store_true",
                         help="other versions than those that requirements.txt pins may be there")
    options = options.parse_args()
    logging.disable(logging.WARNING)
    began, wrong = time.time(), 0
    versions = {name: metadata.version(name) for name in ("torch", "transformers", "numpy")}
    print(*versions.items(), f"Python {sys.version.split()[0]}", flush=True)
    pins = pathlib.Path(__file__).with_name("requirements.txt").read_text()
    other = [name for name, is_there in versions.items() if f"{name}=={is_there}\n" not in pins]
    if other and not options.newest:
        print(f"other versions than requirements.txt pins, of {', '.join(other)}: --newest allows it")
        return 1
    for name in options.families.split(","):
        for word in options.types.split(","):
            dtype = getattr(torch, word)
            of_family = [f for f in FAULTS if name in f.families and options.faults in f.name]
            named = 0
            for fault in ([] if options.faults else [None]) + of_family:
                start = time.time()
                verdict = verdict_of(run_of(name, dtype, fault))
                why, true = judged(verdict, fault)
                named += true
                wrong += bool(why)
                print(f"{name} {word} {fault.name if fault else 'right'}: "
                      f"{why or ('cause named' if true else 'found' if fault else 'right')}"
                      f" ({verdict.headline}) {time.time() - start:.1f} s", flush=True)
            print(f"{name} {word}: the cause of {named} of {len(of_family)}", flush=True)
            if word == "float32" and not options.faults and named < 6:
                wrong += 1
    print(f"{wrong} wrong, {time.time() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
