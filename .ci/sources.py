"""The sources that a build folder compiles, but tests and headers, from its compile_commands.json.

sources.py list FOLDER prints their paths. sources.py alone FOLDER UNITY PCH PART prints the commands
that only parse each, but for the first source of each of those that the build folder UNITY compiles as
one, and each header that has a unit of its own; of these one in four, which the number PART chooses
by their names. What many of them include is precompiled into the
folder PCH, and used for those that include all of it: each source sees what it includes, no more."""
import json
import re
import shlex
import subprocess
import sys
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def commands(folder):
    """The file, folder, command without its output, and output of each unit."""
    for unit in json.loads(Path(folder, "compile_commands.json").read_text()):
        yield unit["file"], unit["directory"], *re.match(r"(.*?) -o (\S+)", unit["command"]).groups()


def units(folder, headers=False):
    for file, directory, command, target in commands(folder):
        is_header = "_headers.dir" in target
        if headers if is_header else not target.startswith("tests/"):
            yield file, directory, command


def includes(root, file, known):
    """The headers that a file includes, itself or through others of this project, whose paths begin
    at the root; those of others are in angle brackets."""
    if file not in known:
        known[file] = set()  # of a circle, which #pragma once ends
        own = set()
        for angle, quoted in re.findall(r'^#include (?:(<\S+>)|"(\S+)")', file.read_text(), re.M):
            own |= {angle} if angle else {quoted} | includes(root, root / quoted, known)
        known[file] = own
    return known[file]


def before_others(root, file, known):
    """What may be included before all else in a file: what its own header includes, which is parsed
    alone there; where it has none, all it includes."""
    own = str(file.with_suffix(".h").relative_to(root))
    all_includes = includes(root, file, known)
    return {own, *known[root / own]} if own in all_includes else all_includes


def flags(command):
    """The flags that a precompiled header must be compiled with to be used."""
    words = re.sub(r" -isystem \S+| -fPIC", "", command).split()
    return sorted(word for word in words if not word.startswith(("-D", "-I")))


def cost(headers):
    """About how long headers take to parse: two of others are large."""
    large = {"<CLI/CLI.hpp>": 80, "<nlohmann/json.hpp>": 50, "<fmt/format.h>": 10}
    return sum(large.get(header, 2 if header[0] == "<" else 1) for header in headers)


def shared_sets(root, units_headers, known):
    """The sets of headers that are worth being precompiled: each next one is that which saves most
    beside those before it, until it saves no more than it takes to compile, about two parses. A set
    is a header with what it includes, or what all units of a folder include."""
    sets = {frozenset({header} | (set() if header[0] == "<" else
                                  includes(root, root / header, known)))
            for header in set().union(*units_headers.values())}
    folders = {file.parent for file in units_headers}
    sets |= {frozenset.intersection(*(frozenset(has) for file, has in units_headers.items()
                                      if file.parent == folder)) for folder in folders}
    sets = sorted(sets, key=lambda headers: (-cost(headers), sorted(headers)))
    users = [[file for file, has in units_headers.items() if has >= headers] for headers in sets]
    saved = dict.fromkeys(units_headers, 0)
    best = []
    while True:
        gains = [sum(max(0, cost(headers) - saved[file]) for file in files)
                 for headers, files in zip(sets, users)]
        i = gains.index(max(gains))
        if gains[i] <= 2 * cost(sets[i]):
            return [sets[i] for i in sorted(best)]
        best.append(i)
        for file in users[i]:
            saved[file] = max(saved[file], cost(sets[i]))


def precompile(headers, command, path):
    path.write_text("".join(f"#include {header}\n" if header[0] == "<" else
                            f'#include "{header}"\n' for header in sorted(headers)))
    subprocess.run([*shlex.split(command), "-fpch-instantiate-templates", "-x", "c++-header", path, "-o",
                    f"{path}.pch"], check=True)


def alone(folder, unity, pch, part):
    root = Path(__file__).resolve().parent.parent
    first = {re.search(r'#include "(\S+)"', Path(file).read_text())[1]
             for file, _, _ in units(unity) if "/Unity/" in file}
    all_units = [unit for unit in units(folder, headers=True) if unit[0] not in first and
                 zlib.crc32(Path(unit[0]).name.encode()) % 4 == int(part) % 4]
    usual = Counter(tuple(flags(own)) for _, _, own in all_units).most_common(1)[0][0]
    with_usual = [own for _, _, own in all_units if tuple(flags(own)) == usual]
    known = {}
    has = {Path(file): before_others(root, Path(file), known) for file, _, own in all_units
           if tuple(flags(own)) == usual}
    sets = shared_sets(root, has, known)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda i: precompile(sets[i], f"{max(with_usual, key=len)} -fPIC",
                                           Path(pch, f"{i}.h")), range(len(sets))))
    for file, directory, own in all_units:
        use = next((f"-fPIC -include-pch {pch}/{i}.h.pch " for i, headers in enumerate(sets)
                    if headers <= has.get(Path(file), set())), "")
        yield f"cd '{directory}' && {own} {use}-fsyntax-only '{file}'"


if sys.argv[1] == "list":
    lines = (file for file, _, _ in units(sys.argv[2]))
else:
    lines = alone(*sys.argv[2:])
print(*lines, sep="\0", end="\0")
