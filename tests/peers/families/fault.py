"""What a fault is, and the faults of each section of the list of those that people met."""
import dataclasses
from typing import Callable

import numpy as np

F = np.float32

# What compare's diagnosis may call a fault; several kinds where one mistake can be told in several
# ways, or where what is not in the trace leaves it open.
ORDERS = ("axes in another order", "chunks in another order", "another chip's block", "head order")
WEIGHTS = ORDERS + ("another layer's weight", "gate and up swapped", "columns of a fused weight",
                    "transposed weight")
OPERANDS = ("another layer's or pass's value", "made of an earlier value")
CACHES = ("stale slot", "never written") + OPERANDS + ORDERS
MERGES = ("merge of parts",)


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    section: str                # where it belongs: attention, positions, weights, ...
    plant: Callable             # changes a Run before it runs
    kinds: tuple                # what it may be called
    chips: tuple = (1, 8)
    passes: tuple = (2, 5, 5, 2)
    sets: tuple = ("hooks", "full", "lean")
    applies: Callable = lambda model: True
    fused: bool = False         # attention shows no scores


def put(run, name, function):
    """Another method, which is called with the one that was there."""
    before = getattr(run, name)
    setattr(run, name, lambda *given, **more: function(before, *given, **more))


def weight(run, part, change, layers=None):
    """Changes a weight as the chips have it, of every layer or of some."""
    for name in run.weights:
        layer, _, last = name.rpartition(".")
        if last == part and (layers is None or layer in layers):
            run.weights[name] = change(run.weights[name])


def serial(model):
    return model.serial


def parallel(model):
    return not model.serial


def swapped(n):
    """The device order 0 1 3 2 of the last chips."""
    order = np.arange(n)
    order[-2:] = order[:-3:-1]
    return order
