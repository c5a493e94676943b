"""Hugging Face's architectures as texts and maps: data in the folder of this name, no code per
architecture. A text (docs/spec-model-text.md) says what a model computes; a map
(docs/spec-model-map.md) where its sizes, weights and values are in another program."""
from __future__ import annotations

import ctypes
import json
import pathlib
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ._arrays import as_f32
from ._library import Error, call, make, make_told
from .cases import case as whole_case
from .modules import Module
from .reference import PathLike, Weights

_FOLDER = pathlib.Path(__file__).with_name("architectures")
_MOST_CONFIG = 16 << 20

ConfigLike = Union[Mapping[str, Any], str, pathlib.Path]


class Known(NamedTuple):
    """A line of architectures.txt."""

    name: str
    model_type: str
    text: str
    map: str


def _index() -> Tuple[List[Known], List[str]]:
    known, unread = [], []
    for line in (_FOLDER / "architectures.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["unread"]:
            unread += words[1:]
        elif words:
            known.append(Known(*words))
    return known, unread


def known() -> List[Known]:
    """The architectures that the package has a text and a map of."""
    return _index()[0]


def _entries(config: ConfigLike) -> Dict[str, Any]:
    if isinstance(config, Mapping):
        return dict(config)
    path = pathlib.Path(config)
    path = path / "config.json" if path.is_dir() else path
    try:
        if path.stat().st_size > _MOST_CONFIG:
            raise Error("model_map_f3", f"{path}: it has more than {_MOST_CONFIG} bytes")
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise Error("model_map_f3", f"{path}: it cannot be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise Error("model_map_f3", f"{path}: it is not a JSON object")
    return found


def _find(entries: Mapping[str, Any]) -> Known:
    names = entries.get("architectures")
    name = names[0] if isinstance(names, Sequence) and len(names) > 0 else None
    kind = entries.get("model_type")
    all_known = known()
    for one in all_known:
        if name == one.name or (name is None and kind == one.model_type):
            return one
    asked = name if name is not None else kind
    raise Error(
        "architecture_unknown",
        f"the config is of {asked!r}, and known are {', '.join(one.name for one in all_known)}; "
        "give a text and a map of your own: Architecture.of(config, text='my.model', map='my.map')")


class Architecture:
    """A model of Hugging Face as a text in the sizes of its config.

        arch = Architecture.of("path/to/model")
        case = arch.case(torus="2x2x2", batch=2, prompt=8, gen=2)
        reference = Reference(case, arch.weights("path/to/model"))
        arch.values_of("model.layers.0.self_attn.q_proj")     # [Module(value="layer0.q", ...)]
    """

    def __init__(self, text: str, map: str, config: Mapping[str, Any], name: str = "own",
                 **sizes: Any) -> None:
        keys = "".join(f",{key}={value}" for key, value in sizes.items())
        try:
            said = json.dumps(config, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise Error("model_map_f3", f"the config is not JSON: {error}") from None
        self._handle = make("mapped", f"{name}.model{keys}\n{text}", map, said)
        told = call("mapped_list", self._handle)
        self.name = name
        self.model: str = told["model"]
        self.layers: int = told["layers"]
        self.extents: Dict[str, int] = told["extents"]
        #: The names of the tensors that the map reads.
        self.tensors = frozenset(told["tensors"])
        self._sources = re.findall(r"^(\w+) < (\S+)", map, re.M)
        self._experts = [re.compile(re.escape(n).replace(re.escape("{x}"), "[0-9]+"))
                         for n in self.tensors if "{x}" in n]
        self._modules = [Module(**module) for module in told["modules"]]
        neutral = _index()[1]
        #: Entries of the config that no line of the map reads, which may say what the text has not.
        self.unread: Dict[str, Any] = {n: config[n] for n in told["unread"] if n not in neutral}

    @classmethod
    def of(cls, config: ConfigLike, *, text: Optional[PathLike] = None,
           map: Optional[PathLike] = None, **sizes: Any) -> "Architecture":
        """That of a config: its entries, a config.json, or a directory with one. `text` and `map`
        are files of your own; `sizes` take the place of what the config says, P=64. Raises Error
        architecture_unknown, and model_map_c2 for an entry that the map needs and the config lacks,
        model_map_c7 for one that says another model than the text's."""
        entries = _entries(config)
        if (text is None) != (map is None):
            raise Error("architecture_unknown", "a text of your own needs a map, and a map a text")
        if text is not None and map is not None:
            return cls(pathlib.Path(text).read_text(), pathlib.Path(map).read_text(), entries,
                       re.sub(r"[^\w.-]", "_", pathlib.Path(text).stem), **sizes)
        one = _find(entries)
        return cls((_FOLDER / one.text).read_text(), (_FOLDER / one.map).read_text(), entries,
                   one.map[:-len(".map")], **sizes)

    def case(self, torus: str = "1x1x1", batch: int = 1, prompt: int = 1, gen: int = 1,
             **more: Any) -> str:
        """The line of a case of this model, with the model's text behind it, as Trace and Reference
        take it; `more` are further keys, act="bf16"."""
        model, text = self.model.split("\n", 1)
        keys = {"torus": torus, "model": model, "batch": batch, "prompt": prompt, "gen": gen, **more}
        line = " ".join(f"{key}={value}" for key, value in keys.items())
        return whole_case(f"{line}\n{text}")

    def weights(self, tensors: Union[PathLike, Mapping[str, Any]]) -> Weights:
        """The weights, of safetensors (a file or a directory) or of arrays by the checkpoint's
        names, as state_dict() has them. Tables such as RoPE's are computed from the config. Raises
        Error model_map_c4 for one that is missing, and architecture_tensors for tensors that no
        weight of the text has, which are named: a bias that the config does not say."""
        if isinstance(tensors, Mapping):
            names, data, arrays = self._given(tensors)
            handle, told = make_told("mapped_weights", self._handle, names, data)
            del arrays  # which `data` points to
        else:
            handle, told = make_told("mapped_files", self._handle, str(tensors))
        if told["unread"]:
            few = ", ".join(told["unread"][:6])
            more = f" and {len(told['unread']) - 6} more" if len(told["unread"]) > 6 else ""
            raise Error("architecture_tensors",
                        f"no weight of {self.name} has the tensors {few}{more}: the config is of "
                        "another model, or the map lacks them (ignore TENSOR says that one is no "
                        "weight)")
        return Weights(handle)

    def _given(self, tensors: Mapping[str, Any]) -> Tuple[str, Any, Any]:
        """The arrays that the map reads; all others by name alone."""
        arrays = {name: as_f32(name, value) if self._reads(name) else np.zeros(0, np.float32)
                  for name, value in tensors.items()}
        told = json.dumps([{"name": n, "shape": list(a.shape)} for n, a in arrays.items()])
        data = (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays.values()])
        return told, data, arrays

    def _reads(self, name: str) -> bool:
        return name in self.tensors or any(e.fullmatch(name) for e in self._experts)

    def modules(self) -> List[Module]:
        """The modules that show values, in the order of the text's lines."""
        return list(self._modules)

    def module_of(self, value: str) -> Optional[Module]:
        """The module that shows a value, "layer0.q"; None if none does."""
        return next((m for m in self._modules if m.value == value), None)

    def parameters_of(self, module: str) -> Dict[str, str]:
        """The weights that are a module's own parameters: {"bo": "bias"} of an o_proj."""
        pattern = re.sub(r"\.\d+\.", ".{n}.", module)
        return {weight: tensor[len(pattern) + 1:] for weight, tensor in self._sources
                if tensor.rpartition(".")[0] == pattern}

    def values_of(self, module: str) -> List[Module]:
        """What a module shows: its output, of a fused one several values, or its input."""
        return [m for m in self._modules if m.name == module]


__all__ = ["Architecture", "Known", "Module", "known"]
