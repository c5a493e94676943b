"""Twelve faults, as they are met in programs. Each has where the first divergence is, and words of
which a cause must have one, if a cause is named at all."""
import contextlib
import dataclasses

import torch
from torch.distributed._local_tensor import LocalTensor
from torch.distributed.tensor import DTensor, Partial

LAST = 1  # the layer that has the fault


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    first: str            # the value that diverges first
    causes: tuple         # words of causes that are true
    before: object = None  # changes the model before it is cut: f(run)
    after: object = None   # adds hooks after it was tapped: f(run)
    broken: frozenset = frozenset()
    families: tuple = ("llama", "qwen2", "gemma", "gptj")


class Run:
    """A model about to be cut: what faults change."""

    def __init__(self, model, family, mesh):
        self.model, self.family, self.mesh = model, family, mesh
        self.layers = model.get_submodule(family.layers)
        self.layer = self.layers[LAST]
        self.undo = contextlib.ExitStack()

    def part(self, path):
        return self.layer.get_submodule(path)

    def columns(self):
        return (self.part(self.family.columns[0]),
                *[self.part(path) for path in self.family.kv_columns])

    def heads_of(self, which):
        return self.family.heads if which == 0 else self.family.kv_heads


def whole(parameter):
    """The numbers of a parameter that all ranks have alike."""
    data = parameter.data
    return data.reconcile() if isinstance(data, LocalTensor) else data


def put(module, name, data):
    setattr(module, name, torch.nn.Parameter(data, requires_grad=False))


def bias_of_every_rank(run):
    """Each rank adds the bias to its own partial sum."""
    if run.family.config == "Qwen2Config":  # its only biases are of q, k, v, which have no sum
        q = run.columns()[0]
        return put(q, "bias", whole(q.bias) * run.family.ranks)
    row = run.part(run.family.rows[1 if run.family.config == "GPTJConfig" else 0])
    bias = LocalTensor({rank: whole(row.bias).clone() for rank in range(run.family.ranks)})
    put(row, "bias", DTensor.from_local(bias, run.mesh, [Partial()] * run.mesh.ndim))


def residual_of_every_rank(run):
    """Each rank adds the residual before the sum over ranks."""
    stream = {}
    inner = run.part(run.family.norms[-1])

    def keep(_, args):
        stream["x"] = args[0]

    def add(_, __, y):
        y = y[0] if isinstance(y, tuple) else y
        return y + (run.family.ranks - 1) * stream["x"].to(y.dtype)
    inner.register_forward_pre_hook(keep, prepend=True)
    run.part("mlp").register_forward_hook(add)


