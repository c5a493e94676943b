"""Dumps with NaN, infinities or a zero of the other sign in one element: of the first pass and the
last, of each kind of value, of one rank's copy alone. None is called right."""
import numpy as np
import pytest

from dump_runs import dump, judge, model  # noqa: F401

NOT_NUMBERS = {"NaN": np.nan, "inf": np.inf, "-inf": -np.inf}
LAST = "decode.1"  # of a run of one prefill and one step
SPOTS = ["prefill.c0.embed", "prefill.c0.layer0.norm", "prefill.c0.layer0.q",
         "prefill.c0.layer1.k", "prefill.c0.layer1.hidden", "prefill.c0.logits",
         f"{LAST}.embed", f"{LAST}.layer0.v", f"{LAST}.layer1.norm", f"{LAST}.layer1.gate",
         f"{LAST}.layer1.ffn_out", f"{LAST}.layer1.out", f"{LAST}.final_norm", f"{LAST}.logits"]


def put(number, row=-1):
    """Changes the last element of the last position; of the logits that an engine keeps, too."""
    def change(value):
        value[row, -1].reshape(-1)[-1] = number
    return change


@pytest.mark.parametrize("number, spot", [
    *(("NaN", spot) for spot in SPOTS),
    *((number, spot) for number in ("inf", "-inf") for spot in SPOTS[2::5])])
def test_one_element_that_is_no_number_is_found(model, tmp_path, number, spot):  # noqa: F811
    folder = dump(model, tmp_path, tp=2, wrong={spot: put(NOT_NUMBERS[number])})
    code, out, _ = judge(folder, "--model", model)
    name = spot if not spot.endswith(".embed") else spot
    assert code == 1 and f"{name}: " in out.splitlines()[-1], out


@pytest.mark.parametrize("spot", SPOTS[3::3])
def test_a_zero_of_the_other_sign_is_no_other_number(model, tmp_path, spot):  # noqa: F811
    """In the place of a number that is not zero it is as wrong as zero is."""
    folder = dump(model, tmp_path, tp=2, wrong={spot: put(-0.0, 0)})
    code, out, _ = judge(folder, "--model", model)
    assert code == 1 and f"{spot}: " in out.splitlines()[-1], out


@pytest.mark.parametrize("module", ["layers.0.mlp.down_proj.output", "norm.output",
                                    "layers.1.self_attn.o_proj.input"])
@pytest.mark.parametrize("step", [0, 1])
def test_a_nan_of_one_rank_alone_is_found(model, tmp_path, module, step):  # noqa: F811
    def change(name, rank, value, meta):
        if name.endswith(module) and rank == 3 and meta["step"] == step:
            value = value.copy()
            value.reshape(-1)[-1] = np.nan
        return value, meta
    folder = dump(model, tmp_path, tp=4, change=change)
    code, out, _ = judge(folder, "--model", model)
    assert code == 1 and out.splitlines()[-1].startswith("rank 3, "), out


@pytest.mark.parametrize("number", NOT_NUMBERS)
def test_all_that_follows_from_it_does_not_hide_it(model, tmp_path, number):  # noqa: F811
    """As a program that goes on computes them: all of the last row is no number any more."""
    order = ["layer0.norm", *(f"layer{n}.{v}" for n in (0, 1) for v in (
        "q", "k", "v", "attn", "attn_out", "mid", "norm2", "gate", "up", "hidden", "ffn_out",
        "out")), "layer1.norm", "final_norm", "logits"]

    def spoil(value):
        value[-1] = np.nan
    wrong = {f"{LAST}.{value}": spoil for value in order}
    wrong[f"{LAST}.layer0.norm"] = put(NOT_NUMBERS[number])
    folder = dump(model, tmp_path, tp=2, wrong=wrong)
    code, out, _ = judge(folder, "--model", model)
    assert code == 1 and f"{LAST}.layer0.norm: " in out.splitlines()[-1], out


FORMS = {"packed": dict(tp=4, lengths=(8, 4)), "padded": dict(tp=2, packed=False),
         "zigzag": dict(tp=2, cp=2, lengths=(8, 8), packed=False), "shared kv heads": dict(tp=8),
         "not fused": dict(tp=2, fused=False), "stages": dict(tp=2, stages=2),
         "chunks": dict(tp=2, lengths=(8, 5), chunk=4)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", ["layer0.q", "layer1.out"])
def test_a_fault_of_the_last_pass_is_found(model, tmp_path, form, value):  # noqa: F811
    def change(array):
        array[-1, 0].reshape(-1)[-1] += 1
    folder = dump(model, tmp_path, wrong={f"{LAST}.{value}": change}, **FORMS[form])
    code, out, _ = judge(folder, "--model", model)
    assert code == 1 and f"{LAST}.{value}: " in out.splitlines()[-1], out
