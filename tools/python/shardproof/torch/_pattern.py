"""Patterns of maps (docs/spec-model-map.md): which part of an array is a value. Needs no torch."""
from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ._mesh import dims
from ._tensors import Seen


class Part(NamedTuple):
    """Part `take` of the last dim, "K[G,1,1]Q" or "[HQ,KQ,KQ]"; `before` are the letters before
    the bracket, `parts` those in it, `after` the ones that follow. No parts: all of it."""

    before: str = ""
    parts: Tuple[str, ...] = ()
    after: str = ""
    take: int = 0

    def of(self, value: Seen, widths: Optional[List[int]], number: int) -> Seen:
        """This part of each rank's array. `widths` are those of the parts on a rank, if the
        module's class says so; then it is part `number` of them."""
        if widths is not None and len(widths) > 1:
            at = sum(widths[:number])
            return value._replace(shards={
                rank: a[..., at:at + widths[number]] for rank, a in value.shards.items()})
        if not self.parts:
            return value
        return value._replace(part=self)

    def why_not(self, value: Seen, extents: Dict[str, int]) -> str:
        """Why `cut` cannot read the part on each rank; "" if it can. Placements cut the fused dim
        into blocks one after another, which are the same share of each part only where letters
        stand before the bracket."""
        total = sum(_product(part + self.after, extents) for part in self.parts)
        last = len(value.shape) - 1
        if not self.before and any(cut.kind == "S" and cut.dim == last
                                   for cut in value.cuts or ()):
            return (f"placements cut the fused [{','.join(self.parts)}] into blocks one after "
                    "another, of which none is a share of each part: cut each part by itself")
        if self.before and value.shape[-1] % total:
            return (f"a rank has {value.shape[-1]} of the fused dim, whose groups are of {total}: "
                    "give each rank whole groups")
        return ""

    def cut(self, array: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]",
            extents: "dict[str, int]") -> "np.ndarray[tuple[int, ...], np.dtype[np.generic]]":
        """This part of an array, of which a rank may have a share: of each part the same share,
        or if letters stand before the bracket, of those."""
        sizes = [_product(part, extents) * _product(self.after, extents) for part in self.parts]
        at, total = sum(sizes[:self.take]), sum(sizes)
        width = array.shape[-1]
        lead = array.shape[:-1]
        if self.before:
            rows = array.reshape(*lead, width // total, total)[..., at:at + sizes[self.take]]
            return rows.reshape(*lead, -1)
        return array[..., at * width // total:(at + sizes[self.take]) * width // total]


def part_of(pattern: str, take: int, letters: str) -> Tuple[str, Part]:
    """A pattern without its bracket, and the part that is taken of it. Where the value's letters
    have H, KG is written as that."""
    match = re.search(r"\(([^()\[\]]*)\[([^\]]*)\]([^()\[\]]*)\)$", pattern)
    part = Part()
    if match:
        before, inside, after = match.groups()
        part = Part(before, tuple(p.strip().replace("1", "") for p in inside.split(",")), after,
                    take)
        pattern = f"{pattern[:match.start()]}({before}{part.parts[take]}{after})"
    if "H" in letters and "H" not in pattern:
        pattern = pattern.replace("KG", "H")
    return pattern, part


def _product(letters: str, extents: "dict[str, int]") -> int:
    return int(np.prod([extents[letter] for letter in letters], dtype=np.int64))


__all__ = ["Part", "dims", "part_of"]
