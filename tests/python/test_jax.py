"""What of shardproof.jax needs no JAX: meshes, and taps that have left it as NumPy arrays. All else
is in tests/peers/jax."""
import json
import subprocess
import sys

import numpy as np
import pytest

import shardproof as sp
from shardproof import jax as taps_of_jax
from shardproof._jax_mesh import axes_of, spec_of


def test_jax_is_imported_when_it_is_used():
    code = ("import sys, shardproof.jax as j; assert j.tap('a', 3) == 3; "
            "assert 'jax' not in sys.modules")
    path = [str(path) for path in sys.path]
    code = f"import sys; sys.path[:0] = {path!r}; {code}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("sizes, mesh, text", [
    ({"x": 2, "y": 2, "z": 2}, None, "x=x y=y z=z"), ({"z": 2, "x": 4}, None, "z=z x=x"),
    ({"data": 2, "model": 4}, None, "data=x model=y"),
    ({"pipe": 1, "data": 2, "expert": 1, "model": 4}, None, "data=x model=y"),
    ({"data": 2, "model": 4}, "model=x data=z", "data=z model=x"),
    ({"data": 2, "model": 1}, {"data": "y"}, "data=y"), ({"x": 2, "y": 4}, "x y", "x=x y=y")])
def test_axes_of_a_mesh(sizes, mesh, text):
    assert axes_of([("a", list(sizes), np.zeros(list(sizes.values())))], mesh).text == text


@pytest.mark.parametrize("sizes, mesh", [
    ({"a": 2, "b": 2, "c": 2, "d": 2}, None), ({"a": 2, "b": 4}, "a=x"), ({"a": 2}, "a=w"),
    ({"a": 2, "b": 4}, "a=x b=x"), ({"a": 2}, "a=x b=y")])
def test_meshes_that_do_not_fit(sizes, mesh):
    with pytest.raises(sp.Error, match="jax_mesh"):
        axes_of([("a", list(sizes), np.zeros(list(sizes.values())))], mesh)


def test_specs_as_json():
    assert spec_of((None, "model", ("data", "seq"))) == [None, "model", ["data", "seq"]]


def tap_of(name, value, sizes, layout, spec=None, partial=(), scans=(), **said):
    """A tap as a shard_map returns it: what each chip holds, behind dims of the mesh."""
    key = {"name": name, "axes": list(sizes), "layout": layout, "spec": spec,
           "partial": list(partial), "scans": [list(s) for s in scans], "said": said}
    return {f"000000 {json.dumps(key)}": np.asarray(value)}


def stacked(value, layout, sizes):
    """The shards of an array on the torus of these sizes, behind dims of them."""
    shards = sp.Layout(layout).shard(value, "x".join(map(str, sizes)))
    return np.stack(shards).reshape(*sizes, *shards[0].shape)


@pytest.mark.parametrize("right", [True, False])
def test_taps_become_a_trace(reference, right, tmp_path):
    """The case's torus is 2x1x3; its mesh is data=2 model=3, which are x and z."""
    sizes, mesh = {"data": 2, "model": 3}, "data=x model=z"
    gates = [stacked(reference[f"decode.1.layer{n}.gate"], "BLF_zx", (2, 1, 3))[:, 0]
             for n in range(2)]
    taps = tap_of("layer*.gate", np.stack(gates if right else gates[::-1], 2), sizes, "BLF",
                  [None, None, ["model", "data"]], scans=[(0, 2)])
    trace = taps_of_jax.trace(reference.case, {"decode.1": taps}, mesh=mesh)
    for id, value in reference.items():
        if id not in ("decode.1.layer0.gate", "decode.1.layer1.gate"):
            trace.add(id, value)
    verdict = sp.judge(trace)
    assert verdict.right == right and (right or verdict.first == "decode.1.layer0.gate")
    taps_of_jax.dump(tmp_path / "t.h5", reference.case, {"decode.1": taps}, mesh=mesh)
    assert len(sp.judge(tmp_path / "t.h5").values) == 2


def test_partial_sums_by_the_meshs_names(reference):
    gate = reference["decode.1.layer0.gate"]
    halves = np.broadcast_to(gate / 2, (2, 3, *gate.shape))
    taps = tap_of("layer0.gate", halves, {"data": 2, "model": 3}, "BLF", [], ["data"])
    trace = taps_of_jax.trace(reference.case, {"decode.1": taps}, mesh="data=x model=z")
    trace.add("decode.1.layer0.norm", reference["decode.1.layer0.norm"])
    assert sp.judge(trace).values["decode.1.layer0.gate"] in ("within", "equal")


def test_layouts_that_are_not_said(reference):
    value = np.zeros((2, 3, 4))
    for layout, spec, words in ((None, None, "in a shard_map a tap needs a layout"),
                                ("B_x", ["data"], "need the letters of the dims alone")):
        taps = tap_of("a", value, {"data": 2, "model": 3}, layout, spec)
        with pytest.raises(sp.Error, match=f"jax_layout: decode.1.a: .*{words}"):
            taps_of_jax.trace(reference.case, {"decode.1": taps})
