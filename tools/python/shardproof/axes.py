"""Patterns of axes, as maps and texts of names have them: `BL(HQ)`, `BL([HQ,KQ,KQ])` take 0,
`BL(K[G,1,1]Q)`. All that reads one reads it here."""
from __future__ import annotations

import re
from typing import List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple

from ._library import Error

_AXIS = re.compile(r"\(([^()]*)\)|([A-Z1]|\[[^\]]*\])")
_FACTOR = re.compile(r"([A-Z1])|\[([A-Z1,]*)\]")


class Factor(NamedTuple):
    """A letter, or parts one after another."""

    letters: str
    parts: Tuple[str, ...] = ()


class Axis(NamedTuple):
    factors: Tuple[Factor, ...]

    @property
    def letters(self) -> str:
        """Those that stand alone, in order: "HQ" of (HQ)."""
        return "".join(factor.letters for factor in self.factors)


class Pattern(NamedTuple):
    text: str
    axes: Tuple[Axis, ...]
    take: Optional[int]


def _refuse(message: str) -> NoReturn:
    raise Error("import_names", message)


def _factors(text: str, inside: str) -> Tuple[Factor, ...]:
    out: List[Factor] = []
    at = 0
    while at < len(inside):
        match = _FACTOR.match(inside, at)
        if match is None:
            _refuse(f"'{text}' is not a valid pattern of axes; legal: BL(HQ), "
                    "BL([HQ,KQ,KQ]) take 0")
        if match.group(1):
            out.append(Factor(match.group(1)))
        else:
            out.append(Factor("", tuple(match.group(2).split(","))))
        at = match.end()
    return tuple(out)


def parse_axes(text: str, take: Optional[int] = None) -> Pattern:
    """The pattern that a text says; `take` is which of its parts is the value."""
    axes: List[Axis] = []
    at = 0
    while at < len(text):
        match = _AXIS.match(text, at)
        if match is None or not (match.group(1) or match.group(2)):
            _refuse(f"'{text}' is not a valid pattern of axes; legal: BLE, BL(HQ)")
        axes.append(Axis(_factors(text, match.group(1) or match.group(2))))
        at = match.end()
    fused = [len(f.parts) for a in axes for f in a.factors if f.parts]
    if len(fused) > 1 or bool(fused) != (take is not None) or (
            take is not None and not 0 <= take < fused[0]):
        _refuse(f"'{text}' has {fused[0] if fused else 'no'} parts, of which 'take' must say one, "
                f"from 0; it says {take}")
    return Pattern(text, tuple(axes), take)


def span_of(parts: Sequence[str], take: int, extents: Mapping[str, int]) -> Tuple[int, int, int]:
    """Of parts one after another: how much stands before the one that is taken, how much that is,
    and how much all are."""
    sizes = [size_of(part, extents) for part in parts]
    return sum(sizes[:take]), sizes[take], sum(sizes)


def size_of(letters: str, extents: Mapping[str, int]) -> int:
    """The product of the extents of letters. Raises Error import_names for one that is unknown."""
    size = 1
    for letter in letters:
        if letter == "G" and "G" not in extents and "H" in extents and extents.get("K"):
            size *= extents["H"] // extents["K"]
        elif letter != "1":
            if letter not in extents:
                _refuse(f"the model has no dim {letter}; legal: {', '.join(sorted(extents))}")
            size *= extents[letter]
    return size
