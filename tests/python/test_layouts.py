"""Layouts: their blocks, their shards, and other notations, each way."""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardproof as sp
from shardproof import strategies


def blocks(layout, torus):
    """Which block of each dim each chip holds, computed here once more."""
    sizes = dict(zip("xyz", map(int, torus.split("x"))))
    for chip in itertools.product(*map(range, sizes.values())):
        at = dict(zip("xyz", chip))
        out = []
        for axes in layout.axes.values():
            block = 0
            for axis in axes:
                block = block * sizes[axis] + at[axis]
            out.append(block)
        yield out


def shape_for(layout, torus):
    sizes = dict(zip("xyz", map(int, torus.split("x"))))
    return [2 * int(np.prod([sizes[a] for a in axes])) for axes in layout.axes.values()]


def test_what_a_layout_says():
    layout = sp.Layout("B_xLF_yz")
    assert layout.letters == "BLF"
    assert layout.axes == {"B": "x", "L": "", "F": "yz"}
    assert layout.partial == ""
    assert str(layout) == "B_xLF_yz" and repr(layout) == "Layout('B_xLF_yz')"
    assert sp.Layout("BL partialsum-zy").partial == "yz"
    assert sp.Layout("BL") == sp.Layout("BL") != sp.Layout("LB")
    assert len({sp.Layout("BL"), sp.Layout("BL")}) == 1


@pytest.mark.parametrize("text, label", [("BB", "layout_c2"), ("B_xL_x", "layout_c3"),
                                         ("B_", "layout_c0"), ("B-L", "layout_c0")])
def test_no_layout(text, label):
    with pytest.raises(sp.Error) as error:
        sp.Layout(text)
    assert error.value.label == label
    assert str(error.value).startswith(label + ": ")


@given(strategies.layouts(partial=False), strategies.tori(24))
def test_shards_are_the_blocks_of_the_chips(layout, torus):
    shape = shape_for(layout, torus)
    whole = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    shards = layout.shard(whole, torus)
    for shard, at in zip(shards, blocks(layout, torus)):
        part = tuple(slice(b * n, (b + 1) * n) for b, n in zip(at, shard.shape))
        assert np.array_equal(shard, whole[part])
        assert np.shares_memory(shard, whole)
    assert np.array_equal(layout.assemble(shards, torus), whole)


@given(strategies.layouts("BLE"), strategies.tori(24), st.randoms())
def test_partial_sums_are_added_once(layout, torus, random):
    shape = shape_for(layout, torus)
    places = list(blocks(layout, torus))
    sizes = dict(zip("xyz", map(int, torus.split("x"))))
    chips = list(itertools.product(*map(range, sizes.values())))
    whole = np.zeros(shape)
    parts = {}
    shards = []
    for at, chip in zip(places, chips):
        key = (tuple(at), tuple(c for c, a in zip(chip, "xyz") if a in layout.partial))
        local = [n // int(np.prod([sizes[a] for a in axes]))
                 for n, axes in zip(shape, layout.axes.values())]
        if key not in parts:
            parts[key] = np.full(local, random.randrange(100), np.float32)
            whole[tuple(slice(b * n, (b + 1) * n) for b, n in zip(at, local))] += parts[key]
        shards.append(parts[key])
    assert np.array_equal(layout.assemble(shards, torus), whole)


def test_shards_of_a_partial_sum_do_not_follow_from_it():
    with pytest.raises(sp.Error, match="layout_partial"):
        sp.Layout("BL partialsum-x").shard(np.zeros((2, 2)), "2x1x1")


@pytest.mark.parametrize("change, label", [
    (lambda s: s[:-1], "layout_shards: 5 shards on 2x1x3, which has 6 chips"),
    (lambda s: s[:-1] + [s[0][:1]], "layout_shards: rank 5 has a shard of"),
    (lambda s: [a[0] for a in s], "layout_shards: BLE_z has 3 dims"),
    (lambda s: s[:3] + [s[3] + 1] + s[4:], "layout_replicas: ranks 0 and 3")])
def test_shards_that_do_not_fit(change, label):
    shards = sp.Layout("BLE_z").shard(np.ones((2, 2, 6), np.float32), "2x1x3")
    with pytest.raises(sp.Error) as error:
        sp.Layout("BLE_z").assemble(change(shards), "2x1x3")
    assert str(error.value).startswith(label)


