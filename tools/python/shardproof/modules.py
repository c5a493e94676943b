"""Where another program shows a model's values: what a module is given or returns."""
from __future__ import annotations

import re
from typing import Any, List, Mapping, NamedTuple, Tuple


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

    @property
    def axes(self) -> List[Tuple[Any, ...]]:
        """The axes: of each its factors, a letter or a list of parts: `[("B",), ("L",), (["HQ",
        "KQ", "KQ"],)]`."""
        axes: List[Tuple[Any, ...]] = []
        for axis in re.findall(r"\(([^)]*)\)|(\w|\[[^\]]*\])", self.pattern):
            factors = re.findall(r"\[[^\]]*\]|\w", axis[0] or axis[1])
            axes.append(tuple([p.strip() for p in f[1:-1].split(",")] if f[0] == "[" else f
                              for f in factors))
        return axes

    def of(self, array: Any, extents: Mapping[str, int]) -> Any:
        """The value's part of what the module shows, with the dims `dims`: an array of anything
        that has shape, reshape and indices. `extents` are those of the array's letters, local ones
        for a shard; an axis of one letter has its own."""
        known = {**{letter: n for letter, n in extents.items()}, "1": 1}

        def size(letters: str) -> int:
            product = 1
            for letter in letters:
                product *= known[letter]
            return product

        shape: List[int] = []
        letters, at, parts = "", -1, []
        for axis, length in zip(self.axes, array.shape):
            for factor in axis:
                if isinstance(factor, list):
                    at, parts = len(shape), factor
                    shape.append(sum(size(part) for part in factor))
                    letters += "*"
                else:
                    shape.append(int(length) if len(axis) == 1 else known[factor])
                    letters += factor
        array = array.reshape(shape)
        if parts:
            begin = sum(size(part) for part in parts[:self.take])
            chosen = parts[self.take]
            array = array[(slice(None),) * at + (slice(begin, begin + size(chosen)),)]
            letters = letters.replace("*", chosen)
            shape[at:at + 1] = [known[letter] for letter in chosen]
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
