#!/usr/bin/python3
"""Reads a generated weights file with h5py and computes its values again, in Python alone.

    read_back.py [--h5dump] --seed N FILE
    read_back.py [--h5dump] [--faults] --int8 INT8_FILE FILE

FILE is what `shardproof weights generate` writes with seed N; INT8_FILE what `shardproof weights
quantize FILE INT8_FILE` makes of it: its codes and scales are computed again from FILE by
docs/spec.md section 2.4, and all else must be FILE's bits. --faults plants faults in copies of
INT8_FILE and demands that each is found. Prints 'N datasets read, all equal' and exits 0, or names
the first difference and exits 1.
"""

import argparse
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy

MASK = 0xFFFFFFFF
SAMPLES = 2000  # elements compared per tensor, spread over it


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & MASK, (a >> 32) ^ c3 ^ k1, a & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def stream_hash(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def word(seed, stream, index):
    hashed = stream_hash(stream)
    counter = (index // 4 & MASK, index // 4 >> 32, hashed & MASK, hashed >> 32)
    return philox(counter, (seed & MASK, seed >> 32))[index % 4]


def ranged(bits, low, high):
    return low + (bits * (high - low + 1) >> 32)


def matrix(seed, name, dims, shape):
    """The element at a flat index: u * m * 2^-s."""
    contracted = {"V": 0, "E": 1, "F": 1, "H": 2}[dims[0]]
    fan_in = math.prod(shape[:contracted])
    channels = math.prod(shape[1:]) if dims[0] == "E" else shape[-1]
    numerator, denominator = {"wo": (1, 4), "w_out": (1, 2)}.get(name.split(".")[-1], (1, 1))
    shift = 0  # the one for which R lies in [2^16, 2^17)
    while 3 * numerator * 4**shift // (2380 * denominator * fan_in) < 2**32:
        shift += 1
    limit = math.isqrt(3 * numerator * 4**shift // (2380 * denominator * fan_in))

    def value(index):
        multiplier = ranged(word(seed, name + "/channel", index % channels), 8, 80)
        return ranged(word(seed, name, index), -limit, limit) * multiplier * 2.0**-shift

    return value


def gain(seed, name):
    def value(index):
        bits = word(seed, name, index)
        size = ranged(bits, 2**16, 3 * 2**16) * 2.0**-17
        return -size if name == "final_norm" and bits & 1 else size

    return value


def bias(seed, name):
    def value(index):
        bits = word(seed, name, index)
        size = ranged(bits, 2**21, 2**23) * 2.0**-25
        return -size if bits & 1 else size

    return value


def rope(name, shape, head, model):
    theta, rotated = float(model.get("theta", 10000)), float(model.get("rotary", 1)) * head
    wave = math.cos if name == "rope_cos" else math.sin

    def value(index):
        position, pair = divmod(index, shape[1])
        return wave(position * theta ** (-2.0 * pair / rotated))

    return value


def slopes_of(heads):
    """ALiBi's, by the recursion of its paper."""
    power = 1 << heads.bit_length() - 1
    own = [2.0 ** (-8 * (i + 1) / power) for i in range(power)]
    return own if power == heads else own + slopes_of(2 * power)[::2][:heads - power]


def dumped(path, name, dtype="<f4"):
    """The dataset as h5dump, which shares nothing with h5py but the HDF5 library, writes it."""
    with tempfile.TemporaryDirectory() as folder:
        raw = pathlib.Path(folder) / "raw"
        command = ["h5dump", "-d", "/" + name, "-b", "LE", "-o", str(raw), path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return numpy.fromfile(raw, dtype)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


# ---- int8 ----

class Wrong(Exception):
    pass


def demand(held, reason):
    if not held:
        raise Wrong(reason)


CONTRACTED = {"wq": 1, "wk": 1, "wv": 1, "wo": 2, "w_gate": 1, "w_up": 1, "w_out": 1}


def scales_of(names):
    """The scales of a layer of these weights, and the matrices of each."""
    scales = {part + "_scale": [part] for part in CONTRACTED if part in names}
    if "norm2" not in names:  # parallel: one contraction, one scale
        del scales["wo_scale"], scales["w_out_scale"]
        scales["block_out_scale"] = ["wo", "w_out"]
    return scales


def quantized(file):
    """name: (dims, values) of every dataset that the int8 file of an f32 file must hold."""
    made = {name: (text(data.attrs["dims"]), data[...]) for name, data in file.items()}
    for layer in sorted({name.split(".")[0] for name in file if "." in name}):
        parts = {name.split(".")[1] for name in file if name.startswith(layer + ".")}
        for scale, matrices in scales_of(parts).items():
            # [contracted, channels] of each
            wide = {part: (dims, w, w.astype("f8").reshape(
                        math.prod(w.shape[:CONTRACTED[part]]), -1))
                    for part in matrices for dims, w in [made[f"{layer}.{part}"]]}
            absmax = numpy.max([abs(flat).max(0) for _, _, flat in wide.values()], 0)
            values = (absmax / 127.0).astype("<f4")
            values[values == 0] = 1
            for part, (dims, w, flat) in wide.items():
                codes = numpy.clip(numpy.rint(flat / values.astype("f8")), -127, 127)
                made[f"{layer}.{part}"] = dims, codes.astype("i1").reshape(w.shape)
                left = CONTRACTED[part]
                made[f"{layer}.{scale}"] = dims[left:], values.reshape(w.shape[left:])
    return made


def check_int8(int8_path, path, h5dump):
    with h5py.File(int8_path, "r") as int8, h5py.File(path, "r") as file:
        demand(text(int8.attrs["format"]) == "shardproof-weights", "not a weights file")
        demand(int8.attrs["version"] == 2, f"version {int8.attrs['version']}")
        demand(text(int8.attrs["model"]) == text(file.attrs["model"]), "another model")
        expected = quantized(file)
        demand(set(int8) == set(expected), f"other names: {set(int8) ^ set(expected)}")
        for name, (dims, values) in expected.items():
            found = int8[name]
            letters = text(found.attrs["dims"])
            demand(letters == dims, f"{name} is {letters}, not {dims}")
            demand(found.dtype == values.dtype, f"{name} is {found.dtype}, not {values.dtype}")
            demand(found.shape == values.shape, f"{name} is {found.shape}, not {values.shape}")
            demand(found.fletcher32, f"{name} has no checksum")
            bits = f"<u{values.dtype.itemsize}"
            is_equal = found[...].view(bits) == numpy.ascontiguousarray(values).view(bits)
            for at in numpy.argwhere(~is_equal)[:1]:
                at = tuple(at)
                raise Wrong(f"{name}{list(map(int, at))} is {found[at]!r}, expected {values[at]!r}")
            if h5dump:
                demand(dumped(int8_path, name, values.dtype).tobytes() == found[...].tobytes(),
                       f"{name}: h5dump and h5py disagree")
        codes = sum(values.size for _, values in expected.values() if values.dtype == "i1")
        return len(expected), codes


def faults(path):
    """(what, how to plant it in an open file): each wrong in one place only."""
    toward_0 = lambda code: code - 1 if code > 0 else code + 1

    def poke(name, change):
        def plant(file):
            data = file[name][...]
            data.flat[data.size // 2] = change(data.flat[data.size // 2])
            file[name][...] = data
        return plant

    def replace(file, name, data, **more):
        dims = file[name].attrs["dims"]
        del file[name]
        file.create_dataset(name, data=data, fletcher32=True, **more).attrs["dims"] = dims

    with h5py.File(path, "r") as file:
        for name, data in file.items():
            if data.dtype == "i1":
                yield f"a code of {name} off by one", poke(name, toward_0)
            else:
                yield f"{name} off by a bit", poke(
                    name, lambda v: numpy.nextafter(v, numpy.float32(9)))
            yield f"{name} missing", lambda f, n=name: f.pop(n)
        codes = [name for name, data in file.items() if data.dtype == "i1"]
    for name in codes:
        yield f"{name} as f32", lambda f, n=name: replace(f, n, f[n][...].astype("<f4"))
        yield f"{name} as unsigned", lambda f, n=name: replace(f, n, f[n][...].view("u1"))
    yield "version 1", lambda f: f.attrs.modify("version", 1)


def plant_faults(int8_path, path):
    caught = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = str(pathlib.Path(folder) / "copy.h5")
        for what, plant in faults(int8_path):
            shutil.copyfile(int8_path, copy)
            with h5py.File(copy, "r+") as file:
                plant(file)
            try:
                check_int8(copy, path, False)
            except Wrong as why:
                print(f"caught: {what}: {why}")
                caught += 1
            else:
                raise Wrong(f"not caught: {what}")
    return caught


def main_int8(options):
    try:
        datasets, codes = check_int8(options.int8, options.file, options.h5dump)
        print(f"{datasets} datasets read, {codes} codes, all equal")
        if options.faults:
            print(f"{plant_faults(options.int8, options.file)} faults planted, all caught")
    except Wrong as why:
        print(f"{options.int8}: {why}")
        return 1
    return 0


# ---- generated ----

def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, help="of FILE")
    arguments.add_argument("--int8", metavar="INT8_FILE", help="what is made of FILE")
    arguments.add_argument("--h5dump", action="store_true", help="compare with h5dump too")
    arguments.add_argument("--faults", action="store_true", help="plant faults and find them")
    arguments.add_argument("file")
    options = arguments.parse_args()
    if options.int8:
        return main_int8(options)
    if options.seed is None:
        arguments.error("--seed or --int8 is needed")
    with h5py.File(options.file, "r") as file:
        assert text(file.attrs["format"]) == "shardproof-weights", "not a weights file"
        assert file.attrs["version"] == 1, "another version"
        preset, *items = text(file.attrs["model"]).split(",")
        model = {"rotary": 0.25 if preset == "gptj" else 1}
        model |= dict(item.split("=") for item in items)
        for name, dataset in file.items():
            dims, shape = text(dataset.attrs["dims"]), dataset.shape
            assert dataset.dtype == numpy.dtype("<f4"), f"{name} is {dataset.dtype}"
            assert dataset.fletcher32, f"{name} has no checksum"
            assert len(dims) == len(shape), f"{name} is {dims} {shape}"
            part = name.split(".")[-1]
            if dims == "PJ":
                value = rope(name, shape, file["layer0.wq"].shape[2], model)
            elif part == "alibi_slopes":
                value = slopes_of(shape[0]).__getitem__
            elif part in ("norm", "norm2", "final_norm"):
                value = gain(options.seed, name)
            elif part.startswith("b") or part.endswith("_bias"):
                value = bias(options.seed, name)
            else:
                value = matrix(options.seed, name, dims, shape)
            found = dataset[...].ravel()
            if options.h5dump and dumped(options.file, name).tobytes() != found.tobytes():
                print(f"{name}: h5dump and h5py disagree")
                return 1
            step = max(1, found.size // SAMPLES) | 1
            for index in [*range(0, found.size, step), found.size - 1]:
                expected = value(index)
                if found[index] != numpy.float32(expected):
                    print(f"{name}[{index}] is {found[index]!r}, expected {expected!r}")
                    return 1
            print(f"{name} {dims} {shape}: {found[0].item().hex()} ... {found[-1].item().hex()}")
        print(f"{len(file)} datasets read, all equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
