#!/usr/bin/python3
"""Reads a generated weights file with h5py and computes its values again, in Python alone.

    read_back.py --seed N FILE

FILE is what `shardproof weights generate` writes with seed N. Prints 'N datasets read, all equal'
and exits 0, or names the first difference and exits 1.
"""

import argparse
import math
import pathlib
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


def dumped(path, name):
    """The dataset as h5dump, which shares nothing with h5py but the HDF5 library, writes it."""
    with tempfile.TemporaryDirectory() as folder:
        raw = pathlib.Path(folder) / "raw"
        command = ["h5dump", "-d", "/" + name, "-b", "LE", "-o", str(raw), path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return numpy.fromfile(raw, "<f4")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, required=True)
    arguments.add_argument("--h5dump", action="store_true", help="compare with h5dump too")
    arguments.add_argument("file")
    options = arguments.parse_args()
    with h5py.File(options.file, "r") as file:
        text = lambda value: value.decode() if isinstance(value, bytes) else value
        assert text(file.attrs["format"]) == "shardproof-weights", "not a weights file"
        assert file.attrs["version"] == 1, "another version"
        model = dict(item.split("=") for item in text(file.attrs["model"]).split(",")[1:])
        for name, dataset in file.items():
            dims, shape = text(dataset.attrs["dims"]), dataset.shape
            assert dataset.dtype == numpy.dtype("<f4"), f"{name} is {dataset.dtype}"
            assert dataset.fletcher32, f"{name} has no checksum"
            assert len(dims) == len(shape), f"{name} is {dims} {shape}"
            part = name.split(".")[-1]
            if dims == "PJ":
                value = rope(name, shape, file["layer0.wq"].shape[2], model)
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
