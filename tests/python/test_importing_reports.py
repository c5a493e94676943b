"""The page, JUnit's file and the annotations of a dump."""
import xml.etree.ElementTree

import pytest

from shardproof._reports import Left, Reports
from dump_runs import dump, judge, model, off

JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="1" failures="0" skipped="0" errors="0" time="0.000">
  <testsuite name="shardproof compare tests=&quot;1&quot;" tests="1" failures="0" skipped="0">
    <testcase classname="" name="dump" time="0.000"/>
  </testsuite>
</testsuites>
"""


def counts(root):
    return [(s.get("tests"), s.get("failures")) for s in root.iter() if "testsuite" in s.tag]


@pytest.mark.parametrize("spoils", [True, False])
def test_what_is_left_out_is_in_every_form(spoils):
    left = [Left("a\x1b<b>&\"'", "why <not> 5%", spoils)]
    reports = Reports("all's right", "all's right", left)
    page = reports.html("<body>\n<p>all&#39;s right</p>\n<h2>Values</h2>\n</body>\n")
    assert page.index("Left out, 1") < page.index("Values")
    assert "<li>a?&lt;b&gt;&amp;&quot;&#39;: why &lt;not&gt; 5%</li>" in page
    assert "Left out, 1" in reports.html("<body></body>")
    root = xml.etree.ElementTree.fromstring(reports.junit(JUNIT))
    assert counts(root) == ([("2", "1")] * 2 if spoils else [("1", "0")] * 2)
    failed = [c for c in root.iter("testcase") if c.find("failure") is not None]
    assert [c.get("name") for c in failed] == ["left out"] * spoils
    assert not spoils or failed[0].find("failure").text == "a?<b>&\"': why <not> 5%"
    assert reports.annotations("") == ("::error title=shardproof%3A left out::1 left out: "
                                       "a?<b>&\"': why <not> 5%25\n") * spoils


def test_ranks_of_the_dump_in_a_sentence_with_an_apostrophe():
    reports = Reports("rank 1, x: one's 5% \"a\"", "rank 7, x: one's 5% \"a\"", [])
    text = "x: one&#39;s 5% &quot;a&quot;"
    assert reports.html(f"<p>rank 1, {text}</p><h2>") == (
        f"<p>rank 7, {text}</p><p>Ranks below are places on the torus; the sentence above has "
        "those of the dump.</p>\n<h2>")
    assert reports.junit(f"<a b=\"rank 1, {text}\"/>") == f"<a b=\"rank 7, {text}\"/>"
    assert reports.annotations("rank 1, x: one's 5%25 \"a\"") == "rank 7, x: one's 5%25 \"a\""


def test_a_dump_without_a_file_and_with_other_ranks(model, tmp_path):
    """Ranks of a second stage are others than those of the torus."""
    def without(name, rank, value, meta):
        gone = name.endswith("layers.1.mlp.down_proj.output") and rank == 3
        return (None if gone else value), meta

    folder = dump(model, tmp_path, tp=2, stages=2, change=without,
                  wrong={"prefill.c0.layer1.k": off(0, 2)})
    code, out, err = judge(folder, "--model", model, "--annotations", "--html", tmp_path / "v.html",
                           "--junit", tmp_path / "v.xml")
    assert (code, err) == (1, "") and "rank 3 has no file of it" in out
    assert "::error title=shardproof%3A left out::2 left out: " in out
    page = (tmp_path / "v.html").read_text()
    assert page.index('id="sentence"') < page.index("Left out, 2") < page.index("Values by verdict")
    assert "rank 2, prefill.c0.layer1.k" in page and "places on the torus" in page
    root = xml.etree.ElementTree.parse(tmp_path / "v.xml").getroot()
    cases = list(root.iter("testcase"))
    failed = [c for c in cases if c.find("failure") is not None]
    assert cases[-1].get("name") == "left out" and cases[-1] in failed
    assert counts(root) == [(str(len(cases)), str(len(failed)))] * 2
