"""What the sections of the report share: notes, legends, curves, and how a difference is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from rag.evaluation.markup import tag
from rag.evaluation.plots import Point, line_plot
from rag.metrics import Difference

SIGNIFICANT = 0.05
MINUS = "−"
Curve = Mapping[int, float]
"""k → per cent."""


def note(text: str) -> Element:
    """A paragraph that explains."""
    return tag("p", text, class_="note")


def figure(plot: Element, caption: str, series: Mapping[str, object] | None = None) -> Element:
    """A plot with its caption, and a legend if there are series to tell apart."""
    return tag("figure", plot, tag("figcaption", caption, _legend(series) if series else None))


def side_by_side(figures: Sequence[Element]) -> Element:
    """As many figures in a row as fit."""
    return tag("div", *figures, class_="plots")


def curves(title: str, label: str, held: Mapping[str, Curve], *, floor: float) -> Element:
    """A measure at each k; ``floor`` is where the axis begins."""
    series: dict[str, Sequence[Point]] = {name: list(curve.items()) for name, curve in held.items()}
    plot = line_plot(
        f"{title}, {label}", series, x=(1.0, 10.0), y=(floor, 100.0), labels=("k", f"{label}, %"), x_ticks=range(1, 11)
    )
    return figure(plot, title, series)


def floor_of(held: Sequence[Curve]) -> float:
    """A round number below all of them."""
    lowest = min((value for curve in held for value in curve.values()), default=0.0)
    return min(90.0, 10.0 * math.floor(lowest / 10.0))


def change(difference: Difference) -> tuple[str, str]:
    """In points, with a star where chance does not explain it, and the interval."""
    mean, low, high = (
        f"{100 * value:+.1f}".replace("-", MINUS) for value in (difference.mean, difference.low, difference.high)
    )
    return mean + ("*" if difference.p < SIGNIFICANT else ""), f"{low} to {high}"


def _legend(series: Mapping[str, object]) -> Element:
    return tag("ul", *(tag("li", _swatch(place), name) for place, name in enumerate(series)), class_="legend")


def _swatch(place: int) -> Element:
    line = tag("g", tag("line", x1=0, x2=26, y1=5, y2=5), class_=f"series s{place}")
    return tag("svg", line, viewBox="0 0 26 10", aria_hidden="true")
