"""Hooks on a model's modules, which keep what each rank holds of every value of a run."""
from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from .._library import Error
from ..trace import Trace
from ._attention import watch
from ._flow import Flow
from ._inputs import CACHES, inputs_of, require_one_run
from ._modules import Place, Show, path_in_words, places, tensor_in
from ._run import Pass, Run
from ._tensors import ALL, Seen, seen
from ._trace import trace_of
from ._unknown import unknown_modules
from .model import Reference

_MOST_PASSES = 1000


class Tap:
    """What `tap` returns: the passes seen so far. As a context manager it ends with the block."""

    def __init__(self, model: Any, reference: Reference, mesh: Optional[Any] = None) -> None:
        self.reference = reference
        self.passes: List[Pass] = []
        self.left: List[str] = []
        self.twice: Dict[str, str] = {}
        self._mesh = mesh if mesh is not None else _mesh_of(model)
        self._rank = _rank()
        self._open: Optional[Pass] = None
        self._handles: List[Any] = []
        self._undo: Callable[[], None] = _nothing
        self._flows = [Flow()]
        found, self.missing = places(model, reference.architecture)
        unknown = unknown_modules(model, reference.architecture)
        self.unknown = list(unknown)
        self._says_sums = all(place.says_sums for place in found)
        self._hook(model, found, unknown)

    def _hook(self, model: Any, found: Sequence[Place], unknown: Dict[str, Any]) -> None:
        keep = self._handles.append
        keep(model.register_forward_pre_hook(self._begin, with_kwargs=True, prepend=True))
        for name, module in unknown.items():
            keep(module.register_forward_hook(self._unknown_hook(name)))
        if unknown:  # also if the call fails
            keep(model.register_forward_hook(lambda *_: self._flows[0].end(), always_call=True))
        for place in found:
            if place.is_input:
                keep(place.module.register_forward_pre_hook(self._input_hook(place),
                                                            with_kwargs=True))
            else:  # before styles that redistribute it, and after them
                keep(place.module.register_forward_hook(self._early_hook(place), prepend=True))
                keep(place.module.register_forward_hook(self._output_hook(place)))
        keep(model.register_forward_hook(self._end, with_kwargs=True))
        if self.reference.has("q_rot"):
            self._undo = watch(model, self._see_queries)

    def close(self) -> None:
        """Removes the hooks; what was seen stays."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._undo()
        self._undo = _nothing

    def __enter__(self) -> "Tap":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __getstate__(self) -> Dict[str, Any]:
        return {"reference": self.reference, "passes": self.passes, "missing": self.missing,
                "unknown": self.unknown, "twice": self.twice, "left": self.left,
                "_flows": self._flows, "_sizes": self.sizes, "_handles": [], "_open": None,
                "_undo": _nothing, "_says_sums": self._says_sums}

    def detached(self) -> "Tap":
        """Without hooks, model and mesh: what was seen alone, which can be kept and pickled."""
        self.close()
        state = self.__getstate__()
        seen_alone = Tap.__new__(Tap)
        seen_alone.__dict__.update(state)
        return seen_alone

    @property
    def sizes(self) -> Tuple[int, ...]:
        """The ranks along each dim of the mesh."""
        if "_sizes" in self.__dict__:
            return tuple(self.__dict__["_sizes"])
        if self._mesh is not None:
            _require_order(self._mesh)
            return tuple(int(n) for n in self._mesh.shape)
        return (_world_size(),)

    def join(self, others: Sequence["Tap"]) -> "Tap":
        """Takes over what the other ranks' taps of the same run have seen, also what only some of
        them did."""
        for other in others:
            if len(other.passes) != len(self.passes):
                raise Error("torch_ranks", f"one rank has seen {len(self.passes)} passes, another "
                                           f"{len(other.passes)}")
            for mine, theirs in zip(self.passes, other.passes):
                mine.ids.shards.update(theirs.ids.shards)
                for here, there in ((mine.values, theirs.values), (mine.early, theirs.early)):
                    for name, (show, value) in there.items():
                        here.setdefault(name, (show, value))[1].shards.update(value.shards)
                for name, cache in theirs.heads.items():
                    mine.heads.setdefault(name, cache).shards.update(cache.shards)
            self.twice.update(other.twice)
            self.missing = [line for line in self.missing if line in other.missing]
            self.unknown += [name for name in other.unknown if name not in self.unknown]
            self._flows += other._flows
        return self

    def trace(self, *, greedy: bool = False, **attributes: Any) -> Trace:
        """The run as a Trace. `greedy`: each pass's ids after the first are the tokens of the
        greatest logits, and judged as such. What else is said are attributes of
        docs/trace-format.md. What could not be put into it is in `left`, with the reason, and in
        the trace's `left`, so that it is not right, or in its `unseen` if the architecture does not
        show it; so are missing modules and entries of the config that no text has. A module that
        the text does not have is in `unseen`, and the values that its result reaches first are
        given: operands of those after them, not judged."""
        run = Run(self.reference, self.passes, self.sizes, self._says_sums)
        trace, self.left, given = trace_of(run, self._flows, greedy,
                                           {**self.reference.attributes, **attributes})
        twice = [f"{value}: {why}" for value, why in self.twice.items()]
        self.left += twice
        trace.unseen += [*twice, *self.missing,
                         *(f"{path_in_words(name)}: the text has no such module; "
                           + _given_for(name, given) for name in self.unknown),
                         *(f"the config's {entry}: no text has it"
                           for entry in self.reference.given)]
        return trace

    def _see(self, tensor: Any) -> Seen:
        return seen(tensor, self._mesh, self._rank)

    def _begin(self, model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        ids = kwargs.get("input_ids", args[0] if args else None)
        if ids is None:
            raise Error("torch_passes", "the model is called without input_ids: values that begin "
                                        "with embeddings cannot be judged")
        if len(self.passes) >= _MOST_PASSES:
            raise Error("torch_passes", f"more than {_MOST_PASSES} passes: close the tap, or judge "
                                        "fewer")
        row = self._see(ids)
        if len(row.shape) == 2:
            require_one_run(inputs_of(model, args, kwargs), row.shape[1],
                            sum(one.ids.shape[-1] for one in self.passes), self._see)
        self._open = Pass(row, {}, {}, {})
        if self.unknown:
            self._flows[0].begin()

    def _unknown_hook(self, name: str) -> Any:
        def hook(_: Any, __: Any, output: Any) -> None:
            if self._open is not None:
                self._flows[0].returned(len(self.passes), name, output)
        return hook

    def _input_hook(self, place: Place) -> Any:
        def hook(_: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
            tensor = tensor_in(args[0] if args else next(iter(kwargs.values()), None))
            second = args[1] if len(args) > 1 else kwargs.get("residual")
            if self._open is not None and tensor is not None:
                self._keep(self._open.values, place, self._terms(place, tensor, second))
        return hook

    def _early_hook(self, place: Place) -> Any:
        def hook(_: Any, __: Any, output: Any) -> None:
            tensor = tensor_in(output)
            if self._open is not None and getattr(tensor, "placements", None) is not None:
                terms = self._terms(place, tensor, _second_of(output))
                if len(terms) == 1:
                    self._keep(self._open.early, place, terms)
        return hook

    def _output_hook(self, place: Place) -> Any:
        def hook(_: Any, __: Any, output: Any) -> None:
            tensor = tensor_in(output)
            if self._open is not None and tensor is not None:
                self._keep(self._open.values, place,
                           self._terms(place, tensor, _second_of(output)))
        return hook

    def _terms(self, place: Place, tensor: Any, second: Any) -> Dict[str, Any]:
        """What was seen, by the ends of names. Layers of engines return what their last module
        adds, and the residual stream beside it; their norms are given both."""
        of_stream = all(show.value.rpartition(".")[2] in ("mid", "out") for show in place.shows)
        if not of_stream or getattr(second, "shape", None) != tensor.shape:
            return {"": tensor}
        return {"_added": tensor, "_residual": second}

    def _see_queries(self, layer: int, queries: Any) -> None:
        if self._open is not None:
            self._keep_heads(self._open, f"layer{layer}.q_rot", queries)

    def _keep(self, into: Dict[str, Tuple[Show, Seen]], place: Place,
              terms: Dict[str, Any]) -> None:
        for end, tensor in terms.items():
            for show, part in place.parts(self._see(tensor)):
                name = show.value + end
                self._flows[0].show(len(self.passes), show.value, tensor)
                if into.pop(name, None) is not None:
                    self.twice[name] = f"{show.path} is called several times in a pass, of which " \
                                       "the last is judged"
                into[name] = show, part

    def _keep_heads(self, into: Pass, name: str, tensor: Any) -> None:
        into.heads[name] = self._see(tensor)
        self._flows[0].show(len(self.passes), name, tensor)

    def _end(self, _: Any, __: Any, kwargs: Dict[str, Any], output: Any) -> None:
        if self._open is None:
            return
        for layer, pair in enumerate(_caches(output, kwargs)):
            for name, tensor in zip(("k_cache", "v_cache"), pair):
                if hasattr(tensor, "shape") and tensor.ndim == 4:
                    self._keep_heads(self._open, f"layer{layer}.{name}", tensor)
        self.passes.append(self._open)
        self._open = None


def tap(model: Any, reference: Reference, mesh: Optional[Any] = None) -> Tap:
    """Hooks the modules that show the reference's values. Tap after the model is cut over ranks:
    then hooks see DTensors before and after its styles redistribute them. `mesh` is the DeviceMesh
    of all ranks, if the model's DTensors lie on parts of it."""
    return Tap(model, reference, mesh)


