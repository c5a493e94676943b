"""Attention of one pass: scores, softmax and the sum over values, in three ways.

    probs   the softmax is divided, then multiplied with the values
    exp     its exponentials are, and the sum is divided
    flash   blocks of 4 keys with a running maximum, rescaled as it grows
"""
import numpy as np

F = np.float32
MASKED, LOG2_E = F(-1e30), F(1.4426950408889634)
WIDTH = 4


def scores(arithmetic, q, k, scale, seen):
    """q [nhBLQ], k [nhBMQ], seen [..LM]: [nhBLM], masked ones far below."""
    at = arithmetic.rounding
    if "q-scaled" in arithmetic.also:
        q, scale = at("score.qk", q * scale), F(1)
    s = at("score.qk", arithmetic.product("score", q, np.swapaxes(k, -1, -2)))
    s = at("score.scaled", s * scale)
    return np.where(seen, s, MASKED)


def exponential(arithmetic, s, top):
    if "exp2" in arithmetic.also:
        return np.exp2(np.maximum(s * LOG2_E - top * LOG2_E, F(-140)))
    return arithmetic.functions.exp(np.maximum(s - top, F(-100)))


def softmaxed(arithmetic, s, v):
    """Named values, attn among them [nhBLQ], from scores and values [nhBMQ]."""
    at, sum_of = arithmetic.rounding, arithmetic.total
    top = s.max(-1, keepdims=True)
    e = np.where(s == MASKED, F(0), exponential(arithmetic, s, top))
    Z = sum_of("denom", e)[..., None]
    p = at("attention.probs", e / Z)
    if "lse" in arithmetic.also:
        lse = top + np.log(Z)
        p = at("attention.probs", np.where(s == MASKED, F(0), exponential(arithmetic, s, lse)))
    if arithmetic.attention == "probs":
        y = arithmetic.product("attn", p, v)
    else:
        y = arithmetic.product("attn", at("attention.exp", e), v) / Z
    return {"max": top[..., 0], "exp": e, "denom": Z[..., 0], "probs": p, "attn": arithmetic.st(y)}


def flash(arithmetic, s, v):
    """No score is kept; the exponentials are rounded where they meet the values."""
    at = arithmetic.rounding
    m = np.full(s.shape[:-1] + (1,), MASKED, F)
    l, o = np.zeros_like(m), np.zeros(s.shape[:-1] + (v.shape[-1],), F)
    for at_key in range(0, s.shape[-1], WIDTH):
        block = s[..., at_key:at_key + WIDTH]
        grown = np.maximum(m, block.max(-1, keepdims=True))
        p = np.where(block == MASKED, F(0), exponential(arithmetic, block, grown))
        old = exponential(arithmetic, m, grown)
        l = l * old + arithmetic.total("denom", p)[..., None]
        o = o * old + arithmetic.product("attn", at("attention.exp", p),
                                         v[..., at_key:at_key + WIDTH, :])
        m = grown
    return {"attn": arithmetic.st(o / l)}


def attended(arithmetic, q, k, v, scale, seen):
    s = scores(arithmetic, q, k, scale, seen)
    if arithmetic.attention == "flash":
        return flash(arithmetic, s, v)
    return {"score": np.where(seen, s, F(0))} | softmaxed(arithmetic, s, v)
