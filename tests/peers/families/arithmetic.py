"""The formulas of a layer in f32, with the roundings of a run at their places."""
import numpy as np

from functions import Functions
from mesh import Reduction
from roundings import Roundings
from sums import product, total

F = np.float32
ROOT_HALF, GELU_SCALE, GELU_CUBE = F(0.70710678118654752), F(0.7978845608028654), F(0.044715)

# Forms of other libraries: a layernorm as x·r − mu·r, its variance in one pass, gains times r
# first, sigmoid and GELU by each other's function, x² rounded on the way to x³, attention's scale
# in q, its exponentials by exp2, and its probabilities by exp(s − lse).
ALSO = ("scale-shift", "one-pass", "gain-first", "sigmoid-tanh", "gelu-sigmoid", "square",
        "q-scaled", "exp2", "lse")


class Arithmetic:
    """How a run computes: `rounding` to its format, `functions`, the order of each sum by the name
    of what it makes (without one `library`), the reduction of partial sums, how attention goes,
    whether GELU is (x/2)·(1 + y) as it is written, and `also`: forms of ALSO for the textbook's."""

    def __init__(self, rounding=None, functions=None, orders=None, reduction=None,
                 attention="probs", written=True, also=()):
        self.rounding = rounding or Roundings("f32")
        self.st = self.rounding.st
        self.functions = functions or Functions()
        self.orders = orders or {}
        self.reduction = reduction or Reduction()
        self.attention, self.written, self.also = attention, written, frozenset(also)

    def product(self, name, a, w):
        return product(self.orders.get(name, "library"), a, w)

    def total(self, name, a):
        return total(self.orders.get(name, "library"), a)

    # ---- norms ----

    def root(self, name, squares, count, eps):
        mean = self.total(name, squares) / F(count)
        return self.rounding("norm.r", self.functions.rsqrt(mean + eps))[..., None]

    def rms_norm(self, name, x, gain, eps):
        r = self.root(name, x * x, x.shape[-1], eps)
        if "gain-first" in self.also:
            return self.st(x * (r * gain))
        return self.st(self.rounding("norm.xr", x * r) * gain)

    def layer_norm(self, name, x, gain, bias, eps):
        at, count = self.rounding, x.shape[-1]
        mu = at("norm.mu", self.total(name, x) / F(count))
        d = at("norm.d", x - mu[..., None])
        if "one-pass" in self.also:
            mean = np.maximum(self.total(name, x * x) / F(count) - mu * mu, F(0))
            r = at("norm.r", self.functions.rsqrt(mean + eps))[..., None]
        else:
            r = self.root(name, d * d, count, eps)
        xr = x * r + -(mu[..., None] * r) if "scale-shift" in self.also else d * r
        y = at("norm.xr", xr) * gain
        return self.st(y if bias is None else at("norm.xrg", y) + bias)

    # ---- activations ----

    def silu(self, x):
        if "sigmoid-tanh" in self.also:
            s = F(0.5) + F(0.5) * self.functions.tanh(F(0.5) * x)
        else:
            s = F(1) / (F(1) + self.functions.exp(-x))
        s = self.rounding("silu.sigmoid", s)
        return self.rounding("silu.silu", x * s)

    def gelu_tanh(self, x):
        at = self.rounding
        square = at("gelu.cube", x * x) if "square" in self.also else x * x
        inner = at("gelu.inner", GELU_CUBE * at("gelu.cube", square * x))
        z = at("gelu.scaled", GELU_SCALE * at("gelu.sum", x + inner))
        if "gelu-sigmoid" in self.also:
            return x * at("gelu.tanh", F(1) / (F(1) + self.functions.exp(-(z + z))))
        return self.halved(x, at("gelu.tanh", self.functions.tanh(z)))

    def gelu_erf(self, x):
        z = self.rounding("gelu.z", x * ROOT_HALF)
        return self.halved(x, self.rounding("gelu.erf", self.functions.erf(z)))

    def halved(self, x, y):
        """x/2·(1 + y), as it is written."""
        one = self.rounding("gelu.oneplus", F(1) + y)
        if not self.written:
            return x * (F(0.5) * one)
        return self.rounding("gelu.half", F(0.5) * x) * one

    def hidden(self, ffn, gate, up):
        if ffn == "swiglu":
            return self.st(self.silu(gate) * up)
        y = self.gelu_erf(gate) if ffn == "gelu-erf" else self.gelu_tanh(gate)
        return self.st(y if up is None else self.rounding("gelu.gelu", y) * up)

    # ---- positions ----

    def rotated(self, x, cos, sin, interleaved):
        """x [...hQ], of which the first channels rotate; cos and sin [...1J]."""
        at, J = self.rounding, cos.shape[-1]
        cos, sin = at("rope.tables", cos), at("rope.tables", sin)
        first = slice(0, 2 * J, 2) if interleaved else slice(0, J)
        second = slice(1, 2 * J, 2) if interleaved else slice(J, 2 * J)
        a, b, y = x[..., first], x[..., second], self.st(x.copy())
        times = lambda p, q: at("rope.products", p * q)
        y[..., first] = self.st(times(a, cos) - times(b, sin))
        y[..., second] = self.st(times(b, cos) + times(a, sin))
        return y

    # ---- sums and what is added to them ----

    def biased(self, place, y, bias):
        """Of a complete sum: stored, with the bias if there is one."""
        return self.st(y if bias is None else self.rounding("bias." + place, y) + bias)

    def logits(self, y, scale, bias):
        at = self.rounding
        y = at("logits.raw", y)
        if scale != 1:
            y = at("logits.scaled", y * scale)
        return at("logits.stored", y if bias is None else y + bias)

    def added(self, order, store=True, **terms):
        """Terms by letter in an order: the first two, then the third."""
        y = terms[order[0]] + terms[order[1]]
        if len(order) == 3:
            y = self.rounding("residual.inner", y) + terms[order[2]]
        return self.st(y) if store else y
