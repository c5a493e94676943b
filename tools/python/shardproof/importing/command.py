"""`python -m shardproof import` and `judge`."""
from __future__ import annotations

import argparse
import sys
from typing import NoReturn, Optional, Sequence

from .._library import Error
from .._reports import Left, Reports, lines_of, printable
from .imported import Imported, read


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Error("import_options", f"{message}; `{self.prog} --help` lists them")


def _parser(verb: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"python -m shardproof {verb}",
        description={"import": "Writes a dump of a serving engine as a trace.",
                     "judge": "Judges a dump of a serving engine."}[verb])
    parser.add_argument("directory", metavar="DIR", help="the dump: a directory, or one file")
    parser.add_argument("--model", required=True, metavar="HFDIR",
                        help="a directory of Hugging Face, a config.json, a model of the case line")
    parser.add_argument("--weights", metavar="FILE", help="weights other than those of --model")
    parser.add_argument("--names", metavar="FILE", help="lines NAME -> VALUE AXES, or a map")
    parser.add_argument("--ids", metavar="FILE", help="the prompt: token ids, a row a line, or npy")
    parser.add_argument("--case", default="", metavar="KEYS", help="keys of the case: act=bf16")
    parser.add_argument("--torus", metavar="XxYxZ", help="where ranks sit, if no file says it")
    parser.add_argument("--steps", metavar="FIRST-LAST", help="the steps of the dump that are read")
    if verb == "import":
        parser.add_argument("--out", required=True, metavar="FILE", help="t.npz or t.h5")
        return parser
    parser.add_argument("--html", metavar="FILE", help="also writes the verdict as a page")
    parser.add_argument("--junit", metavar="FILE", help="also writes it for CI services")
    parser.add_argument("--annotations", action="store_true", help="lines that GitHub shows")
    parser.add_argument("--quiet", action="store_true", help="wrong values alone")
    parser.add_argument("--fail-on", default="unlikely", metavar="VERDICT",
                        help="the first verdict that fails (unlikely)")
    return parser


def _steps(text: Optional[str]) -> "Optional[tuple[int, int]]":
    if text is None:
        return None
    words = text.split("-")
    if not 1 <= len(words) <= 2 or not all(w.isdigit() for w in words):
        raise Error("import_options", f"--steps {text}; legal: 3, 3-6")
    return int(words[0]), int(words[-1])


def _print_left(left: Sequence[Left], all_of_them: bool) -> None:
    if left:
        print(f"left out, {len(left)}:")
        for line in lines_of(left, all_of_them):
            print(f"  {line}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _code(imported: Imported) -> int:
    return 1 if any(left.spoils for left in imported.left_out) else 0


def _run(verb: str, arguments: Sequence[str]) -> int:
    given = _parser(verb).parse_args(arguments)
    imported = read(given.directory, model=given.model, weights=given.weights, names=given.names,
                    ids=given.ids, case=given.case, torus=given.torus, steps=_steps(given.steps))
    if imported.unread:
        names = printable(", ".join(imported.unread))
        print(f"config entries that no line of the map reads: {names}")
    if verb == "import":
        count = imported.save(given.out)
        _print_left(imported.left_out, True)
        print(f"{given.out}: {count} values of {imported.case.splitlines()[0]}")
        return _code(imported)
    verdict = imported.judge(fail_on=given.fail_on)
    sentence = imported.sentence(verdict)

    reports = Reports(verdict.sentence, sentence, imported.left_out)
    if given.html:
        _write(given.html, reports.html(verdict.html()))
    if given.junit:
        _write(given.junit, reports.junit(verdict.junit()))
    if given.annotations:
        print(reports.annotations(verdict.annotations()), end="")
    table = verdict.table(quiet=given.quiet)
    if table.endswith(f"\n{verdict.sentence}\n"):
        table = table[:-len(verdict.sentence) - 1]
    print(table, end="")
    _print_left(imported.left_out, not given.quiet)
    if sentence != verdict.sentence:
        print("ranks above are places on the torus; those of the dump are:")
    headline = imported.headline(verdict)
    if headline != sentence:
        print(printable(headline))
    print(printable(sentence))
    return _code(imported) if verdict.right else 1


def main(verb: str, arguments: Sequence[str]) -> int:
    """Runs a verb; returns its exit code: 0 right, 1 not, 2 bad input."""
    try:
        return _run(verb, arguments)
    except (Error, OSError) as error:
        print(f"shardproof: {printable(str(error))}", file=sys.stderr)
        return 2
