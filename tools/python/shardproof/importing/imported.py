"""read(): a directory of a dump becomes a trace."""
from __future__ import annotations

import collections
import pathlib
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from .._library import Error, call
from .._reports import Left
from ..architectures import Architecture
from ..layouts import Layout
from ..reference import Weights, WeightsLike, weights_of
from ..trace import EN_DASH, Trace, Verdict, judge
from .dump import Dump, Item, in_short
from .limits import PathLike, refuse
from .names import Names
from .save import save_npz
from .steps import keys_of, read_ids

# Strategies, of which the first is taken that the torus and the model allow: a case line has one,
# and nothing that is judged depends on it.
_STRATEGIES = ("ws2d:heads", "ws1d:heads", "ws2d:few-heads", "ws2d:batch", "ws1d:batch", "dp",
               "fsdp", "wg-xyz:natural")


class _Model:
    """The model that a dump is of: a directory of Hugging Face, or a model of the case line."""

    def __init__(self, model: str, weights: Optional[WeightsLike]) -> None:
        self.architecture: Optional[Architecture] = None
        self._text, self._weights = model, weights
        path = pathlib.Path(model)
        if path.is_dir():
            self.architecture = Architecture.of(path)
            self._weights = path if weights is None else weights
        elif path.suffix == ".json":
            self.architecture = Architecture.of(path)
        self._loaded: Optional[Weights] = None

    def names(self) -> Names:
        if self.architecture is None:
            return Names([])
        return Names.of_modules(self.architecture.modules())

    def weights(self) -> Weights:
        if self._loaded is None:
            given = self._weights
            if self.architecture is not None and isinstance(given, (str, pathlib.Path)) \
                    and (pathlib.Path(given).is_dir() or str(given).endswith(".safetensors")):
                self._loaded = self.architecture.weights(given)
            elif given is not None:
                self._loaded = weights_of(self._text, given)
            else:
                self._loaded = Weights.generate(self._text)
        return self._loaded

    def parameters(self, module: str) -> Dict[str, str]:
        """What the program calls the weights of a module: {"bo": "bias"}."""
        return {} if self.architecture is None else dict(self.architecture.parameters_of(module))

    @property
    def given(self) -> bool:
        """Whether the weights are others than the case's own."""
        return self._weights is not None

    def extents(self) -> Dict[str, int]:
        if self.architecture is not None:
            return dict(self.architecture.extents)
        weights = self.weights()
        return {letter: n for name in weights for letter, n in
                zip(weights.dims[name], weights[name].shape)}

    def line(self, keys: Mapping[str, str]) -> str:
        if self.architecture is not None:
            return self.architecture.case(**keys)  # type: ignore[arg-type]
        text = " ".join(f"{k}={v}" for k, v in keys.items())
        return str(call("case", f"model={self._text} {text}")["case"])


