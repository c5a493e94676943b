"""What a model is called with: only rows that begin at position 0 and follow one another can be
judged."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Mapping, Tuple

import numpy as np

from .._library import Error
from ._tensors import Seen

CACHES = ("cache", "past_key_values")


def inputs_of(model: Any, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Dict[str, Any]:
    """The arguments of a call by name; those that the model has and was not given are None."""
    names = [name for name, one in inspect.signature(model.forward).parameters.items()
             if one.kind is one.POSITIONAL_OR_KEYWORD]
    return {**dict.fromkeys(names), **dict(zip(names, args)), **kwargs}


def require_one_run(said: Mapping[str, Any], length: int, before: int,
                    see: Callable[[Any], Seen]) -> None:
    """Raises Error torch_passes if a pass of `length` tokens does not go on after `before` tokens,
    all of them seen by those that follow."""
    mask = said.get("attention_mask")
    if getattr(mask, "ndim", 0) == 2 and any((a == 0).any() for a in see(mask).shards.values()):
        raise Error("torch_passes", "attention_mask has zeros: padded rows cannot be judged; run "
                                    "rows of equal length")
    caches = [said[name] for name in CACHES if name in said]
    if before and caches and all(cache is None or _is_empty(cache) for cache in caches):
        raise Error("torch_passes", "a pass without the cache of those before it is a second "
                                    "prompt: tap each run by itself")
    for name in ("position_ids", "positions"):
        positions = said.get(name)
        if not hasattr(positions, "shape"):
            continue
        value = see(positions)
        if any(cut.kind == "S" for cut in value.cuts or ()):
            continue  # a part of the row, whose place only the mesh says
        wanted = np.arange(before, before + length)
        for array in value.shards.values():
            if array.size % length or (array.reshape(-1, length) != wanted).any():
                raise Error("torch_passes", f"{name} are not {before} to {before + length - 1} in "
                                            "each row: rows that begin at other positions cannot "
                                            "be judged; run rows of equal length from 0")


def _is_empty(cache: Any) -> bool:
    length = cache.get_seq_length() if hasattr(cache, "get_seq_length") else None
    return isinstance(length, int) and length == 0
