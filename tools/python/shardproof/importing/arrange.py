"""One named value from the arrays of the ranks: its dims, its layout, its rows, chip by chip."""
from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .._arrays import Array
from ..axes import Axis, Pattern
from ..layouts import Layout
from .arrays import FileArray
from .dims import Cut, parse_dims
from .limits import refuse, zeros
from .local_axes import Extents, LocalAxis, local_axis, width_of
from .mesh import Chip, Mesh
from .rows import Rows, tokens_of


class Role(NamedTuple):
    """What an axis of the arrays is: "t", "B", "L", "1", or an axis of the pattern."""

    kind: str
    axis: Optional[Axis]
    cuts: Optional[Tuple[Cut, ...]]       # None: nothing says them


class Arranged(NamedTuple):
    layout: str
    attributes: Dict[str, str]
    shards: Iterator[Tuple[Chip, Array]]
    owners: Dict[Chip, Array]             # of scattered tokens: the rank of each [B, L], by chip


_TOKENS = {"t": "t", "b": "B", "bs": "B", "batch": "B", "s": "L", "seq": "L", "1": "1"}
_ONE_RANK = ("tp", "cp", "ep", "sp", "dp", "pp", "etp", "attn_tp", "attn_dp", "attn_cp", "moe_tp",
             "moe_ep", "moe_dp")


def _is_token(axis: Axis) -> bool:
    return len(axis.factors) == 1 and axis.factors[0].letters in ("B", "L")


def roles_of(shape: Tuple[int, ...], pattern: Pattern, dims: Optional[str], rows: Rows
             ) -> List[Role]:
    """What each axis of an array is, by its dims if it has them, otherwise by their number."""
    tokens = [a.factors[0].letters for a in pattern.axes if _is_token(a)]
    rest = [a for a in pattern.axes if not _is_token(a)]
    apart = [Axis((f,)) for axis in rest for f in axis.factors]
    if dims is not None:
        said = parse_dims(dims).dims
        if len(said) != len(shape):
            refuse("import_dims", f"'{dims}' has {len(said)} dims, and the array is {list(shape)}; "
                                  "say the dims that it has")
        kinds = [_TOKENS.get(d.names[0], "") if len(d.names) == 1 else "" for d in said]
        for axes in (rest, apart):
            if len(axes) == kinds.count(""):
                left = iter(axes)
                return [Role(kind, None if kind else next(left), d.cuts)
                        for kind, d in zip(kinds, said)]
        refuse("import_dims", f"'{dims}' has {kinds.count('')} dims that are no tokens, "
                              f"{pattern.text} of the names {len(rest)}; say both alike")
    for axes in (rest, apart):
        kinds = tokens
        if len(shape) == len(tokens) + len(axes) and len(tokens) == 2 \
                and shape[0] == 1 < len(rows.counts):
            kinds = ["1", "t"]
        elif len(shape) == 1 + len(axes) and len(tokens) == 2:
            kinds = ["t"]
        if len(shape) == len(kinds) + len(axes):
            return [Role(k, None, None) for k in kinds] + [Role("", a, None) for a in axes]
    refuse("import_dims", f"the names say {pattern.text}, and the array is {list(shape)}; say its "
                          "dims there, '; dims t h[tp]'")


def same_shape(arrays: Mapping[int, FileArray]) -> Tuple[int, ...]:
    """The shape of all ranks' arrays. Raises Error import_dims, naming two ranks that differ."""
    first = min(arrays)
    for rank, array in sorted(arrays.items()):
        if array.shape != arrays[first].shape:
            refuse("import_dims", f"rank {first} has {list(arrays[first].shape)}, rank {rank} "
                                  f"{list(array.shape)}; ranks must have blocks of one size")
    return arrays[first].shape


