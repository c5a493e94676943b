"""wrong_projection.py TRACE: exchanges the second and fifth of eight blocks of F of the up projection
of layer 0, in a trace that `shardproof run` wrote, as chips in another order would have gathered it.
"""
import sys

import h5py

with h5py.File(sys.argv[1], "r+") as trace:
    up = next(value for value in trace.values() if isinstance(value, h5py.Dataset) and
              value.attrs.get("meaning") == "up" and value.shape[0] > 0)
    numbers = up[...]
    block = numbers.shape[-1] // 8
    second, fifth = slice(block, 2 * block), slice(4 * block, 5 * block)
    numbers[..., second], numbers[..., fifth] = (numbers[..., fifth].copy(),
                                                 numbers[..., second].copy())
    up[...] = numbers
