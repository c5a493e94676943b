"""Which values the results of modules reach that a text does not have."""
from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

# Functions whose result has all elements of their operand, and is the same value.
_SAME = frozenset("view view_as reshape transpose permute contiguous clone detach unsqueeze "
                  "squeeze flatten unflatten wait_tensor to".split())

# Those that write into their first operand: add_, x += y, x[i] = y.
_IN_PLACE = re.compile(r"[a-z0-9]_$|^__(setitem|i(add|sub|mul|truediv|and|or|xor))__$")


class _Shown(NamedTuple):
    """A value that was seen: in which pass, when, and the number of its tensor, if it has one."""

    number: int
    name: str
    when: int
    tensor: Optional[int]


class Flow:
    """Tensors that are computed from what such modules return. Each has a number, greater than
    those it was computed from. PyTorch's own functions are followed, and nothing is if the model
    has no such module."""

    def __init__(self) -> None:
        self._count = 0
        self._from: Dict[int, Tuple[int, ...]] = {}
        self._returned: Dict[int, Tuple[int, str]] = {}  # by number: in which pass, the module
        self._shown: List[_Shown] = []
        self._numbers: Any = None
        self._mode: Any = None

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_numbers": None, "_mode": None}

    def begin(self) -> None:
        """Follows functions until `end`."""
        from torch.utils.weak import WeakIdKeyDictionary

        self.end()
        self._numbers = WeakIdKeyDictionary() if self._numbers is None else self._numbers
        self._mode = _mode(self)
        self._mode.__enter__()

    def end(self) -> None:
        """Follows no functions any more."""
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None

    def returned(self, number: int, module: str, output: Any) -> None:
        """What such a module returned in a pass."""
        self._count += 1
        self._returned[self._count] = number, module
        for tensor in _tensors(output):
            self._put(tensor, self._count)

    def show(self, number: int, name: str, tensor: Any) -> None:
        """A value was seen in a pass."""
        if self._numbers is not None:
            self._count += 1
            self._shown.append(_Shown(number, name, self._count, self._number(tensor)))

    def called(self, name: str, operands: Any, result: Any) -> None:
        """A function was called."""
        found = [self._number(tensor) for tensor in _tensors(operands)]
        numbers = {number for number in found if number is not None}
        if not numbers:
            return
        in_place = _IN_PLACE.search(name) is not None
        results = list(_tensors(result))
        written = list(_tensors(operands))[:1] if in_place else []
        number = next(iter(numbers))
        if len(numbers) > 1 or name not in _SAME or not _keeps_type(operands, results):
            self._count += 1
            self._from[self._count] = tuple(numbers)
            number = self._count
        for tensor in results + written:
            self._put(tensor, number)
            base = getattr(tensor, "_base", None) if in_place else None
            if base is not None:
                self._put(base, number)

    def reached(self, values: Set[Tuple[int, str]]) -> Dict[Tuple[int, str], FrozenSet[str]]:
        """Those of the values, by pass and name, that the modules' results reach first, and by
        which modules. What follows from these alone is not reached. A result that is lost on the
        way, in a kernel that is no function of PyTorch, reaches the value that is seen next."""
        out: Dict[Tuple[int, str], FrozenSet[str]] = {}
        by_tensor: Dict[int, List[Tuple[int, str]]] = {}
        for one in self._shown:
            if one.tensor is not None and (one.number, one.name) in values:
                by_tensor.setdefault(one.tensor, []).append((one.number, one.name))
        spoiled: Dict[int, FrozenSet[int]] = {}  # by which results
        ended: Set[int] = set()
        for tensor in sorted({*self._from, *self._returned}):
            whence: FrozenSet[int] = frozenset().union(
                *[spoiled.get(one, frozenset()) for one in self._from.get(tensor, ())])
            spoiled[tensor] = frozenset([tensor]) if tensor in self._returned else whence
            if spoiled[tensor] and tensor in by_tensor:
                for value in by_tensor[tensor]:
                    out[value] = frozenset(self._returned[one][1] for one in spoiled[tensor])
                ended |= spoiled.pop(tensor)
        for result in sorted(set(self._returned) - ended):
            number, module = self._returned[result]
            following = next(((one.number, one.name) for one in self._shown
                              if one.when > result and one.number == number
                              and (one.number, one.name) in values), None)
            if following is not None:
                out[following] = out.get(following, frozenset()) | {module}
        return out

    def _number(self, tensor: Any) -> Optional[int]:
        return next((self._numbers[one] for one in _inner(tensor) if one in self._numbers), None)

    def _put(self, tensor: Any, number: int) -> None:
        for one in _inner(tensor):
            self._numbers[one] = number


def _tensors(of: Any, depth: int = 3) -> Iterator[Any]:
    """The tensors in arguments or results."""
    if hasattr(of, "layout") and hasattr(of, "dtype"):
        yield of
    elif isinstance(of, (tuple, list)) and depth:
        for one in of:
            yield from _tensors(one, depth - 1)
    elif isinstance(of, dict) and depth:
        for one in of.values():
            yield from _tensors(one, depth - 1)


def _inner(tensor: Any) -> Iterator[Any]:
    """A tensor, and what it wraps: of a DTensor the local one, of one in flight the result."""
    for _ in range(3):
        yield tensor
        inner = getattr(tensor, "_local_tensor", None)
        tensor = getattr(tensor, "elem", None) if inner is None else inner
        if tensor is None:
            return


def _keeps_type(operands: Any, results: List[Any]) -> bool:
    first = next(_tensors(operands))
    return all(one.dtype == first.dtype for one in results)


def _mode(flow: Flow) -> Any:
    from torch.overrides import TorchFunctionMode

    class Following(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (),
                               kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            flow.called(getattr(function, "__name__", ""), (args, kwargs or {}), result)
            return result
    return Following()
