"""Directories of dumps: which files hold which arrays of which rank and step."""
from __future__ import annotations

import collections
import os
import pathlib
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from .._library import Error
from .._reports import Left
from .arrays import FileArray, Refused, Value
from .limits import MOST_ENTRIES, MOST_FILES, refuse
from .numpy_file import read_npy, read_npz
from .safetensors_file import read_safetensors
from .torch_file import read_torch

SUFFIXES = (".pt", ".pth", ".bin", ".npy", ".npz", ".safetensors")
_MOST_NESTING = 8


class Record(NamedTuple):
    """An array of a dump: its name there, and where it lies."""

    name: str
    step: int
    rank: int
    layer: Optional[int]
    path: pathlib.Path
    key: Optional[Tuple[Any, ...]]          # where in its container; None: in "value"
    places: Mapping[str, int]               # of the file's name: {"tp_rank": 1}

    @property
    def what(self) -> str:
        return f"{self.name} (step {self.step}, rank {self.rank})"


def files_of(directory: pathlib.Path) -> List[pathlib.Path]:
    """The files of a directory and of those in it. Links are not followed: they could lead out."""
    if directory.is_file():
        return [directory]
    if not directory.is_dir():
        refuse("import_path", f"{directory} is not a directory; give the one that the dumper wrote")
    found: List[pathlib.Path] = []
    for folder, inside, names in os.walk(directory, followlinks=False):
        inside.sort()
        if len(pathlib.Path(folder).relative_to(directory).parts) > _MOST_NESTING:
            refuse("import_limit", f"{folder} is more than {_MOST_NESTING} folders deep")
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.suffix in SUFFIXES and not path.is_symlink() and path.is_file():
                found.append(path)
        if len(found) > MOST_FILES:
            refuse("import_limit", f"{directory} has more than {MOST_FILES} files; give "
                                   "a part of it")
    if not found:
        refuse("import_path", f"{directory} has no file that is read; legal: {', '.join(SUFFIXES)}")
    return found


def read_file(path: pathlib.Path) -> Value:
    """What a file holds, by its suffix."""
    try:
        if path.suffix == ".npy":
            return read_npy(path)
        if path.suffix == ".npz":
            return dict(read_npz(path))
        if path.suffix == ".safetensors":
            return dict(read_safetensors(path))
        return read_torch(path)
    except OSError as error:
        refuse("import_container", f"{path} cannot be read: {error.strerror}")
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, MemoryError) as error:
        # Readers refuse by name what they know to be wrong; a hostile file may have found more.
        refuse("import_container", f"{path} is not a complete {path.suffix}: "
                                   f"{type(error).__name__} while it was read; write it again")


class Files:
    """Containers that were opened, the last few of them."""

    def __init__(self, most: int = 128) -> None:
        self._open: "collections.OrderedDict[pathlib.Path, Value]" = collections.OrderedDict()
        self._most = most

    def root(self, path: pathlib.Path) -> Value:
        if path not in self._open:
            self._open[path] = read_file(path)
            if len(self._open) > self._most:
                self._open.popitem(last=False)
        self._open.move_to_end(path)
        return self._open[path]

    def value(self, record: Record) -> Tuple[Value, Mapping[str, Any]]:
        """The array of a record, and what the dumper says beside it. Raises Error import_container
        for what cannot be read."""
        root = self.root(record.path)
        meta: Mapping[str, Any] = {}
        if record.key is not None:
            for key in record.key:
                root = root[key]  # type: ignore[index]  # the keys were found in it
        elif isinstance(root, dict) and "value" in root:
            said = root.get("meta")
            meta = said if isinstance(said, dict) else {}
            root = root["value"]
        if isinstance(root, Refused):
            refuse("import_container", f"{record.path}: {root.why}")
        return root, meta


def _tags(stem: str) -> Dict[str, str]:
    """The dumper's `step=0___rank=1___name=q`."""
    tags: Dict[str, str] = {}
    for part in stem.split("___"):
        key, equals, value = part.partition("=")
        if equals:
            tags[key] = value
    return tags


def _number(text: Optional[str]) -> Optional[int]:
    return int(text) if text is not None and re.fullmatch(r"\d{1,9}", text) else None


def _dumped(path: pathlib.Path, tags: Mapping[str, str]) -> Optional[Record]:
    step = _number(tags.get("step", tags.get("forward_pass_id")))
    rank = _number(tags.get("rank"))
    if step is None or rank is None or "name" not in tags:
        return None
    places = {k: int(v) for k, v in tags.items()
              if re.fullmatch(r"\w+_(rank|size)", k) and _number(v) is not None}
    return Record(tags["name"], step, rank, _number(tags.get("layer_id")), path, None, places)


_PASS_FOLDER = re.compile(r"TP(\d{1,6})_PP(\d{1,6})_Rank(\d{1,6})_pid\d+")
_PASS_FILE = re.compile(r"Pass(\d{1,9})")
_RANK = re.compile(r"rank[_-]?(\d{1,6})", re.I)
_STEP = re.compile(r"step[_-]?(\d{1,9})", re.I)


def _place(path: pathlib.Path, directory: pathlib.Path, alone: bool
           ) -> Tuple[str, int, int, Dict[str, int]]:
    """Name, step, rank and places that the folders of a file and its own name say. The file's own
    name is part of it if it holds one array, `alone`."""
    inside = path.relative_to(directory) if path != directory else pathlib.Path(path.name)
    words = list(inside.parts[:-1]) + inside.stem.split(".")
    rank, step, places, name = 0, 0, {}, []
    for i, word in enumerate(words):
        older = _PASS_FOLDER.fullmatch(word)
        if older:
            rank = int(older.group(3))
            places = {"tp_rank": int(older.group(1)), "pp_rank": int(older.group(2))}
        elif _PASS_FILE.fullmatch(word):
            step = int(word[4:])
        elif _RANK.fullmatch(word):
            rank = int(_RANK.fullmatch(word).group(1))  # type: ignore[union-attr]
        elif _STEP.fullmatch(word):
            step = int(_STEP.fullmatch(word).group(1))  # type: ignore[union-attr]
        elif alone or i < len(inside.parts) - 1:
            name.append(word)
    return ".".join(name), step, rank, places


def _leaves(value: Value, key: Tuple[Any, ...], budget: List[int]) -> Iterator[Tuple[Any, ...]]:
    """The keys of the arrays, and of what is not read, in nested dicts and lists."""
    budget[0] -= 1
    if budget[0] < 0:
        refuse("import_limit", f"a file of more than {MOST_ENTRIES} entries")
    if isinstance(value, (FileArray, Refused)):
        yield key
    elif isinstance(value, (dict, list, tuple)) and len(key) < _MOST_NESTING:
        for k, v in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(v, key + (k,), budget)


def records_of(directory: pathlib.Path, files: Files, left: List[Left]) -> Iterator[Record]:
    """The arrays of a directory, file by file. A file that cannot be read is listed."""
    for path in files_of(directory):
        dumped = _dumped(path, _tags(path.name[:-len(path.suffix)]))
        if dumped is not None:
            yield dumped
            continue
        try:
            keys = list(_leaves(files.root(path), (), [MOST_ENTRIES]))
        except Error as error:
            inside = path.relative_to(directory) if path != directory else path.name
            left.append(Left(str(inside), error.message))
            continue
        name, step, rank, places = _place(path, directory, keys == [()])
        for key in keys:
            inner = ".".join(str(k) for k in key)
            full = inner if places else ".".join(w for w in (name, inner) if w)
            yield Record(full, step, rank, None, path, key, places)
