"""The zoo's faults of weights, sums, layers, lookups and tokens."""
import numpy as np

import zoo_weights as w
from fault import F
from faults_weights import (bias_of_every_chip, border_twice, by_group, by_head, clipped,
                            device_order, in_equal_blocks, interleaved, its_norm, late_rows,
                            layer_of_embed, layer_skipped, lookup, read_as_fused, residual,
                            strided_rows, token_of, viewed_logits, without_offset)
from zoo_kind import DEEP, INT8, Kind, MANY, TP, TWO, plain
from zoo_runs import NormTrace, OwnTokensTrace, PartsTrace, Subject, WeightsTrace, WholeTrace

BIASED = dict(family="gptj", sizes="E=16,F=24,H=4,K=4,Q=8,V=24")
QKV, GATED = ("wq", "wk", "wv"), ("w_gate", "w_up")
FUSED = "columns of a fused weight"
MERGED = "converted checkpoint, fused weights"


def weights(name, says, met, reports, plant, cause=FUSED, subject=Subject(), **more):
    return Kind(name, "weights", says, met, reports, plant, cause, subject, **more)


WEIGHTS = [
    weights("qkv-in-equal-blocks", "a fused [Q|K|V] is cut into equal blocks of columns, one for "
            "each chip", TP, ("vllm-project/vllm#42803", "deepspeedai/DeepSpeed#3844"),
            in_equal_blocks(QKV), others=(("of-2", Subject(torus=TWO), None),)),
    weights("gate-up-in-equal-blocks", "a fused [gate|up] is cut into equal blocks of columns, one "
            "for each chip", TP, ("NVIDIA-NeMo/Automodel#1324",), in_equal_blocks(GATED)),
    weights("qkv-by-group", "columns that lie by kv heads, [q q k v] each, are read as [Q|K|V]",
            MERGED, ("hpcaitech/ColossalAI#817",), read_as_fused(QKV, by_group), subject=plain()),
    weights("qkv-by-head", "columns that lie by heads, [q k v] each, are read as [Q|K|V]", MERGED,
            ("deepspeedai/DeepSpeed#3844",), read_as_fused(QKV, by_head),
            subject=plain(sizes=MANY)),
    weights("gate-up-merged", "shards merged as [g0 u0 g1 u1] are read as [gate|up]", MERGED,
            ("NVIDIA-NeMo/Automodel#1324",), read_as_fused(GATED, w.in_turn), subject=plain()),
    weights("gate-up-interleaved", "columns that lie in turn, g u g u, are read as [gate|up]",
            MERGED, ("NVIDIA-NeMo/Automodel#1324",), read_as_fused(GATED, interleaved),
            subject=plain()),
    weights("biases-in-equal-blocks", "the biases of q, k and v are cut as one vector in equal "
            "blocks, the weights rightly", TP, ("ModelTC/LightX2V#1453",),
            w.biases_in_equal_blocks(("bq", "bk", "bv")), subject=Subject("bias=qkv")),
    weights("qkv-gathered-by-chip", "outputs gathered as [q0 k0 v0|q1 k1 v1] are read as [q|k|v]",
            TP, ("ndif-team/nnsight#719",), read_as_fused(QKV, w.by_chip(2)),
            subject=Subject(torus=TWO, trace=WholeTrace)),
    weights("w-out-device-order", "the blocks of w_out lie in the device order 0, 1, 3, 2",
            "mesh of devices, tensor parallel", ("pytorch/pytorch#166598",), device_order("w_out"),
            "chunks in another order"),
    weights("wo-device-order", "the blocks of wo lie in the device order 0, 1, 3, 2",
            "mesh of devices, tensor parallel", ("pytorch/pytorch#166598",), device_order("wo"),
            "chunks in another order"),
    weights("embed-device-order", "the blocks of the table lie in the device order 0, 1, 3, 2",
            "mesh of devices, tensor parallel", ("pytorch/pytorch#166598",), device_order("embed"),
            "chunks in another order"),
    weights("gather-device-order", "weights that are gathered for a layer come with their blocks "
            "of E in the order 0, 1, 3, 2", "weights gathered for each layer",
            ("pytorch/pytorch#166598",), w.rows_in_device_order(*QKV, *GATED),
            "chunks in another order", Subject(torus="1x4x1", trace=WholeTrace)),
    weights("gain-device-order", "the blocks of a gain lie in the device order 0, 1, 3, 2",
            "mesh of devices, tensor parallel", (), w.gain_in_device_order("norm2"),
            "chunks in another order"),
    weights("rows-late", "each chip's rows of w_out begin one row late", "weight loader", (),
            late_rows("w_out"), "chunks in another order"),
    weights("rows-strided", "each chip has every fourth row of w_out, not a block of them",
            "weight loader", (), strided_rows("w_out"), "chunks in another order"),
    weights("weights-in-the-file", "a dump that has its weights has the blocks of w_out in the "
            "device order 0, 1, 3, 2", "mesh of devices, tensor parallel", (),
            device_order("w_out"), "chunks in another order",
            Subject(trace=WeightsTrace), sets=("full",)),
]

TOKENS = Subject(torus=TWO, passes=(2, 4, 4, 1), trace=OwnTokensTrace)


def sums(name, says, met, reports, plant, cause="addend not added once", subject=Subject(),
         **more):
    return Kind(name, "sums", says, met, reports, plant, cause, subject, **more)


