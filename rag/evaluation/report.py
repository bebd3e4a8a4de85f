"""Findings as one page of HTML that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from rag.evaluation.answer_sections import latency_section, refusals_section, without_section
from rag.evaluation.drawing import MINUS, note
from rag.evaluation.findings import Findings, Listed, Measured
from rag.evaluation.markup import NOTHING, Child, page, tag
from rag.evaluation.ranking_sections import parts_section, strategies_section
from rag.evaluation.wrong import MISSED_BELOW

SECTIONS = {
    "measured": "What was measured",
    "parts": "How well cards are found",
    "strategies": "Other ways to rank",
    "without": "No retrieval at all",
    "refusals": "Refusals",
    "latency": "Latency",
    "cases": "Cases that went wrong",
}
"""Id → heading, in the order of the page."""
_STYLE = Path(__file__).with_name("report.css")


def render(findings: Findings) -> str:
    """The page."""
    bodies: dict[str, list[Child]] = {
        "measured": [_measured(findings.measured)],
        "parts": [*parts_section(findings.parts)],
        "strategies": [*strategies_section(findings.strategies)],
        "without": [*without_section(findings.without_retrieval)],
        "refusals": [*refusals_section(findings.refusals)],
        "latency": [*latency_section(findings.latency)],
        "cases": [*_wrong(findings)],
    }
    sections = [tag("section", tag("h2", heading), *bodies[name], id=name) for name, heading in SECTIONS.items()]
    links = [tag("li", tag("a", heading, href=f"#{name}")) for name, heading in SECTIONS.items()]
    title = f"Evaluation of {findings.measured.cases_from}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        # nothing is loaded and nothing runs, whatever the page holds
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", title),
        tag("style", _STYLE.read_text("utf-8")),
    )
    body = tag("body", tag("h1", title), tag("nav", tag("ul", *links), aria_label="Sections"), tag("main", *sections))
    return page(tag("html", head, body, lang="en"))


def _measured(measured: Measured) -> Element:
    lines = {
        "Index": measured.index_id,
        "Holds": f"{measured.cards:,} cards, {measured.chunks:,} chunks, {measured.sentences:,} sentences",
        "Context": measured.context,
        "Model": f"{measured.model} ({measured.model_fingerprint})",
        "Cases": f"{measured.answerable:,} answerable and {measured.unanswerable:,} unanswerable; "
        f"{measured.held_out:,} of them held out: nothing was chosen or calibrated by those",
        "Machine": measured.machine,
        "Date": measured.date,
    }
    pairs = [tag(kind, text) for name, value in lines.items() for kind, text in (("dt", name), ("dd", value))]
    return tag("dl", *pairs)


def _wrong(findings: Findings) -> list[Child]:
    kinds = {
        f"No right card among the first {MISSED_BELOW}": findings.missed,
        "Refused, though a card answers": findings.wrongly_refused,
        "Answered, though no card does": findings.wrongly_answered,
    }
    told: list[Child] = [
        note(
            "Right cards are underlined. The lead is how far the nearest card comes above the gate; "
            "below 0, the case is refused."
        )
    ]
    for heading, cases in kinds.items():
        told.append(tag("h3", f"{heading}: {len(cases)}"))
        if cases:
            told.append(tag("ul", *map(_case, cases), class_="cases"))
    return told


def _case(case: Listed) -> Element:
    wanted = {card.card_id for card in case.wanted}
    facts = [
        f"asked in {case.language}",
        f"by {', '.join(case.groups)}",
        _rank(case.rank) if wanted else "",
        f"lead {case.lead:+.3f}".replace("-", MINUS),
        "held out" if case.held_out else "",
        case.kind,
    ]
    return tag(
        "li",
        tag("p", case.question, class_="question"),
        tag("p", " · ".join(filter(None, facts)), class_="note"),
        tag("p", "Found: ", *_cards([card.card_id for card in case.found], wanted)),
        tag("p", "Wanted: ", *_cards([card.card_id for card in case.wanted], set())) if wanted else None,
        tag("p", "Quoted: ", *_cards(case.cited, wanted)) if case.cited else None,
    )


def _rank(rank: int | None) -> str:
    return "no right card found" if rank is None else f"a right card is number {rank}"


def _cards(card_ids: Sequence[str], right: set[str]) -> list[Child]:
    named: list[Child] = []
    for card_id in card_ids:
        named += [", " if named else None, tag("span", card_id, class_="right" if card_id in right else None)]
    return named or [NOTHING]
