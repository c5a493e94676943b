"""Prefill with all weights gathered, then 2D weight-stationary decode steps with attention over the
batch, in JAX on forced host devices: explicit shard_map, each collective written out. It is what
`tools/bench/jax` times, and shares no code with Shardproof.

    jax_model.py INPUT.npz OUTPUT.json --torus XxYxZ --gen N [--timed N] [--logits FILE.npz]

INPUT has the arrays of a weights file (docs/spec.md section 2.5) by their names, and `prompt` [BL].
The model has a parallel block, RMS norm, swiglu, multiquery attention, half-split RoPE and a tied
table; sampling is greedy. The collectives are those of wg-xyz:batch and ws2d:batch, as
`shardproof explain` shows them. OUTPUT gets the generated ids and where the time went.
"""
import argparse
import functools
import json
import math
import os
import time

ARGUMENTS = argparse.ArgumentParser(description=__doc__.splitlines()[0])
ARGUMENTS.add_argument("input")
ARGUMENTS.add_argument("output")
ARGUMENTS.add_argument("--torus", required=True)
ARGUMENTS.add_argument("--gen", type=int, required=True)
ARGUMENTS.add_argument("--timed", type=int, default=0, help="times so many more decode steps")
ARGUMENTS.add_argument("--logits", help="writes the logits of every step: what a tie is seen by")
OPTIONS = ARGUMENTS.parse_args()
TORUS = [int(extent) for extent in OPTIONS.torus.split("x")]

os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={math.prod(TORUS)}"
os.environ["JAX_PLATFORMS"] = "cpu"
STARTED = time.perf_counter()

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

ZY, ZYX = ("z", "y"), ("z", "y", "x")
# How each weight rests on the devices, in both phases.
TABLES = {"embed": P(ZY, "x"), "final_norm": P(), "rope_cos": P(), "rope_sin": P()}
OF_LAYER = {"norm": P(), "wq": P("x", ZY), "wk": P("x"), "wv": P("x"), "wo": P(ZY, None, "x"),
            "w_gate": P("x", ZY), "w_up": P("x", ZY), "w_out": P(ZY, "x")}
CACHE = P(ZYX)

gather = functools.partial(lax.all_gather, tiled=True)
scatter = functools.partial(lax.psum_scatter, tiled=True)


def exchange(value, axes, whole, cut):
    """all_to_all: dim `whole`, cut over the axes before, is whole then, and `cut` is cut."""
    return lax.all_to_all(value, axes, split_axis=cut, concat_axis=whole, tiled=True)


def own_part(value, axes, dim):
    """The block of a replicated dim that belongs to this device."""
    extent = value.shape[dim] // lax.axis_size(axes)
    return lax.dynamic_slice_in_dim(value, lax.axis_index(axes) * extent, extent, dim)


def normed(x, squares, extent, gain):
    return x * lax.rsqrt(squares / extent + 1e-6) * gain


def norm_of_parts(x, gain):
    """RMS norm of BLE_x or BE_x."""
    squares = lax.psum(jnp.sum(x * x, -1, keepdims=True), "x")
    return normed(x, squares, x.shape[-1] * lax.axis_size("x"), own_part(gain, "x", 0))


def rope(x, cos, sin):
    """Of BLHQ or BLQ; the tables LJ."""
    if x.ndim == 4:
        cos, sin = cos[:, None], sin[:, None]
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attention(w, q, k, v, cache, start):
    """On this device's rows: q BLHQ, k and v BLQ, the caches BMQ with `start` slots filled."""
    length, slots = q.shape[1], cache[0].shape[1]
    cos, sin = (lax.dynamic_slice_in_dim(w[name], start, length) for name in ("rope_cos", "rope_sin"))
    k_cache = lax.dynamic_update_slice_in_dim(cache[0], rope(k, cos, sin), start, 1)
    v_cache = lax.dynamic_update_slice_in_dim(cache[1], v, start, 1)
    score = jnp.einsum("blhq,bmq->blhm", rope(q, cos, sin), k_cache) / math.sqrt(q.shape[-1])
    seen = jnp.arange(slots) <= start + jnp.arange(length)[:, None]
    score = jnp.where(seen[:, None], score, -jnp.inf)
    weights = jnp.exp(score - score.max(-1, keepdims=True))
    attended = jnp.einsum("blhm,bmq->blhq", weights, v_cache)
    return attended / weights.sum(-1)[..., None], (k_cache, v_cache)


