"""Meshes of several dims, of which a model is cut over one."""
import pytest
import torch
import transformers
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import shardproof as sp
import shardproof.torch as spt
from shardproof.torch.ranks import has_local_tensors

PLAN = {**{f"self_attn.{name}_proj": ColwiseParallel() for name in "qkv"},
        "self_attn.o_proj": RowwiseParallel(), "mlp.gate_proj": ColwiseParallel(),
        "mlp.up_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel()}


def run(mesh, fault=False, given=True):
    model = spt.shrink(transformers.LlamaConfig(num_key_value_heads=8), ranks=4)
    reference = spt.reference(model)
    for layer in model.model.layers:
        parallelize_module(layer, mesh["tp"], PLAN)
    if fault:  # a second sum over the copies, as a wrong group makes it
        model.model.layers[1].mlp.down_proj.register_forward_hook(lambda _, __, y: 2 * y)
    with spt.tap(model, reference, mesh if given else None) as tap:
        model(torch.arange(16).reshape(2, 8))
    return tap


# Versions without the local-tensor mode cut a model over the last dim alone.
MESHES = [{"dp": 2, "tp": 4}] + [{"tp": 4, "dp": 2}] * has_local_tensors()


@pytest.mark.parametrize("mesh", MESHES)
def test_ranks_of_the_other_dim_are_replicas(mesh):
    trace = spt.ranks(8, mesh).run(run).trace()
    assert f"torus={'x'.join(map(str, mesh.values()))}x1" in trace.case
    assert sp.check(trace).right


def test_a_fault_is_found_on_all_of_them():
    verdict = sp.judge(spt.ranks(8, {"dp": 2, "tp": 4}).run(run, True).trace())
    assert verdict.module == "layers.1.mlp.down_proj" and verdict.ranks == list(range(8))


def test_the_mesh_of_all_ranks_is_asked_for():
    with pytest.raises(sp.Error, match="the ranks 0, 1, 2, 3 of 8: give tap a mesh") as caught:
        spt.ranks(8, {"dp": 2, "tp": 4}).run(run, False, False)
    assert caught.value.label == "torch_mesh"
