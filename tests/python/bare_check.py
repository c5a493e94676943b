"""Uses the installed package where there is nothing but Python, in the stage `wheel` of .ci/run."""
import pathlib
import subprocess
import tempfile

import numpy as np

import shardproof as sp

LINE = "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 prompt=3 gen=2"

layout = sp.Layout("BLF_zx")
reference = sp.Reference(LINE)
trace = sp.Trace(reference.case)
for name, value in reference.items():
    if name == "prefill.c0.layer0.gate":
        shards = [np.array(shard) for shard in layout.shard(value, reference.torus)]
        shards[5][0, 0, 0] += 1
        trace.add(name, shards, layout)
    else:
        trace.add(name, value)
verdict = sp.judge(trace)
assert verdict.first == "prefill.c0.layer0.gate" and verdict.ranks == [5], verdict.sentence
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "t.h5")
    trace.save(file)
    assert sp.judge(file).first == verdict.first
    done = subprocess.run(["shardproof", "compare", str(file), "--quiet"], capture_output=True,
                          text=True)
    assert done.returncode == 1 and "prefill.c0.layer0.gate" in done.stdout, done
print(f"the package in {pathlib.Path(sp.__file__).parent}: {verdict.sentence}")
