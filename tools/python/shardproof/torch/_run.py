"""A run that was seen: its passes, in the terms of a case."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Sequence, Tuple

from .._library import Error
from ._modules import Show
from ._tensors import Seen


class Pass(NamedTuple):
    """What was seen in one call of the model: values, the same before a module's style
    redistributed them, and by heads, [B, H, ...], rotated queries and the caches."""

    ids: Seen
    values: Dict[str, Tuple[Show, Seen]]
    early: Dict[str, Tuple[Show, Seen]]
    heads: Dict[str, Seen]


class Run:
    """The passes of a run, in the terms of a case. `says_sums`: whether it is known of each value
    if it is a sum over ranks."""

    def __init__(self, reference: Any, passes: Sequence[Pass], sizes: Sequence[int],
                 says_sums: bool) -> None:
        if not passes:
            raise Error("torch_passes", "no pass was seen: call the model while the tap is open")
        self.reference = reference
        self.passes = passes
        self.sizes = list(sizes) or [1]
        self.says_sums = says_sums
        self.lengths = [one.ids.shape[-1] for one in passes]
        self.batch = passes[0].ids.shape[0]
        self.chunks = next((i for i, n in enumerate(self.lengths) if i and n == 1),
                           len(self.lengths))
        self._require_legal()
        self.extents = {**reference.architecture.extents, "B": self.batch}

    def _require_legal(self) -> None:
        prefill, decode = self.lengths[:self.chunks], self.lengths[self.chunks:]
        if any(n != 1 for n in decode) or len(set(prefill[:-1])) > 1 or prefill[-1] > prefill[0] \
                or any(one.ids.shape[0] != self.batch for one in self.passes):
            raise Error("torch_passes", f"passes of {', '.join(map(str, self.lengths))} tokens: "
                                        "legal: a prefill, in equal chunks, then one at a time")

    def name(self, number: int) -> str:
        """Of a pass, as traces call it."""
        if number < self.chunks:
            return f"prefill.c{number}"
        return f"decode.{number - self.chunks + 1}"

    def sizes_in(self, number: int) -> Dict[str, int]:
        """The extents of all letters in a pass."""
        return {**self.extents, "L": self.lengths[number], "M": sum(self.lengths[:number + 1])}

    def case(self, torus: str) -> str:
        prompt = sum(self.lengths[:self.chunks])
        return str(self.reference.case(
            torus=torus, batch=self.batch, prompt=prompt, chunk=min(self.lengths[0], prompt),
            gen=len(self.lengths) - self.chunks + 1))