def _second_of(output: Any) -> Any:
    return output[1] if isinstance(output, (tuple, list)) and len(output) > 1 else None


def _given_for(name: str, given: Mapping[str, FrozenSet[str]]) -> str:
    """Which values are given because of a module, in words."""
    values = [value for value, modules in given.items() if name in modules]
    return f"given: {', '.join(values)}" if values else "no value seen follows from it"


def _nothing() -> None:
    """What closing a tap without hooks undoes."""


def _mesh_of(model: Any) -> Optional[Any]:
    """The mesh of the model's DTensors."""
    return next((p.device_mesh for p in model.parameters() if hasattr(p, "device_mesh")), None)


def _require_order(mesh: Any) -> None:
    ranks = [int(rank) for rank in mesh.mesh.flatten().tolist()]
    if ranks != list(range(_world_size())):
        few = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
        raise Error("torch_mesh", f"the mesh of the model has the ranks {few} of {_world_size()}: "
                                  "give tap a mesh of all of them, in order")


def _rank() -> int:
    """This process's rank; ALL where a plain tensor is that of every rank: without processes, and
    where one simulates them all."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized() or dist.get_backend() == "fake":
        return ALL
    return int(dist.get_rank())


def _world_size() -> int:
    import torch.distributed as dist

    return int(dist.get_world_size()) if dist.is_available() and dist.is_initialized() else 1


def _caches(output: Any, kwargs: Dict[str, Any]) -> List[Tuple[Any, Any]]:
    """Keys and values of each layer, as the library of this or of an earlier year keeps them."""
    for name in CACHES:
        cache = getattr(output, name, None)
        cache = kwargs.get(name) if cache is None else cache
        if cache is None:
            continue
        if hasattr(cache, "layers"):
            return [(getattr(one, "keys", None), getattr(one, "values", None))
                    for one in cache.layers]
        if hasattr(cache, "key_cache"):
            return list(zip(cache.key_cache, cache.value_cache))
        return [(pair[0], pair[1]) for pair in cache]
    return []
