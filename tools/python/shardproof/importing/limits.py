"""What files of others may hold at most, so that none takes more memory or time than it says."""
from __future__ import annotations

import pathlib
from typing import Any, NoReturn, Tuple, Union

import numpy as np

from .._arrays import Array
from .._library import Error

PathLike = Union[str, "pathlib.Path"]

MOST_FILES = 1_000_000          # of a directory
MOST_ENTRIES = 100_000          # of an archive
MOST_DIRECTORY = 16 << 20       # bytes of an archive's table of contents
MOST_PICKLE = 4 << 20           # bytes of data.pkl
MOST_HEADER = 16 << 20          # bytes of a header of safetensors
MOST_WORDS = 16 * MOST_ENTRIES  # lists, objects and their entries in it, each a small object
MOST_NPY_HEADER = 10_000        # bytes of a header of npy, as NumPy allows
MOST_VALUE = 4 << 30            # bytes of one value
MOST_UNPACKED = 64 << 20        # bytes of a value that is larger than what is stored of it
MOST_DIMS = 8
MOST_TEXT = 1 << 20             # bytes of a file of names, or of ids


def refuse(label: str, message: str) -> NoReturn:
    raise Error(label, message)


def require_bytes(what: str, count: int, stored: int) -> None:
    """Refuses a value that is too large, or is much larger than what is stored of it."""
    if count > MOST_VALUE:
        refuse("import_limit", f"{what} has {count} bytes; at most {MOST_VALUE}: dump fewer rows")
    if count > MOST_UNPACKED and count > 100 * stored:
        refuse("import_limit", f"{what} has {count} bytes, stored in {stored}; at most 100 times "
                               "as many: store it without compression, and views as copies")


def read_text(path: PathLike, label: str, remedy: str) -> bytes:
    """What a file of names or of ids holds. Raises Error of this label if it cannot be read, and
    import_limit, which says the remedy, if it is too long."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_TEXT + 1)
    except OSError as error:
        refuse(label, f"{path} cannot be read: {error.strerror}")
    if len(text) > MOST_TEXT:
        refuse("import_limit", f"{path} has more than {MOST_TEXT} bytes; {remedy}")
    return text


def zeros(what: str, shape: Tuple[int, ...], dtype: Any) -> Array:
    """An array of zeros. Raises Error import_limit for one that is too large."""
    require_bytes(what, count_of(what, shape) * np.dtype(dtype).itemsize, MOST_VALUE)
    out: Array = np.zeros(shape, dtype)
    return out


def count_of(what: str, shape: Tuple[int, ...]) -> int:
    """The number of elements of a shape."""
    if len(shape) > MOST_DIMS:
        refuse("import_limit", f"{what} has {len(shape)} dims; at most {MOST_DIMS}")
    count = 1
    for n in shape:
        if not -1 << 62 < n < 1 << 62:
            refuse("import_container", f"{what} has a dim of more than 62 bits")
        if n < 0:
            refuse("import_container", f"{what} has a dim of {n} elements")
        count *= n
    return count
