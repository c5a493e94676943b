"""Tensor and sequence parallelism by DTensor, as programs write it with hooks: the stream between
layers is cut over positions in a prefill, and whole in a decode step."""
import torch

from passes import DTensor, Replicate, Shard, distribute_tensor


class Parallel:
    """A model cut over a mesh, in which the dim "copy" holds ranks that share kv heads."""

    def __init__(self, model, family, mesh, broken=frozenset()):
        self.model, self.family, self.mesh, self.broken = model, family, mesh, broken
        self.whole = [Replicate()] * mesh.ndim
        self.over = [Shard(0)] * mesh.ndim
        self.kv = [Replicate() if name == "copy" else Shard(0) for name in mesh.mesh_dim_names]

    def cut(self):
        model, family, mesh = self.model, self.family, self.mesh
        layers = model.get_submodule(family.layers)
        for number, layer in enumerate(layers):
            for path in family.columns:
                self.column(layer.get_submodule(path), self.over)
            for path in family.kv_columns:
                self.column(layer.get_submodule(path), self.kv)
            for path in family.rows:
                self.row(layer.get_submodule(path), f"{number}.{path}")
            for path in family.norms:
                self.norm(layer.get_submodule(path))
            attention = layer.get_submodule(family.attention)
            if hasattr(attention, "num_key_value_groups"):
                copies = mesh["copy"].size() if "copy" in mesh.mesh_dim_names else 1
                attention.num_key_value_groups //= copies
        layers[0].register_forward_pre_hook(self.scatter)
        self.norm(model.get_submodule(family.final_norm))
        self.embedding(model.get_submodule(family.embed))
        self.column(model.lm_head, self.over)
        model.lm_head.register_forward_hook(
            lambda _, __, y: DTensor.from_local(y, mesh, self.last(y)).full_tensor())

    def last(self, x):
        return [Shard(x.ndim - 1)] * self.mesh.ndim

    def stream(self):
        """How the stream between layers is cut."""
        return self.whole if self.length == 1 else [Shard(1)] * self.mesh.ndim

    def of_stream(self, x):
        return DTensor.from_local(x, self.mesh, self.stream())

    def parameters(self, module, placements, bias):
        """Cuts a module's weights, but for those that a fault has cut already."""
        for name, cut in (("weight", placements), ("bias", bias)):
            parameter = getattr(module, name, None)
            if parameter is not None and not isinstance(parameter, DTensor):
                setattr(module, name, torch.nn.Parameter(
                    distribute_tensor(parameter, self.mesh, cut), requires_grad=False))

    def column(self, module, cut):
        self.parameters(module, cut, cut)

        def take(_, args):
            return (DTensor.from_local(args[0], self.mesh, self.whole), *args[1:])
        module.register_forward_pre_hook(take)
        module.register_forward_hook(lambda _, __, y: y.to_local())

    def row(self, module, place):
        self.parameters(module, [Shard(1)] * self.mesh.ndim, self.whole)

        def take(_, args):
            return (DTensor.from_local(args[0], self.mesh, self.last(args[0])), *args[1:])

        def reduce(_, __, y):
            if place in self.broken:
                y = DTensor.from_local(y.to_local(), self.mesh, self.whole)
            return y.redistribute(placements=self.stream()).to_local()
        module.register_forward_pre_hook(take)
        module.register_forward_hook(reduce)

    def norm(self, module):
        self.parameters(module, self.whole, self.whole)
        module.register_forward_pre_hook(lambda _, args: (self.of_stream(args[0]), *args[1:]))
        module.register_forward_hook(  # all positions, for attention and matrices
            lambda _, __, y: y.redistribute(placements=self.whole).to_local())

    def embedding(self, module):
        """Cut over the vocabulary along the first dim of the mesh."""
        cut = [Shard(0)] + [Replicate()] * (self.mesh.ndim - 1)
        self.parameters(module, cut, None)

        def take(_, args):
            self.length = args[0].shape[1]
            return (DTensor.from_local(args[0], self.mesh, self.whole), *args[1:])
        module.register_forward_pre_hook(take)
        module.register_forward_hook(
            lambda _, __, y: y.redistribute(placements=self.whole).to_local())

    def scatter(self, _, args):
        x = DTensor.from_local(args[0], self.mesh, self.whole)
        return (x.redistribute(placements=self.stream()).to_local(), *args[1:])
