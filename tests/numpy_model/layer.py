"""One block of the model, docs/spec.md section 2, from that text alone, in NumPy and math.fsum."""
import math

import numpy as np

from numpy_model.numbers import F32, F64, S, as_it_is, biased, scaled, to_bf16


def norm(x, w, name, keys):
    y, E, centred = np.empty_like(x), x.shape[-1], keys["norm"] == "layernorm"
    gain, b = w[name].astype(F64), w.get(name + "_bias")
    for at in np.ndindex(x.shape[:-1]):
        d = x[at]
        if centred:
            d = d - F32(float(S(d[None, :], np.ones((E, 1), F32))[0, 0]) / E)
        ss = S(d[None, :], d[:, None])[0, 0]
        r = 1.0 / math.sqrt(float(ss) / E + float(keys["eps"]))
        v = (d.astype(F64) * r) * gain
        y[at] = (v if b is None else v + b.astype(F64)).astype(F32)
    return y


def rotate(x, start, cos, sin, interleaved):
    """x [B, L, N, Q] at positions start + i; as many channels as the tables have, twice."""
    L, J, y = x.shape[1], cos.shape[1], x.copy()
    c, s = (t[start:start + L].astype(F64)[None, :, None, :] for t in (cos, sin))
    first, second = ((slice(0, 2 * J, 2), slice(1, 2 * J, 2)) if interleaved
                     else (slice(0, J), slice(J, 2 * J)))
    a, b = x[..., first].astype(F64), x[..., second].astype(F64)
    y[..., first], y[..., second] = (a * c - b * s).astype(F32), (b * c + a * s).astype(F32)
    return y


def swish2(gate):
    one = lambda g: F32(2 * float(g) / (1 + (math.exp(-2 * float(g)) if g > -350 else math.inf)))
    return np.vectorize(one, otypes=[F32])(gate)


def swish(gate):
    one = lambda g: F32(float(g) / (1 + (math.exp(-float(g)) if g > -700 else math.inf)))
    return np.vectorize(one, otypes=[F32])(gate)


def gelu(gate):
    def one(g):
        g = float(g)
        z = -2 * (0.7978845608028654 * (g + 0.044715 * g * g * g))
        return F32(g / (1 + (math.exp(z) if z < 700 else math.inf)))
    return np.vectorize(one, otypes=[F32])(gate)


def gelu_erf(gate):
    one = lambda g: F32(0.5 * float(g) * math.erfc(-float(g) / math.sqrt(2.0)))
    return np.vectorize(one, otypes=[F32])(gate)


def activated(c, ffn, base2):
    if ffn == "gelu-erf":
        return gelu_erf(c["gate"])
    if ffn == "gelu":
        return gelu(c["gate"])
    gated = gelu if ffn == "geglu" else swish2 if base2 else swish
    return gated(c["gate"]) * c["up"]


def attention(q, k_cache, v_cache, start, slopes, base2):
    (B, L, H, Q), (M, K) = q.shape, k_cache.shape[1:3]
    score, e = np.zeros((B, L, H, M), F32), np.zeros((B, L, H, M), F32)
    top, denom, attn = np.zeros((B, L, H), F32), np.zeros((B, L, H), F32), np.zeros_like(q)
    scale = 1.0 if base2 else 1.0 / math.sqrt(float(Q))
    exp = (lambda x: math.pow(2.0, x)) if base2 else math.exp
    for b, i, h in np.ndindex(B, L, H):
        n, g = start + i + 1, h * K // H  # the keys seen, the kv head read
        s = S(q[b, i, h][None, :], k_cache[b, :n, g].T)[0]
        s = s.astype(F64) * scale
        if slopes is not None:
            s = s + float(slopes[h]) * (np.arange(n) - (start + i)).astype(F64)
        s = s.astype(F32)
        m = s.max()
        w = np.array([exp(float(F32(v - m))) for v in s], F64).astype(F32)
        z = S(w[None, :], np.ones((n, 1), F32))[0, 0]
        o = S(w[None, :], v_cache[b, :n, g])[0]
        score[b, i, h, :n], e[b, i, h, :n], top[b, i, h], denom[b, i, h] = s, w, m, z
        attn[b, i, h] = (o.astype(F64) / float(z)).astype(F32)
    return {"score": score, "max": top, "exp": e, "denom": denom, "attn": attn}


def layer(x, w, cache, start, model, keys, st):
    """The checkpoints of one block, stored by st; lengthens cache, the list of K and V."""
    c = {"norm": st(norm(x, w, "norm", keys))}
    E = x.shape[-1]

    def project(name, inputs, matrices, biases):
        sums = S(np.concatenate(inputs, -1), np.concatenate(matrices, 0))
        parts = [part + "_scale" for part in ("w_" + name, "w" + name) if part + "_scale" in w]
        scale = w.get(parts[0] if parts else {"attn_out": "wo", "ffn_out": "w_out"}.get(
            name, name) + "_scale")
        y = scaled(sums, None if scale is None else scale.ravel())
        for bias in biases:
            y = biased(y, None if bias not in w else w[bias].ravel())
        return st(y)

    for name in "qkv":
        weight = w["w" + name]
        y = project(name, [c["norm"]], [weight.reshape(E, -1)], ["b" + name])
        c[name] = y.reshape(x.shape[:2] + weight.shape[1:])
    q, k = c["q"], c["k"]
    if "rope_cos" in model:
        for name in "qk":
            c[name + "_rot"] = st(rotate(c[name], start, model["rope_cos"], model["rope_sin"],
                                         keys["rope"] == "interleaved"))
        q, k = c["q_rot"], c["k_rot"]
    kept = to_bf16 if keys.get("cache") == "bf16" else as_it_is
    cache[0] = c["k_cache"] = np.concatenate([cache[0], kept(k)], 1)
    cache[1] = c["v_cache"] = np.concatenate([cache[1], kept(c["v"])], 1)
    base2 = keys.get("softmax") == "base2"
    c.update(attention(q, c["k_cache"], c["v_cache"], start, model.get("alibi_slopes"), base2))
    c["attn"] = st(c["attn"])
    attn, wo = c["attn"].reshape(x.shape[:2] + (-1,)), w["wo"].reshape(-1, E)
    serial = keys["block"] == "serial"
    if serial:
        c["attn_out"] = project("attn_out", [attn], [wo], ["bo"])
        c["mid"] = st(x + c["attn_out"])
        c["norm2"] = st(norm(c["mid"], w, "norm2", keys))
    n = c["norm2" if serial else "norm"]
    c["gate"] = project("gate", [n], [w["w_gate"]], ["b_gate"])
    if "w_up" in w:
        c["up"] = project("up", [n], [w["w_up"]], ["b_up"])
    c["hidden"] = st(activated(c, keys["ffn"], base2))
    if serial:
        c["ffn_out"] = project("ffn_out", [c["hidden"]], [w["w_out"]], ["b_out"])
        c["out"] = st(c["mid"] + c["ffn_out"])
    else:
        c["block_out"] = project("block_out", [attn, c["hidden"]], [wo, w["w_out"]],
                                 ["bo", "b_out"])
        c["out"] = st(x + c["block_out"])
    return c
