"""How a run is sharded: strategies, and the layouts that they give the values of a layer.

    whole           on one chip's worth of arrays: every chip has everything
    1d:ATTEND       F and heads over all axes; the residual stream whole on every chip
    1d-rs:ATTEND    the same, but the stream is scattered between layers
    2d:ATTEND       E over one axis or more, F and heads over the others
    wg:batch        batch over all axes; weights lie cut and are gathered before they are used

ATTEND is `heads`, or `batch`, or `batch-x` for the batch over the last axes of the heads only.
Orders of the axes are none of Shardproof's, and can be given: "e=y f=xz h=zx stream=yxz".
"""
import dataclasses

STRATEGIES = ["whole", "1d:heads", "1d:batch", "1d-rs:heads", "1d-rs:batch", "2d:heads", "2d:batch",
              "2d:batch-x", "wg:batch"]

DEFAULTS = {
    "whole": dict(e="", f="", h="", stream=""),
    "1d": dict(e="", f="xzy", h="zxy", stream=""),
    "1d-rs": dict(e="", f="yxz", h="xyz", stream="xzy"),
    "2d": dict(e="x", f="zy", h="yz", stream="xzy"),
    "wg": dict(e="x", f="yz", h="zy", stream=""),
}


@dataclasses.dataclass(frozen=True)
class Plan:
    e: str       # of E in weights, and in the norm as they take it
    f: str       # of F in weights
    h: str       # of H in weights; K has the first of these that divide it
    stream: str  # of E in the residual stream: e, then the axes that it is scattered over
    batch: str   # of B in the residual stream
    attend: str  # of B in attention: the last of the heads' axes h+e
    gathered: bool  # whether weights are gathered before they are used

    @property
    def rest(self):
        """The axes over which a layer's outputs are scattered."""
        return self.stream[len(self.e):]

    @property
    def sums(self):
        """The axes over which products with E are partial sums."""
        return "" if self.gathered else self.e

    @property
    def exchanged(self):
        """The axes over which attention trades heads for rows."""
        return "" if self.gathered else self.attend

    @property
    def v(self):
        """Of V in the table."""
        return self.h


def plan_of(strategy, axes=""):
    family, _, attend = strategy.partition(":")
    if family not in DEFAULTS:
        raise ValueError(f"strategy {strategy}: there are {', '.join(STRATEGIES)}")
    kinds = DEFAULTS[family] | dict(word.split("=") for word in axes.split())
    if family != "wg" and not kinds["stream"].startswith(kinds["e"]):
        raise ValueError(f"stream={kinds['stream']} does not begin with e={kinds['e']}")
    heads = kinds["h"] + kinds["e"]
    if family == "whole":
        return Plan(**kinds, batch="", attend="", gathered=False)
    if sorted(heads) != list("xyz") or sorted(kinds["f"]) != sorted(kinds["h"]):
        raise ValueError("h and e have each of x, y, z once, and f the axes of h")
    if family == "wg":
        return Plan(**kinds, batch="yxz", attend="yxz", gathered=True)
    cut = {"heads": "", "batch": heads}.get(attend, attend.removeprefix("batch-"))
    if not heads.endswith(cut) or (cut and len(cut) < len(kinds["e"])):
        raise ValueError(f"strategy {strategy}: the heads are cut over {heads}, which does not end "
                         f"with {cut}")
    return Plan(**kinds, batch="", attend=cut, gathered=False)
