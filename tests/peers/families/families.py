"""Eight families as public libraries run them: the model's keys of docs/spec.md section 6.2, and
what the keys do not say."""
import copy
import dataclasses

import h5py
import numpy as np

from roundings import ROUND


@dataclasses.dataclass(frozen=True)
class Family:
    keys: str              # of the model, without extents
    heads: str             # of keys and values: "many" as query heads, "few", or "one"
    orders: tuple          # in which the library adds x, attention's a and the FFN's f
    gain_plus_one: bool = False  # gains are kept as w, and 1 + w is what multiplies
    rotary: float = 1.0


SERIAL = ("xa", "ax")
FAMILIES = {
    "llama": Family("llama", "few", SERIAL),
    "gptj": Family("gptj", "many", ("afx", "xaf"), rotary=0.25),
    "falcon": Family("falcon", "one", ("fax", "xaf")),
    "gemma": Family("llama,ffn=geglu,tied=true,eps=1e-6", "one", SERIAL, gain_plus_one=True),
    "phi2": Family("phi-2,positions=2048", "many", ("afx", "xaf", "xfa"), rotary=0.4),
    "starcoder2": Family("gptj,block=serial,bias=all,rope=half,rotary=1,tied=true,"
                         "unembed_bias=false,theta=100000", "few", SERIAL),
    "qwen2": Family("llama,bias=qkv,theta=1000000,eps=1e-6", "few", SERIAL),
    "cohere": Family("llama,block=parallel,norm=layernorm,rope=interleaved,tied=true,"
                     "logit_scale=0.0625,theta=75000", "few", ("xaf", "xfa", "afx")),
}

# E, F, H, kv heads where they are few, V; by 8 chips only those with heads for each divide.
SIZES = {
    "odd": (19, 29, 6, 2, 37),
    "small": (16, 20, 3, 1, 29),
    "eight": (24, 40, 8, 4, 48),
    "sixteen": (32, 24, 16, 2, 40),
}
CUT_SIZES = ("eight", "sixteen")
LAYERS = 2


def head_width(family, number):
    """Q, of which rotary·Q is even."""
    return {0.25: 8, 0.4: 5 * (2 + 2 * number)}.get(family.rotary, 4 + 2 * number)


def model_text(name, size, form):
    """The model of a case line. Gemma's library keeps sqrt(E) in the stored type."""
    family = FAMILIES[name]
    E, F, H, few, V = SIZES[size]
    K = {"many": H, "few": few, "one": 1}[family.heads]
    Q = head_width(family, list(SIZES).index(size) % 2)
    text = f"{family.keys},layers={LAYERS},E={E},F={F},H={H},K={K},Q={Q},V={V}"
    if family.gain_plus_one:
        text += f",embed_scale={float(ROUND[form](np.sqrt(np.full(1, E, np.float32)))[0])!r}"
    return text


class Model:
    """A model's extents, constants and weights, from a weights file."""

    PRESET = {
        "llama": dict(block="serial", ffn="swiglu", norm="rmsnorm", rope="half", eps=1e-5),
        "gptj": dict(block="parallel", ffn="gelu", norm="layernorm", rope="interleaved", eps=1e-5),
        "falcon": dict(block="parallel", ffn="gelu-erf", norm="layernorm", rope="half", eps=1e-5),
        "phi-2": dict(block="parallel", ffn="gelu", norm="layernorm", rope="half", eps=1e-5),
    }

    def __init__(self, path, name):
        self.family = FAMILIES[name]
        with h5py.File(path) as file:
            text = file.attrs["model"]
            text = text.decode() if isinstance(text, bytes) else text
            self.weights = {key: data[()] for key, data in file.items()}
        preset, *keys = text.split(",")
        said = self.PRESET[preset] | dict(key.split("=") for key in keys)
        self.serial, self.ffn = said["block"] == "serial", said["ffn"]
        self.layernorm, self.interleaved = said["norm"] == "layernorm", said["rope"] != "half"
        self.eps = np.float32(said["eps"])
        self.logit_scale = np.float32(said.get("logit_scale", 1))
        self.embed_scale = np.float32(said.get("embed_scale", 1))
        self.theta = float(said.get("theta", 10000))
        wq, wk = self.weights["layer0.wq"], self.weights["layer0.wk"]
        self.E, self.H, self.Q = wq.shape
        self.K, self.F = wk.shape[1], self.weights["layer0.w_gate"].shape[1]
        self.V, self.layers = self.weights["embed"].shape[0], LAYERS
        self.rotated = 2 * self.weights["rope_cos"].shape[1] if "rope_cos" in self.weights else 0

    def with_other(self, **attributes):
        """A copy that differs in these."""
        other = copy.copy(self)
        other.__dict__.update(attributes)
        return other


def write_rounded(source, target, form, plus_one):
    """A weights file whose weights are numbers of a format; RoPE's tables stay as they are."""
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        new.attrs.update({"format": "shardproof-weights", "version": 1,
                          "model": old.attrs["model"]})
        for name, data in old.items():
            a, gain = data[()], name.split(".")[-1] in ("norm", "norm2", "final_norm")
            if not name.startswith("rope_"):
                one = np.float32(1 if plus_one and gain else 0)
                a = ROUND[form](a - one) + one
            new.create_dataset(name, data=a).attrs["dims"] = data.attrs["dims"]
