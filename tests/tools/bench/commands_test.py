#!/usr/bin/python3
"""The benchmarks as a user meets them, with nothing measured.

    commands_test.py SHARDPROOF_BENCH SHARDPROOF

Every row of the targets is there, with its target; help is 80 columns wide; a wrong use is one line
and exit code 2; and docs/speed.md names the rows that there are.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parents[3]
JAX, CHART = ROOT / "tools/bench/jax", ROOT / "tools/bench/chart"
TARGETS = {
    "ffn/64/1": "<=1.2", "ffn/64/8": "<=0.7", "ffn/64/64": "<=0.95", "ffn/64/256": "<=1.1",
    "ffn/256/1": "<=1.8", "ffn/256/8": "<=1", "ffn/256/64": "<=1.2", "ffn/256/256": "<=1.3",
    "exact/64/64": "<=2", "exact/64/256": "<=2", "exact/1/64": "<=2",
    "verify/exact": "<=1.8", "verify/f32": "<=6", "run/512/memory": "<=0.4GB",
    "run/512/time": "<=2.2", "cases/hazards": ">=15000", "matrix": "<=0.04s",
    "kernel/f32/64x512x512": ">=85%", "kernel/f64/64x512x512": ">=85%",
    "large/512/time": "<=60s", "large/512/memory": "<=4.29GB", "large/4096/memory": "<=17.2GB"}
JAX_TARGETS = {"run/J": "45", "run/M": "30", "run/W": "20", "verify/J": "20", "verify/M": "12",
               "verify/W": "10", "step/J": "8", "step/M": "8"}
WRONG = []


def said(*command, environment=None):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr


def hold(what, condition, shown=""):
    if not condition:
        WRONG.append(what)
        print(f"wrong: {what}\n{shown}")


def refused(code, *command):
    """It is one line on standard error, and nothing on standard output."""
    exit_code, out, err = said(*command)
    text = " ".join(str(word) for word in command)
    hold(f"{text}: exit code {exit_code}, not {code}", exit_code == code, out + err)
    hold(f"{text}: not one line", out == "" and err.count("\n") == 1 and err.endswith("\n"),
         out + err)


def helps(*command):
    code, out, err = said(*command, "--help", environment=os.environ | {"COLUMNS": "80"})
    hold(f"{command} --help", code == 0 and err == "" and "--repeat" in out, out + err)
    long = [line for line in out.splitlines() if len(line) > 80]
    hold(f"{command} --help is wider than 80 columns", not long, "\n".join(long))


def targets_of(text):
    """{id: target} of what --list prints."""
    return {line.split()[0]: (re.search(r"([<>]=.*?)(  |$)", line) or [None, ""])[1]
            for line in text.splitlines()}


def of_bench(bench):
    helps(bench)
    code, out, err = said(bench, "--list", "--filter", "/")
    listed = targets_of(out + said(bench, "--list", "--filter", "matrix")[1])
    hold("--list", code == 0 and err == "", out + err)
    for row, target in TARGETS.items():
        hold(f"{row}: {listed.get(row)}, not {target}", listed.get(row) == target, out)
    hold("what is large is left out", "large" not in said(bench, "--list")[1])
    for flags in (["--tors"], ["--repeat", "0"], ["--repeat", "x"], ["--spread", "-1"],
                  ["--filter", "nothing"], ["word"]):
        refused(2, bench, *flags)
    # A program that is not there, or says something else, is a failed row.
    for program in "/nonexistent", "/bin/false":
        code, out, _ = said(bench, "--filter", "large/512/time", "--program", program)
        hold(f"{program} is measured", code == 1 and " failed" in out, out)
    page = (ROOT / "docs/speed.md").read_text(encoding="utf-8")
    for row in listed:
        kind = row.split("/")[0]
        hold(f"docs/speed.md does not have {kind}", re.search(rf"`{kind}\b", page) is not None)
    return listed


def of_scripts(program):
    helps(JAX)
    listed = targets_of(said(JAX, "--list")[1])
    hold("tools/bench/jax --list", listed == {row: f">= {target}" for row, target in
                                              JAX_TARGETS.items()}, str(listed))
    for flags in (["--tors"], ["--repeat", "0"], ["--filter", "nothing"], ["--spread", "-1"],
                  ["--program", "/nonexistent"], ["word"]):
        refused(2, JAX, *flags)
    refused(3, JAX, "--program", program, "--python", "/bin/false")
    helps(CHART)
    with tempfile.TemporaryDirectory() as folder:
        picture = pathlib.Path(folder) / "speed.svg"
        for words in ([], [program], ["/nonexistent", picture], [program, f"{picture}.png"],
                      [program, picture, "--repeat", "0"]):
            refused(2, CHART, *words)
        refused(1, CHART, "/bin/false", picture)
        hold("a picture of nothing", not picture.exists())
        code, out, err = said(CHART, program, picture, "--chips", "16", "--repeat", "1")
        hold("tools/bench/chart", code == 0, out + err)
        drawn = xml.dom.minidom.parse(str(picture))
        hold("curves", len(drawn.getElementsByTagName("polyline")) == 4)
        table = picture.with_suffix(".csv").read_text(encoding="utf-8").splitlines()
        hold("speed.csv", [line.split(",")[:2] for line in table] ==
             [["verb", "chips"]] + [[verb, chips] for chips in ("8", "16")
                                    for verb in ("run", "verify")], "\n".join(table))


def statistics():
    """The two programs mean the same by a spread."""
    sys.path.insert(0, str(ROOT / "tools/bench"))
    from ratio import Cost, Ratio, spread
    hold("spread of 5", abs(spread([5, 4, 3, 2, 1]) - 4 / 3) < 1e-12)
    hold("spread of 8", abs(spread([1, 2, 3, 4, 5, 6, 7, 100]) - 5 / 4.5) < 1e-12)
    hold("spread of 4", spread([1, 1, 1, 1]) == float("inf"))
    for theirs, ours, verdict in (((20, 20), (1, 1), "met"), ((20, 19), (1, 1), "missed"),
                                  ((19, 20), (1, 1), "missed")):
        row = Ratio("a", 20)
        row.add(Cost(*theirs), Cost(*ours))
        hold(f"{theirs} over {ours}", row.verdict() == verdict)


def main():
    bench, program = sys.argv[1:]
    of_bench(bench)
    of_scripts(program)
    statistics()
    print("the commands are right" if not WRONG else f"{len(WRONG)} wrong")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
