"""A model of the PaLM family on 2x2x2 devices, in JAX: 2D weight-stationary, attention over the
heads, a vocabulary that is cut, KV caches of a static length. Its numbers share no code with
Shardproof; shardproof.jax makes them a trace.

    peer.py WEIGHTS.npz TRACE.h5 [--model TEXT] [--act f32|bf16] [--scan] [--fault NAME]

WEIGHTS.npz has the arrays of a weights file (docs/spec.md section 2.5) by their names; the model
has a parallel block, one norm, swiglu, half-split RoPE, any number of kv heads, and biases or none.
"""
import argparse
import functools
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

from faults import FAULTS, NUMBERS, YZ, loaded
from shardproof.jax import dump, scan, tap, tapped

BATCH, PROMPT, CHUNK, GEN, SLOTS = 2, 5, 3, 4, 16
XYZ, YZX = ("x", "y", "z"), ("y", "z", "x")
# How each weight is cut. The table is the one to look up in, and the one to unembed by.
SPECS = {"embed": P(YZ, "x"), "final_norm": P("x"), "rope_cos": P(), "rope_sin": P()}
LAYER_SPECS = {"norm": P("x"), "wq": P("x", YZ), "wk": P("x"), "wv": P("x"), "wo": P(YZ, None, "x"),
               "w_gate": P("x", YZ), "w_up": P("x", YZ), "w_out": P(YZ, "x"),
               "bq": P(YZX), "bk": P(), "bv": P(), "b_gate": P(YZX), "b_up": P(YZX),
               "bo": P(XYZ), "b_out": P(XYZ)}

einsum = functools.partial(jnp.einsum, preferred_element_type=jnp.float32)
scatter = functools.partial(lax.psum_scatter, scatter_dimension=2, tiled=True)
gather = functools.partial(lax.all_gather, axis=2, tiled=True)


def rms_norm(x, gain, local=False):
    """Of BLE_x."""
    x = x.astype(jnp.float32)
    squares, extent = jnp.sum(x * x, -1, keepdims=True), x.shape[-1]
    whole = lax.psum(squares, "x") / (extent * lax.psum(1, "x"))
    return x * lax.rsqrt(jnp.where(local, squares / extent, whole) + 1e-6) * gain


def rope(x, cos, sin):
    x = x.astype(jnp.float32)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


