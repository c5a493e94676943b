"""Traces of version 1 (docs/trace-format.md), as HDF5 or npz."""
import json

import h5py
import numpy as np

from mesh import joined

FORMS = ["stacked", "chips", "logical"]


class Dump:
    """`mesh_order` is the mesh's dims as the trace shall have them: "z x y", or with names of their
    own: "data=x model=y seq=z"."""

    def __init__(self, form, mesh_order="x y z", padded_cache=0):
        self.form, self.mesh_order, self.padded_cache = form, mesh_order, padded_cache
        words = [word.split("=") for word in mesh_order.split()]
        self.order = [word[-1] for word in words]
        self.names = {word[1]: word[0] for word in words if len(word) == 2}

    def said(self, step, value):
        """The attributes of a value."""
        layout, found = value.layout, {}
        name = step.split(".")[-1]
        if name.endswith("_partial"):
            found["meaning"] = "raw " + name.removesuffix("_partial")
        elif name[0].isdigit():
            found["meaning"] = name[2:]
        if self.padded_cache and name in ("k_cache", "v_cache"):
            found["padded"] = "M"
        if self.form == "logical":
            return found
        if not self.names:
            return found | {"layout": str(layout)}
        cuts = [[self.names[a] for a in axes] or None for _, axes in layout.dims]
        found["spec"] = json.dumps(cuts)
        if layout.partial:
            found["partial"] = json.dumps([self.names[a] for a in layout.partial])
        return found

    def arrays(self, step, value):
        """The value as this form has it: (path, array) of each array."""
        if step.split(".")[-1] in ("k_cache", "v_cache") and self.padded_cache:
            value = value.map(self.lengthened)
        if self.form == "logical":
            return [] if value.layout.partial else [(step, joined(value))]
        if self.form == "chips":
            return [("chips/{}_{}_{}/{}".format(*chip, step), a)
                    for chip, a in value.shards.items()]
        local = next(iter(value.shards.values()))
        stacked = np.empty(value.mesh.shape + local.shape, local.dtype)
        for chip, a in value.shards.items():
            stacked[chip] = a
        dims = ["xyz".index(a) for a in self.order]
        return [(step, stacked.transpose(dims + list(range(3, stacked.ndim))))]

    def lengthened(self, cache, chip):
        """A static cache: what lies behind the filled part is what was there before."""
        more = max(self.padded_cache - cache.shape[1], 0)
        rest = np.full((cache.shape[0], more) + cache.shape[2:], 7.5, cache.dtype)
        return np.concatenate([cache, rest], 1)

    def write(self, path, run, attributes):
        attributes = {"format": "shardproof trace", "version": 1, "mesh": self.mesh_order,
                      **attributes}
        values = [(step, self.said(step, value), self.arrays(step, value))
                  for step, value in run.values.items()]
        values += [(step, {}, [(step, ids.astype(np.int32))]) for step, ids in run.ids.items()]
        if str(path).endswith(".npz"):
            members = {where: a for _, _, arrays in values for where, a in arrays}
            said = {step: found for step, found, arrays in values if arrays and found}
            np.savez(path, **members, shardproof=json.dumps(attributes | {"values": said}))
            return
        with h5py.File(path, "w") as file:
            file.attrs.update(attributes)
            for _, found, arrays in values:
                for where, a in arrays:
                    file.create_dataset(where, data=a).attrs.update(found)
