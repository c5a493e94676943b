"""Which row and position each token of a step is: packed tokens, padding on the left, zigzag."""
from __future__ import annotations

from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .._arrays import Array
from .limits import refuse


class Rows(NamedTuple):
    """The tokens of a step. Arrays of it are packed, [T, ...], or padded, [B, S, ...]."""

    counts: Tuple[int, ...]           # tokens of each row
    pads: Tuple[int, ...]             # padding before them, of arrays [B, S, ...]
    held: int = 0                     # tokens T or positions S of its arrays, padding included

    @property
    def width(self) -> int:
        return max(self.counts)

    @property
    def total(self) -> int:
        return sum(self.counts)

    def packed(self) -> Tuple[Array, Array]:
        """Row and position of each packed token."""
        row = np.repeat(np.arange(len(self.counts)), self.counts)
        return row, np.concatenate([np.arange(n) for n in self.counts])

    @property
    def shifted(self) -> bool:
        return any(self.pads)

    def last(self) -> Array:
        """Of each row the position of its last token; 0 for a row without one."""
        last: Array = np.maximum(np.array(self.counts) - 1, 0)
        return last


def chunk(index: Array, n: int, block: int, zigzag: bool) -> Optional[Array]:
    """The part of these tokens that block number `block` of n has; None if they are not divided."""
    pieces = 2 * n if zigzag else n
    if len(index) % pieces:
        return None
    width = len(index) // pieces
    parts = index.reshape(pieces, width)
    out: Array = parts[block]
    if zigzag:
        out = np.concatenate([out, parts[pieces - 1 - block]])
    return out


def tokens_of(total: int, segments: Sequence[int], cuts: Sequence[Tuple[int, int, bool]],
              held: int) -> Optional[Array]:
    """The numbers of the tokens that a rank holds, -1 for padding at the end. `cuts` are (ranks,
    number, zigzag), major to minor; a zigzag cuts each segment by itself, any other cut what the
    cuts before it leave as a whole, behind which no zigzag can follow; `held` is how many the array
    has. None if the tokens cannot be divided so."""
    ranks = 1
    for n, _, _ in cuts:
        ranks *= n
    whole = held * ranks
    if whole < total:
        return None
    if any(zigzag for _, _, zigzag in cuts):
        if whole != total:
            return None
        parts = np.split(np.arange(total), np.cumsum(segments)[:-1])
    else:
        parts = [np.concatenate([np.arange(total), np.full(whole - total, -1)])]
    for n, block, zigzag in cuts:
        if not zigzag:
            parts = [np.concatenate(parts)]
        elif len(parts) != len(segments):
            return None
        cut = [chunk(part, n, block, zigzag) for part in parts]
        if any(c is None for c in cut):
            return None
        parts = [c for c in cut if c is not None]
    out: Array = np.concatenate(parts)
    return out


def counts_of(tokens: int, before: Optional[Sequence[int]], said: Mapping[str, Array]) -> List[int]:
    """How many of a step's packed tokens each row has. `before` are the tokens that the rows had in
    earlier steps; `said` are lengths of this step, totals with earlier ones, cumulated lengths,
    positions. Raises Error import_run if nothing says it."""
    cu = said.get("cu_lengths")
    if cu is not None and cu.ndim == 1 and len(cu) > 1:
        counts = np.diff(cu.astype(np.int64))
        if counts.min() >= 0 and 0 < counts.sum() <= tokens:
            return [int(n) for n in counts]
    lengths = [said["lengths"]] if "lengths" in said else []
    if "totals" in said:
        totals = said["totals"].astype(np.int64)
        lengths += [totals - np.array(before)] if before and len(before) == len(totals) else []
        lengths += [totals] if not before else []
    for new in lengths:
        if new.ndim == 1 and len(new) and new.min() >= 0 and 0 < new.sum() <= tokens:
            return [int(n) for n in new]
    if before is not None and tokens == len(before):
        return [1] * tokens
    positions = said.get("positions")
    if positions is not None and positions.ndim == 1 and len(positions) == tokens:
        starts = np.flatnonzero(np.diff(positions.astype(np.int64)) != 1) + 1
        return [int(n) for n in np.diff(np.concatenate([[0], starts, [tokens]]))]
    if not lengths and cu is None and positions is None:
        return refuse("import_run", f"{tokens} packed tokens, and neither seq_lens nor cu_seqlens "
                                    "nor positions say how many each row has; dump one of them")
    return refuse("import_run", f"{tokens} packed tokens do not fit the rows that seq_lens, "
                                "cu_seqlens or positions say; dump a request from its first step "
                                "on")


def require_start(rows: Rows, before: Optional[Sequence[int]], said: Mapping[str, Array]) -> None:
    """Refuses a step whose rows go on from tokens that no earlier step has: a dump that begins in
    the middle of a request, or behind a prefix that is in a cache already."""
    past = list(before) if before else [0] * len(rows.counts)
    ends = [p + n for p, n in zip(past, rows.counts)]
    totals, positions = said.get("totals"), said.get("positions")
    if totals is not None and len(totals.reshape(-1)) == len(ends):
        told = [int(n) for n in totals.reshape(-1)]
        if told != ends:
            refuse("import_run", f"seq_lens says that rows have {told[:8]} tokens, and with this "
                                 f"step they have {ends[:8]}; dump a request from its first step "
                                 "on, without a prefix that is cached")
    elif positions is not None and positions.size:
        if positions.ndim == 2:
            first = [int(p[pad]) for p, pad in zip(positions, rows.pads)]
        else:
            starts = np.cumsum((0,) + rows.counts[:-1])
            first = [int(positions[min(s, len(positions) - 1)]) for s in starts]
        if any(f > p for f, p, n in zip(first, past, rows.counts) if n):
            refuse("import_run", f"rows begin at the positions {first[:8]}, and have {past[:8]} "
                                 "tokens before; dump a request from its first step on")


def pads_of(shape: Tuple[int, ...], mask: Optional[Array], positions: Optional[Array]
            ) -> Tuple[List[int], List[int]]:
    """Tokens and left padding of each row of [B, S], by a mask or by positions."""
    rows, width = shape
    if mask is not None and mask.shape == (rows, width):
        real = mask != 0
    elif positions is not None and positions.shape == (rows, width) and width > 1:
        # Padding has position 0 or 1 again and again; tokens count up from 0.
        steps = np.concatenate([np.diff(positions, axis=1) == 1, np.ones((rows, 1), bool)], axis=1)
        real = np.flip(np.logical_and.accumulate(np.flip(steps, 1), axis=1), 1)
        ahead = np.concatenate([np.ones((rows, 1), bool), steps[:, :-1]], axis=1)
        right = real.sum(axis=1) == 1
        real[right] = np.logical_and.accumulate(ahead, axis=1)[right]
    else:
        return [width] * rows, [0] * rows
    counts = real.sum(axis=1)
    pads = np.argmax(real, axis=1)
    for row, (n, pad) in enumerate(zip(counts, pads)):
        if n == 0 or not real[row, pad:pad + n].all():
            refuse("import_run", f"row {row} has padding between its tokens; legal: on the left or "
                                 "on the right")
    return [int(n) for n in counts], [int(p) for p in pads]
