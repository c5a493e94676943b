"""Traces and their verdicts: right in every form, and wrong at each value and rank."""
import itertools
import xml.etree.ElementTree as ElementTree

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shardproof as sp
from shardproof import strategies

# Layouts of values on 2x1x3 chips, as a program might have them.
LAYOUTS = {"embed": "BLE_z", "norm": "BLE", "gate": "BLF_zx", "up": "BLF_xz", "hidden": "B_xLF_z",
           "q": "BLH_zxQ", "out": "BLE_x", "block_out": "B_zLE_x", "k_cache": "B_zxMKQ"}


def trace_of(reference, form="list", change=lambda name, shards: shards, dtype=np.float32):
    """All values of a run, sharded where LAYOUTS says."""
    trace = sp.Trace(reference.case)
    for name, value in reference.items():
        layout = sp.Layout(LAYOUTS.get(name.split(".")[-1], ""
                                       .join(reference.dims(name))))
        shards = [np.array(s) for s in layout.shard(value, "2x1x3")]
        shards = change(name, shards)
        if value.dtype == np.float32:
            shards = [s.astype(dtype) for s in shards]
        if form == "whole" or value.dtype == np.int32:
            trace.add(name, value if form != "whole" else np.array(value))
        elif form == "stacked":
            trace.add(name, np.stack(shards).reshape(2, 1, 3, *shards[0].shape), layout)
        elif form == "dict":
            chips = list(itertools.product(range(2), range(1), range(3)))
            trace.add(name, dict(zip(chips, shards)), layout)
        else:
            trace.add(name, shards, layout)
    return trace


@pytest.mark.parametrize("form", ["whole", "stacked", "list", "dict"])
def test_right_values_are_right(reference, form):
    verdict = sp.judge(trace_of(reference, form))
    assert verdict.right and bool(verdict)
    assert verdict.first is None and verdict.cause is None and verdict.ranks == []
    assert verdict.remedy == ""
    fits = {fit for name, fit in verdict.values.items() if not name.endswith("ids")}
    assert fits <= {"within", "equal", "near"}
    assert len(verdict.values) == len(reference)
    assert verdict.sentence.startswith("No value is wrong: ")


@pytest.mark.parametrize("name", ["prefill.c0.embed", "prefill.c0.layer0.gate", "decode.1.layer1.q",
                                  "decode.1.layer0.hidden", "decode.1.layer1.k_cache",
                                  "decode.1.layer1.out", "decode.1.logits"])
@pytest.mark.parametrize("rank", [0, 2, 5])
@pytest.mark.parametrize("wrong", [1.0, np.nan, np.inf])
def test_a_wrong_element_is_named(reference, name, rank, wrong):
    def change(at, shards):
        if at == name:
            shards[rank].flat[-1] += wrong
        return shards

    verdict = sp.judge(trace_of(reference, change=change))
    assert not verdict.right
    assert verdict.first == name
    if name == "decode.1.logits":
        assert rank in verdict.ranks
    else:
        assert verdict.ranks == [rank]
    with pytest.raises(AssertionError) as error:
        sp.check(trace_of(reference, change=change))
    first = str(error.value).splitlines()[0]
    assert first.startswith(f"rank {rank}, {name}: ") and first == verdict.sentence


