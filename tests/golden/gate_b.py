#!/usr/bin/python3
"""Gate B on strangers' floats: NumPy runs of a model, judged from their own values.

    gate_b.py SHARDPROOF JUDGE_DUMP FOLDER

Runs models in float64, and in float32 with every sum in a shuffled order, dumps the named values,
and has JUDGE_DUMP (tests/golden/bounds/value/judge_dump.cpp) hold each against what follows from its
own operands. All must be within. Then plants a fault in one value at a time, which must be found
different, and takes values out of the dump, which must leave the others within, or loose. Exits 1
where one of these does not hold.
"""
import pathlib
import subprocess
import sys

import h5py
import numpy as np

B, L, GEN = 3, 5, 3
MODELS = {
    "palm-tiny,layers=1,E=64,F=96,H=8,Q=8,V=48": dict(serial=False, scale=None),
    "llama,layers=2,E=48,F=72,H=6,K=3,Q=8,V=48": dict(serial=True, scale=1.0),
}
SUMS = ["q", "k", "v", "gate", "up", "score", "denom", "attn", "logits"]


def bf16(x):
    """Rounded to nearest even to 8 digits."""
    fraction, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.rint(fraction * 256), exponent - 8)


class Run:
    """The model in one dtype. `fault` is a value's name and what is done to its first operand, or
    to its result; only that value is made wrongly, and what it is made of is dumped as it is."""

    def __init__(self, weights, model, dtype, seed, fault=("", None)):
        self.w = {name: np.asarray(data, dtype) for name, data in weights.items()}
        self.serial, self.dtype = model["serial"], dtype
        self.eps = dtype(1e-5 if self.serial else 1e-6)
        self.random = np.random.default_rng(seed)
        self.fault, self.values, self.ids = fault, {}, {}
        E = self.w["norm" if "norm" in self.w else "final_norm"].shape[0]
        self.scale = dtype(np.float32(model["scale"] or 1 / np.sqrt(float(E))))

    def sum(self, a, b, name=""):
        """Σ_k a[..., k]·b[k, ...], in a shuffled order, of one chain or of several."""
        kind = self.fault[1] if name == self.fault[0] else None
        if kind == "bf16":
            a = bf16(a).astype(self.dtype)
        order = self.random.permutation(a.shape[-1])
        if kind == "dropped":
            order = order[1:]
        if kind == "twice":
            order = np.append(order, order[0])
        chains = [0] * self.random.integers(1, 5)
        for i, k in enumerate(order):
            term = a[..., k].reshape(a.shape[:-1] + (1,) * (b.ndim - 1)) * b[k]
            chains[i % len(chains)] = chains[i % len(chains)] + term
        total = chains[0]
        for chain in chains[1:]:
            total = total + chain
        if kind == "scaled":
            total = total * self.dtype(1.001)
        return np.asarray(total, self.dtype)

    def keep(self, name, value):
        assert value.dtype == self.dtype, name
        self.values[name] = value
        return value

    def norm(self, name, x, weight):
        ss = self.sum(x * x, np.ones((x.shape[-1], 1), self.dtype))
        r = 1 / np.sqrt(ss / self.dtype(x.shape[-1]) + self.eps)
        return self.keep(name, x * r * self.w[weight])

    def rotate(self, name, x, start):
        c = self.w["rope_cos"][start:start + x.shape[1], None, :]
        s = self.w["rope_sin"][start:start + x.shape[1], None, :]
        half = x.shape[-1] // 2
        a, b = x[..., :half], x[..., half:]
        return self.keep(name, np.concatenate([a * c - b * s, b * c + a * s], -1))

    def attention(self, at, layer, n, caches, start):
        w = lambda name: self.w[f"layer{layer}.{name}"]
        q = self.keep(at("q"), self.sum(n, w("wq"), at("q")))
        k = self.keep(at("k"), self.sum(n, w("wk"), at("k")))
        v = self.keep(at("v"), self.sum(n, w("wv"), at("v")))
        q, k = self.rotate(at("q_rot"), q, start), self.rotate(at("k_rot"), k, start)
        kc, vc = (np.concatenate([c, new], 1) if c is not None else new
                  for c, new in zip(caches[layer], (k, v)))
        caches[layer] = self.keep(at("k_cache"), kc), self.keep(at("v_cache"), vc)
        H, K, Q = q.shape[2], kc.shape[2], q.shape[3]
        score = np.zeros(q.shape[:3] + (kc.shape[1],), self.dtype)
        attn = np.zeros_like(q)
        e, top = np.zeros_like(score), np.zeros(q.shape[:3], self.dtype)
        Z = np.zeros_like(top)
        for b, l, h in np.ndindex(q.shape[:3]):
            seen, g = start + l + 1, h * K // H
            s = self.sum(q[b, l, h], kc[b, :seen, g].T, at("score"))
            score[b, l, h, :seen] = s * (1 / np.sqrt(self.dtype(Q)))
            top[b, l, h] = score[b, l, h, :seen].max()
            e[b, l, h, :seen] = np.exp(score[b, l, h, :seen] - top[b, l, h])
            ones = np.ones((seen, 1), self.dtype)
            Z[b, l, h] = self.sum(e[b, l, h, :seen], ones, at("denom"))[0]
            attn[b, l, h] = self.sum(e[b, l, h, :seen], vc[b, :seen, g], at("attn")) / Z[b, l, h]
        for name, value in (("score", score), ("max", top), ("exp", e), ("denom", Z)):
            self.keep(at(name), value)
        return self.keep(at("attn"), attn)

    def ffn(self, at, layer, n):
        w = lambda name: self.w[f"layer{layer}.{name}"]
        g = self.keep(at("gate"), self.sum(n, w("w_gate"), at("gate")))
        u = self.keep(at("up"), self.sum(n, w("w_up"), at("up")))
        return self.keep(at("hidden"), g / (1 + np.exp(-g)) * u)

    def out(self, name, inputs, matrices):
        """One sum over the terms' concatenated dims."""
        a = np.concatenate([x.reshape(x.shape[:2] + (-1,)) for x in inputs], -1)
        w = np.concatenate([m.reshape(-1, m.shape[-1]) for m in matrices])
        return self.keep(name, self.sum(a, w, name))

    def forward(self, name, ids, caches, start):
        self.ids[name + ".ids"] = ids
        x = self.keep(f"{name}.embed", self.w["embed"][ids])
        layers = len(caches)
        for layer in range(layers):
            at = lambda value, layer=layer: f"{name}.layer{layer}.{value}"
            w = lambda value: self.w[f"layer{layer}.{value}"]
            n = self.norm(at("norm"), x, f"layer{layer}.norm")
            attn = self.attention(at, layer, n, caches, start)
            if self.serial:
                mid = x + self.out(at("attn_out"), [attn], [w("wo")])
                n = self.norm(at("norm2"), self.keep(at("mid"), mid), f"layer{layer}.norm2")
                x = mid + self.out(at("ffn_out"), [self.ffn(at, layer, n)], [w("w_out")])
            else:
                hidden = self.ffn(at, layer, n)
                x = x + self.out(at("block_out"), [attn, hidden], [w("wo"), w("w_out")])
            self.keep(at("out"), x)
        n = self.norm(f"{name}.final_norm", x, "final_norm")
        U = self.w.get("unembed", self.w["embed"])
        z = self.sum(n[:, -1], U.T, f"{name}.logits") * self.scale
        return self.keep(f"{name}.logits", z)

    def generate(self, layers):
        caches, start = [(None, None)] * layers, 0
        ids = np.random.default_rng(1).integers(0, 48, (B, L)).astype(np.int32)
        for step in range(GEN):
            z = self.forward(f"decode.{step}" if step else "prefill.c0", ids, caches, start)
            start += ids.shape[1]
            ids = z.argmax(-1).astype(np.int32)[:, None]
        return self


