"""Readers of files of others: what they read, and that hostile ones end in one Error."""
import io
import pathlib
import pickle
import re
import textwrap
import tracemalloc
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shardproof as sp
import shardproof.importing
from shardproof.importing import limits
from shardproof.importing.arrays import FileArray, Refused
from shardproof.importing.folders import read_file
from torch_files import BF16, Call, Global, View, save_safetensors, save_torch

TYPES = [np.float64, np.float32, np.float16, BF16, np.int64, np.int32, np.int16, np.int8, np.uint8,
         np.bool_, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def torch_of(tmp_path, obj, **how):
    save_torch(obj, tmp_path / "a.pt", **how)
    return read_file(tmp_path / "a.pt")


def error_of(path):
    with pytest.raises(sp.Error) as error:
        value = read_file(path)
        if isinstance(value, FileArray):
            value.load()
    return error.value


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("protocol", [2, 4])
def test_tensors_of_every_type(tmp_path, dtype, protocol):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    found = torch_of(tmp_path, {"value": array, "meta": {"step": 3}}, protocol=protocol)
    assert found["value"].shape == (2, 3) and found["value"].dtype == array.dtype
    assert found["value"].load().tobytes() == array.tobytes()
    assert found["meta"] == {"step": 3}


def test_views_have_offset_and_strides(tmp_path):
    base = np.arange(12, dtype=np.float32)
    found = torch_of(tmp_path, [View(base, 1, (3, 2), (2, 3)), View(base, 5, (), ()),
                                View(base, 2, (4, 3), (0, 1)), View(base, 12, (0, 4), (4, 1))])
    assert np.array_equal(found[0].load(), [[1, 4], [3, 6], [5, 8]])
    assert found[1].load() == 5 and found[3].load().shape == (0, 4)
    assert np.array_equal(found[2].load(), [[2, 3, 4]] * 4)


def test_plain_data(tmp_path):
    import collections
    plain = {"a": [1, -2, 2.5, None, True, "\u00e9", (1, (2,))], 3: {"b": 2**40},
             "o": collections.OrderedDict(x=1)}
    assert torch_of(tmp_path, plain) == {**plain, "o": {"x": 1}}


def test_parameters_sizes_types_and_local_parts(tmp_path):
    array = np.arange(3, dtype=np.float32)
    found = torch_of(tmp_path, {
        "p": Call("torch._utils", "_rebuild_parameter", array, True, {}),
        "s": Call("torch", "Size", (1, 2)), "t": Global("torch", "bfloat16"),
        "d": Call("torch._tensor", "_rebuild_from_type_v2",
                  Global("torch._utils", "_rebuild_wrapper_subclass"),
                  Global("torch.distributed.tensor", "DTensor"), (),
                  (None, {"_local_tensor": array, "_spec": Call("torch.x", "DTensorSpec")}))})
    assert np.array_equal(found["p"].load(), array) and np.array_equal(found["d"].load(), array)
    assert found["s"] == (1, 2) and found["t"].dtype == BF16


class Evil:
    def __reduce__(self):
        return (pathlib.Path.write_text, (pathlib.Path("/tmp/shardproof-was-here"), "x"))


@pytest.mark.parametrize("bad, name", [
    (Call("os", "system", "true"), "os.system"), (Call("builtins", "eval", "1"), "builtins.eval"),
    (Global("numpy.core.multiarray", "scalar"), "numpy.core.multiarray.scalar"),
    (Call("torch.storage", "_load_from_bytes", b""), "torch.storage._load_from_bytes"),
    (pathlib.Path("a"), f"{pathlib.PosixPath.__module__}.PosixPath"),  # 3.13: pathlib._local
    ({1, 2}, "set")])
def test_what_is_not_plain_is_refused_by_name_and_costs_itself_alone(tmp_path, bad, name):
    array = np.ones(2, np.float32)
    for protocol in (2, 4):
        found = torch_of(tmp_path, {"good": array, "bad": bad, "inside": [bad, 5]},
                         protocol=protocol)
        assert np.array_equal(found["good"].load(), array) and found["inside"][1] == 5
        assert isinstance(found["bad"], Refused) or name == "numpy.core.multiarray.scalar"
        assert name in found["bad"].why


def test_nothing_of_a_pickle_is_run(tmp_path):
    gone = pathlib.Path("/tmp/shardproof-was-here")
    gone.unlink(missing_ok=True)
    for protocol in (0, 1, 2, 3, 4, 5):
        text = pickle.dumps({"value": Evil()}, protocol)
        try:
            torch_of(tmp_path, None, pickled=text)
        except sp.Error as error:
            assert error.label == "import_container"
        assert not gone.exists()


@pytest.mark.parametrize("text, words", [
    (b"", "ends within"), (b"\x80\x02]q", "ends within"), (b"\x80\x02.", "stack is empty"),
    (b"\x80\x02t.", "no mark"), (b"\x80\x02h\x05.", "nothing is stored as 5"),
    (b"\x80\x02K\x01K\x02R.", "not a function"), (b"\x80\x02K\x01)R.", "not a function"),
    (b"\x80\x02]K\x01s.", "items of no dict"), (b"\x80\x02K\x01K\x02K\x03s.", "items of no dict"),
    (b"\x80\x02K\x01K\x02a.", "items of no list"), (b"I12\n.", "opcode 'I'"),
    (b"\x80\x02X\xff\xff\xff\xffa.", "ends within"), (b"\x80\x02iabc\ndef\n.", "opcode 'i'")])
def test_broken_pickles(tmp_path, text, words):
    save_torch(None, tmp_path / "a.pt", pickled=text)
    error = error_of(tmp_path / "a.pt")
    assert error.label == "import_container" and words in error.message


def test_calls_with_arguments_that_do_not_fit(tmp_path):
    array = np.ones(4, np.float32)
    rebuild = ("torch._utils", "_rebuild_tensor_v2")
    for bad in (Call(*rebuild), Call(*rebuild, 1, 0, (2,), (1,)), Call("torch", "Size", 3),
                Call("collections", "OrderedDict", [1]), View(array, 0, (5,), (1,)),
                View(array, -1, (2,), (1,)), View(array, 0, (2,), (1, 1)),
                View(array, 0, (2**40, 2**40), (0, 0)), View(array, 3, (2,), (2**62,)),
                View(array, 0, (1,) * 9, (1,) * 9), View(array, 0, (2,), (-1,))):
        found = torch_of(tmp_path, {"bad": bad, "good": array})
        assert isinstance(found["bad"], Refused) and isinstance(found["good"], FileArray)


def test_a_view_that_is_much_larger_than_its_storage(tmp_path):
    found = torch_of(tmp_path, {"v": View(np.ones(1, np.float32), 0, (1 << 28,), (0,))})
    assert "at most 100 times" in found["v"].why


def test_other_containers_than_the_archive(tmp_path):
    (tmp_path / "old.pt").write_bytes(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
    assert "before torch 1.6" in error_of(tmp_path / "old.pt").message
    (tmp_path / "no.pt").write_bytes(b"hello")
    assert "not a file of torch.save" in error_of(tmp_path / "no.pt").message
    with zipfile.ZipFile(tmp_path / "zip.pt", "w") as archive:
        archive.writestr("a.txt", "x")
    assert "without one data.pkl" in error_of(tmp_path / "zip.pt").message
    save_torch({"a": np.ones(3)}, tmp_path / "packed.pt", compress=True)
    assert "compressed" in error_of(tmp_path / "packed.pt").message
    (tmp_path / "big.pt").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "big.pt", "w") as archive:
        archive.writestr("x/byteorder", "big")
        archive.writestr("x/data.pkl", pickle.dumps(1, 2))
    assert "big-endian" in error_of(tmp_path / "big.pt").message


def test_a_missing_storage_costs_its_tensor(tmp_path):
    save_torch({"a": np.ones(3, np.float32), "b": np.zeros(2, np.float32)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as old, zipfile.ZipFile(tmp_path / "b.pt", "w") as new:
        for name in old.namelist():
            if name != "archive/data/0":
                new.writestr(name, old.read(name))
    found = read_file(tmp_path / "b.pt")
    assert "data/0 is missing" in found["a"].why and found["b"].load().shape == (2,)


# NumPy.

@pytest.mark.parametrize("compressed", [False, True])
def test_npz(tmp_path, compressed):
    values = {"c": np.arange(6.0).reshape(2, 3), "f": np.asfortranarray(np.arange(6).reshape(2, 3)),
              "big": np.arange(3, dtype=">i4"), "s": np.float32(2), "e": np.zeros((0, 2))}
    (np.savez_compressed if compressed else np.savez)(tmp_path / "a.npz", **values)
    found = read_file(tmp_path / "a.npz")
    assert {n: a.load().tolist() for n, a in found.items()} == {n: a.tolist()
                                                                for n, a in values.items()}


def test_npy_of_any_order_and_version(tmp_path):
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(tmp_path / "a.npy", "wb") as file:
            np.lib.format.write_array(file, array.T, version)
        assert np.array_equal(read_file(tmp_path / "a.npy").load(), array.T)
    np.save(tmp_path / "w.npy", np.ones(2, BF16).view("V2"))
    assert read_file(tmp_path / "w.npy").dtype == np.uint16


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["a"]), np.zeros(2, "c8"),
                                   np.zeros(2, "V3"), np.zeros(2, [("a", "f4")])])
