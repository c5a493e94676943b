"""Two traces side by side: right ones, and a wrong value in A, in B, in both."""
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shardproof as sp

LINE = "torus=1x1x1 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 batch=3 prompt=3 gen=2 seed=5"
WRONG = ["prefill.c0.layer0.q", "prefill.c0.layer1.gate", "prefill.c0.layer1.v_cache",
         "decode.1.layer0.hidden", "decode.1.layer1.out", "decode.1.logits"]


@pytest.fixture(scope="module")
def run():
    return sp.Reference(LINE)


def trace_of(run, change=lambda name, value: value, case=LINE, **attributes):
    trace = sp.Trace(case, **attributes)
    for name, value in run.items():
        trace.add(name, change(name, np.array(value)))
    return trace


def rounded(name, value):
    """The values that other engines round otherwise, by an ulp."""
    return np.nextafter(value, np.float32(9)) if name.endswith((".gate", ".up")) else value


def wrong_at(wrong):
    """Adds one to a number of that value."""
    def change(name, value):
        value = rounded(name, value)
        if name == wrong:
            value.flat[-1] += 1
        return value
    return change


def test_the_same_values_are_the_same(run):
    pair = sp.compare_pair(trace_of(run), trace_of(run))
    assert pair.explained and pair and pair.exit_code == 0
    assert pair.differences == [] and pair.first is None and pair.findings == []
    assert {v.verdict for v in pair.values.values()} == {"the same bits"}
    assert pair.sentence == ("Rounding explains all: "
                             f"{len(run)} values have the same bits, 0 are apart by rounding.")
    assert repr(pair) == f"<Pair: {pair.sentence}>"


def test_values_apart_by_rounding_are_explained(run):
    pair = sp.compare_pair(trace_of(run), trace_of(run, rounded), runs=2)
    assert pair.explained
    for name, value in pair.values.items():
        other = name.endswith((".gate", ".up"))
        assert value.verdict == ("apart by rounding" if other else "the same bits")
        assert value.only == ""
        assert value.apart == 0 if not other else 0 < value.apart < 1e-6
        assert value.units == 0 if not other else 0 < value.units <= 1
    assert pair.json["runs"] == [2, 2]
    assert "apart by rounding" in pair.table() and "gate" not in pair.table(quiet=True)


@settings(max_examples=20, deadline=None)
@given(in_a=st.sampled_from(["", *WRONG]), in_b=st.sampled_from(["", *WRONG]))
def test_a_wrong_value_and_its_side_are_named(run, in_a, in_b):
    pair = sp.compare_pair(trace_of(run, wrong_at(in_a)), trace_of(run, wrong_at(in_b)), runs=0)
    assert pair.first_of_a == (in_a or None)
    assert pair.first_of_b == (in_b or None)
    assert pair.exit_code == (1 if in_a or in_b else 0)
    firsts = [name for name in pair.values if name in (in_a, in_b)]  # in the order of the run
    assert pair.first == (firsts[0] if firsts else None)
    for name in firsts:
        words = {(True, True): "both are wrong", (True, False): "A is wrong",
                 (False, True): "B is wrong"}
        assert pair.values[name].verdict == words[name == in_a, name == in_b]
    root = ElementTree.fromstring(pair.html().partition("\n")[2])
    assert root.tag.endswith("html")
    assert json.loads(json.dumps(pair.json))["first"] == pair.first
    assert all(len(line) <= 80 for line in pair.table().replace("Δ", "d").splitlines())


def test_a_known_fault_is_its_cause(run):
    norm, gate = run["decode.1.layer1.norm"], "decode.1.layer1.gate"

    def change(name, value):
        return norm @ np.array(run.weights["layer0.w_gate"]) if name == gate else value

    pair = sp.compare_pair(trace_of(run), trace_of(run, change))
    assert pair.first == pair.first_of_b == gate
    assert pair.cause_of_a is None
    assert pair.cause_of_b is not None and "layer" in pair.cause_of_b.detail
    assert pair.cause_of_b.fault in pair.sentence


def test_other_weights_and_prompts_are_said_first(run):
    weights = {name: np.array(tensor) for name, tensor in run.weights.items()}
    other = {**weights, "layer0.wq": weights["layer0.wq"] * np.float32(1.5)}
    b = sp.Reference(LINE, other)
    pair = sp.compare_pair(trace_of(run), trace_of(b), weights, other, runs=0)
    assert [d.of for d in pair.differences] == ["weights"]
    assert pair.differences[0].text.endswith("1 of 20 tensors differ, the first layer0.wq")
    assert pair.values["prefill.c0.layer0.q"].verdict == "operands differ"
    assert pair.values["prefill.c0.layer0.q"].why == "the weights differ"
    assert pair.first is None and not pair.explained
    # Both are A's: then B is wrong.
    assert sp.compare_pair(trace_of(run), trace_of(b), weights, runs=0).first_of_b == \
        "prefill.c0.layer0.q"
    pair = sp.compare_pair(trace_of(run), trace_of(sp.Reference(LINE.replace("=5", "=6")),
                                                   case=LINE.replace("=5", "=6")), runs=0)
    assert [d.of for d in pair.differences] == ["weights", "prompts"]


