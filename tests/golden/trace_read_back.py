#!/usr/bin/python3
"""Reads a trace with h5py and puts every value together again, by its own reading of the layouts.

    trace_read_back.py [--h5dump] [--faults] TRACE.h5

Holds every chip's shard of every complete value against the slice of the logical tensor that its
layout names, bit for bit; sums the f64 shards of every partial one over its partial axes with
math.fsum and holds the cast against the logical tensor. --h5dump reads some of the datasets with
h5dump too; --faults plants faults in copies of the file and demands that each is found. Exits 1
and names the first difference if there is one.
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

NOT_STEPS = {"chips", "prompt", "generated"}
DTYPES = {"f32": "<f4", "bf16": "<f4", "f32 partial": "<f4", "f64 partial": "<f8", "int32": "<i4"}


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


class Checker:
    def __init__(self, file):
        self.file, self.tally = file, collections.Counter()
        self.layouts = set()

    def run(self):
        attrs = self.file.attrs
        demand(text(attrs["format"]) == "shardproof trace" and attrs["version"] == 0, "no trace")
        words = dict(word.split("=", 1) for word in text(attrs["case"]).split())
        for key in ("torus", "regime", "act"):
            demand(words[key] == text(attrs[key]), f"{key} is not the case's")
        self.sizes = dict(zip("xyz", map(int, words["torus"].split("x")), strict=True))
        self.chips = {}
        for name, group in self.file["chips"].items():
            at = {axis: int(group.attrs[axis]) for axis in "xyz"}
            demand("_".join(map(str, at.values())) == name, f"chip {name} says it is at {at}")
            self.chips[tuple(at.values())] = group
        everywhere = set(itertools.product(*(range(n) for n in self.sizes.values())))
        demand(set(self.chips) == everywhere, "chips are missing")
        names = set(self.file["chips/0_0_0"])
        for at, group in self.chips.items():
            demand(set(group) == names, f"chip {at} has other steps than (0,0,0)")
        summed = {n for n in names
                  if text(self.file["chips/0_0_0"][n].attrs["dtype"]) != "f32 partial"}
        demand(set(self.file) - NOT_STEPS == summed, "the logical tensors are of other steps")
        steps = sorted(names, key=lambda n: self.file["chips/0_0_0"][n].attrs["order"])
        orders = [int(self.file["chips/0_0_0"][n].attrs["order"]) for n in steps]
        demand(orders == list(range(len(steps))), "the steps' order has gaps")
        for name in steps:
            self.step(name)
        if text(attrs["ended"]) == "complete":
            self.ids(steps, words)
        return len(steps)

    def step(self, name):
        shards = {at: group[name] for at, group in self.chips.items()}
        first = next(iter(shards.values()))
        layout, dtype = text(first.attrs["layout"]), text(first.attrs["dtype"])
        shape = tuple(first.attrs["shape"])
        whole = self.file[name] if dtype != "f32 partial" else None
        for each in [*shards.values(), *([whole] if whole is not None else [])]:
            for key in ("layout", "meaning", "op", "order"):
                demand(each.attrs[key] == first.attrs[key], f"{name}: chips differ in {key}")
            demand(tuple(each.attrs["shape"]) == shape, f"{name}: chips differ in shape")
        for each in shards.values():
            demand(text(each.attrs["dtype"]) == dtype and each.dtype == DTYPES[dtype],
                   f"{name} is {each.dtype}, it says {each.attrs['dtype']}")
        dims, partial = read_layout(layout)
        demand(bool(partial) == dtype.endswith("partial"), f"{name}: {layout} of {dtype}")
        self.layouts.add(layout)
        self.tally["shards"] += len(shards)
        data = {at: each[...] for at, each in shards.items()}
        where = {at: slices(dims, shape, dict(zip("xyz", at)), self.sizes) for at in shards}
        for at, cut in where.items():
            local = tuple(s.stop - s.start for s in cut)
            demand(data[at].shape == local, f"{name} on chip {at} is {data[at].shape}, not {local}")
        if whole is None:
            return
        full = whole[...]
        demand(full.shape == shape, f"{name} is {full.shape}, it says {shape}")
        demand(DTYPES[text(whole.attrs["dtype"])] == full.dtype.str, f"{name} is {full.dtype}")
        if partial:
            bounds = {at: float(each.attrs["bound"]) for at, each in shards.items()}
            self.partial(name, full, data, where, partial, bounds)
            return
        if dtype == "bf16":
            demand(not numpy.any(bits(full) & 0xFFFF), f"{name} says bf16")
        for at, cut in where.items():
            same = bits(full[cut]) == bits(data[at])
            demand(same.all(), f"{name} : {layout}: chip {at} does not hold its slice")
            self.tally["elements"] += data[at].size

    def partial(self, name, full, data, where, partial, bounds):
        demand(full.dtype == "<f4", f"{name} is {full.dtype}")
        groups = collections.defaultdict(list)
        for at in data:
            groups[tuple(0 if a in partial else i for a, i in zip("xyz", at))].append(at)
        for members in groups.values():
            terms = [data[at].ravel() for at in members]
            want = full[where[members[0]]].ravel()
            bound = math.fsum(bounds[at] for at in members)
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
                       f"{name}: the chips' partials {members} add up to {total!r} at {i}, "
                       f"the logical tensor has {expected!r}")
                self.tally["undecided"] += 1

    def ids(self, steps, words):
        prompt, generated = self.file["prompt"], self.file["generated"]
        demand(prompt.shape == (int(words["batch"]), int(words["prompt"])), "prompt has that shape")
        demand(generated.shape == (int(words["batch"]), int(words["gen"])), "generated")
        tokens = [n for n in steps if n.endswith(".token")]
        columns = numpy.stack([self.file[n][...] for n in tokens], 1)
        demand(numpy.array_equal(columns, generated[...]), "generated is not the tokens")


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
        names = ["prompt", "generated"]
        for group in ("", f"chips/{list(file['chips'])[-1]}/"):
            steps = [n for n in file[group or "/"] if n not in NOT_STEPS]
            names += [group + n for n in steps[::max(1, len(steps) // 10)]]
        for name in names:
            same = dumped(path, "/" + name, file[name].dtype).tobytes() == file[name][...].tobytes()
            demand(same, f"{name}: h5dump and h5py disagree")
        return len(names)


# ---- faults ----

def wide(file, test):
    """The steps whose layout passes the test, spread over the run."""
    chip = file["chips/0_0_0"]
    found = [n for n in chip if test(text(chip[n].attrs["layout"]), chip[n])]
    return found[::max(1, len(found) // 6)]


def set_layout(file, name, change):
    for holder in [file, *file["chips"].values()]:
        holder[name].attrs["layout"] = numpy.bytes_(change(text(holder[name].attrs["layout"])))


def faults(path):
    """(what, how to plant it in an open file)."""
    with h5py.File(path, "r") as file:
        sizes = dict(zip("xyz", map(int, text(file.attrs["torus"]).split("x"))))
        wide_axes = [a for a in "xyz" if sizes[a] > 1]
        varied = lambda d: d.size > 1 and len(numpy.unique(bits(d[...]))) > 1
        several = lambda axes: sum(a in wide_axes for a in axes) > 1
        ordered = lambda layout, d: varied(d) and any(
            several(axes) for _, axes in read_layout(layout)[0])
        reordered = wide(file, ordered)
        summed = wide(file, lambda layout, d: bool(set(read_layout(layout)[1]) & set(wide_axes)))
        whole = wide(file, lambda layout, d: "partialsum" not in layout and varied(d))
        floats = [n for n in whole if file[n].dtype == "<f4"]
        last = list(file["chips"])[-1]
        other = {n: next((c for c in file["chips"] if numpy.any(
            bits(file["chips"][c][n][...]) != bits(file["chips"][last][n][...]))), None)
                 for n in reordered}

    def flip(layout):
        return re.sub("_([xyz]+)", lambda m: "_" + m[1][::-1], layout)

    def swap(file, name):
        a, b = file["chips"][last][name], file["chips"][other[name]][name]
        a[...], b[...] = b[...], a[...]

    def poke(file, path, change):
        data = file[path][...]
        data.flat[data.size - 1] = change(data.flat[data.size - 1])
        file[path][...] = data

    def misplace(file):
        a, b = file["chips"]["0_0_0"].attrs, file["chips"][last].attrs
        for axis in "xyz":
            a[axis], b[axis] = b[axis], a[axis]

    for n in reordered:
        yield f"{n} in the reversed order", lambda f, n=n: set_layout(f, n, flip)
        if other[n]:
            yield f"{n} swapped between chips", lambda f, n=n: swap(f, n)
    for n in summed:
        drop = lambda layout: layout.partition(" partialsum")[0]
        yield f"{n} not partial", lambda f, n=n: set_layout(f, n, drop)
        yield f"{n} with a term off", lambda f, n=n: poke(f, f"chips/{last}/{n}", lambda v: v + 1)
    for n in whole:
        next_bit = lambda v: (bits(numpy.array([v])) ^ 1).view(v.dtype)[0]
        yield f"{n} one bit off", lambda f, n=n: poke(f, f"chips/{last}/{n}", next_bit)
        yield f"{n} one bit off as a whole", lambda f, n=n: poke(f, n, next_bit)
    for n in floats[:1]:
        yield f"{n} gone on one chip", lambda f, n=n: f["chips"][last].__delitem__(n)
        yield f"{n} gone as a whole", lambda f, n=n: f.__delitem__(n)
    yield "a chip elsewhere", misplace
    yield "other ids generated", lambda f: poke(f, "generated", lambda v: v + 1)


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
            except Wrong as why:
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
        print(f"{steps} steps in {len(checker.layouts)} layouts, {tally['shards']} shards, "
              f"{tally['elements']} elements and {tally['sums']} sums, all equal"
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
