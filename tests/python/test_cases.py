"""Cases: drawn, simpler, verified, and as hypothesis shrinks them."""
import pytest
from hypothesis import find, given, settings

import shardproof as sp
from shardproof import strategies


def test_a_line_is_completed_and_stays():
    whole = sp.case("torus=2x2x2")
    assert "model=palm-tiny" in whole and sp.case(whole) == whole


@settings(max_examples=20, deadline=None)
@given(strategies.cases())
def test_drawn_cases_are_legal_and_get_simpler(line):
    assert sp.case(line) == line
    for simple in sp.simpler(line):
        assert sp.case(simple) == simple != line


def test_draws_are_those_of_the_program():
    assert sp.draw(1, 0) == sp.draw(1, 0) != sp.draw(1, 1)
    assert sp.draw(1, 3) != sp.draw(2, 3)


def test_shrinking_finds_a_small_case():
    found = find(strategies.cases(), lambda line: "regime=f32" in line,
                 settings=settings(max_examples=2000, deadline=None, database=None))
    assert "regime=f32" in found and len(sp.simpler(found)) <= 8


def test_a_case_is_verified():
    answer = sp.verify("torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 gen=2")
    assert answer["verdict"] == "equal" and answer["elements"] > 1000
    with pytest.raises(sp.Error) as error:
        sp.verify("torus=5x1x1 prefill=ws2d:heads")
    assert error.value.label == "strategy_c3"
