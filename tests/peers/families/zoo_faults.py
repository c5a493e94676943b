"""The faults of golden/zoo in the order of their numbers: a new one comes last."""
import dataclasses
from typing import Callable

import numpy as np

import zoo_plants as z
from fault import swapped, weight
from faults_attention import (appended, first_kv_head, in_decode, kv_head_mod, layer_zero,
                              new_entries, no_mask, other_pairs, own_chunk_mask, positions, read,
                              scaled, strided, tables, unrotated, unwritten, without_newest,
                              zeros_before_newest, zigzag)
from faults_weights import (bias_of_every_chip, border_twice, by_group, by_head, clipped, constant,
                            device_order, in_equal_blocks, interleaved, its_norm, late_rows,
                            layer_of_embed, layer_skipped, lookup, of_layer_zero, one_left_out,
                            partial_sums, read_as_fused, residual, strided_rows, token_of,
                            viewed_logits, without_offset)
from zoo_runs import (NormTrace, OwnTokensTrace, PartsTrace, SlopesTrace, Subject, TokensTrace,
                      WeightsTrace, WholeTrace)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A fault: what is wrong in a sentence, the kind of system it was met in, public reports of its
    class ("owner/repository#number"), how it is planted, in what (by a suffix of the dump's name),
    and the kind of cause that compare is to say."""
    name: str
    section: str
    says: str
    met: str
    reports: tuple
    plant: Callable
    cause: str
    subject: Subject = Subject()
    sets: tuple = ("full", "hooks")
    others: tuple = ()          # of (suffix, subject, plant or None)
    causes: tuple = ()          # of (set, cause) where a set shows it otherwise
    right: Callable = None      # of the right run, where it is not the peer's own


ONE, TWO, CHUNKED = "1x1x1", "2x1x1", (2, 12, 4, 2)
SERVING = "serving engine"
TP, CP = "serving engine, tensor parallel", "serving engine, keys cut over chips"


def plain(**more):
    return Subject(torus=ONE, **more)


def decoding(**more):
    return plain(**{"passes": (2, 5, 5, 2)} | more)


DEEP = Subject(layers=2)
MANY = "E=16,F=24,H=4,K=4,Q=4,V=24"
MULTI = "E=16,F=24,H=4,K=1,Q=4,V=24"
ALIBI = Subject(family="falcon", keys="rope=alibi", sizes="E=16,F=24,H=8,K=1,Q=4,V=24")
BIASED = dict(family="gptj", sizes="E=16,F=24,H=4,K=4,Q=8,V=24")
HALVES, QUARTERS = z.strided_slots(2), z.strided_slots(4)
FOUR_PARTS = plain(sizes=MULTI, passes=(2, 6, 6, 2))


def merge(name, says, weights, reports, parts=HALVES, subject=decoding(), more=(), of=None):
    of = of or (lambda run: run.start > 0)
    return Kind(name, "attention", says, CP, reports, z.in_parts(weights, parts, of),
                "merge of parts", subject, ("hooks",), tuple(more))


def merge_in_four(weights):
    return (("in-4", FOUR_PARTS, z.in_parts(weights, QUARTERS)),)


ATTENTION = [
    Kind("kv-head-mod", "attention", "query head h reads kv head h mod K, not h·K/H",
         "serving engine and standard operator, grouped-query attention", ("onnx/onnx#7274",),
         kv_head_mod, "head order", plain(),
         others=(("of-a-chip", Subject(torus=TWO), None),)),
    Kind("chunk-own-keys", "attention", "in every chunk query i sees the keys up to i, as if the "
         "chunk were the first", "serving engine, prefill in chunks",
         ("gittensor-ai-lab/sparkinfer#3", "Mikyx-1/TinyLLM#17"), own_chunk_mask, "mask",
         plain(passes=CHUNKED)),
    Kind("chunk-all-keys", "attention", "the queries of the second chunk see all of its keys, "
         "later ones too", "serving engine, prefill in chunks", ("huggingface/candle#3743",),
         lambda run: z.put(run, "seen", lambda before: before() | (run.start > 0)), "mask",
         plain(passes=(2, 12, 6, 1))),
    Kind("newest-unseen", "attention", "a decode step does not see the key that it has just "
         "written",
         "serving engine, decode", (), without_newest, "mask", decoding()),
    Kind("scale-one", "attention", "scores are not scaled by 1/sqrt(Q)", "new port of a model",
         ("huggingface/transformers#43481",), scaled(lambda m: 1), "scale missing", plain()),
    Kind("scale-of-width", "attention", "scores are scaled by 1/sqrt(E), not by 1/sqrt(Q)",
         "new port of a model", ("huggingface/transformers#43481",),
         scaled(lambda m: m.E**-0.5), "scale doubled", plain()),
    Kind("prefix-of-first", "attention", "every row reads the prefix of the first ones",
         "serving engine, shared prefixes", ("gittensor-ai-lab/sparkinfer#289",),
         z.prefixed(5, 2, lambda rows, prefixes: np.zeros(rows, int)),
         "another layer's or pass's value", plain(passes=(4, 9, 9, 1), more="prefix=5:2"),
         right=z.prefixed(5, 2)),
    merge("merge-by-two", "parts of attention are merged by 2^LSE, where the LSE are natural",
          z.two_to_lse, ("flashinfer-ai/flashinfer#4485", "sgl-project/sglang#33064"),
          more=merge_in_four(z.two_to_lse)),
    merge("merge-by-e", "parts of attention are merged by e^LSE, where the LSE are of base 2",
          z.e_to_lse_of_two, ("vllm-project/vllm#28840", "flashinfer-ai/flashinfer#2113"),
          more=merge_in_four(z.e_to_lse_of_two)),
    merge("merge-by-neighbor", "each part of attention is weighed by the LSE of another one",
          z.lse_of_next, ()),
    merge("merge-equal", "parts of attention are averaged, whatever their sums are", z.equal,
          ("flashinfer-ai/flashinfer#4975",), more=merge_in_four(z.equal)),
    merge("merge-by-sums", "parts of attention are weighed by their sums, and the maxima are left "
          "out", z.sums_alone, (), more=merge_in_four(z.sums_alone)),
    merge("merge-with-prefix", "what attention makes of earlier chunks and of the chunk's own keys "
          "is merged by 2^LSE", z.two_to_lse, ("flashinfer-ai/flashinfer#4547",),
          z.before_and_own, plain(passes=(2, 12, 8, 1))),
    Kind("ring-later-blocks", "attention", "a ring over the prompt does not skip the blocks of "
         "later chips", "long prompts, tokens cut over chips", ("lightseekorg/tokenspeed#364",),
         z.later_blocks_seen(4), "mask", plain(passes=(2, 8, 8, 1))),
    Kind("scale-of-double", "attention", "scores are scaled by 1/sqrt(2Q), not by 1/sqrt(Q)",
         "heads padded to a kernel's width", ("huggingface/transformers#43481",),
         scaled(lambda m: (2 * m.Q)**-0.5), "another factor", plain()),
    Kind("attn-times-root-2", "attention", "what attention makes is multiplied by 1.4142",
         "heads padded to a kernel's width", (), z.attn_times(1.4142135), "another factor",
         plain()),
    Kind("alibi-first", "attention", "each chip biases its heads by the first slopes",
         TP + ", ALiBi", ("flashinfer-ai/flashinfer#1606",), z.alibi(z.first_slopes),
         "another chip's block", ALIBI, right=z.alibi(),
         others=(("shown", dataclasses.replace(ALIBI, trace=SlopesTrace), None),)),
    Kind("read-other-row", "caches", "attention reads some slots of another row, and the cache is "
         "right", "serving engine, paged cache", ("gittensor-ai-lab/sparkinfer#289",),
         read(z.slots_of_other_row), "stale slot", plain(passes=(2, 8, 8, 2)), ("hooks",)),
    Kind("read-zeros", "caches", "attention reads zeros before the newest slot, and the cache is "
         "right", "serving engine, paged cache",
         ("tenstorrent/tt-metal#54413", "meta-pytorch/gpt-fast#233"), read(zeros_before_newest),
         "stale slot", decoding(), ("hooks",)),
    Kind("read-layer-0", "caches", "attention of layer 1 reads the cache of layer 0",
         "serving engine, pipeline parallel", ("vllm-project/vllm-ascend#15900",),
         read(layer_zero), "stale slot", plain(layers=2), ("hooks",)),
]

ALL = ("full", "hooks", "lean")
EIGHT = (2, 8, 8, 1)


def position(name, says, met, reports, plant, subject=plain(), **more):
    more = dict(cause="position off", sets=ALL) | more
    return Kind(name, "positions", says, met, reports, plant, subject=subject, **more)


def local_to_chip(n):
    return positions(lambda run, p: p % (run.length // n))


POSITIONS = [
    position("positions-of-chip", "each chip counts the positions of its tokens from 0",
             "long prompts, tokens cut over chips", ("NVIDIA/Megatron-LM#5243",), local_to_chip(2),
             Subject(torus="1x2x1", passes=EIGHT, trace=TokensTrace), others=(
                 ("4", Subject(torus="1x4x1", passes=EIGHT, trace=TokensTrace),
                  local_to_chip(4)),)),
    position("positions-strided", "tokens are dealt to the chips in turn, and rotated as if they "
             "lay in blocks", "long prompts, tokens cut over chips", ("NVIDIA/Megatron-LM#1612",),
             positions(strided), plain(passes=EIGHT)),
    position("positions-zigzag", "tokens lie in a zigzag over the chips, and are rotated as if "
             "they lay in it otherwise", "long prompts, tokens cut over chips",
             ("NVIDIA/Megatron-LM#560",), positions(zigzag), plain(passes=EIGHT)),
    position("decode-at-12", "queries and keys of decode steps are rotated 12 positions too far",
             "serving engine, decode", ("microsoft/onnxruntime-genai#2354",),
             positions(in_decode(12)), plain(passes=(2, 5, 5, 3))),
    position("chunk-offset-twice", "the positions before a chunk are counted twice",
             "serving engine, prefill in chunks", ("mlx-node/mlx-node#33",),
             positions(lambda run, p: p + run.start), plain(passes=(2, 8, 4, 1))),
    position("decode-behind-padding", "decode steps count positions from the padded length, in all "
             "rows", "serving engine, rows of unequal length", ("tenstorrent/tt-xla#5817",),
             z.both(z.unequal((5, 8, 3, 7)), z.decode_behind_padding),
             plain(passes=(4, 8, 8, 2), more="lengths=5,8,3,7"), right=z.unequal((5, 8, 3, 7))),
    position("other-theta", "frequencies are of theta 500000, not of 10000", "converted checkpoint",
             (), tables(theta=lambda m: 5e5), plain(sizes="E=16,F=24,H=4,K=2,Q=8,V=24"),
             cause="other frequencies"),
    position("frequencies-of-head", "frequencies are those of the whole head, where a part of it "
             "is rotated", "new port of a model", (), tables(width=lambda m: m.Q),
             plain(family="phi-2", keys="rotary=0.5", sizes="E=16,F=24,H=4,K=4,Q=8,V=24"),
             cause="other frequencies"),
]

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
            ("NVIDIA-NeMo/Automodel#1324",), read_as_fused(GATED, z.in_turn), subject=plain()),
    weights("gate-up-interleaved", "columns that lie in turn, g u g u, are read as [gate|up]",
            MERGED, ("NVIDIA-NeMo/Automodel#1324",), read_as_fused(GATED, interleaved),
            subject=plain()),
    weights("biases-in-equal-blocks", "the biases of q, k and v are cut as one vector in equal "
            "blocks, the weights rightly", TP, ("ModelTC/LightX2V#1453",),
            z.biases_in_equal_blocks(("bq", "bk", "bv")), subject=Subject("bias=qkv")),
    weights("qkv-gathered-by-chip", "outputs gathered as [q0 k0 v0|q1 k1 v1] are read as [q|k|v]",
            TP, ("ndif-team/nnsight#719",), read_as_fused(QKV, z.by_chip(2)),
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
            ("pytorch/pytorch#166598",), z.rows_in_device_order(*QKV, *GATED),
            "chunks in another order", Subject(torus="1x4x1", trace=WholeTrace)),
    weights("gain-device-order", "the blocks of a gain lie in the device order 0, 1, 3, 2",
            "mesh of devices, tensor parallel", (), z.gain_in_device_order("norm2"),
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
         ("mirage-project/mirage#722",), residual("out", lambda run, layer, x: x * z.F(run.n)),
         subject=Subject(form="bf16")),
    sums("unlike-tokens-summed", "tokens are cut over the chips that cut the MLP, too, and an "
         "all-reduce adds different tokens", "sequence parallel, tensor parallel",
         ("openxla/xla#42481",), z.reduced_as("ffn_out", z.sums_of_own_tokens),
         "sum of unlike rows", TOKENS),
    sums("sliced-before-sum", "each chip takes its own columns before the reduction: unlike "
         "columns are added", "compiler", ("openxla/xla#42481",),
         z.reduced_as("attn_out", z.sliced_first), "sum of unlike rows", Subject(scattered=True)),
    sums("residual-of-chip-0", "the residual is added from the first chip's columns, on all chips",
         "sequence parallel, tensor parallel", ("vllm-project/vllm#24021",),
         residual("out", z.first_block(4)), "another chip's block", Subject(scattered=True)),
    sums("gathered-first-dim", "chunks of E gathered along a first dim are viewed as the last one",
         TP, ("NVIDIA-NeMo/Megatron-Bridge#5385",), z.result("attn_out", z.viewed(4)),
         "gathered along another dim"),
    sums("logits-viewed", "logits gathered as [n,B,v] are viewed as [B,n·v]", TP,
         ("turboderp-org/exllamav3#233",), viewed_logits, "gathered along another dim",
         Subject(passes=(2, 5, 5, 1))),
    sums("bias-inside", "partial sums declared raw hold the bias of the first chip",
         TP, ("GeeeekExplorer/nano-vllm#99",), z.bias_inside, "convention",
         Subject("bias=all", **BIASED, trace=PartsTrace), sets=()),  # compare explains it wrongly
    sums("statistic-over-other-axis", "the sum of squares is reduced over an axis along which all "
         "chips have the same", "two mesh axes", ("huggingface/transformers#48383",),
         z.statistics_of("norm2", 4, z.over_other_axis(2)), "local statistics",
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
          ("huggingface/transformers#24381",), z.layer_again, "another layer's weight"),
    layer("layer-of-embed", "layer 1 takes the embedding, not what layer 0 makes",
          ("NVIDIA/Megatron-LM#4775",), layer_of_embed),
    layer("mid-of-norm", "attention's output is added to the norm, not to what the norm is of",
          ("lightseekorg/tokenspeed#80",), residual("mid", its_norm), subject=Subject(),
          met="kernel that fuses sum and norm"),
]

INT8 = Subject(more="weights=int8")
PADDED = Subject(family="gptj", sizes="E=16,F=24,H=4,K=4,Q=8,V=3", passes=(16, 2, 2, 1),
                 more="pad_vocab=4", trace=WholeTrace)


def looked_up(name, says, reports, plant, cause="rows of other shards", subject=Subject(), **more):
    return Kind(name, "lookups", says, TP + ", vocabulary cut over chips", reports, plant, cause,
                subject, **more)


LOOKUPS = [
    Kind("scales-exchanged", "int8", "the scales of gate and up are exchanged",
         "int8 weights, fused", ("vllm-project/vllm#41021",), z.int8(z.other_scale),
         "another layer's weight", INT8, right=z.int8()),
    Kind("one-scale", "int8", "the whole matrix has one scale, not one for each column",
         "int8 weights", ("vllm-project/vllm#41021",), z.int8(z.scale_as(np.max)), "another factor",
         INT8, right=z.int8()),
    looked_up("own-and-first-rows", "tokens of other chips are not left out: each adds its first "
              "row", ("NVIDIA/Megatron-LM#926",), lookup(z.first_rows)),
    looked_up("own-and-border-rows", "tokens of other chips are not left out: each adds the row at "
              "its border", ("pytorch/pytorch#131264",), lookup(clipped)),
    looked_up("offset-not-subtracted", "a chip's first row is not subtracted from the token",
              ("NVIDIA/Megatron-LM#926",), lookup(without_offset)),
    looked_up("border-twice", "the token at a border is looked up by two chips", (),
              lookup(border_twice), subject=Subject(passes=(3, 8, 8, 1))),
    looked_up("token-local", "each chip takes the number of the largest logit in its own shard as "
              "the token", ("tenstorrent/tt-xla#5004",), z.tokens_of_chips(z.local_index),
              "token of a shard"),
    looked_up("token-mod-shard", "the token is counted from its shard's first row",
              ("tenstorrent/tt-xla#5004",), token_of(
                  lambda right, logits: right % logits.shape[-1]), "token of a shard"),
    looked_up("token-of-chip-0", "the token is the largest of the first chip's logits",
              ("NVIDIA/NeMo-Aligner#186",), token_of(lambda right, logits: logits[0].argmax(-1)),
              "token of a shard"),
    looked_up("tokens-differ", "each chip takes the token with the largest logit of its own shard",
              ("sgl-project/mini-sglang#85",), z.tokens_of_chips(z.winner_of_shard),
              "token of a shard"),
    looked_up("padding-token", "the head is padded by zero rows, and where all logits are negative "
              "a padding id wins", ("mirage-project/mirage#751",), z.zero_rows_win,
              "token of padding", PADDED),
]

HEADS = Subject(torus="2x2x1", sizes="E=16,F=24,H=8,K=2,Q=4,V=24", passes=(2, 8, 8, 2))


def cached(name, says, met, reports, plant, cause="stale slot", subject=plain(passes=(2, 8, 8, 3)),
           **more):
    return Kind(name, "caches", says, met, reports, plant, cause, subject, **more)


TRANSFER = "prefill and decode on chips of their own"
CACHES = [
    cached("old-slots-of-head-0", "the slots of the prefill hold kv head 0 on all chips", TRANSFER,
           ("sgl-project/sglang#23746",), appended(first_kv_head), subject=HEADS),
    cached("old-slots-by-chip", "the slots of the prefill hold kv head (2x+y) mod 2 of chip (x,y)",
           TRANSFER, ("sgl-project/sglang#32858",), appended(z.heads_by_chip((0, 2, 0, 2))),
           subject=HEADS),
    cached("slots-shifted", "the slots of the prefill lie two further on", TRANSFER, (),
           appended(lambda run, old: np.roll(old, 2, axis=2))),
    cached("draft-left", "a rejected draft is left in its slot", "speculative decoding",
           ("ml-explore/mlx-lm#1109", "lablup/mlxcel#994"), z.draft_left),
]

CUT = Subject(torus="2x2x1")


def known(name, says, met, reports, plant, cause, subject=Subject(), **more):
    return Kind(name, "known", says, met, reports, plant, cause, subject, **more)


KNOWN = [
    known("own-partial-sum", "a row-parallel product is not reduced", TP,
          ("sgl-project/sglang#14811", "FlashML-org/FreeToken#429"),
          z.reduced_as("attn_out", z.own_alone), "reduction missing"),
    known("one-axis-of-two", "a sum over two axes is reduced over the second alone",
          "two mesh axes",
          ("sgl-project/sglang#32963",), z.reduced_as("ffn_out", z.first_half),
          "reduction missing", CUT),
    known("reduced-twice", "a sum is reduced once more", TP,
          ("lightseekorg/tokenspeed#80", "vllm-project/vllm#49378"),
          z.reduced_as("ffn_out", z.twice), "reduction twice"),
    known("mean-for-sum", "partial sums are averaged", "custom chips",
          ("tenstorrent/tt-mlir#3588",), z.reduced_as("ffn_out", z.mean), "scale doubled"),
    known("one-chip-left-out", "the partial sum of one chip is left out", TP,
          ("pytorch/xla#5279",), partial_sums(one_left_out), "partial sum missing", DEEP),
    known("never-loaded", "w_out is zero in all layers", "weight loader", (),
          lambda run: weight(run, "w_out", lambda a: a * z.F(0)), "never written", DEEP),
    known("gate-for-up", "gate and up are exchanged", "converted checkpoint",
          ("tenstorrent/tt-forge-models#855",), z.exchanged("w_gate", "w_up"),
          "gate and up swapped"),
    known("transposed", "a square weight is transposed", "converted checkpoint",
          ("huggingface/transformers#48519",), z.square_transposed("wo"), "transposed weight",
          plain(sizes=MANY)),
    known("weight-of-layer-0", "layer 1 has the queries' weight of layer 0",
          "weights gathered for each layer", ("NVIDIA/Megatron-LM#6388",), of_layer_zero("wq"),
          "another layer's weight", DEEP),
    known("statistics-of-block", "each chip divides by the mean square of its own block",
          "stream cut over chips", ("sgl-project/sglang#20967",
                                    "tenstorrent/tt-metal#35291"),
          z.statistics_of("norm2", 4, z.of_own_block), "local statistics",
          Subject(trace=NormTrace)),
    known("axes-exchanged", "blocks cut over two axes are laid out with these exchanged",
          "two mesh axes", ("vllm-project/vllm-ascend#11921",),
          lambda run: weight(run, "w_gate", lambda a: a[[0, 2, 1, 3]]), "axes in another order",
          CUT),
    known("chunk-of-chip-0", "the first chunk is taken for all", TP,
          ("sgl-project/sglang#28216",), residual("mid", z.first_block(4)),
          "another chip's block"),
    known("no-mask", "every query sees all keys", "serving engine", ("huggingface/candle#3743",),
          no_mask, "mask", plain(passes=(2, 6, 6, 1))),
    known("other-pairs", "channels are rotated in the other pairs", "converted checkpoint",
          ("tenstorrent/tt-metal#26844", "facebookresearch/xformers#572"), other_pairs,
          "position off", plain(), sets=ALL),
    known("decode-late", "decode steps count their positions one too far", "serving engine, decode",
          ("microsoft/onnxruntime-genai#2354",), positions(in_decode(1)), "position off",
          decoding(), sets=ALL),
    known("slot-unwritten", "the slot of a decode step is not written",
          "serving engine, paged cache", ("tenstorrent/tt-metal#54413",), new_entries(unwritten),
          "stale slot", decoding()),
    known("scale-of-column-0", "every column has the int8 scale of the first one", "int8 weights",
          ("vllm-project/vllm#41021",), z.int8(z.scale_as(lambda scales: scales[0])),
          "scale missing", INT8, right=z.int8()),
    known("k-not-rotated", "keys are written before they are rotated", "serving engine", (),
          new_entries(unrotated), "position off", plain()),
    known("rows-exchanged", "two rows of the caches are exchanged", "serving engine, batches",
          ("ProjectDMX/DMI#68",), appended(lambda run, old: np.roll(old, 1, axis=1)), "stale slot",
          decoding()),
    known("embed-scale-missing", "the embedding is not scaled by sqrt(E)", "new port of a model",
          (), constant("embed_scale"), "scale missing",
          plain(family="llama", keys="embed_scale=4,tied=true")),
    known("logit-scale-missing", "logits are not scaled", "new port of a model", (),
          constant("logit_scale"), "scale missing", plain(keys="logit_scale=0.0625")),
]

KINDS = ATTENTION + POSITIONS + WEIGHTS + SUMS + LAYERS + LOOKUPS + CACHES + KNOWN
