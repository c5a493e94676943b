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
    """How summands [n,...] become one sum: the order, and the format in which they travel."""

    KINDS = ("group", "ring", "tree", "once")

    def __init__(self, kind="group", wire="f32"):
        self.kind, self.wire, self.round = kind, wire, ROUND[wire]

    def roundings(self, n):
        """How often a summand is rounded on its way, at most."""
        if self.wire == "f32":
            return 0
        return {"once": 1, "tree": 1 + (n - 1).bit_length()}.get(self.kind, n)

    def __call__(self, parts):
        sent = self.round(parts)
        if self.kind == "ring":
            return self.ring(sent)[None]
        if self.kind == "tree":
            return self.tree(sent)[None]
        add = self.round if self.kind == "group" else (lambda a: a)
        total = sent[0]
        for part in sent[1:]:
            total = add(total + part)
        return total[None]

    def ring(self, sent):
        """Chunk c of the last dim begins on the chip after c and ends on chip c."""
        n, chunks = len(sent), []
        for c, chunk in enumerate(np.array_split(sent, len(sent), axis=-1)):
            total = chunk[(c + 1) % n]
            for i in range(2, n + 1):
                total = self.round(total + chunk[(c + i) % n])
            chunks.append(total)
        return np.concatenate(chunks, -1)

    def tree(self, sent):
        while len(sent) > 1:
            odd = sent[-1:] if len(sent) % 2 else sent[:0]
            sent = np.concatenate([self.round(sent[0:len(sent) - 1:2] + sent[1::2]), odd])
        return sent[0]
