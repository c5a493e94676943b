"""Where the ranks of a dump sit: its parallel axes as the axes of a torus."""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from .limits import refuse

Place = Tuple[int, int]             # of a rank on an axis, and the axis's size
Info = Mapping[str, Place]
Chip = Tuple[int, int, int]


class Mesh(NamedTuple):
    torus: str
    axes: Dict[str, str]            # the torus's axes of each of the dump's: {"tp": "yz"}
    places: Dict[int, Chip]         # of each rank that the dump has
    stages: Dict[int, int]          # the pipeline stage of each rank
    ranks: Dict[Tuple[int, Chip], int]

    def size(self, axes: str) -> int:
        sizes = dict(zip("xyz", map(int, self.torus.split("x"))))
        product = 1
        for axis in axes:
            product *= sizes[axis]
        return product

    def block(self, chip: Chip, axes: str) -> int:
        """Which block of a dim that is cut over these axes a chip holds."""
        at, block = dict(zip("xyz", chip)), 0
        for axis in axes:
            block = block * self.size(axis) + at[axis]
        return block

    def rank(self, stage: int, chip: Chip) -> Optional[int]:
        return self.ranks.get((stage, chip))


def _sizes(infos: Mapping[int, Info]) -> Dict[str, int]:
    sizes: Dict[str, int] = {}
    for rank, info in infos.items():
        for axis, (at, size) in info.items():
            if sizes.setdefault(axis, size) != size:
                refuse("import_mesh", f"rank {rank} says that {axis} has {size} ranks, another "
                                      f"{sizes[axis]}; dump one run into one directory")
            if not 0 <= at < size:
                refuse("import_mesh", f"rank {rank} says that it is number {at} of {size} on "
                                      f"{axis}")
    return {axis: size for axis, size in sizes.items() if size > 1}


def _aliases(infos: Mapping[int, Info], sizes: Dict[str, int]) -> Dict[str, List[str]]:
    """Axes that are others under another name: moe_tp where it is tp, and tp where it is attn_dp
    by attn_tp. The first name is kept of equal ones, the factors of a product."""
    def at(axis: str) -> List[int]:
        return [info[axis][0] if axis in info else 0 for info in infos.values()]

    same: Dict[str, List[str]] = {}
    order = sorted(sizes, key=lambda a: (len(a), a not in ("tp", "cp", "dp", "pp"), a))
    kept: List[str] = []
    for axis in order:
        twin = next((k for k in kept if sizes[k] == sizes[axis] and at(k) == at(axis)), None)
        if twin is None:
            kept.append(axis)
        else:
            same[axis] = [twin]
    for axis in list(kept):
        for major in kept:
            for minor in kept:
                if axis not in same and axis not in (major, minor) and major != minor \
                        and major not in same and minor not in same \
                        and sizes[major] * sizes[minor] == sizes[axis] and at(axis) == [
                            m * sizes[minor] + n for m, n in zip(at(major), at(minor))]:
                    same[axis] = [major, minor]
    return same


def _stride(infos: Mapping[int, Info], axis: str) -> int:
    """How far apart the ranks of neighbours on an axis are: by it the axes are ordered."""
    lines: Dict[Tuple[Tuple[str, int], ...], Dict[int, int]] = {}
    for rank, info in infos.items():
        others = tuple(sorted((a, at) for a, (at, _) in info.items() if a != axis))
        if axis in info:
            lines.setdefault(others, {})[info[axis][0]] = rank
    steps = [line[i + 1] - line[i] for line in lines.values() for i in line if i + 1 in line]
    return min(steps) if steps else 1


def mesh_of(infos: Mapping[int, Info], kv_heads: Optional[int] = None) -> Mesh:
    """The torus of a dump's ranks. Where tp has more ranks than there are kv heads it becomes two
    axes, so that ranks that share one differ in the second. Raises Error import_mesh for more than
    three axes, and for two ranks at one place."""
    sizes = _sizes(infos)
    same = _aliases(infos, sizes)
    pipeline = "pp" in sizes
    names = [a for a in sizes if a not in same and a != "pp"]
    names.sort(key=lambda a: -_stride(infos, a))
    factors: List[Tuple[str, int]] = []
    for name in names:
        n = sizes[name]
        split = (name == "tp" or name == "attn_tp") and kv_heads and 1 < kv_heads < n \
            and n % kv_heads == 0 and len(names) < 3
        factors += [(name, kv_heads or 1), (name, n // (kv_heads or 1))] if split else [(name, n)]
    if len(factors) > 3:
        refuse("import_mesh", "more than three axes of several ranks, "
               + ", ".join(f"{n}={sizes[n]}" for n in names)
               + "; dump a run with fewer: three show the same mistakes")
    chips = 1
    for _, n in factors:
        chips *= n
    if chips > 4096:
        refuse("import_mesh", f"the ranks say that they are {chips}; at most 4096")
    padded = [("", 1)] * (3 - len(factors)) + factors
    axes: Dict[str, str] = {}
    for letter, (name, _) in zip("xyz", padded):
        if name:
            axes[name] = axes.get(name, "") + letter
    for name in sorted(same, key=lambda n: len(same[n]), reverse=True):  # products, then names
        axes[name] = "".join(axes.get(o, "") for o in same[name])
    for alias, of in (("sp", "tp"), ("etp", "tp")):
        if alias not in axes and of in axes:
            axes[alias] = axes[of]
    mesh = Mesh("x".join(str(n) for _, n in padded), axes, {}, {}, {})
    for rank, info in sorted(infos.items()):
        chip = _chip(padded, info)
        stage = info["pp"][0] if pipeline and "pp" in info else 0
        other = mesh.ranks.setdefault((stage, chip), rank)
        if other != rank:
            refuse("import_mesh", f"ranks {other} and {rank} say that they are at one place; the "
                                  "parallel info lacks an axis: give --torus")
        mesh.places[rank], mesh.stages[rank] = chip, stage
    return mesh


def _chip(padded: List[Tuple[str, int]], info: Info) -> Chip:
    rest = {name: at for name, (at, _) in info.items()}
    out = []
    for name, size in reversed(padded):
        at = rest.get(name, 0) if name else 0
        out.append(at % size)
        if name:
            rest[name] = at // size
    x, y, z = reversed(out)
    return x, y, z


def mesh_of_torus(torus: str, ranks: List[int]) -> Mesh:
    """That of a torus that is given, on which tp is all of its axes."""
    words = torus.split("x")
    if len(words) != 3 or not all(w.isdigit() and 0 < int(w) <= 4096 for w in words):
        refuse("import_mesh", f"--torus {torus}; legal: three sizes, 1x2x4")
    sizes = [int(w) for w in words]
    chips = sizes[0] * sizes[1] * sizes[2]
    if ranks and max(ranks) >= chips:
        refuse("import_mesh", f"rank {max(ranks)} on {torus}, which has {chips} chips")
    _, y, z = sizes
    places = {r: (r // (y * z), r // z % y, r % z) for r in ranks}
    axes = "".join(a for a, n in zip("xyz", sizes) if n > 1)
    return Mesh(torus, {"tp": axes, "sp": axes}, places, {r: 0 for r in ranks},
                {(0, chip): r for r, chip in places.items()})
