"""From the names of a dump to named values, by lines of text (docs/importing.md)."""
from __future__ import annotations

import pathlib
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._library import Error
from ..axes import Pattern, parse_axes
from ..modules import Module
from .dims import parse_dims
from .limits import PathLike, read_text, refuse

# What a line may name beside the model's values: what tells which tokens an array holds.
RUN_VALUES = ("ids", "positions", "lengths", "totals", "cu_lengths", "mask", "rows")


class Line(NamedTuple):
    source: "re.Pattern[str]"
    value: str                       # "layer{n}.q", "logits"; empty: not a value, said so
    pattern: Optional[Pattern]       # none: the array has the value's own dims
    dims: Optional[str]
    attributes: Mapping[str, str]
    where: str                       # "my.names line 3"
    name: str = ""                   # what the line names, as it is written


class Match(NamedTuple):
    value: str                       # "layer3.q", "decode.1.logits"
    line: Line


_ASKED = re.compile(r"(.+?)(\.inputs?(?:\.0)?|\.outputs?(?:\.0)?)?")
_PLACES = {"n": r"(?P<n>\d{1,6})", "step": r"(?P<step>\d{1,6})", "rest": r"(?P<rest>.*?)"}
_OUTPUTS = r"(?:\.outputs?(?:\.0)?)?"
_INPUTS = r"\.inputs?(?:\.0)?"
_DROPPED = ("non_intrusive__", "forward_batch_info.", "forward_batch_info__")


def _source(text: str, where: str, suffix: str = "") -> "re.Pattern[str]":
    out = ""
    for i, word in enumerate(re.split(r"\{(\w*)\}", text)):
        if i % 2 == 0:
            out += re.escape(word)
        elif word not in _PLACES or f"(?P<{word}>" in out:
            refuse("import_names", f"{where}: {{{word}}}; legal, each once: {{n}}, the layer, "
                                   "{step}, {rest}, anything")
        else:
            out += _PLACES[word]
    return re.compile(out + suffix)


def _options(words: Sequence[str], where: str) -> Tuple[Optional[str], Dict[str, str]]:
    dims, attributes = None, {}
    for option in words:
        name, _, said = option.strip().partition(" ")
        key, equals, value = option.strip().partition("=")
        if name == "dims" and said:
            parse_dims(said)
            dims = said
        elif option.strip() == "given":
            attributes["given"] = "true"
        elif equals and re.fullmatch(r"\w+", key.strip()):
            attributes[key.strip()] = value.strip()
        else:
            refuse("import_names", f"{where}: '; {option.strip()}'; legal: '; dims t h[tp]', "
                                   "'; given', '; meaning=raw gate'")
    return dims, attributes


def _value(text: str, where: str) -> str:
    if not re.fullmatch(r"(?:(?:prefill\.c|decode\.)(?:\d+|\{step\})\.)?"
                        r"(?:layers?\.?(?:\d+|\{n\})\.)?[A-Za-z_][\w.]*", text):
        refuse("import_names", f"{where}: '{text}' is not a valid value; legal: layer{{n}}.q, "
                               "logits, decode.{step}.layer{n}.q")
    return text


def _arrow(text: str, where: str) -> Line:
    source, _, rest = text.partition("->")
    target, *options = rest.split(";")
    words = target.split()
    if not source.strip() or not words:
        refuse("import_names", f"{where}: legal: NAME -> VALUE [AXES [take N]] [; OPTION]")
    dims, attributes = _options(options, where)
    if words == ["none"]:
        return Line(_source(source.strip(), where), "", None, None, {}, where)
    return Line(_source(source.strip(), where), _value(words[0], where), _pattern(words[1:], where),
                dims, attributes, where, source.strip())


def _pattern(words: Sequence[str], where: str) -> Optional[Pattern]:
    if not words:
        return None
    if len(words) == 1:
        return parse_axes(words[0])
    if len(words) == 3 and words[1] == "take" and words[2].isdigit() and len(words[2]) < 4:
        return parse_axes(words[0], int(words[2]))
    return refuse("import_names", f"{where}: '{' '.join(words)}'; legal: AXES, AXES take N")


def _module(text: str, where: str) -> Line:
    """A line of a map, `q ~ model.layers.{n}.self_attn.q_proj BL(HQ) take 0 input`."""
    value, _, rest = text.partition("~")
    words = rest.split()
    suffix = _OUTPUTS
    if words and words[-1] == "input":
        words, suffix = words[:-1], _INPUTS
    if len(words) < 2:
        refuse("import_names", f"{where}: legal: VALUE ~ MODULE AXES [take N] [input]")
    name = value.strip()
    return Line(_source(words[0], where, suffix), _value(
        f"layer{{n}}.{name}" if "{n}" in words[0] else name, where), _pattern(words[1:], where),
        None, {}, where)


