"""NaN, infinities and zeros of the other sign in one element of what a module returns, as a broken
kernel gives them: the model goes on with it. No such run is right, and the value is named."""
import numpy as np
import pytest
import torch
import transformers

import shardproof as sp
import shardproof.torch as spt
from passes import cache_of

IDS = torch.arange(20).reshape(2, 10)
PASSES = (8, 1, 1)  # tokens of the prefill and of the decode steps
NOT_NUMBERS = {"NaN": np.nan, "inf": np.inf, "-inf": -np.inf}
SPOTS = [(number, name, path, value)
         for number, name in ((0, "prefill.c0"), (2, "decode.2"))
         for path, value in (("model.embed_tokens", "embed"),
                             ("model.layers.0.input_layernorm", "layer0.norm"),
                             ("model.layers.0.self_attn.k_proj", "layer0.k"),
                             ("model.layers.1.self_attn.o_proj", "layer1.attn_out"),
                             ("model.layers.1.mlp.up_proj", "layer1.up"),
                             ("model.layers.1.mlp.down_proj", "layer1.ffn_out"),
                             ("model.layers.1", "layer1.out"), ("model.norm", "final_norm"),
                             ("lm_head", "logits"))]


def put(model, path, number, change):
    """Changes the last element of what a module returns in one pass."""
    calls = []

    def hook(_, __, output):
        calls.append(0)
        if len(calls) == number + 1:
            output = output.clone()
            output[..., -1, -1] = change(output[..., -1, -1])
        return output
    model.get_submodule(path).register_forward_hook(hook)


def run(model, reference):
    with spt.tap(model, reference) as tap, torch.no_grad():
        cache = {}
        for ids in IDS.split(PASSES, 1):
            cache = cache_of(model(ids, use_cache=True, **cache))
    return tap


def small():
    return spt.shrink(transformers.LlamaConfig(), ranks=1)


@pytest.mark.parametrize("kind", NOT_NUMBERS)
@pytest.mark.parametrize("spot", SPOTS, ids=[f"{name}.{value}" for _, name, _, value in SPOTS])
def test_the_value_that_is_no_number_is_named(spot, kind):
    number, name, path, value = spot
    model = small()
    reference = spt.reference(model)
    put(model, path, number, lambda x: x * 0 + NOT_NUMBERS[kind])
    verdict = sp.judge(run(model, reference).trace())
    assert not verdict.right and verdict.first == f"{name}.{value}"
    assert verdict.values[verdict.first] == "different"
    assert verdict.first in verdict.table() and verdict.first in verdict.html()
    assert verdict.first in verdict.junit()


@pytest.mark.parametrize("number", range(len(PASSES)))
def test_the_sign_of_a_zero_is_no_difference(number):
    """A row of the matrix is zero, so that the sum is."""
    model = small()
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[-1] = 0
    reference = spt.reference(model)
    put(model, "model.layers.1.mlp.up_proj", number, lambda x: -0.0 * torch.ones_like(x))
    verdict = sp.judge(run(model, reference).trace())
    assert verdict.right, verdict.headline


def test_a_zero_in_the_place_of_a_number_is_found():
    model = small()
    reference = spt.reference(model)
    put(model, "model.layers.1.mlp.up_proj", 2, lambda x: -0.0 * torch.ones_like(x))
    verdict = sp.judge(run(model, reference).trace())
    assert verdict.first == "decode.2.layer1.up"


def test_a_weight_that_is_no_number_is_found():
    """Changed after the reference was taken."""
    model = small()
    reference = spt.reference(model)
    with torch.no_grad():
        model.lm_head.weight[-1, -1] = np.nan
    verdict = sp.judge(run(model, reference).trace())
    assert verdict.first == "prefill.c0.logits" and not verdict.right


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_one_ranks_copy_alone(kind):
    def program(mesh):
        model = small()
        reference = spt.reference(model)
        if mesh.get_rank() == 1:
            put(model, "model.layers.1.mlp.down_proj", 2, lambda x: x * 0 + NOT_NUMBERS[kind])
        return run(model, reference)
    verdict = sp.judge(spt.ranks(2, processes=True).run(program).trace())
    assert verdict.first == "decode.2.layer1.ffn_out" and verdict.ranks == [1]


def test_a_module_that_the_text_has_not_gives_no_number():
    """What follows from a given value is judged, and what is no number there is said."""
    model = small()
    model.model.layers[0].mlp.scale = torch.nn.Linear(1, 1)
    own = model.model.layers[0].mlp.forward
    model.model.layers[0].mlp.forward = lambda x: own(x) * model.model.layers[0].mlp.scale(
        torch.full((1,), np.nan))
    verdict = sp.judge(run(model, spt.reference(model)).trace())
    assert not verdict.right and verdict.first == "prefill.c0.layer1.norm"
