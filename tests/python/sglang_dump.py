"""Writes a directory as the SGLang dumper does, of a small Llama on simulated ranks, and the model
as a directory of Hugging Face. The values are those of shardproof.Reference, sharded by Layout.

    python tests/python/sglang_dump.py OUT [--tp 4] [--cp 2] [--lengths 5,3] [--wrong NAME]
"""
import argparse
import itertools
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from torch_files import save_safetensors, save_torch

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 48,
          "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
          "num_key_value_heads": 4, "head_dim": 4, "intermediate_size": 40, "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "max_position_embeddings": 64, "tie_word_embeddings": False,
          "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}


def write_model(directory, config=CONFIG, seed=3):
    """A directory of Hugging Face with random weights."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    random = np.random.default_rng(seed)
    e, f, v, q = (config[k] for k in ("hidden_size", "intermediate_size", "vocab_size", "head_dim"))
    heads, kv = config["num_attention_heads"] * q, config["num_key_value_heads"] * q
    shapes = {"model.embed_tokens.weight": (v, e), "model.norm.weight": (e,),
              "lm_head.weight": (v, e)}
    layer = {"input_layernorm": (e,), "post_attention_layernorm": (e,),
             "self_attn.q_proj": (heads, e), "self_attn.k_proj": (kv, e),
             "self_attn.v_proj": (kv, e), "self_attn.o_proj": (e, heads), "mlp.gate_proj": (f, e),
             "mlp.up_proj": (f, e), "mlp.down_proj": (e, f)}
    for n in range(config["num_hidden_layers"]):
        shapes.update({f"model.layers.{n}.{name}.weight": shape for name, shape in layer.items()})
        if config["attention_bias"]:
            shapes.update({f"model.layers.{n}.{name}.bias": shape[:1]
                           for name, shape in layer.items() if name.startswith("self_attn")})
    tensors = {}
    for name, shape in shapes.items():
        draw = random.standard_normal(shape).astype(np.float32)
        tensors[name] = 1 + draw / 10 if len(shape) == 1 else draw / np.float32(shape[-1] ** 0.5)
    save_safetensors(tensors, directory / "model.safetensors")


def reference_of(model, lengths, gen=2, case=None):
    """The architecture and the values of a run."""
    import shardproof as sp
    arch = sp.Architecture.of(model)
    keys = {"lengths": ",".join(map(str, lengths))} if len(set(lengths)) > 1 else {}
    line = arch.case(batch=len(lengths), prompt=max(lengths), gen=gen, **keys, **(case or {}))
    return arch, sp.Reference(line, arch.weights(model))


class Run:
    """A run on tp x cp ranks, rank = cp_rank * tp + tp_rank."""

    def __init__(self, out, tp=4, cp=1, lengths=(6, 6), dtype=np.float32, packed=True, fused=True,
                 wrong=None, missing=(), change=None, stages=1, chunk=None):
        self.stages, self.chunk = stages, chunk or max(lengths)
        self.out, self.tp, self.cp, self.lengths, self.dtype = out, tp, cp, lengths, dtype
        self.packed, self.fused, self.missing = packed, fused, missing
        self.wrong = wrong if wrong is not None else {}
        self.change = change or (lambda name, rank, value, meta: (value, meta))
        self.index = {}

    @property
    def chunks(self):
        return -(-max(self.lengths) // self.chunk)

    def counts(self, step):
        if step >= self.chunks:
            return [1] * len(self.lengths)
        return [min(self.chunk, max(0, n - step * self.chunk)) for n in self.lengths]

    def tokens(self, value, step, cp_rank):
        """The tokens of [B, L, ...] that a rank has, and their dims."""
        counts, n = self.counts(step), self.cp
        if step >= self.chunks:
            n = 1  # a decode step is not cut
        rows = [value[b, :c] for b, c in enumerate(counts)]
        if n > 1:
            pieces = [np.split(row, 2 * n) for row in rows]
            rows = [np.concatenate([p[cp_rank], p[2 * n - 1 - cp_rank]]) for p in pieces]
        cut = "[cp:zigzag]" if n > 1 else ""
        if self.packed:
            return np.concatenate(rows), "t" + cut
        width = max(len(r) for r in rows)
        padded = [np.pad(r, [(0, width - len(r))] + [(0, 0)] * (r.ndim - 1)) for r in rows]
        return np.stack(padded), "b s" + cut

    def save(self, name, step, rank, value, dims=None, tags=(), stage=0):
        place, rank = rank, rank + stage * self.tp * self.cp
        if rank in self.missing:
            return
        info = {"tp_rank": rank % self.tp, "tp_size": self.tp, "pp_rank": stage,
                "pp_size": self.stages, "cp_rank": place // self.tp, "cp_size": self.cp,
                "moe_tp_rank": rank % self.tp, "moe_tp_size": self.tp}
        meta = {"name": name, "step": step, "rank": rank,
                "world_size": self.tp * self.cp * self.stages, "sglang_parallel_info": info}
        if dims is not None:
            meta["dims"] = dims
        value, meta = self.change(name, rank, value, meta)
        if value is None:
            return
        index = self.index[rank] = self.index.get(rank, 0) + 1
        file = "___".join([f"step={step}", f"rank={rank}", f"dump_index={index}", f"name={name}",
                           *tags]) + ".pt"
        save_torch({"value": value, "meta": meta}, self.out / file)

    def shards(self, name, value, letter):
        """The shard of each tp rank: the last axes from `letter` on, flat."""
        axis = value.ndim - len(letter)
        if letter and value.shape[axis] < self.tp:  # ranks share a kv head
            value = np.repeat(value, self.tp // value.shape[axis], axis=axis)
        parts = np.split(value, self.tp, axis=axis) if letter else [value] * self.tp
        return [p.reshape(p.shape[:2] + (-1,)).astype(self.dtype) for p in parts]

    def write(self, arch, reference):
        """All modules' values of all passes."""
        self.out.mkdir(parents=True, exist_ok=True)
        passes = [*(f"prefill.c{c}" for c in range(9)), *(f"decode.{t}" for t in range(1, 9))]
        for step, name in enumerate(p for p in passes if f"{p}.ids" in reference):
            self.write_step(arch, reference, step, name)

    def write_step(self, arch, reference, step, at):
        counts = self.counts(step)
        before = np.sum([[0] * len(counts), *map(self.counts, range(step))], axis=0, dtype=int)
        grid = before[:, None] + np.arange(max(counts))
        for rank in range(self.tp * self.cp):
            cp_rank = rank // self.tp
            both = (("input_ids", reference[f"{at}.ids"]), ("positions", grid))
            for stage, (run_name, whole) in itertools.product(range(self.stages), both):
                value, dims = self.tokens(np.asarray(whole, np.int64), step, cp_rank)
                self.save(run_name, step, rank, value, dims, stage=stage)
            for stage in range(self.stages):
                self.save("seq_lens", step, rank, before + np.array(counts), stage=stage)
        sharded = {"q": "HQ", "k": "KQ", "v": "KQ", "attn": "HQ", "gate": "F", "up": "F",
                   "hidden": "F"}
        fuse = {"q": "self_attn.qkv_proj", "gate": "mlp.gate_up_proj"} if self.fused else {}
        parts = {"q": ("q", "k", "v"), "gate": ("gate", "up")}
        for module in arch.modules():
            short = module.value.rpartition(".")[2]
            if self.fused and short in ("k", "v", "up"):
                continue
            tag = module.name + (".input" if module.input else ".output")
            names = [module.value]
            if short in fuse:
                layer = module.name.split(".")[2]
                tag = f"model.layers.{layer}.{fuse[short]}.output"
                names = [module.value.replace(short, part) for part in parts[short]]
            self.write_value(reference, step, at, tag, names, sharded)

    def write_value(self, reference, step, at, tag, names, sharded):
        layer = int(tag.split(".")[2]) if tag.startswith("model.layers.") else 0
        stage = layer * self.stages // CONFIG["num_hidden_layers"]
        if names[0] in ("final_norm", "logits"):
            stage = self.stages - 1
        columns = []
        for name in names:
            value = np.array(reference[f"{at}.{name}"])
            if name == "logits":  # engines compute those of the last positions
                last = np.maximum(np.array(self.counts(step)) - 1, 0)
                value = value[np.arange(len(value)), last][:, None]
            self.wrong.get(f"{at}.{name}", lambda v: None)(value)
            columns.append(self.shards(name, value, sharded.get(name.rpartition(".")[2], "")))
        if names == ["logits"]:
            for rank in range(self.tp * self.cp):
                logits = columns[0][rank % self.tp][:, 0]
                self.save(f"non_intrusive__{tag}", step, rank, logits, "b v", stage=stage)
            return
        cut = "(num_heads*head_dim)[tp]" if names[0][-1:] in "qkvn" and len(names) == 1 else "h[tp]"
        last = cut if names[0].rpartition(".")[2] in sharded else "h"
        for rank in range(self.tp * self.cp):
            whole = np.concatenate([c[rank % self.tp] for c in columns], axis=-1)
            value, dims = self.tokens(whole, step, rank // self.tp)
            self.save(f"non_intrusive__{tag}", step, rank, value, f"{dims} {last}", stage=stage)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tp", type=int, default=4)
    parser.add_argument("--cp", type=int, default=1)
    parser.add_argument("--lengths", default="6,6")
    parser.add_argument("--wrong", help="a value that is off by 1: prefill.c0.layer1.k")
    options = parser.parse_args()
    lengths = [int(n) for n in options.lengths.split(",")]

    def off(value):
        value[0, -1].reshape(-1)[-1] += 1

    write_model(options.out / "model")
    arch, reference = reference_of(options.out / "model", lengths)
    Run(options.out / "dump", options.tp, options.cp, lengths,
        wrong={options.wrong: off}).write(arch, reference)
    print(f"python -m shardproof judge {options.out / 'dump'} --model {options.out / 'model'}")


if __name__ == "__main__":
    main()