class _Arrangement:
    def __init__(self, arrays: Mapping[int, FileArray], pattern: Pattern, dims: Optional[str],
                 rows: Rows, mesh: Mesh, extents: Extents) -> None:
        self.arrays, self.pattern, self.dims, self.rows = arrays, pattern, dims, rows
        self.mesh, self.extents = mesh, extents
        self.shape = same_shape(arrays)
        self.roles = roles_of(self.shape, pattern, dims, rows)
        self.partial = [c.axis for r in self.roles for c in r.cuts or () if c.partial]
        self.local = [self._local(r, n) for r, n in zip(self.roles, self.shape) if not r.kind]
        self.kinds = [r.kind for r in self.roles]
        if any(k == "1" and n != 1 for k, n in zip(self.kinds, self.shape)):
            refuse("import_dims", f"'{dims}' has a dim 1, where the array is {list(self.shape)}")

    def axes_of(self, cuts: Sequence[Cut]) -> str:
        out = ""
        for cut in cuts:
            if not cut.partial and cut.axis not in self.mesh.axes and cut.axis not in _ONE_RANK:
                refuse("import_dims", f"'{self.dims}': {cut.axis} is not an axis of the ranks; "
                                      f"legal: {', '.join(self.mesh.axes) or 'none'}")
            out += "" if cut.partial else self.mesh.axes.get(cut.axis, "")
        return out

    def _local(self, role: Role, held: int) -> LocalAxis:
        assert role.axis is not None
        if any(c.zigzag for c in role.cuts or ()):
            refuse("import_dims", f"'{self.dims}': zigzag is an order of tokens, not of this dim")
        split = self.mesh.axes.get("attn_tp", self.mesh.axes.get("tp", ""))
        tried = list(dict.fromkeys(["", split]))
        if role.cuts is not None:
            tried = [self.axes_of(role.cuts)]
        for axes in tried:
            found = local_axis(role.axis, self.pattern.take, axes, held, self.mesh, self.extents)
            if found is not None:
                return found
        wanted = [str(w) for w in (width_of(role.axis, a, self.mesh, self.extents) for a in tried)
                  if w is not None]
        return refuse("import_dims", f"a dim of {held} elements does not fit {self.pattern.text}, "
                                     f"of which a rank has {' or '.join(wanted) or 'no whole'}"
                                     "; say its dims, or the model that it is of")

    # The tokens.

    def cuts_of(self, kind: str) -> List[Cut]:
        return [c for r in self.roles if r.kind == kind for c in r.cuts or ()
                if not c.partial and self.mesh.axes.get(c.axis)]

    def front(self, array: Array) -> Array:
        """The array with its tokens first and the other axes taken apart."""
        order = [self.kinds.index(k) for k in ("t", "B", "L") if k in self.kinds]
        order += [i for i, k in enumerate(self.kinds) if not k]
        ones = [i for i, k in enumerate(self.kinds) if k == "1"]
        array = array.transpose(order + ones).reshape([array.shape[i] for i in order])
        tokens = array.ndim - len(self.local)
        for local in self.local:
            array = local.taken(np.moveaxis(array, tokens, -1))
        return array

    def letters(self) -> str:
        return "".join(letter for local in self.local for letter, _ in local.letters)

    def held(self, kind: str) -> int:
        return self.shape[self.kinds.index(kind)]


def _where(cuts: Sequence[Cut], chip: Chip, mesh: Mesh) -> List[Tuple[int, int, bool]]:
    return [(mesh.size(mesh.axes[c.axis]), mesh.block(chip, mesh.axes[c.axis]), c.zigzag)
            for c in cuts]


