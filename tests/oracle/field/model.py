"""The field regime (docs/field.md section 1) once more, for small models: prints one digest for each
value of each case of `CASES`. tests/data/field_values.txt holds what it prints; values_test.cpp
holds the oracle against that."""

import itertools
import struct

BITS64 = (1 << 64) - 1


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & BITS64
    return h


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [q >> 64 ^ c[1] ^ k[0], q & BITS64, p >> 64 ^ c[3] ^ k[1], p & BITS64]
        k = [k[0] + 0x9E3779B97F4A7C15 & BITS64, k[1] + 0xBB67AE8584CAA73B & BITS64]
    return c


def eps_of_norms(c):
    if c["softmax"] != "base2" or c["tied"] != "true":
        return c["eps"]
    (scale,) = struct.unpack("f", struct.pack("f", 1.4426950408889634 * c["logit_scale"]))
    return c["eps"] * (scale * scale)


def eps_text(eps):
    """C's %a, whose fraction has no zeros at its end."""
    head, exponent = eps.hex().split("p")
    return head.rstrip("0").rstrip(".") + "p" + exponent


class Field:
    def __init__(self, seed, bits, lanes, draw):
        self.seed, self.bits, self.lanes, self.draw = seed, bits, lanes, draw
        self.p = (1 << bits) - 1

    def random(self, counter, name):
        for r in itertools.count(self.draw << 32):
            words = philox([*counter, r], [self.seed, fnv1a64(name)])
            n = tuple(w >> 64 - self.bits for w in words[: self.lanes])
            if self.p not in n:
                return n

    def input(self, name, i):
        return self.random((i, 0, 0), name)

    def f(self, name, v):
        if name in ("swish", "swish2", "gelu", "gelu_erf", "bf16") and not any(v):
            return v
        return self.random((*v, 0, 0)[:3], name)

    def integer(self, i):
        return (i % self.p,) * self.lanes

    def add(self, *terms):
        return tuple(sum(lane) % self.p for lane in zip(*terms))

    def neg(self, a):
        return tuple(-x % self.p for x in a)

    def mul(self, *factors):
        n = self.integer(1)
        for f in factors:
            n = tuple(x * y % self.p for x, y in zip(n, f))
        return n

    def inverse(self, a):
        assert all(a), "an element without an inverse"
        return tuple(pow(x, -1, self.p) for x in a)

    def total(self, terms):
        return self.add(self.integer(0), *terms)


