"""Collectives: what chips of a group send each other. A group is all chips that differ along the
axes only; its chips are numbered by their coordinates, the first of the axes being the major.

Each takes the id of the value that it helps to make, under which a fault can be planted.
"""
import itertools

import numpy as np

from arithmetic import to_bf16
from bug import Bugs
from mesh import Sharded, chunk


def orders(mesh, axes):
    """The other orders of axes that number some chip differently."""
    same = [mesh.index(chip, axes) for chip in mesh.chips]
    for order in itertools.permutations(axes):
        if [mesh.index(chip, order) for chip in mesh.chips] != same:
            yield "".join(order)


def moved(mesh, axes, order):
    """The axes that stand elsewhere in another order; those of one chip do not count."""
    one, other = ([a for a in text if mesh.sizes[a] > 1] for text in (axes, order))
    return "".join(a for a, b in zip(one, other) if a != b)


def displaced(mesh, axes, number, other):
    """The axes along which chips with these numbers lie apart."""
    places = [chip for n in (number, other) for chip in mesh.chips if mesh.index(chip, axes) == n]
    one, two = places[0], next(c for c in places if mesh.index(c, axes) == other)
    return "".join(a for a in axes if one["xyz".index(a)] != two["xyz".index(a)])


def subsets(axes):
    for n in range(1, len(axes) + 1):
        yield from ("".join(some) for some in itertools.combinations(axes, n))


