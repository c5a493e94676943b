"""Modules of a model under test that its architecture's text does not have: adapters, further
norms, gates. Needs no torch."""
from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Set

from ._modules import names_in_models, path_in_words

# Classes without a parameter that compute what a text writes as functions, or nothing, and those
# derived from them: by the file that defines them, or by the end of their name.
_FUNCTION_FILES = ("torch.nn.modules.activation", "torch.nn.modules.dropout",
                   "transformers.activations")
_FUNCTION_ENDS = re.compile("(Identity|Dropout|RotaryEmbedding|Attention|AndMul|ReLU|GELU|SiLU|"
                            "Activation|LogitsProcessor|Sampler)$")
_LISTS = ("ModuleList", "ModuleDict")


def unknown_modules(model: Any, architecture: Any) -> Dict[str, Any]:
    """The outermost modules that no line of the architecture's map names, by name. Those that
    only hold modules of the map are none, nor are functions: activations, dropout, RoPE's tables,
    attention itself."""
    paths = {tensor.rpartition(".")[0] for tensor in architecture.tensors}
    known = paths | {path_in_words(path) for path in paths}
    known |= {name for row in architecture.modules() for name in names_in_models(row)}
    holders = {path[:at] for path in known for at in range(len(path)) if path[at] == "."}
    out: Dict[str, Any] = {}
    _walk(model, "", known, holders, out)
    return out


def is_in(path: str, modules: Mapping[str, Any]) -> bool:
    """Whether a path is of one of these modules, or of what is in one."""
    return any(path == name or path.startswith(name + ".") for name in modules)


def _walk(module: Any, path: str, known: Set[str], holders: Set[str], out: Dict[str, Any]) -> None:
    for name, child in module.named_children():
        at = f"{path}.{name}" if path else name
        if at in holders or (at not in known and type(child).__name__ in _LISTS):
            _walk(child, at, known, holders, out)
        elif at in known:
            _add_inner(child, at, out)
        elif not _is_function(child):
            out[at] = child


def _add_inner(module: Any, path: str, out: Dict[str, Any]) -> None:
    """Adds what is in a module that the map names as one. If it has no parameter of its own, it
    wraps another, which is the first in it that has one."""
    inner = [(name, child) for name, child in module.named_children() if not _is_function(child)]
    if not dict(module.named_parameters(recurse=False)):
        wrapped = next((pair for pair in inner if any(True for _ in pair[1].parameters())), None)
        inner = [pair for pair in inner if pair is not wrapped]
    out.update({f"{path}.{name}": child for name, child in inner})


def _is_function(module: Any) -> bool:
    if any(True for _ in module.parameters()):
        return False
    if type(module).__name__ == "Sequential":
        return all(_is_function(child) for child in module.children())
    return any(base.__module__.startswith(_FUNCTION_FILES) or _FUNCTION_ENDS.search(base.__name__)
               for base in type(module).__mro__)