SUMS = [
    sums("bias-of-every-chip", "every chip adds the bias before the reduction, in bf16", TP,
         ("EleutherAI/gpt-neox#962", "huggingface/text-generation-inference#1036"),
         bias_of_every_chip("b_out"), subject=Subject(**BIASED, form="bf16")),
    sums("residual-of-every-chip", "every chip adds the residual before the reduction, in bf16", TP,
         ("mirage-project/mirage#722",), residual("out", lambda run, layer, x: x * F(run.n)),
         subject=Subject(form="bf16")),
    sums("unlike-tokens-summed", "tokens are cut over the chips that cut the MLP, too, and an "
         "all-reduce adds different tokens", "sequence parallel, tensor parallel",
         ("openxla/xla#42481",), w.reduced_as("ffn_out", w.sums_of_own_tokens),
         "sum of unlike rows", TOKENS),
    sums("sliced-before-sum", "each chip takes its own columns before the reduction: unlike "
         "columns are added", "compiler", ("openxla/xla#42481",),
         w.reduced_as("attn_out", w.sliced_first), "sum of unlike rows", Subject(scattered=True)),
    sums("residual-of-chip-0", "the residual is added from the first chip's columns, on all chips",
         "sequence parallel, tensor parallel", ("vllm-project/vllm#24021",),
         residual("out", w.first_block(4)), "another chip's block", Subject(scattered=True)),
    sums("gathered-first-dim", "chunks of E gathered along a first dim are viewed as the last one",
         TP, ("NVIDIA-NeMo/Megatron-Bridge#5385",), w.result("attn_out", w.viewed(4)),
         "gathered along another dim"),
    sums("logits-viewed", "logits gathered as [n,B,v] are viewed as [B,n·v]", TP,
         ("turboderp-org/exllamav3#233",), viewed_logits, "gathered along another dim",
         Subject(passes=(2, 5, 5, 1))),
    sums("bias-inside", "partial sums declared raw hold the bias of the first chip",
         TP, ("GeeeekExplorer/nano-vllm#99",), w.bias_inside, "convention",
         Subject("bias=all", **BIASED, trace=PartsTrace)),
    sums("statistic-over-other-axis", "the sum of squares is reduced over an axis along which all "
         "chips have the same", "two mesh axes", ("huggingface/transformers#48383",),
         w.statistics_of("norm2", 4, w.over_other_axis(2)), "local statistics",
         Subject(torus="4x2x1", trace=NormTrace)),
]


def layer(name, says, reports, plant, cause="another layer's or pass's value", subject=DEEP,
          met="pipeline parallel", **more):
    return Kind(name, "layers", says, met, reports, plant, cause, subject, **more)


LAYERS = [
    layer("layer-skipped", "layer 1 is not run: layer 2 takes what layer 0 makes",
          ("NVIDIA/Megatron-LM#4775",), layer_skipped,
          subject=Subject(layers=3)),
    layer("layer-again", "layer 0 is run again in the place of layer 1",
          ("huggingface/transformers#24381",), w.layer_again, "another layer's weight"),
    layer("layer-of-embed", "layer 1 takes the embedding, not what layer 0 makes",
          ("NVIDIA/Megatron-LM#4775",), layer_of_embed),
    layer("mid-of-norm", "attention's output is added to the norm, not to what the norm is of",
          ("lightseekorg/tokenspeed#80",), residual("mid", its_norm), subject=Subject(),
          met="kernel that fuses sum and norm"),
]

PADDED = Subject(family="gptj", sizes="E=16,F=24,H=4,K=4,Q=8,V=3", passes=(16, 2, 2, 1),
                 more="pad_vocab=4", trace=WholeTrace)


def looked_up(name, says, reports, plant, cause="rows of other shards", subject=Subject(), **more):
    return Kind(name, "lookups", says, TP + ", vocabulary cut over chips", reports, plant, cause,
                subject, **more)


LOOKUPS = [
    Kind("scales-exchanged", "int8", "the scales of gate and up are exchanged",
         "int8 weights, fused", ("vllm-project/vllm#41021",), w.int8(w.other_scale),
         "columns of a fused weight", INT8, right=w.int8()),
    Kind("one-scale", "int8", "the whole matrix has one scale, not one for each column",
         "int8 weights", ("vllm-project/vllm#41021",), w.int8(w.scale_as(np.max)), "another factor",
         INT8, right=w.int8()),
    looked_up("own-and-first-rows", "tokens of other chips are not left out: each adds its first "
              "row", ("NVIDIA/Megatron-LM#926",), lookup(w.first_rows)),
    looked_up("own-and-border-rows", "tokens of other chips are not left out: each adds the row at "
              "its border", ("pytorch/pytorch#131264",), lookup(clipped)),
    looked_up("offset-not-subtracted", "a chip's first row is not subtracted from the token",
              ("NVIDIA/Megatron-LM#926",), lookup(without_offset)),
    looked_up("border-twice", "the token at a border is looked up by two chips", (),
              lookup(border_twice), subject=Subject(passes=(3, 8, 8, 1))),
    looked_up("token-local", "each chip takes the number of the largest logit in its own shard as "
              "the token", ("tenstorrent/tt-xla#5004",), w.tokens_of_chips(w.local_index),
              "token of a shard"),
    looked_up("token-mod-shard", "the token is counted from its shard's first row",
              ("tenstorrent/tt-xla#5004",), token_of(
                  lambda right, logits: right % logits.shape[-1]), "token of a shard"),
    looked_up("token-of-chip-0", "the token is the largest of the first chip's logits",
              ("NVIDIA/NeMo-Aligner#186",), token_of(lambda right, logits: logits[0].argmax(-1)),
              "token of a shard"),
    looked_up("tokens-differ", "each chip takes the token with the largest logit of its own shard",
              ("sgl-project/mini-sglang#85",), w.tokens_of_chips(w.winner_of_shard),
              "token of a shard"),
    looked_up("padding-token", "the head is padded by zero rows, and where all logits are negative "
              "a padding id wins", ("mirage-project/mirage#751",), w.zero_rows_win,
              "token of a shard", PADDED),
]