def _plain(name: str) -> str:
    for prefix in _DROPPED:
        name = name[len(prefix):] if name.startswith(prefix) else name
    return name


def module_of(name: str) -> Tuple[str, bool]:
    """What the dump calls the module that an array is of, its name without ".output.0", and whether
    it is what the module is given."""
    asked = _ASKED.fullmatch(_plain(name))
    if asked is None:
        return name, False
    return asked.group(1), (asked.group(2) or "").startswith(".in")


class Names:
    """Lines of names; those that stand first win over later ones with the same value."""

    def __init__(self, lines: Iterable[Line], modules: Optional[Mapping[str, List[Line]]] = None
                 ) -> None:
        self.lines = list(lines)
        self._modules = dict(modules or {})

    def __add__(self, other: "Names") -> "Names":
        return Names(self.lines + other.lines, {**other._modules, **self._modules})

    @classmethod
    def of_modules(cls, modules: Iterable[Module]) -> "Names":
        """Those of an architecture's modules: `MODULE.output`, `MODULE.input`."""
        found: Dict[str, List[Line]] = {}
        for m in modules:
            key = m.name + (".input" if m.input else ".output")
            line = Line(re.compile(re.escape(key)), m.value, m.read(), None, {}, "the architecture")
            found.setdefault(key, []).append(line)
        return cls([], found)

    @classmethod
    def of_text(cls, text: str, where: str = "names", modules_only: bool = False) -> "Names":
        """The lines of a text; of a map, `modules_only`, those with a ~. Raises Error import_names
        with the number of the line."""
        lines = []
        for number, raw in enumerate(text.split("\n"), 1):
            line, at = raw.split(" #")[0].strip(), f"{where} line {number}"
            if not line or line.startswith("#"):
                continue
            if len(line) > 4096:
                refuse("import_names", f"{at} has {len(line)} characters; at most 4096")
            try:
                if "->" in line and not modules_only:
                    lines.append(_arrow(line, at))
                elif "~" in line:
                    lines.append(_module(line, at))
                elif not modules_only:
                    refuse("import_names", f"'{line[:80]}'; legal: NAME -> VALUE [AXES [take N]]")
            except Error as error:
                told = "" if error.message.startswith(at) else f"{at}: "
                raise Error("import_names", told + error.message) from None
        return cls(lines)

    @classmethod
    def of_file(cls, path: PathLike) -> "Names":
        """Those of a file, or of a map (`*.map`)."""
        try:
            text = read_text(path, "import_names", "name fewer values").decode("utf-8")
        except UnicodeDecodeError:
            refuse("import_names", f"{path} is not UTF-8")
        return cls.of_text(text, str(path), str(path).endswith(".map"))

    @classmethod
    def shipped(cls) -> "Names":
        """What tells the tokens of a step, and the fused modules of serving engines."""
        folder = pathlib.Path(__file__).parent
        return cls.of_text((folder / "engines.names").read_text(encoding="utf-8"), "engines.names")

    @classmethod
    def fused(cls) -> Dict[str, Dict[str, int]]:
        """The modules that serving engines fuse, by the end of their name, and the place of each
        value in what they return: {"qkv_proj": {"q": 0, "k": 1, "v": 2}, ...}."""
        out: Dict[str, Dict[str, int]] = {}
        for line in cls.shipped().lines:
            if line.pattern is not None and line.pattern.take is not None:
                name = module_of(line.name)[0].rpartition(".")[2]
                out.setdefault(name, {})[line.value.rpartition(".")[2]] = line.pattern.take
        return out

    def matches(self, name: str, layer: Optional[int] = None) -> List[Match]:
        """The values that an array of this name holds, several of a fused one; none if no line
        has it. `layer` is the layer that the dump says beside the name."""
        name = _plain(name)
        out: Dict[str, Match] = {}
        for line in self.lines:
            found = line.source.fullmatch(name)
            if found is None:
                continue
            said: Dict[str, Any] = found.groupdict()
            places = {"n": said.get("n") or (None if layer is None else str(layer)),
                      "step": said.get("step")}
            value = re.sub(r"\{(\w+)\}", lambda m: places.get(m.group(1)) or "{?}", line.value)
            out.setdefault(value, Match(value, line))
            if not line.value:
                break
        asked = _ASKED.fullmatch(name)
        if asked is not None:
            taken = (asked.group(2) or "").startswith(".in")
            key = asked.group(1) + (".input" if taken else ".output")
            for line in self._modules.get(key, ()):
                out.setdefault(line.value, Match(line.value, line))
        if "" in out:
            return [out[""]] if len(out) == 1 else [m for v, m in out.items() if v]
        return list(out.values())
