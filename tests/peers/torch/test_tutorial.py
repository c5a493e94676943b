"""The code of docs/tutorials/judge_pytorch.md: the test passes, and with the fault it fails with
the line that the page shows; on ranks in one process, and by gloo."""
import pathlib
import re

import pytest
import torch
import torch.distributed.tensor.parallel

import shardproof as sp
import shardproof.torch as spt

PAGE = (pathlib.Path(__file__).parents[3] / "docs/tutorials/judge_pytorch.md").read_text()


def block(mark):
    return re.search(rf"^<!-- {mark} -->\n```\w*\n(.*?)^```", PAGE, re.M | re.S)[1]


def program(fault=False):
    """The page's names."""
    code = block("file test_parallel.py")
    if fault:
        at = code.index("    with spt.tap")
        code = block("import") + code[:at] + block("fault") + code[at:]
        if not hasattr(torch.distributed.tensor, "DTensor"):  # before torch 2.5
            code = code.replace("from torch.distributed.tensor import",
                                "from torch.distributed._tensor import")
    names = {}
    exec(compile(code, "test_parallel.py", "exec"), names)  # the page's own text
    return names


def test_the_page_has_fifteen_lines_of_code():
    lines = [line for line in block("file test_parallel.py").splitlines()
             if line.strip() and not re.match(r"import|from", line)]
    assert len(lines) <= 15


def test_it_passes():
    program()["test_parallel"]()


def test_its_fault_is_found():
    with pytest.raises(AssertionError) as caught:
        program(fault=True)["test_parallel"]()
    assert str(caught.value).splitlines()[0] == block("first line").strip()


def test_processes_say_the_same():
    for fault in (False, True):
        tap = spt.ranks(8, processes=True).run(program(fault)["run"])
        verdict = sp.judge(tap.trace())
        assert verdict.right is not fault, verdict.headline
        if fault:
            assert verdict.headline == block("first line").strip()
