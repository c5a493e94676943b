"""A model's passes, on all chips at once: arrays have a first dim of blocks (mesh.py).

Methods that a mistake can be in are small, so that faults.py can put another in their place.
"""
import numpy as np

import attention
from mesh import cut

F = np.float32


class Run:
    """Runs a model and keeps its named values, in the order of execution.

    `order`: of the additions of the residual; `together`: of a parallel block on several chips the
    sum of both terms is reduced, and not each; `by_rank`: a ring goes through the chips in the
    order of their ranks, not of their blocks; `fused`: values that a fused kernel hands on without
    storing them, which the run does not have; `bias_first`: the first chip adds the bias to its
    partial sum, before it is sent.
    """

    def __init__(self, model, mesh, arithmetic, order, together=False, by_rank=True, fused=(),
                 bias_first=False):
        self.fused, self.bias_first = frozenset(fused), bias_first
        self.model, self.mesh, self.arithmetic = model, mesh, arithmetic
        self.order, self.together, self.by_rank = order, together, by_rank
        self.n = mesh.n
        self.k_blocks = mesh.prefix(model.K)[1]
        self.values, self.partial_sums, self.seen_by = {}, {}, {}
        self.caches, self.stream = {}, {}
        self.weights = {name: self.placed(name.split(".")[-1], a)
                        for name, a in model.weights.items()}
        self.cos, self.sin = (model.weights.get(name) for name in ("rope_cos", "rope_sin"))
        self.scale = F(1 / np.sqrt(model.Q))

    # ---- weights ----

    def placed(self, part, a):
        """A weight as the chips have it: [blocks, ...], matrices [blocks, in, out]."""
        n, k = self.n, self.k_blocks
        if part in ("wk", "wv"):
            return cut(a, 1, k, n).reshape(n, a.shape[0], -1)
        if part in ("bk", "bv"):
            return cut(a, 0, k, n)[:, None, None]
        if part in ("wq", "w_gate", "w_up"):
            return cut(a, 1, n, n).reshape(n, a.shape[0], -1)
        if part == "wo":
            return cut(a, 0, n, n).reshape(n, -1, a.shape[-1])
        if part in ("w_out", "embed", "unembed", "unembed_bias"):
            return cut(a, 0, n, n)
        if part in ("bq", "b_gate", "b_up"):
            return cut(a, 0, n, n)[:, None, None]
        return a[None]

    def weight(self, layer, part):
        return self.weights.get(part if layer is None else f"layer{layer}.{part}")

    # ---- values ----

    def keep(self, name, blocks, layer=None):
        """Notes a named value of this pass, and returns it."""
        at = self.pass_name if layer is None else f"{self.pass_name}.layer{layer}"
        self.values[f"{at}.{name}"] = blocks
        return blocks

    def finished(self, name, layer, place, y, bias):
        """A sum with its bias, as a value; of a fused kernel as it is."""
        if name in self.fused:
            return y if bias is None else y + bias
        return self.keep(name, self.arithmetic.biased(place, y, bias), layer)

    def times(self, name, x, w):
        """x [c,B,L,k], w [n,k,p] -> [n,B,L,p]."""
        c, B, L, k = x.shape
        y = self.arithmetic.product(name, x.reshape(c, B * L, k), w)
        return y.reshape(len(y), B, L, -1)

    def reduced(self, name, layer, parts):
        """Partial sums of all chips added up; those of one chip are the sum."""
        if self.n == 1:
            return parts
        self.partial_sums[f"{self.pass_name}.layer{layer}.{name}"] = self.sent(parts)
        ranks = self.mesh.block.ravel() if self.by_rank else slice(None)
        return self.arithmetic.reduction(parts[ranks])

    def sent(self, parts):
        return self.arithmetic.reduction.round(parts)

    def normed(self, x, layer, part):
        gain, bias = self.weight(layer, part), self.weight(layer, part + "_bias")
        if self.model.layernorm:
            return self.keep(part, self.arithmetic.layer_norm(part, x, gain, bias, self.model.eps),
                             layer)
        return self.keep(part, self.arithmetic.rms_norm(part, x, gain, self.model.eps), layer)

    # ---- attention ----

    def positions(self):
        """Of the tokens of this pass, as RoPE takes them: [L], or [BL]."""
        return self.start + np.arange(self.length)

    def kv_heads(self):
        """Which of a chip's kv heads each of its query heads reads: [nh]."""
        m, n = self.model, self.n
        first = (np.arange(n) // (n // self.k_blocks)) * (m.K // self.k_blocks)
        return np.arange(m.H).reshape(n, -1) * m.K // m.H - first[:, None]

    def seen(self):
        """Which keys each query of the pass sees: [LM]."""
        queries = self.start + np.arange(self.length)
        return np.arange(self.start + self.length) <= queries[:, None]

    def projected(self, n, layer, part):
        y = self.times(part[1:], n, self.weight(layer, part))
        y = y.reshape(*y.shape[:3], -1, self.model.Q)
        return self.finished(part[1:], layer, "projection", y, self.weight(layer, "b" + part[1:]))

    def rotated(self, x, layer, name):
        at = self.positions()
        return self.keep(name, self.arithmetic.rotated(
            x, self.cos[at][..., None, :], self.sin[at][..., None, :],
            self.model.interleaved), layer)

    def appended(self, name, layer, new):
        old = self.caches.get((layer, name))
        grown = new if old is None else np.concatenate([old, new], 2)
        self.caches[layer, name] = grown
        return self.keep(name, grown, layer)

    def read(self, name, layer):
        return self.caches[layer, name]

    def heads_of(self, name, layer):
        """A cache as the query heads read it: [nhBMQ]."""
        a, chips = self.read(name, layer), np.arange(self.n)[:, None]
        return np.moveaxis(a, 3, 1)[chips, self.kv_heads()]

    def attended(self, layer, q):
        """Named values of attention: [nhBL...]."""
        return attention.attended(self.arithmetic, np.moveaxis(q, 3, 1),
                                  self.heads_of("k_cache", layer), self.heads_of("v_cache", layer),
                                  self.scale, self.seen())

    def attention(self, n, layer):
        q = self.projected(n, layer, "wq")
        k, v = self.projected(n, layer, "wk"), self.projected(n, layer, "wv")
        q, k = self.rotated(q, layer, "q_rot"), self.rotated(k, layer, "k_rot")
        self.appended("k_cache", layer, k)
        self.appended("v_cache", layer, v)
        self.seen_by[self.pass_name] = self.seen()
        for name, a in self.attended(layer, q).items():
            y = self.keep(name, np.moveaxis(a, 1, 3), layer)
        return y.reshape(*y.shape[:3], -1)

    # ---- a layer ----

    def ffn(self, n, layer):
        gate = self.gated(n, layer, "gate")
        up = self.gated(n, layer, "up") if self.weight(layer, "w_up") is not None else None
        return self.keep("hidden", self.arithmetic.hidden(self.model.ffn, gate, up), layer)

    def gated(self, n, layer, name):
        y = self.times(name, n, self.weight(layer, "w_" + name))
        return self.finished(name, layer, "projection", y, self.weight(layer, "b_" + name))

    def output(self, name, x, layer, part, bias):
        parts, bias = self.times(name, x, self.weight(layer, part)), self.weight(layer, bias)
        if self.bias_first and bias is not None and len(parts) > 1:
            parts[0] = parts[0] + bias[0]
            y = self.reduced(name, layer, parts)
            del self.partial_sums[f"{self.pass_name}.layer{layer}.{name}"]  # they are not raw
            return self.finished(name, layer, "output", y, None)
        return self.finished(name, layer, "output", self.reduced(name, layer, parts), bias)

    def added(self, name, layer, order, **terms):
        if name in self.fused:
            return self.arithmetic.added(order, store=False, **terms)
        return self.keep(name, self.arithmetic.added(order, **terms), layer)

    def serial(self, x, layer):
        y = self.attention(self.normed(x, layer, "norm"), layer)
        a = self.output("attn_out", y, layer, "wo", "bo")
        x = self.added("mid", layer, self.order, x=x, a=a)
        hidden = self.ffn(self.normed(x, layer, "norm2"), layer)
        f = self.output("ffn_out", hidden, layer, "w_out", "b_out")
        return self.added("out", layer, self.order, x=x, a=f)

    def parallel(self, x, layer):
        n = self.normed(x, layer, "norm")
        y, hidden = self.attention(n, layer), self.ffn(n, layer)
        if self.together:
            return self.added("out", layer, "xa", x=x, a=self.both(y, hidden, layer))
        a = self.output("attn_out", y, layer, "wo", "bo")
        f = self.output("ffn_out", hidden, layer, "w_out", "b_out")
        return self.added("out", layer, self.order, x=x, a=a, f=f)

    def both(self, y, hidden, layer):
        """block_out: one reduction of what each chip has of both terms."""
        a = self.sent(self.times("attn_out", y, self.weight(layer, "wo")))
        f = self.sent(self.times("ffn_out", hidden, self.weight(layer, "w_out")))
        total = self.reduced("block_out", layer, a + f)
        for part in ("bo", "b_out"):
            if (bias := self.weight(layer, part)) is not None:
                total = self.arithmetic.rounding("bias.output", total) + bias
        return self.keep("block_out", self.arithmetic.st(total), layer)

    def stream_of(self, layer):
        """What a layer takes: the embedding, or what the layer before has made."""
        return self.stream[layer - 1]

    # ---- a pass ----

    def looked_up(self, ids):
        """Rows of the table, partial sums of the chips that have them."""
        table = self.weight(None, "embed")
        rows = table.shape[1]
        mine = ids[None] - (np.arange(self.n) * rows)[:, None, None]
        found = np.stack([table[c][np.clip(mine[c], 0, rows - 1)] for c in range(self.n)])
        return np.where(((mine >= 0) & (mine < rows))[..., None], found, F(0))

    def embedded(self, ids):
        y = self.looked_up(ids).sum(0, dtype=F)[None]
        return self.keep("embed", self.arithmetic.st(y * self.model.embed_scale))

    def head(self, x):
        n = self.normed(x, None, "final_norm")[:, :, -1:]
        U = self.weight(None, "unembed")
        U = np.swapaxes(self.weight(None, "embed") if U is None else U, -1, -2)
        bias = self.weight(None, "unembed_bias")
        y = self.times("logits", n, U)[:, :, 0]
        return self.keep("logits", self.arithmetic.logits(
            y, self.model.logit_scale, None if bias is None else bias[:, None]))

    def chosen(self, logits):
        """The token of each row, [B], of logits [n,B,v]."""
        return np.concatenate(list(logits), -1).argmax(-1).astype(np.int32)

    def forward(self, pass_name, ids, start, samples):
        self.pass_name, self.start, self.length = pass_name, start, ids.shape[1]
        self.keep("ids", ids[None])
        self.stream = {-1: self.embedded(ids)}
        for layer in range(self.model.layers):
            block = self.serial if self.model.serial else self.parallel
            self.stream[layer] = block(self.stream_of(layer), layer)
        logits = self.head(self.stream_of(self.model.layers))
        if samples:
            return self.keep("token", self.chosen(logits)[None])[0]
        return None

    def generate(self, prompt, chunk, gen):
        token, length = None, prompt.shape[1]
        for number, at in enumerate(range(0, length, chunk)):
            token = self.forward(f"prefill.c{number}", prompt[:, at:at + chunk], at,
                                 at + chunk >= length)
        for step in range(1, gen):
            token = self.forward(f"decode.{step}", token[:, None], length + step - 1, True)
        return self
