#!/usr/bin/python3
"""Reads a trace with h5py and puts every value together again, by its own reading of the layouts.

    trace_read_back.py [--h5dump] [--faults] TRACE.h5

Every value stands as docs/trace-format.md says: whole, as the shards of all chips, as those of the
lowest-numbered of copies, or as the name of another value that it is the same as. What only moved
must be the same tensor in its new layout. The partial sums of every value that the next op sums up
are added over its partial axes with math.fsum and held, cast, against what that op returned, bit
for bit. --h5dump reads some of the datasets with h5dump too; --faults plants faults in copies of
the file and demands that each is found. Exits 1 and names the first difference if there is one.
"""

import argparse
import collections
import itertools
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from row_lengths import lengths_of, prefill_of

DTYPES = {"f32": "<f4", "bf16": "<f4", "f32 partial": "<f4", "f64 partial": "<f8", "int32": "<i4"}
MOVES = {"all_gather", "all_to_all", "permute_axes"}
SUMS = {"reduce_scatter", "all_reduce"}


class Wrong(Exception):
    pass


def demand(held, reason):
    if not held:
        raise Wrong(reason)


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def read_layout(layout):
    """'BLF_zy partialsum-x' is [('B', ''), ('L', ''), ('F', 'zy')] and 'x'."""
    dims, _, partial = layout.partition(" partialsum-")
    found = re.findall(r"([A-Z])(?:_([xyz]+))?", dims)
    demand("".join(d + ("_" + a if a else "") for d, a in found) == dims, f"layout {layout!r}")
    return found, partial


def slices(dims, shape, at, sizes):
    """What the chip at {x, y, z} holds: of each dim one of equal blocks, the first axis the major."""
    cut = []
    for (_, axes), extent in zip(dims, shape, strict=True):
        block, blocks = 0, 1
        for axis in axes:
            block, blocks = block * sizes[axis] + at[axis], blocks * sizes[axis]
        demand(extent % blocks == 0, f"extent {extent} in {blocks} blocks")
        width = extent // blocks
        cut.append(slice(block * width, (block + 1) * width))
    return tuple(cut)


def bits(array):
    return numpy.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def chips_of(sizes):
    return list(itertools.product(*(range(sizes[axis]) for axis in "xyz")))


class Value:
    """A value of the file: its attributes, and what each chip holds."""

    def __init__(self, file, name, sizes):
        self.name, whole = name, name in file
        self.groups = [at for at in chips_of(sizes) if name in file["chips"]["%d_%d_%d" % at]]
        demand(whole != bool(self.groups), f"{name} stands twice, or nowhere")
        sets = [file[name]] if whole else [
            file["chips"]["%d_%d_%d" % at][name] for at in self.groups]
        self.attrs = {key: sets[0].attrs[key] for key in sets[0].attrs}
        for each in sets:
            for key in ("layout", "op", "order", "dtype", "shape"):
                demand(numpy.array_equal(each.attrs[key], self.attrs[key]),
                       f"{name}: chips differ in {key}")
                if key not in ("order", "shape"):
                    demand(h5py.check_string_dtype(each.attrs.get_id(key).dtype).length is None,
                           f"{name}: {key} has a fixed length")
            demand(each.dtype == DTYPES[text(self.attrs["dtype"])], f"{name} is {each.dtype}")
        self.dtype, self.layout = text(self.attrs["dtype"]), text(self.attrs["layout"])
        self.op, self.shape = text(self.attrs["op"]), tuple(self.attrs["shape"])
        self.dims, self.partial = read_layout(self.layout)
        demand(bool(self.partial) == self.dtype.endswith("partial"), f"{name}: {self.layout}")
        self.where = {at: slices(self.dims, self.shape, dict(zip("xyz", at)), sizes)
                      for at in chips_of(sizes)}
        if whole:
            same = self.attrs.get("same_as")
            demand(same is None or sets[0].shape == (0,), f"{name} is the same, and stands again")
            self.whole = (sets[0] if same is None else file[text(same)])[...]
            demand(self.whole.shape == self.shape, f"{name} is {self.whole.shape}")
            demand(not self.partial, f"{name}: partial sums stand whole")
            if self.dtype == "bf16":
                demand(not numpy.any(bits(self.whole) & 0xFFFF), f"{name} says bf16")
            return
        self.whole, used = None, set(self.partial) | {a for _, axes in self.dims for a in axes}
        held = {at: each[...] for at, each in zip(self.groups, sets)}
        self.bounds = {at: float(each.attrs.get("bound", 0)) for at, each in
                       zip(self.groups, sets)}
        once = text(self.attrs.get("replicas", "")) == "identical"
        self.data = {}
        for at in chips_of(sizes):
            holder = tuple(i if a in used else 0 for a, i in zip("xyz", at)) if once else at
            demand(holder in held, f"{name} is gone on chip {holder}")
            self.data[at], self.bounds[at] = held[holder], self.bounds[holder]
            local = tuple(s.stop - s.start for s in self.where[at])
            demand(held[holder].shape == local, f"{name} on chip {at} is {held[holder].shape}")


