"""The ranks of a program on the three axes of a torus. Needs no torch."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence, Set, Tuple

from .._library import Error
from ..axes import parse_axes

Chip = Tuple[int, int, int]


class Cut(NamedTuple):
    """What one dim of a mesh does to a value: "S" cuts dim `dim` of the tensor into `parts` blocks,
    0 for as many as it has ranks, fewer where ranks share one; "P" leaves partial sums, "R"
    replicas."""

    kind: str
    dim: int = -1
    parts: int = 0


WHOLE = Cut("R")
PARTIAL = Cut("P")


class Axes:
    """A mesh whose dims are factored into the axes x, y and z, as few kv heads need it: 8 ranks of
    which two share each of 4 heads are x and y of 4x2x1.

    `shared` says for each dim of the mesh into how many blocks it cuts something, besides all its
    ranks. Raises Error torch_mesh if a count does not divide the ranks, or more than three axes
    are above 1."""

    def __init__(self, sizes: Sequence[int], shared: Sequence[Set[int]] = ()) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self._of_dim: List[List[Tuple[str, int]]] = []
        factors: List[int] = []
        for dim, size in enumerate(self.sizes):
            at, axes = 1, []
            for end in sorted({size, *(shared[dim] if dim < len(shared) else ())}):
                if end % at or size % end:
                    raise Error("torch_mesh", f"{size} ranks do not share {end} blocks evenly: "
                                              "one must divide the other")
                if end > at:
                    factors.append(end // at)
                    axes.append(("xyz"[min(len(factors) - 1, 2)], end // at))
                at = end
            self._of_dim.append(axes)
        if len(factors) > 3:
            raise Error("torch_mesh", f"the mesh {'x'.join(map(str, self.sizes))} needs "
                                      f"{len(factors)} axes above 1, {'x'.join(map(str, factors))}"
                                      "; a trace has three; run on fewer mesh dims")
        self.torus: Chip = tuple((factors + [1, 1, 1])[:3])  # type: ignore[assignment]

    def __str__(self) -> str:
        return "x".join(map(str, self.torus))

    def chip(self, place: int) -> Chip:
        """Where the rank at this place of the mesh, counted row by row, sits."""
        _, y, z = self.torus
        return place // (y * z), place // z % y, place % z

    def of(self, dim: int, parts: int = 0) -> List[Tuple[str, int]]:
        """The axes, each with its size, that cut into this many blocks over a dim of the mesh."""
        out: List[Tuple[str, int]] = []
        product = 1
        for axis, size in self._of_dim[dim]:
            if parts and product >= parts:
                break
            out.append((axis, size))
            product *= size
        return out


def layout(pattern: str, extents: Dict[str, int], cuts: Sequence[Cut], axes: Axes) -> str:
    """The layout of a tensor whose dims are the pattern's, "BL(HQ)": blocks of a dim of several
    letters are of its first letter as far as they divide that, then of the next.

    Raises Error torch_layout if they divide neither."""
    left = dict(extents)
    of_letter: Dict[str, str] = {letter: "" for letter in letters(pattern)}
    partial = ""
    groups = dims(pattern)
    for number, cut in enumerate(cuts):
        if cut.kind == "P":
            partial += "".join(axis for axis, _ in axes.of(number))
        if cut.kind != "S":
            continue
        for axis, size in axes.of(number, cut.parts):
            # A letter is cut only as long as those before it are cut to single elements.
            letter = next((a for a in groups[cut.dim] if left[a] > 1), groups[cut.dim][0])
            if left[letter] % size:
                raise Error("torch_layout", f"{size} ranks do not divide {letter} = {left[letter]}")
            left[letter] //= size
            of_letter[letter] += axis
    text = "".join(a + (f"_{of_letter[a]}" if of_letter[a] else "") for a in of_letter)
    return text + (f" partialsum-{''.join(sorted(partial))}" if partial else "")


def dims(pattern: str) -> List[str]:
    """The letters of each dim: "BL(HQ)" is B, L and HQ."""
    return [axis.letters for axis in parse_axes(pattern).axes]


def letters(pattern: str) -> str:
    """All letters, in order: "BL(HQ)" has BLHQ."""
    return "".join(dims(pattern))


def local_shape(pattern: str, extents: Dict[str, int], text: str, axes: Axes) -> List[int]:
    """The shape of a shard in a layout, a dim for each letter."""
    size = dict(zip("xyz", axes.torus))
    shape: List[int] = []
    cut = False
    for sign in text.split(" ")[0]:
        if sign == "_":
            cut = True
        elif cut and sign in size:
            shape[-1] //= size[sign]
        else:
            shape.append(extents[sign])
            cut = False
    return shape
