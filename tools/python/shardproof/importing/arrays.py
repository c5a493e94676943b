"""An array that lies in a file, read when it is asked for."""
from __future__ import annotations

import mmap
import pathlib
from typing import Any, Callable, Dict, List, NamedTuple, Tuple, Union

import numpy as np

from .._arrays import Array
from .element_types import DType
from .limits import count_of, refuse, require_bytes


class FileArray:
    """Its shape and type; load() reads the numbers."""

    def __init__(self, what: str, shape: Tuple[int, ...], dtype: DType,
                 load: Callable[[], Array]) -> None:
        self.what, self.shape, self.dtype, self._load = what, shape, np.dtype(dtype), load

    def load(self) -> Array:
        array = self._load()
        if array.shape != self.shape:
            refuse("import_container", f"{self.what} has another shape than its header says")
        return array


class Refused(NamedTuple):
    """What stands in place of an object that is not read."""

    why: str


# What a container holds: arrays, and lists and dicts of them with texts and numbers.
Value = Union[FileArray, Refused, None, bool, int, float, str, bytes, List[Any], Tuple[Any, ...],
              Dict[Any, Any]]


def mapped(path: pathlib.Path, offset: int, count: int) -> Array:
    """Bytes of a file, which are read as they are used."""
    if count == 0:
        return np.zeros(0, np.uint8)
    try:
        with open(path, "rb") as file:
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        refuse("import_container", f"{path} cannot be read: {error}")
    if offset + count > len(whole):
        refuse("import_container", f"{path} ends before byte {offset + count}")
    return np.frombuffer(whole, np.uint8, count, offset)


def row_major(path: pathlib.Path, what: str, offset: int, shape: Tuple[int, ...],
              dtype: DType) -> FileArray:
    """An array that lies in a file element by element."""
    dtype = np.dtype(dtype)
    count = count_of(what, shape) * dtype.itemsize
    require_bytes(what, count, count)
    return FileArray(what, shape, dtype,
                     lambda: mapped(path, offset, count).view(dtype).reshape(shape))
