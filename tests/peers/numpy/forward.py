"""A model's passes, each value as an array a chip."""
import numpy as np

from attention import attention, rotate
from collectives import Collectives, subsets
from layers import Layers
from mesh import Layout, Sharded, joined


class Forward(Layers):
    """Runs a model and keeps its named values, in the order of execution."""

    # ---- a layer ----

    def norm(self, step, x, layer, part):
        """RMS norm of the stream, gathered as the weights take it."""
        plan, wide = self.plan, self.arithmetic.wide
        own, dtype = plan.stream, self.arithmetic.dtype
        g = self.weights.shards(step, layer, part)
        local = self.bugs.here("local-statistics", step, "statistics", [
            {"axes": some, "divisor": divisor} for some in subsets(own) if self.mesh.size(some) > 1
            for divisor in ("local", "global")])
        axes = "".join(a for a in own if not local or a not in local["axes"])
        parts = x.map(lambda a, chip: self.arithmetic.product("BLE,BLE->BL", a, a),
                      Layout.of("BL", axes, B=plan.batch))
        ss = Collectives(self.mesh, self.arithmetic).all_reduce(parts, axes, step)
        n = self.config.E
        if local and local["divisor"] == "local":
            n //= self.mesh.size(local["axes"])
        powers, gain = 1, [{"axes": "", "scale": part}]
        if self.bugs.here("scale-missing", step, "gain", gain):
            powers = 0
        if self.bugs.here("scale-doubled", step, "gain", gain):
            powers = 2

        def normed(a, chip):
            r = 1 / np.sqrt(ss.shards[chip].astype(wide) / wide(n) + wide(self.config.eps))
            y = a.astype(wide) * r[..., None]
            for _ in range(powers):
                y = y * g.shards[chip].astype(wide)
            return y.astype(dtype)
        y = x.map(normed)
        if plan.rest:
            self.on_the_way(step, 0, y)
            y = self.comm.all_gather(y, "E", plan.rest, step)
        return self.keep(step, y)

    def query(self, step, n, layer):
        plan = self.plan
        y = self.contract(step, layer, [("BLE,EHQ->BLHQ", n, "wq", "norm")])
        y = self.biased(step, self.reduced(step, y, plan.sums, "H"), layer, "bq", plan.sums)
        if plan.exchanged:
            self.on_the_way(step, 0, y)
            y = self.comm.all_to_all(y, "B", "H", plan.exchanged, step)
        return self.keep(step, y)

    def key_or_value(self, step, n, layer, part):
        """As query's heads need it: over heads as far as K divides, or over the batch."""
        plan, comm, k = self.plan, self.comm, "" if self.plan.gathered else self.weights.k
        y = self.contract(step, layer, [("BLE,EKQ->BLKQ", n, part, "norm")])
        bias = lambda y: self.biased(step, y, layer, "b" + part[1:], plan.sums)
        if plan.exchanged and plan.exchanged != plan.sums:
            moved = plan.exchanged[:len(plan.exchanged) - len(plan.sums)]
            exchanged = k[len(plan.h) - len(moved):]
            y = self.on_the_way(step, 0, bias(self.reduced(step, y, plan.sums, "")))
            if exchanged:
                y = comm.all_to_all(y, "B", "K", exchanged, step)
                self.on_the_way(step, 1, y)
            if left := plan.exchanged[len(exchanged):]:
                y = comm.slice(y, "B", left, step)
        elif plan.exchanged:
            y = bias(self.reduced(step, y, plan.sums, "B"))
        else:
            K = self.config.K
            cut = k == plan.h and K % self.mesh.size(plan.h + plan.e) == 0
            y = bias(self.reduced(step, y, plan.sums, "K" if cut else ""))
        return self.keep(step, y)

    def rotated(self, step, x, start, shift):
        L = next(iter(x.shards.values())).shape[1]
        positions = start + (shift["by"] if shift else 0) + np.arange(L)
        return self.keep(step, x.map(
            lambda a, chip: rotate(a, positions, *self.tables, self.arithmetic)))

    def appended(self, step, cache, new, start):
        """The cache as a static one of zeros that rows are written to, as far as it is filled."""
        L = next(iter(new.shards.values())).shape[1]
        form = self.bugs.here("stale-slot", step, "append", [
            {"axes": "", "slot": slot, "chip": chip}
            for slot in ["all", *range(L)] for chip in ["all", self.mesh.chips[-1]]])

        def grown(a, chip):
            rows = a.copy()
            if form and form["chip"] in ("all", chip):
                rows[:, slice(None) if form["slot"] == "all" else
                     slice(form["slot"], form["slot"] + 1)] = 0
            return np.concatenate([cache.shards[chip], rows], 1) if cache else rows
        layout = Layout([("M" if n == "L" else n, axes) for n, axes in new.layout.dims])
        return self.keep(step, new.map(grown, layout))

    def attended(self, at, layer, n, caches, start):
        q = self.query(at("q"), n, layer)
        k = self.key_or_value(at("k"), n, layer, "wk")
        v = self.key_or_value(at("v"), n, layer, "wv")
        offsets = sorted({1, 2} | ({-1, -start} if start else set()))
        forms = lambda *which: [{"axes": "", "by": by, "of": of}
                                for by in offsets for of in which]
        shift = self.bugs.here("position-off", at("q_rot"), "rope", forms("q", "both"))
        q = self.rotated(at("q_rot"), q, start, shift)
        if not shift or shift["of"] == "q":
            shift = self.bugs.here("position-off", at("k_rot"), "rope", forms("k"))
        k = self.rotated(at("k_rot"), k, start, shift)
        old = caches.get(layer, (None, None))
        caches[layer] = (self.appended(at("k_cache"), old[0], k, start),
                         self.appended(at("v_cache"), old[1], v, start))
        y = attention(self.keep, at, q, *caches[layer], start, self.arithmetic, self.bugs,
                      self.garbage)
        plan = self.plan
        if plan.exchanged:
            self.on_the_way(at("attn"), 0, y)
            y = self.comm.all_to_all(y, "H", "B", plan.exchanged, at("attn"))
        if plan.sums:
            self.on_the_way(at("attn"), 1, y)
            y = self.comm.all_gather(y, "H", plan.sums, at("attn"))
        return self.keep(at("attn"), y)

    def ffn(self, at, layer, n):
        plan, wide, dtype, made = self.plan, self.arithmetic.wide, self.arithmetic.dtype, {}
        for name in ("gate", "up"):
            y = self.contract(at(name), layer, [("BLE,EF->BLF", n, "w_" + name, "norm")])
            y = self.reduced(at(name), y, plan.sums, "F")
            made[name] = self.keep(at(name), y)
        gate, up = made["gate"], made["up"]
        if self.bugs.here("gate-up-swapped", at("hidden"), "swish",
                          [{"axes": "", "what": "hidden"}]):
            gate, up = up, gate

        def swiglu(a, chip):
            g = a.astype(wide)
            return (g / (1 + np.exp(-g))).astype(dtype) * up.shards[chip]
        y = gate.map(swiglu)
        if plan.sums:
            self.on_the_way(at("hidden"), 0, y)
            y = self.comm.all_gather(y, "F", plan.sums, at("hidden"))
        return self.keep(at("hidden"), y)

    def output(self, step, layer, terms):
        plan = self.plan
        y = self.contract(step, layer, terms)
        return self.keep(step, self.reduced(step, y, y.layout.partial and (plan.rest or plan.h),
                                            "E" if plan.rest else ""))

    def layer(self, at, layer, x, caches, start):
        plan = self.plan
        over = "" if plan.gathered else plan.rest or plan.h
        n = self.norm(at("norm"), x, layer, "norm")
        attn = self.attended(at, layer, n, caches, start)
        wo = ("BLHQ,HQE->BLE", attn, "wo", "attn")
        if self.config.serial:
            x = self.added(at("mid"), x, self.output(at("attn_out"), layer, [wo]), over)
            n = self.norm(at("norm2"), x, layer, "norm2")
            name, terms = "ffn_out", []
        else:
            name, terms = "block_out", [wo]
        hidden = self.ffn(at, layer, n)
        y = self.output(at(name), layer, terms + [("BLF,FE->BLE", hidden, "w_out", "hidden")])
        return self.added(at("out"), x, y, over)

    # ---- a pass ----

    def embedded(self, step, ids):
        plan, mesh = self.plan, self.mesh
        table = self.weights.shards(step, None, "embed")
        rows = Sharded(mesh, Layout.of("BL"), {chip: ids for chip in mesh.chips})
        if plan.batch:
            rows = self.comm.slice(rows, "B", plan.batch, step)

        def looked_up(a, chip):
            n = table.shards[chip].shape[0]
            mine = a - mesh.index(chip, table.layout.axes("V")) * n
            found = table.shards[chip][np.clip(mine, 0, n - 1)]
            own = ((0 <= mine) & (mine < n))[..., None]
            return self.arithmetic.partial_sum(np.where(own, found, self.arithmetic.dtype(0)))
        layout = Layout.of("BLE", table.layout.axes("V"), B=plan.batch, E=table.layout.axes("E"))
        y = rows.map(looked_up, layout)
        self.keep_partial(step, y)
        return self.keep(step, self.reduced(step, y, layout.partial and (plan.rest or plan.v),
                                            "E" if plan.rest else ""))

    def head(self, name, n):
        plan, wide, dtype = self.plan, self.arithmetic.wide, self.arithmetic.dtype
        step, constant = f"{name}.logits", self.config.logit_scale
        last = n.map(lambda a, chip: a[:, -1],
                     Layout.of("BE", B=plan.batch, E=n.layout.axes("E")))
        y = self.contract(step, None, [("BE,VE->BV", last, self.U, "final_norm")])
        y = self.reduced(step, y, plan.sums, "V")
        forms = [{"axes": "", "scale": "logit_scale"}] if constant != 1 else []
        powers = 1
        if self.bugs.here("scale-missing", step, "scale", forms):
            powers = 0
        if self.bugs.here("scale-doubled", step, "scale", forms):
            powers = 2
        y = y.map(lambda a, chip: (a.astype(wide) * wide(constant)**powers).astype(dtype))
        y = self.keep(step, y)
        whole = Collectives(self.mesh, self.arithmetic).all_gather(y, "V", y.layout.axes("V"), step)
        token = whole.map(lambda a, chip: a.argmax(-1).astype(np.int32),
                          Layout.of("B", B=plan.batch))
        return token

    def forward(self, name, ids, caches, start, samples):
        self.ids[f"{name}.ids"] = ids
        x = self.embedded(f"{name}.embed", ids)
        for layer in range(self.config.layers):
            x = self.layer(lambda value, layer=layer: f"{name}.layer{layer}.{value}", layer, x,
                           caches, start)
        token = self.head(name, self.norm(f"{name}.final_norm", x, None, "final_norm"))
        if samples:
            self.values[f"{name}.token"] = token
        return joined(token)

    def generate(self, prompt, chunk, gen):
        caches, start, token = {}, 0, None
        for number, at in enumerate(range(0, prompt.shape[1], chunk)):
            ids = prompt[:, at:at + chunk]
            token = self.forward(f"prefill.c{number}", ids, caches, at,
                                 at + chunk >= prompt.shape[1])
        for step in range(1, gen):
            start = prompt.shape[1] + step - 1
            token = self.forward(f"decode.{step}", token[:, None], caches, start, True)
        return self
