"""What torch.save writes, without torch: an archive of a pickle and raw storages."""
from __future__ import annotations

import pathlib
from typing import Any, Dict, NamedTuple, Tuple

import numpy as np

from .._arrays import Array
from .._library import Error
from .arrays import FileArray, Refused, Value, mapped
from .element_types import STORAGES, TORCH, DType
from .limits import MOST_PICKLE, count_of, refuse, require_bytes
from .pickles import Global, read_pickle
from .zip_file import Member, members


class _Storage(NamedTuple):
    member: Member
    dtype: DType          # of its elements; None for bytes whose tensor says it
    bytes: int


class _Type(NamedTuple):
    dtype: DType


def _whole(*numbers: Any) -> bool:
    return all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)


class _File:
    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._members = members(path)
        pickles = [n for n in self._members if n == "data.pkl" or n.endswith("/data.pkl")]
        if len(pickles) != 1:
            refuse("import_container", f"{path} is an archive without one data.pkl, which "
                                       "torch.save writes")
        self._prefix = pickles[0][:-len("data.pkl")]

    def bytes(self, name: str, most: int) -> bytes:
        member = self._members[self._prefix + name]
        self._require_plain(member)
        if member.stored > most:
            refuse("import_limit", f"{self.path}: {name} has {member.stored} bytes; at most "
                                   f"{most}: save tensors, not objects of Python")
        return mapped(self.path, member.offset, member.stored).tobytes()

    def _require_plain(self, member: Member) -> None:
        if member.method or member.size != member.stored:
            refuse("import_container", f"{self.path}: {member.name} is compressed, which "
                                       "torch.save never does; save it again")

    def require_byte_order(self) -> None:
        if self._prefix + "byteorder" in self._members:
            if self.bytes("byteorder", 100).strip() != b"little":
                refuse("import_container", f"{self.path} was written by a big-endian machine; save "
                                           "it again on another")

    def storage(self, id: Any) -> Any:
        """The storage of ("storage", type, key, device, elements)."""
        if isinstance(id, Refused):
            return id
        if not (isinstance(id, tuple) and len(id) >= 5 and id[0] == "storage"
                and isinstance(id[2], str)):
            return Refused("it holds a persistent id that is not a storage of torch")
        kind = id[1]
        if isinstance(kind, Refused):
            return kind
        dtype = kind.dtype if isinstance(kind, _Type) else None
        member = self._members.get(f"{self._prefix}data/{id[2]}")
        if member is None:
            return Refused(f"its storage data/{id[2][:100]} is missing in {self.path}")
        try:
            self._require_plain(member)
        except Error as error:
            return Refused(error.message)
        return _Storage(member, dtype, member.stored)

    def tensor(self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Any:
        dtype = next((t.dtype for t in rest[:8] if isinstance(t, _Type)), None)
        if isinstance(storage, Refused):
            return storage
        if not (isinstance(storage, _Storage) and isinstance(size, tuple)
                and isinstance(stride, tuple) and len(size) == len(stride) < 100
                and _whole(offset, *size, *stride)):
            return Refused("it has a tensor without storage, size and stride")
        of = dtype if dtype is not None else storage.dtype
        if of is None:
            return Refused("it has a tensor of no element type")
        try:
            return self._view(storage, np.dtype(of), offset, size, stride)
        except Error as error:
            return Refused(error.message)

    def _view(self, storage: _Storage, dtype: DType, offset: int, size: Tuple[int, ...],
              stride: Tuple[int, ...]) -> FileArray:
        what = f"{self.path}: {storage.member.name}"
        count = count_of(what, size)
        last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if count else offset
        elements = storage.bytes // dtype.itemsize
        if (count and last >= elements) or offset > elements:
            refuse("import_container", f"{what} has {elements} elements, and its tensor "
                                       f"{list(size)} reads number {last}; save it again")
        require_bytes(what, count * dtype.itemsize, storage.bytes)

        def load() -> Array:
            if not count:
                return np.zeros(size, dtype)
            raw = mapped(self.path, storage.member.offset, elements * dtype.itemsize)
            return np.ndarray(size, dtype, raw.data, offset * dtype.itemsize,
                              tuple(s * dtype.itemsize for s in stride))

        return FileArray(what, size, dtype, load)


def _first(value: Any = None, *rest: Any) -> Any:
    return value


def _empty_dict(*pairs: Any) -> Any:
    return Refused("it holds an OrderedDict of pairs, which Python does not write") if pairs else {}


def _size(sizes: Any = ()) -> Any:
    return sizes if isinstance(sizes, tuple) else Refused("it holds a torch.Size of no numbers")


def _rebuilt(function: Any, kind: Any, arguments: Any, state: Any = None) -> Any:
    """A tensor of a class of its own. Of a DTensor this is the shard of the rank that wrote it."""
    if isinstance(kind, Refused):
        return kind
    if isinstance(kind, Global) and kind.make is _local_part:
        return _local_part(*(state if isinstance(state, tuple) and len(state) == 2 else (state,)))
    if isinstance(function, Global) and function.make is not _rebuilt \
            and isinstance(arguments, tuple) and len(arguments) <= 16:
        return function.make(*arguments)
    return Refused("it holds a tensor of an unknown class")


def _local_part(*states: Any) -> Any:
    for state in states:
        if isinstance(state, dict) and isinstance(state.get("_local_tensor"), (FileArray, Refused)):
            return state["_local_tensor"]
    return Refused("it holds a DTensor without its local tensor; save tensor.to_local()")


def _known(file: _File) -> Dict[str, Any]:
    known: Dict[str, Any] = {
        "torch._utils._rebuild_tensor_v2": file.tensor,
        "torch._utils._rebuild_tensor_v3": file.tensor,
        "torch._utils._rebuild_parameter": _first,
        "torch._utils._rebuild_parameter_with_state": _first,
        "torch._utils._rebuild_wrapper_subclass": _first,
        "torch._tensor._rebuild_from_type_v2": _rebuilt,
        "torch.nn.parameter.Parameter": _first,
        "torch.Tensor": _first,
        "torch.Size": _size,
        "torch.device": lambda *words: "device",
        "torch.serialization._get_layout": lambda *words: "layout",
        "collections.OrderedDict": _empty_dict,
        "torch.storage.UntypedStorage": _Type(None),
    }
    for module in ("tensor", "tensor._api", "_tensor", "_tensor.api"):
        known[f"torch.distributed.{module}.DTensor"] = _local_part
    known.update({f"torch.{name}": _Type(dtype) for name, dtype in TORCH.items()})
    known.update({f"torch.{name}": _Type(dtype) for name, dtype in STORAGES.items()})
    return known


def read_torch(path: pathlib.Path) -> Value:
    """The object of a file of torch.save: tensors as FileArray, plain data as it is, and a Refused
    wherever it has something else. Nothing in it is run."""
    with open(path, "rb") as opened:
        start = opened.read(4)
    if start[:1] == b"\x80":
        refuse("import_container", f"{path} is of the form before torch 1.6, a bare pickle; load "
                                   "it and save it again with a newer torch")
    if start[:2] != b"PK":
        refuse("import_container", f"{path} is not a file of torch.save; legal: its archive form")
    file = _File(path)
    file.require_byte_order()
    root: Value = read_pickle(str(path), file.bytes("data.pkl", MOST_PICKLE), _known(file),
                              file.storage)
    return root
