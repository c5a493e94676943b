#!/usr/bin/env python3
"""A third party's view of a run: docs/spec.md section 2, worked out again in NumPy and math.fsum,
from the text alone (tests/numpy_model/).

    third_party.py WEIGHTS.h5 RUN.json

WEIGHTS.h5 is a Shardproof weights file of any model, RUN.json what
`shardproof run --json --checkpoints` printed for it (regime=exact; act=f32 or bf16; weights=f32,
bf16 or int8, whose codes and scales come from a file of version 2, or else are made here of the
f32 weights; greedy sampling, or random with temperature, top_k and top_p; rows of one length or
not, with shared prefixes or not). Each row is worked out by itself, from its first token on, over
one cache. Compares every checkpoint bit for bit, both ways, but for what stands at padding; exits 1
and names the first difference if there is one. Of a run with softmax=base2 the file may have the
plain model's weights: they are folded here.
"""
import json
import sys

import h5py
import numpy as np

from numpy_model.numbers import F32
from numpy_model.run import keys_of, run
from numpy_model.weights import fold, stored
from row_lengths import lengths_of, prefill_of, prefix_of


def shape_of(id, row_values, rows, prefill, chunk, shared):
    """The batch's: its rows, the tokens L of the pass, the slots M that are cached after it, behind
    `shared` keys of a prefix."""
    pass_name, name = id.removeprefix("last ").partition(".layer")[0], id.rpartition(".")[2]
    phase, number = pass_name.split(".")[0], int(pass_name.split(".")[1].lstrip("c"))
    if phase == "decode":
        L, M = 1, prefill - shared + number
    else:
        L = min(chunk, (shared if phase == "prefix" else prefill - shared) - number * chunk)
        M = number * chunk + L
    shape = [rows, *next(iter(row_values.values())).shape]
    if name in ("k_cache", "v_cache"):
        shape[1] = M
    elif not id.startswith("last ") and name not in ("logits", "token"):
        shape[1] = L
    if name in ("score", "exp"):
        shape[-1] = M + (0 if phase == "prefix" else shared)
    return shape


def whole(id, row_values, shape):
    """A value of the batch, out of those of rows that ran by themselves, and which of its elements
    something is said of: a row's tokens, the keys that they do not see, which hold +0, and the
    slots behind them, which hold NaN."""
    name = id.rpartition(".")[2]
    value, known = np.zeros(shape, next(iter(row_values.values())).dtype), np.zeros(shape, bool)
    for row, own in row_values.items():
        if name in ("k_cache", "v_cache"):
            value[row], known[row] = np.nan, True
        if name in ("score", "exp"):
            known[row, :len(own)] = True
        at = (row,) + tuple(slice(extent) for extent in own.shape)
        value[at], known[at] = own, True
    return value, known


def fail(reason):
    print(f"third party: {reason}")
    sys.exit(1)


def main(weights_path, run_path):
    with h5py.File(weights_path, "r") as file:
        weights = {name: file[name][()].astype(F32) for name in file}
        has_codes = file.attrs["version"] == 2
        plain = "softmax=base2" not in str(file.attrs["model"])
    with open(run_path, encoding="utf-8") as file:
        theirs = json.load(file)
    case = dict(word.split("=", 1) for word in theirs["case"].split())
    if has_codes and case["weights"] != "int8":
        fail(f"weights={case['weights']} of an int8 file")
    keys = keys_of(case["model"]) | {"block": case["block"]}
    folds = plain and keys.get("softmax") == "base2"
    if folds and case["weights"] != "int8":  # codes come first
        weights, folds = fold(weights, keys), False
    if not has_codes:
        weights = stored(weights, case["weights"])
    if folds:
        weights = fold(weights, keys)
    prompts, generated = theirs["prompt"], theirs["generated"]
    lengths = lengths_of(case, len(prompts))
    if lengths != [len(prompt) for prompt in prompts]:
        fail(f"the prompts have {[len(prompt) for prompt in prompts]} tokens, the case {lengths}")
    chunk, gen = int(case["chunk"]), int(case["gen"])
    prefill, (shared, count) = prefill_of(case, lengths), prefix_of(case)
    prefixes = [row * count // int(case["batch"]) for row in range(len(prompts))]
    found, tokens = {}, []
    for row, prompt in enumerate(prompts):
        alone = run(weights, keys, np.array([prompt]), chunk, gen, case,
                    [theirs.get("rows", range(len(prompts)))[row]], shared)
        last = -(-(len(prompt) - shared) // chunk) - 1  # the chunk in which the row ends
        for id, value in alone.items():
            if id.removeprefix("last ").startswith("prefix."):  # equal in rows that have the prefix
                found.setdefault(id, {})[prefixes[row]] = value[0]
                continue
            own = value[0, shared:] if id.endswith("_cache") else value[0]
            found.setdefault(id, {})[row] = own
            if id.endswith("_cache") and id.startswith(f"prefill.c{last}."):
                for later in range(last + 1, -(-(prefill - shared) // chunk)):  # there caches stay
                    found.setdefault(id.replace(f".c{last}.", f".c{later}."), {})[row] = own
        tokens.append([int(v[0]) for id, v in alone.items() if id.endswith(".token")])
    elements = 0
    for id, rows in found.items():  # in the order of computation: the first difference is a cause
        if id not in theirs["checkpoints"]:
            fail(f"{id} is missing from the run")
        given = theirs["checkpoints"][id]
        bits = np.frombuffer(bytes.fromhex(given["bits"]), "<u4")
        # Of the prefixes, too, a run prints only those of rows that it prints.
        shown = (prefixes[-1] + 1 if id.removeprefix("last ").startswith("prefix.")
                 else len(prompts))
        value, known = whole(id, rows, shape_of(id, rows, shown, prefill, chunk, shared))
        if list(value.shape) != given["shape"] or bits.size != value.size:
            fail(f"{id} has shape {given['shape']}, expected {list(value.shape)}")
        wrong = known.ravel() & (bits != np.ascontiguousarray(value).view("<u4").ravel())
        for at in np.flatnonzero(wrong)[:1]:
            fail(f"{id}{list(map(int, np.unravel_index(at, value.shape)))} is "
                 f"{bits.view(value.dtype)[at]!r}, expected {value.ravel()[at]!r}")
        elements += int(known.sum())
    for id in theirs["checkpoints"].keys() - found.keys():
        fail(f"{id} is no checkpoint of this model")
    if tokens != generated:
        fail(f"generated is {generated}, expected {tokens}")
    print(f"third party: weights={case['weights']}{' of rows of ' * ('lengths' in case)}"
          f"{','.join(map(str, lengths)) * ('lengths' in case)}"
          f"{' with prefixes ' * bool(count)}{case.get('prefix', '')}: {len(found)} checkpoints, "
          f"{elements} elements, all equal")


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
