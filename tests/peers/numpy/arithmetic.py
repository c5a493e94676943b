"""What sums and operations are: f32, f64, or exact sums that are rounded once.

`dtype` is what values are kept in, `wide` what formulas are evaluated in before that rounding. A
sum that is not complete is added to with `add`, and becomes a value with `finish`.
"""
import math

import numpy as np


class Floats:
    """Everything in one dtype, sums in whatever order NumPy and the chips add them."""

    def __init__(self, dtype):
        self.dtype = self.wide = dtype

    def product(self, spec, a, b):
        inputs, out = spec.split("->")
        left, right = inputs.split(",")
        over = [letter for letter in left if letter in right and letter not in out]
        shared = [letter for letter in left if letter in right and letter in out]
        if shared:  # a batch of products: np.matmul has no letters
            return np.einsum(spec, a, b)
        made = np.tensordot(a, b, ([left.index(n) for n in over], [right.index(n) for n in over]))
        order = [n for n in left + right if n not in over]
        return made.transpose([order.index(n) for n in out])

    def add(self, parts):
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def partial_sum(self, value):
        """A value as a partial sum."""
        return value

    def finish(self, total):
        return np.asarray(total, self.dtype)


class Exact:
    """A sum is the list of its terms, f64 products of two f32, until math.fsum adds them all."""

    dtype, wide = np.float32, np.float64

    def product(self, spec, a, b):
        inputs, out = spec.split("->")
        left, right = inputs.split(",")
        over = "".join(letter for letter in left if letter in right and letter not in out)
        terms = np.einsum(spec + over, a.astype(np.float64), b.astype(np.float64))
        return terms.reshape(terms.shape[:len(out)] + (-1,))

    def add(self, parts):
        return np.concatenate(parts, -1)

    def partial_sum(self, value):
        return value.astype(np.float64)[..., None]

    def finish(self, total):
        rows = np.ascontiguousarray(total).reshape(-1, total.shape[-1]).tolist()
        sums = np.array([math.fsum(row) + 0.0 for row in rows], np.float64)
        return sums.astype(np.float32).reshape(total.shape[:-1])


ARITHMETIC = {"f32": Floats(np.float32), "f64": Floats(np.float64), "exact": Exact()}


def to_bf16(x):
    """Rounded to nearest even to 8 digits."""
    fraction, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.rint(fraction * 256), exponent - 8).astype(x.dtype)
