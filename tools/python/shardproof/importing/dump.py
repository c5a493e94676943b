"""A directory of a dump as the values of a case's run, one after another."""
from __future__ import annotations

import pathlib
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from .._arrays import Array
from .._library import Error
from .._reports import Left
from .arrange import arrange
from .arrays import FileArray
from .folders import Files, Record, records_of
from .limits import refuse
from .mesh import Chip, Info, Mesh, mesh_of, mesh_of_torus
from .names import RUN_VALUES, Match, Names, module_of
from .steps import Given, Step, steps_of

# A pass that a line of names says itself, as a step: decodes come behind all prefills.
_DECODES = 1 << 30
_SECOND = (".output.1", ".outputs.1", ".inputs.1")
_SILENT = 16  # files of a rank without parallel info, after which none is asked any more
_NO_LINE = "no line of names has it; give --names FILE"


class Item(NamedTuple):
    """What one chip holds of a value, or, without a chip, all of them."""

    name: str
    array: Array
    layout: Optional[str]
    chip: Optional[Chip]
    attributes: Mapping[str, str]
    module: str = ""        # what the dump calls it
    is_input: bool = False  # whether it is what that module is given


class Group(NamedTuple):
    """The records of one value in one step, by rank."""

    step: int
    match: Match
    records: Dict[int, Record]


def _infos(meta: Mapping[str, Any], places: Mapping[str, int]) -> Dict[str, Tuple[int, int]]:
    """Parallel axes of a rank: {"tp": (1, 4)}."""
    said: Dict[str, Any] = dict(places)
    for key, value in meta.items():
        if str(key).endswith("parallel_info") and isinstance(value, dict):
            said.update(value)
    out: Dict[str, Tuple[int, int]] = {}
    for key, at in said.items():
        if str(key).endswith("_rank") and type(at) is int:
            axis = str(key)[:-len("_rank")]
            size = said.get(axis + "_size")
            if type(size) is int and axis not in ("world", "local"):
                out[axis] = (at, size)
    return out


def _own_pass(value: str) -> Tuple[Optional[int], str]:
    """The step of a value that says its pass, and the value without it."""
    words = value.split(".", 2)
    if len(words) == 3 and words[0] == "prefill" and words[1][:1] == "c" and words[1][1:].isdigit():
        return int(words[1][1:]), words[2]
    if len(words) == 3 and words[0] == "decode" and words[1].isdigit():
        return _DECODES + int(words[1]), words[2]
    return None, value


