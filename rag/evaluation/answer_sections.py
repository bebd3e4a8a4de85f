"""The sections about answers: without retrieval, refusals, latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from rag.evaluation.drawing import change, figure, note, side_by_side
from rag.evaluation.findings import Latency, Refusals, WithoutRetrieval
from rag.evaluation.markup import table, tag
from rag.evaluation.plots import Point, histogram, line_plot
from rag.evaluation.without_retrieval import PASSAGE_CHARS


def without_section(found: WithoutRetrieval | None) -> list[Element]:
    """Both ways side by side, and what fits."""
    if found is None:
        return [note("No case is answerable.")]
    mean, interval = change(found.difference)
    ways = {"no retrieval at all": found.without, "service": found.service}
    return [
        note(
            f"All cards that a caller may see, in order of id, as long as they fit into {found.limit_tokens:,} tokens "
            "of this model; then the card of the sentence that is nearest to the question. Beside it the service: its "
            f"prompt would be its passages, each cut to {PASSAGE_CHARS} characters around its best chunk. A language "
            "model would read such a prompt for every question; that time is not in here."
        ),
        table(
            "Means over the answerable cases; milliseconds are medians, after the question is embedded",
            ["", "success@1, %", "cards in the prompt", "tokens in the prompt", "ms"],
            [
                [name, way.success_1, way.cards, round(way.prompt_tokens), f"{way.milliseconds:.2f}"]
                for name, way in ways.items()
            ],
        ),
        tag(
            "p",
            f"A right card fits in {found.within_reach:.1f} % of the cases. Doing without retrieval changes success@1 "
            f"by {mean} points ({interval}).",
        ),
        table(
            "What fits",
            ["groups", "cases", "cards to see", "cards that fit", "tokens"],
            [[", ".join(one.groups), one.cases, one.cards, one.fitting, one.tokens] for one in found.prompts],
        ),
    ]


def refusals_section(refusals: Refusals) -> list[Element]:
    """The gate, how well it tells cases apart, and who was refused."""
    return [
        tag("p", _gate(refusals.gate)),
        _curve_plot(refusals),
        note("The table counts every refusal, also of what passed the gate and found no sentence to quote."),
        table(
            "Refused, per cent",
            ["cases", "answerable", "of them refused", "unanswerable", "of them refused"],
            [
                [name, row.answerable, row.false_refusals, row.unanswerable, row.refused]
                for name, row in refusals.rows.items()
            ],
        ),
    ]


def latency_section(latency: Mapping[str, Latency]) -> list[Element]:
    """Percentiles and a histogram of each stage."""
    plots = []
    for name, found in latency.items():
        marks = {"p50": found.p50, "p95": found.p95}
        plot = histogram(f"Milliseconds: {name}", found.counts, step=found.step, marks=marks, label="milliseconds")
        plots.append(figure(plot, f"{name}; the last bar holds all above it too"))
    return [
        table(
            "Milliseconds a question, asked one after another",
            ["stage", "p50", "p95"],
            [[name, f"{found.p50:.2f}", f"{found.p95:.2f}"] for name, found in latency.items()],
        ),
        side_by_side(plots),
    ]


def _gate(gate: Mapping[str, Any]) -> str:
    places = [f"{value:.4f} for questions in {language}" for language, value in sorted(gate["thresholds"].items())]
    told = f"The gate stands at {' and '.join(places)}, set by {gate.get('basis', 'an older calibration')}."
    if gate.get("margin") is not None:
        told += f" The nearest of those that it was set by is {gate['margin']:.4f} away."
    return told


def _curve_plot(refusals: Refusals) -> Element:
    named = {f"{name} (AUROC {curve.auroc:.3f})": curve for name, curve in refusals.curves.items()}
    series: dict[str, Sequence[Point]] = {name: [point[1:] for point in curve.points] for name, curve in named.items()}
    if refusals.gate.get("roc"):
        calibrated = [point[1:] for point in refusals.gate["roc"]]
        series[f"as calibrated (AUROC {refusals.gate['auroc']:.3f})"] = calibrated
    if not series:
        return note("There is no curve: it takes answerable cases and unanswerable ones.")
    title = "Refusals of unanswerable cases against false refusals"
    plot = line_plot(
        title,
        series,
        x=(0.0, 1.0),
        y=(0.0, 1.0),
        labels=("answerable and refused", "unanswerable and refused"),
        dots=False,
        marks={name: curve.at_gate for name, curve in named.items()},
    )
    return side_by_side([figure(plot, f"{title}, wherever the gate stood; a ring is where it stands", series)])
