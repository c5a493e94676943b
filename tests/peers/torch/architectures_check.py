"""Each architecture of the package against transformers: a small random model in f32 (biases and
gains random too) runs prefill and two decode steps; what its modules show is judged by the text, in
the sizes that the map reads from the config as it would be saved. A right run must be right; a
changed theta, a dropped bias and a wrong gain must be seen where they are; and in bf16, rounded
where the text stores and nowhere else, a right run must be right. Prints a line a row and exits
with 1 on a failure.

    PYTHONPATH=tools/python SHARDPROOF_LIBRARY=build/libshardproof.so \\
      python tests/peers/torch/architectures_check.py [NAME ...]
"""
import json
import pathlib
import re
import sys
import time

import ml_dtypes
import numpy as np
import torch
import transformers

import shardproof as sp
from passes import CACHE

BATCH, PROMPT, GEN = 2, 5, 3
SMALL = dict(vocab_size=48, hidden_size=48, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64)
LLAMA3 = dict(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=16)


def rows():
    """Of each row its name, the model's class, the config's class and its entries."""
    table = pathlib.Path(__file__).with_name("architectures_check.txt")
    for line in table.read_text().splitlines():
        words = line.split("#")[0].split(maxsplit=2)
        if words:
            more = eval(f"dict({words[2]})", {"LLAMA3": LLAMA3}) if len(words) > 2 else {}
            model = getattr(transformers, words[1])
            yield words[0], model, model.config_class(**{**SMALL, **more})


def randomize(model, seed):
    """Numbers for all parameters: gains from 0.5 to 1.5, biases of size 0.1, and matrices that
    keep values of size 1."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn(p.shape, generator=draw))
            if name.endswith("bias"):
                p.mul_(0.1)
            elif p.dim() == 1 or "norm" in name:
                p.mul_(0.1).add_(0.0 if "Gemma" in type(model).__name__ else 1.0)
            elif "embed" not in name:
                p.mul_(p.shape[-1] ** -0.5)


def numbers(tensor):
    """A tensor as an array of its own type."""
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def to_bf16(model):
    """The model as from_pretrained makes it in bf16: tables of RoPE stay f32."""
    tables = {n: b for n, b in model.named_buffers() if n.endswith("inv_freq")}
    model = model.to(torch.bfloat16)
    for name, table in tables.items():
        setattr(model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], table)
    return model


def run(model, arch, ids):
    """The values by name of prefill and decode steps, as the modules show them."""
    shown, passes = {}, ["prefill.c0", *(f"decode.{i}" for i in range(1, GEN))]
    hooks, tree = [], dict(model.named_modules())
    # Of several modules of one value a program has one.
    modules = [module for module in arch.modules() if module.name in tree]
    assert {m.value for m in modules} == {m.value for m in arch.modules()}
    for name in {m.name for m in modules}:
        def hook(module, args, kwargs, out, name=name):
            given = args[0] if args else next(iter(kwargs.values()))
            out = out[0] if isinstance(out, tuple) else out
            shown[name] = (given.clone(), out.clone())
        hooks.append(tree[name].register_forward_hook(hook, with_kwargs=True))
    values, cache = {}, transformers.DynamicCache(config=model.config)
    for at, step in enumerate(passes):
        values[f"{step}.ids"] = ids.numpy().astype(np.int32)
        with torch.no_grad():
            logits = model(ids, use_cache=True, **{CACHE: cache}).logits
        for module in modules:
            array = shown[module.name][0 if module.input else 1].detach()
            values[f"{step}.{module.value}"] = numbers(module.of(array, arch.extents))
        values[f"{step}.logits"] = numbers(logits)
        ids = logits[:, -1].argmax(-1, keepdim=True)
    for hook in hooks:
        hook.remove()
    return values


def judged(arch, values, weights, act="f32"):
    said = dict(arithmetic="bf16", rounding="spec") if act == "bf16" else {}
    trace = sp.Trace(arch.case(batch=BATCH, prompt=PROMPT, gen=GEN, act=act), weights="file",
                     **said)
    for name, value in values.items():
        trace.add(name, value)
    return sp.judge(trace, weights)


def theta(model):
    for module in model.modules():
        for name, buffer in list(module.named_buffers(recurse=False)):
            if name.endswith("inv_freq"):
                setattr(module, name, buffer * 0.9)
            elif name == "embed_positions":
                setattr(module, name, buffer.roll(1, 0))


def changed(pattern, change):
    def act(model):
        names = [n for n, _ in model.named_parameters() if re.search(pattern, n)]
        with torch.no_grad():
            change(model.get_parameter(names[-1]))
    act.pattern = pattern
    return act


# What is done, where it is first seen, and the cause that is named, if any is.
FAULTS = {
    "theta": (theta, r"prefill\.c0\.layer0\.attn$", ""),
    "bias dropped": (changed(r"\.1\..*(proj|dense\w*|fc\w*|value)\.bias$", lambda p: p.zero_()),
                     r"prefill\.c0\.layer1\.(q|k|v|attn_out|gate|up|ffn_out)$", "is added 0 times"),
    "gain": (changed(r"\.1\..*(norm|ln_\w+)\.weight$", lambda p: p[0].mul_(1.001)),
             r"prefill\.c0\.layer1\.\w*norm2?$", "")}


def check(name, kind, config):
    """The failures of one row."""
    config._attn_implementation = "eager"
    model = kind(config).eval()
    randomize(model, 7)
    state = {n: p.detach().clone().numpy() for n, p in model.state_dict().items()}
    arch = sp.Architecture.of(json.loads(config.to_json_string()))
    weights = arch.weights(state)
    ids = torch.randint(0, config.vocab_size, (BATCH, PROMPT),
                        generator=torch.Generator().manual_seed(3))
    told, failures = [], []
    right = judged(arch, run(model, arch, ids), weights)
    unseen = [v for v, fit in right.values.items()
              if fit == "not judged" and not v.endswith(".ids")]
    if not right.right or unseen:
        failures.append(f"right run: {right.sentence} {unseen[:5]}")
    for fault, (act, place, cause) in FAULTS.items():
        if not any(re.search(getattr(act, "pattern", "rope"), n) for n in [*state, *weights]):
            continue
        broken = kind(config).eval()
        broken.load_state_dict(model.state_dict())
        act(broken)
        verdict = judged(arch, run(broken, arch, ids), weights)
        told.append(f"{fault}: {verdict.sentence}")
        if not re.fullmatch(place, verdict.first or "") or cause not in verdict.sentence:
            failures.append(f"{fault}: {verdict.sentence}")
    model = to_bf16(model)
    weights = arch.weights({n: p.detach().float().numpy() for n, p in model.state_dict().items()})
    rounded = judged(arch, run(model, arch, ids), weights, "bf16")
    if not rounded.right:
        failures.append(f"in bf16: {rounded.sentence}")
    return len(right.values), arch.unread, told, failures


def main(names):
    failed = False
    for name, kind, config in rows():
        if names and name not in names:
            continue
        begin = time.time()
        try:
            judged_values, unread, told, failures = check(name, kind, config)
        except sp.Error as error:
            judged_values, unread, told, failures = 0, {}, [], [str(error)]
        failed = failed or bool(failures)
        verdict = "FAILED" if failures else "right"
        print(f"{name:24} {verdict:6} {judged_values:4} values {time.time() - begin:5.1f} s",
              *(["unread", *unread] if unread else []))
        for line in failures + (told if names else []):
            print("   ", line)
    return 1 if failed else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    sys.exit(main(sys.argv[1:]))
