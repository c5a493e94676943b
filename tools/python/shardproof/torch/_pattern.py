"""Patterns of maps (docs/spec-model-map.md): which part of an array is a value. Needs no torch."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ..axes import size_of, span_of
from ..modules import Module
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
        total = span_of(self.parts, self.take, extents)[2] * size_of(self.after, extents)
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
        after = size_of(self.after, extents)
        at, size, total = (n * after for n in span_of(self.parts, self.take, extents))
        width = array.shape[-1]
        lead = array.shape[:-1]
        if self.before:
            rows = array.reshape(*lead, width // total, total)[..., at:at + size]
            return rows.reshape(*lead, -1)
        return array[..., at * width // total:(at + size) * width // total]


def part_of(module: Module) -> Tuple[str, Part]:
    """The pattern of what a module shows, without its bracket, and the part that is taken of it.
    Where the value's letters have H, KG is written as that."""
    part = Part()
    pattern = ""
    for axis in module.read().axes:
        inside = ["".join(f.parts[module.take].replace("1", "") if f.parts else f.letters)
                  for f in axis.factors]
        at = next((i for i, factor in enumerate(axis.factors) if factor.parts), None)
        if at is not None:
            part = Part("".join(inside[:at]), axis.factors[at].parts, "".join(inside[at + 1:]),
                        module.take)
        pattern += f"({''.join(inside)})" if len(axis.factors) > 1 or at is not None else inside[0]
    if "H" in module.dims and "H" not in pattern:
        pattern = pattern.replace("KG", "H")
    return pattern, part
