#!/usr/bin/env python3
"""A third party's view of a run: docs/spec.md section 2, worked out again in NumPy and math.fsum,
from the text alone.

    third_party.py WEIGHTS.h5 RUN.json

WEIGHTS.h5 is a Shardproof weights file of any model, RUN.json what
`shardproof run --json --checkpoints` printed for it (regime=exact; act=f32 or bf16; weights=f32,
bf16 or int8, whose codes and scales come from a file of version 2, or else are made here of the
f32 weights; greedy sampling, or random with temperature, top_k and top_p; rows of one length or
not, with shared prefixes or not). Each row is worked out by itself, from its first token on, over
one cache. Compares every checkpoint bit for bit, both ways, but for what stands at padding; exits 1
and names the first difference if there is one. Of a run with softmax=base2 the file may have the
plain model's weights: they are folded here.
"""
import json
import math
import sys
from fractions import Fraction

import h5py
import numpy as np

from row_lengths import lengths_of, prefill_of, prefix_of

F32, F64 = np.float32, np.float64


def S(rows, columns):
    """(float) RN64 of every exact sum: rows [..., n] and columns [n, m] give [..., m]."""
    flat, wide = rows.reshape(-1, rows.shape[-1]).astype(F64), columns.T.astype(F64)
    sums = [[math.fsum(row * column) + 0.0 for column in wide] for row in flat]
    return np.array(sums, F64).astype(F32).reshape(rows.shape[:-1] + columns.shape[1:])


def scaled(sums, scale):
    """What int8 makes of S(x, codes), by output channel; with f32 and bf16 there is no scale."""
    return sums if scale is None else (sums.astype(F64) * scale.astype(F64)).astype(F32)


# The model keys of the presets (docs/spec.md section 6.3) and, first, the defaults of all.
PRESETS = {
    "palm-tiny": {"block": "parallel", "ffn": "swiglu", "norm": "rmsnorm", "bias": "none",
                  "rope": "half", "eps": "1e-6"},
    "llama": {"block": "serial", "eps": "1e-5", "logit_scale": "1"},
    "gptj": {"ffn": "gelu", "norm": "layernorm", "bias": "ffn", "rope": "interleaved",
             "eps": "1e-5", "logit_scale": "1"},
    "falcon": {"ffn": "gelu-erf", "norm": "layernorm", "bias": "norm", "eps": "1e-5",
               "logit_scale": "1"},
}


def keys_of(text):
    """The keys of "PRESET,KEY=VALUE,..."."""
    preset, *items = text.split(",")
    return PRESETS["palm-tiny"] | PRESETS[preset] | dict(item.split("=", 1) for item in items)


def biased(x, b):
    return x if b is None else x + b


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


def as_it_is(x):
    return x


def to_bf16(w):
    bits = np.ascontiguousarray(w, F32).view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype("<u4").view(F32)


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


LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453


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


def word(seed, name, index):
    """Word 0 of words(seed, name, index): Philox4x32-10."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    c = [index % 2**32, index >> 32, h % 2**32, h >> 32]
    k = [seed % 2**32, seed >> 32]
    for _ in range(10):
        p, r = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [r >> 32 ^ c[1] ^ k[0], r % 2**32, p >> 32 ^ c[3] ^ k[1], p % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c[0]


def sample(logits, case, row, i):
    """The token of a row's logits, docs/spec.md section 2.10; `case` are the words of its line."""
    if case.get("sample", "greedy") == "greedy":
        return int(logits.argmax())
    unit = LN2 if "softmax=base2" in case["model"] else 1.0
    t = (logits.astype(F64) * unit / F64(case.get("temperature", 1))).astype(F32)
    e = np.array([math.exp(float(d)) for d in t - t.max()], F64).astype(F32)
    least = np.sort(e)[::-1][int(case.get("top_k", len(e))) - 1]
    e = np.where(e >= least, e, F32(0))
    exact = [Fraction(float(v)) for v in e]
    wanted = Fraction(float(case.get("top_p", 1))) * sum(exact)
    for theta in sorted(set(exact), reverse=True):
        if sum(v for v in exact if v >= theta) >= wanted:
            break
    exact = [v if v >= theta else Fraction(0) for v in exact]
    r, so_far = word(int(case["seed"]), "sample", row * 2**32 + i) >> 8, Fraction(0)
    for token, v in enumerate(exact):
        so_far += v
        if so_far * 2**24 > r * sum(exact):
            return token
    return None


