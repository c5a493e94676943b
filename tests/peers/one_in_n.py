"""A plugin of pytest (-p one_in_n): of tests with many variants one in N is run, as
SHARDPROOF_TEST_STRIDE=N says; without it all are."""
import collections
import os

MANY = 8


def pytest_collection_modifyitems(config, items):
    n = int(os.environ.get("SHARDPROOF_TEST_STRIDE", "1"))
    if n < 1:
        raise ValueError("SHARDPROOF_TEST_STRIDE")
    names = [item.nodeid.split("[")[0] for item in items]
    variants, turns = collections.Counter(names), collections.Counter()
    chosen, others = [], []
    for item, name in zip(items, names):
        # Taken by multiples of the golden ratio, so that of inner parameters each turn occurs.
        taken = turns[name] * 2654435769 % 2**32 < 2**32 // n
        turns[name] += 1
        (chosen if variants[name] <= MANY or taken else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen
