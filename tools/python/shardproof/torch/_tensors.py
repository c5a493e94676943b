"""What each rank holds of a tensor, as NumPy arrays, and how it is cut, if that is known."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import ml_dtypes
import numpy as np

from .._arrays import Array
from ._mesh import PARTIAL, WHOLE, Cut


ALL = -1


class Seen(NamedTuple):
    """A tensor as it was at one moment: the ranks' copies, ALL's if they have it in common; what
    cuts it over each dim of the mesh, None if the tensor does not say; and what its module's class
    says (_classes.Role); `part` is the part of it that is the value."""

    shards: Dict[int, Array]
    cuts: Optional[Tuple[Cut, ...]] = None
    said: Optional[str] = None
    part: Optional[Any] = None

    @property
    def shape(self) -> Tuple[int, ...]:
        """That of the lowest rank's copy."""
        shape: Tuple[int, ...] = self.shards[min(self.shards)].shape
        return shape


def array(tensor: Any) -> Array:
    """A copy: fused kernels overwrite their operands later."""
    import torch

    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        words = tensor.contiguous().view(torch.int16).numpy().copy()
        return words.view(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    if tensor.dtype == torch.bool:
        tensor = tensor.to(torch.int32)
    return np.array(tensor.numpy())


def seen(tensor: Any, mesh: Optional[Any], rank: int) -> Seen:
    """A tensor of any kind: plain, a DTensor, one still in flight, all ranks' in one process."""
    cuts = None
    placements = getattr(tensor, "placements", None)
    if placements is not None:
        cuts = cuts_of(placements, tensor.device_mesh, mesh)
        tensor = tensor._local_tensor
    if hasattr(tensor, "trigger_wait"):  # AsyncCollectiveTensor
        tensor = tensor.trigger_wait()
    locals_of = getattr(tensor, "_local_tensors", None)
    if locals_of is not None:
        return Seen({int(r): array(t) for r, t in locals_of.items()}, cuts)
    return Seen({rank: array(tensor)}, cuts)


def cuts_of(placements: Sequence[Any], of: Any, mesh: Optional[Any]) -> Optional[Tuple[Cut, ...]]:
    """DTensor's placements over the dims of the whole mesh, of which `of` may be a part, known by
    the names of its dims. None if they are of a kind that no layout says: of what a cut embedding
    returns, rows are masked only when they are added."""
    here: List[Cut] = []
    for placement in placements:
        kind = type(placement).__name__
        if kind == "Shard":
            here.append(Cut("S", int(placement.dim)))
        elif kind == "Replicate":
            here.append(WHOLE)
        elif kind == "Partial" and str(getattr(placement, "reduce_op", "sum")) == "sum":
            here.append(PARTIAL)
        else:
            return None
    if mesh is None or of.ndim == mesh.ndim:
        return tuple(here)
    names: Sequence[str] = mesh.mesh_dim_names or ()
    out = [WHOLE] * mesh.ndim
    for name, cut in zip(of.mesh_dim_names or (), here):
        if name not in names:
            return None
        out[list(names).index(name)] = cut
    return tuple(out)


def cuts_of_shape(shape: Sequence[int], whole: Sequence[int],
                  sizes: Sequence[int]) -> Optional[Tuple[Cut, ...]]:
    """What a shard's shape says of its cuts: nothing but whole dims is replicas; a dim that is
    shorter is cut over all ranks, over the one dim of the mesh of that size, or shared by
    neighbouring ranks of the last dim. None if it could be several, or none."""
    if len(shape) != len(whole) or any(not m or n % m for m, n in zip(shape, whole)):
        return None
    cut = [(dim, n // m) for dim, (m, n) in enumerate(zip(shape, whole)) if m != n]
    if len(cut) > 1:
        return None
    out = [WHOLE] * len(sizes)
    if not cut:
        return tuple(out)
    (dim, parts), = cut
    if parts == int(np.prod(sizes)):
        return tuple(Cut("S", dim) for _ in sizes)
    fitting = [number for number, size in enumerate(sizes) if size == parts]
    if not fitting and sizes and sizes[-1] % parts == 0:
        out[-1] = Cut("S", dim, parts)
        return tuple(out)
    if len(fitting) != 1:
        return None
    out[fitting[0]] = Cut("S", dim)
    return tuple(out)
