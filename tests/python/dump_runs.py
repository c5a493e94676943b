"""What tests of dumps share: a model's directory, dumps of it, and the command's verdict."""
import contextlib
import io

import pytest

from sglang_dump import Run, reference_of, write_model


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    write_model(folder)
    return folder


references = {}


def dump(model, folder, lengths=(6, 6), case=None, **how):
    """Writes a dump; of the same rows only one reference is run."""
    if "chunk" in how:
        case = {"chunk": how["chunk"]}
    key = (str(model), tuple(lengths), str(case))
    if key not in references:
        references[key] = reference_of(model, lengths, case=case)
    Run(folder / "dump", lengths=lengths, **how).write(*references[key])
    return folder / "dump"


def judge(*arguments):
    from shardproof.importing.command import main
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main("judge", [str(a) for a in arguments])
    return code, out.getvalue(), err.getvalue()


def off(row, position):
    def change(value):
        value[row, position].reshape(-1)[0] += 1
    return change
