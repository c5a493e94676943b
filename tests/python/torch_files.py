"""Files as torch.save and safetensors write them, without either: for tests of their readers."""
import collections
import io
import json
import pickle
import zipfile

import ml_dtypes
import numpy as np

STORAGES = {"float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage",
            "bfloat16": "BFloat16Storage", "int64": "LongStorage", "int32": "IntStorage",
            "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage",
            "bool": "BoolStorage"}
SAFETENSORS = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "int64": "I64",
               "int32": "I32", "float64": "F64", "uint8": "U8"}


class Global:
    """A name of another module, written as it is."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *arguments):
        raise AssertionError("it is only written")


class Call:
    """What a function of another module makes of arguments."""

    def __init__(self, module, name, *arguments):
        self.function, self.arguments = Global(module, name), arguments


class View(collections.namedtuple("View", "array offset size stride")):
    """A tensor of part of a storage, which is the array."""


class _Storage:
    def __init__(self, key, array):
        self.key, self.array = key, array


class _Pickler(pickle._Pickler):
    def __init__(self, file, protocol, storages):
        super().__init__(file, protocol)
        self.storages = storages

    def persistent_id(self, obj):
        if not isinstance(obj, _Storage):
            return None
        name = obj.array.dtype.name
        kind = Global("torch", STORAGES[name]) if name in STORAGES else Global("torch.storage",
                                                                               "UntypedStorage")
        count = obj.array.size if name in STORAGES else obj.array.nbytes
        return ("storage", kind, obj.key, "cpu", count)

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Global):
            self.write(f"c{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, Call):
            self.save_reduce(obj.function, obj.arguments)
        elif isinstance(obj, View):
            key = str(len(self.storages))
            self.storages.append(np.ascontiguousarray(obj.array))
            arguments = [_Storage(key, self.storages[-1]), obj.offset, obj.size, obj.stride, False,
                         collections.OrderedDict()]
            name = obj.array.dtype.name
            if name not in STORAGES:
                arguments.append(Global("torch", name))
            self.save_reduce(Global("torch._utils", "_rebuild_tensor_v2" if name in STORAGES else
                                    "_rebuild_tensor_v3"), tuple(arguments))
        elif isinstance(obj, np.ndarray):
            stride = tuple(int(np.prod(obj.shape[i + 1:])) for i in range(obj.ndim))
            self.save(View(obj, 0, obj.shape, stride))
        else:
            super().save(obj, save_persistent_id)


def save_torch(obj, path, protocol=2, folder="archive", compress=False, pickled=None):
    """Writes what torch.save writes of dicts, lists, numbers and arrays, which become tensors."""
    storages, text = [], io.BytesIO()
    _Pickler(text, protocol, storages).dump(obj)
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(f"{folder}/data.pkl", text.getvalue() if pickled is None else pickled)
        archive.writestr(f"{folder}/byteorder", "little")
        for key, array in enumerate(storages):
            archive.writestr(f"{folder}/data/{key}", array.tobytes())
        archive.writestr(f"{folder}/version", "3\n")


def save_safetensors(tensors, path, change=lambda header: None, behind=b""):
    """Writes a safetensors file; `change` may change its header."""
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": SAFETENSORS[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    change(header)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data + behind)


BF16 = ml_dtypes.bfloat16
