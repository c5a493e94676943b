"""Dumps with something wrong in their files: what spoils one value costs that value."""
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shardproof import importing
from shardproof.importing.command import main
from dump_runs import dump, judge, model, references
from torch_files import Call, save_torch


def test_a_missing_rank_is_listed_and_the_rest_is_judged(model, tmp_path):
    folder = dump(model, tmp_path, tp=4, missing=(2,))
    code, out, _ = judge(folder, "--model", model)
    assert code == 1 and "the rank at tp 2" in out and "has no file" in out and "0 different" in out


@pytest.mark.parametrize("module, value", [("layers.1.input_layernorm.output", "layer1.norm"),
                                           ("layers.1.mlp.down_proj.input", "layer1.hidden")])
def test_a_value_without_the_file_of_one_rank_is_listed(model, tmp_path, module, value):
    """Whether its ranks hold replicas or parts."""
    def without(name, rank, array, meta):
        gone = name.endswith(module) and rank == 2 and meta["step"] == 0
        return (None if gone else array), meta

    folder = dump(model, tmp_path, tp=4, change=without)
    code, out, err = judge(folder, "--model", model)
    assert (code, err) == (1, "") and "0 different" in out
    assert f"  prefill.c0.{value}: rank 2 has no file of it" in out and "left out, 1:" in out


def test_scattered_tokens_of_a_missing_rank_are_not_judged(model, tmp_path):
    folder = dump(model, tmp_path, tp=2, cp=2, lengths=(8, 8), missing=(3,))
    code, out, err = judge(folder, "--model", model)
    assert code == 1 and "1 of 2 ranks are there, of those that hold tokens over cp" in out


def steps_changed(model, tmp_path, changes, **how):
    """A dump in which tokens of steps differ: (name, step) to what becomes of the value."""
    def change(name, rank, value, meta):
        act = changes.get((name, meta["step"]))
        return (value if act is None else act(value)), meta

    folder = dump(model, tmp_path, tp=2, change=change, **how)
    return judge(folder, "--model", model)


def test_a_dump_that_begins_in_the_middle(model, tmp_path):
    folder = dump(model, tmp_path, tp=2)
    code, _, err = judge(folder, "--model", model, "--steps", "1")
    assert code == 2 and "from its first step on" in err and err.count("\n") == 1


@pytest.mark.parametrize("shape", [(0,), (0, 4), (2, 0)])
def test_a_step_without_tokens(model, tmp_path, shape):
    (tmp_path / "dump").mkdir()
    for name in ("input_ids", "model.norm.output"):
        save_torch({"value": np.zeros(shape, np.int64), "meta": {}}, tmp_path / "dump" / (
            f"step=0___rank=0___dump_index=0___name={name}.pt"))
    code, _, err = judge(tmp_path / "dump", "--model", model)
    assert code == 2 and err.startswith("shardproof: import_run: ") and err.count("\n") == 1


def test_a_prefix_that_is_cached(model, tmp_path):
    code, _, err = steps_changed(model, tmp_path, {("seq_lens", 0): lambda v: v + 4,
                                                   ("positions", 0): lambda v: v + 4})
    assert code == 2 and "without a prefix that is cached" in err


def test_a_prefix_that_only_some_rows_have_cached(model, tmp_path):
    changes = {("seq_lens", 0): lambda v: None, ("seq_lens", 1): lambda v: None,
               ("positions", 0): lambda v: np.concatenate([v[:6], v[6:] + 4])}
    code, _, err = steps_changed(model, tmp_path, changes)
    assert code == 2 and "rows begin at the positions [0, 4], and have [0, 0]" in err


def test_a_step_that_lacks_one_before_is_left_out(model, tmp_path):
    code, out, err = steps_changed(model, tmp_path, {("seq_lens", 1): lambda v: v + 1})
    assert (code, err) == (1, "") and "step 1: seq_lens says that rows have [8, 8] tokens" in out
    assert "29 within, 0 different" in out


def test_rows_that_change_places(model, tmp_path):
    folder = dump(model, tmp_path, tp=2)
    for step, rows in ((0, ["a", "b"]), (1, ["b", "a"])):
        for rank in range(2):
            save_torch({"value": rows, "meta": {}},
                       folder / f"step={step}___rank={rank}___dump_index=99___name=rids.pt")
    code, out, err = judge(folder, "--model", model)
    assert (code, err) == (1, "") and "step 1: its rows are other requests" in out
    assert "29 within, 0 different" in out


