"""Two traces of one model, side by side."""
from __future__ import annotations

import json
import pathlib
import textwrap
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ._library import Handle, call, make
from ._reports import Left, Reports
from .reference import WeightsLike, weights_of
from .trace import Cause, Trace, TraceLike


class Difference(NamedTuple):
    """Something that the two runs have otherwise before any value: of "weights", "prompts",
    "numbers", "passes" or "sampling"."""

    of: str
    text: str


class PairValue(NamedTuple):
    """What is said of one value. A distance is None where none is given."""

    verdict: str
    #: Why it is not judged, what its operands differ by, or a remark; "" if nothing is said.
    why: str
    #: The trace that alone has it, "A" or "B"; "" if both do.
    only: str
    #: The largest distance, over the root mean square and in spacings of the coarser storage type.
    apart: Optional[float]
    units: Optional[float]


class Pair:
    """What `compare A B` says of two traces."""

    def __init__(self, handle: Handle, a: Trace, b: Trace) -> None:
        self._handle = handle
        self._left = [f"{word}: {line}" for word, of in (("A", a), ("B", b)) for line in of.left]
        self.json: Dict[str, Any] = json.loads(self._form("json"))

    def _form(self, form: str) -> str:
        text: str = call("pair", self._handle, form)["text"]
        return text

    @property
    def explained(self) -> bool:
        """Whether it exits with 0: every value of both has the same bits or is apart by rounding,
        some value of the run is right in both, and every array that was seen is in its trace."""
        return bool(self.json["verdict"] == "explained") and not self._left

    def __bool__(self) -> bool:
        return self.explained

    @property
    def exit_code(self) -> int:
        """The program's: 0 or 1. What it exits with 2 for is raised as Error."""
        return 0 if self.explained else 1

    @property
    def sentence(self) -> str:
        """The result in one line."""
        return str(self.json["sentence"])

    @property
    def differences(self) -> List[Difference]:
        """What is said before any value."""
        return [Difference(d["of"], d["text"]) for d in self.json["differences"]]

    @property
    def values(self) -> Dict[str, PairValue]:
        """What is said of each value, by its id, in the order of A's run. Of several arrays of one
        value the first that does not agree counts."""
        found: Dict[str, PairValue] = {}
        for v in self.json["values"]:
            value = PairValue(v["verdict"], v.get("why", ""), v.get("only", ""),
                              _number(v.get("apart")), _number(v.get("units")))
            before = found.get(v["id"])
            if before is None or (before.verdict in AGREE and value.verdict not in AGREE):
                found[v["id"]] = value
        return found

    @property
    def first(self) -> Optional[str]:
        """The first value that parts although its operands agree: wrong in one or both."""
        return _text(self.json.get("first"))

    @property
    def first_of_a(self) -> Optional[str]:
        """The first value that is wrong in A."""
        return _text(self.json.get("first_of_a"))

    @property
    def first_of_b(self) -> Optional[str]:
        """The first value that is wrong in B."""
        return _text(self.json.get("first_of_b"))

    @property
    def cause_of_a(self) -> Optional[Cause]:
        """What explains the first wrong value of A."""
        return self._cause("diagnosis_of_a")

    @property
    def cause_of_b(self) -> Optional[Cause]:
        """What explains the first wrong value of B."""
        return self._cause("diagnosis_of_b")

    def _cause(self, key: str) -> Optional[Cause]:
        best: Sequence[Mapping[str, Any]] = self.json.get(key, [])[:1]
        return next((Cause(h["fault"], h["detail"], h["axes"], h["explains"], float(h["residual"]))
                     for h in best if h["explains"]), None)

    @property
    def findings(self) -> List[str]:
        """Without a model: replicas that differ, and layouts that are wrong."""
        return [str(line) for line in self.json.get("findings", [])]

    def table(self, quiet: bool = False) -> str:
        """What the program prints, in 80 columns; quiet: without the values that are the same or
        apart by rounding. At its end what is not in the traces."""
        return self._form("quiet" if quiet else "text") + "".join(
            textwrap.fill(f"seen, but not judged: {line}", 80, subsequent_indent="  ") + "\n"
            for line in self._left)

    def html(self) -> str:
        """One page for a browser."""
        left = [Left(line.split(": ")[1], line, True) for line in self._left]
        return Reports(self.sentence, self.sentence, left).html(self._form("html"))

    def __repr__(self) -> str:
        return f"<Pair: {self.sentence}>"


AGREE = ("the same bits", "apart by rounding")


def _text(given: Any) -> Optional[str]:
    return None if given is None else str(given)


def _number(given: Any) -> Optional[float]:
    return None if given is None else float(given)


def _trace_of(trace: TraceLike) -> Tuple[Trace, Optional[str]]:
    return (trace, None) if isinstance(trace, Trace) else (Trace.load(trace), str(trace))


def _weights_of(trace: Trace, weights: Optional[WeightsLike], case: Optional[str]
                ) -> Tuple[Optional[Handle], str]:
    """The handle of weights in memory, or the file's name."""
    if weights is None:
        weights = trace.weights
    if isinstance(weights, (str, pathlib.Path)):
        return None, str(weights)
    if weights is None:
        return None, ""
    model = call("case", case or trace.case)["model"] if isinstance(weights, dict) else ""
    return weights_of(model, weights)._handle, ""


def compare_pair(a: TraceLike, b: TraceLike, weights: Optional[WeightsLike] = None,
                 weights_of_b: Optional[WeightsLike] = None, *, case: Optional[str] = None,
                 case_of_b: Optional[str] = None, given: Sequence[str] = (), same: bool = False,
                 model: bool = True, runs: Optional[int] = None) -> Pair:
    """Holds two traces, or files, of one model against each other (docs/compare-two.md).
    `weights`, `case` and `given` are those of both, as of `judge`; `weights_of_b` and `case_of_b`
    of B alone. `same`: a relation, whose values are matched by rows and positions. `model=False`:
    bits, replicas and layouts alone. `runs`: in random orders of sums, at most 32 by default."""
    (trace_a, file_a), (trace_b, file_b) = _trace_of(a), _trace_of(b)
    request: Dict[str, Any] = {"files": [file_a or "A", file_b or "B"], "given": list(given),
                               "same": same, "plain": not model}
    for name, value in (("case", case), ("case_of_b", case_of_b), ("runs", runs)):
        if value is not None:
            request[name] = value
    handle_a, handle_b = None, None
    if model:
        handle_a, request["weights_file"] = _weights_of(trace_a, weights, case)
        handle_b, request["weights_file_of_b"] = handle_a, request["weights_file"]
        if weights is None or weights_of_b is not None:
            handle_b, request["weights_file_of_b"] = _weights_of(trace_b, weights_of_b,
                                                                 case_of_b or case)
    return Pair(make("compare_pair", trace_a._handle, trace_b._handle, handle_a, handle_b,
                     json.dumps(request)), trace_a, trace_b)
