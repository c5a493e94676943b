"""Hostile files of the forms that are read: one Error, or what is wrong costs itself."""
import tracemalloc

import numpy as np
import pytest

import shardproof as sp
import shardproof.importing
from shardproof.importing.arrays import Refused
from shardproof.importing.folders import read_file
from torch_files import save_safetensors, save_torch


def error_of(path):
    with pytest.raises(sp.Error) as error:
        read_file(path)
    return error.value


LONG = 10**4200


def npy(folder, shape, kind="'<f4'"):
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}".encode() + b"\n"
    (folder / "a.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    return folder / "a.npy"


@pytest.mark.parametrize("shape, kind", [
    (f"({LONG}, {LONG})", "'<f4'"), (f"({hex(16**8000)},)", "'<f4'"),
    (f"(-{hex(16**8000)},)", "'<f4'"), ("(1,)", hex(16**8000)), ("(1,)", f"[{hex(16**8000)}]")],
                         ids=["decimal", "hex", "below none", "type", "types"])
def test_numbers_of_thousands_of_digits_in_npy(tmp_path, shape, kind):
    assert "\n" not in error_of(npy(tmp_path, shape, kind)).message


@pytest.mark.parametrize("change", [
    lambda h: h["b"].update(shape=[LONG, LONG]), lambda h: h["b"].update(shape=[-LONG]),
    lambda h: h["b"].update(dtype=[]), lambda h: h["b"].update(dtype={}),
    lambda h: h["b"].update(dtype="x" * 5000), lambda h: h["b"].update(shape="x" * 5000)])
def test_tensors_of_safetensors_of_anything_cost_themselves(tmp_path, change):
    save_safetensors({"a": np.ones(2, np.float32), "b": np.ones(1, np.float32)},
                     tmp_path / "a.safetensors", change)
    found = read_file(tmp_path / "a.safetensors")
    assert len(found["b"].why) < 500 and found["a"].load().tolist() == [1, 1]


@pytest.mark.parametrize("part", ["{}", "[]", "1"])
def test_a_header_of_many_small_things_takes_little_memory(tmp_path, part):
    text = b'{"a":[' + b",".join([part.encode()] * 4_000_000) + b"]}"
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    tracemalloc.start()
    error = error_of(tmp_path / "a.safetensors")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.label == "import_limit" and peak < 40 << 20


def test_calls_within_calls_and_of_many_arguments_cost_themselves(tmp_path):
    call = b"ctorch._tensor\n_rebuild_from_type_v2\n"
    nested = b"(" + call + b"K\1"
    deep = call + nested * 5000 + b")" + b"t" * 5000 + b"R"
    many = b"ctorch\ndevice\n(" + b"K\1" * 17 + b"tR"
    wrapped = call + b"(ctorch\ndevice\nK\1(" + b"K\1" * 17 + b"ttR"
    few = b"ctorch\ndevice\n(" + b"K\1" * 16 + b"tR"
    save_torch(None, tmp_path / "a.pt", pickled=b"\x80\2]" + b"".join(
        one + b"a" for one in (deep, many, wrapped, few)) + b".")
    found = read_file(tmp_path / "a.pt")
    assert [type(one) for one in found] == [Refused, Refused, Refused, str]
    assert "17 arguments; at most 16" in found[1].why


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError, OverflowError, RecursionError,
                                   MemoryError])
def test_what_a_reader_does_not_know_is_one_error(tmp_path, error, monkeypatch):
    def fail(path):
        raise error("odd")

    monkeypatch.setattr(sp.importing.folders, "read_npy", fail)
    told = error_of(tmp_path / "a.npy")
    assert told.label == "import_container" and error.__name__ in told.message