def test_a_missing_reduction_has_its_cause(reference):
    w, norm = reference.weights["layer1.w_gate"], reference["decode.1.layer1.norm"]

    def change(name, shards):
        if name != "decode.1.layer1.gate":
            return shards
        parts = [norm[..., 6 * x:6 * x + 6] @ w[6 * x:6 * x + 6] for x in range(2)]
        return [parts[rank // 3][..., s] for rank, s in
                enumerate(p[-1] for p in sp.Layout("BLF_z").slices("2x1x3", norm.shape))]

    trace = sp.Trace(reference.case)
    for name, value in reference.items():
        shards = [np.array(s) for s in sp.Layout("BLF_z").shard(value, "2x1x3")] \
            if name.endswith(".gate") else None
        trace.add(name, value) if shards is None else trace.add(name, change(name, shards), "BLF_z")
    verdict = sp.judge(trace)
    assert verdict.first == "decode.1.layer1.gate" and verdict.ranks == [0, 1, 2, 3, 4, 5]
    assert verdict.cause is not None and verdict.cause.fault == "reduction missing"
    assert verdict.cause.axes == "x" and verdict.cause.explains
    assert "reduce over these axes" in verdict.remedy
    assert verdict.sentence.startswith("ranks 0-5, decode.1.layer1.gate: reduction missing: over x")


def test_forms_of_a_verdict(reference):
    verdict = sp.judge(trace_of(reference, change=lambda n, s: [a + 1 for a in s]
                                if n == "decode.1.layer0.up" else s))
    assert verdict.table().startswith("step ") and "first divergence: decode.1.layer0.up" in verdict.table()
    assert len(verdict.table(quiet=True)) < len(verdict.table())
    assert "<p class=\"sentence wrong\"" in verdict.html()
    assert ElementTree.fromstring(verdict.junit()).find(".//failure") is not None
    assert verdict.annotations().startswith("::error title=shardproof%3A decode.1.layer0.up::")
    assert verdict.json["first"]["name"] == "decode.1.layer0.up"
    assert any(name.startswith("prefill.c0.ids: ") for name in verdict.unseen)
    assert "decode.1.layer0.up" in repr(verdict)


def test_given_values_and_patterns(reference):
    def wrong_gate(name, shards):
        return [s + 1 for s in shards] if name == "decode.1.layer0.gate" else shards

    assert not sp.judge(trace_of(reference, change=wrong_gate)).right
    trace = sp.Trace(reference.case)
    for name, value in reference.items():
        trace.add(name, value, given=name.endswith("layer0.k"))
    verdict = sp.judge(trace, given=["layers.1.v"])
    assert verdict.right
    assert {n for n, fit in verdict.values.items() if fit == "not judged" and "layer" in n} == {
        f"{p}.layer{n}.{v}" for p in ("prefill.c0", "decode.1") for n, v in ((0, "k"), (1, "v"))}
    with pytest.raises(sp.Error, match="compare_given"):
        sp.judge(trace, given=["layers.1.none"])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_types_are_read_as_they_are(reference, dtype):
    assert sp.judge(trace_of(reference, dtype=dtype)).right

    def change(name, shards):
        return [s * 1.25 for s in shards] if name == "decode.1.layer0.up" else shards

    assert sp.judge(trace_of(reference, change=change, dtype=dtype)).first == "decode.1.layer0.up"


def test_bf16_is_right_where_the_case_says_so(line):
    reference = sp.Reference(line + " act=bf16 weights=bf16")
    assert sp.judge(trace_of(reference, dtype=ml_dtypes.bfloat16)).right


@pytest.mark.parametrize("value, label", [
    (np.zeros(2, np.complex64), "dump_value"), (np.array(["a"]), "dump_value"),
    (np.array([object()]), "dump_value")])
def test_values_of_no_legal_type(line, value, label):
    with pytest.raises(sp.Error) as error:
        sp.Trace(line).add("prefill.c0.embed", value)
    assert error.value.label == label and "prefill.c0.embed" in str(error.value)


def test_a_value_is_added_once(line):
    trace = sp.Trace(line)
    trace.add("a", np.zeros(2))
    with pytest.raises(sp.Error, match="added twice"):
        trace.add("a", np.zeros(2))
    trace.add("b", np.zeros(2), "B", chip=(0, 0, 0))
    for again in ({"chip": (0, 0, 0)}, {}):
        with pytest.raises(sp.Error, match="dump_value"):
            trace.add("b", np.zeros(2), "B", **again)
    with pytest.raises(sp.Error, match="differ in what they declare"):
        trace.add("b", np.zeros(2), "L", chip=(1, 0, 0))


@pytest.mark.parametrize("count", [0, 5, 7])
def test_a_list_has_a_shard_for_each_chip(line, count):
    with pytest.raises(sp.Error, match=f"a: {count} shards for 6 chips") as error:
        sp.Trace(line).add("a", [np.zeros(2)] * count, "B")
    assert error.value.label == "dump_value"


def test_what_does_not_fit_costs_its_own_value(reference):
    trace = sp.Trace(reference.case)
    for name, value in reference.items():
        trace.add(name, value[..., :1] if name == "decode.1.layer0.up" else value)
    trace.add("surplus", np.zeros(3))
    verdict = sp.judge(trace)
    assert not verdict.right and verdict.first is None
    assert verdict.values["decode.1.layer0.up"] == "not judged"
    assert [fit for n, fit in verdict.values.items() if n == "decode.1.layer1.up"] == ["within"]
    assert any(text.startswith("surplus: ") for text in verdict.unseen)


def test_a_trace_that_proves_nothing_is_not_right(reference):
    trace = sp.Trace(reference.case)
    assert not sp.judge(trace).right
    trace.add("prefill.c0.ids", reference["prefill.c0.ids"])
    verdict = sp.judge(trace)
    assert not verdict.right and verdict.sentence.startswith("Not shown to be right")


def test_files_are_judged_as_traces_are(tmp_path, reference):
    values = {name: np.array(value) for name, value in reference.items()}
    said = '{"format": "shardproof trace", "version": 1, "case": "%s"}' % reference.case
    np.savez(tmp_path / "mine.npz", **values, shardproof=said)
    verdict = sp.judge(tmp_path / "mine.npz")
    assert verdict.right and verdict.json["file"] == str(tmp_path / "mine.npz")
    assert sp.judge(str(tmp_path / "mine.npz"), case=reference.case).right
    with pytest.raises(sp.Error, match="dump_open"):
        sp.judge(tmp_path / "none.npz")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.float16])
