"""Layouts in the paper's notation, and in JAX's, DTensor's and the SGLang dumper's."""
from __future__ import annotations

import itertools
import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._arrays import Array
from ._library import Error, call

Sizes = Tuple[int, int, int]


def torus_sizes(torus: str) -> Sizes:
    """The sizes of "4x2x3". Raises Error torus_c0 to torus_c2."""
    x, y, z = call("blocks", "B", torus, "[1]")["sizes"]
    return x, y, z


class Layout:
    """How an array is cut over the chips of a torus: `BLF_yzx`, `BLE_x partialsum-yz`. Every dim
    has a letter, and the axes that cut it, major to minor: chip (x, y, z) holds block (y·Z+z)·X+x
    of F. Axes that do not occur hold replicas.

    Raises Error layout_c0 to layout_c3 for a text that is not a layout."""

    def __init__(self, text: str) -> None:
        told = call("layout", text)
        self._text: str = told["text"]
        self._dims: List[Tuple[str, str]] = [(d["letter"], d["axes"]) for d in told["dims"]]
        self._partial: str = told["partial"]

    @property
    def letters(self) -> str:
        """The letters of the dims: "BLF"."""
        return "".join(letter for letter, _ in self._dims)

    @property
    def axes(self) -> Dict[str, str]:
        """The axes that cut each dim, major to minor, "" for none."""
        return dict(self._dims)

    @property
    def partial(self) -> str:
        """The axes over which chips hold partial sums."""
        return self._partial

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Layout({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def _blocks(self, torus: str, shape: Sequence[int]) -> Dict[str, Any]:
        answer: Dict[str, Any] = call("blocks", self._text, torus, json.dumps(list(shape)))
        return answer

    def slices(self, torus: str, shape: Sequence[int]) -> List[Tuple[slice, ...]]:
        """The part of an array of this shape that each chip holds, by rank (x·Y+y)·Z+z. Raises
        Error local_c1 if axes do not divide a dim, layout_rank for another number of dims."""
        answer = self._blocks(torus, shape)
        return [tuple(slice(b * n, (b + 1) * n) for b, n in zip(blocks, answer["local"]))
                for blocks in answer["blocks"]]

    def shard(self, array: Any, torus: str) -> List[Array]:
        """The shard of each chip, by rank: views of the array, not copies. Raises Error as slices
        does, and layout_partial for a layout of partial sums, which no array determines."""
        if self._partial:
            raise Error("layout_partial", f"{self._text}: partial sums do not follow from their sum")
        whole = np.asarray(array)
        return [whole[part] for part in self.slices(torus, whole.shape)]

    def assemble(self, shards: Sequence[Any], torus: str) -> Array:
        """The array of which these are the shards, by rank. Partial sums are added in f64. Raises
        Error layout_shards for another number of shards or unequal shapes, layout_replicas if
        replicas differ, naming two ranks."""
        arrays = [np.asarray(shard) for shard in shards]
        sizes = torus_sizes(torus)
        chips = sizes[0] * sizes[1] * sizes[2]
        if len(arrays) != chips:
            raise Error("layout_shards", f"{len(arrays)} shards on {torus}, which has {chips} chips")
        if any(a.shape != arrays[0].shape for a in arrays):
            other = next(i for i, a in enumerate(arrays) if a.shape != arrays[0].shape)
            raise Error("layout_shards", f"rank {other} has a shard of {arrays[other].shape}, rank 0 "
                                         f"of {arrays[0].shape}")
        if arrays[0].ndim != len(self._dims):
            raise Error("layout_shards", f"{self._text} has {len(self._dims)} dims, the shards "
                                         f"{arrays[0].ndim}")
        shape = [n * _product(axes, sizes) for n, (_, axes) in zip(arrays[0].shape, self._dims)]
        parts = self.slices(torus, shape)
        if not self._partial:
            return self._assembled(arrays, parts, shape)
        whole = np.zeros(shape, np.float64)
        added: Dict[Tuple[Any, ...], int] = {}
        for rank, (array, part) in enumerate(zip(arrays, parts)):
            place = (tuple(s.start for s in part), _coordinates(rank, sizes, self._partial))
            if place in added:
                _require_equal(arrays, added[place], rank)
                continue
            added[place] = rank
            whole[part] += array.astype(np.float64)
        return whole

    @staticmethod
    def _assembled(arrays: List[Array], parts: List[Tuple[slice, ...]],
                   shape: Sequence[int]) -> Array:
        whole = np.empty(shape, arrays[0].dtype)
        first: Dict[Tuple[int, ...], int] = {}
        for rank, (array, part) in enumerate(zip(arrays, parts)):
            place = tuple(s.start for s in part)
            if place in first:
                _require_equal(arrays, first[place], rank)
                continue
            first[place] = rank
            whole[part] = array
        return whole

    # Other notations.

    @classmethod
    def from_partition_spec(cls, letters: str, spec: Sequence[Any], mesh: Mapping[str, str],
                            partial: Sequence[str] = ()) -> "Layout":
        """From JAX: for each letter None, a mesh axis or several, as in P(None, ("y", "z"));
        `mesh` gives our axis of each of the mesh's: {"data": "x"}. Trailing dims may be left
        out. `partial` are the axes over which the value is unreduced."""
        if len(spec) > len(letters):
            raise Error("layout_spec", f"{len(spec)} entries for the dims {letters}")
        text = ""
        for letter, names in itertools.zip_longest(letters, spec):
            axes = "".join(_axis(mesh, n) for n in _names(names))
            text += letter + (f"_{axes}" if axes else "")
        added = "".join(_axis(mesh, n) for n in partial)
        return cls(text + (f" partialsum-{''.join(sorted(added))}" if added else ""))

    def partition_spec(self, mesh: Mapping[str, str]) -> Tuple[Any, ...]:
        """The entries of JAX's PartitionSpec: None, a mesh axis, or a tuple of them."""
        name = {axis: of for of, axis in mesh.items()}
        entries: List[Any] = []
        for _, axes in self._dims:
            names = tuple(_name(name, a) for a in axes)
            entries.append(None if not names else names[0] if len(names) == 1 else names)
        return tuple(entries)

    @classmethod
    def from_placements(cls, letters: str, placements: Sequence[Any], mesh: Sequence[str]) -> "Layout":
        """From DTensor: for each mesh dim a placement, and in `mesh` our axis of it. Placements are
        torch's own, or "R", "P" and "S(2)". Shards of one dim over several mesh dims are major to
        minor in the mesh's order."""
        if len(placements) != len(mesh):
            raise Error("layout_placements", f"{len(placements)} placements on a mesh of {len(mesh)}")
        axes: List[str] = [""] * len(letters)
        partial = ""
        for axis, placement in zip(mesh, placements):
            kind, dim = _placement(placement, len(letters))
            if kind == "P":
                partial += axis
            elif kind == "S":
                axes[dim] += axis
        text = "".join(letter + (f"_{a}" if a else "") for letter, a in zip(letters, axes))
        return cls(text + (f" partialsum-{''.join(sorted(partial))}" if partial else ""))

    def placements(self, mesh: Sequence[str]) -> List[str]:
        """DTensor's placements in short, "R", "P", "S(2)", for a mesh whose dims are these axes.
        Raises Error layout_placements where they cannot say the order of a dim's axes."""
        out = ["R"] * len(mesh)
        for axis in self._partial:
            out[_place(mesh, axis)] = "P"
        for dim, (_, axes) in enumerate(self._dims):
            places = [_place(mesh, axis) for axis in axes]
            if places != sorted(places):
                raise Error("layout_placements", f"{self._text}: {axes} is not in the mesh's order "
                                                 f"{','.join(mesh)}")
            for place in places:
                out[place] = f"S({dim})"
        return out

    @classmethod
    def from_dims(cls, letters: str, dims: str, mesh: Mapping[str, str]) -> "Layout":
        """From the SGLang dumper: "b s h[tp]", "b s[cp] h[tp:partial] d # ep:replicated"; `mesh`
        gives our axes of each of its: {"tp": "yz"}. Raises Error layout_dims for other orders than
        the natural one, for packed and for fused dims."""
        words = dims.split("#")[0].split()
        if len(words) != len(letters):
            raise Error("layout_dims", f"'{dims}' has {len(words)} dims, {letters} {len(letters)}")
        text, partial = "", ""
        for letter, word in zip(letters, words):
            axes = ""
            inside = word[word.index("[") + 1:-1] if word.endswith("]") and "[" in word else ""
            for item in inside.split(",") if inside else []:
                name, *said = item.strip().split(":")
                if not set(said) <= {"partial", "natural"}:
                    raise Error("layout_dims", f"'{word}': {':'.join(said)} is not an order of blocks")
                if "partial" in said:
                    partial += _axis(mesh, name)
                else:
                    axes += _axis(mesh, name)
            text += letter + (f"_{axes}" if axes else "")
        return cls(text + (f" partialsum-{''.join(sorted(partial))}" if partial else ""))

    def dims(self, names: Sequence[str], mesh: Mapping[str, str]) -> str:
        """The SGLang dumper's text, with its names of the dims. Partial sums stand at the last."""
        out = []
        for i, (name, (_, axes)) in enumerate(zip(names, self._dims)):
            inside = _groups(axes, mesh)
            if i == len(self._dims) - 1:
                inside += [g + ":partial" for g in _groups(self._partial, mesh)]
            out.append(name + (f"[{','.join(inside)}]" if inside else ""))
        return " ".join(out)


def _product(axes: str, sizes: Sizes) -> int:
    return int(np.prod([sizes["xyz".index(axis)] for axis in axes], dtype=np.int64))


def _coordinates(rank: int, sizes: Sizes, axes: str) -> Tuple[int, ...]:
    z = rank % sizes[2]
    y = rank // sizes[2] % sizes[1]
    x = rank // (sizes[2] * sizes[1])
    return tuple((x, y, z)["xyz".index(axis)] for axis in axes)


def _require_equal(arrays: List[Array], first: int, rank: int) -> None:
    if arrays[first].tobytes() != arrays[rank].tobytes():
        raise Error("layout_replicas", f"ranks {first} and {rank} hold different bits of one block")


def _names(entry: Any) -> Sequence[str]:
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def _axis(mesh: Mapping[str, str], name: str) -> str:
    if name not in mesh:
        raise Error("layout_mesh", f"{name} is not an axis of the mesh {', '.join(mesh)}")
    return mesh[name]


def _name(names: Mapping[str, str], axis: str) -> str:
    if axis not in names:
        raise Error("layout_mesh", f"no axis of the mesh is {axis}")
    return names[axis]


def _place(mesh: Sequence[str], axis: str) -> int:
    if axis not in mesh:
        raise Error("layout_mesh", f"no dim of the mesh {','.join(mesh)} is {axis}")
    return list(mesh).index(axis)


def _groups(axes: str, mesh: Mapping[str, str]) -> List[str]:
    out: List[str] = []
    rest = axes
    while rest:
        found = next((n for n, a in mesh.items() if a and rest.startswith(a)), None)
        if found is None:
            raise Error("layout_mesh", f"no axis of the mesh is {rest}")
        out.append(found)
        rest = rest[len(mesh[found]):]
    return out


def _placement(placement: Union[str, Any], rank: int) -> Tuple[str, int]:
    """"S" and the dim, "P" or "R", of torch's placement or its short text."""
    dim: Optional[int] = getattr(placement, "dim", None)
    text = str(placement) if isinstance(placement, str) else type(placement).__name__
    if dim is None and text.startswith(("S(", "Shard(")) and text.endswith(")"):
        dim = int(text[text.index("(") + 1:-1].replace("dim=", ""))
        text = "Shard"
    if text == "Shard" and dim is not None:
        if not -rank <= dim < rank:
            raise Error("layout_placements", f"Shard({dim}) of {rank} dims")
        return "S", dim % rank
    if text in ("R", "Replicate"):
        return "R", 0
    if text in ("P", "P(sum)", "Partial") and getattr(placement, "reduce_op", "sum") == "sum":
        return "P", 0
    raise Error("layout_placements", f"{placement!r}: legal: Shard(d), Replicate, Partial of sums")
