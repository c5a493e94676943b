"""A run that was seen, as a trace."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from .._arrays import Array
from .._library import Error
from ..trace import Trace
from ._flow import Flow
from ._mesh import PARTIAL, Axes, Cut, dims, layout, letters, local_shape
from ._run import Pass, Run
from ._tensors import ALL, Seen, cuts_of_shape

Values = Dict[str, Tuple["Shown", Dict[str, Any]]]


class Shown:
    """A value of one pass with what cuts it."""

    def __init__(self, value: Seen, pattern: str, extents: Dict[str, int],
                 sizes: Sequence[int]) -> None:
        self.value, self.pattern, self.extents = value, pattern, extents
        self.why = "" if value.part is None else value.part.why_not(value, extents)
        if value.part is not None and not self.why:
            value = value._replace(part=None, shards={
                rank: value.part.cut(a, extents) for rank, a in value.shards.items()})
            self.value = value
        whole = [int(np.prod([extents[a] for a in dim])) for dim in dims(pattern)]
        if len(value.shape) == len(whole) - 1 and dims(pattern)[:2] == ["B", "L"]:  # packed tokens
            self.value = value._replace(shards={
                rank: a.reshape(extents["B"], -1, a.shape[-1]) for rank, a in value.shards.items()})
        self.cuts = None if self.why else self._cuts(whole, sizes)

    def _cuts(self, whole: List[int], sizes: Sequence[int]) -> Optional[Tuple[Cut, ...]]:
        value = self.value
        if value.cuts is not None and len(value.shape) == len(whole):
            return value.cuts
        shape = list(value.shape)
        if value.said == "partial":
            return tuple(PARTIAL for _ in sizes) if shape == whole else None
        return cuts_of_shape(shape, whole, sizes)

    def shared(self, number: int, size: int) -> Set[int]:
        """Into how many blocks, besides one a rank, a dim of the mesh has to cut something."""
        cut = (self.cuts or ())[number:number + 1]
        if not cut or cut[0].kind != "S":
            return set()
        blocks = {cut[0].parts} if cut[0].parts else set()
        first = self.extents[dims(self.pattern)[cut[0].dim][0]]
        if len(dims(self.pattern)[cut[0].dim]) > 1 and first < size and size % first == 0:
            blocks.add(first)
        return blocks - {1}


def trace_of(run: Run, flows: Sequence[Flow], greedy: bool, attributes: Mapping[str, Any]
             ) -> Tuple[Trace, List[str], Dict[str, FrozenSet[str]]]:
    """The trace of a run; in words what could not be put into it; and the values that modules
    reach first which the text does not have, which are given, with those modules. A cache that an
    architecture keeps in another form than the text's is only `unseen`."""
    values: Values = {}
    for number, one in enumerate(run.passes):
        _add_pass(run, number, one, values)
        if greedy and run.chunks <= number + 1 < len(run.passes):
            ids = run.passes[number + 1].ids
            token = ids._replace(shards={rank: a[:, 0] for rank, a in ids.shards.items()})
            values[run.name(number) + ".token"] = (
                Shown(token, "B", run.sizes_in(number), run.sizes), {})
    shared: List[Set[int]] = [set() for _ in run.sizes]
    for shown, _ in values.values():
        for number, size in enumerate(run.sizes):
            shared[number] |= shown.shared(number, size)
    axes = Axes(run.sizes, shared)
    if run.reference.dtype == "bf16" and run.says_sums:
        attributes = {"wire": "f32", **attributes}  # but where a value says otherwise
    trace = Trace(run.case(str(axes)), **attributes)
    trace.weights = run.reference.weights
    left: List[str] = []
    ready: Dict[str, Tuple[str, Dict[Any, Array]]] = {}
    for name, (shown, _) in values.items():
        try:
            ready[name] = _shards(shown, axes)
        except Error as error:
            left.append(f"{name}: {error.message}")
            (trace.unseen if _other_cache(run, name, shown) else trace.left).append(left[-1])
    places = _places(run)
    reached: Dict[Tuple[int, str], FrozenSet[str]] = {}
    for flow in flows:
        reached.update(flow.reached({places[name] for name in ready if name in places}))
    for name, (text, shards) in ready.items():
        trace.add(name, shards[ALL] if set(shards) == {ALL} else shards, text,
                  given=places.get(name) in reached, **values[name][1])
    given: Dict[str, FrozenSet[str]] = {}
    for (_, value), modules in reached.items():
        given[value] = given.get(value, frozenset()) | modules
    return trace, left, given