class Imported:
    """A dump as a trace. `left_out` are the arrays that are not judged, with the reason; `case` is
    the line of the run."""

    def __init__(self, dump: Dump, model: _Model, case: Mapping[str, str]) -> None:
        self._dump, self._model = dump, model
        self._extents = model.extents()
        self._types: Dict[str, int] = {}
        self.case, self.attributes = self._case(case)
        self._trace: Optional[Trace] = None
        self._values: Set[str] = set()      # names that the trace has
        self._failed: List[Left] = []       # what the trace, or a file of it, does not take

    @property
    def left_out(self) -> List[Left]:
        """Complete once the trace was made. What several readings find is there once."""
        return list(dict.fromkeys(self._dump.left + self._failed))

    @property
    def unread(self) -> List[str]:
        """Entries of the config that no line of the map reads, which may say what the text has
        not."""
        architecture = self._model.architecture
        return [] if architecture is None else sorted(architecture.unread)

    @property
    def ranks(self) -> Dict[Tuple[int, int, int], int]:
        """The rank of the dump that sits at each chip, of the first pipeline stage."""
        return {chip: rank for (stage, chip), rank in self._dump.mesh.ranks.items() if stage == 0}

    def items(self) -> Iterator[Item]:
        """What goes into the trace, one chip of one value after another."""
        return self._dump.items(self._extents)

    def rank(self, name: str, chip: Sequence[int], index: Sequence[int] = ()) -> Optional[int]:
        """The rank of the dump that gave an element of a value at a chip: where tokens lie
        scattered over ranks, the one that had the element's row and position."""
        at = (chip[0], chip[1], chip[2])
        name = name.split("+")[0]  # of a value in two parts
        owner = self._dump.owners.get(name, {}).get(at)
        if owner is not None and len(index) >= owner.ndim:
            found = int(owner[tuple(index[:owner.ndim])])
            return None if found < 0 else found
        return self._dump.mesh.rank(self._dump.stages.get(name, 0), at)

    def ranks_of(self, verdict: Verdict) -> List[int]:
        """The ranks of the dump that gave wrong elements of the first divergence: those of the
        chips that hold them; where tokens lie scattered, of the first and the worst element and of
        positions that are wrong in all rows."""
        first = verdict.json["first"]
        if first is None:
            return []
        name, ranks = first["name"].split("+")[0], set()  # type: Tuple[str, Set[Optional[int]]]
        owners = self._dump.owners.get(name, {})
        positions = (first.get("exactly") or {}).get("L", [])
        for part in first.get("parts", []):
            at = _chip(part["chip"])
            if at in owners:
                ranks.update(int(r) for n in positions for r in owners[at][..., n].flat if r >= 0)
            else:
                ranks.add(self.rank(name, at))
        wrong = [_chip(part["chip"]) for part in first.get("parts", [])]
        cut = "".join(Layout(first["layout"]).axes.values()) if owners else ""
        for element in (first.get("first"), first.get("worst")):
            if element and element.get("chip") and owners:
                chip = _chip(element["chip"])
                ranks.update(self.rank(name, at, element["index"]) for at in {chip, *wrong}
                             if all(at["xyz".index(a)] == chip["xyz".index(a)] for a in cut))
        return sorted(r for r in ranks if r is not None)

    def sentence(self, verdict: Verdict) -> str:
        """The verdict's sentence, with the ranks of the dump."""
        return self._with_ranks(verdict, verdict.sentence, "-")

    def headline(self, verdict: Verdict) -> str:
        """The sentence in the dump's own words: ranks, module and cause."""
        return self._with_ranks(verdict, verdict.headline, EN_DASH)

    def _with_ranks(self, verdict: Verdict, text: str, dash: str) -> str:
        ranks = self.ranks_of(verdict)
        if not ranks or ranks == verdict.ranks:
            return text
        word = "rank" if len(ranks) == 1 else "ranks"
        told = in_short(ranks).replace("-", dash)
        return re.sub(rf"^ranks? \d[\d, {EN_DASH}-]*, ", f"{word} {told}, ", text)

    def _case(self, said: Mapping[str, str]) -> Tuple[str, Dict[str, str]]:
        keys = {"torus": self._dump.mesh.torus, **keys_of(list(self._dump.steps.values()))}
        attributes: Dict[str, str] = {}
        stored = self._stored()
        if stored == "bfloat16":
            keys.update(act="bf16", weights="bf16")
        elif stored in ("float16", "float64"):
            attributes["arithmetic"] = "f16" if stored == "float16" else "f64"
        if self._model.given:
            attributes["weights"] = "file"
        ranks = self._dump.mesh.size("xyz")
        if self._model.architecture is None and stored in ("bfloat16", "float16") and ranks > 1:
            # Texts allow it by themselves: ranks send sums as they store values.
            attributes["wire"] = f"{'bf16' if stored == 'bfloat16' else 'f16'}:{ranks}"
        keys.update(said)
        if "prefill" in keys:
            return self._model.line(keys), attributes
        failure: Optional[Error] = None
        for strategy in _STRATEGIES:
            try:
                return self._model.line({**keys, "prefill": strategy}), attributes
            except Error as error:
                failure = failure or error
                if error.label not in ("strategy_c3", "strategy_c1", "strategy_c2", "local_c1"):
                    break
        assert failure is not None
        raise failure

    def _stored(self) -> str:
        """The element type that most values have."""
        types = collections.Counter(self._dump.types())
        return types.most_common(1)[0][0] if types else "float32"

    def trace(self) -> Trace:
        """The trace, which holds all values."""
        if self._trace is None:
            trace = Trace(self.case, **self.attributes)
            failed: Set[str] = set()
            for item in self.items():
                if item.name in failed:
                    continue
                said: Dict[str, Any] = dict(item.attributes)
                try:
                    trace.add(item.name, item.array, item.layout, chip=item.chip,
                              module=item.module or None,
                              parameters={} if item.is_input else
                              self._model.parameters(item.module), **said)
                except Error as error:
                    failed.add(item.name)
                    self._failed.append(Left(item.name, error.message))
                else:
                    self._values.add(item.name)
            self._values -= failed
            self._trace = trace
        return self._trace

    def save(self, path: PathLike) -> int:
        """Writes the trace to PATH.npz, value by value, or PATH.h5; returns how many values it has.
        Raises Error import_out for another suffix."""
        if pathlib.Path(path).suffix in (".h5", ".hdf5"):
            self.trace().save(path)
            return len(self._values)
        return save_npz(self.items(), self.case, self.attributes, path, self._failed)

    def judge(self, **options: Any) -> Verdict:
        """The verdict on the trace; `options` are those of shardproof.judge."""
        weights = self._model.weights() if self._model.given else None
        return judge(self.trace(), weights, **options)


