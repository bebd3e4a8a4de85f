"""Who is refused: how well the gate tells answerable cases from unanswerable ones, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag.evaluation.findings import Curve, Refusals, Refused
from rag.evaluation.parts import parts_of, per_cent
from rag.measuring import Asked
from rag.metrics import auroc, roc

_DIGITS = 4


def find_refusals(asked: Sequence[Asked], gate: Mapping[str, Any]) -> Refusals:
    """The curves of cases that the gate may rest on and of those held out, and shares for each part and kind."""
    parts = parts_of(asked)
    drawn = ("development", "held out") if "held out" in parts else ("all",)
    curves: dict[str, Curve] = {name: curve for name in drawn if (curve := curve_of(parts[name]))}
    kinds = sorted({entry.case.kind for entry in asked} - {""})
    rows = {name: _shares(entries) for name, entries in parts.items()}
    rows |= {kind: _shares([entry for entry in asked if entry.case.kind == kind]) for kind in kinds}
    return Refusals(gate=gate, curves=curves, rows=rows)


def lead(entry: Asked) -> float:
    """How far the nearest card comes above the gate for the question's language; below 0 is refused."""
    # nothing is further away than -1
    return (-1.0 if entry.best_score is None else entry.best_score) - entry.threshold


def curve_of(asked: Sequence[Asked]) -> Curve | None:
    """The curve of these cases by their leads; None where one side has no case."""
    answerable = [lead(entry) for entry in asked if entry.case.grades]
    unanswerable = [lead(entry) for entry in asked if not entry.case.grades]
    if not answerable or not unanswerable:
        return None
    return Curve(
        answerable=len(answerable),
        unanswerable=len(unanswerable),
        auroc=round(auroc(answerable, unanswerable), _DIGITS),
        points=[[round(value, _DIGITS) for value in point] for point in roc(answerable, unanswerable)],
        at_gate=[round(float(np.mean(np.array(leads) < 0)), _DIGITS) for leads in (answerable, unanswerable)],
    )


def _shares(asked: Sequence[Asked]) -> Refused:
    sides = [
        [float(entry.answer.refusal is not None) for entry in asked if bool(entry.case.grades) is answerable]
        for answerable in (True, False)
    ]
    false, right = (per_cent(side) if side else None for side in sides)
    return Refused(len(sides[0]), false, len(sides[1]), right)