def fused_by_thirds(run):
    """Fused [Q|K|V] is cut into equal blocks, and each read as the rank's q, k and v."""
    ranks, heads = run.family.ranks, (run.family.heads, run.family.kv_heads, run.family.kv_heads)
    copies = max(1, ranks // heads[1]) if "copy" in run.mesh.mesh_dim_names else 1
    for name in ("weight", "bias"):
        given = [getattr(module, name, None) for module in run.columns()]
        if given[0] is None:
            continue
        parts = []
        for data, n in zip(map(whole, given), heads):
            by_head = data.reshape(n, -1, *data.shape[1:])
            if n == heads[1] and n != heads[0]:
                by_head = by_head.repeat_interleave(copies, 0)
            parts.append(by_head.reshape(-1, *data.shape[1:]))
        fused = torch.cat(parts)
        widths = [len(part) // ranks for part in parts]
        blocks = fused.split(sum(widths))
        for number, module in enumerate(run.columns()):
            at = sum(widths[:number])
            local = LocalTensor({r: blocks[r][at:at + widths[number]].clone()
                                 for r in range(ranks)})
            put(module, name, DTensor.from_local(local, run.mesh, run.cuts[number]))


def gate_and_up_exchanged(run):
    gate, up = run.part("mlp.gate_proj"), run.part("mlp.up_proj")
    gate.weight, up.weight = up.weight, gate.weight


def other_layers_weight(run):
    put(run.part("mlp.fc_in"), "weight",
        whole(run.layers[0].get_submodule("mlp.fc_in").weight).clone())


def kv_heads_as_tile(run):
    """Rank r, or of a rank's heads number h, reads kv head modulo their number."""
    family = run.family
    if "copy" in run.mesh.mesh_dim_names:
        for number, module in enumerate(run.columns()[1:]):
            for name in ("weight", "bias"):
                data = getattr(module, name, None)
                if data is None:
                    continue
                blocks = whole(data).chunk(family.kv_heads)
                local = LocalTensor({r: blocks[r % family.kv_heads].clone()
                                     for r in range(family.ranks)})
                put(module, name, DTensor.from_local(local, run.mesh, run.cuts[1 + number]))
        return
    import transformers.models.qwen2.modeling_qwen2 as library

    def tile(x, times):
        return x.repeat(1, times, 1, 1)
    run.undo.callback(setattr, library, "repeat_kv", library.repeat_kv)
    library.repeat_kv = tile


def q_heads_turned(run):
    """Heads of q are one off."""
    q = run.columns()[0]
    put(q, "weight", whole(q.weight).roll(q.weight.shape[0] // run.family.heads, 0))


def local_positions(run):
    """Positions begin anew in each block of the sequence."""
    def restart(_, args, kwargs):
        ids = kwargs.pop("position_ids", args[1] if len(args) > 1 else None)
        length = ids.shape[1]
        block = max(1, length // run.family.ranks)
        return (args[0], ids % block if length > 1 else ids), kwargs
    rotary = next(m for n, m in run.model.named_modules() if n.endswith("rotary_emb"))
    rotary.register_forward_pre_hook(restart, with_kwargs=True)


def mask_off_by_one(run):
    """A query sees the key after its own."""
    def shift(_, args, kwargs):
        mask = kwargs["attention_mask"].clone()
        for i in range(mask.shape[-2] - 1):
            mask[..., i, i + 1 + mask.shape[-1] - mask.shape[-2]] = 0
        return args, {**kwargs, "attention_mask": mask}
    run.part(run.family.attention).register_forward_pre_hook(shift, with_kwargs=True)


def stale_slot(run):
    """In decode steps the newest slot of the cache keeps what the one before has."""
    def stale(_, args, kwargs):
        cache = kwargs["cache"]
        layer = cache.layers[LAST]
        if getattr(layer, "keys", None) is None or hasattr(layer, "honest"):
            return
        layer.honest = layer.update

        def update(*a, **k):
            keys, values = layer.honest(*a, **k)
            keys[:, :, -1] = keys[:, :, -2]
            layer.keys = keys
            return keys, values
        layer.update = update
    run.part(run.family.attention).register_forward_pre_hook(stale, with_kwargs=True)


def local_norm(run):
    """Each rank normalizes its own part of the channels, and the parts are put together."""
    norm, n = run.part(run.family.norms[0]), run.family.ranks
    eps = getattr(norm, "variance_epsilon", getattr(norm, "eps", None))
    gain = whole(norm.weight).float() + (1 if run.family.plus_one else 0)
    bias = None if getattr(norm, "bias", None) is None else whole(norm.bias).float()

    def forward(x):
        parts = x.to_local().float().unflatten(-1, (n, -1))
        if bias is not None:
            parts = parts - parts.mean(-1, keepdim=True)
        parts = parts * torch.rsqrt(parts.pow(2).mean(-1, keepdim=True) + eps)
        y = parts.flatten(-2)
        if run.family.plus_one or bias is not None:
            y = (y * gain + (0 if bias is None else bias)).to(x.dtype)
        else:
            y = gain.to(x.dtype) * y.to(x.dtype)
        return DTensor.from_local(y, run.mesh, x.placements)
    norm.forward = forward


def lookup_unmasked(run):
    """A rank looks up ids outside its part of the vocabulary at its own first or last row."""
    embed = run.model.get_submodule(run.family.embed)
    table, n = whole(embed.weight).clone(), run.mesh.size(0)
    rows = len(table) // n

    def forward(ids):
        local = ids.to_local() if isinstance(ids, DTensor) else ids
        total = sum(table[(local - r * rows).clamp(0, rows - 1) + r * rows] for r in range(n))
        return DTensor.from_local(total, run.mesh, run.whole)
    embed.forward = forward


def shards_permuted(run):
    """Each rank has the next one's block of a row-parallel weight."""
    row = run.part(run.family.rows[1])
    put(row, "weight", whole(row.weight).roll(-row.weight.shape[1] // run.family.ranks, 1))


FAULTS = (
    Fault("all_reduce missing", "layer1.ffn_out", ("reduction missing", "partial sum"),
          broken=frozenset({f"{LAST}.mlp.down_proj"}), families=("llama", "qwen2", "gemma")),
    Fault("all_reduce missing", "layer1.attn_out", ("reduction missing", "partial sum"),
          broken=frozenset({f"{LAST}.attn.out_proj"}), families=("gptj",)),
    Fault("bias n times", "layer1.attn_out", ("addend not added once",), before=bias_of_every_rank,
          families=("llama", "gemma")),
    Fault("bias n times", "layer1.q", ("addend not added once",), before=bias_of_every_rank,
          families=("qwen2",)),
    Fault("bias n times", "layer1.ffn_out", ("addend not added once",), before=bias_of_every_rank,
          families=("gptj",)),
    Fault("residual n times", "layer1.out", ("addend not added once",),
          after=residual_of_every_rank),
    Fault("fused QKV by thirds", "layer1.q", ("fused", "another chip's block", "head order",
                                              "other columns"), before=fused_by_thirds),
    Fault("gate and up exchanged", "layer1.gate", ("gate and up swapped", "another layer's weight"),
          before=gate_and_up_exchanged, families=("llama", "qwen2", "gemma")),
    Fault("another layer's weight", "layer1.gate", ("another layer's weight",),
          before=other_layers_weight, families=("gptj",)),
    Fault("kv heads as a tile", "layer1.k", ("head order", "another chip's block",
                                             "axes in another", "chunks in another"),
          before=kv_heads_as_tile, families=("llama", "gemma")),
    Fault("kv heads as a tile", "layer0.attn", ("head order",), before=kv_heads_as_tile,
          families=("qwen2",)),
    Fault("heads of q turned", "layer1.q", ("head order", "chunks in another"),
          before=q_heads_turned, families=("gptj",)),
    Fault("RoPE from local positions", "layer0.q_rot", ("position off",), after=local_positions),
    Fault("mask off by one", "layer1.attn", ("mask",), after=mask_off_by_one),
    Fault("stale cache slot", "decode.1.layer1.k_cache", ("stale slot",), after=stale_slot),
    Fault("norm over a local part", "layer1.norm", ("local statistics",), before=local_norm),
    Fault("lookup unmasked", "embed", ("rows of other shards",),
          before=lookup_unmasked),
    Fault("shards permuted", "layer1.ffn_out", ("chunks in another", "another chip's block"),
          before=shards_permuted),
)
