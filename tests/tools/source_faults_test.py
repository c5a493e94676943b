#!/usr/bin/env python3
"""tools/source_faults, shown failing: on each kind of table that is wrong, and with each verdict, by
a tree of one file whose compiler and test are a few lines of shell."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("tools/source_faults")

FAULT = {"id": "wrong", "what": "it is wrong", "file": "source.txt", "old": "right", "new": "bad",
         "test": "demo", "filter": "Demo.*"}

# `ninja` makes the test binary, which passes while the source says "right", and lists one test if
# it is asked for a suite of that name. A source that says "broken" does not compile.
NINJA = """#!/bin/sh
cd "$2" || exit 1
grep -q broken ../source.txt && { echo 'error: broken'; exit 1; }
mkdir -p tests
cat >tests/test_demo <<'TEST'
#!/bin/sh
case "$*" in
  *--gtest_list_tests*) echo 'Demo.'; case "$*" in *=Demo.*) echo '  Test' ;; esac ;;
  *) grep -q 'right\\|unseen' "$(dirname "$0")/../../source.txt" ;;
esac
TEST
chmod +x tests/test_demo
"""

# Names of tests are read from the source; those of this one with and without parameters.
SOURCE = """TEST(Demo, Test) {}
TEST_P(Drawn, IsOne) {}
INSTANTIATE_TEST_SUITE_P(
    All, Drawn, Values(1));
"""


class Tree:
    def __init__(self, root, faults, title="Demo"):
        self.root = root
        for folder in ("tools", "tests/source_faults", "docs", "bin"):
            (root / folder).mkdir(parents=True)
        shutil.copy(SCRIPT, root / "tools/source_faults")
        for name in ("source_edits.py", "source_tests.py"):
            shutil.copy(SCRIPT.parent / name, root / "tools" / name)
        (root / "tests/CMakeLists.txt").write_text("shardproof_test(demo SOURCES demo_test.cpp)\n")
        (root / "tests/demo_test.cpp").write_text(SOURCE)
        (root / ".gitignore").write_text("/build/\n")
        (root / "source.txt").write_text("it is right\n")
        table = f'title = "{title}"\n'
        for fault in faults:
            table += "[[fault]]\n" + "".join(f"{k} = '''{v}'''\n" for k, v in fault.items())
        (root / "tests/source_faults/demo.toml").write_text(table)
        for name, text in (("ninja", NINJA), ("cmake", "#!/bin/sh\nmkdir -p build\n")):
            (root / "bin" / name).write_text(text)
            (root / "bin" / name).chmod(0o755)
        subprocess.run(["git", "init", "-q", root], check=True)

    def run(self, *flags):
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        return subprocess.run([sys.executable, self.root / "tools/source_faults", *flags],
                              capture_output=True, text=True, env=os.environ | {"PATH": path})


# For a sample: what is compiled is a copy of the source without spaces, unless it says "same"; the
# tests fail where a source has "<=".
SAMPLED = {"ninja": """#!/bin/sh
cd "$2" || exit 1
grep -q '[|][|]' ../engine/a.cpp && exit 1
if grep -q same ../engine/a.cpp; then echo same; else tr -d ' ' <../engine/a.cpp; fi >a.o
""", "ctest": """#!/bin/sh
case "$*" in
  *-N*) echo '  Test  #1: demo' ;;
  *) ! grep -q '<=' "$2/../engine/a.cpp" ;;
