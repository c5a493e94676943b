"""pytest: a fixture `shardproof`, and `--shardproof-report=DIR`, which keeps trace and page of each
failure."""
from __future__ import annotations

import pathlib
import re
from typing import Any, Generator, List

import pytest

from .trace import Verdict, check, judge


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("shardproof").addoption(
        "--shardproof-report", metavar="DIR", default=None,
        help="write the page and the JUnit file of each trace that is not right into this folder")


class Judge:
    """The fixture: check(trace) as in the package, and the verdicts of this test."""

    def __init__(self) -> None:
        self.verdicts: List[Verdict] = []

    def judge(self, trace: Any, weights: Any = None, **options: Any) -> Verdict:
        """Judges a trace; the test goes on whatever it says."""
        verdict = judge(trace, weights, **options)
        self.verdicts.append(verdict)
        return verdict

    def check(self, trace: Any, weights: Any = None, **options: Any) -> Verdict:
        """Judges a trace; the test fails if it is not right."""
        try:
            verdict = check(trace, weights, **options)
        except AssertionError as error:
            self.verdicts.append(error.verdict)  # type: ignore[attr-defined]
            raise
        self.verdicts.append(verdict)
        return verdict


@pytest.fixture
def shardproof(request: pytest.FixtureRequest) -> Generator[Judge, None, None]:
    judge_of_test = Judge()
    yield judge_of_test
    folder = request.config.getoption("--shardproof-report")
    if folder is None:
        return
    wrong = [verdict for verdict in judge_of_test.verdicts if not verdict.right]
    if wrong:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for number, verdict in enumerate(wrong):
        name = re.sub(r"[^\w.-]+", "_", request.node.nodeid) + (f"-{number}" if number else "")
        base = pathlib.Path(folder, name)
        base.with_name(name + ".html").write_text(verdict.html(), encoding="utf-8")
        base.with_name(name + ".xml").write_text(verdict.junit(), encoding="utf-8")
