"""Faults of weights, sums, layers, lookups and tokens."""
import numpy as np

from fault import OPERANDS, ORDERS, WEIGHTS, F, Fault, parallel, put, serial, swapped, weight


def has(part):
    return lambda model: f"layer0.{part}" in model.weights or part in model.weights


# ---- weights ----

def in_equal_blocks(parts):
    """A fused weight [Q|K|V] cut into n equal blocks, each then read as a chip's own q, k, v."""
    def plant(run):
        for layer in range(run.model.layers):
            names = [f"layer{layer}.{part}" for part in parts]
            widths = [run.weights[name].shape[-1] for name in names]
            whole = [run.model.weights[name] for name in names]
            fused = np.concatenate([a.reshape(a.shape[0], -1) for a in whole], 1)
            blocks = np.stack(np.split(fused, run.n, axis=1))
            for name, made in zip(names, np.split(blocks, np.cumsum(widths)[:-1], axis=2)):
                run.weights[name] = made
    return plant


def read_as_fused(parts, order):
    """A checkpoint with columns in another order, read as one part after the other. order: of the
    numbers of the fused columns, as a function of how many each part has."""
    def plant(run):
        for layer in range(run.model.layers):
            names = [f"layer{layer}.{part}" for part in parts]
            whole = [run.weights[name][0] for name in names]
            widths = [a.shape[1] for a in whole]
            fused = np.concatenate(whole, 1)[:, order(run.model, widths)]
            for name, made in zip(names, np.split(fused, np.cumsum(widths)[:-1], axis=1)):
                run.weights[name] = made[None]
    return plant


def interleaved(model, widths):
    return np.arange(sum(widths)).reshape(2, -1).T.ravel()


def by_head(model, widths):
    """[q0 k0 v0 q1 k1 v1 ...]"""
    return np.arange(sum(widths)).reshape(3, model.H, model.Q).swapaxes(0, 1).ravel()


def by_group(model, widths):
    """[q q k v] of each kv head"""
    q, k, v = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
    return np.concatenate([a.reshape(model.K, -1) for a in (q, k, v)], 1).ravel()


def device_order(part):
    return lambda run: weight(run, part, lambda a: a[swapped(run.n)])


def blocks_of_gain(part):
    def change(a):
        blocks = a.reshape(8, -1)
        return blocks[swapped(8)].reshape(a.shape)
    return lambda run: weight(run, part, change)


def strided_rows(part):
    def change(a):
        whole = a.reshape(-1, a.shape[-1])
        return np.stack([whole[r::len(a)] for r in range(len(a))])
    return lambda run: weight(run, part, change)


def late_rows(part):
    return lambda run: weight(run, part, lambda a: np.roll(
        a.reshape(-1, a.shape[-1]), 1, axis=0).reshape(a.shape))


def of_layer_zero(part):
    return lambda run: run.weights.update({f"layer1.{part}": run.weights[f"layer0.{part}"]})


def cut_everywhere(model):
    return model.K % 8 == 0


CUT = (8,)
BLOCKS = ORDERS + ("another layer's weight",)
WEIGHT = [
    Fault("qkv-in-equal-blocks", "weights", in_equal_blocks(("wq", "wk", "wv")), WEIGHTS, (8,),
          applies=cut_everywhere),
    Fault("qkv-in-two-blocks", "weights", in_equal_blocks(("wq", "wk", "wv")), WEIGHTS, (2,),
          applies=lambda m: m.K > 1),
    Fault("gate-up-in-equal-blocks", "weights", in_equal_blocks(("w_gate", "w_up")), WEIGHTS, CUT,
          applies=has("w_up")),
    Fault("gate-up-interleaved", "weights", read_as_fused(("w_gate", "w_up"), interleaved),
          WEIGHTS, (1,), applies=has("w_up")),
    Fault("qkv-by-head", "weights", read_as_fused(("wq", "wk", "wv"), by_head), WEIGHTS, (1,),
          applies=lambda m: m.K == m.H),
    Fault("qkv-by-group", "weights", read_as_fused(("wq", "wk", "wv"), by_group), WEIGHTS, (1,),
          applies=lambda m: 1 < m.K < m.H),
    Fault("w_out-device-order", "weights", device_order("w_out"), BLOCKS, CUT),
    Fault("wo-device-order", "weights", device_order("wo"), BLOCKS, CUT),
    Fault("embed-device-order", "weights", device_order("embed"), BLOCKS, CUT),
    Fault("gain-device-order", "weights", blocks_of_gain("norm"), BLOCKS, CUT,
          applies=lambda m: m.E % 8 == 0),
    Fault("w_out-rows-strided", "weights", strided_rows("w_out"), BLOCKS, CUT),
    Fault("w_out-rows-late", "weights", late_rows("w_out"), BLOCKS, CUT),
    Fault("w_out-never-loaded", "weights", lambda run: weight(run, "w_out", lambda a: a * F(0)),
          ("never written", "addend not added once", "partial sum missing")),
    Fault("wq-of-layer-0", "weights", of_layer_zero("wq"), WEIGHTS),
]


# ---- sums ----

def bias_of_every_chip(part):
    return lambda run: weight(run, part, lambda a: a * F(run.n))


