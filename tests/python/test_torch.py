"""What shardproof.torch does without torch: meshes, patterns, classes, and what a run's passes are
called. Runs of models are in tests/peers/torch."""
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardproof as sp
import shardproof.torch as spt
from shardproof.importing.names import Names
from shardproof.torch._classes import Role, role_of
from shardproof.torch._mesh import PARTIAL, WHOLE, Axes, Cut, dims, layout, letters, local_shape
from shardproof.torch._flow import Flow
from shardproof.torch._modules import names_in_models
from shardproof.torch._pattern import part_of
from shardproof.torch._tensors import Seen, cuts_of_shape
from shardproof.torch._trace import Shown
from shardproof.torch._unknown import unknown_modules

EXTENTS = {"B": 2, "L": 8, "E": 64, "H": 16, "K": 4, "G": 4, "Q": 8, "F": 96, "M": 8}


def test_it_is_imported_without_torch():
    code = "import sys, shardproof.torch; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_a_mesh_of_one_dim_is_the_axis_x():
    axes = Axes([8])
    assert str(axes) == "8x1x1" and axes.chip(5) == (5, 0, 0) and axes.of(0) == [("x", 8)]


def test_ranks_that_share_kv_heads_factor_the_mesh():
    axes = Axes([8], [{4}])
    assert str(axes) == "4x2x1"
    assert [axes.chip(rank) for rank in range(3)] == [(0, 0, 0), (0, 1, 0), (1, 0, 0)]
    assert layout("BL(HQ)", EXTENTS, [Cut("S", 2)], axes) == "BLH_xyQ"
    assert layout("BL(KQ)", EXTENTS, [Cut("S", 2, 4)], axes) == "BLK_xQ"
    assert layout("BL(KQ)", EXTENTS, [Cut("S", 2)], axes) == "BLK_xQ_y"  # half heads


def test_dims_of_the_mesh_are_axes_in_order():
    axes = Axes([2, 1, 4])
    assert str(axes) == "2x4x1" and axes.chip(6) == (1, 2, 0)
    assert layout("BLE", EXTENTS, [Cut("S", 1), WHOLE, PARTIAL], axes) == "BL_xE partialsum-y"
    assert local_shape("BLE", EXTENTS, "BL_xE partialsum-y", axes) == [2, 4, 64]


def test_more_than_three_axes_are_one_sentence():
    with pytest.raises(sp.Error) as caught:
        Axes([2, 2, 8], [set(), set(), {4}])
    assert caught.value.label == "torch_mesh" and "4 axes above 1, 2x2x4x2" in caught.value.message


@pytest.mark.parametrize("shared", [3, 5, 16])
def test_heads_that_ranks_do_not_share_evenly_are_an_error(shared):
    with pytest.raises(sp.Error, match=f"8 ranks do not share {shared} blocks") as caught:
        Axes([8], [{shared}])
    assert caught.value.label == "torch_mesh"


def test_ranks_that_divide_no_dim_are_an_error():
    with pytest.raises(sp.Error, match="6 ranks do not divide H = 16") as caught:
        layout("BL(HQ)", EXTENTS, [Cut("S", 2)], Axes([6]))
    assert caught.value.label == "torch_layout"


@given(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3), st.data())
def test_chips_hold_what_dtensor_gives_the_ranks(sizes, data):
    """Blocks major to minor in the mesh's order, as DTensor cuts them."""
    axes = Axes(sizes)
    whole = np.arange(216 * 216).reshape(216, 216)
    cuts = [data.draw(st.sampled_from([WHOLE, Cut("S", 0), Cut("S", 1)])) for _ in sizes]
    text = layout("FE", {"F": 216, "E": 216}, cuts, axes)
    shards = sp.Layout(text).shard(whole, str(axes))
    for place, index in enumerate(np.ndindex(*sizes)):
        mine = whole
        for dim, (size, at) in enumerate(zip(sizes, index)):
            if cuts[dim].kind == "S":
                mine = np.split(mine, size, cuts[dim].dim)[at]
        x, y, z = axes.chip(place)
        rank = (x * axes.torus[1] + y) * axes.torus[2] + z
        assert np.array_equal(shards[rank], mine)


def test_ranks_in_one_process_need_a_mode_of_torch(monkeypatch):
    module = sys.modules["shardproof.torch.ranks"]
    monkeypatch.setattr(module, "has_local_tensors", lambda: False)
    assert module.ranks(2).processes and module.ranks(2, processes=True).processes
    with pytest.raises(sp.Error, match="leave processes=False out") as caught:
        module.ranks(2, processes=False)
    assert caught.value.label == "torch_ranks"


def row_of(pattern, take=0, letters="BLHQ"):
    return sp.Module("layer0.q", "q_proj", pattern, take, False, letters)


