"""A trace as a file, value by value."""
from __future__ import annotations

import json
import os
import pathlib
import tempfile
import zipfile
from typing import Any, Dict, Iterable, Mapping

import numpy as np

from .._arrays import encoded
from .._library import Error
from .._reports import Left
from .dump import Item
from .limits import PathLike, refuse


_write_array: Any = np.lib.format.write_array


def _path(item: Item) -> str:
    if item.chip is None:
        return item.name
    return "chips/{}_{}_{}/".format(*item.chip) + item.name


def _said(item: Item, encoding: str) -> Dict[str, str]:
    said = dict(item.attributes)
    if item.layout is not None:
        said["layout"] = item.layout
    if encoding == "bf16":
        said["encoding"] = "bf16"
    return said


class _Npz:
    def __init__(self, path: str) -> None:
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._values: Dict[str, Dict[str, str]] = {}

    def add(self, item: Item) -> None:
        array, encoding = encoded(item.name, item.array)
        self._values[item.name] = _said(item, encoding)
        words = array.view(np.uint16) if encoding == "bf16" else array
        with self._archive.open(_path(item) + ".npy", "w", force_zip64=True) as file:
            _write_array(file, words, allow_pickle=False)

    def close(self, attributes: Mapping[str, Any]) -> None:
        text = np.array(json.dumps({**attributes, "values": self._values}))
        with self._archive.open("shardproof.npy", "w") as file:
            _write_array(file, text, allow_pickle=False)
        self._archive.close()


def save_npz(items: Iterable[Item], case: str, attributes: Mapping[str, str], path: PathLike,
         left: "list[Left]") -> int:
    """Writes the values to PATH.npz, which appears whole or not at all; returns their
    number. Raises Error import_out for another suffix, or a place that cannot be written."""
    target = pathlib.Path(path)
    if target.suffix != ".npz":
        refuse("import_out", f"{target}; legal: a path that ends in .npz or .h5")
    line, _, text = case.partition("\n")
    said: Dict[str, Any] = {"format": "shardproof trace", "version": 1, "case": line, **attributes}
    if text:
        said["text_of_model"] = text
    names, failed = set(), set()
    try:
        handle, temporary = tempfile.mkstemp(target.suffix, ".shardproof-", target.parent)
        os.close(handle)
        try:
            file = _Npz(temporary)
            for item in items:
                try:
                    file.add(item)
                    names.add(item.name)
                except Error as error:
                    failed.add(item.name)
                    left.append(Left(item.name, error.message))
            file.close(said)
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        refuse("import_out", f"{target} cannot be written: {error.strerror or error}")
    return len(names - failed)