def judged(judge, folder, weights, run, digits, without=()):
    """The verdict of every dumped value, with its slack and reach."""
    path = folder / "dump.h5"
    with h5py.File(path, "w") as file:
        for name, value in [("batch", B), ("prompt", L), ("chunk", L), ("gen", GEN), ("bf16", 0),
                            ("digits", digits), ("ulp", 4), ("folded", 0), ("wire", 0)]:
            file.attrs[name] = value
        for name, value in run.values.items():
            if name.split(".")[-1] not in without:
                file[name] = value.astype(np.float64)
        for name, value in run.ids.items():
            file[name] = value
    done = subprocess.run([judge, weights, path], capture_output=True, text=True)
    demand(done.returncode in (0, 1), done.stderr)
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


def demand(held, what):
    if not held:
        print("gate_b:", what)
        sys.exit(1)


def main():
    program, judge, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    planted = within = 0
    for text, model in MODELS.items():
        path = folder / "gate_b.h5"
        subprocess.run([program, "weights", "generate", "--model", text, "--seed", "3", "--out",
                        path], check=True, stdout=subprocess.DEVNULL)
        with h5py.File(path) as file:
            weights = {name: data[()] for name, data in file.items()}
        layers = 2 if "layers=2" in text else 1
        for dtype, digits in ((np.float64, 53), (np.float32, 24)):
            make = lambda seed, fault=("", None): Run(weights, model, dtype, seed,
                                                      fault).generate(layers)
            for seed in range(3):
                fits = judged(judge, folder, path, make(seed), digits)
                wrong = {name: fit for name, fit in fits.items() if fit[0] != "within"}
                demand(not wrong, f"{text} {dtype.__name__}: {wrong}")
                within += len(fits)
            slacks = sorted(float(fit[1]) for name, fit in fits.items()
                            if name.split(".")[-1] in SUMS and float(fit[1]) > 0)
            print(f"{text} {dtype.__name__}: {len(fits)} values within; slack of sums: median "
                  f"{slacks[len(slacks) // 2]:.1f}, least {slacks[0]:.1f}")
            outs = ["attn_out", "ffn_out"] if model["serial"] else ["block_out"]
            for value in SUMS + outs:
                for kind in ("bf16", "dropped", "twice", "scaled"):
                    name = f"decode.1.{value}" if value == "logits" else f"decode.1.layer0.{value}"
                    fits = judged(judge, folder, path, make(9, (name, kind)), digits)
                    wrong = {n for n, fit in fits.items() if fit[0] == "different"}
                    demand(wrong == {name}, f"{text} {dtype.__name__} {name} {kind}: found {wrong}")
                    planted += 1
            for without in (("score", "max", "exp", "denom"), ("gate", "up"), ("norm", "norm2"),
                            ("q", "k", "q_rot", "k_rot"), ("hidden",)):
                fits = judged(judge, folder, path, make(4), digits, without)
                found = {fit[0] for fit in fits.values()}
                demand(found <= {"within", "near", "loose", "not"}, f"{text} without {without}: {found}")
                if digits == 53:
                    demand(found <= {"within", "near"}, f"{text} without {without}: {found}")
    print(f"gate B: {within} values within, {planted} faults found")


main()
