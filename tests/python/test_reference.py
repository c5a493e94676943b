"""The unsharded model's values and weights."""
import gc
import threading

import ml_dtypes
import numpy as np
import pytest

import shardproof as sp


def test_values_have_ids_dims_and_types(reference):
    assert reference["prefill.c0.ids"].shape == (6, 3)
    assert reference["prefill.c0.ids"].dtype == np.int32
    gate = reference["decode.1.layer1.gate"]
    assert gate.shape == (6, 1, 12) and gate.dtype == np.float32
    assert reference.dims("decode.1.layer1.gate") == "BLF"
    assert reference["decode.1.token"].shape == (6,)
    assert list(reference)[0] == "prefill.c0.ids" and len(reference) > 60
    with pytest.raises(KeyError):
        reference["decode.9.layer1.gate"]


def test_values_follow_from_each_other(reference):
    gate, up = reference["decode.1.layer0.gate"], reference["decode.1.layer0.up"]
    norm, w = reference["decode.1.layer0.norm"], reference.weights["layer0.w_gate"]
    # The exact regime rounds a sum once; products of f32 are exact in f64.
    assert np.array_equal((norm.astype(np.float64) @ w).astype(np.float32), gate)
    assert not np.array_equal(gate, up)


def test_arrays_are_read_only_views_that_outlive_their_owner(line):
    value = sp.Reference(line)["decode.1.layer1.out"]
    before = value.copy()
    gc.collect()
    sp.Reference(line.replace("seed=5", "seed=6"))["decode.1.layer1.out"]
    assert np.array_equal(value, before)
    with pytest.raises(ValueError):
        value[...] = 0


def test_nothing_is_computed_before_it_is_read():
    huge = sp.Reference("torus=1x1x1 model=palm-8b batch=1 prompt=4 gen=1")
    assert huge.model.startswith("palm-8b")


def test_weights_of_a_seed_a_file_and_arrays_are_the_same(tmp_path, reference, line):
    weights = sp.Weights.generate(reference.model, 5)
    weights.save(tmp_path / "w.h5")
    loaded = sp.Weights.load(tmp_path / "w.h5")
    of_arrays = sp.Weights.of(reference.model, {n: np.array(a) for n, a in weights.items()})
    for other in (loaded, of_arrays, reference.weights):
        assert list(other) == list(weights) and other.model == weights.model
        assert all(np.array_equal(other[n], weights[n]) for n in weights)
    assert weights.dims["layer0.wq"] == "EHQ"
    for given in (loaded, tmp_path / "w.h5", dict(weights)):
        assert np.array_equal(sp.Reference(line, given)["decode.1.layer1.out"],
                              reference["decode.1.layer1.out"])


def test_other_weights_give_other_values(reference, line):
    arrays = {name: np.array(array) for name, array in reference.weights.items()}
    arrays["layer1.w_up"][0, 0] += 1
    other = sp.Reference(line, arrays)
    assert np.array_equal(other["decode.1.layer0.out"], reference["decode.1.layer0.out"])
    assert not np.array_equal(other["decode.1.layer1.up"], reference["decode.1.layer1.up"])


@pytest.mark.parametrize("change, label", [
    (lambda w: w.pop("layer0.wq"), "weights_name"),
    (lambda w: w.update(more=np.zeros(2, np.float32)), "weights_name"),
    (lambda w: w.update({"layer0.wq": w["layer0.wq"][:1]}), "weights_shape"),
    (lambda w: w["layer0.wq"].__setitem__((0, 0, 0), np.nan), "weights_value"),
    (lambda w: w.update({"layer0.wq": w["layer0.wq"] + 1e-12}), "weights_type")])
def test_weights_that_do_not_fit(reference, change, label):
    arrays = {name: np.array(array, np.float64 if label == "weights_type" else np.float32)
              for name, array in reference.weights.items()}
    change(arrays)
    with pytest.raises(sp.Error) as error:
        sp.Weights.of(reference.model, arrays)
    assert error.value.label == label


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_weights_of_narrow_types_are_widened(reference, dtype):
    arrays = {n: np.array(a).astype(dtype) for n, a in reference.weights.items()}
    weights = sp.Weights.of(reference.model, arrays)
    assert np.array_equal(weights["layer0.wq"], arrays["layer0.wq"].astype(np.float32))


def test_transposed_arrays_are_read_in_their_own_order(reference):
    arrays = {n: np.asfortranarray(a) for n, a in reference.weights.items()}
    weights = sp.Weights.of(reference.model, arrays)
    assert all(np.array_equal(weights[n], reference.weights[n]) for n in weights)


@pytest.mark.parametrize("line, label", [
    ("torus=2x2", "torus_c0"), ("modle=palm-tiny", "case_c1"), ("batch=x", "case_c3"),
    ("model=none", "model_preset"), ("torus=9999x1x1", "torus_c2")])
def test_no_case(line, label):
    with pytest.raises(sp.Error) as error:
        sp.Reference(line)
    assert error.value.label == label


def test_threads_do_not_meet(line, reference):
    found = {}

    def run(seed):
        found[seed] = np.array(sp.Reference(line.replace("seed=5", f"seed={seed}"))["decode.1.logits"])

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (5, 6, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(found[5], reference["decode.1.logits"])
    assert not np.array_equal(found[6], found[7])
