#!/usr/bin/python3
"""A sharded inference peer: a model run on a mesh of simulated chips in NumPy, none of it
Shardproof's code. Writes a trace (docs/trace-format.md) for `shardproof compare`.

    peer.py --weights W.h5 --case "torus=2x3x2 batch=12 prompt=5 chunk=3 gen=3" \\
            --strategy 2d:batch --out run.h5
    peer.py ... --fault partial-sum-missing --site 7

W.h5 is what `shardproof weights generate` writes; ids of the prompt are the peer's own. With
--fault prints what is wrong in the trace, as JSON.
"""
import argparse
import json
import sys

import numpy as np

from arithmetic import ARITHMETIC
from bug import FAULTS, Bugs, draw, where_of
from config import Config, case_of, read_weights
from dump import FORMS, Dump
from forward import Forward
from mesh import Mesh
from plan import STRATEGIES, plan_of


class Peer:
    def __init__(self, weights_path, case, strategy, arithmetic="f32", axes="", garbage=False,
                 partial_sums=False, stages=False):
        model, self.weights = read_weights(weights_path)
        self.case = case_of(case, model)
        if self.case["model"] != model:
            raise ValueError(f"the case's model is {self.case['model']}, the file's {model}")
        self.config = Config(model, self.weights)
        self.mesh, self.plan = Mesh(self.case["torus"]), plan_of(strategy, axes)
        self.arithmetic, self.garbage = arithmetic, garbage
        self.partial_sums, self.stages = partial_sums and arithmetic != "exact", stages

    def run(self, bugs):
        number = lambda key: int(self.case[key])
        prompt = np.random.default_rng(number("seed") if "seed" in self.case else 1).integers(
            0, self.config.V, (number("batch"), number("prompt"))).astype(np.int32)
        run = Forward(self.weights, self.config, self.plan, self.mesh, ARITHMETIC[self.arithmetic],
                      bugs, self.garbage, self.partial_sums, self.stages)
        return run.generate(prompt, number("chunk"), number("gen"))

    def attributes(self):
        line = " ".join(f"{key}={value}" for key, value in self.case.items())
        return {"case": line, "arithmetic": self.arithmetic, "weights": "file"} | (
            {"masked": "any"} if self.garbage else {})


def first_difference(dump, right, wrong):
    """The id of the first value that the trace has otherwise, and by how much of its rms."""
    for step, value in right.values.items():
        off = size = 0.0
        for (_, a), (_, b) in zip(dump.arrays(step, value), dump.arrays(step, wrong.values[step])):
            off = max(off, float(np.abs(a.astype(np.float64) - b).max()))
            size = max(size, float(np.sqrt(np.mean(a.astype(np.float64)**2))))
        if off != 0.0:
            return step, off / (size or 1.0)
    return None, 0.0


def truth_of(site, step, mesh):
    """What the trace has wrong. Axes of one chip are not counted."""
    said = site.options
    axes = "".join(a for a in said.pop("axes") if mesh.sizes[a] > 1)
    detail = ", ".join(f"{key} {value}" for key, value in said.items())
    return {"fault": site.fault, "step": step, "axes": axes, "place": site.place,
            "detail": f"{site.place}: {detail}"}


def equivalent(peer, dump, fault, step, wrong):
    """Whether the fault at some other site makes this very trace of the value: then nobody can tell
    the two apart."""
    watching = Bugs(watched=fault)
    peer.run(watching)
    plain = [a for _, a in dump.arrays(step, wrong.values[step])]
    for site in watching.sites:
        in_pass = site.step.split(".")[:-1] == step.split(".")[:-1]
        if in_pass and where_of(site.step) == where_of(step):
            with np.errstate(all="ignore"):
                other = peer.run(Bugs(planted=site)).values[step]
            if all(np.array_equal(a, b) for a, (_, b) in zip(plain, dump.arrays(step, other))):
                return truth_of(site, step, peer.mesh)
    return None


def planted(peer, dump, fault, seed):
    """A run with the fault at a site drawn of those where the trace changes, and what it is."""
    watching = Bugs(watched=fault)
    right = peer.run(watching)
    for site in draw(watching.sites, seed):
        with np.errstate(all="ignore"):
            wrong = peer.run(Bugs(planted=site))
        if not all(np.isfinite(a).all() for v in wrong.values.values() for a in v.shards.values()):
            continue
        step, off = first_difference(dump, right, wrong)
        if off <= (0 if fault == "rounding-bf16" else 1e-3):
            continue
        # It may change nothing in its first pass, as of a block of the table that no id is in.
        if where_of(step) != where_of(site.step):
            raise AssertionError(f"{site} is seen first at {step}")
        return wrong, truth_of(site, step, peer.mesh)
    raise ValueError(f"{fault} changes nothing anywhere in this case")


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = arguments.add_argument
    add("--weights", metavar="FILE", help="HDF5 file of weights, version 1")
    add("--case", default="", metavar="LINE",
        help="torus, batch, prompt, chunk, gen, seed (of the prompt); the model is the file's")
    add("--strategy", default="2d:heads", help=", ".join(STRATEGIES) + ", or batch-AXES")
    add("--axes", default="", metavar="TEXT",
        help='orders of the axes: "e=y f=xz h=zx stream=yxz", or some of them')
    add("--arithmetic", choices=ARITHMETIC, default="f32", help="exact: math.fsum of exact terms")
    add("--form", choices=FORMS, default="stacked", help="how the trace has values")
    add("--mesh-order", default="x y z", metavar="TEXT",
        help='of the dims of stacked values: "z x y", or with names: "data=x model=y seq=z"')
    add("--partial-sums", action="store_true",
        help="the trace has partial sums, too (not exact ones)")
    add("--stages", action="store_true", help="the trace has values between their collectives, too")
    add("--garbage", action="store_true", help="masked scores hold -1e30, and the trace says so")
    add("--padded-cache", type=int, default=0, metavar="N", help="caches have N slots")
    add("--out", metavar="FILE", help="the trace: .h5, or .npz")
    add("--fault", choices=FAULTS, metavar="NAME", help="plants a fault; see --list-faults")
    add("--site", type=int, default=0, metavar="SEED", help="draws where and how")
    add("--list-faults", action="store_true", help="prints the faults and ends")
    options = arguments.parse_args()
    if options.list_faults:
        for name, what in FAULTS.items():
            print(f"{name:24} {what}")
        return 0
    if not options.weights or not options.out:
        arguments.error("--weights and --out are needed")
    try:
        peer = Peer(options.weights, options.case, options.strategy, options.arithmetic,
                    options.axes, options.garbage, options.partial_sums, options.stages)
        dump = Dump(options.form, options.mesh_order, options.padded_cache)
        if options.fault:
            run, truth = planted(peer, dump, options.fault, options.site)
        else:
            run, truth = peer.run(Bugs()), {"fault": None}
        dump.write(options.out, run, peer.attributes())
    except ValueError as error:
        print(f"peer: {error}", file=sys.stderr)
        return 2
    print(json.dumps(truth))
    return 0


if __name__ == "__main__":
    sys.exit(main())
