#!/usr/bin/python3
"""A page of the documentation, held against what it is about.

    doc_test.py PAGE SHARDPROOF [PYTHON]

PAGE is README.md, a tutorial, docs/compare.md, compare-two.md, golden.md or zoo.md. Its scripts run, its
commands print what it shows, and what it shows of a source file stands there. README.md and
tutorials are short.
Measured numbers (those with a decimal point) may be others: they depend on the machine's libraries.
Commands after the mark `<!-- JAX -->` run only if a PYTHON that has JAX is given. Without one, every
check is also shown failing, on a page that is changed in one place.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT_LINES = 30
PAGE_LINES = 300
WIDTH, CONSOLE_WIDTH = 100, 80
WORDS = {"README.md": 1500, "docs/tutorials": 900}
# A mark of what a block is, and the block: <!-- file mine.py -->, <!-- text of tests/... -->,
# <!-- part of tests/... -->, <!-- JAX -->.
BLOCK = re.compile(r"(?:^<!-- (?P<mark>.*?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+(e[-+]\d+)?|-?\d+e[-+]\d+")


def lines_of(text):
    """Without indentation and empty lines."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def has_part(whole, part):
    whole, part = lines_of(whole), lines_of(part)
    return any(whole[i:i + len(part)] == part for i in range(len(whole) - len(part) + 1))


def of_a_source(mark, text):
    """What is wrong with a block that is said to stand in a source file."""
    what, path = mark.split(" of ")
    source = (ROOT / path).read_text()
    if text == source if what == "text" else has_part(source, text):
        return []
    return [f"this is not the {what} of {path}: {text.splitlines()[0]} ..."]


def commands_of(text):
    """(command, what it prints) of a block of a console."""
    for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = session.splitlines()
        length = 1 + next(i for i, line in enumerate(lines) if not line.endswith("\\"))
        yield "\n".join(lines[:length]), lines[length:]


def words(lines):
    """With no care for where a line is wrapped, nor for measured numbers."""
    return NUMBER.sub("#", " ".join(lines)).split()


def is_as_shown(shown, printed):
    """Lines of three dots stand for any."""
    parts = [[]]
    for line in shown:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1] += words([line])
    # What is left out is whole words; the page may begin or end with it.
    pattern = "(?: .*)? ".join(re.escape(" ".join(part)) for part in parts if part)
    pattern = ("(?:.* )?" if not parts[0] else "") + pattern + ("(?: .*)?" if not parts[-1] else "")
    return re.fullmatch(pattern, " ".join(words(printed))) is not None


class Folder:
    """Where the page's commands run: as in a checkout in which the program is built."""

    def __init__(self, folder, program, python):
        self.folder = pathlib.Path(folder)
        (self.folder / "build").mkdir()
        (self.folder / "build/shardproof").symlink_to(pathlib.Path(program).resolve())
        for name in ("tests", "golden"):
            (self.folder / name).symlink_to(ROOT / name)
        self.command("bin/python3", "/usr/bin/python3")
        if python is not None:
            self.command("venv/bin/python", python)
        self.environment = os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def command(self, name, program):
        """No link: a virtual environment is found by the path of its Python."""
        path = self.folder / name
        path.parent.mkdir(parents=True)
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(program)} "$@"\n')
        path.chmod(0o755)

    def run(self, command):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.stdout.splitlines()


def wrong_in(page, program, python, most_words=None):
    """What the page says and is not so; `python` is one with JAX, or None."""
    wrong = [f"line {n} is longer than {WIDTH}: {line}" for n, line in
             enumerate(page.splitlines(), 1) if len(line) > WIDTH and "|" not in line]
    if len(page.splitlines()) > PAGE_LINES:
        wrong.append(f"the page has more than {PAGE_LINES} lines")
    if most_words is not None and len(page.split()) >= most_words:
        wrong.append(f"the page has {len(page.split())} words, {most_words} or more")
    ran = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name, program, python)
        for block in BLOCK.finditer(page):
            mark, kind, text = block["mark"] or "", block["kind"], block["text"]
            if mark.startswith("file "):
                (folder.folder / mark.split()[1]).write_text(text)
                if len(text.splitlines()) > SCRIPT_LINES:
                    wrong.append(f"{mark} has more than {SCRIPT_LINES} lines")
            elif " of " in mark:
                wrong += of_a_source(mark, text)
            elif kind == "python":
                wrong.append(f"a block of Python that nothing is said of: {text.splitlines()[0]}")
            if kind == "console":
                wrong += [f"longer than {CONSOLE_WIDTH}: {line}" for line in text.splitlines()
                          if len(line) > CONSOLE_WIDTH]
            if kind != "console" or (mark == "JAX" and python is None):
                continue
            for command, shown in commands_of(text):
                printed = folder.run(command)
                ran += 1
                if not is_as_shown(shown, printed):
                    wrong.append("\n".join([f"{command}: it prints", *printed, "shown is", *shown]))
    return wrong + (["no command of the page was run"] if ran == 0 else [])


def faults(page, most_words=None):
    """Pages that are wrong: what is wrong, and the page."""
    script = re.search(r"^<!-- file .*?-->\n```\w+\n", page, re.MULTILINE)
    yield "a line too long", page + "x" * (WIDTH + 1) + "\n"
    yield "a page too long", page + "\n" * PAGE_LINES
    if most_words is not None:
        yield "a page of too many words", page + "word\n" * (most_words - len(page.split()))
    if script:
        block = script.end()
        yield "a script too long", page[:block] + "#\n" * SCRIPT_LINES + page[block:]
        yield "a script that fails", page[:block] + "?\n" + page[block:]
    if "<!-- text of" in page:
        yield "another helper", page.replace("def tap(", "def tap_(", 1)
        yield "a helper without a mark", re.sub(r"<!-- text of .*?-->\n", "", page)
    yield "an output with another word", (
        page.replace(" 0 different", " 1 different", 1) if " 0 different" in page else
        page.replace("Rounding explains all", "Rounding explains some", 1))
    yield "an output without its begin", re.sub(
        r"^(```console\n(?:\$ .*\n)+)[^$.].*\n", r"\1", page, count=1, flags=re.MULTILINE)
    end = re.compile(r"^\d+ of \d+ values compared.*\n(?!\.\.\.)", re.MULTILINE)
    if end.search(page):
        yield "an output without its end", end.sub("", page, count=1)
    yield "no commands", page.replace("```console", "```text")


def main():
    path, program, *python = sys.argv[1:]
    python = python[0] if python else None
    most = next((n for place, n in WORDS.items() if path.startswith(place)), None)
    page, bad = (ROOT / path).read_text(), 0
    for wrong in wrong_in(page, program, python, most):
        bad += 1
        print(wrong)
    for what, changed in faults(page, most) if python is None else []:
        if changed == page or not wrong_in(changed, program, python, most):
            bad += 1
            print(f"not found: {what}")
    print("the page is right" if bad == 0 else f"{bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
