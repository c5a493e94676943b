"""Directories of dumps, as they are, judged by one command."""
import json
import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shardproof as sp
from shardproof import importing
from dump_runs import dump, judge, model, off
from sglang_dump import CONFIG, Run, reference_of, write_model
from torch_files import save_safetensors, save_torch


FORMS = {"tp4": dict(tp=4), "packed": dict(tp=4, lengths=(8, 4)),
         "padded": dict(tp=2, packed=False),
         "zigzag": dict(tp=2, cp=2, lengths=(8, 8), packed=False),
         "packed zigzag": dict(tp=2, cp=2, lengths=(8, 4)), "shared kv heads": dict(tp=8),
         "not fused": dict(tp=2, fused=False), "one rank": dict(tp=1),
         "stages": dict(tp=2, stages=2), "chunks": dict(tp=2, lengths=(8, 5), chunk=4),
         "all": dict(tp=8, cp=2, lengths=(12, 4))}


@pytest.mark.parametrize("form", FORMS)
def test_a_right_run_is_right(model, tmp_path, form):
    folder = dump(model, tmp_path, **FORMS[form])
    code, out, err = judge(folder, "--model", model)
    assert (code, err) == (0, ""), out
    assert ("87" if form == "chunks" else "58") + " within, 0 different" in out
    assert out.splitlines()[-1].startswith("No value is wrong: ")


@pytest.mark.parametrize("form, value, position", [
    (form, value, position) for form in FORMS for value, position in
    (("layer1.k", 2), ("layer0.hidden", 1), ("layer1.mlp", 0))
    if form != "all" or value == "layer1.k"])  # whose many files take their time
