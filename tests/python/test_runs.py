"""Runs: drawn cases with the model's values and shards, for a function under test."""
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import shardproof as sp
from shardproof import strategies

FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@settings(max_examples=60, deadline=None)
@given(strategies.tori(24), st.data())
def test_layouts_that_divide_a_shape(torus, data):
    shape = data.draw(st.tuples(*[st.sampled_from([1, 2, 3, 4, 6, 12])] * 3))
    layout = data.draw(strategies.layouts("BLE", torus=torus, shape=shape))
    sizes = dict(zip("xyz", map(int, torus.split("x"))))
    for extent, axes in zip(shape, layout.axes.values()):
        assert extent % np.prod([sizes[a] for a in axes], dtype=int) == 0


def test_all_layouts_that_divide_are_drawn():
    for text in ("B_xLE", "BLE_xz", "BLE_zx", "BL_yE partialsum-xz", "BLE"):
        found = find(strategies.layouts("BLE", torus="2x3x2", shape=(2, 3, 4)),
                     lambda layout: str(layout) == text,
                     settings=settings(max_examples=5000, database=None))
        assert str(found) == text
    with pytest.raises(sp.Error, match="layout_rank"):
        strategies.layouts(shape=(2, 3))


def gathered(shards, layout, torus):
    """A function under test: every chip gets the whole array."""
    whole = layout.assemble(shards, torus)
    return [whole] * len(shards)


@FEW
@given(strategies.runs(), st.data())
def test_a_right_function_is_right_on_every_case(run, data):
    id = data.draw(st.sampled_from(list(run.reference)))
    shards, layout = run.shards(id)
    assert len(shards) == np.prod([int(n) for n in run.torus.split("x")])
    if not id.endswith(".ids"):  # an input follows from nothing
        assert run.check(id, shards, layout).right
        assert run.check(id, gathered(shards, layout, run.torus), run.reference.dims(id)).right


def gate_of(run, wrong=lambda parts: parts):
    """A function under test: a product whose contracted dim is cut over x, as partial sums."""
    at = "prefill.c0.layer0."
    norm = at + ("norm" if at + "norm2" not in list(run.reference) else "norm2")
    x = int(run.torus.split("x")[0])
    if run.reference[norm].shape[-1] % x:
        return None
    inputs, _ = run.shards(norm, "BLE_x")
    weights, _ = run.weight("layer0.w_gate", "E_xF")
    return at + "gate", wrong([np.einsum("ble,ef->blf", a, w) for a, w in zip(inputs, weights)])


PLAIN = "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 prompt=3 gen=2 seed=5"


def test_partial_sums_of_a_function_are_judged():
    run = strategies.Run(PLAIN, None)
    assert repr(run) == f"Run('{PLAIN}')"
    id, parts = gate_of(run)
    assert run.check(id, parts, "BLF partialsum-x").right
    with pytest.raises(AssertionError, match="^ranks 0-5, prefill.c0.layer0.gate: reduction"):
        run.check(id, parts, "BLF")
    id, parts = gate_of(run, lambda parts: [part * (1 + (n == 4)) for n, part in enumerate(parts)])
    with pytest.raises(AssertionError, match="prefill.c0.layer0.gate"):
        run.check(id, parts, "BLF partialsum-x")


def test_what_else_is_wrong_is_not_the_functions():
    """A function that rounds otherwise than the reference changes no other verdict."""
    run = strategies.Run(PLAIN, None)
    id = "prefill.c0.layer0.gate"
    near = np.nextafter(run.reference[id], np.float32(np.inf))
    verdict = run.check(id, near)
    assert verdict.right and {n for n, fit in verdict.values.items() if fit != "not judged"} == {id}


def test_a_failure_says_the_line_and_the_layout():
    """Lines shrink as those of cases() do (test_cases.py); here it is only what is said."""
    @settings(max_examples=5, deadline=None, database=None, phases=[Phase.generate])
    @given(strategies.runs())
    def fails(run):
        shards, _ = run.shards("prefill.c0.layer0.gate")
        assert len(shards) == 0

    with pytest.raises(AssertionError) as error:
        fails()
    told = "\n".join(error.value.__notes__)
    line = re.search(r"Run\('(.*?)'\)|Run\(\s*'(.*?)'", told)
    assert line and sp.case(line[1] or line[2]) == (line[1] or line[2])
    assert re.search(r"Draw 1 \(prefill.c0.layer0.gate\): Layout\('B", told)
