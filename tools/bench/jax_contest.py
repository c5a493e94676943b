"""One model in JAX and in Shardproof: whole processes in turn, the same weights and prompt."""
import dataclasses
import os
import pathlib

import jax_environment
from child import run_child
from ratio import Cost, Ratio

MODEL = pathlib.Path(__file__).with_name("jax_model.py")
GEN = 5     # tokens of the runs that are held against each other
MORE = 32   # decode steps beyond these, of which one is the mean


@dataclasses.dataclass(frozen=True)
class Subject:
    torus: str
    model: str
    batch: int
    prompt: int

    def line(self, gen):
        return (f"torus={self.torus} model={self.model} prefill=wg-xyz:batch decode=ws2d:batch "
                f"batch={self.batch} prompt={self.prompt} gen={gen} seed=11")


SUBJECTS = {"J": Subject("4x2x3", "palm-tiny", 24, 7), "M": Subject("4x4x4", "palm-mini", 64, 3),
            "W": Subject("4x4x4", "palm-wide", 64, 3)}
HEADINGS = {"run": "JAX cold / run", "verify": "JAX cold / verify",
            "step": "JAX compiled / run, a decode step"}
TARGETS = {"run/J": 45, "run/M": 30, "run/W": 20, "verify/J": 20, "verify/M": 12, "verify/W": 10,
           "step/J": 8, "step/M": 8}


class WrongTokens(Exception):
    """Ours of two runs differ, which no rounding explains."""


class Contest:
    """The sides of one subject, and what they generated."""

    def __init__(self, name, program, python, folder):
        self.name, self.subject = name, SUBJECTS[name]
        self.program, self.python, self.folder = program, python, pathlib.Path(folder)
        # Nothing compiled may be kept from one process to the next.
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("JAX_", "XLA_"))}
        self.input = self.folder / f"{name}.npz"
        weights, said = self.folder / f"{name}.h5", self.folder / f"{name}.json"
        run_child([program, "weights", "generate", "--model", self.subject.model, "--seed", 11,
                   "--out", weights])
        said.write_text(run_child([program, "run", "--case", self.subject.line(GEN),
                                   "--json"]).text, encoding="utf-8")
        said = jax_environment.read_json(said)
        jax_environment.write_input(weights, said["prompt"], self.input)
        self.ours, self.theirs = said["generated"], None

    def jax(self, *flags):
        """A process of JAX; what it wrote, and what it cost."""
        output = self.folder / f"{self.name}.out"
        child = run_child([self.python, MODEL, self.input, output, "--torus", self.subject.torus,
                           "--gen", GEN, *flags], self.environment)
        said = jax_environment.read_json(output)
        self.theirs = said["generated"]
        return said, Cost(child.processor, child.wall)

    def run(self, gen):
        child = run_child([self.program, "run", "--case", self.subject.line(gen)])
        ids = [[int(word) for word in line.split()] for line in child.text.splitlines()]
        if [row[:GEN] for row in ids] != self.ours:
            raise WrongTokens(f"{self.name}: two runs of ours have other tokens")
        return Cost(child.processor, child.wall)

    def verify(self):
        child = run_child([self.program, "verify", "--case", self.subject.line(GEN)])
        return Cost(child.processor, child.wall)

    def measure(self, kinds, most, limit):
        """The ratios of these kinds, one after the other in each round, until each has a spread of
        at most `limit`, or `most` rounds are done."""
        ratios = {kind: Ratio(f"{kind}/{self.name}", TARGETS[f"{kind}/{self.name}"])
                  for kind in kinds}
        for _ in range(most):
            if "run" in kinds or "verify" in kinds:
                _, cold = self.jax()
            if "run" in kinds:
                ratios["run"].add(cold, self.run(GEN))
            if "verify" in kinds:
                ratios["verify"].add(cold, self.verify())
            if "step" in kinds:
                said, _ = self.jax("--timed", MORE)
                short, long = self.run(GEN), self.run(GEN + MORE)
                ratios["step"].add(Cost(said["processor"], said["wall"]),
                                   Cost((long.processor - short.processor) / MORE,
                                        (long.wall - short.wall) / MORE))
            if all(ratio.spread() <= limit for ratio in ratios.values()):
                break
        return list(ratios.values())

    def tokens(self):
        """One line: whether JAX generated ours, and if not, where it first did not and how close
        the two tokens' logits were. And whether it did."""
        pairs = [(row, step) for row, (a, b) in enumerate(zip(self.ours, self.theirs))
                 for step, (x, y) in enumerate(zip(a, b)) if x != y]
        total = len(self.ours) * GEN
        if not pairs:
            return f"{self.name}: {total} of {total} tokens agree", True
        import numpy as np
        row, step = min(pairs, key=lambda pair: (pair[1], pair[0]))
        file = self.folder / f"{self.name}.logits.npz"
        self.jax("--logits", file)
        logits = np.load(file)[f"arr_{step}"][row]
        mine, other = (float(logits[ids[row][step]]) for ids in (self.ours, self.theirs))
        return (f"{self.name}: {total - len(pairs)} of {total} tokens agree; first apart at token "
                f"{step} of row {row}: there JAX's logits\nof the two tokens are {mine:.9g} and "
                f"{other:.9g}, {abs(other - mine) / np.sqrt(np.mean(logits ** 2)):.1e} of their "
                "root mean square apart"), False
