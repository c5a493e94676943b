"""What else the machine does while something is measured."""
import os
import resource
import time


def _ticks_of_all():
    """Ticks that all processes together had processors for, from /proc/stat."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
    return user + nice + system + irq + softirq


def _seconds_of_ours():
    """Processor time of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Load:
    """From its making to `said()`: the load averages, and the share of all processors' time that
    other processes took."""

    def __init__(self):
        self.before = os.getloadavg()[0]
        self.start = time.monotonic(), _ticks_of_all(), _seconds_of_ours()

    def said(self):
        wall = time.monotonic() - self.start[0]
        busy = (_ticks_of_all() - self.start[1]) / os.sysconf("SC_CLK_TCK")
        others = max(0.0, busy - (_seconds_of_ours() - self.start[2]))
        return {"before": self.before, "after": os.getloadavg()[0], "processors": os.cpu_count(),
                "others": others / (wall * os.cpu_count())}


def sentence(said):
    """One line of at most 80 columns."""
    return (f"load average {said['before']:.2f} before, {said['after']:.2f} after; others took "
            f"{100 * said['others']:.0f} % of {said['processors']} processors")
