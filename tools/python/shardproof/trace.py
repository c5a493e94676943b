"""Values that a program computed, and the verdict on them."""
from __future__ import annotations

import json
import pathlib
import re
import textwrap
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._arrays import encoded
from ._library import Error, Handle, call, make
from ._reports import Left, Reports
from .reference import PathLike, Weights, WeightsLike, weights_of


class Place(NamedTuple):
    """Where a program has a value, in its own words."""

    module: str
    parameters: Dict[str, str]


EN_DASH = "\N{EN DASH}"


class Trace:
    """A dump that is not written to a file: a case, and named values with their layouts. What is
    said beside these are the attributes of docs/trace-format.md: `arithmetic="bf16"`, `mesh="data=x
    model=y"`, `weights="file"`.

        trace = Trace("torus=2x2x2 model=palm-tiny batch=2 prompt=4 gen=1")
        trace.add("prefill.c0.layer0.gate", shards, layout="BLF_yz partialsum-x")
        print(judge(trace).table())

    Who has arrays that cannot be added says so in `left`, a line each with its name and the reason:
    such a trace is not right. `unseen` are lines of what it could not show, which fail nothing. A
    file that is written has neither.
    """

    def __init__(self, case: str, **attributes: Any) -> None:
        self.case = case
        self.weights: Optional[Weights] = None
        self.modules: Dict[str, Place] = {}
        self.left: List[str] = []
        self.unseen: List[str] = []
        line, _, text = case.partition("\n")
        said = {"format": "shardproof trace", "version": "1", "case": line, **attributes}
        if text:
            said["text_of_model"] = text
        self._handle: Handle = make("dump", json.dumps(said))
        self._lent: List[Any] = []  # arrays in whose memory the library reads

    @classmethod
    def load(cls, path: PathLike) -> "Trace":
        """That of a file, HDF5 or npz."""
        trace = cls.__new__(cls)
        trace.case = ""
        trace.weights = None
        trace.modules = {}
        trace.left = []
        trace.unseen = []
        trace._handle = make("dump_load", str(path))
        trace._lent = []
        return trace

    def save(self, path: PathLike) -> None:
        """Writes an HDF5 file, complete or not at all, which `load` and the program read. Raises
        Error: trace_c1 if it cannot be written, dump_value for a name that a file cannot have."""
        call("dump_save", self._handle, str(path))

    def add(self, name: str, value: Any, layout: Optional[Any] = None, *,
            chip: Optional[Sequence[int]] = None, given: bool = False,
            rounding: Optional[str] = None, module: Optional[str] = None,
            parameters: Optional[Mapping[str, str]] = None, copy: bool = True,
            **attributes: Any) -> None:
        """Adds a value: a whole array; one stacked [X, Y, Z, ...]; a list or dict of shards, by
        rank (x·Y+y)·Z+z or by chip (x, y, z); or with `chip` one shard alone. `given`: it is an
        operand of later values and not judged. `rounding` says where its formula rounds. `module`
        is what the program calls the place that it is of, and `parameters` what it calls weights
        there, {"bo": "bias"}. `copy=False`: arrays are read where they are, if the library has
        their type and they are row-major; they must not change before the trace is judged. Raises
        Error dump_value for a type that cannot be read, what is added twice, or a list of another
        number of shards than chips."""
        if module is not None:
            self.modules[name] = Place(module, dict(parameters or {}))
        if layout is not None:
            attributes["layout"] = str(layout)
        if given:
            attributes["given"] = "true"
        if rounding is not None:
            attributes["rounding"] = rounding
        if isinstance(value, Mapping):
            for at, shard in value.items():
                self._add(name, shard, attributes, tuple(at), copy)
        elif isinstance(value, list):
            chips = self._chips()
            if len(value) != len(chips):
                raise Error("dump_value", f"{name}: {len(value)} shards for {len(chips)} chips: "
                                          "give a shard for each, or with chip= one alone")
            for at, shard in zip(chips, value):
                self._add(name, shard, attributes, at, copy)
        else:
            self._add(name, value, attributes, None if chip is None else tuple(chip), copy)

    def _chips(self) -> List[Tuple[int, int, int]]:
        x, y, z = (int(n) for n in call("case", self.case)["torus"].split("x"))
        return [(i, j, k) for i in range(x) for j in range(y) for k in range(z)]

    def _add(self, name: str, value: Any, attributes: Mapping[str, Any],
             chip: Optional[Tuple[int, ...]], copy: bool) -> None:
        array, encoding = encoded(name, value)
        what = {"name": name, "attributes": attributes, "encoding": encoding,
                "shape": list(array.shape), "chip": None if chip is None else list(chip)}
        call("dump_add" if copy else "dump_lend", self._handle, json.dumps(what),
             array.ctypes.data, array.nbytes)
        if not copy:
            self._lent.append(array)


