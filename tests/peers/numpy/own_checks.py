#!/usr/bin/python3
"""What the peer can check by itself: every sharded run equals the unsharded one.

    own_checks.py W.h5 ["CASE LINE"]

Each value is put together by its declared layout. In f64 it must be within 1e-12 of its rms, with
exact sums it must have the same bits, and replicas must agree. Then each fault must show.
"""
import sys

import numpy as np

from bug import FAULTS, Bugs
from dump import Dump
from mesh import cut, joined
from peer import Peer, planted
from plan import STRATEGIES

# Orders of axes beside the default ones.
ORDERS = {"2d": ["e=y f=xz h=zx stream=yxz", "e=xz f=y h=y stream=xzy"], "1d": ["f=yxz h=yzx"]}


def demand(held, what):
    if not held:
        sys.exit(f"own_checks: {what}")


def same(name, whole, sharded, tolerance):
    demand(list(whole.values) == list(sharded.values), f"{name}: other values")
    for step, value in sharded.values.items():
        right, found = joined(whole.values[step]), joined(value)
        demand(right.shape == found.shape, f"{name} {step}: {found.shape}, not {right.shape}")
        off = np.abs(right.astype(np.float64) - found).max() / np.sqrt((right * 1.0)**2).mean()
        demand(off <= tolerance, f"{name} {step}: {off} of the mean apart")
        for chip, block in cut(value.mesh, found, value.layout).shards.items():
            demand(np.array_equal(block, value.shards[chip]), f"{name} {step}: chip {chip} differs")


def main(weights, case):
    runs = [(strategy, axes) for strategy in STRATEGIES[1:]
            for axes in ["", *ORDERS.get(strategy.split(":")[0], [])]
            if not (strategy.endswith("-x") and axes)]
    for arithmetic, tolerance in (("f64", 1e-12), ("exact", 0.0)):
        whole = Peer(weights, case, "whole", arithmetic).run(Bugs())
        for strategy, axes in runs:
            sharded = Peer(weights, case, strategy, arithmetic, axes).run(Bugs())
            same(f"{strategy} {axes} {arithmetic}", whole, sharded, tolerance)
            print(f"{strategy} {axes} {arithmetic}: {len(sharded.values)} values are those of the "
                  "unsharded run")
    for fault in FAULTS:
        for strategy in STRATEGIES[1:]:
            try:
                truth = planted(Peer(weights, case, strategy), Dump("stacked"), fault, 1)[1]
                print(f"{fault} {strategy}: {truth['step']} {truth['axes']} {truth['detail']}")
            except ValueError as error:
                print(f"{fault} {strategy}: none: {error}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else
         "torus=2x3x2 batch=12 prompt=5 chunk=3 gen=3")
