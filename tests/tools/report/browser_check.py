#!/usr/bin/python3
"""Opens pages of `compare --html` in headless Chromium and checks what it makes of them.

    browser_check.py PROGRAM FOLDER [--faults]

The pages are of a right trace, of one with a wrong chip, and of one with more than ten thousand
values, whose time until it is laid out is printed. What the browser shows is held against what
`compare --json` says: sentence, tables, wrong chips; in light and dark; nothing is loaded and no
script runs. --faults plants faults in copies of a page and demands that each is found. Exits 1 and
names the first difference if there is one.
"""

import argparse
import json
import pathlib
import re
import subprocess

import h5py

RUN = ["--torus", "2x1x3", "--batch", "6", "--prompt", "3", "--regime", "f32"]
MODEL = "palm-tiny,layers={},E=12,F=12,H=6,Q=2,V=12"
WRONG = "prefill.c0.layer0.hr"  # BLF_zyx, split over all six chips

# Added to a copy of a page: it writes down what the browser has made of the page.
PROBE = """<script>addEventListener("load", () => {
  const loaded = performance.now(), all = s => [...document.querySelectorAll(s)];
  const height = document.body.offsetHeight, laid = performance.now();
  const color = e => getComputedStyle(e).color;
  const probe = {
    laid, height, nodes: all("*").length, wide: document.documentElement.scrollWidth - innerWidth,
    loaded: performance.getEntriesByType("resource").map(e => e.name),
    links: all("[src],[href],[srcset],[data],[background],[action],[style*='url']").length
      + all("style").filter(e => /url\\(|@import/.test(e.textContent)).length,
    scripts: all("script").length, title: document.title, back:
      getComputedStyle(document.body).backgroundColor, text: color(document.body),
    colors: all(".right,.weak,.wrong,.none,h1").slice(0, 300).map(color),
    sentence: all("#sentence").map(e => e.innerText), remedy: all("#remedy").map(e => e.innerText),
    tables: Object.fromEntries(all("table[id],div[id],svg[id],pre[id]").map(e =>
      [e.id, e.offsetHeight > 0 || e.tagName == "svg"])),
    rows: all("#list tr").filter(e => e.querySelector("td")).map(e =>
      [...e.children].slice(0, 2).map(c => c.textContent)),
    grid: all("#values td").filter(e => e.textContent).map(e => [e.textContent, e.title]),
    chips: all("#mesh td").length,
    wrong: all("#mesh td").filter(e => e.textContent.includes("✗")).map(e => e.title)};
  const out = document.createElement("script");
  out.id = "probe"; out.type = "application/json";
  out.textContent = JSON.stringify(probe).replaceAll("<", "\\\\u003c");
  document.head.append(out);
})</script></body>"""


class Wrong(Exception):
    pass


def demand(held, reason):
    if not held:
        raise Wrong(reason)


def browse(page, folder, dark=False):
    """What the browser makes of a page."""
    probed = folder / "probed.html"
    probed.write_text(page.replace("</body>", PROBE, 1))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               f"--user-data-dir={folder / 'profile'}", "--window-size=1200,900",
               f"--blink-settings=preferredColorScheme={0 if dark else 1}", probed.as_uri()]
    dom = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    found = re.search(r'<script id="probe"[^>]*>(.*?)</script>', dom, re.S)
    demand(found, "the browser has not loaded the page")
    return json.loads(found[1])


