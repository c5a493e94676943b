"""The sources that a build folder compiles, but tests and headers, from its compile_commands.json.

sources.py list FOLDER prints their paths. sources.py alone FOLDER UNITY PCH prints the commands that
only parse each, but for the first source of each of those that the build folder UNITY compiles as
one, and each header that has a unit of its own. Headers that take long and that many sources
include, directly or not, are precompiled into the folder PCH, and used for those that include them
all: each source sees what it includes, no more. sources.py parse FOLDER [tests] prints the commands
that only parse what has no object file in the folder, where some targets were built before."""
import json
import re
import subprocess
import sys
from pathlib import Path

FEW = ("fmt/format.h", "cstdint", "optional", "string", "string_view", "vector")
SETS = ((*FEW, "nlohmann/json.hpp"), FEW, FEW[1:])


def commands(folder):
    """The file, folder, command without its output, and output of each unit."""
    for unit in json.loads(Path(folder, "compile_commands.json").read_text()):
        yield unit["file"], unit["directory"], *re.match(r"(.*?) -o (\S+)", unit["command"]).groups()


def units(folder, headers=False):
    for file, directory, command, target in commands(folder):
        is_header = "_headers.dir" in target
        if headers if is_header else not target.startswith("tests/"):
            yield file, directory, command


def parse(folder, tests=""):
    for file, directory, command, target in commands(folder):
        is_wanted = "_headers.dir" not in target and (tests or not target.startswith("tests/"))
        if is_wanted and not Path(directory, target).exists():
            yield f"cd '{directory}' && {command} -fsyntax-only '{file}'"


def includes(root, file, known):
    """The headers in angle brackets that a file includes, itself or through others of this project."""
    if file not in known:
        known[file] = set()  # of a circle, which #pragma once ends
        own = set()
        for angle, quoted in re.findall(r'^#include (?:<(\S+)>|"(\S+)")', file.read_text(), re.M):
            own |= {angle} if angle else includes(root, root / quoted, known)
        known[file] = own
    return known[file]


def flags(command):
    return [word for word in command.split() if not word.startswith(("-D", "-I"))]


def precompile(headers, command, path):
    path.write_text("".join(f"#include <{header}>\n" for header in headers))
    subprocess.run([*command.split(), "-x", "c++-header", path, "-o", f"{path}.pch"], check=True)


def alone(folder, unity, pch):
    root = Path(__file__).resolve().parent.parent
    first = {re.search(r'#include "(\S+)"', Path(file).read_text())[1]
             for file, _, _ in units(unity) if "/Unity/" in file}
    all_units = list(units(folder, headers=True))
    for i, headers in enumerate(SETS):
        precompile(headers, all_units[0][2], Path(pch, f"{i}.h"))
    known = {}
    for file, directory, command in all_units:
        if file in first:
            continue
        has = includes(root, Path(file), known)
        # A precompiled header is for the flags it was made with.
        usable = [i for i, headers in enumerate(SETS)
                  if has.issuperset(headers) and flags(command) == flags(all_units[0][2])]
        use = f"-include-pch {pch}/{usable[0]}.h.pch " if usable else ""
        yield f"cd '{directory}' && {command} {use}-fsyntax-only '{file}'"


if sys.argv[1] == "list":
    lines = (file for file, _, _ in units(sys.argv[2]))
else:
    lines = {"alone": alone, "parse": parse}[sys.argv[1]](*sys.argv[2:])
print(*lines, sep="\0", end="\0")
