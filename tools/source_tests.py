"""Names of the tests of each test binary, read from the sources: nothing need be built."""
import re
from pathlib import Path

DECLARED = re.compile(r"^\s*(TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)"
                      r"\(\s*(\w+),\s*(\w+)", re.M)
INSTANTIATED = re.compile(r"INSTANTIATE_TEST_SUITE_P\(\s*(\w*),\s*(\w+)")
SCENARIO = re.compile(r"^scenario (\w+)", re.M)


def names_in(text):
    """The names of a source's tests; "/*" stands for a test's parameters."""
    prefixes = {}
    for prefix, suite in INSTANTIATED.findall(text):
        prefixes.setdefault(suite, []).append(prefix + "/" if prefix else "")
    names = set()
    for kind, suite, name in DECLARED.findall(text):
        if kind == "TEST_P":
            names.update(f"{prefix}{suite}.{name}/*" for prefix in prefixes.get(suite, []))
        else:
            names.add(f"{suite}.{name}")
    return names


def test_names(root):
    """By binary, without "test_", the names of its tests."""
    names = {}
    for path in sorted((root / "tests").glob("**/CMakeLists.txt")):
        for binary, body in re.findall(r"shardproof_test\((\w+)([^)]*)\)", path.read_text()):
            found = names.setdefault(binary, set())
            for source in re.findall(r"\S+_test\.cpp", body):
                source = Path(source.replace("${PROJECT_SOURCE_DIR}", str(root)))
                if (path.parent / source).is_file():
                    found |= names_in((path.parent / source).read_text())
            # Each text of a scenario is a test, that the source beside them registers.
            if "scenarios_test.cpp" in body:
                for scenarios in sorted((path.parent / "scenarios").glob("*.txt")):
                    named = SCENARIO.findall(scenarios.read_text())
                    found |= {f"Scenarios.{name}" for name in named}
    return names


def matches(pattern, name):
    """Whether a pattern of --gtest_filter fits a name; parameters are not looked at."""
    if name.endswith("/*"):
        name = name[:-2]
        if "/" in pattern.partition(".")[2]:
            pattern = pattern[:pattern.rindex("/")]
    words = {"*": ".*", "?": "."}
    return re.fullmatch("".join(words.get(c, re.escape(c)) for c in pattern), name) is not None


def without_test(only, names):
    """The patterns of a --gtest_filter that no test has the name of; those after "-" leave out."""
    patterns = only.partition("-")[0].split(":")
    return [p for p in patterns if p and not any(matches(p, name) for name in names)]