esac
"""}


def sampled(tree, source):
    (tree.root / "engine").mkdir()
    (tree.root / "engine/a.cpp").write_text(source)
    for name, text in SAMPLED.items():
        (tree.root / "bin" / name).write_text(text)
        (tree.root / "bin" / name).chmod(0o755)
    return tree


failed = 0


def expect(what, done, status, said):
    global failed
    if done.returncode != status or said not in done.stdout + done.stderr:
        failed += 1
        print(f"{what}: exit {done.returncode}, not {status} with '{said}':\n"
              f"{done.stdout}{done.stderr}", file=sys.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        number = iter(range(1000))

        def tree(*changes):
            faults = [FAULT | change for change in changes]
            return Tree(Path(folder) / str(next(number)), faults)

        # The check.
        right = tree({})
        expect("a right table", right.run("--check"), 0, "")
        expect("its list", right.run("--list"), 0, "it is wrong")
        absent = tree({"old": "rihgt"})
        expect("an old text that is absent", absent.run("--check"), 1, "0 times in source.txt")
        twice = tree({"old": "i"})
        expect("an old text that is there twice", twice.run("--check"), 1, "3 times in source.txt")
        nowhere = tree({"file": "sauce.txt"})
        expect("a file that is absent", nowhere.run("--check"), 1, "there is no sauce.txt")

        for name in ("Demo.*", "Demo.Test-Demo.Other", "*", "D?mo.Test:All/Drawn.*",
                     "*Drawn.IsOne/0"):
            expect(f"a filter {name}", tree({"filter": name}).run("--check"), 0, "")
        for name in ("Other.*", "Demo.Test:Other.*", "Demo", "Demo.Tes", "Drawn.*",
                     "All/Drawn.IsTwo/0", "Dem[o].*"):
            expect(f"a filter {name}", tree({"filter": name}).run("--check"), 1,
                   f"has a name as {name.split(':')[-1]}")
        expect("a binary that is absent", tree({"test": "none"}).run("--check"), 1,
               "there is no test_none")

        # Wrong input.
        expect("an unknown id", right.run("--only", "other"), 2, "no fault is called 'other'")
        expect("an unknown flag", right.run("--chek"), 2, "--chek")
        expect("--in alone", right.run("--in", "engine"), 2, "--in is for --sample")
        expect("no sample", right.run("--sample", "0"), 2, "--sample must be at least 1")
        expect("an empty sample", right.run("--sample", "1"), 2, "nothing to edit in engine")
        expect("no jobs", right.run("--jobs", "0"), 2, "--jobs must be at least 1")
        expect("an id twice", tree({}, {"what": "other"}).run("--list"), 2, "wrong is there twice")
        expect("an unknown key", tree({"more": "x"}).run("--list"), 2, "its keys must be")
        expect("no change", tree({"new": "right"}).run("--list"), 2, "changes nothing")
        garbage = tree({})
        (garbage.root / "tests/source_faults/demo.toml").write_text("[[")
        expect("no table", garbage.run("--list"), 2, "demo.toml")
        empty = tree({})
        (empty.root / "tests/source_faults/demo.toml").unlink()
        expect("no tables", empty.run("--list"), 2, "no tables in")

        # The verdicts.
        expect("killed", right.run(), 0, "1 of 1 faults killed")
        expect("killed again", right.run("--jobs", "1"), 0, "1 of 1 faults killed")
        expect("survived", tree({"new": "unseen"}).run(), 1, "survived")
        expect("both", tree({}, {"id": "other", "new": "unseen"}).run(), 1, "1 of 2 faults killed")
        expect("one of both", tree({}, {"id": "other", "new": "unseen"}).run("--only", "wrong"), 0,
               "1 of 1 faults killed")
        expect("not compiled", tree({"new": "broken"}).run(), 1, "it does not compile")
        expect("does not apply", tree({"old": "rihgt"}).run(), 1, "0 times in source.txt")
        expect("no such test", tree({"filter": "Other.*"}).run(), 1, "no test has this name")
        failing = tree({"old": "it is", "new": "it was"})
        (failing.root / "source.txt").write_text("it is wrong\n")
        expect("a test that fails anyway", failing.run(), 1, "the tests do not pass")
        # The sample.
        many = sampled(tree({}), "  return a < b;\n")
        expect("a sampled fault is killed", many.run("--sample", "9"), 0, "1 of 1 faults killed")
        expect("a second run goes on", many.run("--sample", "9"), 0, "killed      engine/a.cpp:1")
        some = sampled(tree({}), "  return a > b;\n")
        expect("a sampled fault survives", some.run("--sample", "9"), 1, "0 of 1 faults killed")
        same = sampled(tree({}), "  return a < same;\n")
        expect("an equivalent fault", same.run("--sample", "9"), 0, "0 of 0 faults killed")
        broken = sampled(tree({}), "  return a && b;\n")
        expect("no build", broken.run("--sample", "9"), 0, "no build    engine/a.cpp:1  && -> ||")

        before = (right.root / "source.txt").read_text()
        if before != "it is right\n":
            expect("the tree itself is changed", right.run("--list"), 99, before)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
