"""An axis of a rank's array: which letters it is, how much of each the rank has, which part of a
fused one is the value."""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from .._arrays import Array
from ..axes import Axis, size_of
from .mesh import Mesh

Extents = Mapping[str, int]


class LocalAxis(NamedTuple):
    letters: Tuple[Tuple[str, int], ...]   # with their local extents, major to minor
    axes: Dict[str, str]                   # the torus's axes that cut a letter
    parts: Tuple[int, int, int, int]       # before the parts, all parts, before ours, ours
    padded: bool                           # longer than the model's

    def taken(self, array: Array) -> Array:
        """The value, of an array whose last axis is this one."""
        before, span, at, width = self.parts
        shape = array.shape[:-1]
        if span:
            array = array.reshape(shape + (before, span, -1))[..., at:at + width, :]
        return array.reshape(shape + tuple(n for _, n in self.letters))


def _product(sizes: List[int]) -> int:
    out = 1
    for n in sizes:
        out *= n
    return out


def _sizes(letters: str, axes: str, mesh: Mesh, extents: Extents
           ) -> Optional[Tuple[str, List[int]]]:
    """The axes that cut the first of these letters, and the local extents. Of more ranks than kv
    heads, the first axes alone cut them."""
    if letters == "1":
        return "", []
    whole = [size_of(letter, extents) for letter in letters]
    ranks = mesh.size(axes)
    if whole[0] % ranks == 0:
        return axes, [whole[0] // ranks] + whole[1:]
    if letters[0] == "K" and ranks % whole[0] == 0:
        for i in range(len(axes)):
            if mesh.size(axes[:i]) == whole[0]:
                return axes[:i], [1] + whole[1:]
    return None


def width_of(axis: Axis, axes: str, mesh: Mesh, extents: Extents) -> Optional[int]:
    """How many elements a rank has of an axis whose first letter these axes cut; None if they do
    not divide it."""
    width = 1
    for i, factor in enumerate(axis.factors):
        told = [_sizes(p, axes if i == 0 else "", mesh, extents)
                for p in factor.parts or (factor.letters,)]
        if any(t is None for t in told):
            return None
        width *= sum(_product(t[1]) for t in told if t is not None)
    return width


def local_axis(axis: Axis, take: Optional[int], axes: str, held: int, mesh: Mesh,
               extents: Extents) -> Optional[LocalAxis]:
    """What an axis of `held` elements is if these axes cut it; None if it does not fit. A
    vocabulary may be longer than the model's: its end is padding."""
    width = width_of(axis, axes, mesh, extents)
    alone = axis.factors[0].letters == "V" and len(axis.factors) == 1
    longer = alone and held * mesh.size(axes) > size_of("V", extents) and width != held
    if width != held and not longer:
        return None
    letters: List[Tuple[str, int]] = []
    cut: Dict[str, str] = {}
    before, parts = 1, (1, 0, 0, 0)
    for i, factor in enumerate(axis.factors):
        told = [_sizes(p, axes if i == 0 else "", mesh, extents) or (axes, [held])
                for p in factor.parts or (factor.letters,)]
        index = (take or 0) if factor.parts else 0
        wanted = (factor.parts or (factor.letters,))[index]
        sizes = [held] if longer else told[index][1]
        if factor.parts:
            widths = [_product(t[1]) for t in told]
            parts = (before, sum(widths), sum(widths[:index]), widths[index])
        else:
            before *= _product(sizes)
        if wanted != "1":
            letters += list(zip(wanted, sizes))
            if told[index][0]:
                cut[wanted[0]] = axes if longer else told[index][0]
    return LocalAxis(tuple(_joined(letters, cut)), cut, parts, longer)


def _joined(letters: List[Tuple[str, int]], cut: Dict[str, str]) -> List[Tuple[str, int]]:
    """K and its groups G side by side are the heads H."""
    out: List[Tuple[str, int]] = []
    for letter, size in letters:
        if letter == "G" and out and out[-1][0] == "K":
            out[-1] = ("H", out[-1][1] * size)
            if "K" in cut:
                cut["H"] = cut.pop("K")
        else:
            out.append((letter, size))
    return out
