"""Where a model under test shows the values of an architecture."""
from __future__ import annotations

import functools
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..importing.names import Names
from ..modules import Module
from ._classes import Role, role_of
from ._pattern import Part, part_of
from ._tensors import Seen


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
        name, order = _name_of(row, modules)
        if name is None:
            missing[row.value] = f"{row.value}: the model has no module {row.name}"
            continue
        shown.add(row.value)
        pattern, part = part_of(row)
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


def _name_of(row: Module, modules: Mapping[str, Any]) -> Tuple[Optional[str], int]:
    """The module of a row in the model, or the fused one that has it, and its place in that."""
    for name, order in names_in_models(row).items():
        if name in modules:
            return name, order
    return None, 0


@functools.lru_cache(maxsize=None)
def _fused() -> Dict[str, Dict[str, int]]:
    return Names.fused()


def names_in_models(row: Module) -> Dict[str, int]:
    """What models call the module of a row: by its path, without a prefix, and if it shows what it
    returns, as part of one that engines fuse, with its place in that."""
    names: Dict[str, int] = {}
    for name in (row.name, path_in_words(row.name)):
        names[name] = 0
        for fused, places in (() if row.input else _fused().items()):
            value = row.value.rpartition(".")[2]
            if value in places:
                names[f"{name.rpartition('.')[0]}.{fused}"] = places[value]
    return names


def path_in_words(path: str) -> str:
    """A module's name as reports say it, without the model's own prefix."""
    return re.sub(r"^(model|transformer)\.", "", path)
