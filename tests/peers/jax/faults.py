"""Mistakes of sharded programs, planted in the second layer of peer.py: where each shows first, and
what compare should call it."""
from typing import NamedTuple, Tuple

import numpy as np

YZ = ("y", "z")


class Fault(NamedTuple):
    """`first`: the first wrong value. `kinds`: the words of docs/diagnosis.md that are true of it,
    the expected one first; `axes`: with these, if any; `without`: a value that a program with this
    fault never has."""

    what: str
    first: str
    kinds: Tuple[str, ...]
    axes: str = ""
    without: str = ""


FAULTS = {
    "no-psum": Fault("k is not summed over x", "prefill.c0.layer1.k", ("reduction missing",), "x"),
    "bias-repeated": Fault("the output bias is added on each chip of y and z, before the sum",
                           "prefill.c0.layer1.block_out", ("addend not added once",)),
    "residual-repeated": Fault("the residual is added on each chip of y and z, before the sum",
                               "prefill.c0.layer1.out", ("addend not added once",),
                               without="block_out"),
    "fused-thirds": Fault("heads of q, then k, then v are cut into four blocks, each of which is "
                          "taken for heads of q, k and v", "prefill.c0.layer1.q",
                          ("columns of a fused weight",)),
    "gate-up": Fault("w_gate and w_up are exchanged", "prefill.c0.layer1.gate_sum",
                     ("gate and up swapped",)),
    "kv-tile": Fault("kv heads are repeated as a tile: query head h reads h mod K",
                     "prefill.c0.layer1.score", ("head order",)),
    "local-positions": Fault("positions are counted from 0 in each chunk",
                             "prefill.c1.layer1.q_rot", ("position off",)),
    "position-off": Fault("in a decode step q and k are rotated as one position later",
                          "decode.1.layer1.q_rot", ("position off",)),
    "mask-off": Fault("in a decode step the token's own key is masked", "decode.1.layer1.score",
                      ("mask",)),
    "mask-late": Fault("each token sees one key after its own", "prefill.c0.layer1.max", ("mask",)),
    "stale-slot": Fault("a decode step writes its v over the last one of the cache",
                        "decode.1.layer1.v_cache", ("stale slot",)),
    "local-norm": Fault("the norm has the mean square of a chip's own block of E",
                        "prefill.c0.layer1.norm", ("local statistics",)),
    "lookup-unmasked": Fault("chips that do not have a token's row add one that they have",
                             "prefill.c0.embed", ("rows of other shards",)),
    "axis-order": Fault("w_up and its bias are cut over z and y, where y and z are meant",
                        "prefill.c0.layer1.up", ("axes in another order",), "yz"),
}
# In the order of the list, the number by which a compiled program is told which one it has.
NUMBERS = {name: number for number, name in enumerate(FAULTS, 1)}


def loaded(weights, fault):
    """The weights as a loader with the fault places them."""
    layer1 = lambda name: weights[f"layer1.{name}"]
    changed = {}
    if fault == "axis-order":
        for name in ("w_up", "b_up"):
            if f"layer1.{name}" in weights:
                blocks = layer1(name).reshape(*layer1(name).shape[:-1], 2, 2, -1)
                changed[name] = blocks.swapaxes(-2, -3).reshape(layer1(name).shape)
    elif fault == "gate-up":
        changed = {"w_gate": layer1("w_up"), "w_up": layer1("w_gate")}
    elif fault == "fused-thirds":
        for names, dim in ((("wq", "wk", "wv"), 1), (("bq", "bk", "bv"), 0)):
            changed |= thirds({name: layer1(name) for name in names}, dim)
    return weights | {f"layer1.{name}": array for name, array in changed.items()}


def thirds(parts, dim, chips=4):
    """Of each chip's contiguous block of the fused array the parts that it takes it for."""
    ends = np.cumsum([part.shape[dim] // chips for part in parts.values()])
    blocks = np.split(np.concatenate(list(parts.values()), dim), chips, dim)
    cut = [np.split(block, ends[:-1], dim) for block in blocks]
    return {name: np.concatenate([block[i] for block in cut], dim)
            for i, name in enumerate(parts)}