def test_npy_of_other_types(tmp_path, array):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    error = error_of(tmp_path / "a.npy")
    assert error.label == "import_type" and "legal: floats" in error.message
    np.savez(tmp_path / "a.npz", bad=array, good=np.ones(2))
    found = read_file(tmp_path / "a.npz")
    assert "legal: floats" in found["bad.npy"].why and found["good"].load().tolist() == [1, 1]


def test_a_bomb_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("bomb.npy", "w", force_zip64=True) as file:
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, {
                "descr": "<f8", "fortran_order": False, "shape": (40 << 20,)})
            file.write(header.getvalue())
            for _ in range(320):
                file.write(bytes(1 << 20))
    tracemalloc.start()
    found = read_file(tmp_path / "a.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "at most 100 times" in found["bomb.npy"].why and peak < 10 << 20


def test_members_that_change_or_lie(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.arange(1000.0))
    raw = bytearray((tmp_path / "a.npz").read_bytes())
    raw[len(raw) // 2] ^= 1
    (tmp_path / "b.npz").write_bytes(raw)
    error = None
    try:
        value = read_file(tmp_path / "b.npz")["a"]
        if not isinstance(value, Refused):
            value.load()
    except (sp.Error, KeyError) as caught:
        error = caught
    assert error is not None or isinstance(value, Refused)
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4,)}".ljust(117) + b"\n"
        archive.writestr("a.npy", b"\x93NUMPY\1\0\x76\0" + header + bytes(8))
    assert "ends after" in read_file(tmp_path / "c.npz")["a.npy"].why


