#!/usr/bin/python3
"""Has `shardproof compare` judge eight families of models, right ones and wrong ones.

    check.py SHARDPROOF FOLDER [--runs N] [--seed S] [--families NAME,...] [--first N]
                               [--right-only | --faults-only] [--faults NAME,...]

Right runs draw their extents, formats, chips, orders of sums and rounding places: no value may be
`different` or `unlikely`, and `loose` at most one in twenty. Of each fault the first divergence
must be the value that it makes wrong first, and no other cause may explain it at a residual below
0.1. Exits 1 where one of these does not hold.
"""
import argparse
import collections
import multiprocessing
import os
import pathlib
import random
import sys
import time

import numpy as np

from arithmetic import ALSO
from faults import FAULTS, faults_of
from judge import Judge
from places import STYLES
from setting import Setting

BAD = ("different", "unlikely")


def right(task):
    """One right run: its setting, how often each verdict was said, and what is wrong."""
    judge, seed, index, given = task
    setting = Setting(seed, index, **given)
    answer = judge.verdict(setting, setting.run(judge.model(setting)))
    said = collections.Counter(answer.fits.values())
    wrong = {name: fit for name, fit in answer.fits.items() if fit in BAD}
    if answer.error or wrong:
        why = answer.error or wrong
    elif answer.code != 0 and not (setting.shows_little and answer.lacks_operands):
        why = f"exit {answer.code}: {answer.summary()}"
    else:
        why = None
    return setting, said, why


def check_right(pool, judge, options, families):
    indices = [i for i in range(options.first, options.first + options.runs)]
    forms = options.forms.split(",") if options.forms else []
    also = options.also.split(",") if options.also else []
    tasks = [(judge, options.seed, i, {"family": families[i % len(families)]} | (
        {"form": forms[i % len(forms)]} if forms else {}) | (
        {"also": (also[i % len(also)],)} if also else {}) | (
        {"chips": options.chips} if options.chips else {})) for i in indices]
    total, failed = collections.Counter(), []
    for setting, said, why in pool.imap(right, tasks, chunksize=4):
        total += said
        if why:
            failed.append(setting)
            print(f"RIGHT RUN {setting}\n    {why}", flush=True)
    judged = sum(count for fit, count in total.items() if fit != "not judged")
    print(f"{len(tasks)} right runs, {len(failed)} of them found wrong; values: " +
          ", ".join(f"{count} {fit}" for fit, count in total.most_common()))
    loose = total["loose"] / max(judged, 1)
    print(f"loose: {100 * loose:.2f} % of what was judged")
    return len(tasks) - len(failed) + (loose < 0.05), len(failed) + (loose >= 0.05)


