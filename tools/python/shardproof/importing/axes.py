"""Patterns of axes, as maps have them: `BL(HQ)`, `BL([HQ,KQ,KQ])` take 0, `BL(K[G,1,1]Q)`."""
from __future__ import annotations

import re
from typing import List, Mapping, NamedTuple, Optional, Tuple

from .limits import refuse

_AXIS = re.compile(r"\(([^()]*)\)|([A-Z1]|\[[^\]]*\])")
_FACTOR = re.compile(r"([A-Z1])|\[([A-Z1,]*)\]")


class Factor(NamedTuple):
    """A letter, or parts one after another."""

    letters: str
    parts: Tuple[str, ...] = ()


class Axis(NamedTuple):
    factors: Tuple[Factor, ...]


class Pattern(NamedTuple):
    text: str
    axes: Tuple[Axis, ...]
    take: Optional[int]


def _factors(text: str, inside: str) -> Tuple[Factor, ...]:
    out: List[Factor] = []
    at = 0
    while at < len(inside):
        match = _FACTOR.match(inside, at)
        if match is None:
            refuse("import_names", f"'{text}' is no pattern of axes; legal: BL(HQ), "
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
            refuse("import_names", f"'{text}' is no pattern of axes; legal: BLE, BL(HQ)")
        axes.append(Axis(_factors(text, match.group(1) or match.group(2))))
        at = match.end()
    fused = [len(f.parts) for a in axes for f in a.factors if f.parts]
    if len(fused) > 1 or bool(fused) != (take is not None) or (
            take is not None and not 0 <= take < fused[0]):
        refuse("import_names", f"'{text}' has {fused[0] if fused else 'no'} parts, of which 'take' "
                               f"must say one, from 0; it says {take}")
    return Pattern(text, tuple(axes), take)


def size_of(letters: str, extents: Mapping[str, int]) -> int:
    """The product of the extents of letters. Raises Error import_names for one that is unknown."""
    size = 1
    for letter in letters:
        if letter == "G" and "G" not in extents and "H" in extents and extents.get("K"):
            size *= extents["H"] // extents["K"]
        elif letter != "1":
            if letter not in extents:
                refuse("import_names", f"the model has no dim {letter}; legal: "
                                       f"{', '.join(sorted(extents))}")
            size *= extents[letter]
    return size
