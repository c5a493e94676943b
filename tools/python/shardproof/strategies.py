"""Hypothesis strategies of cases, tori and layouts (`pip install shardproof[hypothesis]`)."""
from __future__ import annotations

import functools
from typing import List, Optional

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from .cases import draw as draw_case
from .cases import simpler
from .layouts import Layout

# A drawn case takes up to so many steps, each of them a number: one that is small enough counts a
# simpler case, others are no step. Of these nearly all numbers are when a case is drawn, and few
# when hypothesis has made them smaller. All are drawn whatever the case, so that shrinking one does
# not change what the others mean.
_STEPS = 64
_NUMBERS = st.lists(st.integers(0, 2**16 - 1), min_size=_STEPS, max_size=_STEPS)
_MOST_SIMPLER = 64


# While a case shrinks the same lines come again.
_simpler = functools.lru_cache(maxsize=1024)(simpler)


@st.composite
def _cases(draw: DrawFn) -> str:
    line = draw_case(draw(st.integers(0, 2**32 - 1)))
    for step in draw(_NUMBERS):
        if step < _MOST_SIMPLER:
            simple = _simpler(line)
            if step < len(simple):
                line = simple[step]
    return line


def cases() -> SearchStrategy[str]:
    """Case lines as `shardproof verify --cases` draws them."""
    return _cases()


def tori(most: int = 64) -> SearchStrategy[str]:
    """Tori of at most so many chips, of unequal sizes, 3, odd ones and 1 among them."""
    size = st.sampled_from([1, 2, 3, 4, 5, 6, 8])

    def fits(sizes: "tuple[int, int, int]") -> bool:
        return sizes[0] * sizes[1] * sizes[2] <= most

    return st.tuples(size, size, size).filter(fits).map(lambda s: f"{s[0]}x{s[1]}x{s[2]}")


@st.composite
def _layouts(draw: DrawFn, letters: str, partial: bool) -> Layout:
    axes: List[str] = draw(st.permutations("xyz"))
    used = {letter: "" for letter in letters}
    summed = ""
    for axis in axes:
        place = draw(st.integers(0, len(letters) + (1 if partial else 0)))
        if 0 < place <= len(letters):
            used[letters[place - 1]] += axis
        elif place > len(letters):
            summed += axis
    text = "".join(letter + (f"_{a}" if a else "") for letter, a in used.items())
    return Layout(text + (f" partialsum-{''.join(sorted(summed))}" if summed else ""))


def layouts(letters: Optional[str] = None, partial: bool = True) -> SearchStrategy[Layout]:
    """Layouts of dims with these letters, or some of three; with partial sums if `partial`."""
    if letters is not None:
        return _layouts(letters, partial)
    return st.sampled_from(["BLE", "BLF", "BLHQ", "EF", "BMKQ", "B"]).flatmap(
        lambda some: _layouts(some, partial))


__all__ = ["cases", "layouts", "tori"]
