"""Plots are well-formed and have their points; the page is one file, complete, and safe with any text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring, tostring

import pytest

from rag.cases import Case
from rag.evaluation.findings import FINDINGS_FORMAT, Findings
from rag.evaluation.gathering import gather
from rag.evaluation.markup import page, table, tag
from rag.evaluation.plots import HEIGHT, LEFT, RIGHT, TOP, WIDTH, histogram, interval_plot, line_plot, ticks
from rag.evaluation.report import SECTIONS, render
from rag.manifest import INDEX_FORMAT, Manifest
from rag.measuring import ask
from rag.metrics import Difference
from tests.tiny import LIMON, PUBLIC, QUESTION, FixedQuestion, at_cosines, tiny_index

HOSTILE = "</p></style><script>alert(1)</script><img src='https://evil.invalid/x' onerror=\"alert(2)\">&amp; ]]> \ud800"


def parsed(plot: Element) -> Element:
    """A plot as a reader of XML sees it."""
    return fromstring(tostring(plot, encoding="unicode"))


def test_a_line_plot_has_every_point() -> None:
    """A dot for each point of each series, at its place, and a ring for each mark."""
    series = {"uno": [(1.0, 0.0), (2.0, 50.0), (3.0, 100.0)], "dos": [(1.0, 25.0), (3.0, 200.0)]}
    plot = parsed(line_plot("t", series, x=(1.0, 3.0), y=(0.0, 100.0), labels=("k", "%"), marks={"dos": (2.0, 50.0)}))
    groups = plot.findall("./g[@class='series s0']") + plot.findall("./g[@class='series s1']")
    assert [len(group.findall("circle")) for group in groups] == [3, 3]
    assert [len(group.findall("circle[@class='mark']")) for group in groups] == [0, 1]
    assert [len(str(group.find("polyline").get("points")).split()) for group in groups] == [3, 2]  # type: ignore[union-attr]
    corners = [(circle.get("cx"), circle.get("cy")) for circle in groups[0].findall("circle")]
    assert corners[0] == (f"{LEFT:.0f}", "200")
    assert corners[2] == (f"{WIDTH - RIGHT:.0f}", f"{TOP:.0f}")
    # what lies beyond the range is drawn at its edge
    assert groups[1].findall("circle")[1].get("cy") == f"{TOP:.0f}"


def test_an_interval_plot_has_a_row_each() -> None:
    """A dot and a line for each row, those that leave no difference out told apart, all within the drawing."""
    rows = {"a <b>": Difference(-0.2, -0.3, -0.1, 0.0), "c": Difference(0.01, -0.02, 0.04, 0.6)}
    plot = parsed(interval_plot("t", rows, label="points"))
    assert len(plot.findall("./g/circle")) == 2
    assert len(plot.findall("./g[@class='interval clear']")) == 1
    assert plot.find("./g/text[@class='end']") is not None
    places = [float(str(line.get(name))) for line in plot.iter("line") for name in ("x1", "x2")]
    assert min(places) >= 0
    assert max(places) <= WIDTH
    same = {"a": Difference(0.0, 0.0, 0.0, 1.0)}
    assert len(parsed(interval_plot("t", same, label="points")).findall("./g/circle")) == 1


def test_a_histogram_has_a_bar_each() -> None:
    """A bar for each bin, as high as its count, and a line for each mark."""
    plot = parsed(histogram("t", [0, 4, 2], step=5.0, marks={"p50": 7.0}, label="ms"))
    bars = plot.findall("./g[@class='bars']/rect")
    heights = [float(str(bar.get("height"))) for bar in bars]
    assert (len(bars), heights[0]) == (3, 0.0)
    assert heights[1] == pytest.approx(2 * heights[2], abs=0.02)
    assert len(plot.findall("./line[@class='mark']")) == 1
    assert max(heights) < HEIGHT
    assert len(parsed(histogram("t", [0], step=1.0, marks={}, label="ms")).findall("./g/rect")) == 1


@pytest.mark.parametrize(
    ("reach", "found"),
    [
        ((0.0, 1.0), [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ((50.0, 100.0), [50, 60, 70, 80, 90, 100]),
        ((-34.0, 7.0), [-30, -20, -10, 0]),
        ((3.0, 3.0), [3, 4]),
    ],
    ids=str,
)
def test_ticks_are_round(reach: tuple[float, float], found: list[float]) -> None:
    """Few round numbers within the range."""
    assert ticks(reach) == found


def test_elements_hold_text_and_no_markup() -> None:
    """Text, attributes and cells come out escaped, in order, and absent ones are left out."""
    made = tag("p", "a<", tag("b", "&"), None, "c", "d", class_='"x"', data_n=1.5, title=None)
    assert page(made) == '<!doctype html>\n<p class="&quot;x&quot;" data-n="1.5">a&lt;<b>&amp;</b>cd</p>\n'
    cells = [cell.text for cell in table("t", ["a", "b", "c", "d"], [["x", 1234, 5.06, None]]).iter("td")]
    assert cells == ["1,234", "5.1", "–"]


def a_manifest(gate: Mapping[str, object]) -> Manifest:
    """Of a build that is nowhere."""
    return Manifest(
        build_id="tiny",
        index_format=INDEX_FORMAT,
        model_name="model & Co",
        model_fingerprint="f",
        dimension=3,
        model={},
        chunker={},
        parser_version=1,
        context_version="metadata-1",
        sentences_version=1,
        lexical_version=1,
        reference_version=1,
        chromadb_version="1",
        card_hashes={},
        card_rows={},
        acl_version="",
        contexts=None,
        counts={"cards": 5, "rows": 6, "sentences": 6},
        gate=gate,
        evaluation={},
        files={},
    )


GATE = {"thresholds": {"es": 0.5, "en": 0.6}, "basis": "golden cases", "margin": 0.01, "auroc": 0.9}
CURVE = {"roc": [[-0.1, 0.0, 0.0], [0.0, 0.1, 0.8], [0.1, 1.0, 1.0]]}


def find(folder: Path, cases: list[Case], gate: Mapping[str, object], cases_from: str = "cases") -> Findings:
    card = replace(LIMON, card_id="<b id='x'>", title=HOSTILE)
    index, asker = tiny_index(folder, cards={"limon": card}), FixedQuestion()
    return gather(
        ask(cases, index=index, embedder=asker),
        index=index,
        manifest=a_manifest(gate),
        questions=asker,
        passages=lambda texts: at_cosines([0.5] * len(texts)),
        count_tokens=len,
        limit_tokens=1_000,
        cases_from=cases_from,
        date="2026-01-31",
    )


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Of cases of every kind, with text that would like to be markup wherever there is text."""
    cases = [
        Case(QUESTION, {"manzana": 1.0}, language="es"),
        Case(HOSTILE, {"<b id='x'>": 1.0, "no-hay": 1.0}, PUBLIC, language="en", held_out=True),
        Case(f"missed {HOSTILE}", {"<i onclick=x>": 1.0}, PUBLIC, language="en", held_out=True),
        Case(f"nothing {HOSTILE}", {}, PUBLIC, language="es", kind="<u>"),
        Case("nothing?", {}, PUBLIC, language="es", held_out=True, kind="off_topic"),
    ]
    return find(tmp_path_factory.mktemp("tiny"), cases, {**GATE, **CURVE}, HOSTILE)


