"""npy and npz, without pickles."""
from __future__ import annotations

import ast
import io
import pathlib
import re
from typing import BinaryIO, Dict, NamedTuple, Tuple, Union

import numpy as np

from .._arrays import Array
from .._library import Error
from .arrays import FileArray, Refused, mapped
from .element_types import DType
from .limits import MOST_NPY_HEADER, count_of, refuse, require_bytes
from .zip_file import Member, members, unpacked


class _Header(NamedTuple):
    bytes: int
    shape: Tuple[int, ...]
    dtype: DType
    columns_first: bool


def _header(what: str, file: BinaryIO) -> _Header:
    start = file.read(8)
    if len(start) < 8 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        refuse("import_container", f"{what} is not an array of NumPy; write it with numpy.save")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > MOST_NPY_HEADER:
        refuse("import_limit", f"{what} has a header of {length} bytes; at most {MOST_NPY_HEADER}")
    text = file.read(length)
    try:
        said = ast.literal_eval(text.decode("latin1").strip())
        kind, columns_first, shape = said["descr"], said["fortran_order"], said["shape"]
        if not (len(said) == 3 and isinstance(columns_first, bool) and isinstance(shape, tuple)
                and all(type(n) is int for n in shape)):
            raise ValueError
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        refuse("import_container", f"{what} has no header of NumPy's; write it with numpy.save")
    if isinstance(kind, str) and kind in ("|V2", "<V2", "V2"):
        kind = "<u2"  # words of bf16
    if not (isinstance(kind, str) and re.fullmatch(r"[<>|=]?(f[248]|[iu][1248]|b1)", kind)):
        said = repr(kind)[:100] if isinstance(kind, str) else type(kind).__name__
        refuse("import_type", f"{what} has elements {said}; legal: floats, integers and bools: "
                              "objects would be pickles, which are not run")
    return _Header(8 + width + length, shape, np.dtype(kind), columns_first)


def _ordered(flat: Array, header: _Header) -> Array:
    if header.columns_first:
        return flat.reshape(header.shape[::-1]).transpose()
    return flat.reshape(header.shape)


def _sized(what: str, header: _Header, stored: int) -> int:
    count: int = count_of(what, header.shape) * header.dtype.itemsize
    require_bytes(what, count, stored)
    return count


def read_npy(path: pathlib.Path) -> FileArray:
    """The array of a file."""
    with open(path, "rb") as file:
        header = _header(str(path), file)
        end = file.seek(0, 2)
    return _stored(path, str(path), 0, end, header)


def _stored(path: pathlib.Path, what: str, offset: int, size: int, header: _Header) -> FileArray:
    count = _sized(what, header, size)
    if header.bytes + count > size:
        refuse("import_container", f"{what} ends after {size} bytes, and its header says "
                                   f"{header.bytes + count}; copy it again")

    def load() -> Array:
        return _ordered(mapped(path, offset + header.bytes, count).view(header.dtype), header)

    return FileArray(what, header.shape, header.dtype, load)


def _compressed(path: pathlib.Path, what: str, member: Member) -> FileArray:
    header = _header(what, io.BytesIO(unpacked(path, member, MOST_NPY_HEADER + 16)))
    count = _sized(what, header, member.stored)

    def load() -> Array:
        data = unpacked(path, member, header.bytes + count)
        if len(data) != header.bytes + count:
            refuse("import_container", f"{what} ends before its header says; copy it again")
        return _ordered(np.frombuffer(data, header.dtype, offset=header.bytes), header)

    return FileArray(what, header.shape, header.dtype, load)


def read_npz(path: pathlib.Path) -> Dict[str, Union[FileArray, Refused]]:
    """The arrays of an archive, by name; a Refused for one that cannot be read."""
    found: Dict[str, Union[FileArray, Refused]] = {}
    for name, member in members(path).items():
        what = f"{path}: {name}"
        try:
            if member.method:
                array = _compressed(path, what, member)
            else:
                head = mapped(path, member.offset, min(member.stored, MOST_NPY_HEADER + 16))
                header = _header(what, io.BytesIO(head.tobytes()))
                array = _stored(path, what, member.offset, member.stored, header)
        except Error as error:
            found[name] = Refused(error.message)
            continue
        found[name[:-4] if name.endswith(".npy") else name] = array
    return found
