"""Names, dims, meshes and rows of dumps."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shardproof as sp
from shardproof.axes import parse_axes, size_of
from shardproof.importing import Names
from shardproof.importing.dims import parse_dims
from shardproof.importing.local_axes import local_axis, width_of
from shardproof.importing.mesh import mesh_of, mesh_of_torus
from shardproof.importing.rows import Rows, counts_of, pads_of, require_start, tokens_of
from shardproof.importing.steps import Step, keys_of, read_ids


def error_of(label, function, *arguments):
    with pytest.raises(sp.Error) as error:
        function(*arguments)
    assert error.value.label == label
    return error.value.message


# Names.

TEXT = """
# a comment
model.layers.{n}.self_attn.q_proj.output -> layer{n}.q  BL(HQ)
qkv.{n} -> layer{n}.q BL([HQ,KQ,KQ]) take 0     # of three
qkv.{n} -> layer{n}.k BL([HQ,KQ,KQ]) take 1; dims t (q*k*v)[tp]
moe -> layer{n}.ffn_out BLE; given; meaning=ffn_out; rounding=hf
step{step}_logits -> decode.{step}.logits BLV
debug{rest} -> none
norm ~ model.layers.{n}.input_layernorm BLE
attn ~ model.layers.{n}.self_attn.o_proj BL(HQ) input
"""


@pytest.mark.parametrize("name, layer, values", [
    ("model.layers.3.self_attn.q_proj.output", None, ["layer3.q"]),
    ("non_intrusive__model.layers.3.self_attn.q_proj.output", None, ["layer3.q"]),
    ("qkv.12", None, ["layer12.q", "layer12.k"]), ("moe", 5, ["layer5.ffn_out"]),
    ("moe", None, ["layer{?}.ffn_out"]), ("step7_logits", None, ["decode.7.logits"]),
    ("debug.anything", None, [""]),
    ("model.layers.0.input_layernorm.output", None, ["layer0.norm"]),
    ("model.layers.0.input_layernorm.output.0", None, ["layer0.norm"]),
    ("model.layers.0.input_layernorm", None, ["layer0.norm"]),
    ("model.layers.0.self_attn.o_proj.inputs.0", None, ["layer0.attn"]),
    ("model.layers.0.self_attn.o_proj.output", None, []), ("other", None, []), ("qkv.x", None, [])])
def test_matches(name, layer, values):
    assert [m.value for m in Names.of_text(TEXT).matches(name, layer)] == values


def test_what_a_line_says_besides():
    k = Names.of_text(TEXT).matches("qkv.0")[1].line
    assert k.dims == "t (q*k*v)[tp]" and k.pattern.take == 1 and k.where == "names line 5"
    moe = Names.of_text(TEXT).matches("moe", 0)[0].line
    assert moe.attributes == {"given": "true", "meaning": "ffn_out", "rounding": "hf"}


def test_the_first_line_of_a_value_wins():
    both = Names.of_text("a -> q BLE") + Names.of_text("a -> q BLF\na -> k BLE")
    found = [(m.value, m.line.pattern.text) for m in both.matches("a")]
    assert found == [("q", "BLE"), ("k", "BLE")]


@pytest.mark.parametrize("line, words", [
    ("a b c", "legal: NAME -> VALUE"), ("a ->", "legal: NAME -> VALUE"), ("-> q", "legal: NAME"),
    ("a -> 3 BLE", "'3' is not a valid value"), ("a -> q BLe", "'BLe' is not a valid pattern"),
    ("a -> q B(L", "not a valid pattern"), ("a -> q BL[H,K]", "'take' must say one"),
    ("a -> q BL([H,K]) take 2", "it says 2"), ("a -> q BLE take 0", "no parts"),
    ("a -> q BLE take x", "legal: AXES, AXES take N"), ("a{x} -> q BLE", "{x}; legal"),
    ("a{n}{n} -> q BLE", "each once"),
    ("{rest}a{rest} -> q BLE", "{rest}; legal, each once"),
    ("a -> q BLE; wrong", "'; wrong'; legal"),
    ("a -> q BLE; dims t h[", "is not a valid dim"), ("q ~ x", "legal: VALUE ~ MODULE AXES"),
    ("a -> q() BLE", "is not a valid value"), ("a -> " + "q" * 5000, "4096")])
def test_lines_that_are_none_have_their_number(tmp_path, line, words):
    (tmp_path / "my.names").write_text(f"# first\n\n{line}\n")
    message = error_of("import_names", Names.of_file, tmp_path / "my.names")
    assert "my.names line 3" in message and words in message


def test_files_of_names(tmp_path):
    assert "cannot be read" in error_of("import_names", Names.of_file, tmp_path / "none")
    (tmp_path / "a.names").write_bytes(b"\xff\xfe")
    assert "UTF-8" in error_of("import_names", Names.of_file, tmp_path / "a.names")
    (tmp_path / "a.map").write_text("hf A B\nlayers = n\nw < t E\nnorm ~ m.{n} BLE\n")
    found = Names.of_file(tmp_path / "a.map").matches("m.1.output")
    assert [m.value for m in found] == ["layer1.norm"]
    (tmp_path / "big.names").write_bytes(b"#" * (2 << 20))
    assert "bytes" in error_of("import_limit", Names.of_file, tmp_path / "big.names")


def test_what_ships():
    shipped = Names.shipped()
    assert [m.value for m in shipped.matches("input_ids")] == ["ids"]
    assert [m.value for m in shipped.matches("forward_batch_info.seq_lens")] == ["totals"]
    assert [m.value for m in shipped.matches("model.layers.1.mlp.gate_up_proj.output")] == [
        "layer1.gate", "layer1.up"]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="aq{n}[](),->~;# BLHK01\n=.", max_size=60))
def test_any_text_of_names_is_lines_or_an_error(text):
    try:
        Names.of_text(text).matches("a.0", 1)
    except sp.Error as error:
        assert error.label == "import_names" and " line " in error.message


# Dims.

@pytest.mark.parametrize("text, said", [
    ("b s h[tp]", [(("b",), []), (("s",), []), (("h",), [("tp", 0, 0)])]),
    ("t (num_heads*head_dim)[tp] 1", [(("t",), []), (("num_heads", "head_dim"), [("tp", 0, 0)]),
                                      (("1",), [])]),
    ("t num_heads*head_dim[tp]", [(("t",), []), (("num_heads", "head_dim"), [("tp", 0, 0)])]),
    (" s[cp:zigzag,sp] h[tp:partial] # ep:replicated dp:=moe_dp",
     [(("s",), [("cp", 1, 0), ("sp", 0, 0)]), (("h",), [("tp", 0, 1)])]), ("", [])])
def test_dims(text, said):
    assert [(d.names, [(c.axis, c.zigzag, c.partial) for c in d.cuts])
            for d in parse_dims(text).dims] == said
    assert parse_dims("t # ep:replicated").replicated == {"ep"}


@pytest.mark.parametrize("text, words", [
    ("t h[", "is not a valid dim"), ("t h[tp:odd]", "is not a valid cut"),
    ("t[tp] h[tp]", "an axis occurs twice"),
    ("t (a*)", "is not a valid dim"), ("t ?", "is not a valid dim"),
    ("t" * 2000, "2000 characters"),
    ("h[tp x]", "is not a valid cut")])
def test_dims_that_are_none(text, words):
    assert words in error_of("import_dims", parse_dims, text)


@settings(max_examples=200)
@given(st.text(max_size=40) | st.text(alphabet="tbsh[]():,*#1 ", max_size=40))
def test_any_text_of_dims_is_dims_or_an_error(text):
    try:
        parse_dims(text)
    except sp.Error as error:
        assert error.label == "import_dims"


# Axes of a rank.

EXTENTS = {"H": 6, "K": 2, "Q": 4, "F": 8, "V": 10, "G": 3, "D": 4}
MESH = mesh_of({r: {"tp": (r, 2)} for r in range(2)})


@pytest.mark.parametrize("axis, take, axes, held, letters, cut", [
    ("(HQ)", None, "z", 12, [("H", 3), ("Q", 4)], {"H": "z"}),
    ("(HQ)", None, "", 24, [("H", 6), ("Q", 4)], {}),
    ("([HQ,KQ,KQ])", 0, "z", 20, [("H", 3), ("Q", 4)], {"H": "z"}),
    ("([HQ,KQ,KQ])", 2, "z", 20, [("K", 1), ("Q", 4)], {"K": "z"}),
    ("([F,F])", 1, "z", 8, [("F", 4)], {"F": "z"}),
    ("(K[G,1,1]Q)", 0, "z", 20, [("H", 3), ("Q", 4)], {"H": "z"}),
    ("(K[G,1,1]Q)", 1, "z", 20, [("K", 1), ("Q", 4)], {"K": "z"}),
    ("(D[1,1])", 1, "", 8, [("D", 4)], {})])
def test_parts_of_an_axis(axis, take, axes, held, letters, cut):
    one = parse_axes(axis, take).axes[0]
    found = local_axis(one, take, axes, held, MESH, EXTENTS)
    assert (list(found.letters), found.axes) == (letters, cut)
    assert width_of(one, axes, MESH, EXTENTS) == held
    assert local_axis(one, take, axes, held + 1, MESH, EXTENTS) is None
    array = found.taken(np.arange(3 * held).reshape(3, held))
    assert array.shape == (3, *[n for _, n in letters])
    flat = np.arange(held)
    expected = {"([HQ,KQ,KQ])0": flat[:12], "([HQ,KQ,KQ])2": flat[16:], "([F,F])1": flat[4:],
                "(K[G,1,1]Q)0": flat[:12], "(K[G,1,1]Q)1": flat[12:16],
                "(D[1,1])1": flat[1::2]}.get(f"{axis}{take}", flat)
    assert np.array_equal(array[0].reshape(-1), expected)


def test_a_vocabulary_may_be_padded():
    found = local_axis(parse_axes("V").axes[0], None, "z", 8, MESH, EXTENTS)
    assert found.padded and found.letters == (("V", 8),)
    assert local_axis(parse_axes("V").axes[0], None, "z", 4, MESH, EXTENTS) is None


def test_a_dim_that_the_model_lacks():
    assert "no dim X" in error_of("import_names", size_of, "X", EXTENTS)


# Meshes.

def infos(**sizes):
    """Ranks counted row-major over these axes."""
    names, counts = list(sizes), list(sizes.values())
    return {r: {n: (int(at), sizes[n]) for n, at in zip(names, np.unravel_index(r, counts))}
            for r in range(int(np.prod(counts)))}


def test_axes_of_a_torus():
    mesh = mesh_of(infos(cp=2, tp=3))
    assert mesh.torus == "1x2x3" and mesh.axes["cp"] == "y" and mesh.axes["tp"] == "z"
    assert mesh.axes["sp"] == "z" and mesh.places[4] == (0, 1, 1) and mesh.rank(0, (0, 1, 2)) == 5
    assert mesh_of(infos(tp=3, cp=2)).axes == {"tp": "y", "cp": "z", "sp": "y", "etp": "y"}
    assert mesh_of(infos(pp=2, tp=2)).torus == "1x1x2"
    assert mesh_of(infos(pp=2, tp=2)).stages == {0: 0, 1: 0, 2: 1, 3: 1}
    assert mesh_of({0: {}}).torus == "1x1x1"


def test_axes_under_several_names():
    both = {r: {"tp": (r, 4), "moe_tp": (r, 4), "attn_dp": (r // 2, 2), "attn_tp": (r % 2, 2)}
            for r in range(4)}
    mesh = mesh_of(both)
    assert mesh.torus == "1x2x2" and mesh.axes["tp"] == "yz" == mesh.axes["moe_tp"]
    assert mesh.axes["attn_tp"] == "z" and mesh.axes["attn_dp"] == "y"


def test_ranks_that_share_kv_heads():
    mesh = mesh_of(infos(tp=8), kv_heads=4)
    assert mesh.torus == "1x4x2" and mesh.axes["tp"] == "yz" and mesh.places[5] == (0, 2, 1)
    assert mesh_of(infos(tp=8), kv_heads=8).torus == "1x1x8" == mesh_of(infos(tp=8), 1).torus


@pytest.mark.parametrize("ranks, words", [
    (infos(dp=2, cp=2, tp=2, ep=2), "more than three axes"),
    ({0: {"tp": (0, 2)}, 1: {"tp": (0, 2)}}, "at one place"),
    ({0: {"tp": (0, 2)}, 1: {"tp": (1, 4)}}, "another"), ({0: {"tp": (5, 2)}}, "number 5 of 2"),
    ({0: {"tp": (0, 10**9)}}, "at most 4096")])
def test_ranks_that_are_no_mesh(ranks, words):
    assert words in error_of("import_mesh", mesh_of, ranks)


def test_a_torus_that_is_given():
    assert mesh_of_torus("1x2x2", [0, 3]).places == {0: (0, 0, 0), 3: (0, 1, 1)}
    for torus, ranks in (("2x2", [0]), ("1x1x2", [2]), ("1x1x9999999999", [0])):
        error_of("import_mesh", mesh_of_torus, torus, ranks)


# Tokens.

def test_zigzag_and_natural_blocks():
    zigzag = [tokens_of(8, [8], [(2, r, True)], 4).tolist() for r in range(2)]
    assert zigzag == [[0, 1, 6, 7], [2, 3, 4, 5]]
    rows = [tokens_of(12, [8, 4], [(2, r, True)], 6).tolist() for r in range(2)]
    assert rows == [[0, 1, 6, 7, 8, 11], [2, 3, 4, 5, 9, 10]]
    blocks = [tokens_of(5, [5], [(2, r, False)], 3).tolist() for r in range(2)]
    assert blocks == [[0, 1, 2], [3, 4, -1]]
    both = [tokens_of(8, [8], [(2, r // 2, True), (2, r % 2, False)], 2).tolist() for r in range(4)]
    assert both == [[0, 1], [6, 7], [2, 3], [4, 5]]
    assert tokens_of(6, [6], [(2, 0, True)], 3) is None
    assert tokens_of(8, [8], [(2, 0, False)], 3) is None


@pytest.mark.parametrize("tokens, before, said, counts", [
    (7, None, {"lengths": [4, 3]}, [4, 3]), (8, None, {"totals": [4, 3]}, [4, 3]),
    (2, [4, 3], {"totals": [5, 4]}, [1, 1]), (2, [4, 3], {}, [1, 1]),
    (7, None, {"cu_lengths": [0, 4, 7]}, [4, 3]),
    (7, None, {"positions": [0, 1, 2, 3, 0, 1, 2]}, [4, 3]),
    (5, [4, 2], {"positions": [4, 5, 2, 3, 4]}, [2, 3]), (4, [4, 2], {"totals": [6, 4]}, [2, 2]),
    (4, [4, 2], {"totals": [6, 4], "lengths": [2, 2]}, [2, 2])])
def test_rows_of_packed_tokens(tokens, before, said, counts):
    said = {n: np.array(a) for n, a in said.items()}
    assert counts_of(tokens, before, said) == counts
    require_start(Rows(tuple(counts), (0,) * len(counts), tokens), before, said)


@pytest.mark.parametrize("before, said, words", [
    (None, {}, "neither seq_lens"), (None, {"lengths": [9, 9]}, "do not fit"),
    ([4], {"totals": [3]}, "do not fit"), ([4, 4], {"totals": [30, 30]}, "do not fit")])
def test_packed_tokens_without_rows(before, said, words):
    said = {n: np.array(a) for n, a in said.items()}
    assert words in error_of("import_run", counts_of, 7, before, said)


@pytest.mark.parametrize("before, counts, said, words", [
    (None, (1, 1), {"totals": [9, 12]}, "seq_lens says that rows have [9, 12] tokens"),
    (None, (4, 4), {"totals": [9, 4], "lengths": [4, 4]}, "without a prefix that is cached"),
    ([3, 3], (1, 1), {"totals": [9, 9]}, "they have [4, 4]"),
    (None, (1, 1), {"positions": [8, 11]}, "begin at the positions [8, 11]"),
    (None, (2, 2), {"positions": [[8, 9], [3, 4]]}, "begin at the positions [8, 3]")])
def test_steps_that_go_on_from_tokens_that_are_not_there(before, counts, said, words):
    said = {n: np.array(a) for n, a in said.items()}
    assert words in error_of("import_run", require_start, Rows(counts, (0, 0), 2), before, said)


def test_wrong_positions_are_the_programs_own_where_lengths_say_so():
    require_start(Rows((2, 2), (0, 0), 4), None, {"totals": np.array([2, 2]),
                                                  "positions": np.array([5, 6, 5, 6])})


@pytest.mark.parametrize("mask, positions, counts, pads", [
    ([[0, 0, 1, 1], [1, 1, 1, 1]], None, [2, 4], [2, 0]),
    ([[1, 1, 0, 0], [1, 1, 1, 1]], None, [2, 4], [0, 0]),
    (None, [[1, 1, 0, 1], [0, 1, 2, 3]], [2, 4], [2, 0]),
    (None, [[0, 1, 0, 0], [0, 1, 2, 3]], [2, 4], [0, 0]), (None, None, [4, 4], [0, 0])])
def test_padding_of_rows(mask, positions, counts, pads):
    found = pads_of((2, 4), None if mask is None else np.array(mask),
                    None if positions is None else np.array(positions))
    assert found == (counts, pads)


def test_padding_between_tokens():
    mask = np.array([[1, 0, 1]])
    assert "between its tokens" in error_of("import_run", pads_of, (1, 3), mask, None)


def test_keys_of_a_case():
    def steps(*counts):
        return [Step("decode.1" if max(c) == 1 else f"prefill.c{i}", Rows(c, (0,) * len(c)), None)
                for i, c in enumerate(counts)]

    assert keys_of(steps((4, 4))) == {"batch": "2", "prompt": "4", "gen": "1"}
    assert keys_of(steps((4, 3), (1, 1))) == {"batch": "2", "prompt": "4", "gen": "2",
                                              "lengths": "4,3"}
    assert keys_of(steps((4, 4), (4, 2))) == {"batch": "2", "prompt": "8", "gen": "1", "chunk": "4",
                                              "lengths": "8,6"}
    assert "chunks of one length" in error_of("import_run", keys_of, steps((4, 2), (4, 3)))


def test_ids_of_a_file(tmp_path):
    (tmp_path / "a.txt").write_text("1 2 3\n\n4 5\n")
    assert read_ids(tmp_path / "a.txt") == [[1, 2, 3], [4, 5]]
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]]))
    assert read_ids(tmp_path / "a.npy") == [[1, 2], [3, 4]]
    for text in ("", "a b", "1.5", "-1"):
        (tmp_path / "b.txt").write_text(text)
        assert "decimal numbers" in error_of("import_ids", read_ids, tmp_path / "b.txt")
    np.save(tmp_path / "b.npy", np.ones(3))
    error_of("import_ids", read_ids, tmp_path / "b.npy")
    error_of("import_ids", read_ids, tmp_path / "none")
