"""The sections about ranking: part by part, and strategy by strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree.ElementTree import Element

from rag.evaluation.drawing import Curve, change, curves, figure, floor_of, note, side_by_side
from rag.evaluation.findings import Figures, Part, Strategy
from rag.evaluation.markup import table, tag
from rag.evaluation.plots import interval_plot
from rag.evaluation.strategies import COMPARED, SERVICE
from rag.metrics import Difference

PANELS = {
    "All cases": ("all", "development", "held out"),
    "By the language of the question": ("asked in es", "asked in en"),
    "From the question to the right cards": ("es→es", "en→en", "es→en", "en→es"),
}
_PLOTTED: Mapping[str, Callable[[Figures], Curve]] = {
    "success@k": lambda figures: figures.success,
    "recall@k": lambda figures: figures.recall,
}


def parts_section(parts: Mapping[str, Part]) -> list[Element]:
    """Tables of all parts, and their curves."""
    figures = {name: part.figures for name, part in parts.items() if part.figures.cases}
    if not figures:
        return [note("No case is answerable.")]
    told = [
        note(
            "success@k: a right card is among the first k. recall@k: the share of the right cards that are. A case "
            "that finds nothing counts as 0. es→en means that no right card is in the question's language; a case "
            "that has one in its own language counts as es→es."
        ),
        *_tables("cases", figures),
    ]
    for label, curve_of in _PLOTTED.items():
        floor = floor_of([curve_of(own) for own in figures.values()])
        panels = {
            title: {name: curve_of(figures[name]) for name in names if name in figures}
            for title, names in PANELS.items()
        }
        told.append(side_by_side([curves(title, label, held, floor=floor) for title, held in panels.items() if held]))
    return told


def strategies_section(strategies: Mapping[str, Strategy]) -> list[Element]:
    """What each strategy does, tables of all, what each has more or less than the service, and plots of both."""
    figures = {name: strategy.figures for name, strategy in strategies.items()}
    if not figures[SERVICE].cases:
        return [note("No case is answerable.")]
    compared = {name: strategy.differences for name, strategy in strategies.items() if strategy.differences}
    # the service comes first, so that it has the strongest line
    ordered = {name: figures[name] for name in sorted(figures, key=lambda name: name != SERVICE)}
    plots = []
    for label, curve_of in _PLOTTED.items():
        held = {name: curve_of(own) for name, own in ordered.items()}
        plots.append(curves("Every strategy", label, held, floor=floor_of(list(held.values()))))
    intervals = []
    for measure in ("success@1", "mrr@10"):
        title = f"{_spelt(measure)} against the service, points"
        rows = {name: differences[measure] for name, differences in compared.items()}
        intervals.append(figure(interval_plot(title, rows, label="points"), f"{title}, with 95 % intervals"))
    return [
        note("The first three read what a card says; the others also read the questions that a card names."),
        tag("dl", *(made for name, one in strategies.items() for made in (tag("dt", name), tag("dd", one.what)))),
        *_tables("strategy", figures),
        note(
            "Paired bootstrap over the cases, 10,000 resamples: what each strategy has more than the service, and the "
            "middle 95 per cent of that. A star marks what chance does not explain (p < 0.05); of twenty comparisons "
            "without any difference, one gets a star all the same."
        ),
        table(
            "Difference from the service, points",
            ["strategy", *map(_spelt, COMPARED)],
            [[name, *(_difference(own[measure]) for measure in COMPARED)] for name, own in compared.items()],
        ),
        side_by_side(plots),
        side_by_side(intervals),
    ]


def _tables(what: str, figures: Mapping[str, Figures]) -> list[Element]:
    depths = [str(k) for k in next(iter(figures.values())).success]
    return [
        table(
            "success@k, MRR and nDCG, per cent",
            [what, "n", *(f"@{k}" for k in depths), "MRR@10", "nDCG@10"],
            [[name, own.cases, *own.success.values(), own.mrr_10, own.ndcg_10] for name, own in figures.items()],
        ),
        table(
            "recall@k, per cent",
            [what, "n", *(f"@{k}" for k in depths)],
            [[name, own.cases, *own.recall.values()] for name, own in figures.items()],
        ),
    ]


def _difference(difference: Difference) -> Element:
    mean, interval = change(difference)
    return tag("span", mean, tag("small", interval))


def _spelt(measure: str) -> str:
    return measure.replace("mrr", "MRR").replace("ndcg", "nDCG")