def embedding(w, ids):
    """BLE_x, of which each device has the rows of its ids: a sum over z and y is missing."""
    rows = w["embed"].shape[0]
    own = ids - lax.axis_index(ZY) * rows
    return jnp.where(((own >= 0) & (own < rows))[..., None], w["embed"][own], 0.0)


def next_tokens(w, x):
    """Greedy, of the last position BE_x, and the logits BV_zyx."""
    logits = jnp.einsum("be,ve->bv", norm_of_parts(x, w["final_norm"]), w["embed"])
    logits = scatter(logits, "x", scatter_dimension=1)
    logits = logits / math.sqrt(x.shape[-1] * lax.axis_size("x"))
    best = jnp.argmax(logits, -1, keepdims=True)
    values = gather(jnp.take_along_axis(logits, best, 1), ZYX, axis=1)
    ids = gather(best + lax.axis_index(ZYX) * logits.shape[1], ZYX, axis=1)
    chosen = jnp.argmax(values, -1, keepdims=True)  # the first of equals: the lowest id
    return jnp.take_along_axis(ids, chosen, 1)[:, 0].astype(jnp.int32), logits


def gathered(weight, over_zy=None):
    """A whole matrix of its parts: E_x, and the dim `over_zy` over z and y."""
    e_dim = 0 if over_zy in (None, 1) else weight.ndim - 1
    weight = gather(weight, "x", axis=e_dim)
    return weight if over_zy is None else gather(weight, ZY, axis=over_zy)


def prefill_layer(w, x, cache):
    """Weight-gathered over all axes, x is B_zyxLE."""
    norm = normed(x, jnp.sum(x * x, -1, keepdims=True), x.shape[-1], w["norm"])
    q = jnp.einsum("ble,ehq->blhq", norm, gathered(w["wq"], 1))
    k = jnp.einsum("ble,eq->blq", norm, gathered(w["wk"]))
    v = jnp.einsum("ble,eq->blq", norm, gathered(w["wv"]))
    attended, cache = attention(w, q, k, v, cache, 0)
    gate = jnp.einsum("ble,ef->blf", norm, gathered(w["w_gate"], 1))
    up = jnp.einsum("ble,ef->blf", norm, gathered(w["w_up"], 1))
    hidden = jax.nn.silu(gate) * up
    return (x + jnp.einsum("blhq,hqe->ble", attended, gathered(w["wo"], 0))
            + jnp.einsum("blf,fe->ble", hidden, gathered(w["w_out"], 0))), cache


def decode_layer(w, x, cache, start):
    """2D weight-stationary, attention over the batch; x is BLE_xzy."""
    norm = norm_of_parts(gather(x, ZY, axis=2), w["norm"])
    q = scatter(jnp.einsum("ble,ehq->blhq", norm, w["wq"]), "x", scatter_dimension=2)
    q = exchange(q, ZYX, whole=2, cut=0)
    rows = own_part(norm, ZY, 0)
    k = scatter(jnp.einsum("ble,eq->blq", rows, w["wk"]), "x", scatter_dimension=0)
    v = scatter(jnp.einsum("ble,eq->blq", rows, w["wv"]), "x", scatter_dimension=0)
    attended, cache = attention(w, q, k, v, cache, start)
    attended = gather(exchange(attended, ZYX, whole=0, cut=2), "x", axis=2)
    gate = scatter(jnp.einsum("ble,ef->blf", norm, w["w_gate"]), "x", scatter_dimension=2)
    up = scatter(jnp.einsum("ble,ef->blf", norm, w["w_up"]), "x", scatter_dimension=2)
    hidden = gather(jax.nn.silu(gate) * up, "x", axis=2)
    out = (jnp.einsum("blhq,hqe->ble", attended, w["wo"])
           + jnp.einsum("blf,fe->ble", hidden, w["w_out"]))
    return x + scatter(out, ZY, scatter_dimension=2), cache


