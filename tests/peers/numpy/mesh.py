"""A mesh of chips, and tensors that are one array a chip."""
import itertools
import math

import numpy as np


class Mesh:
    """X×Y×Z chips, each named by its coordinates (x, y, z)."""

    def __init__(self, text):
        self.shape = tuple(int(n) for n in text.split("x"))
        self.sizes = dict(zip("xyz", self.shape))
        self.chips = list(itertools.product(*map(range, self.shape)))

    def size(self, axes):
        return math.prod(self.sizes[a] for a in axes)

    def index(self, chip, axes):
        """The chip's number in its group over these axes, the first of them being the major."""
        number = 0
        for a in axes:
            number = number * self.sizes[a] + chip["xyz".index(a)]
        return number

    def group(self, chip, axes):
        """The chips that differ from this one along these axes only, by their number."""
        members = []
        for place in itertools.product(*(range(self.sizes[a]) for a in axes)):
            member = list(chip)
            for a, i in zip(axes, place):
                member["xyz".index(a)] = i
            members.append(tuple(member))
        return members


class Layout:
    """Dims in order, each with the axes that cut it, major to minor; and those of partial sums."""

    def __init__(self, dims, partial=""):
        self.dims = tuple(dims)  # (letter, axes)
        self.partial = partial

    @staticmethod
    def of(letters, partial="", **axes):
        return Layout([(letter, axes.get(letter, "")) for letter in letters], partial)

    def __str__(self):
        text = "".join(letter + ("_" + axes if axes else "") for letter, axes in self.dims)
        return text + (" partialsum-" + self.partial if self.partial else "")

    @property
    def letters(self):
        return "".join(letter for letter, _ in self.dims)

    def axes(self, letter):
        return dict(self.dims).get(letter, "")

    def at(self, letter):
        return self.letters.index(letter)

    def but(self, partial=None, **axes):
        """This one with other axes for some of its letters."""
        return Layout([(letter, axes.get(letter, old)) for letter, old in self.dims],
                      self.partial if partial is None else partial)


class Sharded:
    """A tensor as the chips hold it: an array for each of them. A partial sum of exact terms has
    one dim more, behind those of its layout."""

    def __init__(self, mesh, layout, shards):
        self.mesh, self.layout, self.shards = mesh, layout, shards

    def map(self, function, layout=None):
        """The function of every chip's array, and of its coordinates."""
        return Sharded(self.mesh, layout or self.layout,
                       {chip: function(a, chip) for chip, a in self.shards.items()})


def chunk(array, dim, number, count):
    """One of `count` equal contiguous blocks of a dim."""
    if array.shape[dim] % count:
        raise ValueError(f"{array.shape[dim]} does not divide into {count} blocks")
    length = array.shape[dim] // count
    return array[(slice(None),) * dim + (slice(number * length, (number + 1) * length),)]


def cut(mesh, array, layout):
    """Every chip's block of a whole array."""
    shards = {}
    for chip in mesh.chips:
        block = array
        for dim, (_, axes) in enumerate(layout.dims):
            block = chunk(block, dim, mesh.index(chip, axes), mesh.size(axes))
        shards[chip] = block
    return Sharded(mesh, layout, shards)


def joined(tensor):
    """The whole array; of replicas the first chip's, of partial sums their sum."""
    mesh, layout = tensor.mesh, tensor.layout
    local = next(iter(tensor.shards.values())).shape
    whole = np.zeros([n * mesh.size(axes) for n, (_, axes) in zip(local, layout.dims)],
                     next(iter(tensor.shards.values())).dtype)
    named = layout.partial + "".join(axes for _, axes in layout.dims)
    for chip in mesh.chips:
        # One of a group of replicas: the first.
        if any(i and a not in named for a, i in zip("xyz", chip)):
            continue
        place = tuple(slice(mesh.index(chip, axes) * n, (mesh.index(chip, axes) + 1) * n)
                      for n, (_, axes) in zip(local, layout.dims))
        whole[place] += tensor.shards[chip]
    return whole
