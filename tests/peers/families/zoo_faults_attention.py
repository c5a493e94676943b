"""The zoo's faults of attention, positions and caches."""
import dataclasses

import numpy as np

import zoo_attention as a
from fault import put
from faults_attention import (appended, first_kv_head, in_decode, kv_head_mod, layer_zero,
                              own_chunk_mask, positions, read, scaled, strided, tables,
                              without_newest, zeros_before_newest, zigzag)
from zoo_kind import ALL, CP, Kind, TP, TWO, decoding, plain
from zoo_runs import SlopesTrace, Subject, TokensTrace

CHUNKED = (2, 12, 4, 2)
MULTI = "E=16,F=24,H=4,K=1,Q=4,V=24"
ALIBI = Subject(family="falcon", keys="rope=alibi", sizes="E=16,F=24,H=8,K=1,Q=4,V=24")
HALVES, QUARTERS = a.strided_slots(2), a.strided_slots(4)
FOUR_PARTS = plain(sizes=MULTI, passes=(2, 6, 6, 2))


def merge(name, says, weights, reports, parts=HALVES, subject=decoding(), more=()):
    return Kind(name, "attention", says, CP, reports, a.in_parts(weights, parts), "merge of parts",
                subject, others=more, right=a.in_parts(a.e_to_lse, parts))


def merge_in_four(weights):
    return (("in-4", FOUR_PARTS, a.in_parts(weights, QUARTERS)),)


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
         lambda run: put(run, "seen", lambda before: before() | (run.start > 0)), "mask",
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
         a.prefixed(5, 2, lambda rows, prefixes: np.zeros(rows, int)),
         "another layer's or pass's value", plain(passes=(4, 9, 9, 1), more="prefix=5:2"),
         right=a.prefixed(5, 2)),
    merge("merge-by-two", "parts of attention are merged by 2^LSE, where the LSE are natural",
          a.two_to_lse, ("flashinfer-ai/flashinfer#4485", "sgl-project/sglang#33064"),
          more=merge_in_four(a.two_to_lse)),
    merge("merge-by-e", "parts of attention are merged by e^LSE, where the LSE are of base 2",
          a.e_to_lse_of_two, ("vllm-project/vllm#28840", "flashinfer-ai/flashinfer#2113"),
          more=merge_in_four(a.e_to_lse_of_two)),
    merge("merge-by-neighbor", "each part of attention is weighed by the LSE of another one",
          a.lse_of_next, ()),
    merge("merge-equal", "parts of attention are averaged, whatever their sums are", a.equal,
          ("flashinfer-ai/flashinfer#4975",), more=merge_in_four(a.equal)),
    merge("merge-by-sums", "parts of attention are weighed by their sums, and the maxima are left "
          "out", a.sums_alone, (), more=merge_in_four(a.sums_alone)),
    merge("merge-with-prefix", "what attention makes of earlier chunks and of the chunk's own keys "
          "is merged by 2^LSE", a.two_to_lse, ("flashinfer-ai/flashinfer#4547",),
          a.before_and_own, plain(passes=(2, 12, 8, 1))),
    Kind("ring-later-blocks", "attention", "a ring over the prompt does not skip the blocks of "
         "later chips", "long prompts, tokens cut over chips", ("lightseekorg/tokenspeed#364",),
         a.later_blocks_seen(4), "mask", plain(passes=(2, 8, 8, 1))),
    Kind("scale-of-double", "attention", "scores are scaled by 1/sqrt(2Q), not by 1/sqrt(Q)",
         "heads padded to a kernel's width", ("huggingface/transformers#43481",),
         scaled(lambda m: (2 * m.Q)**-0.5), "another factor", plain()),
    Kind("attn-times-root-2", "attention", "what attention makes is multiplied by 1.4142",
         "heads padded to a kernel's width", (), a.attn_times(1.4142135), "another factor",
         plain()),
    Kind("alibi-first", "attention", "each chip biases its heads by the first slopes",
         TP + ", ALiBi", ("flashinfer-ai/flashinfer#1606",), a.alibi(a.first_slopes),
         "another chip's block", ALIBI, right=a.alibi(),
         others=(("shown", dataclasses.replace(ALIBI, trace=SlopesTrace), None),)),
    Kind("read-other-row", "caches", "attention reads some slots of another row, and the cache is "
         "right", "serving engine, paged cache", ("gittensor-ai-lab/sparkinfer#289",),
         read(a.slots_of_other_row), "stale slot", plain(passes=(2, 8, 8, 2))),
    Kind("read-zeros", "caches", "attention reads zeros before the newest slot, and the cache is "
         "right", "serving engine, paged cache",
         ("tenstorrent/tt-metal#54413", "meta-pytorch/gpt-fast#233"), read(zeros_before_newest),
         "stale slot", decoding()),
    Kind("read-layer-0", "caches", "attention of layer 1 reads the cache of layer 0",
         "serving engine, pipeline parallel", ("vllm-project/vllm-ascend#15900",),
         read(layer_zero), "stale slot", plain(layers=2),
         causes=(("full", "another layer's or pass's value"),)),
]

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
             a.both(a.unequal((5, 8, 3, 7)), a.decode_behind_padding),
             plain(passes=(4, 8, 8, 2), more="lengths=5,8,3,7"), right=a.unequal((5, 8, 3, 7))),
    position("other-theta", "frequencies are of theta 500000, not of 10000", "converted checkpoint",
             (), tables(theta=lambda m: 5e5), plain(sizes="E=16,F=24,H=4,K=2,Q=8,V=24"),
             cause="other frequencies"),
    position("frequencies-of-head", "frequencies are those of the whole head, where a part of it "
             "is rotated", "new port of a model", (), tables(width=lambda m: m.Q),
             plain(family="phi-2", keys="rotary=0.5", sizes="E=16,F=24,H=4,K=4,Q=8,V=24"),
             cause="other frequencies"),
]


HEADS = Subject(torus="2x2x1", sizes="E=16,F=24,H=8,K=2,Q=4,V=24", passes=(2, 8, 8, 2))


def cached(name, says, met, reports, plant, cause="stale slot", subject=plain(passes=(2, 8, 8, 3)),
           **more):
    return Kind(name, "caches", says, met, reports, plant, cause, subject, **more)


TRANSFER = "prefill and decode on chips of their own"
CACHES = [
    cached("old-slots-of-head-0", "the slots of the prefill hold kv head 0 on all chips", TRANSFER,
           ("sgl-project/sglang#23746",), appended(first_kv_head),
           cause="head order", subject=HEADS),
    cached("old-slots-by-chip", "the slots of the prefill hold kv head (2x+y) mod 2 of chip (x,y)",
           TRANSFER, ("sgl-project/sglang#32858",), appended(a.heads_by_chip((0, 2, 0, 2))),
           cause="head order", subject=HEADS),
    cached("slots-shifted", "the slots of the prefill lie two further on", TRANSFER, (),
           appended(lambda run, old: np.roll(old, 2, axis=2))),
    cached("draft-left", "a rejected draft is left in its slot", "speculative decoding",
           ("ml-explore/mlx-lm#1109", "lablup/mlxcel#994"), a.draft_left),
]
