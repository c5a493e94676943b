"""Small models of the same kind, in which no fault hides behind a zero."""
from __future__ import annotations

from typing import Any, Dict

import numpy as np


def shrink(config: Any, ranks: int = 8, seed: int = 0) -> Any:
    """A model of transformers with this config's structure, of two layers and sizes that `ranks`
    divides. Its weights are random, biases and gains too: those of a fresh model are 0 and 1,
    behind which a bias added twice or a gain left out does not show."""
    import torch
    from transformers import AutoModelForCausalLM

    small = type(config).from_dict({**config.to_dict(), **_sizes(config, ranks)})
    small._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(small).eval()
    generator = np.random.default_rng(seed)  # torch's own would go on from rank to rank
    with torch.no_grad():
        for parameter in dict.fromkeys(model.parameters()):
            drawn = generator.standard_normal(tuple(parameter.shape), np.float32)
            noise = torch.from_numpy(drawn).to(parameter.dtype)
            if parameter.ndim < 2:
                parameter.add_(0.25 * noise)
            else:
                parameter.copy_(noise * parameter.shape[-1] ** -0.5)
    return model


def _sizes(config: Any, ranks: int) -> Dict[str, Any]:
    """The entries that are smaller, by the names that the config has."""
    heads = int(config.num_attention_heads)
    kv_heads = int(getattr(config, "num_key_value_heads", None) or heads)
    width = 8
    small_kv = 1 if kv_heads == 1 else ranks
    small = ranks if kv_heads in (1, heads) else 2 * ranks
    wanted: Dict[str, Any] = {
        "num_hidden_layers": 2, "hidden_size": small * width, "num_attention_heads": small,
        "num_key_value_heads": small_kv if kv_heads != heads else small, "head_dim": width,
        "intermediate_size": 24 * ranks, "vocab_size": 32 * ranks, "max_position_embeddings": 64}
    names = dict(getattr(config, "attribute_map", {}))
    said = config.to_dict()
    out = {names.get(name, name): size for name, size in wanted.items()
           if names.get(name, name) in said}
    for name, size in (("n_inner", 24 * ranks), ("rotary_dim", width // 2), ("sliding_window", 4)):
        if said.get(name) is not None:
            out[name] = size
    if "n_inner" in said:
        out["n_inner"] = 24 * ranks
    if said.get("layer_types"):
        out["layer_types"] = _two_of(said["layer_types"])
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if name in said:
            out[name] = None
    return out


def _two_of(kinds: Any) -> Any:
    """Two layers, of two kinds if there are two."""
    other = next((kind for kind in kinds if kind != kinds[0]), kinds[0])
    return [kinds[0], other]