def run(weights, keys, prompt, chunk, gen, case, rows, shared=0):
    """Every checkpoint of every pass, by id; row n of the prompt draws by rows[n]. The first
    `shared` tokens are a prefix."""
    act = case["act"]
    st = to_bf16 if act == "bf16" else as_it_is
    table = weights["embed"]
    base2 = keys.get("softmax") == "base2"
    if base2 and "unembed" not in weights:  # the stream is scaled by c
        c = float(of_logits(weights, keys))
        keys = keys | {"eps": float(keys["eps"]) * (c * c)}
    layers = len([name for name in weights if name.endswith(".wq")])
    of = [{name.split(".")[1]: value for name, value in weights.items()
           if name.startswith(f"layer{n}.")} for n in range(layers)]
    L = prompt.shape[1]
    empty = np.zeros((len(prompt), 0) + of[0]["wk"].shape[1:], F32)
    caches = [[empty, empty] for _ in range(layers)]
    passes = [(f"{phase}.c{n}", start, prompt[:, start:min(start + chunk, end)])
              for phase, begin, end in (("prefix", 0, shared), ("prefill", shared, L))
              for n, start in enumerate(range(begin, end, chunk))]
    found, step = {}, 0
    while passes:
        name, start, ids = passes.pop(0)
        x = found[f"{name}.embed"] = st(table[ids] + F32(0))
        for n in range(layers):
            made = layer(x, of[n], caches[n], start, weights, keys, st)
            found.update({f"{name}.layer{n}.{key}": value for key, value in made.items()})
            x = made["out"]
        final = found[f"last {name}.final_norm"] = st(norm(x[:, -1:], weights, "final_norm",
                                                           keys)[:, -1])
        scale = F32(1) if base2 else logit_scale(weights, keys)
        logits = (S(final, weights.get("unembed", table).T).astype(F64) * F64(scale)).astype(F32)
        logits = biased(logits, weights.get("unembed_bias"))
        found[f"{name}.logits"] = logits
        if not passes:  # the last chunk, and every decode pass
            token = found[f"{name}.token"] = np.array(
                [sample(of_row, case, row, step) for of_row, row in zip(logits, rows)], np.int32)
            if (step := step + 1) < gen:
                passes.append((f"decode.{step}", L + step - 1, token[:, None]))
    return found


def shape_of(id, row_values, rows, prefill, chunk, shared):
    """The batch's: its rows, the tokens L of the pass, the slots M that are cached after it, behind
    `shared` keys of a prefix."""
    pass_name, name = id.removeprefix("last ").partition(".layer")[0], id.rpartition(".")[2]
    phase, number = pass_name.split(".")[0], int(pass_name.split(".")[1].lstrip("c"))
    if phase == "decode":
        L, M = 1, prefill - shared + number
    else:
        L = min(chunk, (shared if phase == "prefix" else prefill - shared) - number * chunk)
        M = number * chunk + L
    shape = [rows, *next(iter(row_values.values())).shape]
    if name in ("k_cache", "v_cache"):
        shape[1] = M
    elif not id.startswith("last ") and name not in ("logits", "token"):
        shape[1] = L
    if name in ("score", "exp"):
        shape[-1] = M + (0 if phase == "prefix" else shared)
    return shape


def whole(id, row_values, shape):
    """A value of the batch, out of those of rows that ran by themselves, and which of its elements
    something is said of: a row's tokens, the keys that they do not see, which hold +0, and the
    slots behind them, which hold NaN."""
    name = id.rpartition(".")[2]
    value, known = np.zeros(shape, next(iter(row_values.values())).dtype), np.zeros(shape, bool)
    for row, own in row_values.items():
        if name in ("k_cache", "v_cache"):
            value[row], known[row] = np.nan, True
        if name in ("score", "exp"):
            known[row, :len(own)] = True
        at = (row,) + tuple(slice(extent) for extent in own.shape)
        value[at], known[at] = own, True
    return value, known


