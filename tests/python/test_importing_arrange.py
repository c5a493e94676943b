"""Arrays of ranks, put together: shards, rows, scattered tokens, against the whole array."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shardproof as sp
from shardproof.axes import parse_axes
from shardproof.importing.arrange import arrange
from shardproof.importing.arrays import FileArray
from shardproof.importing.mesh import mesh_of
from shardproof.importing.rows import Rows

EXTENTS = {"E": 8, "H": 4, "K": 2, "Q": 2, "F": 8, "V": 12}


def mesh(**sizes):
    names, counts = list(sizes), list(sizes.values())
    return mesh_of({r: {n: (int(at), sizes[n]) for n, at in zip(names, np.unravel_index(r, counts))}
                    for r in range(int(np.prod(counts)))})


def file_array(array):
    return FileArray("a", array.shape, array.dtype, lambda: array)


def arranged(arrays, pattern, dims, rows, on, last=False):
    files = {r: file_array(np.asarray(a)) for r, a in enumerate(arrays)}
    return arrange(files, parse_axes(pattern), dims, rows, on, EXTENTS, last)


def whole_of(found, torus):
    """The array that the shards are of."""
    shards = dict(found.shards)
    x, y, z = map(int, torus.split("x"))
    return sp.Layout(found.layout).assemble([shards[c] for c in np.ndindex(x, y, z)], torus)


ROWS = Rows((4, 4), (0, 0), 8)
WHOLE = np.arange(2 * 4 * 8, dtype=np.float32).reshape(2, 4, 8)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([("b s h", (0, 1, 2)), ("s b h", (1, 0, 2)), ("b h s", (0, 2, 1)),
                        ("h s b", (2, 1, 0))]), st.permutations(["b", "s", "h"]), st.data())
def test_blocks_of_any_dims_in_any_order(order, cut, data):
    """Each of up to three axes cuts a dim of its own, in natural order or, of s, in a zigzag."""
    names, axes = order
    used = dict(zip(cut, ["dp", "tp", "cp"][:data.draw(st.integers(0, 3))]))
    on = mesh(**{axis: 2 for axis in sorted(used.values())}) if used else mesh_of({0: {}})
    zigzag = "s" in used and data.draw(st.booleans())
    words = [n + (f"[{used[n]}{':zigzag' if zigzag and n == 's' else ''}]" if n in used else "")
             for n in names.split()]
    arrays = []
    for rank in sorted(on.places):
        part = WHOLE
        for dim, name in enumerate("bsh"):
            if name in used:
                n = on.block(on.places[rank], on.axes[used[name]])
                pieces = np.split(part, 4 if zigzag and name == "s" else 2, axis=dim)
                part = np.concatenate([pieces[n], pieces[3 - n]], 1) if zigzag and name == "s" \
                    else pieces[n]
        arrays.append(part.transpose(axes))
    found = arranged(arrays, "BLE", " ".join(words), Rows((4, 4), (0, 0), 4), on)
    assert np.array_equal(whole_of(found, on.torus), WHOLE)
    assert bool(found.owners) == zigzag


@pytest.mark.parametrize("counts, held", [
    ((8, 8), [[0, 1, 6, 7], [8, 9, 14, 15], [2, 3, 4, 5], [10, 11, 12, 13]]),
    ((4, 8), [[0, 3, 4], [5, 10, 11], [1, 2, 6], [7, 8, 9]]),
    ((8,), [[0, 1], [6, 7], [2, 3], [4, 5]])])
def test_a_zigzag_of_each_row_of_which_tp_ranks_hold_parts(counts, held):
    """As Megatron does: a cp rank's tokens of all rows, one behind another, are cut over tp."""
    on, rows, total = mesh(cp=2, tp=2), Rows(counts, (0,) * len(counts), sum(counts)), sum(counts)
    packed = np.arange(1, 8 * total + 1, dtype=np.float32).reshape(total, 8)
    found = arranged([packed[h] for h in held], "BLE", "t[cp:zigzag,sp] h", rows, on)
    for _, array in found.shards:
        for row, first, n in zip(array, np.cumsum((0,) + counts), counts):
            assert np.array_equal(row[:n], packed[first:first + n])
    owners = found.owners[0, 0, 0]
    assert [owners[r, p] for r, n in enumerate(counts) for p in range(n)] == [
        next(rank for rank, tokens in enumerate(held) if t in tokens) for t in range(total)]


def test_a_zigzag_within_blocks_of_several_rows_is_refused():
    on, rows = mesh(tp=2, cp=2), Rows((8, 8), (0, 0), 16)
    with pytest.raises(sp.Error, match="do not divide"):
        arranged([np.ones((4, 8))] * 4, "BLE", "t[sp,cp:zigzag] h", rows, on)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.booleans(), st.integers(0, 2))
