"""Four families of transformers in small, and how their modules are called."""
import dataclasses

import numpy as np
import torch
import transformers


@dataclasses.dataclass(frozen=True)
class Family:
    """A config's class and entries, and modules by what they do; `mesh` is its simulated ranks, of
    which those of the dim "copy" share kv heads."""

    config: str
    entries: dict
    mesh: dict
    heads: int
    kv_heads: int
    layers: str = "model.layers"
    embed: str = "model.embed_tokens"
    final_norm: str = "model.norm"
    attention: str = "self_attn"
    columns: tuple = ("self_attn.q_proj", "mlp.gate_proj", "mlp.up_proj")
    kv_columns: tuple = ("self_attn.k_proj", "self_attn.v_proj")
    rows: tuple = ("self_attn.o_proj", "mlp.down_proj")
    norms: tuple = ("input_layernorm", "post_attention_layernorm")
    plus_one: bool = False  # the gain is 1 + weight

    @property
    def ranks(self):
        return int(np.prod(list(self.mesh.values())))


SMALL = dict(num_hidden_layers=2, vocab_size=128, max_position_embeddings=64)
FAMILIES = {
    "llama": Family("LlamaConfig", dict(
        SMALL, hidden_size=64, intermediate_size=96, num_attention_heads=16, num_key_value_heads=4,
        head_dim=8, attention_bias=True, rms_norm_eps=1e-5), {"kv": 4, "copy": 2}, 16, 4),
    "qwen2": Family("Qwen2Config", dict(
        SMALL, hidden_size=128, intermediate_size=96, num_attention_heads=16,
        num_key_value_heads=8), {"tp": 4}, 16, 8),
    "gemma": Family("GemmaConfig", dict(
        SMALL, hidden_size=64, intermediate_size=96, num_attention_heads=8, num_key_value_heads=2,
        head_dim=8, attention_bias=True), {"kv": 2, "copy": 2}, 8, 2, plus_one=True),
    "gptj": Family("GPTJConfig", dict(
        n_layer=2, vocab_size=128, n_positions=64, n_embd=64, n_head=8, rotary_dim=4, n_inner=96),
        {"tp": 4}, 8, 8, "transformer.h", "transformer.wte", "transformer.ln_f", "attn",
        ("attn.q_proj", "mlp.fc_in"), ("attn.k_proj", "attn.v_proj"),
        ("attn.out_proj", "mlp.fc_out"), ("ln_1",)),
}


def model_of(name, dtype, seed):
    """A model with random weights, biases and gains, and its config's ids left out."""
    family = FAMILIES[name]
    config = getattr(transformers, family.config)(
        **family.entries, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    config._attn_implementation = "eager"
    # Not model.to(dtype), which rounds RoPE's frequencies, too.
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    draw = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in dict.fromkeys(model.parameters()):
            noise = torch.from_numpy(draw.standard_normal(tuple(parameter.shape), np.float32))
            if parameter.ndim < 2:
                parameter.add_((0.25 * noise).to(dtype))
            else:
                parameter.copy_(noise * parameter.shape[-1] ** -0.5)
    return model


def module(model, path):
    return model.get_submodule(path)
