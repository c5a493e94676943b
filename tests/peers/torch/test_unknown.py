"""Modules that the architecture's text does not have: the values that they reach first are given,
all others are judged."""
import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import shardproof as sp
import shardproof.torch as spt
from families import FAMILIES, model_of
from parallel import Parallel
from passes import cache_of

IDS = torch.arange(18).reshape(2, 9)


class Adapter(nn.Module):
    """Adds to a stream what a small matrix makes of it."""

    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)

    def forward(self, x):
        return x + self.up(x)


class Scale(nn.Module):
    """Has no parameter."""

    def forward(self, x):
        return 1.5 * x


class Kernel(nn.Module):
    """Its result is one that no function of PyTorch computed from another, as kernels' are."""

    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.from_numpy(3 * x.detach().numpy())


def then(module, name, inner, change=None):
    """Puts a module behind another, as a class derived from the layer's would."""
    module.add_module(name, inner)
    forward = module.forward

    def forward_more(*args, **kwargs):
        y = forward(*args, **kwargs)
        first = inner(y[0] if isinstance(y, tuple) else y)
        return (first, *y[1:]) if isinstance(y, tuple) else first
    module.forward = forward_more


def through_kernel(module, inner):
    """What comes back is lost to those who follow functions."""
    forward = module.forward
    module.add_module("kernel", inner)
    module.forward = lambda x: torch.from_numpy(inner(forward(x)).numpy().copy())


def before(module, name, inner, *to):
    """Puts a module in front of others."""
    module.add_module(name, inner)
    for one in to:
        forward = getattr(module, one).forward
        getattr(module, one).forward = lambda x, forward=forward: forward(inner(x))


def between_layers(model):
    model.model.add_module("embed_norm", nn.LayerNorm(width_of(model)))
    first = model.model.layers[0]
    layer = first.forward
    first.forward = lambda x, **more: layer(model.model.embed_norm(x), **more)


def width_of(model):
    return model.config.hidden_size


CASES = {
    "attention": (lambda m: then(m.model.layers[1].self_attn, "adapter", Adapter(width_of(m))),
                  "layers.1.self_attn.adapter", ["layer1.mid"]),
    "mlp": (lambda m: then(m.model.layers[1].mlp, "adapter", Adapter(width_of(m))),
            "layers.1.mlp.adapter", ["layer1.out"]),
    "a matrix": (lambda m: then(m.model.layers[0].mlp, "more", nn.Linear(*2 * [width_of(m)])),
                 "layers.0.mlp.more", ["layer0.out"]),
    "no parameter": (lambda m: then(m.model.layers[0].mlp, "scale", Scale()),
                     "layers.0.mlp.scale", ["layer0.out"]),
    "norm of q": (lambda m: then(m.model.layers[1].self_attn.q_proj, "own_norm",
                                 nn.LayerNorm(width_of(m))),
                  "layers.1.self_attn.q_proj.own_norm", ["layer1.q"]),
    "norm before gate": (lambda m: before(m.model.layers[1].mlp, "norm", nn.LayerNorm(width_of(m)),
                                          "gate_proj"),
                         "layers.1.mlp.norm", ["layer1.gate"]),
    "norm before both": (lambda m: before(m.model.layers[1].mlp, "norm", nn.LayerNorm(width_of(m)),
                                          "gate_proj", "up_proj"),
                         "layers.1.mlp.norm", ["layer1.gate", "layer1.up"]),
    "of the embedding": (between_layers, "embed_norm", ["layer0.norm", "layer0.mid"]),
    "last": (lambda m: before(m, "tail", nn.LayerNorm(width_of(m)), "lm_head"), "tail", ["logits"]),
    "a kernel": (lambda m: through_kernel(m.model.layers[1].mlp, Kernel(width_of(m))),
                 "layers.1.mlp.kernel", ["layer1.out"]),
}