def test_packed_tokens_come_into_their_rows(quarters, zigzag, padding):
    counts = [4 * n for n in quarters]
    on, total = mesh(cp=2), sum(counts)
    padding = 0 if zigzag else 2 * padding
    rows = Rows(tuple(counts), (0,) * len(counts), total + padding)
    packed = np.arange(1, 8 * total + 1, dtype=np.float32).reshape(total, 8)
    held = []
    if zigzag:
        starts = np.cumsum([0, *counts])
        for r in range(2):
            pieces = [np.split(packed[a:b], 4) for a, b in zip(starts, starts[1:])]
            held.append(np.concatenate([x for p in pieces for x in (p[r], p[3 - r])]))
    else:
        held = np.split(np.concatenate([packed, np.full((padding, 8), -1, np.float32)]), 2)
    found = arranged(held, "BLE", f"t[cp{':zigzag' if zigzag else ''}] h", rows, on)
    expected = np.zeros((len(counts), max(counts), 8), np.float32)
    start = 0
    for row, n in enumerate(counts):
        expected[row, :n] = packed[start:start + n]
        start += n
    for chip, array in found.shards:
        assert np.array_equal(array, expected)
        assert all((found.owners[chip][row, n:] == -1).all() for row, n in enumerate(counts))
        for row, n in enumerate(counts):
            for l in range(n):
                owner = found.owners[chip][row, l]
                assert (held[owner] == expected[row, l]).all(axis=1).any()


def test_a_fused_array_of_ranks_that_share_kv_heads():
    on = mesh_of({r: {"tp": (r, 4)} for r in range(4)}, kv_heads=2)
    q = np.arange(2 * 4 * 8).reshape(2, 4, 4, 2)
    k = 100 + np.arange(2 * 4 * 4).reshape(2, 4, 2, 2)
    arrays = [np.concatenate([q[:, :, r], k[:, :, r // 2], k[:, :, r // 2] + 100], -1)
              for r in range(4)]
    for take, expected, layout in ((0, q, "BLH_yzQ"), (1, k, "BLK_yQ"), (2, k + 100, "BLK_yQ")):
        files = {r: file_array(a) for r, a in enumerate(arrays)}
        found = arrange(files, parse_axes("BL([HQ,KQ,KQ])", take), "b s h[tp]",
                        Rows((4, 4), (0, 0), 4), on, EXTENTS)
        assert found.layout == layout and np.array_equal(whole_of(found, on.torus), expected)


@pytest.mark.parametrize("dims, shape", [("t v[tp]", (8, 6)), ("b v[tp]", (2, 6)),
                                         ("b s v[tp]", (2, 4, 6)), (None, (8, 6))])
def test_the_last_position_of_each_row(dims, shape):
    on = mesh(tp=2)
    rows = Rows((4, 4) if shape[0] != 8 else (5, 3), (0, 0), 8 if shape[0] == 8 else 4)
    packed = np.arange(np.prod(shape) * 2).reshape(*shape[:-1], 12)
    found = arranged(np.split(packed, 2, axis=-1), "BLV", dims, rows, on, True)
    expected = {(8, 6): packed[[4, 7]] if shape == (8, 6) else None, (2, 6): packed,
                (2, 4, 6): packed[:, -1] if len(shape) == 3 else None}[shape]
    assert found.layout == "BV_z" and np.array_equal(whole_of(found, on.torus), expected)


def test_only_the_last_positions_are_there():
    found = arranged([np.ones((2, 8))], "BLE", "t h", Rows((5, 3), (0, 0), 8), mesh_of({0: {}}))
    assert found.layout == "BE" and found.attributes == {"last": "true"}


def test_padding_on_the_left_is_taken_away():
    array = np.arange(2 * 4 * 8).reshape(2, 4, 8)
    found = arranged([array], "BLE", "b s h", Rows((4, 2), (0, 2), 4), mesh_of({0: {}}))
    (_, shard), = found.shards
    assert np.array_equal(shard[0], array[0]) and np.array_equal(shard[1, :2], array[1, 2:])
    assert not shard[1, 2:].any()


def test_a_vocabulary_with_padding_says_so():
    found = arranged([np.ones((2, 8))] * 2, "BV", "b v[tp]", ROWS, mesh(tp=2))
    assert found.layout == "BV_z" and found.attributes == {"padded": "V"}


@pytest.mark.parametrize("pattern, dims, shape, rows, words", [
    ("BLE", "t h", (7, 8), ROWS, "7 tokens, and the step has 8"),
    ("BLE", "b s h", (3, 4, 8), ROWS, "3 rows, and the step has 2"),
    ("BLE", "b s h", (2, 5, 8), ROWS, "5 positions"), ("BLE", "t h", (8, 7), ROWS, "does not fit"),
    ("BLE", "t 1 h", (8, 2, 8), ROWS, "a dim 1"),
    ("BLE", "t h d", (8, 8, 8), ROWS, "2 dims that are no"),
    ("BLE", "t h[tp:zigzag]", (8, 4), ROWS, "zigzag is an order of tokens"),
    ("BLE", None, (8,), ROWS, "say its dims there"),
    ("BLE", "t[tp:zigzag] h", (4, 8), Rows((5, 3), (0, 0), 8), "do not divide")])
def test_arrays_that_do_not_fit(pattern, dims, shape, rows, words):
    with pytest.raises(sp.Error) as error:
        list(arranged([np.ones(shape)] * 2, pattern, dims, rows, mesh(tp=2)).shards)
    assert words in error.value.message and error.value.label in ("import_dims", "import_run")
