"""The package from the source tree, with the library of a build folder, or as it is installed."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if "SHARDPROOF_LIBRARY" in os.environ:
    sys.path.insert(0, str(ROOT / "tools" / "python"))

pytest_plugins = ["pytester"]

LINE = ("torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 batch=6 prompt=3 gen=2 seed=5")


@pytest.fixture(scope="session")
def line():
    return LINE


@pytest.fixture(scope="session")
def reference():
    import shardproof as sp
    return sp.Reference(LINE)