def small(ranks=1):
    return spt.shrink(transformers.LlamaConfig(attention_bias=True), ranks=ranks)


def changed(change, ranks=1):
    model = small(ranks)
    change(model)
    draw = np.random.default_rng(2)  # alike on all ranks
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (Adapter, nn.LayerNorm)):
                for parameter in module.parameters():
                    noise = draw.standard_normal(tuple(parameter.shape), np.float32)
                    parameter.copy_(torch.from_numpy(noise) * parameter.shape[-1] ** -0.5)
    return model


def run(model, reference):
    with spt.tap(model, reference) as tap, torch.no_grad():
        out = model(IDS[:, :8], use_cache=True)
        model(IDS[:, 8:], use_cache=True, **cache_of(out))
    return tap


def given_of(verdict):
    return [value["name"] for value in verdict.json["values"] if "given" in value.get("why", "")]


@pytest.mark.parametrize("case", CASES)
def test_what_a_module_reaches_first_is_given_alone(case):
    change, path, values = CASES[case]
    model = changed(change)
    tap = run(model, spt.reference(model))
    trace = tap.trace()
    verdict = sp.check(trace)
    name = f"model.{path}" if path != "tail" else path
    assert tap.unknown == [name] and tap.missing == [] and tap.left == []
    assert f"{path}: the text has no such module; given: {', '.join(values)}" in verdict.unseen
    want = [f"{at}.{value}" for at in ("prefill.c0", "decode.1") for value in values]
    assert given_of(verdict) == want
    assert {fit for value, fit in verdict.values.items()
            if value not in want and not value.endswith("ids")} <= {"exact", "within", "likely"}


def test_a_fault_elsewhere_is_found():
    model = changed(CASES["attention"][0])
    reference = spt.reference(model)
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[3] *= 1.5
        model.model.layers[0].self_attn.o_proj.bias.mul_(2)
    verdict = sp.judge(run(model, reference).trace())
    assert verdict.first == "prefill.c0.layer0.attn_out"
    assert verdict.values["prefill.c0.layer1.ffn_out"] == "different"
    assert verdict.values["decode.1.layer1.ffn_out"] == "different"
    assert given_of(verdict) == ["prefill.c0.layer1.mid", "decode.1.layer1.mid"]


@pytest.mark.parametrize("kind", ["queries", "keys"])
def test_norms_of_rotated_heads(kind, monkeypatch):
    """Between modules: what attention is given, and the cache."""
    import transformers.models.llama.modeling_llama as library
    model = small()
    attention = model.model.layers[1].self_attn
    attention.own_norm = nn.LayerNorm(8)
    rotate, calls = library.apply_rotary_pos_emb, []

    def rotated(q, k, *more):
        q, k = rotate(q, k, *more)
        calls.append(0)
        if len(calls) % 2:  # of layer 0
            return q, k
        return (attention.own_norm(q), k) if kind == "queries" else (q, attention.own_norm(k))
    monkeypatch.setattr(library, "apply_rotary_pos_emb", rotated)
    verdict = sp.check(run(model, spt.reference(model)).trace())
    value = "layer1.q_rot" if kind == "queries" else "layer1.k_cache"
    assert given_of(verdict) == [f"prefill.c0.{value}", f"decode.1.{value}"]
    assert verdict.values["decode.1.layer1.attn"] == "within"


def test_a_wrapper_is_the_module_and_what_it_adds_is_not():
    """An adapter of low rank, as libraries write it, and a wrapper that adds nothing."""
    class Wrapper(nn.Module):
        def __init__(self, own, adds):
            super().__init__()
            self.base_layer = own
            if adds:
                self.lora_a = nn.Linear(own.in_features, 2, bias=False)
                self.lora_b = nn.Linear(2, own.out_features, bias=False)

        def forward(self, x):
            y = self.base_layer(x)
            return y + self.lora_b(self.lora_a(x)) if hasattr(self, "lora_a") else y
    model = small()
    reference = spt.reference(model)
    for layer, adds in zip(model.model.layers, (False, True)):
        layer.mlp.down_proj = Wrapper(layer.mlp.down_proj, adds)
    tap = run(model, reference)
    assert tap.unknown == ["model.layers.1.mlp.down_proj.lora_a",
                           "model.layers.1.mlp.down_proj.lora_b"]
    assert given_of(sp.check(tap.trace())) == ["prefill.c0.layer1.ffn_out",
                                               "decode.1.layer1.ffn_out"]