def arrange(arrays: Mapping[int, FileArray], pattern: Pattern, dims: Optional[str], rows: Rows,
            mesh: Mesh, extents: Extents, last_only: bool = False) -> Arranged:
    """A value's shards with their layout. `last_only`: the last position of each row alone, as of
    logits. Raises Error import_dims or import_run, whose message says what does not fit."""
    last_only = last_only or not pattern_has(pattern, "L")
    it = _Arrangement(arrays, pattern, dims, rows, mesh, extents)
    said: Dict[str, str] = {"padded": "V"} if any(x.padded for x in it.local) else {}
    words = {letter: axes for x in it.local for letter, axes in x.axes.items()}
    cuts = it.cuts_of("t") + it.cuts_of("L")
    kind = "t" if "t" in it.kinds else "L" if "L" in it.kinds else "B" if "B" in it.kinds else ""
    batch = mesh.size(it.axes_of(it.cuts_of("B")))
    tokens, gather = "", False
    if kind:
        gather = kind != "B" and _must_gather(it, kind, cuts, rows, last_only)
        tokens = "BL" if kind != "B" and _by_position(it, kind, rows) and not last_only else "B"
        if kind == "L" and not gather and not last_only:
            words["L"] = it.axes_of(it.cuts_of("L"))
        if "B" in it.kinds:
            words["B"] = it.axes_of(it.cuts_of("B"))
            if it.held("B") * batch != len(rows.counts):
                refuse("import_run", f"{it.held('B') * batch} rows, and the step has "
                                     f"{len(rows.counts)}; dump one batch")
        if tokens == "B" and not last_only:
            said["last"] = "true"
    letters = tokens + it.letters()
    layout = _layout(letters, words, it.partial, mesh)
    if not gather:
        return Arranged(layout, said, _plain(it, kind, rows, tokens, last_only), {})
    owners: Dict[Chip, Array] = {}
    parts = _gathered(it, kind, cuts, rows, last_only, owners)
    return Arranged(layout, said, parts, owners)


def pattern_has(pattern: Pattern, letter: str) -> bool:
    return any(len(a.factors) == 1 and a.factors[0].letters == letter for a in pattern.axes)


def _layout(letters: str, words: Mapping[str, str], partial: Sequence[str], mesh: Mesh) -> str:
    names = {letter: axes for letter, axes in words.items() if axes and letter in letters}
    text = " ".join(letter.lower() + (f"[{letter}]" if letter in names else "")
                    for letter in letters)
    summed = "".join(mesh.axes.get(axis, "") for axis in partial)
    layout = Layout.from_dims(letters, text, names)
    return str(layout) + (f" partialsum-{''.join(sorted(summed))}" if summed else "")


def _by_position(it: _Arrangement, kind: str, rows: Rows) -> bool:
    """Whether the arrays have all tokens, not only the last of each row."""
    ranks = it.mesh.size(it.axes_of(it.cuts_of(kind)))
    if kind != "t":
        return True
    tokens = it.held("t") * ranks
    if tokens in (rows.total, rows.held) or rows.total < tokens < rows.total + ranks:
        return True  # all of them, perhaps with the padding that the step's own tokens have
    if tokens != len(rows.counts):
        refuse("import_run", f"{tokens} tokens, and the step has {rows.total}; dump it in the same "
                             "step, or say its dims")
    return False


def _must_gather(it: _Arrangement, kind: str, cuts: Sequence[Cut], rows: Rows, last_only: bool
                 ) -> bool:
    if kind == "t":
        return bool(cuts)
    width = it.held("L") * it.mesh.size(it.axes_of(cuts))
    return bool(cuts) and (any(c.zigzag for c in cuts) or rows.shifted or last_only
                           or width != rows.width)


def _rows_of_zeros(rows: Rows, packed: Array) -> Array:
    return zeros("its rows", (len(rows.counts), rows.width) + packed.shape[1:], packed.dtype)


def _scatter(out: Array, array: Array, index: Array, rows: Rows) -> None:
    """Puts packed tokens into their rows; `index` are their numbers, -1 for padding."""
    row, position = rows.packed()
    real = (index >= 0) & (index < rows.total)
    out[row[index[real]], position[index[real]]] = array[real]


def _rows_of(array: Array, rows: Rows, first: int, last_only: bool) -> Array:
    """Padded rows [B, S, ...] from row `first` on, without padding on the left."""
    counts, pads = rows.counts[first:first + len(array)], rows.pads[first:first + len(array)]
    if array.shape[1] not in (rows.width, rows.held) or any(
            p + n > array.shape[1] for p, n in zip(pads, counts)):
        refuse("import_run", f"{array.shape[1]} positions, and a row of the step has "
                             f"{max(counts)}; dump it in the same step")
    if last_only:
        at = np.maximum(np.array(pads) + np.array(counts) - 1, 0)
        last: Array = array[np.arange(len(array)), at]
        return last
    if not any(pads) and array.shape[1] == rows.width:
        return array
    out = zeros("its rows", (len(array), rows.width) + array.shape[2:], array.dtype)
    for row, (pad, n) in enumerate(zip(pads, counts)):
        out[row, :n] = array[row, pad:pad + n]
    return out


