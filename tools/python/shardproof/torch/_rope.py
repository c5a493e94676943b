"""RoPE's tables as PyTorch computes them in f32, where that is what the config says.

The architecture's tables are the config's, computed in f64. A library multiplies positions by
frequencies in f32, so that its angles are off by their rounding, which grows with the position: no
fault, but more than what a judge of exact tables allows. So the library's numbers are taken where
they differ from the config's by no more than that, and nowhere else: another theta never passes."""
from __future__ import annotations

import re
from typing import Any, Dict, Iterator, Mapping, Tuple

import numpy as np

from .._arrays import Array
from ..reference import Weights
from ._tensors import ALL, seen

# Angles are products of two rounded factors; a frequency's power has a few units more.
_ANGLE, _VALUE = 2.0 ** -21, 2.0 ** -23


def in_f32(weights: Weights, text: str, model: Any) -> Weights:
    """The weights with the tables that a model's classes compute in f32 from its config, if there
    is a model."""
    if model is None:
        return weights
    names = [re.findall(rf"^weight (\w+) : PQ is {kind} .*$", text, re.M)
             for kind in ("cosines", "sines")]
    pairs = [(cos, sin) for cos, sin in zip(*names) if cos in weights and sin in weights]
    new: Dict[str, Array] = {}
    for cos, sin in pairs:
        exact = weights[cos], weights[sin]
        for tables in _tables(model, len(exact[0])):
            given = [_widened(table, exact[0].shape[1], is_cos)
                     for table, is_cos in zip(tables, (True, False))]
            if _is_rounding(exact, given):
                new[cos], new[sin] = given
                break
    return Weights.of(weights.model, {**dict(weights), **new}) if new else weights


def _is_rounding(exact: Tuple[Array, Array], given: Any) -> bool:
    """Whether tables are the exact ones but for the rounding of angles in f32."""
    cos, sin = (table.astype(np.float64) for table in exact)
    frequency = np.arctan2(sin[1:2], cos[1:2]) if len(cos) > 1 else np.zeros_like(cos[:1])
    angles = np.arange(len(cos))[:, None] * np.abs(frequency)
    allowed = (angles * _ANGLE + _VALUE) * max(1.0, float(np.abs(cos).max()))
    return all(one.shape == table.shape and bool((np.abs(one - table) <= allowed).all())
               for one, table in zip(given, (cos, sin)))


def _widened(table: Array, width: int, is_cos: bool) -> Array:
    """[P, Q] of a table of the rotated channels; the others are not turned."""
    rest = np.full((len(table), max(0, width - table.shape[1])), 1 if is_cos else 0, np.float32)
    return np.concatenate([table, rest], 1)


def _tables(model: Any, rows: int) -> Iterator[Tuple[Array, Array]]:
    """Cosines and sines of each kind of RoPE that the model's classes compute from its config."""
    import torch

    for kind in dict.fromkeys(type(m) for m in model.modules()
                              if type(m).__name__.endswith("RotaryEmbedding")):
        kinds = dict.fromkeys(getattr(model.config, "layer_types", None) or [])
        for options in [{}, *({"layer_type": of} for of in kinds)]:
            try:
                made = kind(model.config)
                found = made(torch.zeros(1, 1), torch.arange(rows)[None], **options)
                first, second = (_rows(table) for table in found)
            except Exception:  # a class of other arguments: then the config's tables stay
                continue
            yield first, second
            # GPT-J gives sines first, and one column for each pair of neighbours.
            yield np.repeat(second, 2, 1), np.repeat(first, 2, 1)


def _rows(tensor: Any) -> Array:
    shards: Mapping[int, Array] = seen(tensor, None, ALL).shards
    rows: Array = next(iter(shards.values()))[0].astype(np.float32)
    return rows