def fail(reason):
    print(f"third party: {reason}")
    sys.exit(1)


def main(weights_path, run_path):
    with h5py.File(weights_path, "r") as file:
        weights = {name: file[name][()].astype(F32) for name in file}
        has_codes = file.attrs["version"] == 2
        plain = "softmax=base2" not in str(file.attrs["model"])
    with open(run_path, encoding="utf-8") as file:
        theirs = json.load(file)
    case = dict(word.split("=", 1) for word in theirs["case"].split())
    if has_codes and case["weights"] != "int8":
        fail(f"weights={case['weights']} of an int8 file")
    keys = keys_of(case["model"]) | {"block": case["block"]}
    folds = plain and keys.get("softmax") == "base2"
    if folds and case["weights"] != "int8":  # codes come first
        weights, folds = fold(weights, keys), False
    if not has_codes:
        weights = stored(weights, case["weights"])
    if folds:
        weights = fold(weights, keys)
    prompts, generated = theirs["prompt"], theirs["generated"]
    lengths = lengths_of(case, len(prompts))
    if lengths != [len(prompt) for prompt in prompts]:
        fail(f"the prompts have {[len(prompt) for prompt in prompts]} tokens, the case {lengths}")
    chunk, gen = int(case["chunk"]), int(case["gen"])
    prefill, (shared, count) = prefill_of(case, lengths), prefix_of(case)
    prefixes = [row * count // int(case["batch"]) for row in range(len(prompts))]
    found, tokens = {}, []
    for row, prompt in enumerate(prompts):
        alone = run(weights, keys, np.array([prompt]), chunk, gen, case,
                    [theirs.get("rows", range(len(prompts)))[row]], shared)
        last = -(-(len(prompt) - shared) // chunk) - 1  # the chunk in which the row ends
        for id, value in alone.items():
            if id.removeprefix("last ").startswith("prefix."):  # equal in rows that have the prefix
                found.setdefault(id, {})[prefixes[row]] = value[0]
                continue
            own = value[0, shared:] if id.endswith("_cache") else value[0]
            found.setdefault(id, {})[row] = own
            if id.endswith("_cache") and id.startswith(f"prefill.c{last}."):
                for later in range(last + 1, -(-(prefill - shared) // chunk)):  # there caches stay
                    found.setdefault(id.replace(f".c{last}.", f".c{later}."), {})[row] = own
        tokens.append([int(v[0]) for id, v in alone.items() if id.endswith(".token")])
    elements = 0
    for id, rows in found.items():  # in the order of computation: the first difference is a cause
        if id not in theirs["checkpoints"]:
            fail(f"{id} is missing from the run")
        given = theirs["checkpoints"][id]
        bits = np.frombuffer(bytes.fromhex(given["bits"]), "<u4")
        # Of the prefixes, too, a run prints only those of rows that it prints.
        shown = (prefixes[-1] + 1 if id.removeprefix("last ").startswith("prefix.")
                 else len(prompts))
        value, known = whole(id, rows, shape_of(id, rows, shown, prefill, chunk, shared))
        if list(value.shape) != given["shape"] or bits.size != value.size:
            fail(f"{id} has shape {given['shape']}, expected {list(value.shape)}")
        wrong = known.ravel() & (bits != np.ascontiguousarray(value).view("<u4").ravel())
        for at in np.flatnonzero(wrong)[:1]:
            fail(f"{id}{list(map(int, np.unravel_index(at, value.shape)))} is "
                 f"{bits.view(value.dtype)[at]!r}, expected {value.ravel()[at]!r}")
        elements += int(known.sum())
    for id in theirs["checkpoints"].keys() - found.keys():
        fail(f"{id} is no checkpoint of this model")
    if tokens != generated:
        fail(f"generated is {generated}, expected {tokens}")
    print(f"third party: weights={case['weights']}{' of rows of ' * ('lengths' in case)}"
          f"{','.join(map(str, lengths)) * ('lengths' in case)}"
          f"{' with prefixes ' * bool(count)}{case.get('prefix', '')}: {len(found)} checkpoints, "
          f"{elements} elements, all equal")


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
