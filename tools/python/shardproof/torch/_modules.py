"""Where a model under test shows the values of an architecture."""
from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ._classes import Role, role_of
from ._pattern import Part, part_of
from ._tensors import Seen

# Modules of engines that compute several of a table's at once, in this order.
FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


class Show(NamedTuple):
    """A value, the dims of the array that shows it, and which part of that it is."""

    value: str
    pattern: str
    part: Part
    path: str
    parameters: Dict[str, str]


class Place(NamedTuple):
    """A module, and the values that it is given or returns."""

    module: Any
    shows: Tuple[Show, ...]
    is_input: bool
    role: Role

    @property
    def says_sums(self) -> bool:
        """Whether it is known if the module adds partial sums of ranks: by its DTensors or its
        class. Other modules with a matrix may."""
        matrix = getattr(self.module, "weight", None)
        return (matrix is None or matrix.ndim < 2 or hasattr(matrix, "placements")
                or self.role != Role())

    def parts(self, value: Seen) -> Iterator[Tuple[Show, Seen]]:
        """The values in a tensor that was seen."""
        said = self.role.input_cuts if self.is_input else self.role.output_cuts
        value = value._replace(said=said if value.cuts is None else None)
        for number, show in enumerate(self.shows):
            yield show, show.part.of(value, self.role.parts, number)


def tensor_in(output: Any) -> Optional[Any]:
    """The tensor that a module returns, the first if it returns several."""
    if hasattr(output, "logits"):
        output = output.logits
    if isinstance(output, (tuple, list)):
        output = output[0] if output else None
    return output if hasattr(output, "shape") else None


def places(model: Any, architecture: Any) -> Tuple[List[Place], List[str]]:
    """The modules that show values, and in words those of the table that the model has not."""
    modules: Dict[str, Any] = dict(model.named_modules())
    missing: Dict[str, str] = {}
    shown = set()
    found: Dict[Tuple[str, bool], List[Tuple[int, Show]]] = {}
    for row in architecture.modules():
        name, order = _name_of(row.name, modules, row.input)
        if name is None:
            missing[row.value] = f"{row.value}: the model has no module {row.name}"
            continue
        shown.add(row.value)
        pattern, part = part_of(row.pattern, row.take, row.dims)
        words = path_in_words(row.name) + (", its input" if row.input else "")
        show = Show(row.value, pattern, part, words,
                    {} if row.input else architecture.parameters_of(row.name))
        found.setdefault((name, bool(row.input)), []).append((order, show))
    out = []
    for (name, is_input), shows in found.items():
        shows.sort(key=lambda pair: pair[0])
        module = modules[name]
        out.append(Place(module, tuple(show for _, show in shows), is_input, role_of(module)))
    return out, [line for value, line in missing.items() if value not in shown]


def _name_of(path: str, modules: Dict[str, Any], is_input: bool) -> Tuple[Optional[str], int]:
    """The module of this path in the model, with or without a prefix, or the fused one that has
    it, and its place in that."""
    for name, order in names_in_models(path).items():
        if name in modules and not (is_input and order is not None):
            return name, order or 0
    return None, 0


def names_in_models(path: str) -> Dict[str, Optional[int]]:
    """What models call a module of a map: by its path, without a prefix, and as part of a fused
    one, with its place in that."""
    names: Dict[str, Optional[int]] = {}
    for name in (path, path_in_words(path)):
        names[name] = None
        parent, _, last = name.rpartition(".")
        names.update({f"{parent}.{fused}": parts.index(last)
                      for fused, parts in FUSED.items() if last in parts})
    return names


def path_in_words(path: str) -> str:
    """A module's name as reports say it, without the model's own prefix."""
    return re.sub(r"^(model|transformer)\.", "", path)