def test_a_wrong_run_is_told_by_rank_and_value(model, tmp_path, form, value, position):
    name = f"prefill.c0.{value.replace('mlp', 'ffn_out')}"
    how = FORMS[form]
    folder = dump(model, tmp_path, wrong={name: off(0, position)}, **how)
    code, out, err = judge(folder, "--model", model)
    assert (code, err) == (1, ""), out
    tp, cp, length = how["tp"], how.get("cp", 1), how.get("lengths", (6, 6))[0]
    block = position // (length // (2 * cp))
    cp_rank = min(block, 2 * cp - 1 - block)
    holders = range({"layer1.mlp": tp, "layer1.k": max(1, tp // 4)}.get(value, 1))
    stage = how.get("stages", 1) // 2 if "layer1" in name else 0
    ranks = [(stage * cp + cp_rank) * tp + r for r in holders]
    numbers = f"{ranks[0]}-{ranks[-1]}" if len(ranks) > 1 else str(ranks[0])
    assert out.splitlines()[-1].startswith(f"rank{'s' * (len(ranks) > 1)} {numbers}, {name}: ") or (
        tp * cp == 1 and out.splitlines()[-1].startswith(f"rank 0, {name}: ")), out.splitlines()[-1]


def test_the_command_as_a_user_types_it(tmp_path):
    root = pathlib.Path(__file__).parent
    path = str(pathlib.Path(sp.__file__).parents[1])  # the package that these tests have
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([path, os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, root / "sglang_dump.py", tmp_path, "--tp", "2", "--wrong",
                    "decode.1.layer0.gate"], check=True, capture_output=True, env=env)
    run = subprocess.run([sys.executable, "-m", "shardproof", "judge", tmp_path / "dump", "--model",
                          tmp_path / "model", "--html", tmp_path / "v.html", "--junit",
                          tmp_path / "v.xml", "--quiet", "--annotations"],
                         capture_output=True, text=True, env=env)
    assert run.returncode == 1 and run.stderr == ""
    sentence = run.stdout.splitlines()[-1]
    assert sentence.startswith("rank 1, decode.1.layer0.gate: ")
    assert sentence in (tmp_path / "v.html").read_text()
    assert "decode.1.layer0.gate" in (tmp_path / "v.xml").read_text()
    assert run.stdout.startswith("::error ")


def test_every_other_verb_is_the_programs(monkeypatch):
    from shardproof import __main__, _program
    monkeypatch.setattr(sys, "argv", ["shardproof", "list", "presets"])
    monkeypatch.setattr(_program.os, "execv", lambda path, words: calls.append(words[1:]))
    calls = []
    __main__.main()
    assert calls == [["list", "presets"]]


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_import_writes_a_trace_that_compare_reads(model, tmp_path, suffix):
    folder = dump(model, tmp_path, tp=2, cp=2, lengths=(8, 4),
                  wrong={"decode.1.layer1.v": off(1, 0)})
    out = tmp_path / f"t{suffix}"
    from shardproof.importing.command import main
    assert main("import", [str(folder), "--model", str(model), "--out", str(out)]) == 0
    arch = sp.Architecture.of(model)
    assert sp.judge(out, arch.weights(model)).first == "decode.1.layer1.v"


def test_bf16(model, tmp_path):
    folder = dump(model, tmp_path, tp=2, dtype=ml_dtypes.bfloat16,
                  case={"act": "bf16", "weights": "bf16"})
    imported = importing.read(folder, model=str(model))
    assert "act=bf16" in imported.case and imported.judge().right


def test_partial_sums_are_judged_as_what_they_add_up_to(model, tmp_path):
    def halves(name, rank, value, meta):
        if name.endswith("mlp.down_proj.output"):
            return (value / 2).astype(np.float32), {**meta, "dims": meta["dims"] + "[tp:partial]"}
        return value, meta

    folder = dump(model, tmp_path, tp=2, change=halves)
    imported = importing.read(folder, model=str(model))
    assert imported.judge().right
    assert "partialsum" in {i.name: i.layout for i in imported.items()}["prefill.c0.layer0.ffn_out"]


def test_norms_that_are_given_a_pair(model, tmp_path):
    """What an engine's norm is given: what is added to the stream, and the stream before it."""
    def pair(name, rank, value, meta):
        if name.endswith("post_attention_layernorm.input"):
            for i, part in enumerate((value / 4, 3 * value / 4)):
                save_torch({"value": part, "meta": meta}, tmp_path / "dump" / (
                    f"step={meta['step']}___rank={rank}___dump_index=9{i}{rank}___"
                    f"name={name}s.{i}.pt"))
            return None, meta
        return value, meta

    imported = importing.read(dump(model, tmp_path, tp=2, change=pair), model=str(model))
    verdict = imported.judge()
    assert verdict.right and not imported.left_out
    assert "prefill.c0.layer1.mid_added+prefill.c0.layer1.mid_residual" in verdict.values


def test_logits_of_all_positions(model, tmp_path):
    arch, reference = reference_of(model, (6, 3))

    def whole(name, rank, value, meta):
        if name.endswith("lm_head.output"):
            logits = reference["prefill.c0.logits" if meta["step"] == 0 else "decode.1.logits"]
            value = np.concatenate([np.array(r)[:n] for r, n in
                                    zip(logits, (6, 3) if meta["step"] == 0 else (1, 1))])
            meta = {**meta, "dims": "t v"}
        return value, meta

    imported = importing.read(dump(model, tmp_path, (6, 3), tp=2, change=whole), model=str(model))
    found = [i for i in imported.items() if i.name == "prefill.c0.logits"]
    assert found[0].array.shape == (2, 48) and str(found[0].layout) == "BV"
    assert np.array_equal(found[0].array[1], reference["prefill.c0.logits"][1, 2])
    assert imported.judge().right and not imported.left_out


def test_a_bias_that_every_rank_adds(tmp_path):
    write_model(tmp_path / "model", {**CONFIG, "attention_bias": True})
    arch, reference = reference_of(tmp_path / "model", (6, 6))
    bias = reference.weights["layer1.bo"]

    def more(value):
        value += 3 * bias

    Run(tmp_path / "dump", 4, wrong={"prefill.c0.layer1.attn_out": more}).write(arch, reference)
    code, out, err = judge(tmp_path / "dump", "--model", tmp_path / "model", "--quiet")
    assert (code, err) == (1, "")
    assert out.splitlines()[-2] == ("ranks 0\N{EN DASH}3, model.layers.1.self_attn.o_proj: the bias "
                                    "is added 4 times")


@pytest.mark.parametrize("vocabulary, wrong", [(46, False), (46, True), (48, False)])
def test_a_vocabulary_that_is_cut_and_padded(tmp_path, vocabulary, wrong):
    write_model(tmp_path / "model", {**CONFIG, "vocab_size": vocabulary})

    def cut(name, rank, value, meta):
        if name.endswith("lm_head.output"):
            value = np.pad(value, [(0, 0), (0, 48 - vocabulary)], constant_values=-9)
            value = np.split(value, 4, axis=1)[rank]
            meta = {**meta, "dims": "b v[tp]"}
            if wrong and rank == 3:
                value = value[:, ::-1]
        return value, meta

    imported = importing.read(dump(tmp_path / "model", tmp_path, tp=4, change=cut),
                              model=str(tmp_path / "model"))
    verdict = imported.judge()
    assert not imported.left_out and verdict.right != wrong
    if wrong:
        assert verdict.first == "prefill.c0.logits" and imported.ranks_of(verdict) == [3]
    found = next(i for i in imported.items() if i.name == "prefill.c0.logits")
    assert found.layout == "BV_z" and ("padded" in found.attributes) == (vocabulary < 48)


def test_layers_that_return_a_pair(model, tmp_path):
    """What an engine's layer returns: the output of its MLP, and the stream that it is added to."""
    def pair(name, rank, value, meta):
        if name.endswith("layers.0.output") or name.endswith("layers.1.output"):
            save_torch({"value": value / 4, "meta": meta}, folder / "dump" / (
                f"step={meta['step']}___rank={rank}___dump_index=9{rank}___name={name}.1.pt"))
            save_torch({"value": 3 * value / 4, "meta": meta}, folder / "dump" / (
                f"step={meta['step']}___rank={rank}___dump_index=8{rank}___name={name}.0.pt"))
            return None, meta
        return value, meta

    folder = tmp_path
    imported = importing.read(dump(model, folder, tp=2, change=pair), model=str(model))
    verdict = imported.judge()
    assert verdict.right and not imported.left_out
    assert verdict.values["prefill.c0.layer1.out_added+prefill.c0.layer1.out_residual"] == "within"
    path = next((folder / "dump").glob("step=1___rank=0*name=*layers.1.output.1.pt"))
    save_torch({"value": np.ones((2, 32), np.float32), "meta": {"dims": "t h"}}, path)
    assert importing.read(folder / "dump", model=str(model)).judge().first.startswith(
        "decode.1.layer1.out")


def test_padding_on_the_left(model, tmp_path):
    lengths = (6, 3)

    def left(name, rank, value, meta):
        if meta["step"] == 0 and value.ndim >= 2 and value.shape[:2] == (2, 6):
            value = value.copy()
            value[1] = np.roll(value[1], 3, axis=0)
            value[1, :3] = 1 if name == "positions" else 0
        return (None if name == "seq_lens" else value), meta

    folder = dump(model, tmp_path, lengths, tp=2, packed=False, change=left)
    imported = importing.read(folder, model=str(model))
    assert "lengths=6,3" in imported.case and imported.judge().right


def test_without_dims_shapes_say_what_is_cut(model, tmp_path):
    def bare(name, rank, value, meta):
        meta.pop("dims", None)
        return value, meta

    folder = dump(model, tmp_path, tp=4, change=bare)
    imported = importing.read(folder, model=str(model))
    layouts = {i.name: i.layout for i in imported.items()}
    assert layouts["prefill.c0.layer0.q"] == "BLH_zQ" and layouts["prefill.c0.layer0.out"] == "BLE"
    assert layouts["prefill.c0.layer0.up"] == "BLF_z" and imported.judge().right


# Other forms.

PRESET = "llama,layers=1,E=8,F=16,H=4,K=2,Q=2,V=12"


@pytest.fixture(scope="module")
def small():
    return sp.Reference(f"torus=1x1x2 model={PRESET} batch=2 prompt=4 gen=1")


NAMES = """
{rest}q -> layer{n}.q BL(HQ)
q.{n} -> layer{n}.q BL(HQ)
gate.{n} -> layer{n}.gate BLF
ids -> ids
"""


@pytest.mark.parametrize("kind", ["folders of npy", "folders of pt", "folders of npz",
                                  "safetensors", "files by rank", "words of bf16"])
def test_folders_by_rank(small, tmp_path, kind):
    words = kind == "words of bf16"
    values = {"q.0": np.array(small["prefill.c0.layer0.q"]).reshape(2, 4, 8),
              "gate.0": np.array(small["prefill.c0.layer0.gate"]),
              "ids": np.array(small["prefill.c0.ids"])}
    for rank in range(2):
        parts = {n: v if n == "ids" else np.split(v, 2, axis=-1)[rank] for n, v in values.items()}
        if words:
            parts = {n: v if n == "ids" else v.astype(ml_dtypes.bfloat16).view(np.uint16)
                     for n, v in parts.items()}
        folder = tmp_path / "dump" / ("" if kind == "files by rank" else f"rank{rank}")
        folder.mkdir(parents=True, exist_ok=True)
        if kind in ("folders of npy", "files by rank", "words of bf16"):
            for name, value in parts.items():
                tail = f".rank{rank}" if kind == "files by rank" else ""
                np.save(folder / f"{name}{tail}.npy", value)
        elif kind == "folders of pt":
            for name, value in parts.items():
                save_torch(value, folder / f"{name}.pt")
        elif kind == "folders of npz":
            np.savez(folder / "all.npz", **parts)
        else:
            save_safetensors(parts, folder / "all.safetensors")
    (tmp_path / "my.names").write_text(NAMES)
    imported = importing.read(tmp_path / "dump", model=PRESET, names=tmp_path / "my.names")
    found = {(i.name, i.chip): i for i in imported.items()}
    assert found["prefill.c0.layer0.q", (0, 0, 1)].layout == "BLH_zQ", imported.left_out
    assert np.array_equal(found["prefill.c0.ids", None].array, small["prefill.c0.ids"])
    dtype = ml_dtypes.bfloat16 if words else np.float32
    assert np.array_equal(found["prefill.c0.layer0.gate", (0, 0, 0)].array,
                          small["prefill.c0.layer0.gate"][..., :8].astype(dtype))
    assert not imported.left_out


def test_the_older_dumpers_passes(small, tmp_path):
    for rank in range(2):
        folder = tmp_path / f"TP{rank}_PP0_Rank{rank}_pid{77 + rank}"
        folder.mkdir()
        q = np.array(small["prefill.c0.layer0.q"])[:, :, 2 * rank:2 * rank + 2].reshape(8, 4)
        ids, at = np.array(small["prefill.c0.ids"]).reshape(-1), "model.forward_batch_info."
        save_torch({"model.layers.0.self_attn.q_proj": q, at + "input_ids": ids,
                    at + "seq_lens": np.array([4, 4])}, folder / "Pass00000.pt")
    names = importing.Names.of_text("q ~ model.layers.{n}.self_attn.q_proj BL(HQ)")
    imported = importing.read(tmp_path, model=PRESET, names=names)
    verdict = imported.judge(given=[])
    assert verdict.values["prefill.c0.layer0.q"] != "different" and not imported.left_out
    layouts = {i.name: i.layout for i in imported.items()}
    assert layouts["prefill.c0.layer0.q"] == "BLH_zQ"


def test_links_do_not_lead_out(small, tmp_path):
    (tmp_path / "out").mkdir()
    np.save(tmp_path / "out" / "gate.0.npy", np.ones((2, 4, 16), np.float32))
    (tmp_path / "dump").mkdir()
    np.save(tmp_path / "dump" / "ids.npy", np.array(small["prefill.c0.ids"]))
    (tmp_path / "dump" / "gate.0.npy").symlink_to(tmp_path / "out" / "gate.0.npy")
    (tmp_path / "dump" / "more").symlink_to(tmp_path / "out")
    imported = importing.read(tmp_path / "dump", model=PRESET, names=importing.Names.of_text(NAMES))
    assert [i.name for i in imported.items()] == ["prefill.c0.ids"]


def test_names_that_no_line_has_are_listed_and_do_not_spoil(model, tmp_path):
    def more(name, rank, value, meta):
        return value, meta

    folder = dump(model, tmp_path, tp=2, change=more)
    save_torch({"value": np.ones(3, np.float32), "meta": {}},
               folder / "step=0___rank=0___dump_index=99___name=my_\x1b[31mthing.pt")
    code, out, err = judge(folder, "--model", model)
    assert code == 0 and "no line of names has it" in out and "\x1b" not in out


def test_module_names_with_control_characters(small, tmp_path):
    (tmp_path / "dump").mkdir()
    np.save(tmp_path / "dump" / "ids.npy", np.array(small["prefill.c0.ids"]))
    np.save(tmp_path / "dump" / "odd\x1b[31mgate.0.npy", np.ones((2, 4, 16), np.float32))
    (tmp_path / "my.names").write_text("ids -> ids\n{rest}gate.{n} -> layer{n}.gate BLF\n")
    code, out, err = judge(tmp_path / "dump", "--model", PRESET, "--names", tmp_path / "my.names")
    assert (code, err) == (1, "") and "odd?[31mgate.0: " in out and "\x1b" not in out


NUMBERS = st.integers(-3, 9) | st.sampled_from([2**31, 2**62, -2**63])
ARRAYS = st.lists(st.integers(0, 4), max_size=3).flatmap(lambda shape: st.sampled_from(
    ["int64", "int32", "float32", "bool", "uint16", "float64"]).flatmap(lambda dtype: st.lists(
        st.integers(0, 9), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))).map(
            lambda numbers: np.array(numbers).reshape(shape).astype(dtype))))
ANYTHING = ARRAYS | NUMBERS | st.none() | st.text(max_size=3) | st.lists(NUMBERS, max_size=4) | (
    st.lists(st.text(max_size=2), max_size=3))
DIMS = st.lists(st.sampled_from(["t", "b", "s", "h", "1", "t[cp:zigzag]", "h[tp]", "t[tp]",
                                 "(a*b)[tp]", "h[tp:partial]", "s[cp]", "["]),
                max_size=4).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_files_of_anything_are_an_error_or_values(tmp_path_factory, data):
    """What a step's arrays and a file's meta say may be anything."""
    folder = tmp_path_factory.mktemp("any")
    names = ["input_ids", "positions", "seq_lens", "extend_seq_lens", "cu_seqlens_q",
             "attention_mask", "rids", "q.0", "gate.0", "logits", "out.0"]
    for index in range(data.draw(st.integers(1, 6))):
        rank, step = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 2))
        info = {f"{axis}_{word}": data.draw(st.integers(0, 3)) for axis in ("tp", "cp", "pp")
                for word in ("rank", "size")} if data.draw(st.booleans()) else data.draw(ANYTHING)
        meta = {"dims": data.draw(DIMS | ANYTHING), "sglang_parallel_info": info}
        name = data.draw(st.sampled_from(names))
        save_torch({"value": data.draw(ANYTHING), "meta": data.draw(st.just(meta) | ANYTHING)},
                   folder / f"step={step}___rank={rank}___dump_index={index}___name={name}.pt")
    names = importing.Names.of_text(NAMES + "logits -> logits BLV\nout.{n} -> layer{n}.out BLE")
    try:
        imported = importing.read(folder, model=PRESET, names=names)
        list(imported.items())
    except sp.Error as error:
        assert error.label.startswith(("import_", "case_", "strategy_", "lengths_", "model_"))


def test_a_config_alone_reads_with_weights_elsewhere(model, tmp_path):
    folder = dump(model, tmp_path, tp=2)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    code, out, err = judge(folder, "--model", tmp_path / "config.json", "--weights", model)
    assert (code, err) == (0, ""), out


def test_entries_of_the_config_that_are_not_read_are_named(model, tmp_path):
    folder, line = dump(model, tmp_path, tp=2), "config entries that no line of the map reads: "
    assert line not in judge(folder, "--model", model)[1]
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "odd\x1b_factor": 2, "b_odd": 1}))
    code, out, err = judge(folder, "--model", tmp_path / "config.json", "--weights", model)
    assert (code, err) == (0, "") and out.startswith(f"{line}b_odd, odd?_factor\n")
    imported = importing.read(folder, model=str(tmp_path / "config.json"), weights=model)
    assert imported.unread == ["b_odd", "odd\x1b_factor"]
