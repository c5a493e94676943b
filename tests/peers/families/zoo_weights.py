"""Faults of weights, scales, sums, norms, layers, lookups and tokens that only the zoo plants."""
import numpy as np

from fault import F, put, weight
from sums import in_order


# ---- weights ----

def biases_in_equal_blocks(parts):
    def plant(run):
        names = [f"layer0.{part}" for part in parts]
        shapes = [run.weights[name].shape for name in names]
        flat = np.concatenate([run.model.weights[name].ravel() for name in names])
        blocks = flat.reshape(run.n, -1)
        widths = np.cumsum([np.prod(shape[1:]) for shape in shapes])[:-1]
        for name, made, shape in zip(names, np.split(blocks, widths, axis=1), shapes):
            run.weights[name] = made.reshape(shape)
    return plant


def by_chip(n):
    """[q0 k0 v0|q1 k1 v1] of n chips."""
    def order(model, widths):
        parts = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
        return np.concatenate([a.reshape(n, -1) for a in parts], 1).ravel()
    return order


def in_turn(model, widths):
    """[g0 u0 g1 u1] of two chips, as merged from their shards"""
    return by_chip(2)(model, widths)


def rows_in_device_order(*parts):
    """Blocks of E of the gathered weights in the device order 0, 1, 3, 2."""
    def change(a):
        blocks = np.stack(np.split(a, 4, axis=-2))[[0, 1, 3, 2]]
        return np.concatenate(list(blocks), -2)
    return lambda run: [weight(run, part, change) for part in parts]


def gain_in_device_order(part):
    return lambda run: weight(run, part, lambda a: a.reshape(4, -1)[[0, 1, 3, 2]].reshape(a.shape))


def exchanged(part, other):
    def plant(run):
        for layer in range(run.model.layers):
            one, two = f"layer{layer}.{part}", f"layer{layer}.{other}"
            run.weights[one], run.weights[two] = run.weights[two], run.weights[one]
    return plant


def square_transposed(part):
    return lambda run: weight(run, part, lambda a: np.swapaxes(a, -1, -2))


# ---- int8 ----

SCALES = {"q": "wq", "k": "wk", "v": "wv", "gate": "w_gate", "up": "w_up", "attn_out": "wo",
          "ffn_out": "w_out"}


def int8(change=lambda part, scales: scales[part]):
    """Products with codes, then with a scale for each column: change(part, scales by part) says
    which."""
    def plant(run):
        def times(before, name, x, w):
            y = before(name, x, w)
            if name not in SCALES:
                return y
            scales = {part: run.model.weights[f"layer0.{part}_scale"].ravel()
                      for part in SCALES.values()}
            scale = change(SCALES[name], scales)
            return y * (scale if name in ("attn_out", "ffn_out") else
                        scale.reshape(len(w), 1, 1, -1))
        put(run, "times", times)
    return plant


def other_scale(part, scales):
    return scales[{"w_gate": "w_up", "w_up": "w_gate"}.get(part, part)]


def scale_as(choose):
    """Of w_gate one scale for all columns."""
    return lambda part, scales: np.full_like(scales[part], choose(scales[part])) if (
        part == "w_gate") else scales[part]


# ---- sums ----

def reduced_as(name, change):
    """The sum of partial sums [n,B,L,E] by change(parts), [n,B,L,E] or [1,B,L,E]."""
    return lambda run: put(run, "reduced", lambda before, at, layer, parts: (
        change(parts) if at == name else before(at, layer, parts)))


def own_alone(parts):
    """Each chip keeps its own partial sum."""
    return parts


def twice(parts):
    return in_order(parts)[None] * F(len(parts))


def first_half(parts):
    """Over the second of two axes alone: the chips along the first hold different sums."""
    pairs = parts.reshape(2, -1, *parts.shape[1:])
    sums = np.stack([in_order(one) for one in pairs])
    return np.repeat(sums, pairs.shape[1], axis=0)