def _places(run: Run) -> Dict[str, Tuple[int, str]]:
    """The pass and value of all names of the trace, also of those that are a value's terms."""
    out: Dict[str, Tuple[int, str]] = {}
    for number, one in enumerate(run.passes):
        at = run.name(number) + "."
        for name, (show, _) in one.values.items():
            out[at + name] = out[f"{at}{name}_before"] = number, show.value
        out.update({at + name: (number, name) for name in one.heads})
    return out


def _other_cache(run: Run, name: str, shown: Shown) -> bool:
    """Whether a cache holds the slots of a window alone, or the heads of all queries."""
    shape, extents = shown.value.shape, shown.extents
    if not name.endswith("_cache") or len(shape) != 4:
        return False
    if run.reference.config.get("sliding_window") and shape[2] < extents["M"]:
        return True
    return extents.get("K", extents["H"]) != extents["H"] and cuts_of_shape(
        shape, [extents[a] for a in "BHMQ"], run.sizes) is not None


def _add_pass(run: Run, number: int, one: Pass, values: Values) -> None:
    at, extents = run.name(number) + ".", run.sizes_in(number)
    values[at + "ids"] = Shown(one.ids, "BL", extents, run.sizes), {}
    for name, (show, value) in one.values.items():
        said: Dict[str, Any] = {"module": show.path, "parameters": show.parameters}
        if name != show.value:  # a term of it
            said["summand_of"] = show.value.rpartition(".")[2]
        added = _ranks_added(run, value, one.early.get(name, (show, value))[1])
        if run.reference.dtype == "bf16" and added > 1:
            said["wire"] = f"bf16:{added}"
        early = one.early.get(name)
        cuts = None if early is None else early[1].cuts
        if early is not None and cuts is not None and cuts != value.cuts:
            if value.cuts is None and early[1].shape == value.shape and PARTIAL not in cuts:
                value = value._replace(cuts=cuts)  # handed on as a plain tensor
            else:
                values[f"{at}{name}_before"] = (
                    Shown(early[1], show.pattern, extents, run.sizes),
                    {**said, "meaning": name.rpartition(".")[2]})
        last = name == "logits" and value.shape[1] != extents["L"]
        if last:
            said["meaning"] = "last logits"
        values[at + name] = Shown(_last(value) if last else value,
                                  "BV" if last else show.pattern, extents, run.sizes), said
    for name, cache in one.heads.items():
        layer, _, kind = name.partition(".")
        queries = kind == "q_rot"
        of = values.get(f"{at}{layer}.{kind[0]}")  # q, k or v, which is cut likewise
        if cache.cuts is None and of is not None and of[0].cuts is not None:
            cache = cache._replace(cuts=tuple(
                cut._replace(dim=1) if cut.kind == "S" and cut.dim == 2 else cut
                for cut in of[0].cuts))
        heads = "H" if queries or "K" not in extents else "K"
        where = "the queries it attends with" if queries else "its cache"
        pattern = f"B{heads}{'L' if queries else 'M'}Q"
        values[at + name] = (Shown(cache, pattern, extents, run.sizes),
                             {"module": f"layers.{layer[5:]}, {where}"})


def _ranks_added(run: Run, value: Seen, early: Seen) -> int:
    """Of how many ranks partial sums, of the stored type, are added to give a value."""
    if value.said == "reduced":
        return int(np.prod(run.sizes))
    return int(np.prod([size for cut, size in zip(early.cuts or (), run.sizes)
                        if cut == PARTIAL]))


def _last(value: Seen) -> Seen:
    """Of logits of the last position alone, without the dim of positions."""
    cuts = None if value.cuts is None else tuple(
        cut._replace(dim=cut.dim - 1) if cut.dim > 1 else cut for cut in value.cuts)
    return value._replace(cuts=cuts, shards={r: a[:, -1] for r, a in value.shards.items()})


def _shards(shown: Shown, axes: Axes) -> Tuple[str, Dict[Any, Array]]:
    """The layout of a value and its shards by chip, ALL's if the ranks have them in common. Raises
    Error torch_layout if it has none."""
    if shown.why:
        raise Error("torch_layout", shown.why)
    if shown.cuts is None:
        raise Error("torch_layout", f"an array of {list(shown.value.shape)} does not say how "
                                    f"{shown.pattern} is cut: keep it a DTensor")
    text = layout(shown.pattern, shown.extents, shown.cuts, axes)
    shape = local_shape(letters(shown.pattern), shown.extents, text, axes)
    shards: Dict[Any, Array] = {}
    for rank, shard in shown.value.shards.items():
        if shard.size != int(np.prod(shape)):
            raise Error("torch_layout", f"rank {rank} has an array of {list(shard.shape)}, {text} "
                                        f"is one of {shape}")
        shards[rank if rank == ALL else axes.chip(rank)] = shard.reshape(shape)
    return text, shards