class Model:
    """One row of the batch; a case's rows have nothing to do with each other. Positions come one
    by one, so a chunk or a pass is a matter of what is printed when."""

    def __init__(self, case, field):
        self.c, self.F = case, field
        self.cache = [([], []) for _ in range(case["layers"])]

    def w(self, name, *index_and_extents):
        """Element [i, j, ...] of the weight of extents I, J, ...: w(name, (i, I), (j, J))."""
        at = 0
        for i, extent in index_and_extents:
            at = at * extent + i
        return self.F.input("weight " + name, at)

    def constant(self, text):
        return self.F.input("constant " + text, 0)

    def st(self, v):
        return [self.F.f("bf16", x) for x in v] if self.c["act"] == "bf16" else v

    def norm(self, out, name, weight, x):
        F, c = self.F, self.c
        suffix = {"norm": "", "norm2": "2"}
        stat = lambda s: (
            name[: -len("final_norm")] + "final_" + s
            if name.endswith("final_norm")
            else name[: name.rindex(".") + 1] + s + suffix[name[name.rindex(".") + 1 :]]
        )
        d = x
        if c["norm"] == "layernorm":
            s = F.total(x)
            mu = F.mul(s, F.inverse(F.integer(c["E"])))
            d = [F.add(v, F.neg(mu)) for v in x]
            out[stat("sum")], out[stat("mu")], out[stat("d")] = [s], [mu], d
        ss = F.total(F.mul(v, v) for v in d)
        out[stat("ss")] = [ss]
        r = F.f("norm E=%d eps=%s" % (c["E"], eps_text(eps_of_norms(c))), ss)
        y = []
        for e, v in enumerate(d):
            v = F.mul(v, r, self.w(weight, (e, c["E"])))
            if c["norm"] == "layernorm" and c["bias"] in ("norm", "ffn", "all"):
                v = F.add(v, self.w(weight + "_bias", (e, c["E"])))
            y.append(v)
        out[name] = self.st(y)
        return out[name]

    def project(self, out, name, terms, count, scale, biases):
        """terms: (inputs, matrix), the matrix's output channels last and flattened."""
        F, c = self.F, self.c
        y = []
        for j in range(count):
            v = F.total(
                F.mul(x, self.w(matrix, (k, 0), (j, count)))
                for inputs, matrix in terms
                for k, x in enumerate(inputs)
            )
            if c["weights"] == "int8":
                v = F.mul(v, self.w(scale, (j, count)))
            for bias, kinds in biases:
                if c["bias"] in kinds:
                    v = F.add(v, self.w(bias, (j, count)))
            y.append(v)
        out[name] = self.st(y)
        return out[name]

    def rotate(self, out, name, x, position):
        F, c = self.F, self.c
        Q = c["Q"]
        J = int(c["rotary"] * Q) // 2
        y = list(x)
        for head in range(len(x) // Q):
            for j in range(J):
                i = (j, j + J) if c["rope"] == "half" else (2 * j, 2 * j + 1)
                a, b = x[head * Q + i[0]], x[head * Q + i[1]]
                cos = self.w("rope_cos", (position, 0), (j, J))
                sin = self.w("rope_sin", (position, 0), (j, J))
                y[head * Q + i[0]] = F.add(F.mul(a, cos), F.neg(F.mul(b, sin)))
                y[head * Q + i[1]] = F.add(F.mul(b, cos), F.mul(a, sin))
        out[name] = self.st(y)
        return out[name]

    def attention(self, out, layer, n, position, M):
        F, c = self.F, self.c
        H, K, Q = c["H"], c["K"], c["Q"]
        at = "layer%d." % layer
        qkv = ("qkv", "all")
        q = self.project(out, at + "q", [(n, at + "wq")], H * Q, at + "wq_scale", [(at + "bq", qkv)])
        k = self.project(out, at + "k", [(n, at + "wk")], K * Q, at + "wk_scale", [(at + "bk", qkv)])
        v = self.project(out, at + "v", [(n, at + "wv")], K * Q, at + "wv_scale", [(at + "bv", qkv)])
        if c["rope"] in ("half", "interleaved"):
            q = self.rotate(out, at + "q_rot", q, position)
            k = self.rotate(out, at + "k_rot", k, position)
        keys, values = self.cache[layer]
        cached = lambda x: [F.f("bf16", e) for e in x] if c["cache"] == "bf16" else x
        keys.append(cached(k))
        values.append(cached(v))
        zero = F.integer(0)
        scores, maxima, exps, denoms, attn = [], [], [], [], []
        for h in range(H):
            g = h // (H // K)
            part = lambda vector, head: vector[head * Q : (head + 1) * Q]
            s = []
            for p, key in enumerate(keys):
                value = F.total(F.mul(x, y) for x, y in zip(part(q, h), part(key, g)))
                if c["softmax"] != "base2":
                    value = F.mul(self.constant("attend_scale Q=%d" % Q), value)
                if c["rope"] == "alibi":
                    slope = self.w("alibi_slopes", (h, H))
                    value = F.add(value, F.mul(slope, F.integer(p - position)))
                s.append(value)
            m = F.total(F.f("score to max", x) for x in s)
            base = "2" if c["softmax"] == "base2" else ""
            e = [F.mul(F.f("score to exp" + base, x), F.f("max to exp" + base, m)) for x in s]
            z = F.total(e)
            masked = [zero] * (M - len(keys))
            scores += s + masked
            exps += e + masked
            maxima.append(m)
            denoms.append(z)
            for d in range(Q):
                mean = F.total(F.mul(x, part(value, g)[d]) for x, value in zip(e, values))
                attn.append(F.mul(mean, F.inverse(z)))
        out[at + "score"], out[at + "max"], out[at + "exp"] = scores, maxima, exps
        out[at + "denom"], out[at + "attn"] = denoms, self.st(attn)
        return out[at + "attn"]

    def ffn(self, out, layer, n):
        F, c = self.F, self.c
        at = "layer%d." % layer
        biased = ("ffn", "all")
        gate = self.project(
            out, at + "gate", [(n, at + "w_gate")], c["F"], at + "w_gate_scale", [(at + "b_gate", biased)]
        )
        name = {"swiglu": "swish", "geglu": "gelu", "gelu": "gelu", "gelu-erf": "gelu_erf"}[c["ffn"]]
        if name == "swish" and c["softmax"] == "base2":
            name = "swish2"
        hidden = [F.f(name, v) for v in gate]
        if c["ffn"] in ("swiglu", "geglu"):
            up = self.project(
                out, at + "up", [(n, at + "w_up")], c["F"], at + "w_up_scale", [(at + "b_up", biased)]
            )
            hidden = [F.mul(v, u) for v, u in zip(hidden, up)]
        out[at + "hidden"] = self.st(hidden)
        return out[at + "hidden"]

    def residual(self, out, name, x, y):
        out[name] = self.st([self.F.add(v, w) for v, w in zip(x, y)])
        return out[name]

    def step(self, token, position, M, last, sample):
        """All values of one position; logits if it is the last of its row in the pass."""
        F, c = self.F, self.c
        E, V = c["E"], c["V"]
        out = {}
        scale = self.constant("embed_scale") if c["embed_scale"] != 1 else F.integer(1)
        x = self.st([F.mul(self.w("embed", (token, V), (e, E)), scale) for e in range(E)])
        out["embed"] = x
        for layer in range(c["layers"]):
            at = "layer%d." % layer
            n = self.norm(out, at + "norm", at + "norm", x)
            attn = self.attention(out, layer, n, position, M)
            bo, b_out = (at + "bo", ("all",)), (at + "b_out", ("ffn", "all"))
            if c["block"] == "parallel":
                hidden = self.ffn(out, layer, n)
                y = self.project(
                    out, at + "block_out", [(attn, at + "wo"), (hidden, at + "w_out")], E,
                    at + "block_out_scale", [bo, b_out],
                )
                x = self.residual(out, at + "out", x, y)
            else:
                y = self.project(out, at + "attn_out", [(attn, at + "wo")], E, at + "wo_scale", [bo])
                mid = self.residual(out, at + "mid", x, y)
                hidden = self.ffn(out, layer, self.norm(out, at + "norm2", at + "norm2", mid))
                y = self.project(
                    out, at + "ffn_out", [(hidden, at + "w_out")], E, at + "w_out_scale", [b_out]
                )
                x = self.residual(out, at + "out", mid, y)
        n = self.norm(out, "final_norm", "final_norm", x)
        if not last:
            return out
        scaled = c["logit_scale"] != 1 and c["softmax"] != "base2"
        scale = self.constant("logit_scale") if scaled else F.integer(1)
        table = "embed" if c["tied"] == "true" else "unembed"
        logits = []
        for v in range(V):
            z = F.total(F.mul(n[e], self.w(table, (v, V), (e, E))) for e in range(E))
            z = F.mul(z, scale)
            if c["unembed_bias"] == "true":
                z = F.add(z, self.w("unembed_bias", (v, V)))
            logits.append(z)
        out["logits"] = logits
        if not sample:
            return out
        rho = self.constant("rho")
        C = 2  # blocks of the vocabulary
        w = V // C
        power = lambda k: F.mul(*[rho] * k)
        A = [F.f("logit", z) for z in logits]
        T = [F.f("id", F.integer(i)) for i in range(V)]
        blocks = [range(block * w, (block + 1) * w) for block in range(C)]
        candidates = [F.total(F.mul(power(v % w), A[v]) for v in block) for block in blocks]
        indices = [F.total(F.mul(power(v % w), A[v], T[v]) for v in block) for block in blocks]
        of = lambda name, parts: F.f(name, F.total(F.mul(power(w * i), x) for i, x in enumerate(parts)))
        out["candidates"], out["indices"] = candidates, indices
        out["token"] = [F.add(of("candidate to token", candidates), of("index to token", indices))]
        return out


DEFAULTS = dict(
    layers=2, E=6, F=5, H=4, K=2, Q=4, V=12, block="parallel", ffn="swiglu", norm="rmsnorm",
    bias="none", rope="half", rotary=1, tied="true", unembed_bias="false", eps=1e-6, embed_scale=1,
    logit_scale=0.5, softmax="", cache="", weights="f32", act="f32", seed=1, bits=61, lanes=3, draw=0,
)
# Each with what differs from DEFAULTS, as values_test.cpp reads it.
CASES = [
    "",
    "block=serial ffn=geglu rope=interleaved Q=8 rotary=0.5 tied=false logit_scale=1 act=bf16 seed=2",
    "norm=layernorm bias=all ffn=gelu-erf rope=alibi unembed_bias=true weights=int8 cache=bf16 seed=3",
    "block=serial norm=layernorm bias=ffn ffn=gelu rope=none embed_scale=3 weights=int8 act=bf16"
    " cache=bf16 eps=0.5 seed=4",
    "norm=layernorm bias=norm H=6 K=1 rope=half Q=8 rotary=0.5 bits=31 lanes=2 draw=1 seed=18446744073709551615",
    "bias=qkv H=3 K=3 rope=interleaved act=bf16 weights=bf16 bits=13 lanes=1 seed=6",
    "softmax=base2 seed=7",
    "softmax=base2 block=serial bias=all rope=alibi tied=false unembed_bias=true weights=int8 seed=8",
]
# Two rows: three tokens in chunks of two, one decode step.
IDS = [[5, 0, 11, 3], [7, 2, 1, 8]]
PASSES = [("prefill.c0", 0, 2, False), ("prefill.c1", 2, 3, True), ("decode.1", 3, 4, True)]


def digest(numbers):
    return "%016x" % fnv1a64(" ".join("%x" % lane for number in numbers for lane in number))


def values(words):
    case = dict(DEFAULTS)
    for word in words.split():
        key, value = word.split("=")
        case[key] = value if isinstance(DEFAULTS[key], str) else float(value) if "." in value else int(value)
    models = [
        Model(case, Field(case["seed"], case["bits"], case["lanes"], case["draw"])) for _ in IDS
    ]
    for name, start, end, sample in PASSES:
        filed = {}
        for model, ids in zip(models, IDS):
            for position in range(start, end):
                last = position + 1 == end
                step = model.step(ids[position], position, end, last, last and sample)
                for value, numbers in step.items():
                    filed.setdefault(value, []).extend(numbers)
        for layer in range(case["layers"]):
            for i, cache in enumerate(("k_cache", "v_cache")):
                filed["layer%d.%s" % (layer, cache)] = [
                    number for m in models for slot in m.cache[layer][i] for number in slot
                ]
        for value in sorted(filed):
            yield name + "." + value, digest(filed[value])


if __name__ == "__main__":
    for words in CASES:
        print(("case " + words).strip())
        for value, text in values(words):
            print(value, text)
