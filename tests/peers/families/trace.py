"""A run as a trace (docs/trace-format.md), as its user would have dumped it."""
import json

import numpy as np

from mesh import joined
from roundings import stored

# The dims of the named values, and the one of them that is cut.
DIMS = {"ids": "BL", "embed": "BLE", "norm": "BLE", "q": "BLHQ", "k": "BLKQ", "v": "BLKQ",
        "q_rot": "BLHQ", "k_rot": "BLKQ", "k_cache": "BMKQ", "v_cache": "BMKQ", "score": "BLHM",
        "max": "BLH", "exp": "BLHM", "denom": "BLH", "probs": "BLHM", "attn": "BLHQ",
        "attn_out": "BLE", "block_out": "BLE", "mid": "BLE", "norm2": "BLE", "gate": "BLF",
        "up": "BLF", "hidden": "BLF", "ffn_out": "BLE", "out": "BLE", "final_norm": "BLE",
        "logits": "BV", "token": "B"}
OUTPUTS = ("attn_out", "block_out", "ffn_out", "mid", "out")

# What users have: all; what hooks see, with fused kernels; a few; what goes in and out of layers.
SETS = {
    "full": tuple(DIMS),
    "hooks": ("ids", "embed", "norm", "q", "k", "v", "q_rot", "k_rot", "k_cache", "v_cache", "attn",
              "attn_out", "block_out", "mid", "norm2", "gate", "up", "hidden", "ffn_out", "out",
              "final_norm", "logits", "token"),
    "lean": ("ids", "q", "k", "v", "attn", "out", "logits", "token"),
    "coarse": ("ids", "out", "logits", "token"),
}


class Trace:
    """`form`: whole arrays, stacked over the mesh, or the shards of chips; `scattered`: outputs are
    shown cut along E; `partials`: partial sums are in the trace,
    or, "plain", in place of the value that is not reduced yet; `masked`: what masked scores hold;
    `wire_of_file`: the file says how partial sums travel, not each value."""

    def __init__(self, run, dump_set="full", form="stacked", scattered=False, partials=False,
                 words=False, masked=0.0, last=False, wire_of_file=False):
        self.run, self.mesh, self.names = run, run.mesh, SETS[dump_set]
        self.form, self.scattered, self.partials = form, scattered, partials
        self.words, self.masked, self.last = words, masked, last
        # Where the outputs are not in the trace, the file has to say it for them.
        outputs = {"attn_out", "ffn_out"} - run.fused
        self.wire_of_file = wire_of_file or len(outputs & set(self.names)) < 2
        self.n = self.mesh.n
        self.arrays, self.said = {}, {}

    def cut_of(self, name):
        """The dim that is cut, the axes, and how many blocks there are."""
        dims, n = DIMS[name], self.n
        if "K" in dims:
            return "K", *self.mesh.prefix(self.run.model.K)
        for letter in "HFV":
            if letter in dims:
                return letter, self.mesh.axes, n
        if self.scattered and name in OUTPUTS and self.run.model.E % n == 0:
            return "E", self.mesh.axes, n
        return "", "", 1

    def layout(self, name, partial=""):
        letter, axes, _ = ("", "", 1) if partial else self.cut_of(name)
        dims = "".join(d + (f"_{axes}" if d == letter and axes else "") for d in DIMS[name])
        return dims + (f" partialsum-{partial}" if partial else "")

    def blocks(self, name, a):
        """A kept value as blocks of its layout."""
        letter, _, count = self.cut_of(name)
        if letter == "E":
            return np.stack(np.split(a[0], count, axis=-1))
        return a

    def hidden_keys(self, step, name, a):
        """What stands in masked slots."""
        if name not in ("score", "exp", "probs"):
            return a
        seen = self.run.seen_by[step.rsplit(".", 2)[0]][..., None, :]
        return np.where(seen, a, np.float32(self.masked if name == "score" else 0))

    def put(self, step, name, blocks, said, layout, whole=True):
        a = blocks
        if a.dtype != np.int32:
            form = self.run.arithmetic.rounding.form
            fits = bool((self.run.arithmetic.st(a) == a).all())  # scores may not, nor partial sums
            a, more = stored(a, form if fits else "f32", self.words)
            said = said | more
        if self.form == "whole" and whole:
            letter, _, count = self.cut_of(name)
            dim = DIMS[name].index(letter) if letter else 0
            self.arrays[step] = joined(a, dim, count) if len(a) > 1 else a[0]
        elif self.form == "chips":
            stacked, said = self.mesh.on_chips(a), said | {"layout": layout}
            for chip in np.ndindex(self.mesh.shape):
                self.arrays["chips/{}_{}_{}/{}".format(*chip, step)] = stacked[chip]
        else:
            self.arrays[step], said = self.mesh.on_chips(a), said | {"layout": layout}
        self.said[step] = said

    def add(self, step, a):
        name = step.split(".")[-1]
        if name not in self.names:
            return
        said, layout = {}, self.layout(name)
        if name in ("attn_out", "ffn_out", "block_out") and not self.wire_of_file and self.wire():
            said["wire"] = self.wire()
        if (step in self.run.partial_sums and self.partials == "plain"
                and not self.has_bias(step, name)):
            self.put(step, name, self.run.partial_sums[step], said,
                     self.layout(name, self.mesh.axes), False)
            return
        if step in self.run.partial_sums and self.partials and name in self.names:
            self.put(step + "_sum", name, self.run.partial_sums[step],
                     {"meaning": "raw " + name} | said, self.layout(name, self.mesh.axes), False)
        if name == "final_norm" and self.last:
            a, layout, said = a[:, :, -1], layout.replace("L", ""), {"meaning": "last final_norm"}
        self.put(step, name, self.blocks(name, self.hidden_keys(step, name, a)), said, layout)

    def has_bias(self, step, name):
        """Whether more follows the sum: then its partial sums are not the value's."""
        layer = int(step.split(".layer")[1].split(".")[0])
        biases = {"attn_out": ("bo",), "ffn_out": ("b_out",)}.get(name, ("bo", "b_out"))
        return any(self.run.weight(layer, bias) is not None for bias in biases)

    def wire(self):
        """How often a partial sum is rounded on its way; where two terms are one, once before."""
        reduction = self.run.arithmetic.reduction
        roundings = reduction.roundings(self.n) if self.n > 1 else 0
        roundings += self.run.together if roundings else 0
        return f"{reduction.wire}:{roundings}" if roundings else ""

    def filled(self):
        for step, a in self.run.values.items():
            self.add(step, a)
        return self

    def write(self, path, case, **attributes):
        attributes |= {"format": "shardproof trace", "version": 1, "case": case,
                       "weights": "file", "values": self.said}
        if self.wire_of_file and self.wire():
            attributes["wire"] = self.wire()
        if self.masked:
            attributes["masked"] = "any"
        np.savez(path, **self.arrays, shardproof=json.dumps(attributes))
