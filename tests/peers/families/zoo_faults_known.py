"""Faults of the zoo that compare knew early."""
import numpy as np

import zoo_weights as w
from fault import F, weight
from faults_attention import (appended, in_decode, new_entries, no_mask, other_pairs, positions,
                              unrotated, unwritten)
from faults_weights import constant, of_layer_zero, one_left_out, partial_sums, residual
from zoo_kind import ALL, DEEP, INT8, Kind, MANY, TP, decoding, plain
from zoo_runs import NormTrace, Subject

CUT = Subject(torus="2x2x1")


def known(name, says, met, reports, plant, cause, subject=Subject(), **more):
    return Kind(name, "known", says, met, reports, plant, cause, subject, **more)


KNOWN = [
    known("own-partial-sum", "a row-parallel product is not reduced", TP,
          ("sgl-project/sglang#14811", "FlashML-org/FreeToken#429"),
          w.reduced_as("attn_out", w.own_alone), "reduction missing"),
    known("one-axis-of-two", "a sum over two axes is reduced over the second alone",
          "two mesh axes",
          ("sgl-project/sglang#32963",), w.reduced_as("ffn_out", w.first_half),
          "reduction missing", CUT),
    known("reduced-twice", "a sum is reduced once more", TP,
          ("lightseekorg/tokenspeed#80", "vllm-project/vllm#49378"),
          w.reduced_as("ffn_out", w.twice), "reduction twice"),
    known("mean-for-sum", "partial sums are averaged", "custom chips",
          ("tenstorrent/tt-mlir#3588",), w.reduced_as("ffn_out", w.mean), "scale doubled"),
    known("one-chip-left-out", "the partial sum of one chip is left out", TP,
          ("pytorch/xla#5279",), partial_sums(one_left_out), "partial sum missing", DEEP),
    known("never-loaded", "w_out is zero in all layers", "weight loader", (),
          lambda run: weight(run, "w_out", lambda a: a * F(0)), "never written", DEEP),
    known("gate-for-up", "gate and up are exchanged", "converted checkpoint",
          ("tenstorrent/tt-forge-models#855",), w.exchanged("w_gate", "w_up"),
          "gate and up swapped"),
    known("transposed", "a square weight is transposed", "converted checkpoint",
          ("huggingface/transformers#48519",), w.square_transposed("wo"), "transposed weight",
          plain(sizes=MANY)),
    known("weight-of-layer-0", "layer 1 has the queries' weight of layer 0",
          "weights gathered for each layer", ("NVIDIA/Megatron-LM#6388",), of_layer_zero("wq"),
          "another layer's weight", DEEP),
    known("statistics-of-block", "each chip divides by the mean square of its own block",
          "stream cut over chips", ("sgl-project/sglang#20967",
                                    "tenstorrent/tt-metal#35291"),
          w.statistics_of("norm2", 4, w.of_own_block), "local statistics",
          Subject(trace=NormTrace)),
    known("axes-exchanged", "blocks cut over two axes are laid out with these exchanged",
          "two mesh axes", ("vllm-project/vllm-ascend#11921",),
          lambda run: weight(run, "w_gate", lambda a: a[[0, 2, 1, 3]]), "axes in another order",
          CUT),
    known("chunk-of-chip-0", "the first chunk is taken for all", TP,
          ("sgl-project/sglang#28216",), residual("mid", w.first_block(4)),
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
          ("vllm-project/vllm#41021",), w.int8(w.scale_as(lambda scales: scales[0])),
          "scale missing", INT8, right=w.int8()),
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
