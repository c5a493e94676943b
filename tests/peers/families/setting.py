"""A random choice of all that right runs differ in: family, extents, format, chips, orders of sums,
rounding places, reductions, and what the trace has."""
import random

import numpy as np

import places
from arithmetic import Arithmetic
from families import CUT_SIZES, FAMILIES, SIZES
from forward import Run
from functions import ERFS, EXPS, TANHS, Functions
from mesh import TORI, Mesh, Reduction
from roundings import Roundings
from sums import PRODUCTS
from trace import SETS, Trace

SUMS = ("norm", "norm2", "final_norm", "q", "k", "v", "score", "denom", "attn", "gate", "up",
        "attn_out", "ffn_out", "logits")
# Values that fused kernels do not store.
FUSED = ((), (), (), ("attn_out", "ffn_out"), ("attn_out",), ("gate", "up"), ("gate",), ("q", "k"),
         ("mid",))
# batch, prompt, chunk, gen
PASSES = ((2, 5, 5, 2), (1, 6, 4, 2), (3, 4, 4, 1), (2, 9, 9, 2), (1, 3, 2, 3))


class Setting:
    """Number `index` of a seed's settings. What is given is not drawn."""

    def __init__(self, seed, index, family, **given):
        chance = random.Random(f"{seed} {index}")
        self.index = index
        self.family = family
        self.form = chance.choice(["f32", "bf16", "bf16", "f16"])
        self.chips = chance.choice([1, 8])
        self.passes = chance.choice(PASSES)
        self.style, self.places = places.drawn(chance)
        self.dump_set = chance.choice(["full", "hooks", "hooks", "lean", "coarse"])
        self.order = chance.choice(FAMILIES[self.family].orders)
        self.together = chance.random() < 0.3
        self.attention = chance.choice(["probs", "exp", "flash"])
        self.reduction = chance.choice(Reduction.KINDS)
        self.by_rank = chance.random() < 0.8
        self.wire = chance.choice(["f32", "form"])
        self.orders = {name: chance.choice(["library", chance.choice(list(PRODUCTS))])
                       for name in SUMS}
        self.functions = dict(exp=chance.choice(list(EXPS)), erf=chance.choice(list(ERFS)),
                              tanh=chance.choice(list(TANHS)),
                              rsqrt=chance.choice(["root", "quotient"]))
        self.written = chance.random() < 0.8
        self.shown = dict(form=chance.choice(["whole", "stacked", "chips"]),
                          scattered=chance.random() < 0.3, partials=chance.choice([False, False, True, True, "plain"]),
                          words=chance.random() < 0.5, last=chance.random() < 0.3,
                          wire_of_file=chance.random() < 0.5,
                          masked=chance.choice([0.0, 0.0, -1e30]))
        self.axes = "".join(chance.sample("xyz", 3))
        self.also = ()
        self.fused = chance.choice(FUSED)
        self.bias_first = chance.random() < 0.3
        self.random = chance.randrange(1 << 30)
        self.__dict__.update(given)
        self.settle(chance)

    def settle(self, chance):
        """What follows from what was drawn."""
        sizes = CUT_SIZES if self.chips > 1 else list(SIZES)
        self.size = self.__dict__.get("size") or chance.choice(sizes)
        self.torus = chance.choice(TORI[self.chips])
        if self.wire == "form":
            self.wire = self.form
        self.order = self.order if len(self.order) == 2 or not self.is_together else "afx"
        if self.attention == "flash" and self.dump_set == "full":
            self.dump_set = "hooks"

    @property
    def is_together(self):
        """Only a parallel block on several chips has one sum of both terms."""
        return self.together and self.chips > 1 and len(FAMILIES[self.family].orders[0]) == 3

    @property
    def shows_little(self):
        """Of a layer's output too little may be in the trace to judge it by: then compare fails."""
        return self.dump_set == "coarse" or (self.dump_set == "lean" and self.form != "f32")

    def __str__(self):
        words = [f"{self.index}:", self.family, self.size, self.form, f"{self.torus}",
                 self.dump_set, self.style, self.attention, f"order={self.order}"]
        words += [f"fused={','.join(self.fused)}" if self.fused else ""]
        words += [f"also={','.join(self.also)}" if self.also else ""]
        if self.chips > 1:
            words += [f"axes={self.axes}", self.reduction, f"wire={self.wire}",
                      "by rank" * self.by_rank, "bias first" * self.bias_first,
                      "together" * self.is_together, f"partials={self.shown['partials']}"]
        return " ".join(word for word in words if word)

    def arithmetic(self):
        return Arithmetic(Roundings(self.form, self.places), Functions(**self.functions),
                          self.orders, Reduction(self.reduction, self.wire), self.attention,
                          self.written, self.also)

    def run(self, model, plant=None):
        """A run of the model, with a mistake planted if there is one."""
        run = Run(model, Mesh(self.torus, self.axes), self.arithmetic(), self.order,
                  self.is_together, self.by_rank, self.fused, self.bias_first)
        if plant is not None:
            plant(run)
        batch, prompt, chunk, gen = self.passes
        ids = np.random.default_rng(self.random).integers(0, model.V, (batch, prompt))
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            return run.generate(ids.astype(np.int32), chunk, gen)

    def case(self, model_text):
        batch, prompt, chunk, gen = self.passes
        line = (f"torus={self.torus} model={model_text} batch={batch} prompt={prompt} "
                f"chunk={chunk} gen={gen}")
        return line + (" act=bf16 weights=bf16" if self.form == "bf16" else "")

    def trace_of(self, run):
        return Trace(run, self.dump_set, **self.shown).filled()

    def attributes(self):
        return {} if self.form == "bf16" else {"arithmetic": self.form}

    def write(self, path, run, model_text):
        self.trace_of(run).write(path, self.case(model_text), **self.attributes())