def test_an_extent_that_axes_do_not_divide():
    with pytest.raises(sp.Error, match="local_c1"):
        sp.Layout("BLE_z").shard(np.ones((2, 2, 4)), "2x1x3")
    with pytest.raises(sp.Error, match="layout_rank"):
        sp.Layout("BLE_z").shard(np.ones((2, 6)), "2x1x3")


MESH = {"data": "x", "seq": "y", "model": "z"}


@given(strategies.layouts())
def test_partition_specs_say_all_but_partial_sums(layout):
    names = {a: n for n, a in MESH.items()}
    spec = layout.partition_spec(MESH)
    partial = [names[a] for a in layout.partial]
    assert sp.Layout.from_partition_spec(layout.letters, spec, MESH, partial) == layout


def test_partition_specs_as_jax_writes_them():
    assert sp.Layout.from_partition_spec("BLF", (None, None, ("seq", "model")), MESH) == sp.Layout("BLF_yz")
    assert sp.Layout.from_partition_spec("BLE", (None, "seq"), MESH) == sp.Layout("BL_yE")
    assert sp.Layout.from_partition_spec("BLE", (), MESH, ["model", "data"]) == sp.Layout("BLE partialsum-xz")
    assert sp.Layout("BLF_yz").partition_spec(MESH) == (None, None, ("seq", "model"))
    for wrong in [("tp",), (None,) * 4]:
        with pytest.raises(sp.Error, match="layout_mesh|layout_spec"):
            sp.Layout.from_partition_spec("BLE", wrong, MESH)
    with pytest.raises(sp.Error, match="layout_mesh"):
        sp.Layout("B_x").partition_spec({"tp": "y"})


@given(strategies.layouts(), st.permutations("xyz"))
def test_placements_say_what_is_in_the_meshs_order(layout, mesh):
    try:
        placements = layout.placements(mesh)
    except sp.Error as error:
        assert error.label == "layout_placements"
        assert any([mesh.index(a) for a in axes] != sorted(mesh.index(a) for a in axes)
                   for axes in layout.axes.values())
        return
    assert sp.Layout.from_placements(layout.letters, placements, mesh) == layout


class Shard:
    def __init__(self, dim):
        self.dim = dim


class Replicate:
    pass


class Partial:
    def __init__(self, reduce_op="sum"):
        self.reduce_op = reduce_op


def test_placements_as_torch_has_them():
    made = sp.Layout.from_placements
    assert made("BLF", [Replicate(), Shard(2), Shard(2)], "xyz") == sp.Layout("BLF_yz")
    assert made("BLE", [Shard(-1), Partial(), Partial()], "xyz") == sp.Layout("BLE_x partialsum-yz")
    assert made("BLE", ["R", "S(1)"], "zy") == sp.Layout("BL_yE")
    for wrong in [[Partial("max")], [Shard(3)], ["Q"]]:
        with pytest.raises(sp.Error, match="layout_placements"):
            made("BLE", wrong, "x")
    with pytest.raises(sp.Error, match="layout_placements: 1 placements on a mesh of 2"):
        made("BLE", ["R"], "xy")


TP = {"cp": "x", "tp": "yz"}


@pytest.mark.parametrize("letters, names, dims, layout", [
    ("BLH", "b s h", "b s h[tp]", "BLH_yz"), ("BLH", "b s h", "b s[cp] h[tp]", "BL_xH_yz"),
    ("BLE", "b s e", "b s e[tp:partial]", "BLE partialsum-yz"),
    ("BLE", "b s e", "b s e[cp,tp:partial]", "BLE_x partialsum-yz")])
def test_dims_of_the_dumper(letters, names, dims, layout):
    assert sp.Layout.from_dims(letters, dims, TP) == sp.Layout(layout)
    assert sp.Layout(layout).dims(names.split(), TP) == dims


def test_dims_that_are_no_blocks():
    assert sp.Layout.from_dims("BLHQ", "b s h[tp] d # ep:replicated", TP) == sp.Layout("BLH_yzQ")
    for wrong in ["b s[cp:zigzag] h", "t h", "b s h[ep]"]:
        with pytest.raises(sp.Error, match="layout_dims|layout_mesh"):
            sp.Layout.from_dims("BLH", wrong, TP)
