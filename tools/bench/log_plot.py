"""A picture of curves over the number of chips, both axes logarithmic, as SVG."""
import dataclasses
import html
import math

WIDTH, HEIGHT = 420, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 44, 48
COLOURS = ("#1b6ca8", "#c2571a")


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    unit: str
    curves: dict  # name -> {chips: value}


def decades(values):
    """The powers of ten around them: of the exponents the first and the last."""
    low = math.floor(math.log10(min(values)))
    return low, max(math.ceil(math.log10(max(values))), low + 1)


def plain(exponent):
    return f"{10 ** exponent:g}" if -3 <= exponent <= 4 else f"1e{exponent}"


def text(x, y, words, **attributes):
    given = "".join(f' {name.strip("_").replace("_", "-")}="{value}"'
                    for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{given}>{html.escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def panel_svg(panel, at):
    chips = sorted({n for curve in panel.curves.values() for n in curve})
    low, high = decades([v for curve in panel.curves.values() for v in curve.values()])
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x_of(n):
        span = math.log(chips[-1] / chips[0]) or 1.0
        return LEFT + 12 + (right - LEFT - 24) * math.log(n / chips[0]) / span

    def y_of(value):
        return bottom - (bottom - TOP) * (math.log10(value) - low) / (high - low)

    parts = [f'<g transform="translate({at} 0)">', text(LEFT, 24, panel.title, class_="title")]
    for exponent in range(low, high + 1):
        y = y_of(10.0 ** exponent)
        parts += [line(LEFT, y, right, y, "grid"),
                  text(LEFT - 8, y + 4, f"{plain(exponent)} {panel.unit}", text_anchor="end")]
    for n in chips:
        parts += [line(x_of(n), bottom, x_of(n), bottom + 4, "axis"),
                  text(x_of(n), bottom + 18, str(n), text_anchor="middle")]
    parts += [line(LEFT, bottom, right, bottom, "axis"),
              text((LEFT + right) / 2, bottom + 36, "chips", text_anchor="middle")]
    for index, (name, curve) in enumerate(panel.curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = [(x_of(n), y_of(curve[n])) for n in sorted(curve)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" '
                     f'points="{joined}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        # Curves rise with the number of chips: their names stand where there are none.
        y = TOP + 20 + 18 * index
        parts += [f'<circle cx="{LEFT + 16}" cy="{y - 4}" r="4" fill="{colour}"/>',
                  text(LEFT + 26, y, name)]
    return parts + ["</g>"]


def svg(panels, caption):
    """The panels side by side, a line of text below."""
    width, height = WIDTH * len(panels), HEIGHT + 24
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" role="img">',
             f"<title>{html.escape(caption)}</title>",
             "<style>text{font:13px sans-serif;fill:#222}.title{font-weight:bold}"
             ".grid{stroke:#ddd}.axis{stroke:#444}</style>",
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for index, panel in enumerate(panels):
        parts += panel_svg(panel, index * WIDTH)
    parts += [text(LEFT, HEIGHT + 10, caption), "</svg>"]
    return "\n".join(parts) + "\n"
