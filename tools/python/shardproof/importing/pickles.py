"""Pickles without running them: an interpreter of the opcodes that plain data needs. A global that
is not on a short list becomes a Refused, and so does what is made from it; nothing is imported or
called."""
from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Tuple

from .arrays import Refused
from .limits import refuse


class Global(NamedTuple):
    """A name that the pickle refers to, and what is made of its arguments."""

    name: str
    make: Callable[..., Any]


# Opcodes with an argument of fixed width, and those whose argument has its length before it.
_NUMBERS = {"K": "<B", "M": "<H", "J": "<i", "G": ">d", "h": "<B", "j": "<I", "q": "<B", "r": "<I",
            "\x80": "<B", "\x95": "<Q"}
_TEXTS = {"X": "<I", "\x8c": "<B", "\x8d": "<Q", "B": "<I", "C": "<B", "\x8e": "<Q", "T": "<I",
          "U": "<B", "\x8a": "<B", "\x8b": "<I"}
_KEYS = (str, int, float, bytes, type(None))  # whose hash takes no time
_MOST_ARGUMENTS = 16  # a call copies them, and a pickle can call a million times
_CONSTANTS = {"N": None, "\x88": True, "\x89": False}


class _Bytes:
    def __init__(self, what: str, data: bytes) -> None:
        self._what, self._data, self._at = what, data, 0

    def take(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            refuse("import_container", f"{self._what} ends within its pickle; copy it again")
        self._at += count
        return self._data[self._at - count:self._at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        end = self._data.find(b"\n", self._at, self._at + 1000)
        if end < 0:
            refuse("import_container", f"{self._what} ends within its pickle; copy it again")
        text = self._data[self._at:end].decode("utf-8", "replace")
        self._at = end + 1
        return text


class _Machine:
    def __init__(self, what: str, data: bytes, known: Mapping[str, Any],
                 storage: Callable[[Any], Any]) -> None:
        self._what, self._in, self._known, self._storage = what, _Bytes(what, data), known, storage
        self.stack: List[Any] = []
        self._marks: List[int] = []
        self._memo: Dict[int, Any] = {}

    def broken(self, why: str) -> Any:
        refuse("import_container", f"{self._what} has a pickle that is broken: {why}; write it "
                                   "again")

    def pop(self) -> Any:
        if len(self.stack) <= (self._marks[-1] if self._marks else 0):
            self.broken("its stack is empty")
        return self.stack.pop()

    def marked(self) -> List[Any]:
        if not self._marks:
            self.broken("no mark")
        start = self._marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def named(self, name: str) -> Any:
        if name in self._known:
            known = self._known[name]
            return Global(name, known) if callable(known) else known
        return Refused(f"it holds {name[:200]}, which is not read; legal: tensors, sizes, dtypes, "
                       "dicts, lists, texts, numbers")

    def call(self, function: Any, arguments: Any) -> Any:
        if isinstance(function, Refused):
            return function
        if not isinstance(function, Global) or not isinstance(arguments, tuple):
            self.broken("a call of what is not a function")
        if len(arguments) > _MOST_ARGUMENTS:
            return Refused(f"it holds {function.name} with {len(arguments)} arguments; at most "
                           f"{_MOST_ARGUMENTS}")
        try:
            return function.make(*arguments)
        except (TypeError, ValueError, OverflowError):
            return Refused(f"it holds {function.name} with arguments that do not fit")

    def set_items(self, items: List[Any]) -> None:
        target = self.stack[-1] if self.stack else None
        if isinstance(target, Refused):
            return
        if not isinstance(target, dict) or len(items) % 2:
            self.broken("items of no dict")
        else:
            for key, value in zip(items[::2], items[1::2]):
                if isinstance(key, _KEYS):
                    target[key] = value
                else:
                    target[f"({type(key).__name__})"] = Refused(
                        "its key is neither text nor a number")

    def append(self, items: List[Any]) -> None:
        target = self.stack[-1] if self.stack else None
        if isinstance(target, list):
            target.extend(items)
        elif not isinstance(target, Refused):
            self.broken("items of no list")

    def constant(self, op: str, form: str) -> None:
        count = self._in.number(form)
        data = self._in.take(count)
        if op in "\x8a\x8b":
            self.stack.append(int.from_bytes(data, "little", signed=True) if count <= 8 else
                              Refused("it holds a number of more than 64 bits"))
        elif op in "BC\x8e":
            self.stack.append(data)
        else:
            self.stack.append(data.decode("latin1" if op in "TU" else "utf-8", "replace"))

    def step(self, op: str) -> bool:
        """Runs one opcode; returns False at the last."""
        stack = self.stack
        if op in _TEXTS:
            self.constant(op, _TEXTS[op])
        elif op in _NUMBERS:
            self.numbered(op, self._in.number(_NUMBERS[op]))
        elif op in _CONSTANTS:
            stack.append(_CONSTANTS[op])
        elif op == "(":
            self._marks.append(len(stack))
        elif op in "]})\x8f":
            stack.append({"]": [], "}": {}, ")": (), "\x8f": Refused("it holds a set")}[op])
        elif op in "t\x85\x86\x87":
            count = "\x85\x86\x87".find(op) + 1
            items = self.marked() if op == "t" else [self.pop() for _ in range(count)][::-1]
            stack.append(tuple(items))
        elif op in "lde":
            items = self.marked()
            if op == "e":
                self.append(items)
            else:
                stack.append([] if op == "l" else {})
                self.append(items) if op == "l" else self.set_items(items)
        elif op == "a":
            item = self.pop()
            self.append([item])
        elif op in "su":
            items = self.marked() if op == "u" else [self.pop(), self.pop()][::-1]
            self.set_items(items)
        elif op == "\x90":
            self.marked()  # items of a set
        elif op == "0":
            self.pop()
        elif op == "1":
            self.marked()
        elif op == "\x94":
            self._memo[len(self._memo)] = stack[-1] if stack else self.broken("nothing to store")
        elif op == "c":
            module = self._in.line()
            stack.append(self.named(f"{module}.{self._in.line()}"))
        elif op == "\x93":
            name, module = self.pop(), self.pop()
            stack.append(self.named(f"{module}.{name}") if isinstance(name, str)
                         and isinstance(module, str) else self.broken("a global without a name"))
        elif op == "Q":
            stack.append(self._storage(self.pop()))
        elif op in "R\x81\x92":
            named = self.pop() if op == "\x92" else None
            arguments, function = self.pop(), self.pop()
            stack.append(named if isinstance(named, Refused) else self.call(function, arguments))
        elif op == "b":
            self.pop()  # a state, which plain data does not have
        elif op == ".":
            return False
        else:
            self.broken(f"it has the opcode {op!r}, which plain data does not need")
        return True

    def numbered(self, op: str, number: Any) -> None:
        if op in "KMJG":
            self.stack.append(number)
        elif op in "hj":
            if number not in self._memo:
                self.broken(f"nothing is stored as {number}")
            self.stack.append(self._memo[number])
        elif op in "qr":
            self._memo[number] = self.stack[-1] if self.stack else self.broken("nothing to store")

    def run(self) -> Any:
        while self.step(self._in.take(1).decode("latin1")):
            pass
        return self.pop()


def read_pickle(what: str, data: bytes, known: Mapping[str, Any],
                storage: Callable[[Any], Any]) -> Any:
    """The object of a pickle. `known` gives for each global that is read what stands for it, or
    what makes an object of its arguments, at once and not of their depth: a pickle can call it a
    million times. `storage` makes an object of a persistent id."""
    return _Machine(what, data, known, storage).run()
