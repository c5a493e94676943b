"""The SGLang dumper's text of dims: `b s[cp:zigzag] (num_heads*head_dim)[tp] # ep:replicated`."""
from __future__ import annotations

import re
from typing import FrozenSet, NamedTuple, Tuple

from .limits import refuse


class Cut(NamedTuple):
    """One mesh axis over which a dim is cut, or over which the value is a partial sum."""

    axis: str
    zigzag: bool
    partial: bool


class Dim(NamedTuple):
    names: Tuple[str, ...]      # several of a fused one
    cuts: Tuple[Cut, ...]       # major to minor

    @property
    def tokens(self) -> bool:
        return self.names == ("t",)


class Dims(NamedTuple):
    dims: Tuple[Dim, ...]
    replicated: FrozenSet[str]


_WORD = re.compile(r"(\([^()\[\]]*\)|[A-Za-z_]\w*(?:\*[A-Za-z_]\w*)*|1)(?:\[([^\]]*)\])?\s*")
_NAME = re.compile(r"[A-Za-z_]\w*|1")
_MOST = 1000


def _cut(text: str, item: str) -> Cut:
    axis, *said = [word.strip() for word in item.split(":")]
    if not re.fullmatch(r"\w+", axis) or not set(said) <= {"zigzag", "natural", "partial"}:
        refuse("import_dims", f"'{text[:100]}': [{item}] is not a valid cut; legal: tp, cp:zigzag, "
                              "cp:natural, tp:partial")
    return Cut(axis, "zigzag" in said, "partial" in said)


def parse_dims(text: str) -> Dims:
    """The dims that a text says. Raises Error import_dims, which quotes it."""
    if len(text) > _MOST:
        refuse("import_dims", f"a text of dims has {len(text)} characters; at most {_MOST}")
    body, _, comment = text.partition("#")
    dims, at = [], len(body) - len(body.lstrip())
    while at < len(body):
        word = _WORD.match(body, at)
        if word is None:
            refuse("import_dims", f"'{text}': '{body[at:].strip()[:30]}' is not a valid dim; "
                                  "legal: b, h[tp], (num_heads*head_dim)[tp], s[cp:zigzag]")
        names = tuple(name.strip() for name in word.group(1).strip("()").split("*"))
        if not all(_NAME.fullmatch(name) for name in names):
            refuse("import_dims", f"'{text}': '{word.group(1)}' is not a valid dim; legal: h, "
                                  "(num_heads*head_dim)")
        items = [i for i in (word.group(2) or "").split(",") if i.strip()]
        dims.append(Dim(names, tuple(_cut(text, item) for item in items)))
        at = word.end()
    used = [cut.axis for dim in dims for cut in dim.cuts]
    if len(set(used)) != len(used):
        refuse("import_dims", f"'{text}': an axis occurs twice; each cuts one dim")
    words = [w.split(":") for w in comment.split()]
    return Dims(tuple(dims), frozenset(w[0] for w in words if w[1:] == ["replicated"]))