class Cause(NamedTuple):
    """What explains the first divergence."""

    fault: str
    detail: str
    axes: str
    explains: bool
    residual: float


class Verdict:
    """What `compare` says of a trace."""

    def __init__(self, handle: Handle, trace: Optional[Trace] = None) -> None:
        self._handle = handle
        self._modules = {} if trace is None else dict(trace.modules)
        self._left = [] if trace is None else list(trace.left)
        self._unseen = [] if trace is None else list(trace.unseen)
        self.json: Dict[str, Any] = json.loads(self._form("json"))

    def _form(self, form: str) -> str:
        text: str = call("comparison", self._handle, form)["text"]
        return text

    @property
    def right(self) -> bool:
        """Whether it exits with 0: every value that was judged is right, and some was, and every
        array that was seen is in the trace."""
        return bool(self.json["verdict"] == "right") and not self._left

    def __bool__(self) -> bool:
        return self.right

    @property
    def sentence(self) -> str:
        """The result in one line: ranks, value and cause of the first divergence."""
        return str(self.json["sentence"])

    @property
    def first(self) -> Optional[str]:
        """The name of the first value that is wrong although its operands are what they are."""
        return None if self.json["first"] is None else str(self.json["first"]["name"])

    @property
    def _place(self) -> Optional[Place]:
        """That of the first divergence; of a sum "a+b", that of its first term."""
        return self._modules.get((self.first or "").partition("+")[0])

    @property
    def module(self) -> Optional[str]:
        """The module that the first divergence is of, if the trace says it."""
        place = self._place
        return None if place is None else place.module

    @property
    def headline(self) -> str:
        """The sentence in the program's own words, where the trace has them: ranks, module and
        cause. If nothing is wrong but arrays were left out, it says that."""
        if self._left and self.json["verdict"] == "right":
            more = f", and {len(self._left) - 1} more" if len(self._left) > 1 else ""
            return f"Not shown to be right: seen, but not judged: {self._left[0]}{more}"
        place = self._place
        if place is None:
            return self.sentence
        ranks, _, said = self.sentence.partition(f"{self.first}: ")
        if self.cause is not None:
            said = f"{self.cause.fault}: {self.cause.detail}".rstrip(": ")
            # How often an addend is added says by itself what the fault is.
            said = said.replace("addend not added once: ", "").replace(" times, not 1", " times")
        for name, word in place.parameters.items():
            said = re.sub(rf"(?<![\w.]){re.escape(name)}\b", f"the {word}", said)
        return f"{ranks.replace('-', EN_DASH)}{place.module}: {said}"

    @property
    def ranks(self) -> List[int]:
        """The ranks that hold its wrong elements; empty if it is whole."""
        first = self.json["first"] or {}
        return [int(rank) for rank in first.get("ranks", [])]

    @property
    def causes(self) -> List[Cause]:
        """What could explain it, best first."""
        return [Cause(h["fault"], h["detail"], h["axes"], h["explains"], float(h["residual"]))
                for h in self.json["diagnosis"]]

    @property
    def cause(self) -> Optional[Cause]:
        """What explains it."""
        return next((c for c in self.causes[:1] if c.explains), None)

    @property
    def remedy(self) -> str:
        """What to change, or to declare."""
        return str(self.json.get("remedy", ""))

    @property
    def values(self) -> Dict[str, str]:
        """The verdict of each value, by its name in the trace, in the order of the run."""
        return {value["name"]: value["fit"] for value in self.json["values"]}

    @property
    def unseen(self) -> List[str]:
        """What no value of the run could have shown, and what was not judged, with the reason."""
        left = [f"{v['name']}: {v.get('why', '')}" for v in self.json["values"]
                if v["fit"] == "not judged"]
        unknown = [f"{v['name']}: {v['why']}" for v in self.json["unknown"]]
        return [*map(str, self.json["not_shown"]), *left, *unknown, *self._left, *self._unseen]

    def table(self, quiet: bool = False) -> str:
        """What the program prints, in 80 columns; quiet: of values that are wrong alone. At its
        end what is not in the trace: `left`, and unless quiet, `unseen`."""
        text = self._form("quiet" if quiet else "text")
        for title, lines in (("seen, but not judged", self._left),
                             ("not shown", [] if quiet else self._unseen)):
            text += "".join(textwrap.fill(f"{title}: {line}", 80, subsequent_indent="  ") + "\n"
                            for line in lines)
        return text

    def html(self) -> str:
        """One page for a browser."""
        return self._reports.html(self._form("html"))

    def junit(self) -> str:
        """JUnit's XML."""
        return self._reports.junit(self._form("junit"))

    def annotations(self) -> str:
        """A line for each failure that a GitHub workflow shows."""
        return self._reports.annotations(self._form("annotations"))

    @property
    def _reports(self) -> Reports:
        left = [Left(line.partition(": ")[0], line.partition(": ")[2], spoils)
                for lines, spoils in ((self._left, True), (self._unseen, False))
                for line in lines]
        return Reports(self.sentence, self.sentence, left)

    def take_left_of(self, other: "Verdict") -> None:
        """Takes over what another verdict's trace did not have, which its file does not say."""
        self._left, self._unseen = list(other._left), list(other._unseen)

    def __repr__(self) -> str:
        return f"<Verdict: {self.sentence}>"