def _plain(it: _Arrangement, kind: str, rows: Rows, tokens: str, last_only: bool
           ) -> Iterator[Tuple[Chip, Array]]:
    for rank, file_array in sorted(it.arrays.items()):
        chip = it.mesh.places[rank]
        array = it.front(file_array.load())
        if kind == "t" and _by_position(it, "t", rows):
            if last_only:
                ends = np.maximum(np.cumsum(rows.counts) - 1, 0)
                array = array[ends]
            else:
                out = _rows_of_zeros(rows, array)
                _scatter(out, array, np.arange(len(array)), rows)
                array = out
        elif kind == "L" and (last_only or not it.cuts_of("L")):
            first = it.mesh.block(chip, it.axes_of(it.cuts_of("B"))) * len(array) \
                if "B" in it.kinds else 0
            array = _rows_of(array, rows, first, last_only)
        yield chip, array


def _gathered(it: _Arrangement, kind: str, cuts: Sequence[Cut], rows: Rows, last_only: bool,
              owners: Dict[Chip, Array]) -> Iterator[Tuple[Chip, Array]]:
    """Collects the tokens that ranks hold scattered; each of them then has all."""
    mesh = it.mesh
    axes = it.axes_of(cuts)
    held = it.held(kind)
    groups: Dict[Chip, Dict[int, Chip]] = {}
    for rank in sorted(it.arrays):
        chip = mesh.places[rank]
        rest = tuple(0 if a in axes else n for a, n in zip("xyz", chip))
        groups.setdefault((rest[0], rest[1], rest[2]), {})[rank] = chip
    for ranks in groups.values():
        if len(ranks) != mesh.size(axes):
            refuse("import_mesh", f"{len(ranks)} of {mesh.size(axes)} ranks are there, of those "
                                  f"that hold tokens over {'+'.join(c.axis for c in cuts)}; "
                                  "dump all")
    total = rows.total if kind == "t" else held * mesh.size(axes)
    segments = rows.counts if kind == "t" else (total,)
    if any(tokens_of(total, segments, _where(cuts, c, mesh), held) is None
           for ranks in groups.values() for c in ranks.values()):
        refuse("import_run", f"{held} tokens on each of {mesh.size(axes)} ranks do not divide "
                             f"{list(segments)} tokens as {it.dims!r} says")

    def parts() -> Iterator[Tuple[Chip, Array]]:
        for ranks in groups.values():
            out: Optional[Array] = None
            width = total if kind == "L" else rows.width
            owner: Array = np.full((len(rows.counts), width), -1, np.int32)
            for rank, chip in ranks.items():
                index = tokens_of(total, segments, _where(cuts, chip, mesh), held)
                assert index is not None
                array = it.front(it.arrays[rank].load())
                if kind == "t":
                    if out is None:
                        out = _rows_of_zeros(rows, array)
                    _scatter(out, array, index, rows)
                    _scatter(owner, np.full(len(array), rank, np.int32), index, rows)
                else:
                    if out is None:
                        out = zeros("its rows", (len(array), total) + array.shape[2:], array.dtype)
                    out[:, index] = array
                    owner[:, index] = rank
            assert out is not None
            first = mesh.block(chip, it.axes_of(it.cuts_of("B"))) * len(out) \
                if "B" in it.kinds else 0
            if kind == "L":
                out = _rows_of(out, rows, first, last_only)
                owner = _rows_of(owner, rows, 0, last_only)
            elif last_only:
                out, owner = (a[np.arange(len(a)), rows.last()] for a in (out, owner))
            for chip in ranks.values():
                owners[chip] = owner
                yield chip, out

    return parts()
