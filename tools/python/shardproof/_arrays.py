"""NumPy arrays as the library takes and gives them: without a copy where type and order allow."""
from __future__ import annotations

import ctypes
from typing import Any, Sequence, Tuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ._library import Error, Handle

Array = npt.NDArray[Any]

# NumPy's types, and what a trace calls them. Other floats and integers are widened, which changes
# no number.
_ENCODINGS = {np.dtype(np.float64): "f64", np.dtype(np.float32): "f32", np.dtype(np.float16): "f16",
              np.dtype(ml_dtypes.bfloat16): "bf16", np.dtype(np.int8): "int8",
              np.dtype(np.int32): "int32", np.dtype(np.int64): "int64"}
_WIDENED = {np.dtype(ml_dtypes.float8_e4m3fn): np.float32,
            np.dtype(ml_dtypes.float8_e5m2): np.float32,
            np.dtype(np.uint8): np.int32, np.dtype(np.int16): np.int32,
            np.dtype(np.uint16): np.int32, np.dtype(np.bool_): np.int32,
            np.dtype(np.uint32): np.int64}


def encoded(name: str, value: Any) -> Tuple[Array, str]:
    """An array that the library can read, row-major and little-endian, and its encoding. It is the
    given one where that has this form."""
    array = np.asarray(value)
    dtype = array.dtype.newbyteorder("=")
    wider = _WIDENED.get(dtype)
    if wider is not None:
        array = array.astype(wider)
        dtype = array.dtype
    if dtype not in _ENCODINGS:
        raise Error("dump_value", f"{name}: an array of {array.dtype}; legal: f64, f32, f16, bf16, "
                                  "f8, integers of up to 64 bits")
    return np.ascontiguousarray(array, dtype=dtype), _ENCODINGS[dtype]


def as_f32(name: str, value: Any) -> Array:
    """An array of f32, if that holds every number of it."""
    array = np.asarray(value)
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(array, dtype=np.float32)
    if not np.array_equal(rounded.astype(np.float64), array.astype(np.float64), equal_nan=True):
        raise Error("weights_type", f"{name}: an array of {array.dtype} with numbers that f32 has "
                                    "not; round them first")
    return rounded


def view(handle: Handle, kind: str, name: str, shape: Sequence[int], dtype: Any) -> Array:
    """A read-only array on the library's own memory, which it keeps alive."""
    address = handle.data(kind, name)
    count = int(np.prod(shape, dtype=np.int64))
    if not address or count == 0:
        return np.zeros(tuple(shape), dtype)
    buffer = (ctypes.c_byte * (count * np.dtype(dtype).itemsize)).from_address(address)
    buffer._handle = handle  # the array's base keeps it
    array = np.frombuffer(buffer, dtype=dtype).reshape(tuple(shape))
    array.flags.writeable = False
    return array
