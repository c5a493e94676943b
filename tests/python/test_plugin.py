"""The pytest plugin, as a user's tests run it."""
TEST = """
import numpy as np
import pytest
import shardproof as sp

def trace(wrong):
    reference = sp.Reference("torus=2x1x1 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 "
                             "prompt=3 gen=1")
    trace = sp.Trace(reference.case)
    for name, value in reference.items():
        value = np.array(value)
        if wrong and name == "prefill.c0.layer0.up":
            value.flat[0] += 1
        trace.add(name, value)
    return trace

def test_right(shardproof):
    assert shardproof.check(trace(False)).right

def test_wrong(shardproof):
    shardproof.check(trace(True))

def test_only_judged(shardproof):
    assert not shardproof.judge(trace(True)).right
"""


def run(pytester, *flags):
    pytester.makepyfile(test_mine=TEST)
    return pytester.runpytest("-p", "shardproof.pytest_plugin", *flags)


def test_a_failure_says_the_value_first(pytester):
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E * AssertionError: prefill.c0.layer0.up: 1 of * elements are wrong*"])


def test_pages_of_failures_are_kept(pytester):
    run(pytester, "--shardproof-report=pages").assert_outcomes(passed=2, failed=1)
    names = sorted(path.name for path in (pytester.path / "pages").iterdir())
    assert names == ["test_mine.py_test_only_judged.html", "test_mine.py_test_only_judged.xml",
                     "test_mine.py_test_wrong.html", "test_mine.py_test_wrong.xml"]
    page = (pytester.path / "pages" / "test_mine.py_test_wrong.html").read_text()
    assert "prefill.c0.layer0.up" in page and page.startswith("<!DOCTYPE html>")


def test_without_a_failure_nothing_is_written(pytester):
    run(pytester, "--shardproof-report=pages", "-k", "right").assert_outcomes(passed=1)
    assert not (pytester.path / "pages").exists()


def test_help_says_what_the_flag_does(pytester):
    pytester.runpytest("-p", "shardproof.pytest_plugin", "--help").stdout.fnmatch_lines(
        ["*--shardproof-report=DIR*"])