class Collectives:
    def __init__(self, mesh, arithmetic, bugs=None):
        self.mesh, self.arithmetic, self.bugs = mesh, arithmetic, bugs or Bugs()

    # ---- which block of a dim a chip takes ----

    def number(self, step, place, dim, axes, in_ring=True):
        """chip -> the number of the block that it takes: of a slice, a scatter, or a weight."""
        mesh = self.mesh
        count = mesh.size(axes)
        number = lambda chip: mesh.index(chip, axes)
        if order := self.bugs.here("axis-order", step, place, [
                {"axes": moved(mesh, axes, order), "dim": dim, "of": axes, "order": order}
                for order in orders(mesh, axes)]):
            return lambda chip: mesh.index(chip, order["order"])
        if count > 1 and in_ring and (ring := self.bugs.here("ring-reversed", step, place, [
                {"axes": axes, "dim": dim, "ring": ring} for ring in ("reversed", "rotated")])):
            if ring["ring"] == "reversed":
                return lambda chip: count - 1 - number(chip)
            return lambda chip: (number(chip) + 1) % count
        if count > 1 and (other := self.bugs.here("other-chip-block", step, place, [
                {"axes": axes, "dim": dim, "chip": "all"}] + [
                    {"axes": displaced(mesh, axes, number(chip), (number(chip) + 1) % count),
                     "dim": dim, "chip": chip} for chip in mesh.chips])):
            if other["chip"] == "all":
                return lambda chip: 0
            return lambda chip: (number(chip) + (chip == other["chip"])) % count
        return number

    def slice(self, t, dim, axes, step, place="slice"):
        """Of replicas along the axes each keeps its block; nothing is sent."""
        at, count = t.layout.at(dim), self.mesh.size(axes)
        number = self.number(step, place, dim, axes, in_ring=False)
        return t.map(lambda a, chip: chunk(a, at, number(chip), count),
                     t.layout.but(**{dim: t.layout.axes(dim) + axes}))

    # ---- sums ----

    def reduced(self, t, axes, step, place):
        """chip -> the sum over its group, as an array of terms that is not finished."""
        mesh, bugs = self.mesh, self.bugs
        count = mesh.size(axes)
        members = lambda chip: mesh.group(chip, axes)
        if count > 1:
            planes = [{"axes": a, "coordinate": i} for a in axes if len(axes) > 1
                      and mesh.sizes[a] > 1 for i in range(mesh.sizes[a])]
            singles = [{"axes": axes, "number": i} for i in range(count)]

            def chosen(form, chip):
                """Whether this chip is the partial sum, or among the partial sums, of the fault."""
                if "number" in form:
                    return mesh.index(chip, form["axes"]) == form["number"]
                return chip["xyz".index(form["axes"])] == form["coordinate"]

            if form := bugs.here("partial-sum-missing", step, place, planes + singles):
                members = lambda chip: [c for c in mesh.group(chip, axes) if not chosen(form, c)]
            elif form := bugs.here("partial-sum-twice", step, place, planes + singles):
                members = lambda chip: [c for c in mesh.group(chip, axes)
                                        for _ in range(1 + chosen(form, c))]
            elif form := bugs.here("reduction-missing", step, place, [
                    {"axes": some} for some in subsets(axes) if mesh.size(some) > 1]):
                left = [a for a in axes if a not in form["axes"]]
                members = lambda chip: mesh.group(chip, left)
            elif form := bugs.here("reduction-wrong-axis", step, place, [
                    {"axes": axes, "left": a, "other": b} for a in axes for b in "xyz"
                    if b not in axes and mesh.sizes[a] > 1 and mesh.sizes[b] > 1]):
                taken = [form["other"] if a == form["left"] else a for a in axes]
                members = lambda chip: mesh.group(chip, taken)
        sent = t.shards
        if count > 1 and bugs.here("rounding-bf16", step, place, [{"axes": axes, "what": "wire"}]):
            kept = self.arithmetic
            sent = {c: kept.partial_sum(to_bf16(kept.finish(a))) for c, a in sent.items()}
        return lambda chip: self.arithmetic.add([sent[c] for c in members(chip)])

    def finished(self, t):
        """Complete sums become values."""
        return t if t.layout.partial else t.map(lambda a, chip: self.arithmetic.finish(a))

    def all_reduce(self, t, axes, step):
        total = self.reduced(t, axes, step, "all_reduce")
        left = "".join(a for a in t.layout.partial if a not in axes)
        return self.finished(t.map(lambda a, chip: total(chip), t.layout.but(partial=left)))

    def reduce_scatter(self, t, dim, axes, step):
        total = self.reduced(t, axes, step, "reduce_scatter")
        at, count = t.layout.at(dim), self.mesh.size(axes)
        number = self.number(step, "reduce_scatter", dim, axes)
        left = "".join(a for a in t.layout.partial if a not in axes)
        return self.finished(t.map(
            lambda a, chip: chunk(total(chip), at, number(chip), count),
            t.layout.but(partial=left, **{dim: t.layout.axes(dim) + axes})))

    # ---- moves ----

    def come(self, step, place, dim, axes):
        """chip -> the chips of its group in the order in which their chunks are laid down."""
        mesh = self.mesh
        members = lambda chip: mesh.group(chip, axes)
        count = mesh.size(axes)
        if order := self.bugs.here("axis-order", step, place, [
                {"axes": moved(mesh, axes, order), "dim": dim, "of": axes, "order": order}
                for order in orders(mesh, axes)]):
            return lambda chip: mesh.group(chip, order["order"])
        if count > 1 and (ring := self.bugs.here("ring-reversed", step, place, [
                {"axes": axes, "dim": dim, "ring": ring} for ring in ("reversed", "rotated")])):
            if ring["ring"] == "reversed":
                return lambda chip: members(chip)[::-1]
            return lambda chip: members(chip)[1:] + members(chip)[:1]
        if count > 1 and (other := self.bugs.here("other-chip-block", step, place, [
                {"axes": axes, "dim": dim, "chip": who} for who in ("all", *range(count))])):
            if other["chip"] == "all":
                return lambda chip: members(chip)[:1] * count
            def replaced(chip):
                group, i = list(members(chip)), other["chip"]
                group[i] = group[(i + 1) % count]
                return group
            return replaced
        return members

    def all_gather(self, t, dim, axes, step, place="all_gather"):
        have, at = t.layout.axes(dim), t.layout.at(dim)
        assert have.endswith(axes), f"{t.layout}: {axes} are not the minor axes of {dim}"
        members = self.come(step, place, dim, axes)
        return t.map(lambda a, chip: np.concatenate([t.shards[c] for c in members(chip)], at),
                     t.layout.but(**{dim: have[:len(have) - len(axes)]}))

    def all_to_all(self, t, split, concat, axes, step):
        """`split` is cut among the chips of a group, and what they had of `concat` put together."""
        have = t.layout.axes(concat)
        assert have.endswith(axes), f"{t.layout}: {axes} are not the minor axes of {concat}"
        count, cut_at, join_at = self.mesh.size(axes), t.layout.at(split), t.layout.at(concat)
        layout = t.layout.but(**{split: t.layout.axes(split) + axes,
                                 concat: have[:len(have) - len(axes)]})
        local = next(iter(t.shards.values())).shape
        # Laid down along the dim that is cut; or cut along the other dim, too.
        hows = [] if count == 1 else ["laid"] if local[join_at] % count else ["laid", "both"]
        swapped = self.bugs.here("all-to-all-swapped", step, f"all_to_all {split}{concat}", [
            {"axes": axes, "dim": split + concat, "how": how} for how in hows])
        place = f"all_to_all {split}{concat}"
        number = self.number(step, place + " split", split, axes)
        members = self.come(step, place + " concat", concat, axes)

        def exchanged(a, chip):
            sent = [t.shards[c] for c in members(chip)]
            pieces = [chunk(s, cut_at, number(chip), count) for s in sent]
            right = np.concatenate(pieces, join_at)
            if not swapped:
                return right
            if swapped["how"] == "both":
                pieces = [chunk(s, join_at, number(chip), count) for s in sent]
            return np.concatenate(pieces, cut_at).reshape(right.shape)
        return t.map(exchanged, layout)
