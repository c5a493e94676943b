"""Weights as a case keeps them, and those of the base-2 model (docs/spec.md)."""
import math

import numpy as np

from numpy_model.numbers import F32, F64, to_bf16

LOG2_E = 1.4426950408889634


def quantize(matrices):
    """The codes of matrices [..., channels] in f32, and their one scale of each channel."""
    wide = [w.astype(F64) for w in matrices]
    scale = F32(np.max([abs(w).max(0) for w in wide], 0) / 127)
    scale[scale == 0] = 1
    return [np.rint(w / scale.astype(F64)).clip(-127, 127).astype(F32) for w in wide], scale


def stored(weights, kind):
    """f32 weights as the case keeps them: weights=bf16 or int8."""
    made = dict(weights)
    for name, w in weights.items():
        layer, _, part = name.rpartition(".")
        if kind == "bf16" and (part in ("embed", "unembed") or part.startswith("w")):
            made[name] = to_bf16(w)
        if kind != "int8" or not part.startswith("w"):
            continue
        if part == "wo" and layer + ".norm2" not in weights:  # parallel: one scale
            rows, other = w.reshape(-1, w.shape[-1]), layer + ".w_out"
            (codes, made[other]), scale = quantize([rows, weights[other]])
            made[name], made[layer + ".block_out_scale"] = codes.reshape(w.shape), scale
        elif part != "w_out" or layer + ".norm2" in weights:
            flat = w.reshape(-1, w.shape[-1]) if part == "wo" else w.reshape(len(w), -1)
            (codes,), scale = quantize([flat])
            made[name] = codes.reshape(w.shape)
            made[name + "_scale"] = scale if part == "wo" else scale.reshape(w.shape[1:])
    return made


def logit_scale(weights, keys):
    return F32(keys.get("logit_scale", 1 / math.sqrt(float(weights["embed"].shape[1]))))


def of_logits(weights, keys):
    """c of section 2.9."""
    return F32(LOG2_E * float(logit_scale(weights, keys)))


def fold(weights, keys):
    """The weights of the base-2 model, of f32 weights or of codes and scales."""
    c, tied = float(of_logits(weights, keys)), "unembed" not in weights
    queries = LOG2_E / math.sqrt(float(next(w for n, w in weights.items()
                                            if n.endswith(".wq")).shape[-1]))
    factors = {"wq": queries, "bq": queries, "alibi_slopes": LOG2_E, "unembed_bias": LOG2_E}
    if keys["ffn"] == "swiglu":
        factors |= {"w_gate": 0.5, "b_gate": 0.5}
    if tied:
        factors |= dict.fromkeys(("embed", "wo", "w_out", "bo", "b_out", "block_out"), c)
    else:
        factors["unembed"] = c
    made = {}
    for name, w in weights.items():
        part = name.rpartition(".")[2]
        of = part.removesuffix("_scale")
        # A matrix that has a scale leaves its factor to it.
        has_scale = name + "_scale" in weights or (
            part in ("wo", "w_out") and name.replace(part, "block_out_scale") in weights)
        made[name] = w if of not in factors or has_scale else (
            w.astype(F64) * factors[of]).astype(F32)
    return made
