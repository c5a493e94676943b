#!/usr/bin/python3
"""Makes golden/zoo: small dumps of runs with the faults of zoo_faults.py.

    zoo.py SHARDPROOF FOLDER           writes a zoo into a new folder, and its rows into docs/zoo.md
    zoo.py SHARDPROOF FOLDER --check   makes it anew and compares all elements, lists and rows, and
                                       the runs without their faults with what compare says

Exits 1 where something differs.
"""
import argparse
import dataclasses
import hashlib
import io
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import zoo_runs as runs
from check import BAD
from judge import Answer
from zoo_faults import KINDS
from zoo_unnamed import UNNAMED

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "zoo.md"
HEAD = """\
# The faults of golden/zoo, and the dumps of each: what compare has to say of them. docs/zoo.md
# has them as a table; tests/peers/families/zoo.py makes all of it.
"""


HEADING = """| no. | what is wrong | met in | reports | dumps | first divergence | cause |
|---|---|---|---|---|---|---|
"""


class Judge:
    """What compare says of the runs without a fault: nothing is wrong with them."""

    def __init__(self, program, folder):
        self.program, self.path, self.wrong = program, folder / "right.npz", []

    def __call__(self, dump):
        self.path.write_bytes(dump.right)
        answer = Answer(subprocess.run([self.program, "compare", self.path, "--json"],
                                       capture_output=True, text=True))
        bad = {name: fit for name, fit in answer.fits.items() if fit in BAD}
        if answer.error or bad:
            self.wrong.append(f"{dump.id} without its fault: {answer.error or bad}")


@dataclasses.dataclass(frozen=True)
class Dump:
    id: str
    case: str
    first: str     # the value that the fault makes wrong first
    cause: str
    file: bytes
    right: bytes   # the same run without the fault


def first_of(right, wrong):
    """The first array, in the order of the run, that the fault changes."""
    for step, a in right.arrays.items():
        if not np.array_equal(a, wrong.arrays[step], equal_nan=a.dtype.kind == "f"):
            return step
    raise ValueError("the fault changes nothing")


def dumps_of(kind, models):
    for suffix, subject, plant in (("", kind.subject, None),) + kind.others:
        model = models(subject)
        right = runs.run_of(subject, model, kind.right)
        wrong = runs.run_of(subject, model, plant or kind.plant)
        for dump_set in kind.sets:
            pair = [runs.trace_of(subject, run, dump_set) for run in (right, wrong)]
            files = [runs.archive(t.arrays, runs.attributes_of(subject, t)) for t in pair]
            name = f"{kind.section}/{kind.name}{'-' * bool(suffix)}{suffix}.{dump_set}"
            cause = dict(kind.causes).get(dump_set, kind.cause)
            yield Dump(name, subject.case, first_of(*pair), cause, files[1], files[0])


def record(number, kind, dumps):
    """The lines of a fault."""
    lines = [f"fault {number}", f"says {kind.says}", f"met {kind.met}"]
    lines += [f"report {report}" for report in kind.reports]
    for dump in dumps:
        lines += [f"dump {dump.id}", f"case {dump.case}", f"first {dump.first}",
                  f"cause {dump.cause}"] + ["named not yet"] * (dump.id in UNNAMED)
    return "\n".join(lines) + "\n"


def link(report):
    place, number = report.split("#")
    return f"[{report}](https://github.com/{place}/issues/{number})"


def row(number, kind, dumps):
    """A fault as a row of docs/zoo.md."""
    unnamed = [dump.id.split("/")[1] for dump in dumps if dump.id in UNNAMED]
    later = " (not yet)" if len(unnamed) == len(dumps) > 0 else (
        f" (not yet: {', '.join(unnamed)})" if unnamed else "")
    cells = [str(number), kind.says, kind.met, ", ".join(map(link, kind.reports)) or "-",
             f"`{kind.section}/{kind.name}` {', '.join(kind.sets) or '-'}",
             ", ".join(dict.fromkeys(f"`{dump.first}`" for dump in dumps)) or "-",
             (", ".join(dict.fromkeys(dump.cause for dump in dumps)) or kind.cause) + later]
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def made(program, folder, judge=None):
    """All files of a zoo by their paths, and the rows of its table. judge(dump) looks at each."""
    models, files, text, rows = runs.Models(program, folder), {}, HEAD, ""
    for number, kind in enumerate(KINDS, 1):
        dumps = list(dumps_of(kind, models))
        text += "\n" + record(number, kind, dumps)
        rows += row(number, kind, dumps)
        for dump in dumps:
            files[f"{dump.id}.npz"] = dump.file
            if judge:
                judge(dump)
    files["FAULTS"] = text.encode()
    sums = sorted((path, hashlib.sha256(file).hexdigest()) for path, file in files.items())
    files["MANIFEST.sha256"] = "".join(f"{sum}  {path}\n" for path, sum in sums).encode()
    return files, rows


def write(folder, files):
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"zoo: {folder} is not an empty folder")
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file)


def page_with(rows):
    """docs/zoo.md with these rows."""
    before, after = PAGE.read_text().split(HEADING, 1)
    rest = itertools.dropwhile(lambda line: line.startswith("|"), after.splitlines(keepends=True))
    return before + HEADING + rows + "".join(rest)


def elements(file):
    with np.load(io.BytesIO(file)) as archive:
        return {name: archive[name] for name in archive.files}


def same_elements(one, other):
    """Archives of the same bits: compressed, they may differ in bytes."""
    a, b = elements(one), elements(other)
    return list(a) == list(b) and all(
        a[name].dtype == b[name].dtype and a[name].shape == b[name].shape
        and a[name].tobytes() == b[name].tobytes() for name in a)


def differences(folder, files):
    """What a zoo has otherwise. Its manifest is of its own bytes: `golden check` reads that."""
    there = {str(path.relative_to(folder)): path.read_bytes()
             for path in folder.rglob("*") if path.is_file()}
    for path in sorted(there.keys() | files.keys()):
        if path not in there or path not in files:
            yield f"{path}: {'missing' if path in files else 'of no fault'}"
        elif path.endswith(".npz"):
            if not same_elements(there[path], files[path]):
                yield f"{path}: other elements"
        elif path == "FAULTS" and there[path] != files[path]:
            yield f"{path}: other lines"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shardproof")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        temporary, bad = pathlib.Path(temporary), []
        judge = Judge(options.shardproof, temporary) if options.check else None
        files, rows = made(options.shardproof, temporary, judge)
        bad += judge.wrong if judge else []
    if options.check:
        bad += differences(options.folder, files)
        if PAGE.read_text() != page_with(rows):
            bad.append(f"{PAGE.name}: other rows")
    else:
        write(options.folder, files)
        PAGE.write_text(page_with(rows))
    for line in bad:
        print(line)
    size = sum(map(len, files.values())) / 1e6
    print(f"{len(KINDS)} faults, {len(files) - 2} dumps, {size:.1f} MB, manifest "
          f"{hashlib.sha256(files['MANIFEST.sha256']).hexdigest()}: {len(bad)} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
