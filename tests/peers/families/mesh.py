"""Chips that a layer is cut over, and the reductions of what they make.

Arrays have a first dim more than the values: a block for each chip of the ring of all chips, in the
order of the axes that the layout names, or one block that all have.
"""
import numpy as np

from roundings import ROUND

TORI = {1: ["1x1x1"], 2: ["2x1x1", "1x2x1", "1x1x2"],
        8: ["2x2x2", "8x1x1", "4x2x1", "1x2x4", "1x8x1", "2x4x1"]}


class Mesh:
    """`axes`: those with more than one chip, major to minor, as heads, F and V are cut over."""

    def __init__(self, torus, order="xyz"):
        self.torus, self.sizes = torus, dict(zip("xyz", map(int, torus.split("x"))))
        self.axes = "".join(a for a in order if self.sizes[a] > 1)
        self.shape = tuple(self.sizes[a] for a in "xyz")
        self.n = int(np.prod(self.shape))
        chips = np.indices(self.shape)
        self.block = np.zeros(self.shape, int)  # by chip
        for a in self.axes:
            self.block = self.block * self.sizes[a] + chips["xyz".index(a)]

    def prefix(self, count):
        """The first of the axes over which `count` things can be cut, and how many blocks that
        makes: kv heads are cut like the query heads that read them, as far as they go."""
        axes, blocks = "", 1
        for a in self.axes:
            if count % (blocks * self.sizes[a]):
                break
            axes, blocks = axes + a, blocks * self.sizes[a]
        return axes, blocks

    def on_chips(self, blocks):
        """[X,Y,Z,*local] of the blocks of all chips, or of one that all have."""
        if len(blocks) == 1:
            return np.broadcast_to(blocks[0], self.shape + blocks.shape[1:])
        return blocks[self.block]


def cut(array, dim, blocks, chips):
    """Equal contiguous blocks of a dim, [chips,...]; of fewer blocks neighbours have the same."""
    parts = np.stack(np.split(array, blocks, axis=dim))
    return np.repeat(parts, chips // blocks, axis=0)


def joined(blocks, dim, distinct=None):
    """The whole of which these are the blocks; of neighbours that have the same, the first."""
    step = len(blocks) // (distinct or len(blocks))
    return np.concatenate(list(blocks[::step]), axis=dim)


class Reduction:
    """How partial sums [n,...] become one sum: the order, and the format in which they travel. What
    a chip adds of its own is rounded like what it sends, but for the kinds "own ...", where it is
    as its product left it."""

    KINDS = ("group", "ring", "tree", "once", "own ring", "own arcs", "own tree")

    def __init__(self, kind="group", wire="f32"):
        self.kind, self.wire, self.round = kind, wire, ROUND[wire]

    def roundings(self, n):
        """How often a partial sum is rounded on its way, at most."""
        if self.wire == "f32":
            return 0
        levels = (n - 1).bit_length()
        return {"once": 1, "tree": 1 + levels, "own ring": n - 1, "own arcs": max(n // 2, 1),
                "own tree": levels}.get(self.kind, n)

    def __call__(self, parts):
        sent = self.round(parts)
        if self.kind in ("ring", "own ring"):
            return self.ring(sent if self.kind == "ring" else parts)[None]
        if self.kind == "own arcs":
            return self.arcs(parts)[None]
        if self.kind == "own tree":
            return self.own_tree(parts)[None]
        if self.kind == "tree":
            return self.tree(sent)[None]
        add = self.round if self.kind == "group" else (lambda a: a)
        total = sent[0]
        for part in sent[1:]:
            total = add(total + part)
        return total[None]

    def received(self, own, to, step, hops):
        """What chip `to` receives over so many hops: a sum that is rounded before each."""
        n = len(own)
        total = self.round(own[(to - step * hops) % n])
        for away in range(hops - 1, 0, -1):
            total = self.round(total + own[(to - step * away) % n])
        return total

    def chunks(self, parts, sum_of):
        """Chunk c of the last dim ends on chip c."""
        n = len(parts)
        return np.concatenate([sum_of(chunk, c) for c, chunk in
                               enumerate(np.array_split(parts, n, axis=-1))], -1)

    def ring(self, parts):
        """Chunk c begins on the chip after c."""
        def to_owner(own, c):
            total = self.received(own, c, 1, len(own) - 1) + own[c]
            return self.round(total) if self.kind == "ring" else total
        return self.chunks(parts, to_owner)

    def arcs(self, parts):
        """Two sums go round both ways, and meet on the chunk's owner."""
        def to_owner(own, c):
            n = len(own)
            total = self.received(own, c, 1, n // 2) + own[c]
            return total + self.received(own, c, -1, (n - 1) // 2) if n > 2 else total
        return self.chunks(parts, to_owner)

    def tree(self, sent):
        while len(sent) > 1:
            odd = sent[-1:] if len(sent) % 2 else sent[:0]
            sent = np.concatenate([self.round(sent[0:len(sent) - 1:2] + sent[1::2]), odd])
        return sent[0]

    def own_tree(self, own):
        """Of each pair the second is sent to the first."""
        while len(own) > 1:
            odd = own[-1:] if len(own) % 2 else own[:0]
            own = np.concatenate([own[0:len(own) - 1:2] + self.round(own[1::2]), odd])
        return own[0]
