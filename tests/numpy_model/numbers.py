"""Numbers of docs/spec.md section 2: sums rounded once, and what is stored."""
import math

import numpy as np

F32, F64 = np.float32, np.float64


def S(rows, columns):
    """(float) RN64 of every exact sum: rows [..., n] and columns [n, m] give [..., m]."""
    flat, wide = rows.reshape(-1, rows.shape[-1]).astype(F64), columns.T.astype(F64)
    sums = [[math.fsum(row * column) + 0.0 for column in wide] for row in flat]
    return np.array(sums, F64).astype(F32).reshape(rows.shape[:-1] + columns.shape[1:])


def scaled(sums, scale):
    """What int8 makes of S(x, codes), by output channel; with f32 and bf16 there is no scale."""
    return sums if scale is None else (sums.astype(F64) * scale.astype(F64)).astype(F32)


def biased(x, b):
    return x if b is None else x + b


def as_it_is(x):
    return x


def to_bf16(w):
    bits = np.ascontiguousarray(w, F32).view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype("<u4").view(F32)
