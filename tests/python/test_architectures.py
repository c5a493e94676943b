"""Architectures as data: texts and maps over configs and arrays that are written by hand."""
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shardproof as sp
from shardproof.architectures import known

LLAMA = dict(architectures=["LlamaForCausalLM"], num_hidden_layers=2, hidden_size=12,
             intermediate_size=10, num_attention_heads=6, num_key_value_heads=2, head_dim=4,
             vocab_size=16, max_position_embeddings=32, rms_norm_eps=1e-5, rope_theta=1e4,
             hidden_act="silu", tie_word_embeddings=False)


def folder():
    import pathlib
    return pathlib.Path(sp.architectures.__file__).with_name("architectures")


def example(one):
    """The small config that a map has in its lines `case`."""
    entries = {"architectures": [one.name]}
    for line in (folder() / one.map).read_text().splitlines():
        if line.startswith("case "):
            entries.update(eval(f"dict({line[5:]})"))
    return entries


def sources(one):
    """Of each line of a map that reads a tensor: weight, tensor, pattern, part."""
    for line in (folder() / one.map).read_text().splitlines():
        words = line.split("#")[0].split()
        if words[1:2] == ["<"]:
            take = int(words[words.index("take") + 1]) if "take" in words else 0
            yield words[0], words[2], words[3], take


def size(letters, extents):
    return int(np.prod([1 if c == "1" else extents[c] for c in letters], dtype=int))


def shape_of(pattern, extents):
    axes = sp.Module("", "", pattern, 0, False, "").read().axes
    return [int(np.prod([sum(size(p, extents) for p in f.parts or (f.letters,))
                         for f in axis.factors], dtype=int)) for axis in axes]


def checkpoint(arch, one, seed=1):
    """Random tensors for a map's lines, and which of them each weight is."""
    draw, tensors, expected = np.random.default_rng(seed), {}, {}
    weights = sp.Weights.generate(arch.model)
    for weight, tensor, pattern, take in sources(one):
        for n in range(arch.layers if "{n}" in tensor else 1):
            id = f"layer{n}.{weight}" if "{n}" in tensor else weight
            name = tensor.replace("{n}", str(n))
            if id not in weights or name not in arch.tensors or id in expected:
                continue
            if name not in tensors:
                shape = shape_of(pattern, arch.extents)
                tensors[name] = draw.standard_normal(shape).astype(np.float32)
            part = sp.Module("", "", pattern, take, False, weights.dims[id])
            expected[id] = part.of(tensors[name], arch.extents)
    return tensors, expected


def llama(**more):
    return sp.Architecture.of({**LLAMA, **more})


LLAMA_LINE = next(one for one in known() if one.name == "LlamaForCausalLM")


@pytest.mark.parametrize("one", known(), ids=lambda one: one.name)
def test_each_architecture_reads_a_checkpoint(one):
    arch = sp.Architecture.of(example(one))
    tensors, expected = checkpoint(arch, one)
    weights = arch.weights(tensors)
    assert {name for name in weights if not name.startswith("rope_")} == set(expected)
    for name, array in expected.items():
        assert np.array_equal(weights[name], array), name
    assert not arch.unread
    assert sp.Architecture.of({**example(one), "architectures": None,
                               "model_type": one.model_type}).model == arch.model


@pytest.mark.parametrize("one", known(), ids=lambda one: one.name)
def test_each_architecture_judges_its_own_values(one):
    arch = sp.Architecture.of(example(one))
    case = arch.case(batch=1, prompt=3, gen=2)
    reference = sp.Reference(case)
    values = {m.value for m in arch.modules()}
    trace = sp.Trace(case)
    for name, array in reference.items():
        if name.partition(".")[2].partition(".")[2] in values or name.endswith("ids"):
            trace.add(name, array)
    verdict = sp.judge(trace)
    assert verdict.right, verdict.table()
    shown = {m.value for m in arch.modules()}
    assert f"layer{arch.layers - 1}.out" in shown and "layer0.q" in shown


def test_a_model_with_its_text_needs_no_file():
    case = llama().case(torus="1x1x2", batch=2, prompt=4, gen=1, seed=3)
    line, _, text = case.partition("\n")
    assert line.startswith("torus=1x1x2 model=llama.model,E=12,F=10,H=6,K=2,") and " seed=3" in line
    assert text.startswith("model llama\n")
    assert sp.case(case) == case
    reference = sp.Reference(case)
    assert reference["prefill.c0.layer1.q"].shape == (2, 4, 6, 4)
    assert sp.Weights.of(reference.model, dict(reference.weights)).model == reference.model


