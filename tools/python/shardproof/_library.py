"""The C interface (tools/binding/shardproof.h), loaded by ctypes: one wheel for every Python. A
call releases the GIL, and nothing is global: objects of different threads do not meet."""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
import platform
import re
from typing import Any, Optional, Tuple

_INTERFACE = 3


class Error(Exception):
    """A caller's mistake, in one line: `label` names the rule that is broken, as
    `shardproof explain --rule LABEL` explains it."""

    def __init__(self, label: str, message: str) -> None:
        super().__init__(f"{label}: {message}")
        self.label = label
        self.message = message


def library_path() -> pathlib.Path:
    """Where the library is: beside this file, or where SHARDPROOF_LIBRARY says."""
    given = os.environ.get("SHARDPROOF_LIBRARY")
    return pathlib.Path(given) if given else pathlib.Path(__file__).parent / "libshardproof.so"


_TEXT, _OBJECT = ctypes.c_char_p, ctypes.c_void_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_SEED = ctypes.c_uint64
# Arguments of the functions that answer in JSON. Results are addresses, which must be freed.
_ANSWERS: "dict[str, list[Any]]" = {
    "layout": [_TEXT], "blocks": [_TEXT, _TEXT, _TEXT],
    "case": [_TEXT], "draw": [_SEED, _SEED], "simpler": [_TEXT], "verify": [_TEXT],
    "weights_generate": [_TEXT, _SEED, _OUT], "weights_load": [_TEXT, _OUT],
    "weights_import": [_TEXT, _TEXT, _TEXT, _TEXT, _OUT],
    "weights_of": [_TEXT, _TEXT, ctypes.POINTER(ctypes.c_void_p), _OUT],
    "mapped": [_TEXT, _TEXT, _TEXT, _OUT], "mapped_list": [_OBJECT],
    "mapped_weights": [_OBJECT, _TEXT, ctypes.POINTER(ctypes.c_void_p), _OUT],
    "mapped_files": [_OBJECT, _TEXT, _OUT],
    "weights_list": [_OBJECT], "weights_save": [_OBJECT, _TEXT],
    "reference": [_TEXT, _OBJECT, _OUT], "reference_list": [_OBJECT],
    "dump": [_TEXT, _OUT], "dump_load": [_TEXT, _OUT],
    "dump_add": [_OBJECT, _TEXT, ctypes.c_void_p, ctypes.c_size_t],
    "dump_lend": [_OBJECT, _TEXT, ctypes.c_void_p, ctypes.c_size_t],
    "dump_save": [_OBJECT, _TEXT],
    "compare": [_OBJECT, _OBJECT, _TEXT, _OUT], "comparison": [_OBJECT, _TEXT],
    "compare_pair": [_OBJECT, _OBJECT, _OBJECT, _OBJECT, _TEXT, _OUT], "pair": [_OBJECT, _TEXT],
}


def _require_processor() -> None:
    """The library is compiled for AVX2: without it, loading it would end the process."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return
    if "flags" in flags and not re.search(r"^flags\s*:.*\bavx2\b", flags, re.M):
        raise ImportError("shardproof: this processor has no AVX2, which the package is compiled "
                          "for")


def _load() -> ctypes.CDLL:
    _require_processor()
    path = library_path()
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"shardproof: its library cannot be loaded: {error}") from None
    loaded.shardproof_missing_feature.restype = _TEXT
    missing = loaded.shardproof_missing_feature()
    if missing:
        raise ImportError(f"shardproof: this processor has no {missing.decode()}, which the "
                          "package is compiled for")
    if loaded.shardproof_interface() != _INTERFACE:
        raise ImportError(f"shardproof: {path} is of another version than this package")
    for name, arguments in _ANSWERS.items():
        function = getattr(loaded, "shardproof_" + name)
        function.argtypes, function.restype = arguments, ctypes.c_void_p
    loaded.shardproof_free.argtypes = loaded.shardproof_release.argtypes = [ctypes.c_void_p]
    loaded.shardproof_free.restype = loaded.shardproof_release.restype = None
    for name in ("weights_data", "reference_data"):
        function = getattr(loaded, "shardproof_" + name)
        function.argtypes, function.restype = [_OBJECT, _TEXT], ctypes.c_void_p
    return loaded


_library = _load()


class Handle:
    """An object of the library, released with the last Python object that refers to it."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __del__(self) -> None:
        if self.address:
            _library.shardproof_release(self.address)

    def data(self, kind: str, name: str) -> Optional[int]:
        """The address of an array in it, valid as long as this object lives."""
        found: Optional[int] = getattr(_library, f"shardproof_{kind}_data")(self.address,
                                                                            name.encode())
        return found


def _argument(given: Any) -> Any:
    if isinstance(given, str):
        if "\0" in given:
            raise Error("binding_text", "a text with a zero character")
        return given.encode("utf-8", "surrogateescape")
    return given.address if isinstance(given, Handle) else given


def call(name: str, *arguments: Any) -> Any:
    """The result of a function; raises Error for its error."""
    text = getattr(_library, "shardproof_" + name)(*map(_argument, arguments))
    if not text:
        raise MemoryError("shardproof")
    try:
        answer = json.loads(ctypes.string_at(text).decode("utf-8"))
    finally:
        _library.shardproof_free(text)
    if isinstance(answer, dict) and "error" in answer:
        raise Error(answer["error"]["label"], answer["error"]["message"])
    return answer


def make_told(name: str, *arguments: Any) -> Tuple[Handle, Any]:
    """The object that a function makes, and what it says of it."""
    out = ctypes.c_void_p()
    told = call(name, *arguments, ctypes.byref(out))
    return Handle(out.value or 0), told


def make(name: str, *arguments: Any) -> Handle:
    """The object that a function makes."""
    return make_told(name, *arguments)[0]
