"""Attention on each chip: of its rows and heads, over the keys it holds."""
import numpy as np

from arithmetic import to_bf16
from mesh import Layout, Sharded

MASKED = -1e30  # what stands in masked scores where they mean nothing


def rotate(x, positions, cos, sin, arithmetic):
    """RoPE in halves of x [B,L,N,Q], at a position for each of L."""
    wide = arithmetic.wide
    c, s = (table[positions].astype(wide)[:, None, :] for table in (cos, sin))
    half = x.shape[-1] // 2
    a, b = x[..., :half].astype(wide), x[..., half:].astype(wide)
    return np.concatenate([a * c - b * s, b * c + a * s], -1).astype(arithmetic.dtype)


def kv_heads(mesh, q, k_cache, chip, tiled):
    """For each head of the chip the kv head that it reads, among the chip's own."""
    H = q.shards[chip].shape[2] * mesh.size(q.layout.axes("H"))
    K = k_cache.shards[chip].shape[2] * mesh.size(k_cache.layout.axes("K"))
    count = q.shards[chip].shape[2]
    heads = mesh.index(chip, q.layout.axes("H")) * count + np.arange(count)
    local = k_cache.shards[chip].shape[2]
    if tiled:
        return (heads if local == K else np.arange(count)) % local
    return heads * K // H - mesh.index(chip, k_cache.layout.axes("K")) * local


def visible(length, cached, start, form):
    """[L,M]: whether the key at m is seen from position l."""
    limits = start + np.arange(length)
    if form:
        limits = {"none": limits * 0 + cached, "no-start": limits - start}.get(
            form["bound"], limits + (form["bound"] if isinstance(form["bound"], int) else 0))
    return np.arange(cached) <= np.maximum(limits, 0)[:, None]


def attention(keep, at, q, k_cache, v_cache, start, arithmetic, bugs, garbage=False):
    """Keeps score, max, exp, denom; returns attn, which is not kept yet."""
    mesh, wide, dtype = q.mesh, arithmetic.wide, arithmetic.dtype
    length, Q = next(iter(q.shards.values())).shape[1::2]
    cached, kv = next(iter(k_cache.shards.values())).shape[1:3]
    masks = [{"axes": "", "bound": bound} for bound in (1, -1, "none")]
    form = bugs.here("mask-off", at("score"), "mask",
                     masks + [{"axes": "", "bound": "no-start"}] * (start > 0))
    seen = visible(length, cached, start, form)[None, :, None, :]
    grouped = 1 < kv < next(iter(q.shards.values())).shape[2]
    tiled = bugs.here("head-order", at("score"), "kv heads",
                      [{"axes": "", "order": "tiled"}] if grouped else [])
    scale = 1 / np.sqrt(wide(Q))
    if bugs.here("scale-missing", at("score"), "scale", [{"axes": "", "scale": "1/sqrt(Q)"}]):
        scale = wide(1)
    if bugs.here("scale-doubled", at("score"), "scale", [{"axes": "", "scale": "1/sqrt(Q)"}]):
        scale = scale * scale
    mapped = {chip: kv_heads(mesh, q, k_cache, chip, tiled) for chip in mesh.chips}
    rounded = bugs.here("rounding-bf16", at("score"), "operand", [
        {"axes": "", "what": what} for what in ("q_rot", "k_cache")])

    def scores(a, chip):
        keys = k_cache.shards[chip][:, :, mapped[chip]]
        if rounded:
            a, keys = (to_bf16(a), keys) if rounded["what"] == "q_rot" else (a, to_bf16(keys))
        s = arithmetic.finish(arithmetic.product("BLHQ,BMHQ->BLHM", a, keys))
        return np.where(seen, (s.astype(wide) * scale).astype(dtype), dtype(0))

    B, H = q.layout.axes("B"), q.layout.axes("H")
    wide_layout, narrow = Layout.of("BLHM", B=B, H=H), Layout.of("BLH", B=B, H=H)
    shown = lambda a, chip: np.where(seen, a, dtype(MASKED)) if garbage else a
    score = q.map(scores, wide_layout)
    score = keep(at("score"), score, shown)
    top = score.map(lambda a, chip: np.where(seen, a, -np.inf).max(-1).astype(dtype), narrow)
    top = keep(at("max"), top)
    e = score.map(lambda a, chip: np.where(
        seen, np.exp(np.where(seen, a - top.shards[chip][..., None], 0).astype(wide)), 0
    ).astype(dtype))
    e = keep(at("exp"), e)
    Z = keep(at("denom"), e.map(lambda a, chip: arithmetic.finish(
        arithmetic.product("BLHM,M->BLH", a, np.ones(cached, dtype))), narrow))
    low = bugs.here("rounding-bf16", at("attn"), "operand", [
        {"axes": "", "what": what} for what in ("exp", "v_cache")])

    def mean(a, chip):
        values = v_cache.shards[chip][:, :, mapped[chip]]
        if low:
            a, values = (to_bf16(a), values) if low["what"] == "exp" else (a, to_bf16(values))
        total = arithmetic.finish(arithmetic.product("BLHM,BMHQ->BLHQ", a, values))
        return (total.astype(wide) / Z.shards[chip].astype(wide)[..., None]).astype(dtype)

    return Sharded(mesh, q.layout, e.map(mean).shards)