# safetensors.

def test_safetensors(tmp_path):
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(2, BF16),
               "c": np.zeros((0, 3), np.int64)}
    save_safetensors(tensors, tmp_path / "a.safetensors")
    found = read_file(tmp_path / "a.safetensors")
    assert {n: (a.dtype, a.load().tobytes()) for n, a in found.items()} == {
        n: (a.dtype, a.tobytes()) for n, a in tensors.items()}


@pytest.mark.parametrize("change, words", [
    (lambda h: h["b"].update(data_offsets=[4, 12]), "overlaps a"),
    (lambda h: h["b"].update(data_offsets=[8, 16]), "not bytes of the"),
    (lambda h: h["b"].update(data_offsets=[0, 8]), "overlaps"),
    (lambda h: h["a"].update(data_offsets=[1, 8]), "leaves a gap after the header"),
    (lambda h: h["b"].update(data_offsets=[12, 8]), "not bytes of the"),
    (lambda h: h["b"].update(data_offsets="x"), "not bytes of the"),
    (lambda h: h.update(b=3), "not bytes of the"),
    (lambda h: h.pop("b"), "behind its last tensor")])
def test_headers_of_safetensors_that_lie(tmp_path, change, words):
    save_safetensors({"a": np.ones(2, np.float32), "b": np.ones(1, np.float32)},
                     tmp_path / "a.safetensors", change)
    error = error_of(tmp_path / "a.safetensors")
    assert error.label == "import_container" and words in error.message


@pytest.mark.parametrize("change, words", [
    (lambda h: h["b"].update(shape=[3]), "12 bytes, its data_offsets 4"),
    (lambda h: h["b"].update(shape=[2**40, 2**40]), "its data_offsets 4"),
    (lambda h: h["b"].update(shape=[-1, -1]), "dim of -1"),
    (lambda h: h["b"].update(shape=1), "shape 1"),
    (lambda h: h["b"].update(dtype="Q4"), "elements 'Q4'"),
    (lambda h: h["b"].update(shape=[1] * 9), "9 dims")])
