"""Plots as elements of SVG, without a library: lines, steps, intervals, and a histogram."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from rag.evaluation.markup import number, tag
from rag.metrics import Difference

Point = Sequence[float]
"""x and y, in the figures' own units."""
Range = tuple[float, float]

WIDTH, HEIGHT = 360.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 10.0, 12.0, 40.0
ROW_HEIGHT = 26.0
NAMES_WIDTH = 118.0
TICKS = 6


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where figures lie on the drawing."""

    x: Range
    y: Range
    height: float = HEIGHT
    left: float = LEFT

    def across(self, value: float) -> float:
        return self.left + (WIDTH - self.left - RIGHT) * _share(value, self.x)

    def up(self, value: float) -> float:
        return self.height - BOTTOM - (self.height - BOTTOM - TOP) * _share(value, self.y)


def line_plot(
    title: str,
    series: Mapping[str, Sequence[Point]],
    *,
    x: Range,
    y: Range,
    labels: tuple[str, str],
    x_ticks: Sequence[float] | None = None,
    dots: bool = True,
    marks: Mapping[str, Point] | None = None,
) -> Element:
    """
    One line a series, with a dot at each point; a mark is a ring on the line of the series of that name.

    ``labels`` are those of the axes, across and up. Points beyond the ranges are drawn at their edge.
    """
    frame = _Frame(x, y)
    drawn: list[Element] = []
    for place, (name, points) in enumerate(series.items()):
        spots = [(frame.across(across), frame.up(up)) for across, up in points]
        path = " ".join(f"{number(across)},{number(up)}" for across, up in spots)
        circles = [
            tag("circle", tag("title", _said(name, point)), cx=across, cy=up, r=3)
            for (across, up), point in zip(spots, points, strict=True)
            if dots
        ]
        mark = (marks or {}).get(name)
        if mark:
            ring = tag("title", _said(f"{name}, the gate", mark))
            circles.append(tag("circle", ring, cx=frame.across(mark[0]), cy=frame.up(mark[1]), r=6, class_="mark"))
        drawn.append(tag("g", tag("polyline", points=path), *circles, class_=f"series s{place}"))
    return _svg(title, frame, [*_axes(frame, ticks(x) if x_ticks is None else x_ticks, ticks(y), labels), *drawn])


def interval_plot(title: str, rows: Mapping[str, Difference], *, label: str) -> Element:
    """A dot and its interval for each row, in hundredths, beside the line of no difference."""
    edges = [100 * value for row in rows.values() for value in (row.low, row.high)]
    reach = ticks((min([0.0, *edges]), max([0.0, *edges]) or 1.0))
    step = reach[1] - reach[0]
    x = (math.floor(min([0.0, *edges]) / step) * step, math.ceil(max([0.0, *edges]) / step) * step or step)
    height = TOP + BOTTOM + ROW_HEIGHT * len(rows)
    frame = _Frame(x, (0.0, 1.0), height, NAMES_WIDTH)
    zero = frame.across(0.0)
    drawn = [tag("line", x1=zero, x2=zero, y1=TOP, y2=height - BOTTOM, class_="zero")]
    for place, (name, row) in enumerate(rows.items()):
        up = TOP + ROW_HEIGHT * (place + 0.5)
        mean, low, high = (100 * value for value in (row.mean, row.low, row.high))
        said = tag("title", f"{name}: {mean:+.1f} ({low:+.1f} to {high:+.1f})")
        drawn.append(
            tag(
                "g",
                tag("text", name, x=NAMES_WIDTH - 8, y=up + 4, class_="end"),
                tag("line", x1=frame.across(low), x2=frame.across(high), y1=up, y2=up),
                tag("circle", said, cx=frame.across(mean), cy=up, r=4),
                class_="interval" if low <= 0 <= high else "interval clear",
            )
        )
    return _svg(title, frame, [*_axes(frame, ticks(x), [], (label, "")), *drawn])


def histogram(title: str, counts: Sequence[int], *, step: float, marks: Mapping[str, float], label: str) -> Element:
    """One bar a bin of width ``step``, from 0; ``marks`` are named places across."""
    # room above the bars for the names of the marks
    frame = _Frame((0.0, step * len(counts)), (0.0, 1.25 * max([1, *counts])))
    bars: list[Element] = []
    for place, count in enumerate(counts):
        first, last = frame.across(step * place), frame.across(step * (place + 1))
        above = " and above" if place == len(counts) - 1 else f" to {number(step * (place + 1))}"
        said = tag("title", f"{number(step * place)}{above}: {count}")
        top = frame.up(count)
        bars.append(tag("rect", said, x=first, y=top, width=last - first - 1, height=frame.up(0.0) - top))
    lines: list[Element] = []
    for place, (name, value) in enumerate(marks.items()):
        across = frame.across(value)
        lines.append(tag("line", x1=across, x2=across, y1=TOP, y2=frame.up(0.0), class_="mark"))
        lines.append(tag("text", name, x=across + 4, y=TOP + 10 + 13 * place, class_="name"))
    counted = [tick for tick in ticks(frame.y) if tick == int(tick)]
    return _svg(
        title, frame, [*_axes(frame, ticks(frame.x), counted, (label, "cases")), tag("g", *bars, class_="bars"), *lines]
    )


def ticks(reach: Range) -> list[float]:
    """Round numbers within a range, at most ``TICKS`` and at least two if the range is not empty."""
    low, high = reach
    if not high > low:
        return [low, low + 1]
    raw = (high - low) / (TICKS - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(size for size in (1, 2, 2.5, 5, 10) if size * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 10) for place in range(first, math.floor(high / step + 1e-9) + 1)]


def _share(value: float, reach: Range) -> float:
    low, high = reach
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.0


def _said(name: str, point: Point) -> str:
    return f"{name}: {number(point[0])}, {number(point[1])}"


def _axes(frame: _Frame, across: Sequence[float], up: Sequence[float], labels: tuple[str, str]) -> list[Element]:
    bottom, right = frame.height - BOTTOM, WIDTH - RIGHT
    drawn: list[Element] = []
    for tick in across:
        at = frame.across(tick)
        drawn.append(tag("line", x1=at, x2=at, y1=TOP, y2=bottom, class_="grid"))
        drawn.append(tag("text", number(tick), x=at, y=bottom + 15, class_="middle"))
    for tick in up:
        at = frame.up(tick)
        drawn.append(tag("line", x1=frame.left, x2=right, y1=at, y2=at, class_="grid"))
        drawn.append(tag("text", number(tick), x=frame.left - 6, y=at + 4, class_="end"))
    drawn.append(tag("text", labels[0], x=(frame.left + right) / 2, y=frame.height - 6, class_="middle label"))
    if labels[1]:
        middle = (TOP + bottom) / 2
        turn = f"rotate(-90 11 {number(middle)})"
        drawn.append(tag("text", labels[1], x=11, y=middle, transform=turn, class_="middle label"))
    return [tag("g", *drawn, class_="axes")]


def _svg(title: str, frame: _Frame, drawn: Sequence[Element]) -> Element:
    box = f"0 0 {number(WIDTH)} {number(frame.height)}"
    return tag("svg", tag("title", title), *drawn, viewBox=box, role="img", class_="plot")
