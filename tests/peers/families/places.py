"""Where a narrow format may round beside what is stored, by formula, and how libraries choose."""

# Of a formula the numbers that may be rounded on its way.
PLACES = {
    "norm": ("mu", "d", "r", "xr", "xrg"),
    "bias": ("projection", "output"),
    "rope": ("tables", "products"),
    "score": ("qk", "scaled"),
    "attention": ("exp", "probs"),
    "silu": ("sigmoid", "silu"),
    "gelu": ("cube", "inner", "sum", "scaled", "tanh", "z", "erf", "oneplus", "half", "gelu"),
    "residual": ("inner",),
    "logits": ("raw", "scaled", "stored"),
}
ALL = tuple(f"{formula}.{place}" for formula, places in PLACES.items() for place in places)

STYLES = {
    "spec": (),
    "eager": ("norm.xr", "norm.xrg", "bias.output", "rope.tables", "rope.products", "score.qk",
              "score.scaled", "attention.probs", "silu.silu", "gelu.cube", "gelu.inner",
              "gelu.sum", "gelu.scaled", "gelu.tanh", "gelu.z", "gelu.erf", "gelu.oneplus",
              "gelu.half", "gelu.gelu", "residual.inner", "logits.raw", "logits.scaled",
              "logits.stored"),
    "fused": ("rope.tables", "attention.exp", "silu.silu", "gelu.gelu", "residual.inner",
              "logits.stored"),
}


def drawn(chance):
    """A style and its places: a library's, or any choice, of all formulas or of some."""
    style = chance.choice(["spec", "eager", "eager", "fused", "some", "some", "random", "random"])
    if style in STYLES:
        return style, STYLES[style]
    if style == "random":
        return style, tuple(place for place in ALL if chance.random() < 0.5)
    formulas = chance.sample(list(PLACES), 3)
    base = STYLES[chance.choice(list(STYLES))]
    return style, tuple(place for place in ALL if (
        chance.random() < 0.5 if place.split(".")[0] in formulas else place in base))
