"""The mesh of a JAX program, and the axes x, y, z of the torus that it is judged on."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._arrays import Array
from ._library import Error

Chip = Tuple[int, int, int]


class Axes:
    """Which of x, y, z each axis of a mesh is. Axes of size 1 that are left over are none."""

    def __init__(self, sizes: Mapping[str, int], names: Mapping[str, str]) -> None:
        self.sizes, self.names = dict(sizes), dict(names)

    @property
    def text(self) -> str:
        """The trace's attribute `mesh`, in the mesh's order."""
        return " ".join(f"{name}={axis}" for name, axis in self.names.items())

    def squeezed(self, stacked: Sequence[str], value: Any) -> Array:
        """A value with a dim for each axis of the mesh, without those that are none of ours."""
        array = np.asarray(value)
        left = tuple(i for i, axis in enumerate(stacked) if axis not in self.names)
        return array.reshape([n for i, n in enumerate(array.shape) if i not in left])


def axes_of(values: Iterable[Tuple[str, Sequence[str], Any]],
            mesh: Union[str, Mapping[str, str], None]) -> Axes:
    """The axes of the one mesh that all values have. Raises Error jax_mesh for a second mesh, for
    more than three axes of size above 1, and where `mesh` does not fit it."""
    sizes: Optional[Dict[str, int]] = None
    first = ""
    for name, stacked, value in values:
        found = dict(zip(stacked, value.shape)) if stacked else _mesh_of(value)
        if found is None:
            continue
        if sizes is None:
            sizes, first = found, name
        elif list(found.items()) != list(sizes.items()):
            raise Error("jax_mesh", f"{name} is on the mesh {_said(found)}, {first} on "
                                    f"{_said(sizes)}; a trace has one mesh")
    sizes = sizes or {}
    return Axes(sizes, _names(sizes, _parsed(mesh)))


def _mesh_of(value: Any) -> Optional[Dict[str, int]]:
    mesh = getattr(getattr(value, "sharding", None), "mesh", None)
    return None if mesh is None or mesh.empty else {str(n): int(s) for n, s in mesh.shape.items()}


def _said(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def _parsed(mesh: Union[str, Mapping[str, str], None]) -> Optional[Dict[str, str]]:
    if not isinstance(mesh, str):
        return None if mesh is None else dict(mesh)
    return {name: axis or name for name, _, axis in (word.partition("=") for word in mesh.split())}


def _names(sizes: Mapping[str, int], given: Optional[Mapping[str, str]]) -> Dict[str, str]:
    wide = [name for name, size in sizes.items() if size > 1]
    if len(wide) > 3:
        raise Error("jax_mesh", f"the mesh {_said(sizes)} has {len(wide)} axes of size above 1, a "
                                "torus three; make one axis of two that shard together")
    if given is None:
        kept = [n for n in sizes if n in wide] if len(sizes) > 3 else list(sizes)
        given = {n: n for n in kept} if set(kept) <= set("xyz") else dict(zip(kept, "xyz"))
    axes = list(given.values())
    if not set(given) <= set(sizes) or not set(wide) <= set(given) or not (
            set(axes) <= set("xyz") and len(set(axes)) == len(axes)):
        raise Error("jax_mesh", f"mesh {' '.join(f'{n}={a}' for n, a in given.items())!r} does not "
                                f"give each axis of the mesh {_said(sizes)} one of x, y, z")
    return {name: given[name] for name in sizes if name in given}


def entries(spec: Sequence[Any]) -> List[Any]:
    """Those of a PartitionSpec, which does not iterate if it has unreduced axes."""
    return list(getattr(spec, "partitions", spec))


def spec_of(spec: Sequence[Any]) -> List[Any]:
    """A PartitionSpec as JSON."""
    return [None if entry is None else [str(n) for n in entry] if isinstance(entry, (tuple, list))
            else str(entry) for entry in entries(spec)]


def chips_of(value: Any, axes: Axes) -> Optional[Dict[Chip, Array]]:
    """What each device of the mesh holds of an array, by its place on the mesh; None of an array
    that is on no mesh."""
    if _mesh_of(value) is None:
        return None
    place = {device: at for at, device in np.ndenumerate(value.sharding.mesh.devices)}
    names = list(axes.sizes)
    shards: Dict[Chip, Array] = {}
    for shard in value.addressable_shards:
        at = dict(zip(names, place[shard.device]))
        x, y, z = (next((at[n] for n, a in axes.names.items() if a == axis), 0) for axis in "xyz")
        shards[x, y, z] = np.asarray(shard.data)
    return shards


__all__ = ["Axes", "axes_of", "chips_of", "entries", "spec_of"]
