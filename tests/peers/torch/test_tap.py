"""What a tap leaves out or refuses, on one rank: nothing is dropped without a word."""
import pytest
import torch
import transformers
from torch import nn

import shardproof as sp
import shardproof.torch as spt
from passes import CACHE, cache_of

IDS = torch.arange(16).reshape(2, 8)


@pytest.fixture
def model():
    return spt.shrink(transformers.LlamaConfig(), ranks=1)


def run(model, *passes, reference=None):
    """The tap of a run of passes, which share a cache."""
    with spt.tap(model, reference or spt.reference(model)) as tap, torch.no_grad():
        cache = {}
        for ids in passes:
            cache = cache_of(model(ids, use_cache=True, **cache))
    return tap


def shorten(tap, values, name, axis):
    """What was seen under a name, but for the last element of an axis."""
    whole = values[name]
    value = whole[1] if isinstance(whole, tuple) and len(whole) == 2 else whole
    value = value._replace(shards={rank: array.take(range(array.shape[axis] - 1), axis)
                                   for rank, array in value.shards.items()})
    values[name] = value if value.__class__ is whole.__class__ else (whole[0], value)


def test_an_array_of_no_readable_layout_fails(model):
    tap = run(model, IDS)
    assert sp.check(tap.trace()).right
    shorten(tap, tap.passes[0].values, "layer0.q", -1)
    with pytest.raises(AssertionError) as caught:
        sp.check(tap.trace())
    first = str(caught.value).splitlines()[0]
    assert first.startswith("Not shown to be right: seen, but not judged: prefill.c0.layer0.q: an "
                            "array of [2, 8, ")
    assert tap.left == tap.trace().left and tap.left[0] in caught.value.verdict.unseen


def test_a_short_cache_fails_but_of_a_window(model):
    tap = run(model, IDS)
    shorten(tap, tap.passes[0].heads, "layer1.k_cache", 2)
    assert not sp.judge(tap.trace()).right
    tap.reference.config["sliding_window"] = 7
    assert sp.check(tap.trace()).unseen[-1].startswith("prefill.c0.layer1.k_cache: ")
    assert tap.left != [] and tap.trace().left == []


def test_missing_modules_and_entries_are_listed(model):
    model.config.own_entry = 3
    reference = spt.reference(model)
    mlp = model.model.layers[1].mlp
    fused = mlp.down_proj
    mlp.forward = lambda x: fused(mlp.act_fn(mlp.gate_proj(x)) * mlp.up_proj(x))
    del mlp.down_proj
    verdict = sp.check(run(model, IDS, reference=reference).trace())
    assert verdict.unseen[-2:] == [
        "layer1.ffn_out: the model has no module model.layers.1.mlp.down_proj",
        "the config's own_entry = 3: no text has it"]


@pytest.mark.parametrize("more, said", [
    ({"attention_mask": torch.tensor([[0, 1, 1, 1, 1, 1, 1, 1], [1] * 8])}, "padded rows"),
    ({"position_ids": torch.tensor([[0, 0, 1, 2, 3, 4, 5, 6], list(range(8))])}, "not 0 to 7"),
    ({"position_ids": torch.arange(1, 9)[None]}, "other positions")])
def test_padded_rows_are_an_error(model, more, said):
    with spt.tap(model, spt.reference(model)), torch.no_grad():
        with pytest.raises(sp.Error, match=said) as caught:
            model(IDS, *more.values()) if "attention_mask" in more else model(IDS, **more)
    assert caught.value.label == "torch_passes"


def test_masks_of_ones_and_positions_that_go_on_are_right(model):
    with spt.tap(model, spt.reference(model)) as tap, torch.no_grad():
        out = model(IDS, attention_mask=torch.ones(2, 8), position_ids=torch.arange(8)[None],
                    use_cache=True)
        model(IDS[:, :1], attention_mask=torch.ones(2, 9, dtype=torch.int64),
              position_ids=torch.tensor([[8], [8]]), **cache_of(out))
    assert sp.check(tap.trace()).right