def test_the_forms_of_configs_are_one_model():
    older = llama(rope_scaling=dict(rope_type="linear", factor=2.0))
    newer = dict(LLAMA, rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=1e4))
    del newer["rope_theta"]
    newer = sp.Architecture.of(newer)
    assert newer.model == older.model and not newer.unread
    tensors, _ = checkpoint(older, LLAMA_LINE)
    a, b = older.weights(tensors), newer.weights(tensors)
    assert np.array_equal(a["rope_sin"], b["rope_sin"])
    assert not np.array_equal(a["rope_sin"], llama().weights(tensors)["rope_sin"])
    assert a["rope_sin"][3, 0] == np.float32(np.sin(1.5))


def test_tables_are_of_the_config_and_never_of_the_checkpoint():
    arch = llama(rope_theta=100.0)
    tensors, _ = checkpoint(arch, LLAMA_LINE)
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(2, np.float32)
    assert arch.weights(tensors)["rope_cos"][1, 1] == np.float32(np.cos(100.0 ** -0.5))


@pytest.mark.parametrize("name", ["num_hidden_layers", "hidden_size", "vocab_size", "rope_theta",
                                  "rms_norm_eps", "hidden_act", "intermediate_size"])
def test_an_entry_that_is_missing_is_no_default(name):
    config = {**LLAMA}
    del config[name]
    with pytest.raises(sp.Error, match=f"the config has no {name}") as error:
        sp.Architecture.of(config)
    assert error.value.label == "model_map_c2"


def test_what_the_config_lacks_may_be_given():
    config = {**LLAMA}
    del config["rope_theta"]
    arch = sp.Architecture.of(config, theta=1e4, P=8)
    tensors, _ = checkpoint(arch, LLAMA_LINE)
    assert np.array_equal(arch.weights(tensors)["rope_cos"],
                          llama().weights(tensors)["rope_cos"][:8])


@pytest.mark.parametrize("more", [dict(hidden_act="gelu"), dict(partial_rotary_factor=0.5)])
def test_another_model_is_refused(more):
    with pytest.raises(sp.Error) as error:
        llama(**more)
    assert error.value.label == "model_map_c7"


def test_entries_that_no_line_reads_are_listed():
    assert llama().unread == {}
    assert llama(use_cache=True, bos_token_id=1).unread == {}
    assert llama(sliding_window=4).unread == {"sliding_window": 4}


def test_an_unknown_architecture_names_those_that_are_known():
    with pytest.raises(sp.Error) as error:
        sp.Architecture.of({"architectures": ["MambaForCausalLM"]})
    assert error.value.label == "architecture_unknown"
    assert "'MambaForCausalLM'" in str(error.value) and "Qwen2ForCausalLM" in str(error.value)
    for config in ({}, {"architectures": []}, {"architectures": 3}, {"model_type": ["llama"]}):
        with pytest.raises(sp.Error) as error:
            sp.Architecture.of(config)
        assert error.value.label == "architecture_unknown"


def test_a_text_and_a_map_of_ones_own(tmp_path):
    (tmp_path / "my.model").write_text((folder() / "llama.model").read_text())
    (tmp_path / "my.map").write_text((folder() / "llama.map").read_text().replace(
        "rope_theta", "my_theta"))
    config = {**LLAMA, "architectures": ["MyModel"], "my_theta": 1e4}
    arch = sp.Architecture.of(config, text=tmp_path / "my.model", map=tmp_path / "my.map")
    assert arch.name == "my" and arch.unread == {"rope_theta": 1e4}
    assert arch.case().split()[1].startswith("model=my.model,E=12")
    with pytest.raises(sp.Error):
        sp.Architecture.of(config, text=tmp_path / "my.model")


@pytest.mark.parametrize("write", ["{", "[]", "{\"a\": 1}" * 2, "[" * 100000, "\x00", None])
def test_a_file_that_is_no_config(tmp_path, write):
    if write is not None:
        (tmp_path / "config.json").write_text(write)
    with pytest.raises(sp.Error) as error:
        sp.Architecture.of(tmp_path)
    assert error.value.label == "model_map_f3"


@pytest.mark.parametrize("entry", [float("nan"), object(), {1: 2}, 10 ** 30, -1, "x", None, [], {},
                                   True, 0.5, 2 ** 31])