class Dump:
    """What was found in a directory. `left` grows while items() reads."""

    def __init__(self, directory: pathlib.Path, names: Names, torus: Optional[str] = None,
                 ids: Optional[Sequence[Sequence[int]]] = None, kv_heads: Optional[int] = None,
                 steps: Optional[Tuple[int, int]] = None, logits_of_all: bool = False) -> None:
        self.left: List[Left] = []
        self.files = Files()
        self.owners: Dict[str, Dict[Chip, Array]] = {}
        self.stages: Dict[str, int] = {}
        self.logits_of_all = logits_of_all  # whether the model's logits have all positions
        self._names = names
        self._groups: Dict[Tuple[int, str], Group] = {}
        self._places: Dict[int, Dict[str, int]] = {}
        records: Dict[int, List[Record]] = {}
        self._requests: Dict[int, List[Any]] = {}
        self._second: Dict[Tuple[int, str], Dict[int, Record]] = {}
        for record in records_of(directory, self.files, self.left):
            if steps is not None and not steps[0] <= record.step <= steps[1]:
                continue
            records.setdefault(record.rank, []).append(record)
            self._places.setdefault(record.rank, dict(record.places))
            self._group(record)
        self._pairs()
        if not self._groups:
            such = next(iter(records.values()))[0].name if records else "none"
            refuse("import_names", f"no line of names has any of the arrays of {directory}, such "
                                   f"as {such}; "
                                   "give --names FILE, or the --model that they are of")
        self.mesh = self._mesh(records, torus, kv_heads)
        self._missing()
        self.steps = self._steps(ids)

    def _group(self, record: Record) -> None:
        matches = self._names.matches(record.name, record.layer)
        if not matches and record.name.endswith(_SECOND):
            self._second.setdefault((record.step, record.name), {})[record.rank] = record
        elif not matches:
            self.left.append(Left(record.what, _NO_LINE, False))
        for match in matches:
            if not match.value:
                continue
            own, value = _own_pass(match.value)
            if "{?}" in value:
                self.left.append(Left(record.what, f"its name says no layer, and "
                                                   f"{match.line.where} wants {match.line.value}"))
                continue
            step = record.step if own is None else own
            group = self._groups.setdefault((step, value), Group(
                step, Match(value, match.line), {}))
            other = group.records.get(record.rank)
            if other is not None and value in RUN_VALUES and other.name != record.name:
                if match.line.where != group.match.line.where:
                    continue  # extend_seq_lens and seq_lens: the first line of names wins
            if other is not None:
                group.records[-1] = other
                self.left.append(Left(record.what, f"two files for one value, {other.path.name} "
                                                   f"and {record.path.name}; keep one of them"))
                continue
            group.records[record.rank] = record

    def _pairs(self) -> None:
        """Layers of engines return what their last module adds, and the residual stream beside it,
        and their norms take both: the sum is the layer's output, and what the norm is of."""
        for (step, value), group in list(self._groups.items()):
            first = next(iter(group.records.values()))
            short = value.rpartition(".")[2]
            if short not in ("out", "mid") or not first.name.endswith(".0"):
                continue
            second = self._second.pop((step, first.name[:-1] + "1"), None)
            if second is None:
                continue
            del self._groups[step, value]
            for suffix, records in (("_added", group.records), ("_residual", second)):
                line = group.match.line._replace(attributes={"summand_of": short})
                name = value + suffix
                self._groups[step, name] = Group(step, Match(name, line), records)
        for records in self._second.values():
            self.left += [Left(record.what, _NO_LINE, False) for record in records.values()]

    def _info(self, records: Sequence[Record], places: Mapping[str, int]) -> Info:
        """The parallel axes that the first record says that can be read and says any."""
        silent = 0
        for record in records:
            try:
                _, meta = self.files.value(record)
            except Error:
                continue
            info = _infos(meta, {})
            silent += not info
            if info or silent == _SILENT:
                return {**_infos({}, places), **info}
        return _infos({}, places)

    def _mesh(self, records: Mapping[int, Sequence[Record]], torus: Optional[str],
              kv_heads: Optional[int]) -> Mesh:
        ranks = sorted(records)
        if torus is not None:
            return mesh_of_torus(torus, ranks)
        infos: Dict[int, Info] = {}
        for rank in records:
            places = dict(records[rank][0].places)
            for key in list(places):
                if key.endswith("_rank"):
                    places.setdefault(key[:-5] + "_size", 1 + max(
                        p.get(key, 0) for p in self._places.values()))
            infos[rank] = self._info(records[rank], places)
        if len(ranks) > 1 and not any(size > 1 for i in infos.values() for _, size in i.values()):
            infos = {rank: {"tp": (rank, max(ranks) + 1)} for rank in ranks}
        return mesh_of(infos, kv_heads)

    def _missing(self) -> None:
        """Lists the chips of which there is no rank."""
        x, y, z = map(int, self.mesh.torus.split("x"))
        for stage in sorted(set(self.mesh.stages.values())):
            for i, j, k in np.ndindex(x, y, z):
                chip = (i, j, k)
                if self.mesh.rank(stage, chip) is None:
                    where = ", ".join(f"{axis} {self.mesh.block(chip, letters)}"
                                      for axis, letters in self.mesh.axes.items() if letters)
                    self.left.append(Left(f"the rank at {where}", "it has no file in the "
                                          "directory; its part of every value is not judged: copy "
                                          "it there"))

    def _arrays(self, group: Group) -> Tuple[Dict[int, FileArray], Optional[str]]:
        """The arrays of a group's ranks, and their dims."""
        arrays: Dict[int, FileArray] = {}
        said: Dict[Optional[str], int] = {}
        if -1 in group.records:
            refuse("import_run", "two files for one value; keep one of them")
        for rank, record in sorted(group.records.items()):
            value, meta = self.files.value(record)
            if isinstance(value, (list, tuple)) and len(value) and all(
                    type(n) in (int, bool) for n in value):
                value = _numbers(record.what, value)
            if not isinstance(value, FileArray):
                refuse("import_type", f"{record.path.name} holds {type(value).__name__}; legal: a "
                                      "tensor")
            arrays[rank] = value
            dims = meta.get("dims")
            said.setdefault(dims if isinstance(dims, str) else None, rank)
        if group.match.line.dims is not None:
            return arrays, group.match.line.dims
        if len(said) > 1:
            (one, a), (other, b) = list(said.items())[:2]
            refuse("import_dims", f"rank {a} says the dims {one!r}, rank {b} {other!r}; say one")
        return arrays, next(iter(said))

    def _require_rows(self, step: int, group: Group) -> None:
        """Notes which requests the rows of a step are."""
        record = group.records[min(r for r in group.records if r >= 0)]
        try:
            value, _ = self.files.value(record)
            found = value.load().tolist() if isinstance(value, FileArray) else value
        except Error:
            return
        if isinstance(found, (list, tuple)) and all(isinstance(n, (str, int)) for n in found):
            self._requests[step] = list(found)

    def _other_rows(self) -> Dict[int, str]:
        first = self._requests[min(self._requests)] if self._requests else []
        return {step: "its rows are other requests than the first step's, or in another order"
                for step, rows in self._requests.items() if rows != first}

    def _steps(self, ids: Optional[Sequence[Sequence[int]]]) -> Dict[int, Step]:
        given: Dict[int, Dict[str, Given]] = {}
        for (step, value), group in self._groups.items():
            given.setdefault(step, {})
            if value == "rows":
                self._require_rows(step, group)
            elif value in RUN_VALUES:
                try:
                    given[step][value] = Given(*self._arrays(group))
                except Error as error:
                    self.left.append(Left(f"{value} (step {step})", error.message))
        steps, left = steps_of(given, self.mesh, ids, self._other_rows())
        for step, why in left.items():
            self.left.append(Left(f"step {step}", why))
        return steps

    def types(self, most: int = 200) -> Iterator[str]:
        """The element types of the first so many values."""
        values = [g for (_, value), g in self._groups.items() if value not in RUN_VALUES]
        for group in values[:most]:
            try:
                arrays, _ = self._arrays(group)
            except Error:
                continue
            name = next(iter(arrays.values())).dtype.name
            yield "bfloat16" if name == "uint16" else name

    def items(self, extents: Mapping[str, int]) -> Iterator[Item]:
        """The values of the dump's passes, one chip after another, in the order of the run. What
        cannot be put in order is listed in `left`."""
        by_step: Dict[int, List[Tuple[str, Group]]] = {}
        for (number, value), group in self._groups.items():
            if value not in RUN_VALUES:
                by_step.setdefault(number, []).append((value, group))
        for number, step in self.steps.items():
            if step.ids is not None:
                yield Item(f"{step.name}.ids", step.ids, None, None, {})
            for value, group in by_step.get(number, ()):
                yield from self._items(step, value, group, extents)

    def _items(self, step: Step, value: str, group: Group, extents: Mapping[str, int]
               ) -> Iterator[Item]:
        name = f"{step.name}.{value}"
        try:
            arrays, dims = self._arrays(group)
            pattern = group.match.line.pattern
            if pattern is None:
                refuse("import_names", f"{group.match.line.where} has no axes; say {value} BLE")
            stages = {self.mesh.stages[rank] for rank in arrays}
            if len(stages) > 1:
                refuse("import_mesh", f"pipeline stages {sorted(stages)} all have it; keep one")
            found = arrange(arrays, pattern, dims, step.rows, self.mesh, extents,
                            value == "logits")
            attributes = {**found.attributes, **group.match.line.attributes}
            short = value.rpartition(".")[2]
            if attributes.pop("last", None) or (short == "logits" and self.logits_of_all):
                attributes.setdefault("meaning", f"last {short}")
            module, is_input = module_of(next(iter(group.records.values())).name)
            self.stages[name] = stages.pop()
            self.owners[name] = found.owners
            chips = self.mesh.size("xyz")
            if "partialsum" in found.layout and len(arrays) < chips:
                refuse("import_mesh", f"{len(arrays)} of {chips} ranks have it, and it is their "
                                      "sum; dump all")
            for chip, array in found.shards:
                yield Item(name, _judged(array, value), found.layout, chip, attributes, module,
                           is_input)
            self._absent(name, set(arrays))
        except Error as error:
            self.left.append(Left(name, error.message))
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            self.left.append(Left(name, f"its arrays do not fit the step: {error}"))


    def _absent(self, name: str, ranks: Set[int]) -> None:
        """Lists the ranks of a value's stage that have files, and none of the value."""
        stage = self.stages[name]
        absent = [r for r, at in sorted(self.mesh.stages.items()) if at == stage and r not in ranks]
        if absent:
            who = f"rank {absent[0]} has" if len(absent) == 1 else (
                f"ranks {in_short(absent)} have")
            self.left.append(Left(name, f"{who} no file of it, and their part is not "
                                        "judged; dump it on all of them"))


def in_short(numbers: Sequence[int]) -> str:
    """Ascending numbers in short: "0-3, 6"."""
    out: List[List[int]] = []
    for n in numbers:
        if out and n == out[-1][-1] + 1:
            out[-1].append(n)
        else:
            out.append([n])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in out)


def _numbers(what: str, value: Sequence[int]) -> FileArray:
    """A list of numbers as an array."""
    if not all(-2**62 < n < 2**62 for n in value):
        refuse("import_type", f"{what} has a number of more than 62 bits")
    array = np.array(value, np.int64)
    return FileArray(what, array.shape, array.dtype, lambda: array)


def _judged(array: Array, value: str) -> Array:
    """The array as it is judged: words of bf16 as numbers, ids as int32."""
    if value == "token" or value.endswith(".token") or value == "ids":
        return array.astype(np.int32)
    if array.dtype == np.uint16:
        import ml_dtypes
        return np.ascontiguousarray(array).view(ml_dtypes.bfloat16)
    if array.dtype.itemsize == 1 and array.dtype.kind == "V":
        return array.astype(np.float32)
    return array
