"""Formats that values are stored in, and the roundings to them. Arrays are f32 throughout: a number
of a narrower format is an f32, too."""
import numpy as np


def to_f32(a):
    return a


def to_bf16(a):
    """To nearest, ties to even."""
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    more = ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    return ((bits + more) & np.uint32(0xFFFF0000)).view(np.float32)


def to_f16(a):
    """To nearest, ties to even; subnormals are kept, beyond the largest is infinity."""
    with np.errstate(over="ignore"):
        return a.astype(np.float16).astype(np.float32)


ROUND = {"f32": to_f32, "bf16": to_bf16, "f16": to_f16}


class Roundings:
    """Where a run rounds to its format, beside what it stores: the places of places.py."""

    def __init__(self, form, places=()):
        self.form, self.places = form, frozenset(places)
        self.st = ROUND[form]

    def __call__(self, place, a):
        return self.st(a) if place in self.places else a


def stored(a, form, as_words):
    """An array of a trace, and its attributes: bf16 as 16-bit words, or as f32."""
    if form == "f16":
        return a.astype(np.float16), {}
    if form == "bf16" and as_words:
        return (a.view(np.uint32) >> np.uint32(16)).astype(np.uint16), {"encoding": "bf16"}
    return a, {}