def test_two_files_for_one_value(model, tmp_path):
    folder = dump(model, tmp_path, tp=2)
    one = next(folder.glob("step=0___rank=1*layers.1.mlp.down*input*"))
    shutil.copy(one, folder / one.name.replace("dump_index=", "dump_index=9"))
    code, out, _ = judge(folder, "--model", model)
    assert code == 1 and "two files for one value" in out and "0 different" in out
    imported = importing.read(folder, model=str(model))
    assert imported.judge().values.get("prefill.c0.layer1.hidden") is None


BAD = {
    "a global": (lambda v, m: (Call("os", "system", "true"), m), "os.system"),
    "no tensor": (lambda v, m: ("text", m), "legal: a tensor"),
    "dims of another number": (lambda v, m: (v, {**m, "dims": "t"}), "'t' has 1 dims"),
    "dims that are none": (lambda v, m: (v, {**m, "dims": "t h[odd:x]"}), "is not a valid cut"),
    "dims over an unknown axis": (lambda v, m: (v, {**m, "dims": "t h[xp]"}), "xp is not an axis"),
    "dims that do not fit": (lambda v, m: (v, {**m, "dims": "t h"}), "does not fit"),
    "other columns": (lambda v, m: (v[:, :3], m), "does not fit"),
    "other tokens": (lambda v, m: (v[:5], m), "5 tokens, and the step has 12"),
    "too many dims": (lambda v, m: (v[None, None, None], {}), "say its dims there"),
    "numbers of no legal type": (lambda v, m: (v.astype(np.uint64), m), "legal: f64"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_spoils_one_value_costs_that_value(model, tmp_path, kind):
    change, words = BAD[kind]

    def spoil(name, rank, value, meta):
        if name.endswith("layers.0.mlp.down_proj.input") and meta["step"] == 0:
            return change(value, meta)
        return value, meta

    folder = dump(model, tmp_path, tp=2, change=spoil)
    code, out, err = judge(folder, "--model", model)
    assert (code, err) == (1, "") and "0 different" in out
    line = next(text for text in out.splitlines() if words in text)
    assert "prefill.c0.layer0.hidden" in line
    assert "decode.1.layer0.hidden" not in line
    imported = importing.read(folder, model=str(model))
    values = imported.judge().values
    assert "prefill.c0.layer0.hidden" not in values and values["prefill.c0.layer0.up"] == "within"


def numbers_of_no_type(name, rank, value, meta):
    wrong = name.endswith("layers.0.mlp.down_proj.input") and meta["step"] == 0
    return (value.astype(np.uint64) if wrong else value), meta


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_what_a_trace_does_not_take_stays_listed(model, tmp_path, suffix):
    folder = dump(model, tmp_path, tp=2, change=numbers_of_no_type)
    imported = importing.read(folder, model=str(model))
    count = imported.save(tmp_path / f"t{suffix}")
    assert count == 59 and [left.name for left in imported.left_out] == ["prefill.c0.layer0.hidden"]
    imported.trace()
    next(imported.items())
    assert len(list(imported.items())) > 0
    assert [left.name for left in imported.left_out] == ["prefill.c0.layer0.hidden"]


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_import_of_what_is_not_whole_exits_with_1(model, tmp_path, suffix, capsys):
    folder, out = dump(model, tmp_path, tp=2, change=numbers_of_no_type), tmp_path / f"t{suffix}"
    assert main("import", [str(folder), "--model", str(model), "--out", str(out)]) == 1
    told = capsys.readouterr().out
    assert "left out, 1:" in told and ": 59 values of " in told and out.exists()


@pytest.mark.parametrize("one", [0, 1])
def test_ranks_that_differ_in_shape_or_dims(model, tmp_path, one):
    def spoil(name, rank, value, meta):
        if rank == 1 and name.endswith("layers.0.mlp.down_proj.input"):
            return (value[:, 1:], meta) if one else (value, {**meta, "dims": "t f[tp]"})
        return value, meta

    code, out, err = judge(dump(model, tmp_path, tp=2, change=spoil), "--model", model)
    assert code == 1
    assert ("ranks must have blocks of one size" if one else "rank 1 't f[tp]'") in out


def test_broken_files_of_one_name_are_told_apart(model, tmp_path):
    folder = dump(model, tmp_path, tp=2)
    for rank in range(2):
        (folder / f"rank{rank}").mkdir()
        (folder / f"rank{rank}" / "x.npy").write_bytes(b"x")
    code, out, err = judge(folder, "--model", model)
    assert (code, err) == (1, "") and "  rank0/x.npy: " in out and "  rank1/x.npy: " in out
    alone = importing.folders.Files(), []
    assert not list(importing.folders.records_of(folder / "rank0" / "x.npy", *alone))
    assert [left.name for left in alone[1]] == ["x.npy"]


def test_broken_files_cost_their_values(model, tmp_path):
    folder = dump(model, tmp_path, tp=2)
    for i, path in enumerate(sorted(p for p in folder.iterdir() if "layers.1.mlp" in p.name)):
        path.write_bytes(path.read_bytes()[:i * 100])
    code, out, err = judge(folder, "--model", model)
    assert (code, err) == (1, "") and "0 different" in out and "copy it again" in out


@pytest.mark.parametrize("ranks, how", [
    ([1], dict(tp=2)), ([0, 1, 2, 3], dict(tp=2, cp=2, lengths=(8, 8)))])
def test_ranks_whose_first_files_are_broken(model, tmp_path, ranks, how):
    folder = dump(model, tmp_path, **how)
    for rank in ranks:
        first = sorted(folder.glob(f"step=0___rank={rank}___*"))[0]
        first.write_bytes(first.read_bytes()[:100])
    code, out, err = judge(folder, "--model", model)
    assert (code, err) == (1, "") and "57 within, 0 different" in out and "left out, 1:" in out


@pytest.mark.parametrize("arguments, label", [
    (["none"], "import_path"), (["."], "import_names"), ([], "import_options"),
    (["dump", "--case", "batch"], "import_case"), (["dump", "--case", "batch=x"], "case_"),
    (["dump", "--torus", "1x1x1"], "import_mesh"), (["dump", "--ids", "none"], "import_ids"),
    (["dump", "--names", "none"], "import_names"), (["dump", "--steps", "x"], "import_options"),
    (["dump", "--weights", "none.h5"], ""), (["dump", "--wrong"], "import_options"),
    (["empty"], "import_path")])
def test_bad_input_is_one_sentence(model, tmp_path, arguments, label):
    dump(model, tmp_path, tp=2)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "x.npy", np.ones(2))
    where = [tmp_path / a.replace(".", "other") for a in arguments[:1]]
    code, out, err = judge(*where, *arguments[1:], "--model", model)
    assert code == 2 and err.count("\n") == 1 and err.startswith(f"shardproof: {label}")


def test_more_than_three_axes_are_one_sentence(model, tmp_path):
    def axes(name, rank, value, meta):
        info = {f"{a}_{w}": (rank >> i & 1 if w == "rank" else 2) for i, a in
                enumerate(("tp", "cp", "ep", "dp")) for w in ("rank", "size")}
        return value, {**meta, "sglang_parallel_info": info}

    folder = dump(model, tmp_path, tp=8, cp=2, lengths=(8, 8), change=axes)
    code, out, err = judge(folder, "--model", model)
    assert code == 2 and "more than three axes of several ranks" in err


def test_no_tokens(model, tmp_path):
    def without(name, rank, value, meta):
        return (None if name in ("input_ids", "positions", "seq_lens") else value), meta

    folder = dump(model, tmp_path, tp=2, lengths=(4, 4), change=without)
    code, _, err = judge(folder, "--model", model)
    assert code == 2 and "give --ids FILE" in err
    _, reference = references[(str(model), (4, 4), "None")]
    (tmp_path / "ids.txt").write_text("\n".join(
        " ".join(map(str, row)) for row in np.array(reference["prefill.c0.ids"])))
    code, out, err = judge(folder, "--model", model, "--ids", tmp_path / "ids.txt")
    assert "0 different" in out and err == ""
    (tmp_path / "ids.txt").write_text("1 2 3\n4 5 6\n")
    code, out, err = judge(folder, "--model", model, "--ids", tmp_path / "ids.txt")
    assert code == 1 and "tokens, and the step has" in out


@settings(max_examples=25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_spoilt_directory_is_an_error_or_a_verdict(model, tmp_path, data):
    folder = tmp_path / "dump"
    if not folder.exists():
        dump(model, tmp_path, tp=2)
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    good = path.read_bytes()
    raw = bytearray(good)
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw)
    try:
        code, out, err = judge(folder, "--model", model, "--quiet")
        assert code in (0, 1) or (code == 2 and err.count("\n") == 1)
    finally:
        path.write_bytes(good)
