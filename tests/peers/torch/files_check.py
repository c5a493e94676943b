"""The readers of .pt and safetensors against torch and safetensors themselves: what torch.save
writes is read as torch.load reads it, and torch.load reads what the tests' own writer writes.
Prints a line a check and exits with 1 on a failure.

    PYTHONPATH=tools/python SHARDPROOF_LIBRARY=build/libshardproof.so \\
      python tests/peers/torch/files_check.py
"""
import argparse
import collections
import os
import pathlib
import sys
import tempfile

import ml_dtypes
import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from torch_files import SAFETENSORS, View, save_safetensors, save_torch

from shardproof.importing.arrays import FileArray, Refused
from shardproof.importing.folders import read_file

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
          torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
            torch.uint16, torch.uint32]


class Subclass(torch.Tensor):
    """A tensor of a class of one's own, which is refused by name."""


def bits(tensor):
    return tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def same(tensor, found):
    """Whether an array that was read has the tensor's shape, type and bits."""
    if not isinstance(found, FileArray):
        return False
    array = found.load()
    name = str(tensor.dtype).replace("torch.", "")
    return (array.shape == tuple(tensor.shape) and array.dtype.name == name
            and array.tobytes() == bits(tensor))


def tensors():
    """Of each check its name and a tensor."""
    draw = torch.randn(5, 4, 3)
    for dtype in FLOATS + INTEGERS:
        yield str(dtype), (draw * 4).to(dtype)
    yield "a transpose", draw.transpose(0, 2)
    yield "every second row", draw[::2, 1:]
    yield "one element", draw[2, 1, 1]
    yield "a repeated row", draw[0, 0].expand(6, 3)
    yield "no element", torch.zeros(0, 3)
    yield "a slice of bf16", draw.bfloat16()[1:, :, 2]
    yield "a slice of fp8", draw.to(torch.float8_e4m3fn)[1:, 2]
    yield "a diagonal", torch.randn(4, 4).diagonal()
    yield "a parameter", torch.nn.Parameter(draw[0])


def read_checks(folder):
    for name, tensor in tensors():
        for protocol in (2, 5):
            torch.save({"value": tensor, "meta": {"name": name}}, folder / "a.pt",
                       pickle_protocol=protocol)
            yield f"torch.save, protocol {protocol}: {name}", same(
                tensor, read_file(folder / "a.pt")["value"])
    one = torch.randn(3)
    torch.save([one, one[1:], {"again": one}], folder / "a.pt")
    found = read_file(folder / "a.pt")
    yield "torch.save: shared storages", same(one, found[0]) and same(one[1:], found[1]) and same(
        one, found[2]["again"])
    linear = torch.nn.Linear(3, 2)
    torch.save(linear.state_dict(), folder / "a.pt")
    found = read_file(folder / "a.pt")
    yield "torch.save: a state_dict", list(found) == ["weight", "bias"] and same(
        linear.weight, found["weight"])
    plain = {"size": one.shape, "type": torch.bfloat16, "device": torch.device("cpu"),
             "n": [1, 2.5], "o": collections.OrderedDict(a=(None, True))}
    torch.save(plain, folder / "a.pt")
    found = read_file(folder / "a.pt")
    yield "torch.save: sizes, types, plain data", (
        found["size"] == (3,) and found["type"].dtype == ml_dtypes.bfloat16
        and found["n"] == [1, 2.5] and found["o"] == {"a": (None, True)})
    for bad, word in ((one.as_subclass(Subclass), "Subclass"), (linear, "Linear"),
                      (argparse.Namespace(x=1), "argparse.Namespace"), (np.float64(1), "numpy")):
        torch.save({"good": one, "bad": bad}, folder / "a.pt")
        found = read_file(folder / "a.pt")
        yield f"torch.save: {word} is refused by name", same(one, found["good"]) and isinstance(
            found["bad"], Refused) and word in found["bad"].why
    torch.save(one, folder / "a.pt", _use_new_zipfile_serialization=False)
    try:
        read_file(folder / "a.pt")
        yield "torch.save: the older form", False
    except Exception as error:
        yield "torch.save: the older form", "before torch 1.6" in str(error)


def dtensor_check(folder):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29872")
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    whole = torch.arange(6.0).reshape(3, 2)
    torch.save({"value": distribute_tensor(whole, init_device_mesh("cpu", (1,)), [Shard(0)])},
               folder / "a.pt")
    torch.distributed.destroy_process_group()
    found = read_file(folder / "a.pt")["value"]
    yield "torch.save: the local part of a DTensor", same(whole, found)


def write_checks(folder):
    for dtype in FLOATS[:6] + INTEGERS[:6]:
        array = np.arange(6).reshape(2, 3).astype(
            getattr(ml_dtypes, str(dtype)[6:], None) or str(dtype)[6:])
        save_torch({"value": array, "view": View(array, 1, (2,), (2,)), "meta": {"step": 1}},
                   folder / "b.pt")
        found = torch.load(folder / "b.pt", weights_only=True)
        yield f"torch.load of the tests' file: {dtype}", (
            found["value"].dtype == dtype and bits(found["value"]) == array.tobytes()
            and bits(found["view"]) == array.reshape(-1)[[1, 3]].tobytes()
            and found["meta"] == {"step": 1})
    try:
        from safetensors.torch import load_file, save_file
    except ImportError:
        return
    of = {n: torch.randn(2, 3).to(getattr(torch, n)) for n in SAFETENSORS}
    save_file(of, folder / "c.safetensors")
    found = read_file(folder / "c.safetensors")
    yield "safetensors: what it writes is read", all(same(t, found[n]) for n, t in of.items())
    arrays = {n: a.load() for n, a in found.items()}
    save_safetensors(arrays, folder / "d.safetensors")
    back = load_file(folder / "d.safetensors")
    right = all(bits(back[n]) == bits(t) for n, t in of.items())
    yield "safetensors: it reads the tests' file", right


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for checks in (read_checks, dtensor_check, write_checks):
            for what, right in checks(folder):
                print("right " if right else "WRONG ", what)
                failed += not right
    print(f"torch {torch.__version__}: {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