def faulty_setting(fault, family, seed, index, attempt, forms):
    """Where a fault is planted, whatever the seed: formats and dump sets in turn, and another set
    where twenty attempts change too little."""
    form, sets = forms[(index + seed) % len(forms)], fault.sets
    chance = random.Random(f"{fault.name} {family} {seed} {attempt}")
    style = chance.choice(["spec", "eager"])
    return Setting(seed, f"{fault.name} {family} {attempt}", family=family, form=form,
                   chips=fault.chips[(index + seed) % len(fault.chips)], passes=fault.passes,
                   dump_set=sets[(index // 2 + seed + attempt // 20) % len(sets)], style=style,
                   places=STYLES[style], attention=chance.choice(["probs", "exp"]), wire="f32",
                   together=False, functions={}, fused=(), bias_first=False)


def first_difference(trace, right, wrong):
    """The first value of the trace that a fault changes, and by how much of its rms. Where masked
    slots mean nothing, they do not count."""
    for step, a in right.values.items():
        if step not in trace.said:
            continue
        off = np.abs(a.astype(np.float64) - wrong.values[step])
        if trace.masked and step.split(".")[-1] in ("score", "exp", "probs"):
            off = off * right.seen_by[step.rsplit(".", 2)[0]][:, None]
        if not off.max() == 0:
            return step, off.max() / (np.sqrt(np.mean(a.astype(np.float64)**2)) or 1)
    return None, 0.0


UNITS = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}


def least_change(setting):
    """How much of its rms a fault has to change a value by. Of a lean dump fourteen roundings lie
    between q, k and attn (both rotated ones, scores and probabilities, each place of them), which
    may hide as much."""
    return 0.02 + (28 * UNITS[setting.form] if setting.dump_set == "lean" else 0.0)


def faulty(task):
    """One run with a fault: its setting, the value that it makes wrong first, what compare says."""
    judge, family, name, seed, index, forms = task
    fault = FAULTS[name]
    for attempt in range(40):
        setting = faulty_setting(fault, family, seed, index, attempt, forms)
        setting.shown["partials"] = setting.shown["last"] = False
        if not fault.applies(judge.model(setting)):
            continue
        right = setting.run(judge.model(setting))
        wrong = setting.run(judge.model(setting), fault.plant)
        step, off = first_difference(setting.trace_of(right), right, wrong)
        if off > least_change(setting):
            return setting, name, step, off, judge.verdict(setting, wrong)
    return setting, name, None, 0.0, None


def misled(fault, answer):
    """What explains the value, and is not what it is."""
    return [d for d in answer.diagnosis if d.get("explains") and d["residual"] < 0.1
            and d["fault"] not in fault.kinds]


def told(answer):
    return "; ".join(f"{d['fault']} over {d['axes'] or 'no axes'} ({d['detail']}; explains "
                     f"{d.get('explains')}, residual {d['residual']:.2g})"
                     for d in answer.diagnosis[:3])


def check_faults(pool, judge, options, families):
    tasks, forms = [], (options.forms or "f32,bf16,f32,f16").split(",")
    for family in families:
        chosen = [f.name for f in faults_of(judge.any_model(family))
                  if not options.faults or f.name in options.faults.split(",")]
        if not options.faults and len(chosen) < 12:
            sys.exit(f"check: only {len(chosen)} faults apply to {family}")
        tasks += [(judge, family, name, options.seed, i, forms) for i, name in enumerate(chosen)]
    rows = collections.defaultdict(collections.Counter)
    for setting, name, step, off, answer in pool.imap(faulty, tasks, chunksize=2):
        fault, row = FAULTS[name], rows[FAULTS[name].section]
        row["planted"] += 1
        if step is None:
            print(f"NOTHING {name}: {setting}: it changes nothing", flush=True)
            continue
        where, wrong = answer.code == 1 and answer.first == step, misled(fault, answer)
        row["found"] += where
        row["held"] += where and not wrong
        named = any(d.get("explains") and d["fault"] in fault.kinds for d in answer.diagnosis[:1])
        row["named"] += named
        if not where or wrong or (options.verbose and not named):
            word = "STEP" if not where else "MISLED" if wrong else "NOT NAMED"
            print(f"{word} {name}: {setting}: {step} off by {off:.2g}\n    compare: "
                  f"exit {answer.code} {answer.error} {answer.first}; {told(answer)}", flush=True)
    print(f"{'faults of':12}{'planted':>9}{'found':>9}{'named':>9}{'held':>9}")
    for section, row in rows.items():
        print(f"{section:12}" + "".join(f"{row[c]:9}" for c in ("planted", "found", "named",
                                                               "held")))
    held = sum(row["held"] for row in rows.values())
    return held, len(tasks) - held


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("shardproof")
    add("folder", type=pathlib.Path, help="for weights and traces")
    add("--runs", type=int, default=1000, help="right runs")
    add("--first", type=int, default=0, help="the number of the first of them")
    add("--seed", type=int, default=1)
    add("--families", default="", help="some of them, with commas")
    add("--faults", default="", help="some of them, with commas")
    add("--forms", default="", help="formats of runs, with commas")
    add("--chips", type=int, default=0, help="of right runs: 1 or 8")
    add("--also", default="", help=f"forms of right runs, one of them in each: {', '.join(ALSO)}")
    add("--verbose", action="store_true", help="also faults that nothing names")
    add("--right-only", action="store_true")
    add("--faults-only", action="store_true")
    options = parser.parse_args()
    started = time.time()
    judge = Judge(options.shardproof, options.folder)
    families = options.families.split(",") if options.families else judge.families
    judge.make_weights(families)
    passed = failed = 0
    with multiprocessing.Pool(int(os.environ.get("FAMILIES_JOBS", "2"))) as pool:
        if not options.faults_only:
            passed, failed = check_right(pool, judge, options, families)
        if not options.right_only:
            more = check_faults(pool, judge, options, families)
            passed, failed = passed + more[0], failed + more[1]
    print(f"{passed} passed, {failed} failed in {time.time() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
