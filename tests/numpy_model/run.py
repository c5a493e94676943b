"""A run of the whole model, pass by pass, over rows that have one length."""
import numpy as np

from numpy_model.layer import layer, norm
from numpy_model.numbers import F32, F64, S, as_it_is, biased, to_bf16
from numpy_model.sampling import sample
from numpy_model.weights import logit_scale, of_logits

# The model keys of the presets (docs/spec.md section 6.3) and, first, the defaults of all.
PRESETS = {
    "palm-tiny": {"block": "parallel", "ffn": "swiglu", "norm": "rmsnorm", "bias": "none",
                  "rope": "half", "eps": "1e-6"},
    "llama": {"block": "serial", "eps": "1e-5", "logit_scale": "1"},
    "gptj": {"ffn": "gelu", "norm": "layernorm", "bias": "ffn", "rope": "interleaved",
             "eps": "1e-5", "logit_scale": "1"},
    "falcon": {"ffn": "gelu-erf", "norm": "layernorm", "bias": "norm", "eps": "1e-5",
               "logit_scale": "1"},
}


def keys_of(text):
    """The keys of "PRESET,KEY=VALUE,..."."""
    preset, *items = text.split(",")
    return PRESETS["palm-tiny"] | PRESETS[preset] | dict(item.split("=", 1) for item in items)


def run(weights, keys, prompt, chunk, gen, case, rows, shared=0):
    """Every checkpoint of every pass, by id; row n of the prompt draws by rows[n]. The first
    `shared` tokens are a prefix."""
    act = case["act"]
    st = to_bf16 if act == "bf16" else as_it_is
    table = weights["embed"]
    base2 = keys.get("softmax") == "base2"
    if base2 and "unembed" not in weights:  # the stream is scaled by c
        c = float(of_logits(weights, keys))
        keys = keys | {"eps": float(keys["eps"]) * (c * c)}
    layers = len([name for name in weights if name.endswith(".wq")])
    of = [{name.split(".")[1]: value for name, value in weights.items()
           if name.startswith(f"layer{n}.")} for n in range(layers)]
    L = prompt.shape[1]
    empty = np.zeros((len(prompt), 0) + of[0]["wk"].shape[1:], F32)
    caches = [[empty, empty] for _ in range(layers)]
    passes = [(f"{phase}.c{n}", start, prompt[:, start:min(start + chunk, end)])
              for phase, begin, end in (("prefix", 0, shared), ("prefill", shared, L))
              for n, start in enumerate(range(begin, end, chunk))]
    found, step = {}, 0
    while passes:
        name, start, ids = passes.pop(0)
        x = found[f"{name}.embed"] = st(table[ids] + F32(0))
        for n in range(layers):
            made = layer(x, of[n], caches[n], start, weights, keys, st)
            found.update({f"{name}.layer{n}.{key}": value for key, value in made.items()})
            x = made["out"]
        final = found[f"last {name}.final_norm"] = st(norm(x[:, -1:], weights, "final_norm",
                                                           keys)[:, -1])
        scale = F32(1) if base2 else logit_scale(weights, keys)
        logits = (S(final, weights.get("unembed", table).T).astype(F64) * F64(scale)).astype(F32)
        logits = biased(logits, weights.get("unembed_bias"))
        found[f"{name}.logits"] = logits
        if not passes:  # the last chunk, and every decode pass
            token = found[f"{name}.token"] = np.array(
                [sample(of_row, case, row, step) for of_row, row in zip(logits, rows)], np.int32)
            if (step := step + 1) < gen:
                passes.append((f"decode.{step}", L + step - 1, token[:, None]))
    return found