TraceLike = Union[Trace, str, pathlib.Path]


def judge(trace: TraceLike, weights: Optional[WeightsLike] = None, *, case: Optional[str] = None,
          given: Sequence[str] = (), fail_on: str = "unlikely") -> Verdict:
    """Judges a trace, or the file of one. `weights`: those that the program used, a Weights, a
    file, or arrays by name; without them those of the case's seed. `given`: patterns of values that
    are operands and not judged. `fail_on`: the first verdict that fails."""
    request: Dict[str, Any] = {"file": "trace", "given": list(given), "fail_on": fail_on}
    if not isinstance(trace, Trace):
        request["file"] = str(trace)
        trace = Trace.load(trace)
    if case is not None:
        request["case"] = case
    handle = None
    if weights is None:
        weights = trace.weights
    if isinstance(weights, (str, pathlib.Path)):
        request["weights_file"] = str(weights)  # which the line that reproduces it then names
    elif weights is not None:
        model = call("case", case or trace.case)["model"] if isinstance(weights, dict) else ""
        handle = weights_of(model, weights)._handle
    return Verdict(make("compare", trace._handle, handle, json.dumps(request)), trace)


def check(trace: TraceLike, weights: Optional[WeightsLike] = None, **options: Any) -> Verdict:
    """Judges a trace; raises AssertionError if it is not right, whose first line is the headline:
    the ranks, the value and the cause, or that arrays were left out."""
    verdict = judge(trace, weights, **options)
    if not verdict.right:
        fix = f"\nWhat to do: {verdict.remedy}." if verdict.remedy else ""
        error = AssertionError(f"{verdict.headline}{fix}\n{verdict.table(quiet=True)}")
        error.verdict = verdict  # type: ignore[attr-defined]  # for the pytest plugin
        raise error
    return verdict