@pytest.mark.parametrize("more", [[], [None], [transformers.DynamicCache()]])
def test_a_second_prompt_is_an_error(model, more):
    with spt.tap(model, spt.reference(model)) as tap, torch.no_grad():
        model(IDS)
        with pytest.raises(sp.Error, match="a second prompt: tap each run by itself") as caught:
            model(IDS, **{CACHE: cache for cache in more})
    assert caught.value.label == "torch_passes" and len(tap.passes) == 1


def test_a_module_that_is_called_twice_is_listed(model):
    mlp = model.model.layers[1].mlp
    forward = mlp.forward
    mlp.forward = lambda x: forward((forward(2 * x), x)[1])
    tap = run(model, IDS)
    verdict = sp.check(tap.trace())
    line = "layer1.gate: layers.1.mlp.gate_proj is called several times in a pass, of which the " \
           "last is judged"
    assert line in tap.left and line in verdict.unseen and not tap.trace().left


def test_what_rank_0_has_not_seen_is_kept(model):
    """Of a model in two stages each rank has its own layers."""
    first, second = run(model, IDS), run(model, IDS)
    for rank, one in enumerate((first, second)):
        for seen in one.passes:
            for values in (seen.values, seen.early, seen.heads):
                for name in [n for n in values if n.startswith(f"layer{1 - rank}")]:
                    del values[name]
    first.missing, second.missing = ["layer1.q: none", "embed: none"], ["embed: none"]
    before = set(first.passes[0].values)
    joined = first.join([second])
    assert "layer1.q" not in before and "layer1.q" in joined.passes[0].values
    assert joined.missing == ["embed: none"] and "layer1.k_cache" in joined.passes[0].heads
    assert "prefill.c0.layer1.q" in sp.check(joined.trace()).values


class EngineNorm(nn.Module):
    """A norm as engines call it: of a sum, which it also returns."""

    def __init__(self, own, is_last=False):
        super().__init__()
        self.weight, self.own, self.is_last = own.weight, [own], is_last

    def forward(self, x, residual=None):
        x, residual = x if isinstance(x, tuple) else (x, residual)
        if residual is None:
            return self.own[0](x)
        stream = x + residual
        return self.own[0](stream) if self.is_last else (self.own[0](stream), stream)


class EngineLayer(nn.Module):
    """A layer as engines write it: the residual stream is handed on beside what is to be added."""

    def __init__(self, own, faulty):
        super().__init__()
        self.self_attn, self.mlp, self.faulty = own.self_attn, own.mlp, faulty
        self.input_layernorm = EngineNorm(own.input_layernorm)
        self.post_attention_layernorm = EngineNorm(own.post_attention_layernorm)

    def forward(self, x, **more):
        if isinstance(x, tuple):
            x, residual = self.input_layernorm(*x)
        else:
            x, residual = self.input_layernorm(x), x
        x, residual = self.post_attention_layernorm(self.self_attn(x, **more)[0], residual)
        return self.mlp(x), (2 * residual if self.faulty else residual)


@pytest.mark.parametrize("faulty", [False, True])
def test_a_residual_kept_beside_is_added(model, faulty):
    reference = spt.reference(model)
    for number, layer in enumerate(model.model.layers):
        model.model.layers[number] = EngineLayer(layer, faulty and number == 1)
    model.model.norm = EngineNorm(model.model.norm, is_last=True)
    tap = run(model, IDS, IDS[:, :1], reference=reference)
    verdict = sp.judge(tap.trace())
    assert tap.left == [] and verdict.right is not faulty
    for value in ("layer0.mid", "layer0.out", "layer1.mid"):
        assert verdict.values[f"prefill.c0.{value}_added+prefill.c0.{value}_residual"] == "within"
    if faulty:
        assert verdict.first == "prefill.c0.layer1.out_added+prefill.c0.layer1.out_residual"
        assert verdict.module == "layers.1" and "layers.1: " in verdict.headline