def test_files_are_read_and_named(run, tmp_path):
    trace_of(run).save(tmp_path / "a.h5")
    trace_of(run, wrong_at(WRONG[0])).save(tmp_path / "b.h5")
    run.weights.save(tmp_path / "w.h5")
    pair = sp.compare_pair(tmp_path / "a.h5", str(tmp_path / "b.h5"), tmp_path / "w.h5", runs=0)
    assert pair.first_of_b == WRONG[0]
    assert pair.json["reproduce"] == (f"shardproof compare {tmp_path}/a.h5 {tmp_path}/b.h5 "
                                      f"--weights {tmp_path}/w.h5 --runs 0")
    in_memory = sp.compare_pair(trace_of(run), tmp_path / "b.h5", run.weights, runs=0)
    assert in_memory.first_of_b == WRONG[0]


def test_a_relation_matches_rows_and_positions(run):
    line = LINE.replace("batch=3", "batch=1")

    def one(name, value):
        return value[2:]

    alone = trace_of(run, one, line, rows="2")
    pair = sp.compare_pair(trace_of(run, rounded), alone, same=True, runs=0)
    assert pair.explained and pair.json["same"]
    assert pair.values["prefill.c0.layer0.gate"].verdict == "apart by rounding"
    assert not sp.compare_pair(trace_of(run), alone, runs=0).explained
    assert not sp.compare_pair(trace_of(run), trace_of(run, one, line, rows="1"), same=True,
                               runs=0).explained

    def stale(name, value):
        value = one(name, value)
        if name == "decode.1.layer1.k_cache":
            value[0, 1] = value[0, 0]
        return value

    wrong = sp.compare_pair(trace_of(run), trace_of(run, stale, line, rows="2"), same=True, runs=0)
    assert wrong.first_of_b == "decode.1.layer1.k_cache"


def test_without_a_model_bits_alone_are_compared(run):
    pair = sp.compare_pair(trace_of(run), trace_of(run), model=False)
    assert pair.explained and not pair.json["model"]
    pair = sp.compare_pair(trace_of(run), trace_of(run, wrong_at(WRONG[0])), model=False)
    assert not pair.explained and pair.first is None and pair.first_of_b is None
    assert pair.values[WRONG[0]].verdict == "not judged"
    line = LINE.replace("1x1x1", "2x1x1")
    a, b = sp.Trace(line), sp.Trace(line)
    x = np.arange(12, dtype=np.float32)
    a.add("prefill.c0.layer0.mine", [x, x], "E")
    b.add("prefill.c0.layer0.mine", [x, x + 1], "E")
    pair = sp.compare_pair(a, b, model=False)
    assert len(pair.findings) == 1 and "replicas differ" in pair.findings[0]


def test_what_is_in_one_alone_and_what_was_left_out(run):
    b = sp.Trace(LINE)
    for name, value in run.items():
        if name != "prefill.c0.layer0.gate":
            b.add(name, value)
    pair = sp.compare_pair(trace_of(run), b, runs=0)
    assert pair.values["prefill.c0.layer0.gate"].only == "A"
    assert pair.explained
    b.left.append("prefill.c0.layer0.gate: it has no layout")
    pair = sp.compare_pair(trace_of(run), b, runs=0)
    assert not pair.explained and pair.exit_code == 1
    assert "seen, but not judged: B: prefill.c0.layer0.gate: it has no layout" in pair.table()
    assert "it has no layout" in pair.html()


def test_mistakes_are_errors(run, tmp_path):
    other = sp.Trace(LINE.replace("layers=2", "layers=1"))
    with pytest.raises(sp.Error) as error:
        sp.compare_pair(trace_of(run), other)
    assert error.value.label == "compare_pair"
    with pytest.raises(sp.Error) as error:
        sp.compare_pair(trace_of(run), tmp_path / "none.h5")
    assert error.value.label == "dump_open"
    with pytest.raises(sp.Error) as error:
        sp.compare_pair(trace_of(run), trace_of(run), case="torus=0")
    assert error.value.label.startswith(("case_", "torus_"))
    with pytest.raises(sp.Error) as error:
        sp.compare_pair(trace_of(run), trace_of(run, weights="file"))
    assert error.value.label == "compare_weights"
