"""pytest: a fixture `shardproof`, and `--shardproof-report=DIR`, which keeps trace and page of each
failure."""
from __future__ import annotations

import pathlib
import re
import shutil
import warnings
from typing import Any, Dict, Generator, List, NamedTuple, Optional

import pytest

from ._library import Error, call
from .reference import Weights
from .trace import Trace, TraceLike, Verdict, check, judge


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("shardproof").addoption(
        "--shardproof-report", metavar="DIR", default=None,
        help="write each trace that is not right into this folder, with the weights that were "
             "arrays, its page and its JUnit file")


class Judged(NamedTuple):
    """A trace, how it was judged, and what was said of it."""

    trace: TraceLike
    weights: Any
    options: Dict[str, Any]
    verdict: Verdict


class Judge:
    """The fixture: check(trace) as in the package, and what this test has judged."""

    def __init__(self) -> None:
        self.judged: List[Judged] = []

    @property
    def verdicts(self) -> List[Verdict]:
        """Those of this test, in order."""
        return [judged.verdict for judged in self.judged]

    def judge(self, trace: TraceLike, weights: Any = None, **options: Any) -> Verdict:
        """Judges a trace; the test goes on whatever it says."""
        verdict = judge(trace, weights, **options)
        self.judged.append(Judged(trace, weights, options, verdict))
        return verdict

    def check(self, trace: TraceLike, weights: Any = None, **options: Any) -> Verdict:
        """Judges a trace; the test fails if it is not right."""
        try:
            verdict = check(trace, weights, **options)
        except AssertionError as error:
            verdict = error.verdict  # type: ignore[attr-defined]
            self.judged.append(Judged(trace, weights, options, verdict))
            raise
        self.judged.append(Judged(trace, weights, options, verdict))
        return verdict


@pytest.fixture
def shardproof(request: pytest.FixtureRequest) -> Generator[Judge, None, None]:
    judge_of_test = Judge()
    yield judge_of_test
    folder = request.config.getoption("--shardproof-report")
    if folder is None:
        return
    wrong = [judged for judged in judge_of_test.judged if not judged.verdict.right]
    for number, judged in enumerate(wrong):
        name = re.sub(r"[^\w.-]+", "_", request.node.nodeid) + (f"-{number}" if number else "")
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        _keep(judged, pathlib.Path(folder), name)


def _keep(judged: Judged, folder: pathlib.Path, name: str) -> None:
    """The page is of the files, so that its last line reproduces it."""
    verdict = judged.verdict
    try:
        trace = _trace_file(judged.trace, folder / name)
        weights = _weights_file(judged, folder / name)
        verdict = judge(trace, weights, **judged.options)
        verdict.take_left_of(judged.verdict)
    except (Error, OSError) as error:
        warnings.warn(f"shardproof: the trace of {name} is not kept: {error}")
    (folder / f"{name}.html").write_text(verdict.html(), encoding="utf-8")
    (folder / f"{name}.xml").write_text(verdict.junit(), encoding="utf-8")


def _trace_file(trace: TraceLike, base: pathlib.Path) -> pathlib.Path:
    if isinstance(trace, Trace):
        path = base.with_name(base.name + ".h5")
        trace.save(path)
    else:
        path = base.with_name(base.name + pathlib.Path(trace).suffix)
        shutil.copyfile(trace, path)
    return path


def _weights_file(judged: Judged, base: pathlib.Path) -> Optional[pathlib.Path]:
    """A file of weights, which may be long, stays where it is."""
    weights, path = judged.weights, base.with_name(base.name + ".weights.h5")
    if weights is None and isinstance(judged.trace, Trace):
        weights = judged.trace.weights
    if weights is None or isinstance(weights, (str, pathlib.Path)):
        return None if weights is None else pathlib.Path(weights).absolute()
    if not isinstance(weights, Weights):
        weights = Weights.of(_model_of(judged.verdict), weights)
    weights.save(path)
    return path


def _model_of(verdict: Verdict) -> str:
    """The model of the case that was judged."""
    return str(call("case", verdict.json["case"])["model"])
