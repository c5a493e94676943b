"""Hypothesis strategies of cases, runs, tori and layouts (`pip install shardproof[hypothesis]`)."""
from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence, Tuple, Union

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ._arrays import Array
from ._library import Error
from .cases import draw as draw_case
from .cases import simpler
from .layouts import Layout, torus_sizes
from .reference import Reference
from .trace import Trace, Verdict, check

# A drawn case takes up to so many steps, each of them a number: one that is small enough counts a
# simpler case, others are no step. Of these nearly all numbers are when a case is drawn, and few
# when hypothesis has made them smaller. All are drawn whatever the case, so that shrinking one does
# not change what the others mean.
_STEPS = 64
_NUMBERS = st.lists(st.integers(0, 2**16 - 1), min_size=_STEPS, max_size=_STEPS)
_MOST_SIMPLER = 64


LayoutLike = Union[Layout, str, None]


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
def _layouts(draw: DrawFn, letters: str, partial: bool, torus: Optional[str],
             shape: Optional[Sequence[int]]) -> Layout:
    axes: List[str] = draw(st.permutations("xyz"))
    sizes = dict(zip("xyz", torus_sizes(torus))) if torus else dict.fromkeys("xyz", 1)
    left = dict(zip(letters, shape if shape is not None else [0] * len(letters)))  # local extents
    used = {letter: "" for letter in letters}
    summed = ""
    for axis in axes:
        places = ["", *(letter for letter in letters if left[letter] % sizes[axis] == 0),
                  *(["partialsum"] if partial else [])]
        place = draw(st.sampled_from(places))
        if place in used:
            used[place] += axis
            left[place] //= sizes[axis]
        elif place:
            summed += axis
    text = "".join(letter + (f"_{a}" if a else "") for letter, a in used.items())
    return Layout(text + (f" partialsum-{''.join(sorted(summed))}" if summed else ""))


def layouts(letters: Optional[str] = None, partial: bool = True, *, torus: Optional[str] = None,
            shape: Optional[Sequence[int]] = None) -> SearchStrategy[Layout]:
    """Layouts of dims with these letters, or some of three; with partial sums if `partial`. With
    `torus` and `shape` only those whose axes divide the dims."""
    if letters is not None:
        return _layouts(letters, partial, torus, shape)
    if shape is not None:
        raise Error("layout_rank", f"a shape of {len(shape)} dims without the letters of the dims")
    return st.sampled_from(["BLE", "BLF", "BLHQ", "EF", "BMKQ", "B"]).flatmap(
        lambda some: _layouts(some, partial, torus, None))


class Run:
    """A drawn case with the unsharded model's values, for a function under test: it is given shards
    of some of them, and what it returns is judged.

        @given(strategies.runs())
        def test_gather(run):
            shards, layout = run.shards("prefill.c0.layer0.norm")
            run.check("prefill.c0.layer0.norm", my_all_gather(shards, layout, run.torus), "BLE")
    """

    def __init__(self, line: str, data: st.DataObject) -> None:
        self.case = line
        self.reference = Reference(line)
        self.torus = self.reference.torus
        self._data = data

    def shards(self, id: str, layout: LayoutLike = None) -> Tuple[List[Array], Layout]:
        """A value's shards, by rank, and their layout: this one, or one that is drawn."""
        return self._sharded(id, self.reference[id], self.reference.dims(id), layout)

    def weight(self, name: str, layout: LayoutLike = None) -> Tuple[List[Array], Layout]:
        """Likewise of a weight."""
        weights = self.reference.weights
        return self._sharded(name, weights[name], weights.dims[name], layout)

    def _sharded(self, name: str, value: Array, dims: str,
                 layout: LayoutLike) -> Tuple[List[Array], Layout]:
        if layout is None:
            legal = layouts(dims, False, torus=self.torus, shape=value.shape)
            layout = self._data.draw(legal, name)
        elif isinstance(layout, str):
            layout = Layout(layout)
        return layout.shard(value, self.torus), layout

    def check(self, id: str, value: Any, layout: LayoutLike = None,
              **attributes: Any) -> Verdict:
        """Judges what a function computed for a value, from the other values of the run: a whole
        array, or shards by rank with their layout. Raises AssertionError if it is not right."""
        trace = Trace(self.case)
        for other, whole in self.reference.items():
            if other != id:
                trace.add(other, whole, given=True, copy=False)
        trace.add(id, value, layout, **attributes)
        return check(trace)

    def __repr__(self) -> str:
        return f"Run({self.case!r})"


def runs() -> SearchStrategy[Run]:
    """Cases with their Reference, shards of it, and a judge of what is computed from these. The
    example that fails shrinks to the line of one case, and the layouts that were drawn in it."""
    return st.builds(Run, cases(), st.data())


__all__ = ["Run", "cases", "layouts", "runs", "tori"]
