"""The pytest plugin, as a user's tests run it."""
import re

import shardproof as sp

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


def test_a_failures_message_is_the_verdicts_first_lines(pytester):
    result = run(pytester)
    lines = [line for line in result.outlines if line.startswith("E  ")]
    assert "prefill.c0.layer0.up: 1 of 216 elements are wrong" in lines[0]
    assert lines[1].split()[1:4] == ["What", "to", "do:"]
    assert any(line.split()[1:3] == ["first", "divergence:"] for line in lines)


def test_trace_and_page_of_failures_are_kept(pytester):
    run(pytester, "--shardproof-report=pages").assert_outcomes(passed=2, failed=1)
    folder = pytester.path / "pages"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"test_mine.py_{test}.{ending}" for test in ("test_only_judged", "test_wrong")
        for ending in ("h5", "html", "xml"))
    page = (folder / "test_mine.py_test_wrong.html").read_text()
    assert "prefill.c0.layer0.up" in page and page.startswith("<!DOCTYPE html>")
    assert "shardproof compare pages/test_mine.py_test_wrong.h5" in page
    verdict = sp.judge(folder / "test_mine.py_test_wrong.h5")
    assert verdict.first == "prefill.c0.layer0.up" and verdict.json["compared"] == 22


WITH_WEIGHTS = TEST + """
def test_files(shardproof, tmp_path):
    made = trace(True)
    made.save(tmp_path / "mine.h5")
    reference = sp.Reference(made.case)
    reference.weights.save(tmp_path / "w.h5")
    assert not shardproof.judge(tmp_path / "mine.h5", tmp_path / "w.h5").right

def test_arrays(shardproof):
    made = trace(True)
    weights = {name: np.array(a) for name, a in sp.Reference(made.case).weights.items()}
    assert not shardproof.judge(made, weights, given=["layers.*.gate"]).right
    assert not shardproof.judge(made, sp.Reference(made.case).weights).right
    assert len(shardproof.verdicts) == 2
"""


def test_weights_that_were_arrays_are_kept(pytester):
    pytester.makepyfile(test_mine=WITH_WEIGHTS)
    pytester.runpytest("-p", "shardproof.pytest_plugin", "--shardproof-report=pages", "-k",
                       "files or arrays").assert_outcomes(passed=2)
    folder = pytester.path / "pages"
    for name in ("test_arrays", "test_arrays-1"):
        base = f"test_mine.py_{name}"
        verdict = sp.judge(folder / f"{base}.h5", folder / f"{base}.weights.h5")
        assert verdict.first == "prefill.c0.layer0.up"
        line = f"shardproof compare pages/{base}.h5 --weights pages/{base}.weights.h5"
        page = (folder / f"{base}.html").read_text()
        assert line in page and ("--given" in page.split(line)[1][:60]) == (name == "test_arrays")
    page = (folder / "test_mine.py_test_files.html").read_text()
    assert re.search(r"compare pages/test_mine.py_test_files.h5 --weights /\S+/w.h5", page)
    assert not (folder / "test_mine.py_test_files.weights.h5").exists()


def test_a_trace_that_cannot_be_kept_has_its_page(pytester):
    pytester.makepyfile(test_mine=TEST + """
def test_name(shardproof):
    made = trace(True)
    made.add("a/b", np.zeros(2))
    assert not shardproof.judge(made).right
""")
    result = pytester.runpytest("-p", "shardproof.pytest_plugin", "--shardproof-report=pages", "-k",
                                "test_name")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*the trace of test_mine.py_test_name is not kept: dump_value*"])
    page = (pytester.path / "pages/test_mine.py_test_name.html").read_text()
    assert "prefill.c0.layer0.up" in page


def test_without_a_failure_nothing_is_written(pytester):
    run(pytester, "--shardproof-report=pages", "-k", "right").assert_outcomes(passed=1)
    assert not (pytester.path / "pages").exists()


def test_help_says_what_the_flag_does(pytester):
    pytester.runpytest("-p", "shardproof.pytest_plugin", "--help").stdout.fnmatch_lines(
        ["*--shardproof-report=DIR*"])


def test_weights_of_the_trace_itself_are_kept(pytester):
    pytester.makepyfile(test_mine=TEST + """
def test_own(shardproof):
    made = trace(True)
    made.weights = sp.Reference(made.case).weights
    assert not shardproof.judge(made).right
""")
    pytester.runpytest("-p", "shardproof.pytest_plugin", "--shardproof-report=pages", "-k",
                       "test_own").assert_outcomes(passed=1)
    assert (pytester.path / "pages" / "test_mine.py_test_own.weights.h5").exists()


LEFT_OUT = TEST + """
def test_left(shardproof):
    made = trace(False)
    made.left.append("layer0.x: no layout")
    assert not shardproof.judge(made).right
"""


def test_the_kept_page_says_what_was_left_out(pytester):
    pytester.makepyfile(test_left=LEFT_OUT)
    pytester.runpytest("-p", "shardproof.pytest_plugin", "--shardproof-report=pages", "-k", "left")
    kept = pytester.path / "pages" / "test_left.py_test_left.html"
    assert "<li>layer0.x: no layout</li>" in kept.read_text()
    assert 'name="left out"' in kept.with_suffix(".xml").read_text()