def sums_of_own_tokens(parts):
    """Each chip has the partial sums of its own tokens alone, and adds them to others' tokens."""
    n, length = len(parts), parts.shape[2]
    if length % n:
        return in_order(parts)[None]
    own = [part[:, r * length // n:(r + 1) * length // n] for r, part in enumerate(parts)]
    return np.concatenate([in_order(own)] * n, 1)[None]


def sliced_first(parts):
    """Each chip's own block of E of its partial sum, added up."""
    n = len(parts)
    blocks = in_order([np.split(part, n, axis=-1)[r] for r, part in enumerate(parts)])
    return np.concatenate([blocks] * n, -1)[None]


def mean(parts):
    return in_order(parts)[None] / F(len(parts))


def viewed(n, dim=-1):
    """A whole that is gathered as [n,...,e] and read as [...,n·e]."""
    def change(y):
        pieces = np.stack(np.split(y[0], n, axis=dim))
        return pieces.reshape(y.shape)
    return change


def result(name, change):
    """change(y) in place of a sum."""
    return lambda run: put(run, "reduced", lambda before, at, layer, parts: (
        change(before(at, layer, parts)) if at == name else before(at, layer, parts)))


def first_block(n):
    """The block of the first chip in the place of all."""
    return lambda run, layer, x: np.concatenate([np.split(x, n, axis=-1)[0]] * n, -1)


def bias_inside(run):
    """Partial sums that are shown hold the bias of the first chip; it is not added again."""
    def output(before, name, x, layer, part, bias):
        parts, bias = run.times(name, x, run.weight(layer, part)), run.weight(layer, bias)
        if name != "attn_out":
            return before(name, x, layer, part, "b_out")
        parts[0] = parts[0] + bias[0]
        return run.finished(name, layer, "output", run.reduced(name, layer, parts), None)
    put(run, "output", output)


# ---- norms ----

def statistics_of(part, n, sum_of):
    """A norm of which each of n chips has a block of E, and the sum of squares that sum_of(those of
    each block [n][B,L]) gives it."""
    def plant(run):
        def normed(before, x, layer, at):
            if at != part:
                return before(x, layer, at)
            blocks = np.split(x[0], n, axis=-1)
            squares = [run.arithmetic.total(at, block * block) for block in blocks]
            made = [block * (F(1) / np.sqrt(total / F(x.shape[-1]) + run.model.eps))[..., None]
                    for block, total in zip(blocks, sum_of(squares))]
            return run.keep(at, (np.concatenate(made, -1) * run.weight(layer, at)[0])[None], layer)
        put(run, "normed", normed)
    return plant


def of_own_block(squares):
    return [total * F(len(squares)) for total in squares]


def over_other_axis(copies):
    """Reduced over an axis along which all chips have the same."""
    return lambda squares: [total * F(copies) for total in squares]


# ---- layers ----

def layer_again(run):
    """Layer 1 has all weights of layer 0: that one is run twice."""
    for name in list(run.weights):
        if name.startswith("layer1."):
            run.weights[name] = run.weights["layer0." + name.split(".")[1]]


# ---- lookups and tokens ----

def first_rows(ids, c, rows):
    """Tokens of other chips give the first row."""
    mine = ids - c * rows
    inside = (mine >= 0) & (mine < rows)
    return np.where(inside, mine, 0), np.ones_like(inside)


def tokens_of_chips(choose):
    """Each chip's own: choose(logits [n,B,v]) -> [n,B]."""
    def plant(run):
        def head(before, x):
            run.shown_logits = before(x)
            return run.shown_logits

        def keep(before, name, blocks, layer=None):
            if name == "token":
                blocks = choose(run.shown_logits).astype(np.int32)
            return before(name, blocks, layer)
        put(run, "head", head)
        put(run, "keep", keep)
    return plant


def local_index(logits):
    return logits.argmax(-1)


def winner_of_shard(logits):
    return logits.argmax(-1) + np.arange(len(logits))[:, None] * logits.shape[-1]


def zero_rows_win(run):
    """The head has zero rows behind its vocabulary, whose logits of 0 may be the largest."""
    put(run, "chosen", lambda before, logits: np.where(
        np.concatenate(list(logits), -1).max(-1) < 0, run.model.V, before(logits)).astype(np.int32))