def light(color):
    """The relative luminance of rgb(r, g, b), as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(a, b):
    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def check(page, verdict, folder):
    """Holds a page against the verdict that `compare --json` gives."""
    backs = []
    for dark in (False, True):
        seen = browse(page, folder, dark)
        demand(seen["scripts"] == 1, f"{seen['scripts'] - 1} scripts in the page")
        demand(not seen["loaded"] and not seen["links"],
               f"the page loads {seen['loaded']}, or would")
        demand(seen["wide"] <= 0, f"the page is {seen['wide']} px wider than the window")
        demand(len(seen["sentence"]) == 1, "no sentence, or two")
        demand(seen["sentence"][0][2:] == verdict["sentence"],
               f"the sentence is {seen['sentence'][0]!r}, not {verdict['sentence']!r}")
        signs = {"right": "✓", "different": "✗", "not judged": "?"}
        demand(seen["sentence"][0][0] == signs[verdict["verdict"]], "the sentence's sign")
        need = {"values", "list", "drift", "declared", "command"}
        if verdict["first"]:
            need |= {"first", "mesh", "blocks", "operands"}
        shown = {name for name, is_shown in seen["tables"].items() if is_shown}
        demand(need <= shown, f"the page lacks {sorted(need - shown)}")
        rows = [[value["id"], value["fit"]] for value in verdict["values"]]
        found = [[name, fit.split(" ", 1)[1]] for name, fit in seen["rows"]]
        demand(len(found) == len(rows), f"{len(found)} rows for {len(rows)} values")
        for row, found_row in zip(rows, found):
            demand(row == found_row, f"a row is {found_row}, not {row}")
        ranks = sorted(int(re.search(r"rank (\d+)", title)[1]) for title in seen["wrong"])
        demand(ranks == (verdict["first"] or {}).get("ranks", []), f"wrong chips: {ranks}")
        demand(not verdict["first"] or seen["chips"] == 6, f"{seen['chips']} chips")
        demand(not verdict["first"] or seen["remedy"], "what to do is not said")
        for color in {seen["text"], *seen["colors"]}:
            ratio = contrast(color, seen["back"])
            demand(ratio >= 4.5, f"{color} on {seen['back']} has a contrast of {ratio:.2f}")
        backs.append(light(seen["back"]))
    demand(backs[0] > 0.8 and backs[1] < 0.05, f"light and dark have backgrounds {backs}")
    return seen


def change(old, new):
    def edit(page):
        demand(re.search(old, page, re.S), f"a fault has nothing to change: {old}")
        return re.sub(old, new, page, count=1, flags=re.S)
    return edit


FAULTS = {
    "an image from elsewhere": change("</h1>", '</h1><img src="http://127.0.0.1:9/x.png"/>'),
    "a style from elsewhere": change("<style>", "<style>@import url(http://127.0.0.1:9/x.css);"),
    "a font from elsewhere": change("<style>", '<style>@font-face { font-family: x; src: '
                                    'url("http://127.0.0.1:9/x.woff") } '),
    "a script": change("</h1>", "</h1><script>1</script>"),
    "another sentence": change(r'(id="sentence">[✗✓] )', r"\1Not "),
    "no sentence": change(r'<p class="sentence.*?</p>', ""),
    "another sign": change(r'(id="sentence">)✗', r"\1✓"),
    "a wrong chip not marked": change(r'(id="mesh".*)<span class="wrong">✗</span>', r"\1✓"),
    "a right chip marked": change(r'(id="mesh".*?)<span class="right">✓</span>', r"\1✗"),
    "no mesh": change(r'<div class="panels".*?</div>', ""),
    "hidden operands": change("</style>", "#operands { display: none }</style>"),
    "a row missing": change(r'(id="list">.*?)<tr><td>.*?</tr>', r"\1"),
    "another verdict": change(r'(id="list">.*)✗ different', r"\1✓ within"),
    "no remedy": change(r'<p id="remedy">.*?</p>', ""),
    "always light": change(r"prefers-color-scheme: dark", "width: 1px"),
    "dark text on dark": change(r"--wrong: #ff8f8a", "--wrong: #a4000f"),
    "wider than the window": change(r"\.wide \{ overflow-x: auto; \}", ".wide { width: 300rem }"),
}


def trace_of(program, path, layers, gen):
    subprocess.run([program, "run", *RUN, "--model", MODEL.format(layers), "--gen", str(gen),
                    "--trace", path], check=True, stdout=subprocess.DEVNULL)


def break_chip(path):
    """A value as shards, of which chip (1, 0, 2), rank 5, has a wrong element."""
    with h5py.File(path, "a") as trace:
        whole, said = trace[WRONG][()], dict(trace[WRONG].attrs)
        del trace[WRONG]
        for x in range(2):
            for z in range(3):
                block = 2 * (2 * z + x)
                shard = whole[:, :, block:block + 2].copy()
                if (x, z) == (1, 2):
                    shard[0, 0, 0] += 1
                array = trace.create_dataset(f"chips/{x}_0_{z}/{WRONG}", data=shard)
                array.attrs.update(said)


def judged(program, trace, folder):
    """The page of a trace, and its verdict."""
    page = folder / "page.html"
    done = subprocess.run([program, "compare", trace, "--json", "--html", page],
                          capture_output=True, text=True)
    demand(done.returncode in (0, 1), done.stderr)
    return page.read_text(), json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--faults", action="store_true")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "t.h5"
    trace_of(given.program, trace, 2, 2)
    page, verdict = judged(given.program, trace, folder)
    demand(verdict["verdict"] == "right", "the right trace is not right")
    check(page, verdict, folder)
    break_chip(trace)
    page, verdict = judged(given.program, trace, folder)
    demand(verdict["first"] and verdict["first"]["ranks"] == [5], "the wrong chip is not found")
    check(page, verdict, folder)
    print(f"two pages of {len(verdict['values'])} values are as they should be, light and dark")
    for fault, plant in FAULTS.items() if given.faults else ():
        try:
            check(plant(page), verdict, folder)
        except Wrong as found:
            print(f"{fault}: {found}")
        else:
            raise Wrong(f"{fault} is not found")
    trace_of(given.program, trace, 64, 6)
    page, verdict = judged(given.program, trace, folder)
    seen = check(page, verdict, folder)
    demand(len(verdict["values"]) > 10000, "the large trace is small")
    print(f"a page of {len(verdict['values'])} values, {len(page) / 1e6:.1f} MB, {seen['nodes']} "
          f"nodes: laid out after {seen['laid']:.0f} ms")


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        raise SystemExit(f"browser_check.py: {wrong}") from None