def test_entries_of_another_kind(entry):
    with pytest.raises(sp.Error):
        llama(hidden_size=entry)


@pytest.mark.parametrize("one", known(), ids=lambda one: one.name)
def test_a_config_of_a_thousand_million_layers_ends_at_once(one):
    config = example(one)
    for name in ("num_hidden_layers", "n_layer"):
        if name in config:
            config[name] = 10 ** 9
    with pytest.raises(sp.Error, match="1000000000 layers"):
        sp.Architecture.of(config)


@pytest.mark.parametrize("scaling", [
    dict(rope_type="longrope", short_factor=[1.0], long_factor=[1.0]), dict(rope_type="linear"),
    dict(rope_type="llama3", factor=8.0), 3, "linear", []])
def test_a_rope_that_is_not_known_is_refused(scaling):
    with pytest.raises(sp.Error) as error:
        llama(rope_scaling=scaling)
    assert error.value.label == "model_map_c6"


def save(path, tensors):
    """A safetensors file."""
    header, body = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array, np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def test_a_directory_of_safetensors(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    arch = sp.Architecture.of(tmp_path)
    tensors, expected = checkpoint(arch, LLAMA_LINE)
    save(tmp_path / "a.safetensors", dict(list(tensors.items())[::2]))
    save(tmp_path / "b.safetensors", dict(list(tensors.items())[1::2]))
    weights = arch.weights(tmp_path)
    for name, array in expected.items():
        assert np.array_equal(weights[name], array)


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("change, label, named", [
    (lambda t: t.update({"model.layers.1.self_attn.q_proj.bias": np.zeros(24, np.float32)}),
     "architecture_tensors", "model.layers.1.self_attn.q_proj.bias"),
    (lambda t: t.pop("lm_head.weight"), "model_map_c4", "lm_head.weight"),
    (lambda t: t.pop("model.layers.1.mlp.up_proj.weight"), "model_map_c4", "layer1.w_up"),
    (lambda t: t.update({"model.norm.weight": np.zeros(11, np.float32)}), "model_map_c5",
     "g_final_norm")])
def test_a_checkpoint_that_does_not_fit(tmp_path, in_files, change, label, named):
    arch = llama()
    tensors, _ = checkpoint(arch, LLAMA_LINE)
    change(tensors)
    if in_files:
        save(tmp_path / "a.safetensors", tensors)
    with pytest.raises(sp.Error) as error:
        arch.weights(tmp_path if in_files else tensors)
    assert error.value.label == label and named in error.value.message


def test_many_tensors_too_many_are_counted():
    tensors, _ = checkpoint(llama(), LLAMA_LINE)
    tensors.update({f"extra.{n:02}": np.zeros(1, np.float32) for n in range(20)})
    with pytest.raises(sp.Error, match=r"extra\.05 and 14 more"):
        llama().weights(tensors)


def test_tied_embeddings_are_the_table():
    arch = llama(tie_word_embeddings=True)
    tensors, _ = checkpoint(arch, LLAMA_LINE)
    assert "lm_head.weight" not in tensors
    weights = arch.weights(tensors)
    assert np.array_equal(weights["unembed"], tensors["model.embed_tokens.weight"])
    # state_dict() has the table twice.
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    assert np.array_equal(arch.weights(tensors)["unembed"], weights["unembed"])


@settings(max_examples=25, deadline=None)
@given(bias=st.booleans(), mlp=st.booleans(), tied=st.booleans(), heads=st.integers(1, 3),
       groups=st.integers(1, 3), layers=st.integers(1, 3), width=st.integers(1, 3))
def test_flags_and_sizes_of_configs(bias, mlp, tied, heads, groups, layers, width):
    arch = llama(attention_bias=bias, mlp_bias=mlp, tie_word_embeddings=tied,
                 num_key_value_heads=heads, num_attention_heads=heads * groups,
                 num_hidden_layers=layers, head_dim=2 * width)
    tensors, expected = checkpoint(arch, LLAMA_LINE)
    assert ("model.layers.0.self_attn.o_proj.bias" in tensors) == bias
    assert ("model.layers.0.mlp.down_proj.bias" in tensors) == mlp
    weights = arch.weights(tensors)
    assert all(np.array_equal(weights[name], array) for name, array in expected.items())
    assert ("layer0.bq" in weights) == bias and ("layer0.b_out" in weights) == mlp
    assert len(arch.modules()) == 13 * layers + 3


def test_modules_and_values_name_each_other():
    arch = llama()
    module = arch.module_of("layer1.attn")
    assert module.name == "model.layers.1.self_attn.o_proj" and module.input
    shown = arch.values_of("model.layers.1.self_attn.o_proj")
    assert shown == [module, arch.module_of("layer1.attn_out")] and not shown[1].input
    assert arch.parameters_of(module.name) == {"wo": "weight", "bo": "bias"}
    assert [m.value for m in arch.values_of("model.norm")] == ["final_norm"]
    assert arch.module_of("layer9.q") is None and arch.values_of("model.rotary_emb") == []
    assert [m.value for m in arch.modules()[:3]] == ["embed", "layer0.norm", "layer1.norm"]


def test_a_fused_module_shows_several_values():
    one = next(one for one in known() if one.name == "FalconForCausalLM")
    arch = sp.Architecture.of(example(one))
    shown = arch.values_of("transformer.h.0.self_attention.query_key_value")
    assert [(m.value, m.take) for m in shown] == [("layer0.q", 0), ("layer0.k", 1), ("layer0.v", 2)]
    extents = dict(K=2, G=3, H=6, Q=2)
    array = np.arange(2 * 5 * 2).reshape(1, 1, 20)     # of each of K: three of Q, then k, then v
    q, k, v = (m.of(array, extents) for m in shown)
    assert q.shape == (1, 1, 6, 2) and q[0, 0, 3].tolist() == [10, 11]
    assert k[0, 0].tolist() == [[6, 7], [16, 17]] and v[0, 0].tolist() == [[8, 9], [18, 19]]


def test_a_fault_is_seen_and_named_under_a_text():
    arch = llama(attention_bias=True)
    case = arch.case(torus="2x1x2", batch=2, prompt=3, gen=2)
    reference = sp.Reference(case)
    values = {m.value for m in arch.modules()}

    def trace(wrong):
        found = sp.Trace(case)
        for name, array in reference.items():
            if name.partition(".")[2].partition(".")[2] in values:
                found.add(name, wrong(name, array), given=name.endswith("ids"))
        return found

    def bias_of_every_rank(name, array):
        return array + 3 * reference.weights["layer1.bo"] if name.endswith("1.attn_out") else array

    verdict = sp.judge(trace(bias_of_every_rank))
    assert verdict.first == "prefill.c0.layer1.attn_out"
    assert "bo is added 4 times, not 1" in verdict.sentence
    assert sp.judge(trace(lambda name, array: array)).right


def test_of_two_lines_of_a_name_the_layers_own_says_what_is_stored(tmp_path):
    one = next(one for one in known() if one.name == "FalconForCausalLM")
    text = (folder() / one.text).read_text()
    assert "mid : BLE = store(in) if parallel" in text
    (tmp_path / "my.model").write_text(text.replace("store(in) if", "in if"))
    config = {**example(one), "parallel_attn": False, "new_decoder_architecture": False}
    arch = sp.Architecture.of(config, text=tmp_path / "my.model", map=folder() / one.map)
    case = arch.case(batch=2, prompt=4, gen=1, act="bf16")
    trace = sp.Trace(case, arithmetic="bf16", rounding="spec")
    values = {m.value for m in arch.modules()}
    for name, array in sp.Reference(case).items():
        if name.partition(".")[2].partition(".")[2] in values or name.endswith("ids"):
            trace.add(name, array)
    assert sp.judge(trace).right


def test_a_trace_is_judged_by_a_case_with_its_text():
    case = llama().case(batch=1, prompt=3, gen=1)
    other = llama(rope_theta=100.0).case(batch=1, prompt=3, gen=1)
    trace = sp.Trace(case)
    for name, array in sp.Reference(case).items():
        if name.endswith(("ids", ".q", ".k", ".v", ".attn")):
            trace.add(name, array)
    weights = sp.Weights.generate(sp.Reference(case).model)
    assert sp.judge(trace, case=case).right
    assert sp.judge(trace, weights, case=case).right
    assert not sp.judge(trace, case=other).right
    with pytest.raises(sp.Error):
        sp.judge(trace, weights, case=other)


@pytest.mark.parametrize("text", ["", "model a", "model a\x01", "x" * 5000])
def test_texts_behind_a_line_that_are_none(text):
    with pytest.raises(sp.Error):
        sp.case(f"model=a.model\n{text}")
