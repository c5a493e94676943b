"""Small edits of C++ sources, drawn at random, and whether the nearest tests see them: the sample of
tools/source_faults."""
import collections
import dataclasses
import hashlib
import random
import re
import subprocess
from pathlib import PurePath

# What one place of a line becomes: operators, bounds, signs and words that are easily mistaken.
SWAPS = [(re.compile(old), new) for old, new in (
    (r"(?<= )<(?= )", "<="), (r"(?<= )<=(?= )", "<"), (r"(?<= )>(?= )", ">="),
    (r"(?<= )>=(?= )", ">"), (r"(?<= )==(?= )", "!="), (r"(?<= )!=(?= )", "=="),
    (r"(?<= )&&(?= )", "||"), (r"(?<= )\|\|(?= )", "&&"), (r" [+-] 1\b", ""),
    (r"(?<= )\+(?= )", "-"), (r"(?<= )-(?= )", "+"), (r"(?<= )\*(?= )", "/"),
    (r"(?<= )\+=(?= )", "-="), (r"\bstd::max\b", "std::min"), (r"\bstd::min\b", "std::max"),
    (r"\bstd::abs\(", "("), (r"\.front\(\)", ".back()"), (r"\.back\(\)", ".front()"),
    (r"\.first\b", ".second"), (r"\.second\b", ".first"), (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"), (r"= 0;", "= 1;"), (r"\[0\]", "[1]"), (r"(?<=[( ])!(?=[a-z])", ""),
    (r"\bcontinue;", "break;"), (r"\blower_bound\b", "upper_bound"))]
CALL = re.compile(r"\b\w+\((\w+), (\w+)\)")
CONDITION = re.compile(r"^(\s*(?:\} else )?if )\((?!const |auto )(.+)\) (\{|return\b|continue|break)")
STATEMENT = re.compile(r"^\s+(?:[\w.\->\[\]]+ [+*|&-]?= [^=].*|[\w.\->:]+\([^;]*\));$")
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"')
NO_CODE = ("#", "*", "/*", "template", "using", "static_assert", "namespace")


@dataclasses.dataclass(frozen=True)
class Edit:
    file: str
    line: int  # from 1
    new: str
    what: str

    def __str__(self):
        return f"{self.file}:{self.line}  {self.what}"

    @property
    def key(self):
        return f"{self.file}:{self.line}\t{hashlib.sha256(self.new.encode()).hexdigest()[:12]}"

    @property
    def folder(self):
        return str(PurePath(self.file).parent)


def edits_of(line):
    """All (new line, what was done) of one line of code."""
    code = line.split("//")[0]
    if not code.strip() or code.lstrip().startswith(NO_CODE):
        return
    literals = [m.span() for m in LITERAL.finditer(code)]

    def in_literal(match):
        return any(match.start() < end and begin < match.end() for begin, end in literals)

    for pattern, new in SWAPS:
        for m in pattern.finditer(code):
            if not in_literal(m):
                yield line[:m.start()] + new + line[m.end():], f"{m[0].strip()} -> {new or '(none)'}"
    for m in CALL.finditer(code):
        if not in_literal(m) and m[1] != m[2] and not m[0].startswith(("if(", "for(")):
            yield (line[:m.start(1)] + f"{m[2]}, {m[1]}" + line[m.end(2):],
                   f"arguments {m[1]}, {m[2]} exchanged")
    if m := CONDITION.match(code):
        for fixed, by in (("true", "||"), ("false", "&&")):
            yield (f"{m[1]}({fixed} {by} ({m[2]})) {line[m.start(3):]}",
                   f"the condition is always {fixed}")
    if STATEMENT.match(code) and "return" not in code:
        yield line[:len(line) - len(line.lstrip())] + ";", "a statement is left out"


def git(root, *words):
    return subprocess.run(["git", "-c", f"safe.directory={root}", "-C", root, *words], check=True,
                          capture_output=True, text=True).stdout


def changed_lines(root, base, name):
    """The lines, from 1, that differ from the file as it was in a commit."""
    lines = set()
    for m in re.finditer(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@",
                         git(root, "diff", "-M", "-U0", base, "--", name), re.M):
        lines.update(range(int(m[1]), int(m[1]) + int(m[2] or 1)))
    return lines


def all_edits(root, folders, base=None):
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders)
    names = {n for n in listed.split() if n.endswith((".h", ".cpp"))}
    edits = []
    for name in sorted(names):
        lines = (root / name).read_text().splitlines()
        wanted = changed_lines(root, base, name) if base else range(1, len(lines) + 1)
        for at in sorted(wanted):
            if at <= len(lines):
                edits += [Edit(name, at, new, what) for new, what in edits_of(lines[at - 1])
                          if new != lines[at - 1]]
    return edits


def draw(edits, count, seed):
    return random.Random(seed).sample(edits, min(count, len(edits)))


def test_folders(root):
    """By folder below tests/ the names of the tests that have a source in it."""
    folders = collections.defaultdict(set)
    for path in sorted((root / "tests").glob("**/CMakeLists.txt")):
        for name, body in re.findall(r"shardproof_test\(([a-z_0-9]+)([^)]*)\)", path.read_text()):
            for source in re.findall(r"\S+\.cpp", body):
                folder = PurePath(path.parent.relative_to(root / "tests")) / PurePath(source).parent
                folders[folder].add(name)
    return folders


def nearest_tests(root, name, tests):
    """The ctest entries of the tests that mirror a source's folder, or the nearest folder above it
    that has any; all where none has."""
    folders = test_folders(root)
    for folder in PurePath(name).parents:
        names = folders.get(folder, ())
        found = [t for t in tests if re.sub(r"_\d+_of_\d+$", "", t) in names]
        if found:
            return found
    return tests


def programs(tests):
    """The build targets of ctest entries; a test in parts is one program."""
    return sorted({"test_" + re.sub(r"_\d+_of_\d+$", "", t) for t in tests})


def objects(build):
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in build.rglob("*.o")
            if "tests" not in path.relative_to(build).parts}