def residual(name, change):
    """Another residual in the sum `name`: change(run, layer, x)."""
    def plant(run):
        put(run, "added", lambda before, at, layer, order, **terms: before(
            at, layer, order, **terms | (
                {"x": change(run, layer, terms["x"])} if at == name else {})))
    return plant


def partial_sums(change):
    def plant(run):
        def reduced(before, name, layer, parts):
            return before(name, layer, change(parts) if layer == 1 else parts)
        put(run, "reduced", reduced)
    return plant


def one_left_out(parts):
    parts = parts.copy()
    parts[3] = 0
    return parts


def unlike_rows(parts):
    """Half of the chips have other tokens' partial sums."""
    parts = parts.copy()
    parts[4:] = np.roll(parts[4:], 1, axis=2)
    return parts


def viewed_logits(run):
    """[n,B,v] as [B,n·v]."""
    def head(before, x):
        y = before(x)
        viewed = y.reshape(y.shape[1], -1)
        return run.keep("logits", np.stack(np.split(viewed, run.n, axis=1)))
    put(run, "head", head)


ADDEND = ("addend not added once",)
SUM = [
    Fault("b_out-of-every-chip", "sums", bias_of_every_chip("b_out"), ADDEND, CUT,
          applies=has("b_out")),
    Fault("bo-of-every-chip", "sums", bias_of_every_chip("bo"), ADDEND, CUT, applies=has("bo")),
    Fault("residual-of-every-chip", "sums", residual("out", lambda run, layer, x: x * F(run.n)),
          ADDEND, CUT),
    Fault("partial-sum-left-out", "sums", partial_sums(one_left_out), (
        "partial sum missing", "partial sum twice", "reduction missing"), CUT),
    Fault("unlike-rows-summed", "sums", partial_sums(unlike_rows), ("sum of unlike rows",), CUT),
    Fault("logits-viewed", "sums", viewed_logits, ORDERS + ("gathered along another dim",), CUT),
]


# ---- layers ----

def layer_skipped(run):
    put(run, "stream_of", lambda before, layer: run.stream[layer - 1 - (layer == 2)])


def layer_of_embed(run):
    put(run, "stream_of", lambda before, layer: run.stream[layer - 1 - (layer == 1)])


def its_norm(run, layer, x):
    return run.values[f"{run.pass_name}.layer{layer}.norm"]


EARLIER = OPERANDS + ADDEND
LAYER = [
    Fault("layer-skipped", "layers", layer_skipped, EARLIER),
    Fault("layer-of-embed", "layers", layer_of_embed, EARLIER),
    Fault("norm-in-mid", "layers", residual("mid", its_norm), EARLIER, applies=serial),
    Fault("norm-in-out", "layers", residual("out", its_norm), EARLIER, applies=parallel),
]


# ---- lookups, scales, tokens ----

def lookup(rows_of):
    """rows_of(ids as a chip counts them, its rows) -> which of them are added, from which row."""
    def plant(run):
        def looked_up(before, ids):
            table = run.weight(None, "embed")
            rows, made = table.shape[1], []
            for c in range(run.n):
                mine, there = rows_of(ids, c, rows)
                made.append(np.where(there[..., None], table[c][mine], F(0)))
            return np.stack(made)
        put(run, "looked_up", looked_up)
    return plant


def clipped(ids, c, rows):
    mine = np.clip(ids - c * rows, 0, rows - 1)
    return mine, np.ones_like(mine, bool)


def without_offset(ids, c, rows):
    return np.clip(ids, 0, rows - 1), (ids >= c * rows) & (ids < (c + 1) * rows)


def border_twice(ids, c, rows):
    mine = ids - c * rows
    return np.clip(mine, 0, rows - 1), (mine >= 0) & (mine <= rows)


def token_of(choose):
    return lambda run: put(run, "chosen", lambda before, logits: choose(
        before(logits), logits).astype(np.int32))


def constant(name):
    def plant(run):
        run.model = run.model.with_other(**{name: F(1)})
    return plant


LOOKUP = ("rows of other shards", "addend not added once", "partial sum twice",
          "another chip's block")
TOKEN = ("token of a shard", "another chip's block", "chunks in another order")
OTHER = [
    Fault("rows-not-zeroed", "lookups", lookup(clipped), LOOKUP, CUT, sets=("hooks", "full")),
    Fault("offset-not-subtracted", "lookups", lookup(without_offset), LOOKUP, CUT,
          sets=("hooks", "full")),
    Fault("border-twice", "lookups", lookup(border_twice), LOOKUP, CUT, passes=(3, 8, 8, 1),
          sets=("hooks", "full")),
    Fault("token-of-chip-0", "lookups", token_of(lambda right, logits: logits[0].argmax(-1)), TOKEN,
          CUT),
    Fault("token-of-its-shard", "lookups", token_of(
        lambda right, logits: right % logits.shape[-1]), TOKEN, CUT),
    Fault("embed-scale-missing", "lookups", constant("embed_scale"), ("scale missing",),
          applies=lambda m: m.embed_scale != 1),
    Fault("logit-scale-missing", "lookups", constant("logit_scale"), ("scale missing",),
          applies=lambda m: m.logit_scale != 1),
]
