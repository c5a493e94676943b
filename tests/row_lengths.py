"""How many tokens each row of a case's batch has (docs/spec.md sections 2.8 and 2.11), worked out
again."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights"))
from read_back import ranged, word  # section 2.7, likewise


def prefix_of(case):
    """The tokens of each shared prefix and how many there are, of a case line's words, by key."""
    length, count = case.get("prefix", "0:0").split(":")
    return int(length), int(count)


def lengths_of(case, rows):
    """Of a case line's words, by key."""
    longest, given = int(case["prompt"]), case.get("lengths", case["prompt"])
    if given == "ragged":
        shared = prefix_of(case)[0]
        return [shared + 1 + ranged(word(int(case["seed"]), "length", 4 * r), 0,
                                    longest - shared - 1) for r in range(rows)]
    cycle = [int(length) for length in given.split(",")]
    return [cycle[r % len(cycle)] for r in range(rows)]


def prefill_of(case, lengths):
    """Where the chunks of the prefill end: those that no row reaches are left out."""
    longest, chunk, shared = int(case["prompt"]), int(case["chunk"]), prefix_of(case)[0]
    return min(longest, shared + -(-(max(lengths) - shared) // chunk) * chunk)
