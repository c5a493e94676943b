"""Faults: where they can be, and the one that is planted.

Every place that a fault could be at asks `here`, with the forms that it could take there. A first
run, a healthy one, notes all places; one of them is drawn; a second run has the fault there, from
that pass on.
"""
import dataclasses
import random

FAULTS = {
    "axis-order": "blocks lie in another order of the axes than the declared one",
    "ring-reversed": "chunks of a collective come in reversed order, or rotated",
    "partial-sum-missing": "a chip of a group is left out of a reduction",
    "partial-sum-twice": "a chip of a group is added twice",
    "reduction-missing": "partial sums are taken as the sum along some axes",
    "reduction-wrong-axis": "partial sums are added along another axis",
    "other-chip-block": "chips hold the block of another chip",
    "all-to-all-swapped": "split and concatenated dims of an all_to_all are swapped",
    "stale-slot": "a slot of a cache is not written",
    "position-off": "RoPE takes another position",
    "scale-missing": "1/sqrt(Q), a gain or the scale of logits is left out",
    "scale-doubled": "it is applied twice",
    "mask-off": "the causal mask sees a key more, one less, or all",
    "head-order": "heads in another order, or kv heads tiled where they are repeated",
    "transposed-weight": "a square weight is used transposed",
    "wrong-layer-weight": "a weight of another layer is used",
    "local-statistics": "a norm takes the mean square of the chip's own shard",
    "rounding-bf16": "an operand, a partial sum or a value is rounded to bf16",
    "gate-up-swapped": "gate and up change places",
    "residual-added-n-times": "every chip adds the residual before the reduction",
}


@dataclasses.dataclass(frozen=True)
class Site:
    fault: str
    step: str  # the id of the value that it makes wrong
    place: str  # what is done wrongly there: "reduce", "weight wq"
    form: tuple  # of (key, value): how

    @property
    def options(self):
        return dict(self.form)

    @property
    def name(self):
        return self.step.split(".")[-1]


def where_of(step):
    """A value's layer and name: whether it still moves, or is partial, does not count."""
    *before, name = step.split(".")
    name = name.removesuffix("_partial")
    return [part for part in before if part.startswith("layer")] + [
        name[2:] if name[0].isdigit() else name]


class Bugs:
    """None planted: notes the sites of one fault. One planted: has it from its pass on."""

    def __init__(self, watched=None, planted=None):
        self.watched, self.planted, self.sites = watched, planted, []
        self.started = False

    def here(self, fault, step, place, forms):
        """The form that the fault takes here, or None. `forms` are dicts, each with `axes`."""
        if self.planted is None:
            if fault == self.watched:
                self.sites += [Site(fault, step, place, tuple(form.items())) for form in forms]
            return None
        site = self.planted
        if fault != site.fault or place != site.place:
            return None
        self.started = self.started or step == site.step
        return site.options if self.started and where_of(step) == where_of(site.step) else None


def draw(sites, seed):
    """The sites in a random order, which spreads over values first, then passes, then forms."""
    chance, left = random.Random(seed), list(sites)
    while left:
        name = chance.choice(sorted({(s.name, s.place) for s in left}))
        here = [s for s in left if (s.name, s.place) == name]
        step = chance.choice(sorted({s.step for s in here}))
        site = chance.choice([s for s in here if s.step == step])
        left.remove(site)
        yield site
