"""Engines' own parallel modules, whose tensors are plain: stand-ins under the names that engines
use, in a Llama cut by hand over ranks in one process, with fused q, k and v and fused gate and up."""
import pytest
import torch
import torch.distributed as dist
import transformers
from torch import nn

import shardproof as sp
import shardproof.torch as spt
from passes import cache_of

local = pytest.importorskip("torch.distributed._local_tensor")  # from torch 2.10 on
LocalTensor, local_tensor_mode = local.LocalTensor, local.local_tensor_mode

RANKS, HEADS, KV, WIDTH = 8, 8, 4, 8


def by_rank(part):
    """A plain tensor of which each simulated rank has its own."""
    return LocalTensor({rank: part(rank) for rank in range(RANKS)})


def parameter(part):
    return nn.Parameter(by_rank(part), requires_grad=False)


def all_reduce(x):
    dist.all_reduce(x)
    return x


def whole(tensor):
    """The numbers that all ranks have alike."""
    return tensor.reconcile() if isinstance(tensor, LocalTensor) else tensor.detach()


def blocks(weight, dim=0):
    return list(whole(weight.data).chunk(RANKS, dim))


class ColumnParallelLinear(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        self.weight = parameter(lambda r: torch.cat([w[r] for w in weights]))
        self.bias = None if biases[0] is None else \
            parameter(lambda r: torch.cat([b[r] for b in biases]))

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias), None


class QKVParallelLinear(ColumnParallelLinear):
    num_heads, num_kv_heads, head_size = HEADS // RANKS, 1, WIDTH


class MergedColumnParallelLinear(ColumnParallelLinear):
    def __init__(self, weights, biases):
        super().__init__(weights, biases)
        self.output_sizes, self.tp_size = [RANKS * len(w[0]) for w in weights], RANKS


class RowParallelLinear(nn.Module):
    def __init__(self, linear, every_rank_adds=False, reduce_results=True):
        super().__init__()
        cut = blocks(linear.weight, 1)
        self.weight = parameter(lambda r: cut[r])
        bias = linear.bias
        self.bias = None if bias is None else parameter(
            lambda r: whole(bias.data) * (1 if every_rank_adds or r == 0 else 0))
        self.reduce_results = reduce_results

    def forward(self, x):
        y = nn.functional.linear(x, self.weight, self.bias)
        return (all_reduce(y) if self.reduce_results else y), None


class VocabParallelEmbedding(nn.Module):
    def __init__(self, embedding, masked=True):
        super().__init__()
        cut = blocks(embedding.weight)
        self.weight = parameter(lambda r: cut[r])
        self.first = by_rank(lambda r: torch.tensor(r * len(cut[0])))
        self.rows, self.masked = len(cut[0]), masked

    def forward(self, ids):
        local = ids - self.first
        inside = (local >= 0) & (local < self.rows)
        y = nn.functional.embedding(local.clamp(0, self.rows - 1), self.weight)
        return all_reduce(y * inside.unsqueeze(-1) if self.masked else y)


class Attention(nn.Module):
    """Of a layer, as an engine writes it: on a rank's own heads."""

    def __init__(self, own, fault):
        super().__init__()
        self.config, self.layer_idx = own.config, own.layer_idx
        self.scaling, self.attention_dropout, self.is_causal = own.scaling, 0.0, True
        self.num_key_value_groups = HEADS // RANKS
        copies = RANKS // KV

        def shared(tensor):  # ranks 2n and 2n + 1 have kv head n
            heads = whole(tensor.data).chunk(KV)
            return [heads[r % KV if fault == "tile" else r // copies] for r in range(RANKS)]
        self.qkv_proj = QKVParallelLinear(
            [blocks(own.q_proj.weight), shared(own.k_proj.weight), shared(own.v_proj.weight)],
            [blocks(own.q_proj.bias), shared(own.k_proj.bias), shared(own.v_proj.bias)])
        self.o_proj = RowParallelLinear(own.o_proj, fault == "bias")

    def forward(self, hidden_states, position_embeddings, attention_mask=None, cache=None, **_):
        from transformers.models.llama import modeling_llama as library

        batch, length = hidden_states.shape[:2]
        fused, _ = self.qkv_proj(hidden_states)
        q, k, v = (part.view(batch, length, -1, WIDTH).transpose(1, 2)
                   for part in fused.split([HEADS // RANKS * WIDTH, WIDTH, WIDTH], -1))
        q, k = library.apply_rotary_pos_emb(q, k, *position_embeddings)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        attend = library.ALL_ATTENTION_FUNCTIONS.get_interface(
            "eager", library.eager_attention_forward)
        y, _ = attend(self, q, k, v, attention_mask, dropout=0.0, scaling=self.scaling)
        return self.o_proj(y.reshape(batch, length, -1))[0], None


class MLP(nn.Module):
    def __init__(self, own):
        super().__init__()
        self.gate_up_proj = MergedColumnParallelLinear(
            [blocks(own.gate_proj.weight), blocks(own.up_proj.weight)], [None])
        self.down_proj = RowParallelLinear(own.down_proj)

    def forward(self, x):
        gate, up = self.gate_up_proj(x)[0].chunk(2, -1)
        return self.down_proj(nn.functional.silu(gate) * up)[0]


def run(fault):
    def program(_):
        assert local_tensor_mode() is not None
        model = spt.shrink(transformers.LlamaConfig(
            num_attention_heads=16, num_key_value_heads=8, attention_bias=True), ranks=KV)
        reference = spt.reference(model)
        for number, layer in enumerate(model.model.layers):
            layer.self_attn = Attention(layer.self_attn, fault if number == 1 else None)
            layer.mlp = MLP(layer.mlp)
        model.model.embed_tokens = VocabParallelEmbedding(model.model.embed_tokens,
                                                          fault != "unmasked")
        with spt.tap(model, reference) as tap:
            ids = torch.arange(18).reshape(2, 9) * 7 % model.config.vocab_size
            out = model(ids[:, :8], use_cache=True)
            model(ids[:, 8:], use_cache=True, **cache_of(out))
        return tap
    return spt.ranks(RANKS).run(program)


def test_fused_modules_and_shared_kv_heads_are_judged():
    tap = run(None)
    trace = tap.trace()
    verdict = sp.check(trace)
    assert tap.missing == [] and tap.left == []
    assert "torus=4x2x1" in trace.case
    shown = {name.rpartition(".")[2] for name in verdict.values}
    assert {"q", "k", "v", "gate", "up", "k_cache", "attn_out", "embed", "logits"} <= shown


@pytest.mark.parametrize("fault, line", [
    ("bias", "ranks 0–7, layers.1.self_attn.o_proj: the bias is added 8 times"),
    ("tile", "layers.1.self_attn.k_proj: "), ("unmasked", "embed_tokens: ")])
def test_their_faults_are_found(fault, line):
    with pytest.raises(AssertionError) as caught:
        sp.check(run(fault).trace())
    assert line in str(caught.value).splitlines()[0]
