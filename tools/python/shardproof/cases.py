"""Cases as `shardproof verify` runs them."""
from __future__ import annotations

from typing import Any, Dict, List

from ._library import call


def case(line: str) -> str:
    """The whole line of a case, in which every key is said. Raises Error, naming the key."""
    return str(call("case", line)["case"])


def draw(seed: int, index: int = 0) -> str:
    """The case that `shardproof verify --cases` draws as number `index` of a seed."""
    return str(call("draw", seed, index)["case"])


def simpler(line: str) -> List[str]:
    """Legal cases that are simpler in one respect each, the boldest first."""
    return [str(simple) for simple in call("simpler", line)["cases"]]


def verify(line: str) -> Dict[str, Any]:
    """What `shardproof verify --case LINE --json` says of the case: its `verdict`, and why."""
    answer: Dict[str, Any] = call("verify", line)
    return answer
