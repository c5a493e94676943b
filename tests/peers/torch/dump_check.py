"""Dumps of real models as a user's hooks write them, judged by `python -m shardproof judge`: every
module's output and first input by torch.save, a batch padded on the left, the model saved by
save_pretrained. A right run must exit with 0; with a rotation of another theta the attention of the
first layer must be named. Prints a line a row and exits with 1 on a failure.

    PYTHONPATH=tools/python SHARDPROOF_LIBRARY=build/libshardproof.so \\
      python tests/peers/torch/dump_check.py [NAME ...]
"""
import contextlib
import io
import pathlib
import sys
import tempfile
import time

import torch
import transformers

import architectures_check as small
from passes import CACHE
from shardproof.importing.command import main as command

ROWS = ["llama", "llama-3", "qwen2", "phi-3", "gemma", "gpt-j", "falcon-7b"]
LENGTHS, GEN = (6, 4), 2


def dump(model, folder):
    """Runs a padded prefill and decode steps; a file for each tensor a module takes or gives."""
    folder.mkdir()
    step, index, hooks = 0, 0, []

    def save(name, value):
        nonlocal index
        index += 1
        meta = {"name": name, "step": step, "rank": 0, "world_size": 1}
        torch.save({"value": value, "meta": meta},
                   folder / f"step={step}___rank=0___dump_index={index}___name={name}.pt")

    def hook_of(name):
        def hook(module, args, kwargs, out):
            given = args[0] if args else next(iter(kwargs.values()), None)
            for suffix, value in ((".inputs.0", given),
                                  (".output", out[0] if isinstance(out, tuple) else out)):
                if isinstance(value, torch.Tensor):
                    save(f"non_intrusive__{name}{suffix}", value.detach().clone())
        return hook

    for name, module in model.named_modules():
        if name:
            hooks.append(module.register_forward_hook(hook_of(name), with_kwargs=True))
    width = max(LENGTHS)
    mask = torch.tensor([[0] * (width - n) + [1] * n for n in LENGTHS])
    ids = torch.randint(1, model.config.vocab_size, mask.shape,
                        generator=torch.Generator().manual_seed(3)) * mask
    cache = transformers.DynamicCache(config=model.config)
    for step in range(GEN):
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1]:]
        for name, value in (("input_ids", ids), ("attention_mask", mask),
                            ("position_ids", positions)):
            save(name, value.clone())
        with torch.no_grad():
            logits = model(ids, attention_mask=mask, position_ids=positions,
                           use_cache=True, **{CACHE: cache}).logits
        ids = logits[:, -1].argmax(-1, keepdim=True)
        mask = torch.cat([mask, torch.ones_like(ids)], 1)
    for hook in hooks:
        hook.remove()


def judge(folder):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command("judge", [str(folder / "dump"), "--model", str(folder / "model")])
    return code, out.getvalue() + err.getvalue()


def check(kind, config, dtype):
    """The failures of a row, and how many values were judged."""
    config._attn_implementation = "eager"
    model = kind(config).eval()
    small.randomize(model, 7)
    model = model.to(dtype)
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model.save_pretrained(folder / "model")
        dump(model, folder / "dump")
        code, right = judge(folder)
        if code != 0:
            failures.append(right)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model.save_pretrained(folder / "model")
        small.theta(model)
        dump(model, folder / "dump")
        code, text = judge(folder)
        if code != 1 or "prefill.c0.layer0.attn: " not in text.splitlines()[-1]:
            failures.append(f"theta: {code} {text[-1000:]}")
    return failures, next((line for line in right.splitlines() if " values compared; " in line), "")


def main(names):
    failed = False
    for name, kind, config in small.rows():
        if name not in (names or ROWS):
            continue
        for dtype in (torch.float32, torch.bfloat16):
            begin = time.time()
            failures, judged = check(kind, type(config)(**config.to_dict()), dtype)
            failed = failed or bool(failures)
            print(f"{name:12} {str(dtype)[6:]:9} {'FAILED' if failures else 'right'} "
                  f"{time.time() - begin:5.1f} s {judged}", *failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
