#!/usr/bin/env python3
"""A stranger's view of the corpus of goldens, from docs/golden.md and docs/spec.md alone.

    read_back.py CORPUS [--faults]

Checks the sha256 sum of every file, and that the corpus has just the goldens that its CASES name;
of layouts, what each chip holds; of collectives, every result, by collectives of its own that move
blocks between the chips of a group; of models, every value, by tests/numpy_model/. With --faults
one bit of each array that is a result is changed in turn, in a golden of each kind, and the check
must fail.
Exits 1 and names the first difference if there is one.
"""
import argparse
import hashlib
import math
import os
import re
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from numpy_model.run import keys_of, run  # noqa: E402


class Different(Exception):
    pass


def need(held, reason):
    if not held:
        raise Different(reason)


class Golden:
    """A golden in memory: attributes, arrays by name, attributes by name."""

    def __init__(self, path):
        with h5py.File(path, "r") as file:
            self.attributes = dict(file.attrs)
            names = sorted(file, key=lambda name: file[name].attrs["order"])
            self.arrays = {name: file[name][()] for name in names}
            self.said = {name: dict(file[name].attrs) for name in names}


def parsed(layout):
    """[(letter, axes)] and the axes of partial sums."""
    dims, _, partial = layout.partition(" partialsum-")
    return [(d[0], d[2:]) for d in re.findall(r"[A-Z](?:_[xyz]+)?", dims)], partial


class Torus:
    def __init__(self, text):
        self.size = dict(zip("xyz", map(int, text.split("x"))))
        self.shape = tuple(self.size.values())

    def chips(self):
        return [dict(zip("xyz", at)) for at in np.ndindex(self.shape)]

    def count(self, axes):
        return math.prod(self.size[a] for a in axes)

    def block(self, chip, axes):
        """The first axis of a subscript is the slowest."""
        at = 0
        for a in axes:
            at = at * self.size[a] + chip[a]
        return at

    def group(self, chip, axes):
        """The chips that differ from this one along the axes, in the order of their blocks."""
        members = [c for c in self.chips() if all(c[a] == chip[a] for a in "xyz" if a not in axes)]
        return sorted(members, key=lambda c: self.block(c, axes))


def at(array, chip):
    return array[chip["x"], chip["y"], chip["z"]]


def check_layouts(golden):
    torus = Torus(golden.attributes["torus"])
    for name, array in golden.arrays.items():
        need(golden.said[name]["layout"] == name, f"{name}: another layout")
        dims, partial = parsed(name)
        need(array.shape[:3] == torus.shape and partial == "", f"{name}: not stacked")
        local = array.shape[3:]
        shape = [n * torus.count(axes) for n, (_, axes) in zip(local, dims)]
        whole = np.arange(math.prod(shape)).reshape(shape)
        for chip in torus.chips():
            first = [torus.block(chip, axes) * n for n, (_, axes) in zip(local, dims)]
            mine = whole[tuple(slice(f, f + n) for f, n in zip(first, local))]
            need(np.array_equal(at(array, chip), mine), f"{name}: chip {chip} holds another block")
    return len(golden.arrays)


def collective(op, torus, layout, operand):
    """The shards of a result, chip by chip, as chips that talk to each other make them."""
    call, inside = re.fullmatch(r"(\w+)\(t, (.*)\)", op).groups()
    words = [word.strip() for word in inside.split(",")]
    dims, _ = parsed(layout)
    place = {letter: d for d, (letter, _) in enumerate(dims)}
    result = {}
    for chip in torus.chips():
        key = tuple(chip.values())
        mine = at(operand, chip)
        if call == "all_gather":
            group = torus.group(chip, words[1])
            result[key] = np.concatenate([at(operand, c) for c in group], place[words[0]])
        elif call == "slice":
            parts = np.split(mine, torus.count(words[1]), place[words[0]])
            result[key] = parts[torus.block(chip, words[1])]
        elif call == "all_reduce":
            result[key] = sum(at(operand, c).astype(np.float64)
                              for c in torus.group(chip, words[0]))
        elif call == "reduce_scatter":
            group = torus.group(chip, words[1])
            whole = sum(at(operand, c).astype(np.float64) for c in group)
            parts = np.split(whole, len(group), place[words[0]])
            result[key] = parts[torus.block(chip, words[1])]
        elif call == "all_to_all":
            source, target = words[0].split("->")
            axes, _, order = words[1].partition(" as ")
            group = torus.group(chip, axes)
            parts = [np.split(at(operand, c), len(group), place[target]) for c in group]
            own = torus.block(chip, order or axes)
            result[key] = np.concatenate([part[own] for part in parts], place[source])
        else:
            need(call == "permute_axes", f"{op} is no collective")
            before, after = words[1].split("->")
            wanted = torus.block(chip, after)
            result[key] = next(at(operand, c) for c in torus.group(chip, before)
                               if torus.block(c, before) == wanted)
    return result