class Model:
    """What one device does in a pass, and the passes of a run. `fault`: the name of one; a program
    that is made with "any" is told which at each run."""

    def __init__(self, weights, act, fault=None, scanned=False):
        self.act, self.fault, self.scanned = act, fault, scanned
        self.arrays = weights
        self.layers = sum(name.endswith(".wq") for name in weights)
        self.mesh = jax.make_mesh((2, 2, 2), XYZ)
        self.specs = SPECS | {"layers": {name: P(None, *spec) for name, spec in LAYER_SPECS.items()
                                         if f"layer0.{name}" in weights}}
        self.kv = weights["layer0.wk"].shape[1:]
        self.steps = {sample: self.step(sample) for sample in (False, True)}

    def placed(self, fault):
        """The weights on their devices, those of all layers as one array."""
        arrays = loaded(self.arrays, fault)
        arrays["layers"] = {name: np.stack([arrays[f"layer{n}.{name}"] for n in range(self.layers)])
                            for name in self.specs["layers"]}
        put = lambda spec, array: jax.device_put(array, NamedSharding(self.mesh, spec))
        return jax.tree.map(put, self.specs, {name: arrays[name] for name in self.specs})

    def has(self, name, number, layer=1):
        """Whether the program has this fault in this layer."""
        if self.fault == "any":
            return (number == NUMBERS[name]) & (layer == 1)
        return self.fault == name and layer == 1

    def layer(self, n, number, tables, x, w, cache, start):
        """x: BLE_xyz. The cache: k and v, BMKQ, of which `start` slots are filled."""
        has = functools.partial(self.has, number=number, layer=n)
        decode = x.shape[1] == 1
        at = "layer*." if self.scanned else f"layer{n}."
        st = lambda v: v.astype(self.act)
        w = dict.fromkeys(LAYER_SPECS, 0) | w  # where there is no bias, 0
        whole = gather(x, YZ)
        norm = rms_norm(whole, w["norm"], has("local-norm"))
        norm = tap(at + "norm", st(norm), "BLE_x")
        gate = einsum("BLE,EF->BLF", norm, w["w_gate"])
        tap(at + "gate_sum", gate, "BLF_yz partialsum-x", meaning="raw gate")
        gate = st(scatter(gate, "x") + w["b_gate"])
        tap(at + "gate", gate, "BLF_yzx")
        up = einsum("BLE,EF->BLF", norm, w["w_up"])
        up = tap(at + "up", st(scatter(up, "x") + w["b_up"]), "BLF_yzx")
        q = scatter(einsum("BLE,EHQ->BLHQ", norm, w["wq"]), "x")
        q = tap(at + "q", st(q + w["bq"]), "BLH_yzxQ")
        k = einsum("BLE,EKQ->BLKQ", norm, w["wk"])
        k = jnp.where(has("no-psum"), k, lax.psum(k, "x"))
        k = tap(at + "k", st(k + w["bk"]), "BLKQ")
        v = lax.psum(einsum("BLE,EKQ->BLKQ", norm, w["wv"]), "x")
        v = tap(at + "v", st(v + w["bv"]), "BLKQ")

        length = x.shape[1]
        first = jnp.where(has("local-positions"), 0, start + has("position-off") * decode)
        cos, sin = (lax.dynamic_slice_in_dim(table, first, length)[:, None] for table in tables)
        q = tap(at + "q_rot", st(rope(q, cos, sin)), "BLH_yzxQ")
        k = tap(at + "k_rot", st(rope(k, cos, sin)), "BLKQ")
        k_cache = lax.dynamic_update_slice_in_dim(cache[0], k, start, 1)
        slot = start - has("stale-slot") * decode
        v_cache = lax.dynamic_update_slice_in_dim(cache[1], v, slot, 1)
        tap(at + "k_cache", k_cache, "BMKQ", padded="M")
        tap(at + "v_cache", v_cache, "BMKQ", padded="M")

        kv_heads, heads = k.shape[2], q.shape[2] * lax.psum(1, XYZ)
        head = lax.axis_index(YZX) * q.shape[2] + jnp.arange(q.shape[2])
        group = jnp.where(has("kv-tile"), head % kv_heads, head // (heads // kv_heads))
        keys, values = jnp.take(k_cache, group, 2), jnp.take(v_cache, group, 2)
        score = einsum("BLHQ,BMHQ->BLHM", q, keys) / np.sqrt(np.float32(q.shape[-1]))
        last = start + jnp.arange(length) - has("mask-off") * decode + has("mask-late")
        score = jnp.where((jnp.arange(SLOTS) <= last[:, None])[:, None], score, -1e30)
        tap(at + "score", score, "BLH_yzxM", padded="M")
        top = tap(at + "max", score.max(-1), "BLH_yzx")
        exp = tap(at + "exp", jnp.exp(score - top[..., None]), "BLH_yzxM", padded="M")
        denom = tap(at + "denom", exp.sum(-1), "BLH_yzx")
        attn = einsum("BLHM,BMHQ->BLHQ", exp, values.astype(jnp.float32)) / denom[..., None]
        attn = tap(at + "attn", st(attn), "BLH_yzxQ")

        wide = gate.astype(jnp.float32)
        hidden = tap(at + "hidden", st(wide / (1 + jnp.exp(-wide)) * up), "BLF_yzx")
        block = (einsum("BLHQ,HQE->BLE", gather(attn, "x"), w["wo"]) +
                 einsum("BLF,FE->BLE", gather(hidden, "x"), w["w_out"]))
        tap(at + "block_out_sum", block, "BLE_x partialsum-yz", meaning="raw block_out")
        # Before the sum over y and z each chip would add the whole of its part of E, which is E_x.
        bias = lax.all_gather(jnp.broadcast_to(w["bo"], x.shape[2:]), YZ, tiled=True)
        summed = jnp.where(has("bias-repeated"), scatter(block + bias, YZ),
                           scatter(block, YZ) + w["bo"]) + w["b_out"]
        with_x = scatter(block + whole.astype(jnp.float32), YZ) + w["bo"] + w["b_out"]
        block = tap(at + "block_out", st(summed), "BLE_xyz")
        x = jnp.where(has("residual-repeated"), with_x,
                      x.astype(jnp.float32) + block.astype(jnp.float32))
        return tap(at + "out", st(x), "BLE_xyz"), (k_cache, v_cache)

    def all_layers(self, number, w, x, caches, start):
        run = functools.partial(self.layer, number=number, tables=(w["rope_cos"], w["rope_sin"]),
                                start=start)
        if self.scanned:
            body = lambda x, of: run(of[0], x=x, w=of[1], cache=of[2])
            return scan(body, x, (jnp.arange(self.layers), w["layers"], caches))
        filled = []
        for n in range(self.layers):
            weights, cache = jax.tree.map(lambda array: array[n], (w["layers"], caches))
            x, cache = run(n, x=x, w=weights, cache=cache)
            filled.append(cache)
        return x, tuple(jnp.stack(arrays) for arrays in zip(*filled))

    def looked_up(self, table, ids, clamped):
        """BLE_xyz. A chip has the rows of a block of ids."""
        row = ids - lax.axis_index(YZ) * len(table)
        there = (row >= 0) & (row < len(table)) | clamped
        return scatter(jnp.where(there[..., None], table[jnp.clip(row, 0, len(table) - 1)], 0), YZ)

    def forward(self, sample, w, caches, ids, start, number):
        """One pass: the next token of each row if it samples one, and the caches."""
        tap("ids", ids, "BL")
        x = self.looked_up(w["embed"], ids, self.has("lookup-unmasked", number))
        x = tap("embed", x.astype(self.act), "BLE_xyz")
        x, caches = self.all_layers(number, w, x, caches, start)
        x = tap("final_norm", rms_norm(gather(x, YZ), w["final_norm"]).astype(self.act), "BLE_x")
        extent = x.shape[-1] * lax.psum(1, "x")
        logits = lax.psum(einsum("BE,VE->BV", x[:, -1], w["embed"]), "x")
        logits = logits * np.float32(1 / np.sqrt(extent))
        tap("logits", logits, "BV_yz")
        if not sample:
            return None, caches
        token = jnp.argmax(gather(logits, YZ, axis=1), -1).astype(jnp.int32)
        return tap("token", token, "B"), caches

    def step(self, sample):
        """A pass, for all devices: its results, and its taps."""
        return jax.jit(jax.shard_map(
            tapped(functools.partial(self.forward, sample)), mesh=self.mesh,
            in_specs=(self.specs, P(), P(), P(), P()),
            out_specs=((P(), P()), P("x", "y", "z")), check_vma=False))

    def run(self, prompt, fault=None):
        """The taps of each pass."""
        fault = fault or self.fault
        weights, number = self.placed(fault), NUMBERS.get(fault, 0)
        empty = jnp.zeros((self.layers, BATCH, SLOTS, *self.kv), self.act)
        caches, passes, start = (empty, empty), {}, 0
        for chunk, first in enumerate(range(0, PROMPT, CHUNK)):
            ids = prompt[:, first:first + CHUNK]
            step = self.steps[first + CHUNK >= PROMPT]
            (token, caches), passes[f"prefill.c{chunk}"] = step(weights, caches, ids, start, number)
            start += ids.shape[1]
        for decode in range(1, GEN):
            (token, caches), passes[f"decode.{decode}"] = self.steps[True](
                weights, caches, token[:, None], start, number)
            start += 1
        return passes


def prompt_of(weights):
    rows = np.random.default_rng(5).integers(len(weights["embed"]), size=(BATCH, PROMPT))
    return rows.astype(np.int32)


def case_of(model, act):
    return (f"torus=2x2x2 model={model} act={act} batch={BATCH} prompt={PROMPT} chunk={CHUNK} "
            f"gen={GEN}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("weights")
    arguments.add_argument("trace")
    arguments.add_argument("--model", default="palm-tiny", help="what the weights are of")
    arguments.add_argument("--act", default="f32", choices=["f32", "bf16"])
    arguments.add_argument("--scan", action="store_true", help="over the layers, not a loop")
    arguments.add_argument("--fault", choices=FAULTS)
    options = arguments.parse_args()
    weights = dict(np.load(options.weights))
    act = jnp.bfloat16 if options.act == "bf16" else jnp.float32
    passes = Model(weights, act, options.fault, options.scan).run(prompt_of(weights))
    case = case_of(options.model, options.act)
    dump(options.trace, case, passes, weights="file", masked="any")


if __name__ == "__main__":
    main()