class Model:
    """The weights on the devices, and both phases compiled when first called."""

    def __init__(self, arrays, slots):
        self.mesh = jax.make_mesh(TORUS, ("x", "y", "z"))
        self.layers = sum(name.endswith(".wq") for name in arrays)
        self.slots, self.channels = slots, arrays["layer0.wk"].shape[-1]
        of_layers = {f"layer{n}.{name}": spec for n in range(self.layers)
                     for name, spec in OF_LAYER.items()}
        self.specs = TABLES | of_layers
        self.weights = {}
        for name, spec in self.specs.items():
            array = arrays[name].squeeze(1) if name.endswith((".wk", ".wv")) else arrays[name]
            self.weights[name] = jax.device_put(array, NamedSharding(self.mesh, spec))
        caches = [(CACHE, CACHE)] * self.layers
        results = (P(), caches, P(None, ZYX))
        self.prefill = self.on_devices(self._prefill, (self.specs, P()), results)
        self.decode = self.on_devices(self._decode, (self.specs, caches, P(), P()), results)

    def on_devices(self, function, given, results):
        return jax.jit(jax.shard_map(function, mesh=self.mesh, in_specs=given, out_specs=results,
                                     check_vma=False))

    def weights_of(self, w, n):
        return {name: w[f"layer{n}.{name}"] for name in OF_LAYER} | w

    def _prefill(self, w, ids):
        x = exchange(scatter(embedding(w, ids), ZY, scatter_dimension=0), "x", whole=2, cut=0)
        empty = jnp.zeros((x.shape[0], self.slots, self.channels), jnp.float32)
        caches = []
        for n in range(self.layers):
            x, cache = prefill_layer(self.weights_of(w, n), x, (empty, empty))
            caches.append(cache)
        last = gather(exchange(x[:, -1], "x", whole=0, cut=1), ZY, axis=0)
        tokens, logits = next_tokens(w, last)
        return tokens, caches, logits

    def _decode(self, w, caches, tokens, start):
        x = scatter(embedding(w, tokens[:, None]), ZY, scatter_dimension=2)
        filled = []
        for n, cache in enumerate(caches):
            x, cache = decode_layer(self.weights_of(w, n), x, cache, start)
            filled.append(cache)
        tokens, logits = next_tokens(w, gather(x[:, -1], ZY, axis=1))
        return tokens, filled, logits


def clocks():
    return np.array([time.process_time(), time.perf_counter()])


def main():
    jax.config.update("jax_default_matmul_precision", "highest")
    arrays = dict(np.load(OPTIONS.input))
    prompt = arrays.pop("prompt").astype(np.int32)
    length, steps = prompt.shape[1], OPTIONS.gen - 1
    model = Model(arrays, length + steps + OPTIONS.timed)
    said = {"imports_and_weights": time.perf_counter() - STARTED}

    tokens, caches, logits = model.prefill(model.weights, prompt)
    generated, shown = [np.asarray(tokens)], [logits]
    for step in range(steps):
        tokens, caches, logits = model.decode(model.weights, caches, tokens, length + step)
        generated.append(np.asarray(tokens))
        shown.append(logits)
    said["compiled_and_run"] = time.perf_counter() - STARTED - said["imports_and_weights"]
    said["generated"] = np.stack(generated, 1).tolist()
    if OPTIONS.logits:
        np.savez(OPTIONS.logits, *(np.asarray(of_step) for of_step in shown))

    if OPTIONS.timed > 0:  # all compiled by now: the steps that follow, one after the other
        jax.block_until_ready(caches)
        start = clocks()
        for step in range(steps, steps + OPTIONS.timed):
            tokens, caches, _ = model.decode(model.weights, caches, tokens, length + step)
            tokens.block_until_ready()
        said["processor"], said["wall"] = ((clocks() - start) / OPTIONS.timed).tolist()
    with open(OPTIONS.output, "w", encoding="utf-8") as file:
        json.dump(said, file)


if __name__ == "__main__":
    main()