def _chip(text: str) -> Tuple[int, int, int]:
    x, y, z = (int(n) for n in text.strip("()").split(","))
    return x, y, z


def read(directory: PathLike, *, model: str, names: Union[Names, PathLike, None] = None,
         weights: Optional[WeightsLike] = None,
         ids: Union[PathLike, Sequence[Sequence[int]], None] = None,
         case: Union[str, Mapping[str, str]] = "", torus: Optional[str] = None,
         steps: Optional[Tuple[int, int]] = None) -> Imported:
    """Reads a dump: a directory, or one file. `model` is a directory of Hugging Face, a
    config.json, or a model of the case line ("llama,layers=2"). `names` are lines of your own
    (docs/importing.md), which win over those of the model. `ids` are the prompt, where the dump has
    no input_ids. `case` are keys of the case line, "act=bf16"; `steps` the first and last step that
    are read. Raises Error import_... for what cannot be read as a whole; what is wrong with one
    value is in `left_out`."""
    of = _Model(model, weights)
    own = names if isinstance(names, Names) else Names([])
    if names is not None and not isinstance(names, Names):
        own = Names.of_file(names)
    rows = read_ids(ids) if isinstance(ids, (str, pathlib.Path)) else ids
    keys = dict(case) if isinstance(case, Mapping) else _keys(case)
    extents = of.extents()
    if pathlib.Path(directory).suffix in (".h5", ".hdf5"):
        refuse("import_path", f"{directory} is not a dump of an engine; a trace is judged by "
                              f"`shardproof compare {directory}`")
    dump = Dump(pathlib.Path(directory), own + of.names() + Names.shipped(), torus, rows,
                extents.get("K"), steps, of.architecture is not None)
    return Imported(dump, of, keys)


def _keys(text: str) -> Dict[str, str]:
    words = [word.partition("=") for word in text.split()]
    if not all(key and equals for key, equals, _ in words):
        refuse("import_case", f"'{text}' is not a valid list of keys; legal: act=bf16 seed=3")
    return {key: value for key, _, value in words}
