"""The passes of a dump: which tokens each step has, and what it is in the case's run."""
from __future__ import annotations

import pathlib
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .._arrays import Array
from .._library import Error
from .arrays import FileArray
from .dims import parse_dims
from .limits import PathLike, read_text, refuse, zeros
from .mesh import Mesh
from .rows import Rows, counts_of, pads_of, require_start, tokens_of


class Given(NamedTuple):
    """An array that tells the tokens of a step, from the ranks that have it."""

    arrays: Mapping[int, FileArray]
    dims: Optional[str]


class Step(NamedTuple):
    name: str                  # "prefill.c0", "decode.1"
    rows: Rows
    ids: Optional[Array]       # [B, L]


def read_ids(path: PathLike) -> List[List[int]]:
    """Rows of token ids: a text of decimal numbers, a row a line, or an array [B, L] of npy."""
    if str(path).endswith(".npy"):
        from .numpy_file import read_npy
        array = read_npy(pathlib.Path(path)).load()
        if array.ndim != 2 or array.dtype.kind not in "iu":
            refuse("import_ids", f"{path} has {array.dtype} {list(array.shape)}; legal: integers "
                                 "[B, L]")
        return [[int(n) for n in row] for row in array]
    text = read_text(path, "import_ids", "give an npy").decode("latin1")
    rows = [line.split() for line in text.splitlines() if line.strip()]
    if not rows or not all(re.fullmatch(r"\d{1,9}", word) for row in rows for word in row):
        refuse("import_ids", f"{path} is not a valid list of rows of token ids; legal: "
                             "decimal numbers, a row a line")
    return [[int(word) for word in row] for row in rows]


def _whole(given: Given, mesh: Mesh, segments: Optional[Sequence[int]]) -> Array:
    """The array of all tokens. Ranks that hold other tokens hold them by the text of dims, or, as
    engines with context parallelism do, in a zigzag over cp."""
    arrays = {rank: a.load() for rank, a in given.arrays.items()}
    first = arrays[min(arrays)]
    if all(np.array_equal(first, a) for a in arrays.values()):
        return first
    dims = given.dims or ("t[cp:zigzag]" if first.ndim == 1 else "b s[cp:zigzag]")
    said = parse_dims(dims).dims
    cuts = [c for d in said for c in d.cuts if mesh.axes.get(c.axis)]
    axes = "".join(mesh.axes[c.axis] for c in cuts)
    at = {rank: [(mesh.size(mesh.axes[c.axis]), mesh.block(mesh.places[rank], mesh.axes[c.axis]),
                  c.zigzag) for c in cuts] for rank in arrays}
    held = first.shape[-1]
    total = held * mesh.size(axes)
    if len(said) != first.ndim or any(a.shape != first.shape for a in arrays.values()) or \
            len({str(where) for where in at.values()}) != mesh.size(axes) or mesh.size(axes) == 1:
        refuse("import_run", f"ranks hold different tokens, which '{dims}' does not say; give "
                             "--ids FILE")
    out = zeros("its tokens", first.shape[:-1] + (total,), first.dtype)
    for rank, array in arrays.items():
        index = tokens_of(total, segments if segments and first.ndim == 1 else (total,), at[rank],
                          held)
        if index is None:
            refuse("import_run", f"{total} tokens in {list(segments or [])} do not divide as "
                                 f"'{dims}' says; give --ids FILE")
        out[..., index] = array
    return out


def _padded_rows(ids: Sequence[Sequence[int]], counts: Sequence[int]) -> Array:
    out = zeros("its tokens", (len(counts), max(counts)), np.int32)
    for row, n in enumerate(counts):
        out[row, :n] = ids[row][:n]
    return out


def _rows_and_ids(given: Mapping[str, Given], mesh: Mesh, before: Optional[Sequence[int]],
                  prompt: Optional[Sequence[Sequence[int]]]) -> Tuple[Rows, Optional[Array]]:
    said = {name: given[name].arrays[min(given[name].arrays)].load()
            for name in ("lengths", "totals", "cu_lengths") if name in given}
    segments = None
    if "cu_lengths" in said:
        segments = [int(n) for n in np.diff(said["cu_lengths"])]
    elif "lengths" in said or "totals" in said:
        lengths = said["lengths" if "lengths" in said else "totals"]
        segments = [int(n) for n in lengths.reshape(-1)]
    arrays = {name: _whole(given[name], mesh, segments)
              for name in ("ids", "positions", "mask") if name in given}
    said.update({name: arrays[name] for name in ("positions",) if name in arrays})
    ids, positions = arrays.get("ids"), arrays.get("positions")
    if ids is not None:
        ids = np.clip(ids, -1, 2**31 - 1)
    tokens = ids if ids is not None else positions
    if tokens is None and prompt is not None:
        counts = [1] * len(before) if before is not None else [len(row) for row in prompt]
        return Rows(tuple(counts), (0,) * len(counts)), None
    if tokens is None:
        refuse("import_run", "the step has neither input_ids nor positions; give --ids FILE")
    if tokens.ndim == 1:
        counts = counts_of(len(tokens), before, said)
        rows = Rows(tuple(counts), (0,) * len(counts), len(tokens))
        require_start(rows, before, said)
        if ids is not None:
            out = zeros("its tokens", (len(counts), rows.width), np.int32)
            row, position = rows.packed()
            out[row, position] = ids[:rows.total]
            ids = out
        return rows, ids
    if tokens.ndim != 2:
        refuse("import_run", f"tokens of {tokens.ndim} dims; legal: [T], [B, L]")
    mask = arrays.get("mask")
    if mask is not None and mask.ndim == 2 and mask.shape[1] > tokens.shape[1]:
        mask = mask[:, -tokens.shape[1]:]
    counts, pads = pads_of(tokens.shape, mask, positions)
    rows = Rows(tuple(counts), tuple(pads), tokens.shape[1])
    require_start(rows, before, {n: a for n, a in said.items() if n == "positions"})
    if ids is not None:
        out = zeros("its tokens", (len(counts), rows.width), np.int32)
        for row_number, (n, pad) in enumerate(zip(counts, pads)):
            out[row_number, :n] = ids[row_number, pad:pad + n]
        ids = out
    return rows, ids


