"""Sums of f32 products and of f32 numbers, each operation in f32, in several orders."""
import numpy as np

F = np.float32


def _pairs(a):
    """The sum over the first dim, neighbours first."""
    while len(a) > 1:
        odd = a[-1:] if len(a) % 2 else a[:0]
        a = np.concatenate([a[0:len(a) - 1:2] + a[1::2], odd])
    return a[0]


def in_order(a):
    """The sum over the first dim, one after the other."""
    total = a[0]
    for term in a[1:]:
        total = total + term
    return total


def _terms(a, w):
    """Products of a [...mk] and w [...kp], k first."""
    return np.moveaxis(a[..., :, :, None] * w[..., None, :, :], -2, 0)


def _blocks(a, w, width):
    parts = [a[..., at:at + width] @ w[..., at:at + width, :]
             for at in range(0, a.shape[-1], width)]
    return in_order(parts)


def _lanes(a, w, count):
    """As a processor with so many lanes adds: lane after lane, then the lanes."""
    return in_order([in_order(_terms(a[..., at::count], w[..., at::count, :]))
                   for at in range(min(count, a.shape[-1]))])


PRODUCTS = {
    "library": lambda a, w: a @ w,
    "reversed": lambda a, w: np.ascontiguousarray(a[..., ::-1]) @ np.ascontiguousarray(
        w[..., ::-1, :]),
    "blocks": lambda a, w: _blocks(a, w, 5),
    "pairs": lambda a, w: _pairs(_terms(a, w)),
    "chain": lambda a, w: in_order(_terms(a, w)),
    "lanes": lambda a, w: _lanes(a, w, 4),
}
SUMS = {
    "library": lambda a: a.sum(-1, dtype=F),
    "reversed": lambda a: in_order(np.moveaxis(a[..., ::-1], -1, 0)),
    "blocks": lambda a: in_order([a[..., at:at + 5].sum(-1, dtype=F)
                                for at in range(0, a.shape[-1], 5)]),
    "pairs": lambda a: _pairs(np.moveaxis(a, -1, 0)),
    "chain": lambda a: in_order(np.moveaxis(a, -1, 0)),
    "lanes": lambda a: in_order([in_order(np.moveaxis(a[..., at::4], -1, 0))
                               for at in range(min(4, a.shape[-1]))]),
}


def product(order, a, w):
    """[...mk]·[...kp] -> [...mp]."""
    return PRODUCTS[order](a, w)


def total(order, a):
    """[...k] -> [...]."""
    return SUMS[order](a)
