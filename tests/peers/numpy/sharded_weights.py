"""Weights as the chips hold them."""
import numpy as np

from mesh import Layout, Sharded, chunk

DIMS = {"embed": "VE", "unembed": "VE", "norm": "E", "norm2": "E", "final_norm": "E", "wq": "EHQ",
        "wk": "EKQ", "wv": "EKQ", "wo": "HQE", "w_gate": "EF", "w_up": "EF", "w_out": "FE",
        "bq": "HQ", "bk": "KQ", "bv": "KQ"}


def moved_heads(heads, groups, block):
    """Orders of heads that no order of whole blocks of them is."""
    rows = np.arange(heads)
    found = {"rotated": np.roll(rows, -1), "reversed": rows[::-1],
             "transposed": rows.reshape(groups, -1).T.ravel()}
    for name, order in found.items():
        firsts = order.reshape(-1, block)
        whole = (firsts == firsts[:, :1] + np.arange(block)).all() and (
            firsts[:, 0] % block == 0).all()
        if not (order == rows).all() and not (whole and block < heads):
            yield {"axes": "", "order": name}, order


class ShardedWeights:
    """Hands out a weight for a use: the shards of every chip. `step` is the value that it makes."""

    def __init__(self, weights, config, plan, collectives):
        self.weights, self.config, self.plan = weights, config, plan
        self.comm, self.mesh, self.bugs = collectives, collectives.mesh, collectives.bugs

    @property
    def k(self):
        """The axes of K: as many of the heads' as divide it."""
        axes = self.plan.h
        while self.config.K % self.mesh.size(axes):
            axes = axes[:-1]
        return axes

    def layout(self, name):
        part = name.split(".")[-1]
        letters, plan = DIMS[part], self.plan
        e = plan.stream if part in ("norm", "norm2", "final_norm") else plan.e
        axes = {"E": e, "F": plan.f, "H": plan.h, "K": self.k, "V": plan.v}
        return Layout([(letter, axes.get(letter, "")) for letter in letters])

    def whole(self, step, layer, part):
        """The weight before it is cut."""
        name = part if layer is None else f"layer{layer}.{part}"
        place, here = "weight " + part, self.bugs.here
        if layer is not None and (other := here("wrong-layer-weight", step, place, [
                {"axes": "", "layer": n} for n in range(self.config.layers) if n != layer])):
            return self.weights[f"layer{other['layer']}.{part}"]
        weight = self.weights[name]
        flat = weight.reshape(*((-1, self.config.E) if part == "wo" else (len(weight), -1)))
        if weight.ndim > 1 and flat.shape[0] == flat.shape[1] and here(
                "transposed-weight", step, place, [{"axes": "", "weight": part}]):
            return flat.T.reshape(weight.shape)
        for letter, groups in (("H", self.config.K), ("K", 1)):
            if letter not in DIMS[part] or weight.shape[DIMS[part].index(letter)] < 2:
                continue
            dim = DIMS[part].index(letter)
            block = weight.shape[dim] // self.mesh.size(self.plan.h + self.plan.e)
            moved = list(moved_heads(weight.shape[dim], groups, max(block, 1)))
            if form := here("head-order", step, place, [form for form, _ in moved]):
                order = next(order for f, order in moved if f["order"] == form["order"])
                return np.take(weight, order, dim)
        return weight

    def shards(self, step, layer, part, layout=None):
        """As they are used: cut, and with the weight-gathered strategy gathered again."""
        layout = layout or self.layout(part)
        weight, blocks = self.whole(step, layer, part), []
        for dim, (letter, axes) in enumerate(layout.dims):
            number = lambda chip, axes=axes: self.mesh.index(chip, axes)
            if not self.plan.gathered:
                number = self.comm.number(step, f"weight {part} {letter}", letter, axes,
                                          in_ring=False)
            blocks.append((dim, number, self.mesh.size(axes)))
        shards = {}
        for chip in self.mesh.chips:
            block = weight
            for dim, number, count in blocks:
                block = chunk(block, dim, number(chip), count)
            shards[chip] = block
        made = Sharded(self.mesh, layout, shards)
        if self.plan.gathered:
            for letter, axes in layout.dims:
                if axes:
                    made = self.comm.all_gather(made, letter, axes, step,
                                                f"weight {part} {letter} all_gather")
        return made