def _guarded(given: Mapping[str, Given], mesh: Mesh, before: Optional[Sequence[int]],
             prompt: Optional[Sequence[Sequence[int]]]) -> Tuple[Rows, Optional[Array]]:
    for name, one in given.items():
        for rank, array in one.arrays.items():
            if array.dtype.kind not in "iub" or not 1 <= len(array.shape) <= 2:
                refuse("import_type", f"{name} of rank {rank} is {array.dtype} "
                                      f"{list(array.shape)}; legal: integers of one or two dims")
    try:
        rows, ids = _rows_and_ids(given, mesh, before, prompt)
        if not rows.total:
            refuse("import_run", "the step has no token; leave it out, with --steps")
        return rows, ids
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        refuse("import_run", f"the tokens of a step do not fit one another: {error}")


def _misfit(counts: Sequence[int], before: Optional[Sequence[int]], previous: Sequence[int],
            decode: bool, decodes: int) -> str:
    """Why a step is no pass of the run that the steps before are; empty if it is one."""
    if before is None:
        return ""
    if len(counts) != len(before):
        return f"it has {len(counts)} rows, the first step {len(before)}"
    if decode:
        return "" if min(counts) else "not every row has a token in it"
    if decodes:
        return "it has a prompt behind decode steps; judge one request at a time, with --steps"
    chunk = max(previous)
    if max(counts) > chunk or any(n and p < chunk for n, p in zip(counts, previous)):
        return f"its rows have {list(counts)[:8]} tokens; legal: chunks of one length"
    return ""


def steps_of(given: Mapping[int, Mapping[str, Given]], mesh: Mesh,
             prompt: Optional[Sequence[Sequence[int]]], other: Mapping[int, str]
             ) -> Tuple[Dict[int, Step], Dict[int, str]]:
    """The steps by number, in order, and those that are no pass of one run, with the reason;
    `other` are steps of which that is known."""
    steps: Dict[int, Step] = {}
    left: Dict[int, str] = {}
    before: Optional[List[int]] = None
    previous: Tuple[int, ...] = ()
    chunks = decodes = 0
    for number in sorted(given):
        if left:
            left[number] = "it goes on from a step that is left out"
            continue
        if number in other:
            left[number] = other[number]
            continue
        try:
            rows, ids = _guarded(given[number], mesh, before, prompt)
        except Error as error:
            if before is None:
                raise
            left[number] = error.message
            continue
        decode = before is not None and max(rows.counts) == 1
        why = _misfit(rows.counts, before, previous, decode, decodes)
        if why:
            left[number] = why
            continue
        previous = rows.counts
        if decode:
            decodes += 1
        name = f"decode.{decodes}" if decode else f"prefill.c{chunks}"
        chunks += 0 if decode else 1
        if ids is None and prompt is not None and not decode:
            past = before or [0] * len(rows.counts)
            if len(prompt) != len(rows.counts) or any(
                    len(p) < b + n for p, b, n in zip(prompt, past, rows.counts)):
                refuse("import_ids", f"--ids has rows of {[len(p) for p in prompt]} tokens, the "
                                     f"dump of {[b + n for b, n in zip(past, rows.counts)]}")
            ids = _padded_rows([p[b:] for p, b in zip(prompt, past)], rows.counts)
        steps[number] = Step(name, rows, ids)
        before = [b + n for b, n in zip(before or [0] * len(rows.counts), rows.counts)]
    return steps, left


def keys_of(steps: Sequence[Step]) -> Dict[str, str]:
    """The keys of a case line that the steps are a run of. Raises Error import_run for chunks that
    are no chunks of one length."""
    prefill = [s.rows.counts for s in steps if s.name.startswith("prefill")]
    lengths = [sum(c) for c in zip(*prefill)]
    chunk = max(prefill[0])
    for number, counts in enumerate(prefill):
        wanted = tuple(min(chunk, max(0, n - number * chunk)) for n in lengths)
        if counts != wanted:
            refuse("import_run", f"chunk {number} has {list(counts)} tokens; legal: chunks of one "
                                 f"length, {list(wanted)}")
    keys = {"batch": str(len(lengths)), "prompt": str(max(lengths)),
            "gen": str(1 + sum(s.name.startswith("decode") for s in steps))}
    if len(prefill) > 1:
        keys["chunk"] = str(chunk)
    if len(set(lengths)) > 1:
        keys["lengths"] = ",".join(map(str, lengths))
    return keys