def test_patterns_have_dims_and_letters():
    assert dims("BL(HQ)") == ["B", "L", "HQ"] and letters("BL(HQ)") == "BLHQ"


@pytest.mark.parametrize("pattern, take, wanted", [
    ("BL([HQ,KQ,KQ])", 0, [0, 1, 2, 3]), ("BL([HQ,KQ,KQ])", 1, [4, 5]),
    ("BL([HQ,KQ,KQ])", 2, [6, 7]), ("BL(K[G,1,1]Q)", 0, [0, 1, 2, 3]),
    ("BL(K[G,1,1]Q)", 1, [4, 5])])
def test_parts_of_fused_results(pattern, take, wanted):
    """One kv head, two query heads of two channels; then two ranks with one head each."""
    small = {"B": 1, "L": 1, "H": 2, "K": 1, "G": 2, "Q": 2}
    _, part = part_of(row_of(pattern, take))
    assert part.cut(np.arange(8).reshape(1, 1, 8), small).ravel().tolist() == wanted
    two = {**small, "H": 4, "K": 2}
    assert part.cut(np.arange(8).reshape(1, 1, 8), two).ravel().tolist() == wanted


@pytest.mark.parametrize("pattern, width, why", [
    ("BL([HQ,KQ,KQ])", 4, "placements cut the fused"), ("BL(K[G,1,1]Q)", 8, ""),
    ("BL(K[G,1,1]Q)", 4, "a rank has 4 of the fused dim, whose groups are of 8")])
def test_placements_cut_a_fused_result_into_blocks(pattern, width, why):
    """Two ranks have K and V of 1 head each, or of all heads the half."""
    small = {"B": 1, "L": 1, "H": 4, "K": 2, "G": 2, "Q": 2}
    plain, part = part_of(row_of(pattern))
    blocks = {rank: np.ones((1, 1, width), np.float32) for rank in range(2)}
    shown = Shown(Seen(blocks, (Cut("S", 2),), part=part), plain, small, [2])
    assert shown.why.startswith(why) and (shown.cuts is None) == bool(why)
    whole = np.ones((1, 1, 16), np.float32)
    assert Shown(Seen({0: whole}, (WHOLE,), part=part), plain, small, [2]).why == ""
    # A plain tensor is what an engine's own layer returns: the same share of each part.
    fused = {rank: np.ones((1, 1, 8), np.float32) for rank in range(2)}
    assert Shown(Seen(fused, part=part), plain, small, [2]).cuts == (Cut("S", 2),)


def test_engines_fused_modules_are_of_the_names_of_importers():
    assert Names.fused() == {"qkv_proj": {"q": 0, "k": 1, "v": 2},
                             "gate_up_proj": {"gate": 0, "up": 1}}
    row = sp.Module("layer1.k", "model.layers.1.self_attn.k_proj", "BL(KQ)", 0, False, "BLKQ")
    assert names_in_models(row) == {
        "model.layers.1.self_attn.k_proj": 0, "model.layers.1.self_attn.qkv_proj": 1,
        "layers.1.self_attn.k_proj": 0, "layers.1.self_attn.qkv_proj": 1}
    assert len(names_in_models(row._replace(input=True))) == 2


def test_a_part_by_groups_has_the_letters_of_heads():
    assert part_of(row_of("BL(K[G,1,1]Q)"))[0] == "BL(HQ)"
    assert part_of(row_of("BL(K[G,1,1]Q)", 1, "BLKQ"))[0] == "BL(KQ)"
    assert part_of(row_of("BL(HQ)"))[1].parts == ()


class Node:
    """A module without torch."""

    def __init__(self, parameters=(), **children):
        self.own, self.inner = dict.fromkeys(parameters, 0), children

    def named_children(self):
        return self.inner.items()

    def children(self):
        return self.inner.values()

    def named_parameters(self, recurse=True):
        yield from self.own.items()
        for child in self.inner.values() if recurse else ():
            yield from child.named_parameters()

    def parameters(self):
        return (value for _, value in self.named_parameters())


def test_modules_that_a_map_does_not_name():
    """Outermost ones, but for functions, lists, and what a wrapper wraps."""
    def kind(name, *parameters, **children):
        return type(name, (Node,), {})(parameters, **children)
    architecture = types.SimpleNamespace(
        tensors={"model.layers.0.mlp.up_proj.weight", "model.norm.weight"},
        modules=lambda: [row_of("BLF")._replace(name="model.layers.0.mlp.up_proj")])
    mlp = Node(up_proj=Node(base_layer=Node(["weight"]), lora_a=Node(["weight"])),
               adapter=Node(inner=Node(["weight"])), act=kind("SiluAndMul"),
               gain=kind("SiluAndMul", "weight"), drops=kind("Sequential", a=kind("Dropout")))
    model = Node(model=Node(layers=Node(**{"0": Node(mlp=mlp)}), norm=Node(["weight"]),
                            rotary=kind("OwnRotaryEmbedding"), probes=kind("ModuleList", p=Node())))
    assert list(unknown_modules(model, architecture)) == [
        "model.layers.0.mlp.up_proj.lora_a", "model.layers.0.mlp.adapter",
        "model.layers.0.mlp.gain", "model.probes.p"]


