"""The unsharded model: its weights and every value of a run, computed exactly."""
from __future__ import annotations

import ctypes
import json
import pathlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

import numpy as np

from ._arrays import Array, as_f32, view
from ._library import Error, Handle, call, make

PathLike = Union[str, pathlib.Path]


class Weights(Mapping[str, Array]):
    """A model's weights by name, "layer0.wq": read-only arrays on the library's memory."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        told = call("weights_list", handle)
        self.model: str = told["model"]
        self._shapes: Dict[str, List[int]] = {t["name"]: t["shape"] for t in told["tensors"]}
        self.dims: Dict[str, str] = {t["name"]: t["dims"] for t in told["tensors"]}

    @classmethod
    def generate(cls, model: str = "palm-tiny", seed: int = 1) -> "Weights":
        """Those that a case of this model and seed has."""
        return cls(make("weights_generate", model, seed))

    @classmethod
    def load(cls, path: PathLike) -> "Weights":
        """Those of a weights file."""
        return cls(make("weights_load", str(path)))

    @classmethod
    def from_checkpoint(cls, model: str, map: PathLike, checkpoint: PathLike,
                        config: Optional[PathLike] = None) -> "Weights":
        """Those of a model's text, "my.model", in a directory of safetensors, by a map."""
        return cls(make("weights_import", model, str(map), str(config or ""), str(checkpoint)))

    @classmethod
    def of(cls, model: str, arrays: Mapping[str, Any]) -> "Weights":
        """These arrays, by name, which f32 must hold. Raises Error weights_name for one that is
        missing or too many, weights_shape, weights_value and weights_type."""
        tensors = {name: as_f32(name, array) for name, array in arrays.items()}
        shapes = json.dumps([{"name": n, "shape": list(a.shape)} for n, a in tensors.items()])
        data = (ctypes.c_void_p * max(len(tensors), 1))(
            *[a.ctypes.data for a in tensors.values()])
        return cls(make("weights_of", model, shapes, data))

    def save(self, path: PathLike) -> None:
        """Writes a weights file."""
        call("weights_save", self._handle, str(path))

    def __getitem__(self, name: str) -> Array:
        if name not in self._shapes:
            raise KeyError(name)
        return view(self._handle, "weights", name, self._shapes[name], np.float32)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


WeightsLike = Union[Weights, PathLike, Mapping[str, Any]]


def weights_of(model: str, given: WeightsLike) -> Weights:
    """Weights as a user gives them: made already, a file, or arrays by name."""
    if isinstance(given, Weights):
        return given
    if isinstance(given, (str, pathlib.Path)):
        return Weights.load(given)
    return Weights.of(model, given)


class Reference(Mapping[str, Array]):
    """Every value of the unsharded model in a case's run, by id, "decode.1.layer0.gate", computed
    when the first is read: read-only arrays, f32, tokens and ids int32. `weights` are a Weights, a
    file, or arrays by name; without them those of the case's seed."""

    def __init__(self, case: str, weights: Optional[WeightsLike] = None) -> None:
        told = call("case", case)
        self.case: str = told["case"]
        self.model: str = told["model"]
        self.torus: str = told["torus"]
        self._weights = None if weights is None else weights_of(self.model, weights)
        self._handle: Optional[Handle] = None
        self._values: Dict[str, Dict[str, Any]] = {}

    @property
    def weights(self) -> Weights:
        """The weights that the run has."""
        if self._weights is None:
            self._weights = Weights.generate(self.model, call("case", self.case)["seed"])
        return self._weights

    def _run(self) -> Handle:
        if self._handle is None:
            weights = None if self._weights is None else self._weights._handle
            self._handle = make("reference", self.case, weights)
            listed = call("reference_list", self._handle)["values"]
            self._values = {value["id"]: value for value in listed}
        return self._handle

    def dims(self, id: str) -> str:
        """The letters of a value's dims: "BLF"."""
        self._run()
        letters: str = self._values[id]["dims"]
        return letters

    def __getitem__(self, id: str) -> Array:
        handle = self._run()
        if id not in self._values:
            raise KeyError(id)
        value = self._values[id]
        dtype = np.int32 if value["type"] == "i32" else np.float32
        return view(handle, "reference", id, value["shape"], dtype)

    def __iter__(self) -> Iterator[str]:
        self._run()
        return iter(self._values)

    def __len__(self) -> int:
        self._run()
        return len(self._values)


__all__ = ["Error", "Reference", "Weights"]