def test_a_saved_trace_has_the_same_verdict(tmp_path, reference, dtype):
    def change(name, shards):
        if name == "prefill.c0.layer0.gate":
            shards[1][0] += 1
        return shards

    trace = trace_of(reference, change=change, dtype=dtype)
    trace.save(tmp_path / "t.h5")
    loaded, mine, file = sp.Trace.load(tmp_path / "t.h5"), sp.judge(trace), tmp_path / "t.h5"
    for other in (sp.judge(loaded), sp.judge(file), sp.judge(str(file))):
        assert list(other.values.items()) == list(mine.values.items())
        assert other.first == mine.first == "prefill.c0.layer0.gate" and other.ranks == mine.ranks
    loaded.save(tmp_path / "again.h5")
    assert (tmp_path / "again.h5").read_bytes() == file.read_bytes()


def test_a_trace_that_no_file_can_have_is_not_saved(tmp_path):
    trace = sp.Trace("gen=1")
    trace.add("a/b", np.zeros(2))
    with pytest.raises(sp.Error, match='dump_value: "a/b"'):
        trace.save(tmp_path / "t.h5")
    with pytest.raises(sp.Error, match="trace_c1"):
        sp.Trace("gen=1").save(tmp_path / "none" / "t.h5")
    assert list(tmp_path.iterdir()) == []


def test_arrays_are_read_where_they_are_if_asked_to(reference):
    copied, lent = sp.Trace(reference.case), sp.Trace(reference.case)
    for name, value in reference.items():
        array = np.array(value)
        copied.add(name, array)
        lent.add(name, array, copy=False)
        if name.endswith("prefill.c0.layer0.up"):
            array[...] = 0
    assert sp.judge(copied).right
    assert sp.judge(lent).first == "prefill.c0.layer0.up"
    # What must be converted is a copy, and lives as long as the trace.
    turned = sp.Trace(reference.case)
    for name, value in reference.items():
        wide = value.dtype == np.float32 and value.ndim > 1
        turned.add(name, np.asfortranarray(value.astype(np.float64)) if wide else value, copy=False)
    assert sp.judge(turned).right


def test_weights_of_the_program(reference):
    arrays = {name: np.array(array) for name, array in reference.weights.items()}
    arrays["layer0.w_up"][0, 0] += 1
    trace = trace_of(sp.Reference(reference.case, arrays))
    assert sp.judge(trace, arrays).right
    assert sp.judge(trace).first == "prefill.c0.layer0.up"


def test_arrays_that_were_left_out_fail_and_are_said(reference):
    trace = trace_of(reference)
    trace.unseen.append("layer9.q: the model has no module q_proj")
    verdict = sp.check(trace)
    assert verdict.unseen[-1] == trace.unseen[0]
    assert verdict.table().endswith("not shown: layer9.q: the model has no module q_proj\n")
    assert "<li>layer9.q: the model has no module q_proj</li>" in verdict.html()
    assert "layer9.q" not in verdict.junit() + verdict.annotations()
    trace.left.append("decode.1.layer0.up: an array of [3, 5] does not say how it is cut")
    for more in ("", ", and 1 more"):
        with pytest.raises(AssertionError) as error:
            sp.check(trace)
        first, *_, last = str(error.value).splitlines()
        assert first == f"Not shown to be right: seen, but not judged: {trace.left[0]}{more}"
        assert last.startswith(("seen, but", "  ")) and trace.left[-1] in error.value.verdict.unseen
        assert not error.value.verdict.right and error.value.verdict.first is None
        assert "seen, but not judged: decode.1.layer0.up" in error.value.verdict.table(quiet=True)
        assert f"<li>{trace.left[-1]}</li>" in error.value.verdict.html()
        assert f">{trace.left[0]}" in error.value.verdict.junit()
        assert "left out: decode.1.layer0.up: an array" in error.value.verdict.annotations()
        trace.left.append("decode.1.layer1.up: another")
    # A value that is wrong comes first.
    trace = trace_of(reference, change=lambda n, s: [a + 1 for a in s]
                     if n == "decode.1.layer0.up" else s)
    trace.left.append("decode.1.layer1.up: another")
    assert sp.judge(trace).headline.startswith("ranks 0-5, decode.1.layer0.up: ")


def test_the_first_verdict_that_fails_is_given(reference):
    trace = trace_of(reference)
    assert sp.judge(trace, fail_on="unlikely").right
    verdict = sp.judge(trace, fail_on="within")
    assert not verdict.right and "is within" in verdict.sentence
    assert verdict.json["reproduce"].endswith(" --fail-on within")
    with pytest.raises(sp.Error, match="compare_fail_on"):
        sp.judge(trace, fail_on="equal")


def test_hostile_texts():
    for wrong in ("a\0b", "\ud800"):
        with pytest.raises(sp.Error):
            sp.Trace("torus=1x1x1").add("x", np.zeros(1), layout=wrong) or sp.judge(
                sp.Trace("torus=" + wrong))


@settings(max_examples=10, deadline=None)
@given(strategies.cases(), st.data())
def test_a_function_under_test_is_judged_on_drawn_cases(line, data):
    """As a user would test a function of their own: its shards, of any layout, assemble."""
    reference = sp.Reference(line)
    name = data.draw(st.sampled_from(list(reference)))
    layout = sp.Layout(reference.dims(name))
    value = reference[name]
    assert np.array_equal(layout.assemble(layout.shard(value, reference.torus), reference.torus),
                          value)
