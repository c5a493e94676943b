"""Where another program shows a model's values: what a module is given or returns."""
from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple

from .axes import Pattern, parse_axes, size_of, span_of


class Module(NamedTuple):
    """A named value, and the module that shows it: `layer0.q` is what
    `model.layers.0.self_attn.q_proj` returns as [B, L, H·Q], pattern `BL(HQ)`."""

    value: str
    name: str
    #: Its axes: letters of one axis in parentheses, parts one after another in brackets, of which
    #: `take` is this value: `BL([HQ,KQ,KQ])`.
    pattern: str
    take: int
    #: Whether it is what the module is given, otherwise what it returns.
    input: bool
    #: The value's own letters, `BLHQ`.
    dims: str

    def read(self) -> Pattern:
        """The pattern's axes, and which part of a fused one is the value."""
        return parse_axes(self.pattern, self.take if "[" in self.pattern else None)

    def of(self, array: Any, extents: Mapping[str, int]) -> Any:
        """The value's part of what the module shows, with the dims `dims`: an array of anything
        that has shape, reshape and indices. `extents` are those of the array's letters, local ones
        for a shard; an axis of one letter has its own."""
        pattern = self.read()
        shape: List[int] = []
        letters, fused = "", None
        for axis, length in zip(pattern.axes, array.shape):
            for factor in axis.factors:
                if factor.parts:
                    fused = len(shape), factor.parts
                    shape.append(span_of(factor.parts, self.take, extents)[2])
                    letters += "*"
                else:
                    alone = len(axis.factors) == 1
                    shape.append(int(length) if alone else size_of(factor.letters, extents))
                    letters += factor.letters
        array = array.reshape(shape)
        if fused is not None:
            at, parts = fused
            begin, size, _ = span_of(parts, self.take, extents)
            array = array[(slice(None),) * at + (slice(begin, begin + size),)]
            letters = letters.replace("*", parts[self.take])
            shape[at:at + 1] = [size_of(letter, extents) for letter in parts[self.take]]
        shape = [n for n, letter in zip(shape, letters) if letter != "1"]
        letters = letters.replace("1", "")
        array = array.reshape(shape)
        fine = self.dims if "G" not in letters else self.dims.replace("H", "KG")
        order = [letters.index(letter) for letter in fine]
        if order != list(range(len(order))):
            array = array.permute(*order) if hasattr(array, "permute") else array.transpose(order)
        extent = dict(zip(fine, (shape[i] for i in order)))
        if "H" not in extent and "H" in self.dims:
            extent["H"] = extent["K"] * extent["G"]
        return array.reshape([extent[letter] for letter in self.dims])
