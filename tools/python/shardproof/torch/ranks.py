"""A program on simulated ranks."""
from __future__ import annotations
from typing import Any
def ranks(*a: Any) -> None: ...
