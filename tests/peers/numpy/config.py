"""What a weights file and a case line say of a model."""
import h5py
import numpy as np

PRESETS = {
    "palm-tiny": {"block": "parallel", "eps": "1e-6", "bias": "none", "logit_scale": ""},
    "llama": {"block": "serial", "eps": "1e-5", "bias": "none", "logit_scale": "1"},
}
PRESETS["palm-mini"] = PRESETS["palm-wide"] = PRESETS["palm-tiny"]
KNOWN = {"norm": "rmsnorm", "ffn": "swiglu", "rope": "half", "rotary": "1", "unembed_bias": "false",
         "embed_scale": "1"}


class Config:
    """A model with RMS norm, swiglu and half-split RoPE; of any heads, parallel or serial."""

    def __init__(self, text, weights):
        preset, *items = text.split(",")
        if preset not in PRESETS:
            raise ValueError(f"model {preset}: there are {', '.join(PRESETS)}")
        keys = PRESETS[preset] | dict(item.split("=", 1) for item in items)
        for key, value in KNOWN.items():
            if keys.get(key, value) != value:
                raise ValueError(f"{key}={keys[key]}: this peer knows {key}={value} only")
        if keys["bias"] not in ("none", "qkv"):
            raise ValueError(f"bias={keys['bias']}: this peer knows none and qkv only")
        self.serial, self.eps = keys["block"] == "serial", float(keys["eps"])
        self.V, self.E = weights["embed"].shape
        self.H, self.Q = weights["layer0.wq"].shape[1:]
        self.K = weights["layer0.wk"].shape[1]
        self.F = weights["layer0.w_gate"].shape[1]
        self.layers = sum(name.endswith(".wq") for name in weights)
        # An f32 number in either case.
        self.logit_scale = float(np.float32(keys["logit_scale"] or 1 / np.sqrt(float(self.E))))


def read_weights(path):
    """The model's text, and the weights by name."""
    with h5py.File(path, "r") as file:
        model = file.attrs["model"]
        if file.attrs["version"] != 1:
            raise ValueError(f"{path}: a weights file of version 1 is needed")
        weights = {name: data[()] for name, data in file.items()}
    return model.decode() if isinstance(model, bytes) else model, weights


def case_of(text, model):
    """A case line's words with what it leaves out."""
    case = dict(word.split("=", 1) for word in text.split())
    case = {"torus": "2x2x2", "model": model, "batch": "2", "prompt": "4", "gen": "2"} | case
    return {"chunk": case["prompt"]} | case
