"""A model of the PaLM family on 2x2x2 devices, in JAX: 2D weight-stationary, attention over the
heads, KV caches of a static length. It shares no code with Shardproof.

    peer.py WEIGHTS.npz TRACE.npz [--model TEXT] [--act f32|bf16] [--fault NAME]

WEIGHTS.npz has the arrays of a weights file (docs/spec.md section 2.5) by their names; the model
has a parallel block, one norm, swiglu, multiquery attention and half-split RoPE.
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

from trace import dump, tap, tapped

BATCH, PROMPT, CHUNK, GEN, SLOTS = 2, 5, 3, 4, 16
YZ = ("y", "z")
# How each weight is cut. The table stands twice: to look up in, and to unembed by.
SPECS = {"embed": P(None, ("x", "y", "z")), "unembed": P(YZ, "x"), "final_norm": P("x"),
         "rope_cos": P(), "rope_sin": P()}
LAYER_SPECS = {"norm": P("x"), "wq": P("x", YZ), "wk": P("x"), "wv": P("x"), "wo": P(YZ, None, "x"),
               "w_gate": P("x", YZ), "w_up": P("x", YZ), "w_out": P(YZ, "x")}
# In the second layer, what a mistake makes wrong first.
FAULTS = {"no-psum": "k is not summed over x",
          "axis-order": "w_up is cut over z and y, where y and z are meant",
          "position-off": "in a decode step q and k are rotated as one position later",
          "stale-slot": "a decode step writes its v over the last one of the cache"}

einsum = functools.partial(jnp.einsum, preferred_element_type=jnp.float32)


def rms_norm(x, gain):
    """Of BLE_x."""
    x = x.astype(jnp.float32)
    squares = lax.psum(jnp.sum(x * x, -1, keepdims=True), "x")
    extent = x.shape[-1] * lax.psum(1, "x")
    return x * lax.rsqrt(squares / extent + 1e-6) * gain


def rope(x, cos, sin):
    x = x.astype(jnp.float32)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


class Model:
    """What one device does in a pass, and the passes of a run."""

    def __init__(self, weights, act, fault):
        self.act, self.fault = act, fault
        self.layers = sum(name.endswith(".wq") for name in weights)
        self.specs = dict(SPECS)
        for n in range(self.layers):
            self.specs |= {f"layer{n}.{name}": spec for name, spec in LAYER_SPECS.items()}
        if fault == "axis-order":
            self.specs["layer1.w_up"] = P("x", ("z", "y"))
        self.mesh = jax.make_mesh((2, 2, 2), ("x", "y", "z"))
        arrays = weights | {"unembed": weights["embed"]}
        self.weights = {name: jax.device_put(arrays[name], NamedSharding(self.mesh, spec))
                        for name, spec in self.specs.items()}
        self.channels = weights["layer0.wk"].shape[1:]

    def layer(self, n, w, x, cache, start):
        """x: BLE_xyz. The cache: k and v, BMKQ, of which `start` slots are filled."""
        faulty = n == 1 and self.fault or ""
        decode = x.shape[1] == 1
        at = f"layer{n}."
        st = lambda v: v.astype(self.act)
        norm = rms_norm(lax.all_gather(x, YZ, axis=2, tiled=True), w[at + "norm"])
        norm = tap(at + "norm", st(norm), "BLE_x")
        gate = einsum("BLE,EF->BLF", norm, w[at + "w_gate"])
        tap(at + "gate_sum", gate, "BLF_yz partialsum-x", meaning="raw gate")
        gate = st(lax.psum_scatter(gate, "x", scatter_dimension=2, tiled=True))
        tap(at + "gate", gate, "BLF_yzx")
        up = einsum("BLE,EF->BLF", norm, w[at + "w_up"])
        up = st(lax.psum_scatter(up, "x", scatter_dimension=2, tiled=True))
        tap(at + "up", up, "BLF_yzx")
        q = einsum("BLE,EHQ->BLHQ", norm, w[at + "wq"])
        q = st(lax.psum_scatter(q, "x", scatter_dimension=2, tiled=True))
        tap(at + "q", q, "BLH_yzxQ")
        k = einsum("BLE,EKQ->BLKQ", norm, w[at + "wk"])
        k = tap(at + "k", st(k if faulty == "no-psum" else lax.psum(k, "x")), "BLKQ")
        v = lax.psum(einsum("BLE,EKQ->BLKQ", norm, w[at + "wv"]), "x")
        v = tap(at + "v", st(v), "BLKQ")

        length = x.shape[1]
        first = start + (faulty == "position-off" and decode)
        cos, sin = (lax.dynamic_slice_in_dim(w[table], first, length)[:, None]
                    for table in ("rope_cos", "rope_sin"))
        q = tap(at + "q_rot", st(rope(q, cos, sin)), "BLH_yzxQ")
        k = tap(at + "k_rot", st(rope(k, cos, sin)), "BLKQ")
        k_cache = lax.dynamic_update_slice_in_dim(cache[0], k, start, 1)
        slot = start - (faulty == "stale-slot" and decode)
        v_cache = lax.dynamic_update_slice_in_dim(cache[1], v, slot, 1)
        tap(at + "k_cache", k_cache, "BMKQ", padded="M")
        tap(at + "v_cache", v_cache, "BMKQ", padded="M")

        score = einsum("BLHQ,BMKQ->BLHM", q, k_cache) / np.sqrt(np.float32(q.shape[-1]))
        seen = jnp.arange(SLOTS) <= start + jnp.arange(length)[:, None]
        score = jnp.where(seen[:, None], score, -1e30)
        tap(at + "score", score, "BLH_yzxM", padded="M")
        top = tap(at + "max", score.max(-1), "BLH_yzx")
        exp = tap(at + "exp", jnp.exp(score - top[..., None]), "BLH_yzxM", padded="M")
        denom = tap(at + "denom", exp.sum(-1), "BLH_yzx")
        attn = einsum("BLHM,BMKQ->BLHQ", exp, v_cache.astype(jnp.float32)) / denom[..., None]
        attn = tap(at + "attn", st(attn), "BLH_yzxQ")

        wide = gate.astype(jnp.float32)
        hidden = tap(at + "hidden", st(wide / (1 + jnp.exp(-wide)) * up), "BLF_yzx")
        hidden = lax.all_gather(hidden, "x", axis=2, tiled=True)
        attn = lax.all_gather(attn, "x", axis=2, tiled=True)
        block = (einsum("BLHQ,HQE->BLE", attn, w[at + "wo"]) +
                 einsum("BLF,FE->BLE", hidden, w[at + "w_out"]))
        tap(at + "block_out_sum", block, "BLE_x partialsum-yz", meaning="raw block_out")
        block = st(lax.psum_scatter(block, YZ, scatter_dimension=2, tiled=True))
        tap(at + "block_out", block, "BLE_xyz")
        x = x.astype(jnp.float32) + block.astype(jnp.float32)
        return tap(at + "out", st(x), "BLE_xyz"), (k_cache, v_cache)

    def forward(self, sample, w, caches, ids, start):
        """One pass: the next token of each row if it samples one, and the caches."""
        tap("ids", ids, "BL")
        x = tap("embed", w["embed"][ids].astype(self.act), "BLE_xyz")
        filled = []
        for n, cache in enumerate(caches):
            x, cache = self.layer(n, w, x, cache, start)
            filled.append(cache)
        x = lax.all_gather(x, YZ, axis=2, tiled=True)
        x = tap("final_norm", rms_norm(x, w["final_norm"]).astype(self.act), "BLE_x")
        extent = x.shape[-1] * lax.psum(1, "x")
        logits = lax.psum(einsum("BE,VE->BV", x[:, -1], w["unembed"]), "x")
        logits = logits * np.float32(1 / np.sqrt(extent))
        tap("logits", logits, "BV_yz")
        if not sample:
            return None, filled
        token = jnp.argmax(lax.all_gather(logits, YZ, axis=1, tiled=True), -1).astype(jnp.int32)
        return tap("token", token, "B"), filled

    def step(self, sample):
        """A pass, for all devices: its results, and its taps."""
        caches = [(P(), P())] * self.layers
        return jax.jit(jax.shard_map(
            tapped(functools.partial(self.forward, sample)), mesh=self.mesh,
            in_specs=(self.specs, caches, P(), P()),
            out_specs=((P(), caches), P("x", "y", "z")), check_vma=False))

    def run(self, prompt):
        """The taps of each pass."""
        silent, sampling = self.step(False), self.step(True)
        empty = jnp.zeros((BATCH, SLOTS, *self.channels), self.act)
        caches, passes, start = [(empty, empty)] * self.layers, {}, 0
        for number, first in enumerate(range(0, PROMPT, CHUNK)):
            ids = prompt[:, first:first + CHUNK]
            step = sampling if first + CHUNK >= PROMPT else silent
            (token, caches), passes[f"prefill.c{number}"] = step(self.weights, caches, ids, start)
            start += ids.shape[1]
        for number in range(1, GEN):
            (token, caches), passes[f"decode.{number}"] = sampling(self.weights, caches,
                                                                   token[:, None], start)
            start += 1
        return passes


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("weights")
    arguments.add_argument("trace")
    arguments.add_argument("--model", default="palm-tiny", help="what the weights are of")
    arguments.add_argument("--act", default="f32", choices=["f32", "bf16"])
    arguments.add_argument("--fault", choices=FAULTS)
    options = arguments.parse_args()
    weights = dict(np.load(options.weights))
    act = jnp.bfloat16 if options.act == "bf16" else jnp.float32
    prompt = np.random.default_rng(5).integers(len(weights["embed"]), size=(BATCH, PROMPT))
    passes = Model(weights, act, options.fault).run(prompt.astype(np.int32))
    case = (f"torus=2x2x2 model={options.model} act={options.act} batch={BATCH} prompt={PROMPT} "
            f"chunk={CHUNK} gen={GEN}")
    dump(options.trace, case, passes, weights="file", masked="any")


if __name__ == "__main__":
    main()
