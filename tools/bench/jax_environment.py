"""The virtual environment that JAX is installed into, and the inputs that it is given."""
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "tests/peers/jax/requirements.txt"
FOLDER = ROOT / "build/bench-jax"


class NoJax(Exception):
    """Why there is none."""


def _quietly(command, what):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["it said nothing"]
        raise NoJax(f"no JAX: {what} failed: {lines[-1]}")


def python_with_jax():
    """The Python of build/bench-jax, which is made unless it is there with these requirements."""
    python, stamp = FOLDER / "bin/python", FOLDER / "requirements.txt"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted and python.exists():
        return python
    print(f"installing JAX into {FOLDER.relative_to(ROOT)}", file=sys.stderr)
    shutil.rmtree(FOLDER, ignore_errors=True)
    _quietly(["/usr/bin/python3", "-m", "venv", FOLDER], "python3 -m venv (Debian: python3-venv)")
    _quietly([python, "-m", "pip", "install", "--quiet", "--no-input",
              "--disable-pip-version-check", "-r", REQUIREMENTS], "pip install")
    stamp.write_text(wanted, encoding="utf-8")
    return python


def check(python):
    """That it has JAX, of which version."""
    done = subprocess.run([python, "-c", "import jax; print(jax.__version__)"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise NoJax(f"no JAX: {python} cannot import it")
    return done.stdout.strip()


def write_input(weights, prompt, path):
    """An HDF5 file of weights and a prompt [BL] as the arrays of one .npz: JAX's own environment
    has no HDF5."""
    try:
        import h5py
        import numpy as np
    except ImportError as error:
        raise NoJax(f"no inputs for JAX: {error} (Debian: python3-h5py)") from error
    with h5py.File(weights) as file:
        arrays = {name: array[()] for name, array in file.items()}
    np.savez(path, **arrays, prompt=np.array(prompt, np.int32))


def read_json(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
