"""The tap on each architecture of the package: every module of its table is found and read, parts
of fused results too, none is unknown, and a right run is right."""
import pytest
import torch
import transformers

import shardproof as sp
import shardproof.torch as spt
from architectures_check import randomize, rows
from passes import cache_of


def is_known(config):
    """Whether this version of transformers has all of a row's entries."""
    return hasattr(transformers.LlamaConfig(), "rope_parameters") or not hasattr(
        config, "rope_parameters")


ALL = {name: (model, config) for name, model, config in rows() if is_known(config)}


@pytest.mark.parametrize("name", ALL)
def test_a_right_run_is_right(name):
    make, config = ALL[name]
    torch.manual_seed(1)
    # Attention by PyTorch's own function leaves out soft caps in earlier versions of transformers,
    # and fails for windows with torch 2.4.
    if getattr(config, "attn_logit_softcapping", None) or (
            torch.__version__ < "2.5" and getattr(config, "sliding_window", None)):
        config._attn_implementation = "eager"
    model = make(config).eval()
    randomize(model, 1)
    with spt.tap(model, spt.reference(model)) as tap, torch.no_grad():
        cache = {}
        for ids in torch.arange(1, 15).reshape(2, 7).split([5, 1, 1], 1):
            out = model(ids, use_cache=True, **cache)
            cache = cache_of(out)
    verdict = sp.check(tap.trace())
    assert tap.unknown == [] and tap.missing == []
    # Caches of a window keep its slots alone, Falcon's those of query heads: left out, and said.
    assert [why for why in tap.left if "_cache: " not in why] == []
    assert config.model_type in ("falcon",) or tap.left == [] or \
        getattr(config, "sliding_window", None)
    unseen = [name for name, fit in verdict.values.items()
              if fit == "not judged" and not name.endswith(".ids")]
    assert unseen == []
