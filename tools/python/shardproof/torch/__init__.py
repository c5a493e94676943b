"""Shardproof for PyTorch: judge a model of transformers that runs on many ranks.

    import shardproof as sp
    import shardproof.torch as spt

    reference = spt.reference(model)          # before it is cut over ranks
    parallelize_module(model, mesh, plan)
    with spt.tap(model, reference) as tap:
        model(ids)
    sp.check(tap.trace())                     # AssertionError: ranks, module, cause
"""
from .model import Reference, reference
from .ranks import ranks
from .shrink import shrink
from .tap import Tap, tap

__all__ = ["Reference", "Tap", "ranks", "reference", "shrink", "tap"]
