"""The token of a row's logits, docs/spec.md section 2.10."""
import math
from fractions import Fraction

import numpy as np

from numpy_model.numbers import F32, F64

LN2 = 0.6931471805599453


def word(seed, name, index):
    """Word 0 of words(seed, name, index): Philox4x32-10."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    c = [index % 2**32, index >> 32, h % 2**32, h >> 32]
    k = [seed % 2**32, seed >> 32]
    for _ in range(10):
        p, r = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [r >> 32 ^ c[1] ^ k[0], r % 2**32, p >> 32 ^ c[3] ^ k[1], p % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c[0]


def sample(logits, case, row, i):
    """The token of a row's logits, docs/spec.md section 2.10; `case` are the words of its line."""
    if case.get("sample", "greedy") == "greedy":
        return int(logits.argmax())
    unit = LN2 if "softmax=base2" in case["model"] else 1.0
    t = (logits.astype(F64) * unit / F64(case.get("temperature", 1))).astype(F32)
    e = np.array([math.exp(float(d)) for d in t - t.max()], F64).astype(F32)
    least = np.sort(e)[::-1][int(case.get("top_k", len(e))) - 1]
    e = np.where(e >= least, e, F32(0))
    exact = [Fraction(float(v)) for v in e]
    wanted = Fraction(float(case.get("top_p", 1))) * sum(exact)
    for theta in sorted(set(exact), reverse=True):
        if sum(v for v in exact if v >= theta) >= wanted:
            break
    exact = [v if v >= theta else Fraction(0) for v in exact]
    r, so_far = word(int(case["seed"]), "sample", row * 2**32 + i) >> 8, Fraction(0)
    for token, v in enumerate(exact):
        so_far += v
        if so_far * 2**24 > r * sum(exact):
            return token
    return None
