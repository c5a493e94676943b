"""A process that is measured as a whole."""
import dataclasses
import os
import subprocess
import sys
import tempfile
import time


class Failed(Exception):
    """A process that did not end as it should; what it said is in the text."""


@dataclasses.dataclass(frozen=True)
class Child:
    """What a process cost, its own children included, and what it printed."""
    processor: float  # seconds, user and system
    wall: float       # seconds
    peak: int         # bytes of memory, resident at most; of a child no less than its parent's
    text: str


def run_child(command, environment=None):
    """Runs it to its end, with nothing on standard input. Throws Failed unless it exits 0."""
    command = [str(word) for word in command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env=environment)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            err.seek(0)
            said = err.read().strip().splitlines() or ["it said nothing"]
            raise Failed(f"{' '.join(command)}: exit code {process.returncode}: {said[-1]}")
        out.seek(0)
        return Child(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024, out.read())


def fail(program, text, code=2):
    """The one line of a wrong use."""
    print(f"{program}: {text}", file=sys.stderr)
    sys.exit(code)