def judge(tree, edit):
    """ "killed", "survived", "equivalent", or "no build"."""
    build = tree.root / "build"
    if not hasattr(tree, "before"):
        done = subprocess.run(["ninja", "-C", build, f"-j{tree.jobs}"], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"source_faults: the build failed:\n{done.stdout[-2000:]}")
        tree.before = objects(build)
        listed = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True)
        tree.tests = [t for t in re.findall(r"Test +#\d+: (\S+)", listed.stdout)
                      if not t.startswith("source_faults")]
    path = tree.root / edit.file
    text = path.read_text()
    lines = text.splitlines()
    lines[edit.line - 1] = edit.new
    path.write_text("\n".join(lines) + "\n")
    nearest = nearest_tests(tree.root, edit.file, tree.tests)
    targets = programs(nearest) if nearest != tree.tests else []
    build_nearest = ["ninja", "-C", build, f"-j{tree.jobs}", *targets]
    try:
        if subprocess.run(build_nearest, capture_output=True).returncode:
            return "no build"
        if objects(build) == tree.before:
            return "equivalent"
        entries = "|".join(map(re.escape, nearest))
        done = subprocess.run(["ctest", "--test-dir", build, f"-j{tree.jobs}", "--stop-on-failure",
                               "--timeout", "600", "-R", f"^({entries})$"], capture_output=True)
        return "killed" if done.returncode else "survived"
    finally:
        path.write_text(text)
        # Objects with this edit would make the next one differ from the tree's own objects.
        subprocess.run(build_nearest, capture_output=True)


class Results:
    """Verdicts in a file, to which each new one is appended."""

    def __init__(self, path):
        self.path, self.known = path, {}
        if path.exists():
            for line in path.read_text().splitlines():
                place, edit, verdict = line.split("\t")[:3]
                self.known[f"{place}\t{edit}"] = verdict

    def of(self, edit):
        return self.known.get(edit.key)

    def note(self, edit, verdict):
        self.known[edit.key] = verdict
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(f"{edit.key}\t{verdict}\t{edit.what}\n")
        return verdict


def shares(results, edits):
    """By folder how many edits count, and how many of these were killed."""
    counted, killed = collections.Counter(), collections.Counter()
    for edit in edits:
        verdict = results.of(edit)
        if verdict in ("killed", "survived"):
            counted[edit.folder] += 1
            killed[edit.folder] += verdict == "killed"
    return counted, killed