def test_a_failed_call_leaves_nothing_behind():
    model = changed(CASES["mlp"][0])
    with spt.tap(model, spt.reference(model)):
        with pytest.raises(IndexError):
            model(IDS + 10 ** 6)
        from torch.overrides import _get_current_function_mode_stack as stack
        assert stack() == []


def test_a_tensor_of_no_module_is_an_error():
    """A bias that the config does not say is of a module that the text has."""
    model = small()
    model.config.attention_bias = False
    with pytest.raises(sp.Error, match="self_attn.k_proj.bias") as caught:
        spt.reference(model)
    assert caught.value.label == "architecture_tensors"


PLAN = {**{f"self_attn.{name}_proj": ColwiseParallel() for name in "qkv"},
        **{f"mlp.{name}_proj": ColwiseParallel() for name in ("gate", "up")},
        "self_attn.o_proj": RowwiseParallel(), "mlp.down_proj": RowwiseParallel()}


@pytest.mark.parametrize("processes", [None, True])
@pytest.mark.parametrize("faulty", [False, True])
def test_on_ranks(faulty, processes):
    """A module behind the attention of a model that is cut over ranks."""
    def program(mesh):
        model = changed(CASES["attention"][0], ranks=4)
        reference = spt.reference(model)
        for layer in model.model.layers:
            parallelize_module(layer, mesh, PLAN)
        if faulty:
            bias = model.model.layers[1].self_attn.o_proj.bias
            bias.to_local().mul_(2)
        return run(model, reference)
    verdict = sp.judge(spt.ranks(4, processes=processes).run(program).trace())
    assert given_of(verdict) == ["prefill.c0.layer1.mid", "decode.1.layer1.mid"]
    assert verdict.right is not faulty
    if faulty:
        assert verdict.module == "layers.1.self_attn.o_proj"


def test_partial_sums_and_what_they_add_up_to_are_both_given():
    def program(mesh):
        model = small(ranks=4)
        reference = spt.reference(model)
        for layer in model.model.layers:
            parallelize_module(layer, mesh, PLAN)
        then(model.model.layers[1].mlp.down_proj, "scale", Scale())
        return run(model, reference)
    verdict = sp.check(spt.ranks(4).run(program).trace())
    forms = [name for name in verdict.values if ".layer1.ffn_out" in name]
    assert given_of(verdict) == forms
    assert len(forms) == 4 or torch.__version__ < "2.10"  # whose products may reduce the sums


@pytest.mark.parametrize("part, value", [("self_attn", "mid"), ("mlp", "out")])
def test_the_stream_that_hooks_hand_on_is_one_value(part, value):
    """Norms are given a DTensor that a hook made of the stream, which is added as it was."""
    family = FAMILIES["llama"]

    def program(mesh):
        model = model_of("llama", torch.float32, 3)
        then(getattr(model.model.layers[0], part), "scale", Scale())
        reference = spt.reference(model)
        Parallel(model, family, mesh).cut()
        with spt.tap(model, reference, mesh) as tap:
            out = model(torch.arange(16).reshape(1, 16), use_cache=True)
            model(torch.arange(1).reshape(1, 1), use_cache=True, **cache_of(out))
        return tap
    verdict = sp.check(spt.ranks(family.ranks, family.mesh).run(program).trace())
    assert given_of(verdict) == [f"prefill.c0.layer0.{value}", f"decode.1.layer0.{value}"]
