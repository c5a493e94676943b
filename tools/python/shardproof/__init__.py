"""Shardproof for Python: layouts, the unsharded model's values, and the verdict on yours.

    import shardproof as sp

    trace = sp.Trace("torus=2x2x2 model=palm-tiny batch=2 prompt=4 gen=1")
    trace.add("prefill.c0.layer0.gate", shards, layout="BLF_yz partialsum-x")
    sp.check(trace)
"""
from ._library import Error
from .architectures import Architecture
from .cases import case, draw, simpler, verify
from .layouts import Layout
from .modules import Module
from .pairs import Pair, compare_pair
from .reference import Reference, Weights
from .trace import Cause, Trace, Verdict, check, judge

__version__ = "0.1.0"
__all__ = ["Architecture", "Cause", "Error", "Layout", "Module", "Pair", "Reference", "Trace",
           "Verdict", "Weights", "case", "check", "compare_pair", "draw", "judge", "simpler",
           "verify"]
