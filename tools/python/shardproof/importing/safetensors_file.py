"""safetensors: a header of JSON, which is checked before a number is read."""
from __future__ import annotations

import json
import pathlib
from typing import Any, Dict, List, Tuple, Union

from .._library import Error
from .arrays import FileArray, Refused, row_major
from .element_types import SAFETENSORS
from .limits import MOST_ENTRIES, MOST_HEADER, MOST_WORDS, count_of, refuse


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name that occurs twice")
    return found


def _header(path: pathlib.Path) -> Tuple[Dict[str, Any], int, int]:
    """The header, where the numbers begin, and how many bytes there are."""
    with open(path, "rb") as file:
        end = file.seek(0, 2)
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if end < 8 or length > end - 8:
            refuse("import_container", f"{path} says that its header has {length} bytes, and has "
                                       f"{max(end - 8, 0)} behind it; copy it again")
        if length > MOST_HEADER:
            refuse("import_limit", f"{path} has a header of {length} bytes; at most {MOST_HEADER}")
        text = file.read(length)
    if sum(text.count(mark) for mark in (b"{", b"[", b",")) > MOST_WORDS:
        refuse("import_limit", f"{path} has a header of more than {MOST_WORDS} entries; write "
                               "several files")
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
        if not isinstance(header, dict):
            raise ValueError("no object")
    except (ValueError, RecursionError) as error:
        refuse("import_container", f"{path} has a header that is not JSON: {error}; write it again")
    header.pop("__metadata__", None)
    if len(header) > MOST_ENTRIES:
        refuse("import_limit", f"{path} has {len(header)} tensors; at most {MOST_ENTRIES}")
    return header, 8 + length, end - 8 - length


def _place(name: str, said: Any, size: int) -> Tuple[int, int]:
    """Where the bytes of a tensor begin and end."""
    places = said.get("data_offsets") if isinstance(said, dict) else None
    if not (isinstance(places, list) and len(places) == 2 and all(type(n) is int for n in places)
            and 0 <= places[0] <= places[1] <= size):
        refuse("import_container", f"{name}: data_offsets {repr(places)[:100]} are not bytes of "
                                   f"the {size} that the file has; write it again")
    return places[0], places[1]


def _tensor(path: pathlib.Path, name: str, said: Any, start: int, place: Tuple[int, int]
            ) -> FileArray:
    what = f"{path}: {name}"
    shape, word = said.get("shape"), said.get("dtype")
    if not (isinstance(shape, list) and all(type(n) is int for n in shape)):
        refuse("import_container", f"{what} has the shape {repr(shape)[:100]}; write it again")
    if not isinstance(word, str) or word not in SAFETENSORS:
        refuse("import_type", f"{what} has elements {repr(word)[:100]}; legal: "
                              f"{', '.join(SAFETENSORS)}")
    dtype = SAFETENSORS[word]
    needed = count_of(what, tuple(shape)) * dtype.itemsize
    if needed != place[1] - place[0]:
        refuse("import_container", f"{what}: {word} {shape} are {needed} bytes, its data_offsets "
                                   f"{place[1] - place[0]}; write it again")
    return row_major(path, what, start + place[0], tuple(shape), dtype)


def read_safetensors(path: pathlib.Path) -> Dict[str, Union[FileArray, Refused]]:
    """The tensors of a file, by name. Raises Error import_container for a header that lies: tensors
    that overlap, gaps between them, bytes that the file has not."""
    header, start, size = _header(path)
    places = {name: _place(f"{path}: {name}", said, size) for name, said in header.items()}
    end, before = 0, "the header"
    for name, (first, last) in sorted(places.items(), key=lambda p: (p[1], p[0])):
        if first != end:
            how = "overlaps" if first < end else "leaves a gap after"
            refuse("import_container", f"{path}: {name} {how} {before}; write it again")
        end, before = last, name
    if end != size:
        refuse("import_container", f"{path} has {size - end} bytes behind its last tensor; write "
                                   "it again")
    found: Dict[str, Union[FileArray, Refused]] = {}
    for name, said in header.items():
        try:
            found[name] = _tensor(path, name, said, start, places[name])
        except Error as error:
            found[name] = Refused(error.message)
    return found
