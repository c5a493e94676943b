"""The program `shardproof`, which is in the package."""
from __future__ import annotations

import os
import pathlib
import sys


def program_path() -> pathlib.Path:
    """Where the program is: beside this file, or where SHARDPROOF_PROGRAM says."""
    given = os.environ.get("SHARDPROOF_PROGRAM")
    return pathlib.Path(given) if given else pathlib.Path(__file__).parent / "bin" / "shardproof"


def main() -> None:
    path = str(program_path())
    os.execv(path, [path, *sys.argv[1:]])
