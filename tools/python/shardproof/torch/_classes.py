"""The tensor-parallel module classes of serving engines, known by name. Needs no torch.

Their tensors are plain, so that the class must say what shapes cannot: whether a result is still a
partial sum, and how a fused one is made up of the parts that a rank has."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional


class Role(NamedTuple):
    """How a module's tensors are cut: "last" dim, "partial" sums, "reduced" ones, "whole", or None:
    as their shapes say. `parts` are the widths of a fused result on one rank."""

    input_cuts: Optional[str] = None
    output_cuts: Optional[str] = None
    parts: Optional[List[int]] = None


def _column(module: Any) -> Role:
    return Role("whole", "whole" if getattr(module, "gather_output", False) else "last")


def _merged_column(module: Any) -> Role:
    size = int(getattr(module, "tp_size", 0) or 1)
    widths = [int(width) // size for width in module.output_sizes]
    return _column(module)._replace(parts=widths)


def _qkv(module: Any) -> Role:
    head = int(getattr(module, "head_size", 0) or module.head_dim)
    value = int(getattr(module, "v_head_size", 0) or head)
    heads, kv_heads = int(module.num_heads), int(module.num_kv_heads)  # of this rank
    return Role("whole", "last", [heads * head, kv_heads * head, kv_heads * value])


def _row(module: Any) -> Role:
    reduced = getattr(module, "reduce_results", True)
    parallel = getattr(module, "input_is_parallel", True)
    return Role("last" if parallel else "whole", "reduced" if reduced else "partial")


def _embedding(_: Any) -> Role:
    return Role("whole", "whole")


CLASSES: Dict[str, Callable[[Any], Role]] = {
    "ColumnParallelLinear": _column,
    "MergedColumnParallelLinear": _merged_column,
    "QKVParallelLinear": _qkv,
    "RowParallelLinear": _row,
    "VocabParallelEmbedding": _embedding,
    "ReplicatedLinear": _embedding,
    "ParallelLMHead": lambda module: Role("whole", None),
}


def role_of(module: Any) -> Role:
    """That of the module's class, or of the first class known that it is derived from."""
    for base in type(module).__mro__:
        if base.__name__ in CLASSES:
            return CLASSES[base.__name__](module)
    return Role()
