"""Small models of the same kind."""
from __future__ import annotations
def shrink(c): return c
