"""A ratio measured several times: its median, how sure that is, and its target."""
import dataclasses
import math


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def spread(values):
    """How far the true median may be from the measured one: the width of the interval between two
    of the values, as far from either end, that holds it with a probability of at least 90 %, over
    the median. The number of values below the true median is binomial. Infinite for fewer than
    five values, which have no such interval."""
    values, n = sorted(values), len(values)
    outside, below = 0.0, -1  # probability that at most `below` values are below the median
    while outside + math.comb(n, below + 1) * 0.5 ** n <= 0.05:
        below += 1
        outside += math.comb(n, below) * 0.5 ** n
    if below < 0:
        return math.inf
    return (values[n - 1 - below] - values[below]) / median(values)


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds by both clocks."""
    processor: float
    wall: float

    def __truediv__(self, other):
        return Cost(self.processor / other.processor, self.wall / other.wall)


@dataclasses.dataclass
class Ratio:
    """Theirs over ours; at least `target` is wanted, by either clock."""
    key: str
    target: float
    theirs: list = dataclasses.field(default_factory=list)
    ours: list = dataclasses.field(default_factory=list)

    def add(self, theirs, ours):
        self.theirs.append(theirs)
        self.ours.append(ours)

    def _ratios(self, clock):
        return [getattr(a / b, clock) for a, b in zip(self.theirs, self.ours)]

    def ratio(self, clock):
        return median(self._ratios(clock))

    def spread(self):
        return max(spread(self._ratios(clock)) for clock in ("processor", "wall"))

    def verdict(self):
        met = all(self.ratio(clock) >= self.target for clock in ("processor", "wall"))
        return "met" if met else "missed"

    def as_json(self):
        cost = lambda costs: {clock: median([getattr(c, clock) for c in costs])
                              for clock in ("processor", "wall")}
        width = self.spread()
        return {"id": self.key, "theirs": cost(self.theirs), "ours": cost(self.ours),
                "ratio": {clock: self.ratio(clock) for clock in ("processor", "wall")},
                "target": self.target, "verdict": self.verdict(), "repeats": len(self.ours),
                "spread": None if math.isinf(width) else width}
