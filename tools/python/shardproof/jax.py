"""Values of a JAX program as a trace: `tap` names one where it arises, `tapped` makes the taps a
result of the function, `trace` and `dump` put them together (docs/compare.md, "From JAX").

    from shardproof.jax import dump, scan, tap, tapped

    def forward(w, x):  # of a shard_map
        gate = tap("layer0.gate", x @ w["gate"], "BLF_yz partialsum-x")
        ...

    step = jax.jit(jax.shard_map(tapped(forward), mesh=mesh, in_specs=..., check_vma=False,
                                 out_specs=(..., P("x", "y", "z"))))
    y, taps = step(w, x)
    dump("mine.h5", "torus=2x2x2 model=palm-tiny batch=2 prompt=4 gen=1", {"prefill.c0": taps})

Without shard_map, `tap("layer0.gate", gate, "BLF")` is enough: how the array is cut is read off its
NamedSharding. JAX is imported when a function first needs it."""
from __future__ import annotations

import functools
import json
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._jax_mesh import Axes, axes_of, chips_of, entries, spec_of
from ._library import Error
from .layouts import Layout
from .reference import PathLike
from .trace import Trace

# The taps of a function: an array by what is said of it, in JSON, which a pytree can have as key.
Taps = Dict[str, Any]


class _Open:
    """The taps of a function that runs, and where in JAX it runs."""

    def __init__(self, depth: int) -> None:
        self.taps: Taps = {}
        self.names: "set[str]" = set()
        self.depth = depth  # of scans
        self.place = _place()

    def keep(self, key: Dict[str, Any], value: Any) -> None:
        """Pytrees sort their keys: by a number, so that a trace is in the program's order."""
        self.names.add(key["name"])
        self.taps[f"{len(self.taps):06} {json.dumps(key)}"] = value


def _key(text: str) -> Dict[str, Any]:
    key: Dict[str, Any] = json.loads(text.partition(" ")[2])
    return key


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: List[_Open] = []


_thread = _Thread()


def _place() -> Any:
    """What differs between a function and those that JAX traces inside of it."""
    import jax
    from jax.extend import core
    if not hasattr(jax, "shard_map"):
        raise ImportError(f"shardproof.jax needs JAX 0.6 or later, not {jax.__version__}")
    # Older versions have it in jax.core.
    state = getattr(core, "get_opaque_trace_state", None) or jax.core.get_opaque_trace_state
    return state(convention="flax")


@contextmanager
def _opened(depth: int = 0) -> Iterator[Taps]:
    _thread.open.append(_Open(depth))
    try:
        yield _thread.open[-1].taps
    finally:
        _thread.open.pop()


def tap(name: str, value: Any, layout: Union[str, Layout, None] = None, *,
        spec: Optional[Sequence[Any]] = None, partial: Sequence[str] = (), **said: Any) -> Any:
    """Keeps what each device holds of a value, and returns it. The name is without the pass:
    "layer0.gate", and in a `scan` with a star for the step: "layer*.gate".

    In a shard_map `layout` is a layout, "BLF_yz partialsum-x"; or the letters of the dims, "BLF",
    with `spec` a PartitionSpec and `partial` the mesh axes over which it is unreduced. Elsewhere
    the letters are enough, and the array's sharding says the rest. What else is said are attributes
    of docs/trace-format.md: `given=True`, `meaning="raw gate"`, `padded="M"`.

    Outside of a `tapped` function it does nothing. Raises Error jax_tap for a second value of a
    name, or where JAX does not let the value leave: in loops other than `scan`, in cond, remat,
    vmap or a jit of its own."""
    if not _thread.open:
        return value
    here = _thread.open[-1]
    if name in here.names:
        raise Error("jax_tap", f"{name}: tapped twice; values of one pass have names of their own")
    if here.place != _place():
        raise Error("jax_tap", f"{name}: JAX traces this part by itself (a loop, cond, remat, "
                               "vmap, jit), which a tap cannot leave; use shardproof.jax.scan for "
                               "lax.scan, or tap outside of it")
    if name.count("*") != here.depth:
        raise Error("jax_tap", f"{name}: inside of {here.depth} scans a name has a * for the step "
                               "of each: \"layer*.gate\"")
    import jax.numpy as jnp
    axes = _manual_axes(name)
    key = {"name": name, "layout": None if layout is None else str(layout), "axes": axes,
           "spec": None if spec is None else spec_of(spec),
           "partial": sorted(partial or getattr(spec, "unreduced", ())), "scans": [],
           "said": said}
    here.keep(key, jnp.asarray(value)[(None,) * len(axes)])
    return value


def _manual_axes(name: str) -> List[str]:
    """The axes of the shard_map that this is in: a tap has a dim for each of them."""
    import jax
    mesh = jax.sharding.get_abstract_mesh()
    manual = set(mesh.manual_axes)
    axes = [str(axis) for axis in mesh.axis_names]
    left = [axis for axis in axes if axis not in manual]
    if manual and left:
        raise Error("jax_tap", f"{name}: this shard_map leaves the axes {', '.join(left)} to JAX; "
                               "tap outside of it, or make it one of all axes")
    return axes if manual else []


def tapped(function: Callable[..., Any]) -> Callable[..., Tuple[Any, Taps]]:
    """The function with its taps as a second result: of a shard_map their out_specs are all axes of
    the mesh in its order, P("x", "y", "z")."""
    @functools.wraps(function)
    def with_taps(*arguments: Any, **named: Any) -> Tuple[Any, Taps]:
        with _opened() as taps:
            return function(*arguments, **named), taps
    return with_taps


def scan(body: Callable[[Any, Any], Tuple[Any, Any]], init: Any, xs: Any = None,
         length: Optional[int] = None, *, first: int = 0, **options: Any) -> Tuple[Any, Any]:
    """lax.scan whose body may tap: step n of "layer*.gate" is layer{first + n}.gate. Where several
    scans are nested, a name has a star for each, the outer one's first."""
    import jax
    import jax.numpy as jnp
    if not _thread.open:
        return jax.lax.scan(body, init, xs, length, **options)  # type: ignore[no-any-return]
    outer = _thread.open[-1]

    def with_taps(carry: Any, x: Any) -> Tuple[Any, Tuple[Any, Taps]]:
        with _opened(outer.depth + 1) as taps:
            carry, y = body(carry, x)
        return carry, (y, taps)

    carry, (ys, taps) = jax.lax.scan(with_taps, init, xs, length, **options)
    for text, value in taps.items():
        key = _key(text)
        if key["name"] in outer.names:
            raise Error("jax_tap", f"{key['name']}: tapped in two scans; give one of them another "
                                   "name before the star")
        key["scans"].insert(0, [first, value.shape[0]])
        outer.keep(key, jnp.moveaxis(value, 0, len(key["axes"])))  # the mesh's dims stay first
    return carry, ys


def trace(case: str, passes: Mapping[str, Taps], *,
          mesh: Union[str, Mapping[str, str], None] = None, **attributes: Any) -> Trace:
    """The taps of each pass, {"prefill.c0": taps, "decode.1": taps}, as a Trace; with "" for taps
    whose names begin with the pass, such as "decode.*.layer0.gate" of a scan over steps. `mesh`:
    our axes of the mesh's, "data=x model=y", in this order if it is not given. The attributes are
    those of docs/trace-format.md: `weights="file"`.

    Ranks of the verdict are places in mesh.devices.flat. Raises Error jax_mesh, jax_layout, and
    jax_process for arrays of which this process has not all shards."""
    taken = [(name, key, value) for at, taps in passes.items() for text, value in taps.items()
             for key in [_key(text)] for name in [f"{at}.{key['name']}".lstrip(".")]]
    axes = axes_of(((name, key["axes"], value) for name, key, value in taken), mesh)
    out = Trace(case, **({"mesh": axes.text} if axes.text else {}), **attributes)
    for name, key, value in taken:
        for row, array, layout in _rows(name, key, value, axes):
            out.add(row, array, layout, copy=False, **key["said"])
    return out


def dump(path: PathLike, case: str, passes: Mapping[str, Taps], *,
         mesh: Union[str, Mapping[str, str], None] = None, **attributes: Any) -> None:
    """Writes what `trace` returns as an HDF5 file, which `shardproof compare` judges."""
    trace(case, passes, mesh=mesh, **attributes).save(path)


def _rows(name: str, key: Dict[str, Any], value: Any,
          axes: Axes) -> Iterator[Tuple[str, Any, Optional[Layout]]]:
    """The arrays of a tap, one for each step of its scans: names, what to add, and the layout."""
    if not getattr(value, "is_fully_addressable", True):
        raise Error("jax_process", f"{name}: this process has not all its shards; gather it with "
                                   "jax.experimental.multihost_utils.process_allgather")
    scans = [(first, count) for first, count in key["scans"]]
    stacked = axes.squeezed(key["axes"], value) if key["axes"] else None
    shards = None if key["axes"] else chips_of(value, axes)
    layout = _layout(name, key, value, axes, shards is not None)
    whole = np.asarray(value) if stacked is None and shards is None else stacked
    before = len(axes.names) if stacked is not None else 0
    for step in np.ndindex(*[count for _, count in scans]):
        row = name
        for (first, _), n in zip(scans, step):
            row = row.replace("*", str(first + n), 1)
        at = (slice(None),) * before + step
        yield row, whole[at] if whole is not None else {
            chip: shard[step] for chip, shard in (shards or {}).items()}, layout


def _layout(name: str, key: Dict[str, Any], value: Any, axes: Axes,
            sharded: bool) -> Optional[Layout]:
    said = None if key["layout"] is None else Layout(key["layout"])
    if key["spec"] is not None or key["partial"]:
        if said is None or said.partial or any(said.axes.values()):
            raise Error("jax_layout", f"{name}: `spec` and `partial` need the letters of the dims "
                                      f"alone, \"BLF\", not {key['layout']}")
        return Layout.from_partition_spec(said.letters, key["spec"] or (), axes.names,
                                          key["partial"])
    if key["axes"] or not sharded:
        if key["axes"] and said is None:
            raise Error("jax_layout", f"{name}: in a shard_map a tap needs a layout, \"BLF_yz\"")
        return said
    if said is None:
        raise Error("jax_layout", f"{name}: a tap of a sharded array needs the letters of its "
                                  "dims, \"BLF\"")
    spec, scans = entries(value.sharding.spec), len(key["scans"])
    if any(entry is not None for entry in spec[:scans]):
        raise Error("jax_layout", f"{name}: the steps of its scan are cut by "
                                  f"{value.sharding.spec}; constrain it to whole steps")
    unreduced = sorted(getattr(value.sharding.spec, "unreduced", ()) or ())
    actual = Layout.from_partition_spec(said.letters, spec[scans:], axes.names, unreduced)
    if (said.partial or any(said.axes.values())) and said != actual:
        raise Error("jax_layout", f"{name}: said to be {said}, its sharding {value.sharding.spec} "
                                  f"is {actual}; say the letters {said.letters} alone")
    return actual


__all__ = ["Taps", "dump", "scan", "tap", "tapped", "trace"]
