"""What judging a model of transformers needs: its architecture, its weights, a case."""
from __future__ import annotations

import json
import pathlib
import re
from typing import Any, Dict, List, Mapping, Tuple, Union

import numpy as np

from .._arrays import Array
from .._library import Error
from ..architectures import Architecture
from ..reference import Weights
from ._rope import in_f32
from ._tensors import ALL, seen
from ._unknown import is_in, unknown_modules


class Reference:
    """The unsharded model that a run is judged by. `given` are entries of the config that no text
    has: they are listed, and what they do is not judged. `dtype` is that of its values, "f32" or
    "bf16"."""

    def __init__(self, architecture: Architecture, weights: Weights, dtype: str,
                 config: Mapping[str, Any]) -> None:
        self.architecture = architecture
        self.weights = weights
        self.dtype = dtype
        self.config = dict(config)

    def __getstate__(self) -> Dict[str, Any]:
        return {"dtype": self.dtype, "config": self.config,
                "arrays": {name: np.array(array) for name, array in self.weights.items()}}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.dtype, self.config = state["dtype"], state["config"]
        self.architecture = Architecture.of(self.config)
        self.weights = Weights.of(self.architecture.model, state["arrays"])

    @property
    def attributes(self) -> Dict[str, str]:
        """What a trace of it declares: how transformers rounds."""
        return {"weights": "file", **({"rounding": "hf"} if self.dtype == "bf16" else {})}

    @property
    def given(self) -> List[str]:
        """The entries of the config that no text has."""
        return [f"{name} = {value!r}" for name, value in self.architecture.unread.items()]

    def has(self, value: str) -> bool:
        """Whether the text has a value of this name in a layer."""
        return re.search(rf"^{value} : ", self.architecture.model, re.M) is not None

    def case(self, **keys: Any) -> str:
        """A case of this model: torus, batch, prompt, chunk, gen."""
        types: Dict[str, Any] = {}
        if self.dtype == "bf16":
            types = {"act": "bf16", "weights": "bf16"}
        return str(self.architecture.case(**keys, **types))


def reference(model: Union[str, pathlib.Path, Any]) -> Reference:
    """The reference of a model of transformers, or of a directory with config.json and
    safetensors. Take it before the model is cut: its weights are copied, but those of modules that
    the architecture's text does not have. RoPE's tables are the config's, never the model's
    (_rope.py)."""
    if isinstance(model, (str, pathlib.Path)):
        return _of_directory(pathlib.Path(model))
    config = model.config.to_dict()
    config.setdefault("architectures", [type(model).__name__])
    config["architectures"] = config["architectures"] or [type(model).__name__]
    architecture = Architecture.of(config)
    tensors, dtype = _tensors(model, unknown_modules(model, architecture))
    weights = in_f32(architecture.weights(tensors), architecture.model, model)
    return Reference(architecture, weights, dtype, config)


def _tensors(model: Any, unknown: Mapping[str, Any]) -> Tuple[Dict[str, Array], str]:
    """A model's, but for those of modules that its text does not have; and their type."""
    import torch

    formats = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
    tensors: Dict[str, Array] = {}
    types = set()
    for name, tensor in model.state_dict().items():
        if is_in(name, unknown):
            continue
        if hasattr(tensor, "placements"):
            raise Error("torch_reference", f"{name} is cut already: take the reference before the "
                                           "model is made parallel")
        if tensor.is_meta:
            raise Error("torch_reference", f"{name} has no numbers, it is on the device meta: load "
                                           "the weights first")
        if tensor.is_floating_point():
            if tensor.dtype not in formats:
                raise Error("torch_dtype", f"{name} is {tensor.dtype}; legal: float32, bfloat16")
            types.add(formats[tensor.dtype])
            tensors[name] = _alike(name, tensor)
    if len(types) != 1 or types == {"f16"}:
        raise Error("torch_dtype", f"weights of {', '.join(sorted(types)) or 'no type'}; legal: "
                                   "all float32, or all bfloat16")
    return tensors, types.pop()


def _alike(name: str, tensor: Any) -> Array:
    """The numbers of a weight, which all simulated ranks must have alike."""
    shards = list(seen(tensor, None, ALL).shards.values())
    if any(shard.tobytes() != shards[0].tobytes() for shard in shards):
        raise Error("torch_reference", f"{name} differs from rank to rank: seed the ranks alike, "
                                       "or take the reference before they begin")
    return shards[0]


def _of_directory(folder: pathlib.Path) -> Reference:
    architecture = Architecture.of(folder)
    config = json.loads((folder / "config.json").read_bytes())
    word = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    dtype = {"float32": "f32", "bfloat16": "bf16"}.get(word)
    if dtype is None:
        raise Error("torch_dtype", f"{folder}/config.json: dtype {word}; legal: float32, bfloat16")
    weights = in_f32(architecture.weights(folder), architecture.model, _empty(folder))
    return Reference(architecture, weights, dtype, config)


def _empty(folder: pathlib.Path) -> Any:
    """The model of a directory without its numbers, for its classes; code in it is not run. None
    if this transformers does not read it."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config)
    except (OSError, ValueError, KeyError):
        return None
