"""Faults of attention, of rows and of caches that only the zoo plants: merges of parts, ALiBi,
shared prefixes, rows of unequal length."""
import numpy as np

import attention
from attention import softmaxed
from fault import F, put
from sums import in_order

LOG2_E = F(1.4426950408889634)


def both(*plants):
    def plant(run):
        for one in plants:
            one(run)
    return plant


# ---- attention ----

def attended_as(function):
    """Attention by function(run, layer, q [nhBLQ], k and v [nhBMQ])."""
    def plant(run):
        put(run, "attended", lambda before, layer, q: function(
            run, layer, np.moveaxis(q, 3, 1), run.heads_of("k_cache", layer),
            run.heads_of("v_cache", layer)))
    return plant


def in_parts(weights, parts):
    """Behind the first pass attention in parts of the slots, each normalized by itself, merged by
    weights of (max [r...], sum [r...]). parts(run) -> slices."""
    def function(run, layer, q, k, v):
        a, seen = run.arithmetic, run.seen()
        if run.start == 0:
            return attention.attended(a, q, k, v, run.scale, seen)
        s = attention.scores(a, q, k, run.scale, seen)
        tops, sums, made = [], [], []
        for part in parts(run):
            own = s[..., part]
            top = own.max(-1, keepdims=True)
            e = np.where(own <= attention.MASKED, F(0), attention.exponential(a, own, top))
            total = a.total("denom", e)
            made.append(a.product("attn", e, v[..., part, :]) / total[..., None])
            tops.append(top[..., 0])
            sums.append(total)
        w = weights(np.stack(tops), np.stack(sums))
        w = w / in_order(w)
        return {"attn": a.st(in_order(w[..., None] * np.stack(made)))}
    return attended_as(function)


def log(x):
    return np.log(x.astype(np.float64)).astype(F)


def power(base, x):
    return (F(base) if base != "e" else np.e) ** x.astype(np.float64)


def lse(top, z):
    return top + log(z)


def e_to_lse(top, z):
    """As it is right."""
    x = lse(top, z)
    return power("e", x - x.max(0)).astype(F)


def two_to_lse(top, z):
    x = lse(top, z)
    return power(2, x - x.max(0)).astype(F)


def e_to_lse_of_two(top, z):
    x = lse(top, z) * LOG2_E
    return power("e", x - x.max(0)).astype(F)


def lse_of_next(top, z):
    x = np.roll(lse(top, z), -1, axis=0)
    return power("e", x - x.max(0)).astype(F)


def equal(top, z):
    return np.ones_like(z)


def sums_alone(top, z):
    return z


def strided_slots(n):
    return lambda run: [slice(r, None, n) for r in range(n)]


def before_and_own(run):
    return [slice(0, run.start), slice(run.start, None)]


def slots_of_other_row(run, a, name, layer):
    a = a.copy()
    a[:, :, 4:8] = np.roll(a[:, :, 4:8], 1, axis=1)
    return a


def later_blocks_seen(n):
    """A ring over n blocks of a prompt that does not skip those of later chips."""
    def seen(before, run):
        keys, width = before(), run.length // n
        if run.start == 0:
            block = np.arange(run.length) // width
            keys = keys | (block[None] > block[:, None])
        return keys
    return lambda run: put(run, "seen", lambda before: seen(before, run))


def attn_times(factor):
    def attended(before, layer, q):
        made = before(layer, q)
        return made | {"attn": made["attn"] * F(factor)}
    return lambda run: put(run, "attended", attended)


def alibi(slopes_of=lambda run, slopes: slopes):
    """Scores with a term for each head, in place of rotation. slopes_of(run, [nh]) -> [nh]"""
    def plant(run):
        run.slopes = slopes_of(run, run.model.weights["alibi_slopes"].reshape(run.n, -1))

        def function(run, layer, q, k, v):
            a, queries = run.arithmetic, run.start + np.arange(run.length)
            seen = run.seen()
            s = attention.scores(a, q, k, run.scale, np.ones_like(seen))
            away = (np.arange(s.shape[-1]) - queries[:, None]).astype(F)
            s = s + run.slopes[:, :, None, None, None] * away
            masked = np.where(seen, s, attention.MASKED)
            return {"score": np.where(seen, s, F(0))} | softmaxed(a, masked, v)
        attended_as(function)(run)
        put(run, "rotated", lambda before, x, layer, name: x)
    return plant


def first_slopes(run, slopes):
    return np.repeat(slopes[:1], len(slopes), axis=0)


# ---- rows: of unequal length, or with a shared prefix ----

def unequal(lengths):
    """Rows of these lengths, each with its own positions and slots."""
    def plant(run):
        ends = np.array(lengths)

        def at():
            step = int(run.pass_name.split(".")[1]) if run.start > 0 else 0
            return (ends + step - 1)[:, None] if step else np.arange(run.length)

        def appended(before, name, layer, new):
            old = run.caches.get((layer, name))
            if old is None:
                return before(name, layer, new)
            grown, rows = np.concatenate([old, new * F(0)], 2), np.arange(len(ends))
            grown[:, rows, at()[:, 0]] = new[:, :, 0]
            run.caches[layer, name] = grown
            return run.keep(name, grown, layer)

        def seen(before):
            own = np.broadcast_to(at(), (len(ends), run.length))
            return np.arange(run.start + run.length) <= own[..., None]

        def normed(before, x, layer, part):
            y = before(x, layer, part)
            if part != "final_norm" or run.start > 0:
                return y
            return y[:, np.arange(len(ends)), ends - 1][:, :, None]

        put(run, "positions", lambda before: at())
        put(run, "appended", appended)
        put(run, "seen", seen)
        put(run, "normed", normed)
    return plant


def decode_behind_padding(run):
    """Positions of decode steps count from the padded length, in all rows."""
    put(run, "positions", lambda before: before() if run.start == 0 else np.array([run.start]))


def prefixed(length, prefixes, reads=lambda rows, prefixes: np.arange(rows) * prefixes // rows):
    """Rows that go on from shared prefixes: a pass over these, then the rows' own."""
    def plant(run):
        def generate(before, prompt, chunk, gen):
            ids = np.random.default_rng(5).integers(0, run.model.V, (prefixes, length))
            head, run.head = run.head, lambda x: None
            run.forward("prefix.c0", ids.astype(np.int32), 0, False)
            run.head, shared, run.caches = head, run.caches, {}
            rows = reads(len(prompt), prefixes)
            put(run, "read", lambda before, name, layer: np.concatenate(
                [shared[layer, name][:, rows], before(name, layer)], 2))
            token = run.forward("prefill.c0", prompt[:, length:], length, True)
            for step in range(1, gen):
                token = run.forward(f"decode.{step}", token[:, None], prompt.shape[1] + step - 1,
                                    True)
            return run
        put(run, "generate", generate)
    return plant


# ---- caches ----

def heads_by_chip(of_block):
    """Old slots of a cache as of other chips' heads."""
    return lambda run, old: old[np.array(of_block)]


def draft_left(run):
    """The slot of the first decode step keeps a rejected draft's entry from the second one on."""
    def forward(before, pass_name, ids, start, samples):
        if pass_name != "decode.1":
            return before(pass_name, ids, start, samples)
        values, caches = dict(run.values), dict(run.caches)
        before(pass_name, (ids + 1) % run.model.V, start, samples)
        draft, run.values, run.caches = run.caches, values, caches
        token = before(pass_name, ids, start, samples)
        for key, cache in run.caches.items():
            run.caches[key] = cache.copy()
            run.caches[key][:, :, start] = draft[key][:, :, start]
        return token
    put(run, "forward", forward)
