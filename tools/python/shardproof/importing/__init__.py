"""Dumps of serving engines and others, read as they are (docs/importing.md).

    imported = shardproof.importing.read("dump", model="path/to/model")
    print(imported.judge().table())
    print(imported.left_out)
"""
from .._reports import Left
from .imported import Imported, read
from .names import Names

__all__ = ["Imported", "Left", "Names", "read"]