def check_collectives(golden):
    torus, results = Torus(golden.attributes["torus"]), 0
    for name, array in golden.arrays.items():
        if name.endswith(".operand"):
            need(name[:-len(".operand")] in golden.arrays, f"{name}: no result")
            continue
        results += 1
        operand = golden.arrays[name + ".operand"]
        made = collective(golden.said[name]["op"], torus, golden.said[name + ".operand"]["layout"],
                          operand)
        for chip in torus.chips():
            own, mine = at(array, chip), made[tuple(chip.values())]
            need(own.shape == mine.shape and np.array_equal(own, mine.astype(np.float32)),
                 f"{name}: chip {chip} holds something else")
        # and the layouts of both say the same global shape
        shapes = [[n * torus.count(axes) for n, (_, axes) in
                   zip(golden.arrays[of].shape[3:], parsed(golden.said[of]["layout"])[0])]
                  for of in (name, name + ".operand")]
        need(shapes[0] == shapes[1], f"{name}: layouts of other shapes")
    return results


def check_model(golden):
    case = dict(word.split("=", 1) for word in golden.attributes["case"].split())
    need(case["regime"] == "exact" and golden.attributes["arithmetic"] == "exact", "not exact")
    batch, prompt, chunk, gen = (int(case[k]) for k in ("batch", "prompt", "chunk", "gen"))
    keys = keys_of(case["model"]) | {"block": case["block"]}
    passes = [name[:-4] for name in golden.arrays if name.endswith(".ids")]
    weights = {name: array.astype(np.float32) for name, array in golden.arrays.items()
               if name.split(".")[0] not in ("prefill", "decode")}
    tokens = np.concatenate([golden.arrays[p + ".ids"] for p in passes if p[0] == "p"], 1)
    need(tokens.shape == (batch, prompt), f"ids of {tokens.shape}")
    found = run(weights, keys, tokens, chunk or prompt, gen, case, range(batch))
    judged = set()
    before = None
    for id, value in found.items():
        last = id.startswith("last ")
        name = id.removeprefix("last ")
        need(name in golden.arrays, f"{name} is missing")
        array = golden.arrays[name]
        array = array[:, -1] if last else array
        need(array.shape == value.shape and array.dtype == value.dtype, f"{name} is of another type")
        bits = [np.ascontiguousarray(a).view("<u4").ravel() for a in (array, value)]
        wrong = np.flatnonzero(bits[0] != bits[1])
        need(wrong.size == 0, f"{name} is wrong in {wrong.size} elements")
        judged.add(name)
        if name.endswith(".token"):
            before = value
            step = int(name.split(".")[1]) if name[0] == "d" else 0
            ids = golden.arrays.get(f"decode.{step + 1}.ids")
            need(ids is None or np.array_equal(ids[:, 0], before), f"ids after {name}")
    values = {name for name in golden.arrays if name[:7] in ("prefill", "decode.")
              and not name.endswith(".ids")}
    need(values == judged, f"surplus: {sorted(values - judged)[:3]}")
    return len(judged)


CHECKS = {"layouts": check_layouts, "collectives": check_collectives, "model": check_model}


def check(golden):
    need(golden.attributes["format"] == "shardproof trace" and golden.attributes["version"] == 1,
         "no trace of version 1")
    return CHECKS[golden.attributes["golden"]](golden)


def check_sums(folder):
    listed = {}
    with open(os.path.join(folder, "MANIFEST.sha256"), encoding="utf-8") as file:
        for line in file:
            digest, path = line.rstrip("\n").split("  ")
            listed[path] = digest
    for path, digest in listed.items():
        with open(os.path.join(folder, path), "rb") as file:
            need(hashlib.sha256(file.read()).hexdigest() == digest, f"{path}: another sha256")
    with open(os.path.join(folder, "CASES"), encoding="utf-8") as file:
        ids = [line.split()[0] for line in file if line.strip() and not line.startswith("#")]
    need(set(listed) == {"CASES"} | {id + ".h5" for id in ids}, "CASES and the files differ")
    return ids


def changed(array):
    """The array with its middle element's lowest bit changed."""
    other = array.copy()
    other.reshape(-1).view(f"u{array.dtype.itemsize}")[array.size // 2] ^= 1
    return other


def check_faults(golden):
    """Each array that is a result changed in one bit, in turn: a number, and the unseen."""
    unseen, seen = [], 0
    for name, array in list(golden.arrays.items()):
        given = name.endswith((".operand", ".final_norm")) or (
            golden.attributes["golden"] == "model" and name[:7] not in ("prefill", "decode."))
        if given:  # operands, weights; and final_norm, of which this reads the last row only
            continue
        golden.arrays[name] = changed(array)
        try:
            check(golden)
            unseen.append(name)
        except Different:
            seen += 1
        golden.arrays[name] = array
    return seen, unseen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--faults", action="store_true")
    options = parser.parse_args()
    try:
        ids = check_sums(options.corpus)
        values, seen = 0, 0
        for id in ids:
            golden = Golden(os.path.join(options.corpus, id + ".h5"))
            try:
                values += check(golden)
            except Different as reason:
                raise Different(f"{id}: {reason}") from reason
        if options.faults:
            smallest = {}
            for id in ids:
                path = os.path.join(options.corpus, id + ".h5")
                kind, size = Golden(path).attributes["golden"], os.path.getsize(path)
                smallest[kind] = min(smallest.get(kind, (size, path)), (size, path))
            need(set(smallest) == set(CHECKS), f"only goldens of {sorted(smallest)}")
            for _, path in smallest.values():
                some, unseen = check_faults(Golden(path))
                seen += some
                need(not unseen, f"{path}: a changed {unseen[:3]} is not seen")
    except Different as reason:
        print(f"read back: {reason}")
        return 1
    print(f"read back: {len(ids)} goldens, {values} values, all right"
          + (f"; {seen} changed arrays seen" if options.faults else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
