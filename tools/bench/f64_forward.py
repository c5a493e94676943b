"""f64_forward.py TRACE: the prefill of a trace that `shardproof run` wrote, of models like Llama,
once more in f64, by PyTorch if it is installed, otherwise by NumPy; weights and ids are the trace's own.
Exits with 1 if its logits are not the trace's.
"""
import sys

import h5py
import numpy as np

try:
    import torch
except ImportError:
    torch = None

COLUMNS = 1024  # of a matrix, converted to f64 at a time
ROUNDED = 12  # values of a layer that are stored, each with a rounding of its own


def product(x, matrix):
    """x [T, K] times a matrix [K, N] of f32."""
    out = np.empty((x.shape[0], matrix.shape[1]))
    for first in range(0, matrix.shape[1], COLUMNS):
        part = matrix[:, first:first + COLUMNS].astype(np.float64)
        if torch is None:
            out[:, first:first + COLUMNS] = x @ part
        else:
            found = torch.from_numpy(x) @ torch.from_numpy(part)
            out[:, first:first + COLUMNS] = found.numpy()
    return out


def times(x, weight):
    """x [T, K] times a weight whose first dims have K elements together."""
    w = weight[()]
    kept, seen = [], 1
    for extent in w.shape:
        if seen < x.shape[1]:
            seen *= extent
        else:
            kept.append(extent)
    return product(x, w.reshape(x.shape[1], -1)).reshape(x.shape[0], *kept)


def norm(x, gain, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain[()].astype(np.float64)


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def layer(x, file, index, batch, length, eps):
    def weight(name):
        return file[f"layer{index}.{name}"]

    cos, sin = (file[name][:length].astype(np.float64)[None, :, None]
                for name in ("rope_cos", "rope_sin"))
    y = norm(x, weight("norm"), eps)
    q, k, v = (times(y, weight(name)).reshape(batch, length, *weight(name).shape[1:])
               for name in ("wq", "wk", "wv"))
    q, k = rotated(q, cos, sin), rotated(k, cos, sin)
    heads, shared = q.shape[2], q.shape[2] // k.shape[2]
    k, v = np.repeat(k, shared, 2), np.repeat(v, shared, 2)
    score = np.einsum("blhq,bmhq->blhm", q, k, optimize=True) / np.sqrt(q.shape[-1])
    score = np.where(np.tri(length, dtype=bool)[None, :, None, :], score, -np.inf)
    share = np.exp(score - score.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    attn = np.einsum("blhm,bmhq->blhq", share, v, optimize=True)
    x = x + times(attn.reshape(batch * length, heads * q.shape[-1]), weight("wo"))
    y = norm(x, weight("norm2"), eps)
    gate = times(y, weight("w_gate"))
    return x + times(gate / (1 + np.exp(-gate)) * times(y, weight("w_up")), weight("w_out"))


def main():
    with h5py.File(sys.argv[1], "r") as file:
        ids = file["prefill.c0.ids"][()].astype(np.int64)
        batch, length = ids.shape
        eps = 1e-6
        x = file["embed"][()][ids.reshape(-1)].astype(np.float64)
        layers = sum(name.endswith(".wq") for name in file)
        for index in range(layers):
            x = layer(x, file, index, batch, length, eps)
        last = norm(x.reshape(batch, length, -1)[:, -1], file["final_norm"], eps)
        logits = product(last, file["unembed"][()].T)
        found = file["prefill.c0.head.logits"][()].astype(np.float64)
        apart = np.abs(found - logits).max() / np.sqrt((logits * logits).mean())
        print(f"{'NumPy' if torch is None else 'PyTorch'}: logits apart by {apart:.1e}")
        # As if each rounding moved the logits by its unit, all of them in one direction: of a value
        # as it is stored, and of an f32 sum of as many products as the longest has.
        unit = 2.0 ** -9 if file.attrs["act"] == "bf16" else 0.0
        unit += 2.0 ** -24 * file["layer0.w_out"].shape[0] ** 0.5
        return 0 if apart < unit * ROUNDED * (layers + 1) else 1


if __name__ == "__main__":
    sys.exit(main())
