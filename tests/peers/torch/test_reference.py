"""References of models and of directories, and what is refused."""
import numpy as np
import pytest
import torch
import transformers
from torch import nn

import shardproof as sp
import shardproof.torch as spt
from passes import cache_of


def small(**entries):
    return spt.shrink(transformers.LlamaConfig(num_key_value_heads=8, **entries))


def passes_of(model, tap, lengths):
    ids = torch.arange(2 * sum(lengths)).reshape(2, -1)
    cache, at = {}, 0
    with torch.no_grad(), tap:
        for length in lengths:
            out = model(ids[:, at:at + length], use_cache=True, **cache)
            cache, at = cache_of(out), at + length
    return tap


def test_a_directory_is_the_model_that_was_saved(tmp_path):
    model = small(tie_word_embeddings=True)
    model.save_pretrained(tmp_path)
    of_model, of_files = spt.reference(model), spt.reference(tmp_path)
    assert dict(of_model.weights).keys() == dict(of_files.weights).keys()
    for name, array in of_model.weights.items():
        assert np.array_equal(array, of_files.weights[name]), name


def test_shrunk_models_have_no_zeros_to_hide_behind():
    model = small(attention_bias=True)
    vectors = [p for p in model.parameters() if p.ndim == 1]
    assert vectors and all(len(set(p.tolist())) == len(p) for p in vectors)


@pytest.mark.parametrize("lengths", [(8,), (8, 1, 1), (4, 4, 2, 1), (1, 1)])
def test_one_rank_in_chunks_and_steps(lengths):
    model = small()
    tap = passes_of(model, spt.tap(model, spt.reference(model)), lengths)
    verdict = sp.check(tap.trace())
    assert tap.missing == [] and tap.left == []
    assert f"decode.{len(lengths) - 1}.logits" in verdict.values or lengths in [(8,), (4, 4, 2, 1)]


def test_greedy_tokens_are_judged():
    model = small()
    model.generation_config.pad_token_id = 0
    with spt.tap(model, spt.reference(model)) as tap:
        ids = torch.arange(1, 17).reshape(2, 8)
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=3, do_sample=False)
    verdict = sp.check(tap.trace(greedy=True))
    assert verdict.values["prefill.c0.token"] == verdict.values["prefill.c0.logits"] == "within"


def test_another_theta_is_found():
    """RoPE's tables are the config's, not the model's."""
    model = small()
    reference = spt.reference(model)
    rotary = model.model.rotary_emb
    rotary.inv_freq = rotary.inv_freq * 0.9
    verdict = sp.judge(passes_of(model, spt.tap(model, reference), (8,)).trace())
    assert verdict.first == "prefill.c0.layer0.q_rot"


def test_a_cloned_value_is_what_it_was():
    """A kernel that overwrites its operand later changes nothing that was seen."""
    model = small()
    tap = spt.tap(model, spt.reference(model))

    def overwrite(_, args, __):
        args[0].zero_()
    model.model.layers[0].mlp.down_proj.register_forward_hook(overwrite)
    assert sp.judge(passes_of(model, tap, (8,)).trace()).right


def test_what_is_refused():
    model = small()
    reference = spt.reference(model)
    for change, label in ((lambda m: m.half(), "torch_dtype"),
                          (lambda m: m.to("meta"), "torch_reference")):
        with pytest.raises(sp.Error) as caught:
            spt.reference(change(small()))
        assert caught.value.label == label
    with pytest.raises(sp.Error, match="no pass was seen"):
        spt.tap(model, reference).trace()
    with pytest.raises(sp.Error, match="passes of 4, 5 tokens"):
        passes_of(model, spt.tap(model, reference), (4, 5)).trace()
    with pytest.raises(sp.Error, match="without input_ids"), spt.tap(model, reference):
        model(inputs_embeds=torch.zeros(1, 2, model.config.hidden_size))


def test_a_module_that_is_missing_is_listed():
    model = small()
    reference = spt.reference(model)
    layer = model.model.layers[1]
    own = layer.mlp
    layer.mlp = type("Own", (nn.Module,), {"forward": lambda _, x: own(x)})()
    tap = passes_of(model, spt.tap(model, reference), (8,))
    assert "layer1.gate: the model has no module model.layers.1.mlp.gate_proj" in tap.missing
    assert not [fit for fit in sp.judge(tap.trace()).values.values() if fit == "different"]


def test_a_rank_that_fails_is_one_sentence():
    def program(_):
        raise ValueError("a mistake\nof two lines")
    with pytest.raises(sp.Error, match="^torch_ranks: rank 0: ValueError: a mistake$"):
        spt.ranks(2, processes=True).run(program)


def test_the_rank_that_fails_is_named_not_those_that_wait_for_it():
    def program(mesh):
        if mesh.get_rank() == 1:
            raise ValueError("a mistake")
        torch.distributed.all_reduce(torch.ones(1))
    with pytest.raises(sp.Error, match="^torch_ranks: rank 1: ValueError: a mistake$"):
        spt.ranks(2, processes=True).run(program)