class _Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_has_every_section(findings: Findings) -> None:
    """All sections are there with their headings, tables and plots, and the names of what was measured."""
    seen = _Page(render(findings))
    assert {value for name, value in seen.attributes if name == "id"} == set(SECTIONS)
    assert set(SECTIONS.values()) <= set(seen.texts)
    assert seen.tags.count("table") == 9
    assert [value for name, value in seen.attributes if name == "role"].count("img") == 13
    told = " ".join(seen.texts)
    for name in ("tiny", "model & Co", "2026-01-31", "Python", "2 unanswerable", "held out", "es→es", "en→es"):
        assert name in told
    for name in ("whole card", "contextual chunks", "reciprocal ranks", "no retrieval at all", "off_topic", "p95"):
        assert name in told


def test_the_page_needs_nothing_beside_it(findings: Findings) -> None:
    """No script, no address but those of its own sections, and a policy that forbids the rest."""
    seen = _Page(render(findings))
    assert not {"script", "img", "iframe", "object", "embed", "base", "form", "link"} & set(seen.tags)
    assert not {"src", "srcset", "data", "action", "xlink:href", "style"} & {name for name, _ in seen.attributes}
    assert all(value.startswith("#") for name, value in seen.attributes if name == "href")
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert any("default-src 'none'" in value for _, value in seen.attributes)
    style = seen.texts[next(place for place, text in enumerate(seen.texts) if "color-scheme" in text)]
    assert not re.search(r"url\(|@import|expression|</", style)
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_hostile_text_stays_text(findings: Findings) -> None:
    """Questions, ids, kinds and names that look like markup are shown to the letter, and make no element."""
    written = render(findings).encode("utf-8", "replace").decode()
    seen = _Page(written)
    shown = HOSTILE.replace("\ud800", "?")
    for text in (f"Evaluation of {shown}", f"missed {shown}", f"nothing {shown}", "<b id='x'>", "<i onclick=x>", "<u>"):
        assert text in seen.texts
    assert not {"b", "i", "u", "script", "img"} & set(seen.tags)


def test_findings_are_plain_json(findings: Findings) -> None:
    """What --json prints has these keys, and no number that JSON does not know."""
    found = json.loads(json.dumps(asdict(findings), allow_nan=False))
    assert found["format"] == FINDINGS_FORMAT
    assert list(found) == [
        "format", "measured", "parts", "strategies", "without_retrieval", "refusals", "latency", "missed",
        "wrongly_refused", "wrongly_answered",
    ]  # fmt: skip
    assert list(found["parts"]) == ["all", "development", "held out", "asked in en", "asked in es", "es→es", "en→es"]
    assert [case["question"] for case in found["missed"]] == [f"missed {HOSTILE}"]
    assert [case["kind"] for case in found["wrongly_answered"]] == ["<u>", "off_topic"]


@pytest.mark.parametrize(
    "cases",
    [[], [Case("¿nada?", {}, language="es")], [Case(QUESTION, {"manzana": 1.0}, language="es")]],
    ids=["none", "unanswerable", "answerable"],
)
def test_little_to_say_is_said(tmp_path: Path, cases: list[Case]) -> None:
    """With no cases, or of one kind alone, and a gate of unrelated questions, the page has all its sections too."""
    found = find(tmp_path, cases, {"thresholds": {"es": 0.5, "en": 0.5}, "margin": None, "roc": [], "auroc": None})
    seen = _Page(render(found))
    assert {value for name, value in seen.attributes if name == "id"} == set(SECTIONS)
    assert any("There is no curve" in text for text in seen.texts)