def test_tensors_of_safetensors_that_do_not_fit_cost_themselves(tmp_path, change, words):
    save_safetensors({"a": np.ones(2, np.float32), "b": np.ones(1, np.float32)},
                     tmp_path / "a.safetensors", change)
    found = read_file(tmp_path / "a.safetensors")
    assert words in found["b"].why and found["a"].load().tolist() == [1, 1]


@pytest.mark.parametrize("raw", [b"", b"\1", (100).to_bytes(8, "little") + b"{}",
                                 (2**63).to_bytes(8, "little") + b"{}",
                                 (2).to_bytes(8, "little") + b"[]",
                                 (2).to_bytes(8, "little") + b"{{",
                                 (19).to_bytes(8, "little") + b'{"a":{},"a":{"b":1}'])
def test_safetensors_that_are_none(tmp_path, raw):
    (tmp_path / "a.safetensors").write_bytes(raw)
    assert error_of(tmp_path / "a.safetensors").label == "import_container"


# Any bytes.

def samples(folder):
    save_torch({"value": np.arange(8, dtype=np.float32), "meta": {"dims": "t h", "x": [1, (2,)]}},
               folder / "s.pt")
    np.savez(folder / "s.npz", a=np.arange(4.0), b=np.ones((2, 2), np.int32))
    np.savez_compressed(folder / "p.npz", a=np.arange(4.0))
    np.save(folder / "s.npy", np.arange(4.0))
    save_safetensors({"a": np.ones(3, np.float32), "b": np.ones(1, BF16)}, folder / "s.safetensors")
    return sorted(folder.iterdir())


def leaves(value):
    if isinstance(value, FileArray):
        value.load()
    elif isinstance(value, dict):
        for one in value.values():
            leaves(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            leaves(one)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_bytes_are_an_error_or_a_value(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("fuzz")
    path = data.draw(st.sampled_from(samples(folder)))
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at:at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        raw = raw or bytearray(b"x")
    if data.draw(st.booleans()):
        raw = raw[:data.draw(st.integers(0, len(raw)))]
    path.write_bytes(raw)
    tracemalloc.start()
    try:
        leaves(read_file(path))
    except sp.Error as error:
        assert error.label in ("import_container", "import_limit", "import_type")
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 40 << 20


OPCODES = [bytes([b]) for b in b"NK(]})tlde.asu012RbQcXqrhj\x80\x81\x85\x86\x87\x88\x8a\x8c\x90"
                               b"\x92\x93\x94\x95"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(OPCODES + [
    b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch\nSize\n", b"ccollections\nOrderedDict\n",
    b"K\3", b"X\1\0\0\0a", b"cos\nsystem\n", b"q\0", b"h\0", b"\x8c\1b"]), max_size=40))
def test_any_opcodes_are_an_error_or_a_value(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("fuzz") / "a.pt"
    save_torch(None, path, pickled=b"\x80\x02" + b"".join(words) + b".")
    try:
        leaves(read_file(path))
    except sp.Error as error:
        assert error.label == "import_container"


def test_limits_are_what_the_document_says():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "importing.md").read_text()
    for count in (limits.MOST_PICKLE, limits.MOST_VALUE, limits.MOST_UNPACKED, limits.MOST_HEADER):
        size = f"{count >> 30} GiB" if count >> 30 else f"{count >> 20} MiB"
        assert size in page, size
    for count in (limits.MOST_ENTRIES, limits.MOST_FILES):
        assert f"{count:,}" in page


def test_the_document_has_every_label_and_every_example_is_read():
    root = pathlib.Path(__file__).parents[2]
    page = (root / "docs" / "importing.md").read_text()
    sources = (root / "tools" / "python" / "shardproof" / "importing").glob("*.py")
    found = [re.findall(r'"(import_\w+)"', path.read_text()) for path in sources]
    labels = {label for labels in found for label in labels}
    assert labels == set(re.findall(r"`(import_\w+)`", page))
    example = page[page.index("    # comment"):page.index("```ebnf")]
    names = sp.importing.Names.of_text(textwrap.dedent(example))
    assert [m.value for m in names.matches("blk.3.qkv")] == ["layer3.q", "layer3.k"]
