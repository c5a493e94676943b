"""Names of element types, and NumPy's types."""
from __future__ import annotations

from typing import Any, Dict

import ml_dtypes
import numpy as np

DType = Any  # numpy.dtype; ml_dtypes are not known to its stubs


def _table() -> Dict[str, DType]:
    types = {"float64": np.float64, "float32": np.float32, "float16": np.float16,
             "bfloat16": ml_dtypes.bfloat16, "int64": np.int64, "int32": np.int32,
             "int16": np.int16, "int8": np.int8, "uint8": np.uint8, "uint16": np.uint16,
             "uint32": np.uint32, "uint64": np.uint64, "bool": np.bool_}
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                 "float8_e8m0fnu"):
        if hasattr(ml_dtypes, name):
            types[name] = getattr(ml_dtypes, name)
    return {name: np.dtype(of) for name, of in types.items()}


TORCH = _table()
TORCH.update({short: TORCH[name] for short, name in
              (("double", "float64"), ("float", "float32"), ("half", "float16"), ("long", "int64"),
               ("int", "int32"), ("short", "int16"), ("char", "int8"), ("byte", "uint8"))})

# torch.FloatStorage and its like.
STORAGES = {name.capitalize() + "Storage": TORCH[name]
            for name in ("double", "float", "half", "long", "int", "short", "char", "byte", "bool")}
STORAGES["BFloat16Storage"] = TORCH["bfloat16"]

SAFETENSORS = {short: TORCH[name] for short, name in
               (("F64", "float64"), ("F32", "float32"), ("F16", "float16"), ("BF16", "bfloat16"),
                ("I64", "int64"), ("I32", "int32"), ("I16", "int16"), ("I8", "int8"),
                ("U8", "uint8"), ("U16", "uint16"), ("U32", "uint32"), ("U64", "uint64"),
                ("BOOL", "bool"), ("F8_E4M3", "float8_e4m3fn"), ("F8_E5M2", "float8_e5m2"),
                ("F8_E4M3FNUZ", "float8_e4m3fnuz"), ("F8_E5M2FNUZ", "float8_e5m2fnuz"),
                ("F8_E8M0", "float8_e8m0fnu")) if name in TORCH}


def name_of(dtype: DType) -> str:
    return str(np.dtype(dtype).name)
