"""`python -m shardproof`: import and judge in Python, every other verb in the program."""
from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] in (["import"], ["judge"]):
        from .importing.command import main as command
        sys.exit(command(sys.argv[1], sys.argv[2:]))
    from ._program import main as program
    program()


if __name__ == "__main__":
    main()