class Checker:
    def __init__(self, file):
        self.file, self.tally = file, collections.Counter()
        self.layouts = set()

    def run(self):
        attrs = self.file.attrs
        demand(text(attrs["format"]) == "shardproof trace" and attrs["version"] == 1, "no trace")
        words = dict(word.split("=", 1) for word in text(attrs["case"]).split())
        for key in ("torus", "regime", "act"):
            demand(words[key] == text(attrs[key]), f"{key} is not the case's")
        self.sizes = dict(zip("xyz", map(int, words["torus"].split("x")), strict=True))
        groups = self.file["chips"]
        demand(set(groups) == {"%d_%d_%d" % at for at in chips_of(self.sizes)}, "chips are missing")
        for name, group in groups.items():
            at = "_".join(str(int(group.attrs[axis])) for axis in "xyz")
            demand(at == name, f"chip {name} says it is at {at}")
        names = {n for n in self.file if n not in ("chips", "expected")}
        names |= {n for group in groups.values() for n in group}
        values = sorted((Value(self.file, n, self.sizes) for n in names),
                        key=lambda v: v.attrs["order"])
        orders = [int(v.attrs["order"]) for v in values]
        demand(orders == list(range(len(values))), "the values' order has gaps")
        by_name = {v.name: v for v in values}
        for value in values:
            self.step(value, by_name)
        if text(attrs["ended"]) == "complete":
            self.ids(values, words)
        return len(values)

    def step(self, value, values):
        self.layouts.add(value.layout)
        self.tally["shards"] += len(value.where)
        self.tally["elements"] += value.whole.size if value.whole is not None else sum(
            d.size for d in value.data.values())
        kind, _, rest = value.op.partition("(")
        argument = value.name.rpartition(".")[0] + "." + re.split(r"[,)]", rest)[0]
        if kind in MOVES | SUMS:
            demand(argument in values or kind in MOVES, f"{value.name}: no operand {argument}")
        operand = values.get(argument)
        if operand is None:
            return
        if kind in MOVES and value.whole is not None:
            demand(numpy.array_equal(bits(value.whole), bits(operand.whole)),
                   f"{value.name} is not what {operand.name} is")
            self.tally["moves"] += 1
        if kind in SUMS and value.whole is not None and text(
                self.file.attrs["regime"]) == "exact":
            self.sum(value, operand)

    def sum(self, value, operand):
        groups = collections.defaultdict(list)
        for at in operand.data:
            groups[tuple(0 if a in operand.partial else i for a, i in zip("xyz", at))].append(at)
        for members in groups.values():
            terms = [operand.data[at].astype("<f8").ravel() for at in members]
            want = value.whole[operand.where[members[0]]].ravel()
            bound = math.fsum(operand.bounds[at] for at in members)
            for i, expected in enumerate(want):
                total = math.fsum(float(t[i]) for t in terms) + 0.0
                self.tally["sums"] += 1
                if bits(numpy.float32(total)) == bits(expected):
                    continue
                # The f64 terms are near their exact sums, within the stated bounds: only a rounding
                # boundary that lies so near can part the two.
                reach = (bound + math.ulp(total)) * (1 + 2**-40)
                low, high = numpy.float32(total - reach), numpy.float32(total + reach)
                demand(bound > 0 and low <= expected <= high,
                       f"{operand.name}: the chips' partial sums {members} add up to {total!r} at "
                       f"{i}, {value.name} has {expected!r}")
                self.tally["undecided"] += 1

    def ids(self, values, words):
        wholes = {v.name: v.whole for v in values}
        prompt = numpy.concatenate([wholes[n] for n in wholes
                                    if re.fullmatch(r"prefill\.c\d+\.ids", n)], axis=1)
        batch, chunk = int(words["batch"]), int(words["chunk"])
        lengths = lengths_of(words, batch)
        demand(prompt.shape == (batch, prefill_of(words, lengths)), "prompt has that shape")
        for row, length in enumerate(lengths):
            demand(not prompt[row, length:].any(), f"row {row} is padded with token 0")
        # Of each row the token of the chunk in which it ends, then one of each decode step.
        ends = [(length - 1) // chunk for length in lengths]
        passes = ([f"prefill.c{n}" for n in sorted(set(ends))]
                  + [f"decode.{n}" for n in range(1, int(words["gen"]))])
        tokens = {n.partition(".sample.")[0]: wholes[n] for n in wholes if n.endswith(".token")}
        demand(sorted(tokens) == sorted(passes), "tokens of all passes")
        last = [tokens[f"prefill.c{end}"][row] for row, end in enumerate(ends)]
        for n in passes:
            if n.startswith("prefill."):
                continue
            demand(numpy.array_equal(last, wholes[f"{n}.ids"][:, 0]), f"{n}.ids are not the tokens")
            last = tokens[n]


def check(path):
    with h5py.File(path, "r") as file:
        checker = Checker(file)
        return checker.run(), checker


def dumped(path, name, dtype):
    """The dataset as h5dump, which shares nothing with h5py but the HDF5 library, writes it."""
    with tempfile.TemporaryDirectory() as folder:
        raw = pathlib.Path(folder) / "raw"
        command = ["h5dump", "-d", name, "-b", "LE", "-o", str(raw), path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return numpy.fromfile(raw, dtype)


def compare_with_h5dump(path):
    with h5py.File(path, "r") as file:
        names = []
        for group in ("", "chips/0_0_0/"):
            steps = [n for n in file[group or "/"]
                     if n not in ("chips", "expected") and file[group + n].size > 0]
            names += [group + n for n in steps[::max(1, len(steps) // 10)]]
        for name in names:
            same = dumped(path, "/" + name, file[name].dtype).tobytes() == file[name][...].tobytes()
            demand(same, f"{name}: h5dump and h5py disagree")
        return len(names)


# ---- faults ----

def some(names):
    return names[::max(1, len(names) // 5)]


def faults(path):
    """(what, how to plant it in an open file)."""
    with h5py.File(path, "r") as file:
        sizes = dict(zip("xyz", map(int, text(file.attrs["torus"]).split("x"))))
        names = {n for n in file if n != "chips"} | set(file["chips/0_0_0"])
        values = {n: Value(file, n, sizes) for n in names}
        first = {n: re.split(r"[(,)]", v.op)[1] if "(" in v.op else "" for n, v in values.items()}
        argument = {n: n.rpartition(".")[0] + "." + first[n] for n in values}
        kind = {n: v.op.partition("(")[0] for n, v in values.items()}
        summed = sorted(argument[n] for n in values
                        if kind[n] in SUMS and values[n].whole is not None)
        moved = sorted(n for n in values if kind[n] in MOVES and "same_as" in values[n].attrs
                       and "same_as" not in values.get(argument[n], values[n]).attrs
                       and argument[n] in values)
        shard = {n: values[n].groups[-1] for n in summed}
        tokens = sorted(n for n in values if re.fullmatch(r"decode\.\d+\.ids", n))

    def at(n):
        return "chips/%d_%d_%d/%s" % (*shard[n], n)

    def poke(file, path, change):
        data = file[path][...]
        data.flat[data.size - 1] = change(data.flat[data.size - 1])
        file[path][...] = data

    def other_sum(file, n):
        poke(file, at(n), lambda v: v + abs(v) * 2**-20 + 1)

    def unname(file, n):  # the elements once more, and one bit of them off
        other = text(file[n].attrs["same_as"])
        attrs = dict(file[n].attrs)
        data = file[other][...]
        del file[n], attrs["same_as"]
        data.flat[0] = (bits(data.flat[:1]) ^ 1).view(data.dtype)[0]
        for key, value in attrs.items():
            file.require_dataset(n, data.shape, data.dtype, data=data).attrs[key] = value

    def relayout(file, n):
        for group in file["chips"].values():
            if n in group:
                group[n].attrs["layout"] = text(group[n].attrs["layout"]).partition(" partial")[0]

    for n in some(summed):
        yield f"{n} with a term off", lambda f, n=n: other_sum(f, n)
        yield f"{n} not partial", lambda f, n=n: relayout(f, n)
        yield f"{n} gone on one chip", lambda f, n=n: f.__delitem__(at(n))
        yield f"{n} whole, too", lambda f, n=n: f.create_dataset(n, data=f[at(n)][...])
    for n in some(moved):
        yield f"{n} one bit off", lambda f, n=n: unname(f, n)
        yield f"{n} the same as nothing", lambda f, n=n: f[n].attrs.__setitem__("same_as", "no")
    for n in tokens:
        yield f"other {n}", lambda f, n=n: poke(f, n, lambda v: v + 1)

    def misplace(file):
        a, b = file["chips"]["0_0_0"].attrs, file["chips"][list(file["chips"])[-1]].attrs
        for axis in "xyz":
            a[axis], b[axis] = b[axis], a[axis]

    yield "a chip elsewhere", misplace


def plant_faults(path):
    caught = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = str(pathlib.Path(folder) / "copy.h5")
        for what, plant in faults(path):
            shutil.copyfile(path, copy)
            with h5py.File(copy, "r+") as file:
                plant(file)
            try:
                check(copy)
            except (Wrong, KeyError) as why:
                print(f"caught: {what}: {why}")
                caught += 1
            else:
                raise Wrong(f"not caught: {what}")
    demand(caught >= 10, f"only {caught} faults planted")
    return caught


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--h5dump", action="store_true", help="compare with h5dump too")
    arguments.add_argument("--faults", action="store_true", help="plant faults and find them")
    arguments.add_argument("file")
    options = arguments.parse_args()
    try:
        steps, checker = check(options.file)
        tally = checker.tally
        print(f"{steps} values in {len(checker.layouts)} layouts, {tally['shards']} shards, "
              f"{tally['moves']} moves, {tally['elements']} elements and {tally['sums']} sums, all "
              "equal"
              + (f"; {tally['undecided']} sums within their bounds" if tally["undecided"] else ""))
        if options.h5dump:
            print(f"{compare_with_h5dump(options.file)} datasets the same by h5dump")
        if options.faults:
            print(f"{plant_faults(options.file)} faults planted, all caught")
    except Wrong as why:
        print(f"trace: {why}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
