"""What the program writes of a verdict, with what only its trace's writer knows: its ranks, and what
was left out."""
from __future__ import annotations

import re
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

_FEW = 8
_PLACES = "Ranks below are places on the torus; the sentence above has those of the dump."


class Left(NamedTuple):
    """What is not judged, and why."""

    name: str
    reason: str
    #: Whether a run that lacks it is not shown to be right: not of names that no line has.
    spoils: bool = True


def printable(text: str) -> str:
    """Names of others could hold control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _escaped(text: str) -> str:
    """The text as the program writes it in HTML and XML."""
    for character, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"),
                            ("'", "&#39;")):
        text = text.replace(character, name)
    return text


def _annotation(text: str) -> str:
    return text.replace("%", "%25")


def lines_of(left: Sequence[Left], all_of_them: bool) -> List[str]:
    """What is not judged by its reasons; of names that no line has a few, as they spoil nothing."""
    by_reason: Dict[Tuple[str, bool], List[str]] = {}
    for one in left:
        by_reason.setdefault((one.reason, one.spoils), []).append(one.name)
    lines = []
    for (reason, spoils), names in by_reason.items():
        shown = names if all_of_them and spoils else names[:_FEW]
        more = "" if len(shown) == len(names) else f" and {len(names) - len(shown)} more"
        lines.append(printable(f"{', '.join(shown)}{more}: {reason}"))
    return lines


class Reports:
    """The forms of a verdict. `sentence` is the program's, `told` the one with the dump's ranks."""

    def __init__(self, sentence: str, told: str, left: Sequence[Left]) -> None:
        self._sentence, self._told, self._left = sentence, told, left
        self._spoils = [one for one in left if one.spoils]

    def _with_ranks(self, text: str, form: Callable[[str], str]) -> str:
        return text.replace(form(self._sentence), form(printable(self._told)))

    def html(self, page: str) -> str:
        page = self._with_ranks(page, _escaped)
        more = f"<p>{_PLACES}</p>\n" if self._told != self._sentence else ""
        if self._left:
            lines = "".join(f"<li>{_escaped(line)}</li>\n" for line in lines_of(self._left, True))
            more += f"<h2>Left out, {len(self._left)}</h2>\n<ul>\n{lines}</ul>\n"
        head, mark, rest = page.partition("<h2>")
        return head + more + mark + rest if mark else page.replace("</body>", more + "</body>")

    def junit(self, xml: str) -> str:
        """With a failed case for what was left out."""
        xml = self._with_ranks(xml, _escaped)
        if not self._spoils:
            return xml
        xml = re.sub(r'^( *<testsuites?\b.*? tests=")(\d+)(" failures=")(\d+)"', lambda m: (
            f'{m[1]}{int(m[2]) + 1}{m[3]}{int(m[4]) + 1}"'), xml, flags=re.M)
        case = ('    <testcase classname="" name="left out" time="0.000">\n      <failure message="'
                f'{len(self._spoils)} left out">{_escaped(self._text(True, chr(10)))}</failure>\n'
                "    </testcase>\n")
        head, mark, rest = xml.rpartition("  </testsuite>")
        return head + case + mark + rest

    def annotations(self, text: str) -> str:
        """With a line for what was left out."""
        text = self._with_ranks(text, _annotation)
        if self._spoils:
            text += ("::error title=shardproof%3A left out::"
                     f"{len(self._spoils)} left out: {_annotation(self._text(False, '; '))}\n")
        return text

    def _text(self, all_of_them: bool, between: str) -> str:
        return between.join(lines_of(self._spoils, all_of_them))
