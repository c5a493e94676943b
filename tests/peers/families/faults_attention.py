"""Faults of attention, of positions and of caches."""
import numpy as np

from attention import scores
from fault import CACHES, F, MERGES, Fault, put


def few(model):
    return 1 < model.K < model.H


def many(model):
    return model.K > 1


# ---- attention ----

def kv_head_mod(run):
    """Query head h reads kv head h mod K, of a chip's own heads where they are cut."""
    own = run.model.K // run.k_blocks
    put(run, "kv_heads", lambda before: np.broadcast_to(
        np.arange(run.model.H // run.n) % own, (run.n, run.model.H // run.n)))


def own_chunk_mask(run):
    put(run, "seen", lambda before: np.arange(run.start + run.length) <= np.arange(
        run.length)[:, None])


def no_mask(run):
    put(run, "seen", lambda before: np.ones_like(before()))


def without_newest(run):
    def seen(before):
        keys = before()
        if run.start > 0 and run.length == 1:
            keys[:, -1] = False
        return keys
    put(run, "seen", seen)


def scaled(by):
    def plant(run):
        run.scale = F(by(run.model))
    return plant


def merged(weights):
    """Decode in two parts of the slots, merged by weights of (max [r...], sum [r...])."""
    def attended(before, run, layer, q):
        if run.start == 0:
            return before(layer, q)
        k, v = run.heads_of("k_cache", layer), run.heads_of("v_cache", layer)
        s = scores(run.arithmetic, np.moveaxis(q, 3, 1), k, run.scale, run.seen())
        parts = [(s[..., r::2], v[..., r::2, :]) for r in range(2)]
        top = np.stack([part.max(-1) for part, _ in parts])
        e = [np.exp(part - t[..., None]) for (part, _), t in zip(parts, top)]
        z = np.stack([one.sum(-1, dtype=F) for one in e])
        o = np.stack([one @ values / t[..., None] for one, (_, values), t in zip(e, parts, z)])
        w = weights(top, z)
        w = w / w.sum(0, dtype=F)
        return {"attn": run.arithmetic.st((w[..., None] * o).sum(0, dtype=F))}
    return lambda run: put(run, "attended", lambda before, *a: attended(before, run, *a))


def lse_base_two(top, z):
    lse = top + np.log(z)
    return np.exp2(lse - lse.max(0))


def lse_of_two_to(top, z):
    lse = (top + np.log(z)) * F(1.4426950408889634)
    return np.exp(lse - lse.max(0))


def lse_other_chip(top, z):
    lse = (top + np.log(z))[::-1]
    return np.exp(lse - lse.max(0))


def equal_weights(top, z):
    return np.ones_like(z)


def without_maximum(top, z):
    return z


def read(change):
    """What attention reads of a cache, which the trace shows right."""
    return lambda run: put(run, "read", lambda before, name, layer: change(
        run, before(name, layer), name, layer))


def other_row(run, a, name, layer):
    a = a.copy()
    a[:, :, 1:3] = np.roll(a[:, :, 1:3], 1, axis=1)
    return a


def zeros_before_newest(run, a, name, layer):
    return a * (np.arange(a.shape[2]) >= run.start)[:, None, None].astype(F)


def layer_zero(run, a, name, layer):
    return run.caches[0, name]


HOOKS = ("hooks", "lean")
ATTENTION = [
    Fault("kv-head-mod", "attention", kv_head_mod, ("head order",), (1, 2), applies=few),
    Fault("own-chunk-mask", "attention", own_chunk_mask, ("mask",), passes=(1, 6, 3, 2)),
    Fault("no-mask", "attention", no_mask, ("mask",), passes=(2, 6, 6, 1)),
    Fault("without-newest", "attention", without_newest, ("mask",)),
    Fault("scale-one", "attention", scaled(lambda m: 1), ("scale missing", "another factor")),
    Fault("scale-of-E", "attention", scaled(lambda m: m.E**-0.5),
          ("scale missing", "scale doubled", "another factor")),
    Fault("scale-of-2Q", "attention", scaled(lambda m: (2 * m.Q)**-0.5),
          ("scale missing", "scale doubled", "another factor")),
    Fault("lse-base-two", "attention", merged(lse_base_two), MERGES, sets=HOOKS, fused=True),
    Fault("lse-of-two-to", "attention", merged(lse_of_two_to), MERGES, sets=HOOKS, fused=True),
    Fault("lse-other-chip", "attention", merged(lse_other_chip), MERGES, sets=HOOKS, fused=True),
    Fault("merge-equal", "attention", merged(equal_weights), MERGES, sets=HOOKS, fused=True),
    Fault("merge-no-maximum", "attention", merged(without_maximum), MERGES, sets=HOOKS,
          fused=True),
    Fault("read-other-row", "attention", read(other_row), CACHES, sets=HOOKS),
    Fault("read-zeros", "attention", read(zeros_before_newest), CACHES + ("mask",), sets=HOOKS),
    Fault("read-layer-zero", "attention", read(layer_zero), CACHES, sets=HOOKS),
]


# ---- positions ----

def positions(change):
    return lambda run: put(run, "positions", lambda before: change(run, before()))


def in_decode(by):
    return lambda run, p: p + by if run.length == 1 and run.start > 0 else p


def tables(theta=lambda m: m.theta, width=lambda m: m.rotated):
    """Tables of other frequencies: of another theta, or of another number of channels."""
    def plant(run):
        m = run.model
        j = np.arange(run.cos.shape[1])
        angles = np.arange(64)[:, None] * float(theta(m))**(-2 * j / width(m))
        run.cos, run.sin = np.cos(angles).astype(F), np.sin(angles).astype(F)
    return plant


def zigzag(run, p):
    order = np.array([0, 1, 4, 5, 6, 7, 2, 3])
    return order if run.length == 8 else p


def strided(run, p):
    return (p % 4) * 2 + p // 4 if run.length == 8 else p


def other_pairs(run):
    run.model = run.model.with_other(interleaved=not run.model.interleaved)


POSITION = ("position off", "other frequencies")
POSITIONS = [
    Fault("decode-at-12", "positions", positions(in_decode(12)), POSITION),
    Fault("decode-late", "positions", positions(in_decode(1)), POSITION),
    Fault("offset-twice", "positions", positions(lambda run, p: p + run.start), POSITION,
          passes=(1, 6, 3, 2)),
    Fault("zigzag", "positions", positions(zigzag), POSITION, passes=(2, 8, 8, 1)),
    Fault("strided", "positions", positions(strided), POSITION, passes=(2, 8, 8, 1)),
    Fault("other-theta", "positions", tables(theta=lambda m: 5e5 if m.theta != 5e5 else 1e4),
          POSITION, applies=lambda m: m.rotated > 2),
    Fault("whole-head-frequencies", "positions", tables(width=lambda m: m.Q), POSITION,
          applies=lambda m: 2 < m.rotated < m.Q),
    Fault("other-pairs", "positions", other_pairs, POSITION + ("convention",),
          applies=lambda m: m.rotated > 2),
]


# ---- caches ----

def appended(change):
    """What stands in the old slots of a cache in decode step 1, and from then on."""
    def plant(run):
        def append(before, name, layer, new):
            if run.pass_name == "decode.1":
                run.caches[layer, name] = change(run, run.caches[layer, name])
            return before(name, layer, new)
        put(run, "appended", append)
    return plant


def first_kv_head(run, old):
    return np.broadcast_to(old[:1, :, :, :1], old.shape)


def new_entries(change):
    return lambda run: put(run, "appended", lambda before, name, layer, new: before(
        name, layer, change(run, name, layer, new)))


def unwritten(run, name, layer, new):
    return new * F(0) if run.length == 1 and run.start > 0 else new


def unrotated(run, name, layer, new):
    return run.values[f"{run.pass_name}.layer{layer}.k"] if name == "k_cache" else new


SHOWN = ("hooks", "full")
CACHE = [
    Fault("old-slots-of-head-0", "caches", appended(first_kv_head), CACHES, applies=many),
    Fault("slots-shifted", "caches", appended(lambda run, old: np.roll(old, 2, axis=2)), CACHES,
          sets=SHOWN),
    Fault("slot-unwritten", "caches", new_entries(unwritten), CACHES),
    Fault("k-not-rotated", "caches", new_entries(unrotated), CACHES + POSITION, sets=SHOWN),
    Fault("rows-exchanged", "caches", appended(lambda run, old: np.roll(old, 1, axis=1)), CACHES),
]
