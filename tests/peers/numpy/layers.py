"""Products with cut weights, their sums over the chips, and the named values that come of them."""
from arithmetic import to_bf16
from collectives import Collectives
from mesh import Layout
from sharded_weights import ShardedWeights


class Layers:
    """What layers are made of: products with weights, their sums, and the values that are kept."""

    def __init__(self, weights, config, plan, mesh, arithmetic, bugs, garbage=False,
                 partial_sums=False, stages=False):
        self.config, self.plan, self.mesh, self.arithmetic = config, plan, mesh, arithmetic
        self.bugs, self.garbage = bugs, garbage
        self.partial_sums, self.stages = partial_sums, stages
        self.comm = Collectives(mesh, arithmetic, bugs)
        weights = {name: data.astype(arithmetic.dtype) for name, data in weights.items()}
        self.weights = ShardedWeights(weights, config, plan, self.comm)
        self.tables = weights["rope_cos"], weights["rope_sin"]
        self.U = "unembed" if "unembed" in weights else "embed"
        self.values, self.ids = {}, {}

    def keep(self, step, value, shown=None):
        """Notes a named value, as `shown` changes it, and returns it."""
        if self.bugs.here("rounding-bf16", step, "value", [{"axes": "", "what": "value"}]):
            value = value.map(lambda a, chip: to_bf16(a))
        self.values[step] = value.map(shown) if shown else value
        return value

    def keep_partial(self, step, value):
        """Notes partial sums. Exact ones are lists of terms, which no array of a trace holds."""
        if self.partial_sums and value.layout.partial:
            self.values[step + "_partial"] = value

    def on_the_way(self, step, stage, value):
        """Notes a value that still moves, under a name that sorts before its own."""
        if self.stages:
            before, name = step.rsplit(".", 1)
            self.values[f"{before}.{stage}_{name}"] = value
        return value

    # ---- sums ----

    def contract(self, step, layer, terms):
        """A sum of products with weights, on each chip over what it has: terms of (spec, x, weight,
        x's name)."""
        made, partial = [], None
        for spec, x, part, name in terms:
            used = part
            if part in ("w_gate", "w_up"):
                at_gate = step.rsplit(".", 1)[0] + ".gate"
                if self.bugs.here("gate-up-swapped", at_gate, "product",
                                  [{"axes": "", "what": "gate"}] if part == "w_gate" else []):
                    used = {"w_gate": "w_up", "w_up": "w_gate"}[part]
            w = self.weights.shards(step, layer, used)
            inputs, out = spec.split("->")
            left, right = inputs.split(",")
            over = [n for n in left if n in right and n not in out]
            for n in over:
                assert x.layout.axes(n) == w.layout.axes(n), f"{step}: {x.layout} · {w.layout}"
            axes = "".join(x.layout.axes(n) for n in over)
            assert partial is None or sorted(axes) == sorted(partial), step
            partial = axes if partial is None else partial
            layout = Layout([(n, x.layout.axes(n) or w.layout.axes(n)) for n in out], partial)
            low = self.bugs.here("rounding-bf16", step, f"operand {part}", [
                {"axes": "", "what": what} for what in (name, part)])
            operands = lambda a, b, low=low, name=name: (
                (a, b) if not low else (to_bf16(a), b) if low["what"] == name else (a, to_bf16(b)))
            made.append(x.map(lambda a, chip, w=w, spec=spec, operands=operands:
                              self.arithmetic.product(spec, *operands(a, w.shards[chip])), layout))
        total = made[0].map(lambda a, chip: self.arithmetic.add([m.shards[chip] for m in made]))
        self.keep_partial(step, total)
        return total

    def reduced(self, step, y, axes, dim):
        """A contraction's partial sum over these axes added up: scattered along a dim, or not."""
        if not axes:
            return self.comm.finished(y)
        if dim:
            return self.comm.reduce_scatter(y, dim, axes, step)
        return self.comm.all_reduce(y, axes, step)

    def biased(self, step, y, layer, part, reduced_over):
        name = f"layer{layer}.{part}"
        if name not in self.weights.weights:
            return y
        layout = Layout([(n, y.layout.axes(n)) for n in y.layout.letters[2:]])
        b, n = self.weights.shards(step, layer, part, layout), self.mesh.size(reduced_over)
        form = self.bugs.here("residual-added-n-times", step, "bias", [
            {"axes": reduced_over, "times": n}] if n > 1 else [])
        for _ in range(n if form else 1):
            y = y.map(lambda a, chip: a + b.shards[chip])
        return y

    def added(self, step, x, y, reduced_over):
        """The residual; every chip's own if the fault says so."""
        n = self.mesh.size(reduced_over)
        form = self.bugs.here("residual-added-n-times", step, "add", [
            {"axes": reduced_over, "times": n}] if n > 1 else [])
        for _ in range(n if form else 1):
            y = y.map(lambda a, chip: x.shards[chip] + a)
        return self.keep(step, y)
