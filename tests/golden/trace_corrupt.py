#!/usr/bin/python3
"""Changes one element of each of some datasets of a trace, and demands that `compare` names it.

    trace_corrupt.py SHARDPROOF TRACE.h5
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy

SOME = 6


def compare(program, path):
    done = subprocess.run([program, "compare", "--json", str(path)], capture_output=True, text=True,
                          check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"compare: {done.stderr}")
    return json.loads(done.stdout)


def main():
    program, path = sys.argv[1:]
    before = compare(program, path)
    if before["verdict"] != "right":
        sys.exit("the trace itself is not right")
    named = {value["name"] for value in before["values"] if value["fit"] in ("equal", "within")}
    planted = 0
    with tempfile.TemporaryDirectory() as folder, h5py.File(path, "r") as file:
        names = sorted(n for n in named if n in file and file[n].dtype == "<f4" and file[n].size > 1)
        for name in names[::max(1, len(names) // SOME)]:
            copy = pathlib.Path(folder) / "copy.h5"
            shutil.copyfile(path, copy)
            with h5py.File(copy, "r+") as changed:
                data = changed[name][...]
                index = [extent // 2 for extent in data.shape]
                data[tuple(index)] += numpy.abs(data).max() + 1
                changed[name][...] = data
            found = compare(program, copy)
            rows = {value["name"] for value in found["values"] if value["fit"] == "different"}
            if found["verdict"] != "different" or name not in rows:
                sys.exit(f"{name} at {index}: not found: {found['verdict']}")
            first = found["first"]
            if first["name"] != name or first["first"]["index"] != index or first["wrong"] != 1:
                sys.exit(f"{name} at {index}: compare names {first}")
            print(f"caught: {name} at {index}")
            planted += 1
    if planted < SOME:
        sys.exit(f"only {planted} planted")


main()