class Box:
    """A tensor without numbers."""
    layout = dtype = "any"


def flow_of():
    """One that follows nothing by itself."""
    flow = Flow()
    flow._numbers = {}
    return flow


def test_what_a_result_reaches_first():
    """w = f(m, r), v = g(w), u = h(m): w and u follow from m, v from w alone."""
    flow, m, w, v, u, r = flow_of(), Box(), Box(), Box(), Box(), Box()
    flow.returned(0, "extra", m)
    flow.show(0, "r", r)
    for operands, result, name in (([m, r], w, "w"), ([w], v, "v"), ([m], u, "u")):
        flow.called("mul", operands, result)
        flow.show(0, name, result)
    assert flow.reached({(0, name) for name in "rwvu"}) == {
        (0, "w"): {"extra"}, (0, "u"): {"extra"}}
    # Where w is not in the trace, v is the first of that way.
    assert set(flow.reached({(0, name) for name in "rvu"})) == {(0, "v"), (0, "u")}


def test_a_value_is_reached_under_each_form_and_what_is_written_in_place():
    flow, m, view, x, y = flow_of(), Box(), Box(), Box(), Box()
    flow.returned(0, "extra", m)
    flow.called("reshape", [m], view)
    flow.called("add_", [x, m], x)
    flow.called("__setitem__", [y, view], None)
    for name, tensor in (("view", view), ("m", m), ("x", x), ("y", y)):
        flow.show(0, name, tensor)
    assert set(flow.reached({(0, name) for name in ("view", "m", "x", "y")})) == {
        (0, "view"), (0, "m")}
    assert set(flow.reached({(0, "x"), (0, "y")})) == {(0, "x"), (0, "y")}


def test_a_result_that_is_lost_reaches_the_next_value_of_its_pass():
    flow = flow_of()
    for number in (0, 1):
        flow.show(number, "before", Box())
        flow.returned(number, "kernel", Box())
        flow.show(number, "next", Box())
        flow.show(number, "later", Box())
        flow.returned(number, "last", Box())
    values = {(n, name) for n in (0, 1) for name in ("before", "next", "later")}
    assert flow.reached(values) == {(0, "next"): {"kernel"}, (1, "next"): {"kernel"}}


@pytest.mark.parametrize("shape, sizes, wanted", [
    ([2, 8, 64], [8], [WHOLE]), ([2, 1, 64], [8], [Cut("S", 1)]),
    ([2, 8, 16], [2, 4], [WHOLE, Cut("S", 2)]), ([2, 8, 8], [2, 4], [Cut("S", 2), Cut("S", 2)]),
    ([2, 8, 16], [8], [Cut("S", 2, 4)]),  # two neighbours share each block
    ([2, 8, 32], [2, 2], None),           # over one dim of the mesh or the other
    ([2, 4, 32], [4], None), ([2, 8, 63], [8], None), ([2, 8], [8], None), ([2, 8, 0], [8], None)])
def test_shapes_say_cuts_or_nothing(shape, sizes, wanted):
    found = cuts_of_shape(shape, [2, 8, 64], sizes)
    assert found == (None if wanted is None else tuple(wanted))


def module(name, base=object, **attributes):
    return type(name, (base,), attributes)()


def test_engines_classes_are_known_by_name():
    assert role_of(module("ColumnParallelLinear")).output_cuts == "last"
    assert role_of(module("ColumnParallelLinear", gather_output=True)).output_cuts == "whole"
    assert role_of(module("RowParallelLinear")) == Role("last", "reduced")
    assert role_of(module("RowParallelLinear", reduce_results=False)).output_cuts == "partial"
    merged = module("MergedColumnParallelLinear", output_sizes=[96, 96], tp_size=8)
    assert role_of(merged).parts == [12, 12]
    qkv = module("QKVParallelLinear", num_heads=2, num_kv_heads=1, head_size=8)
    assert role_of(qkv).parts == [16, 8, 8]
    own = module("QuantizedRow", type(module("RowParallelLinear")))
    assert role_of(own) == Role("last", "reduced")
    assert role_of(types.SimpleNamespace()) == Role()


@pytest.mark.parametrize("mesh", [{"tp": 4}, [2, 2], {"tp": 0}])
def test_a_mesh_of_other_ranks_is_an_error(mesh):
    with pytest.raises(sp.Error) as caught:
        spt.ranks(8, mesh)
    assert caught.value.label == "torch_ranks"
