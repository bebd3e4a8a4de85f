"""Where the gate stands: calibrated with questions that a box answers and questions that it does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rag.cases import Case
from rag.embedding import QueryEmbedder
from rag.metrics import auroc, roc
from rag.opening import OpenIndex
from rag.records import PUBLIC_GROUP
from rag.reference import reference_questions
from rag.retrieval import retrieve

GATE_VERSION = 3
"""Raise it when the same questions would set another gate."""
UNRELATED_QUANTILE = 0.9
"""The share of unrelated questions that stays out where nothing better is known."""
NOISE = ("xx", "asdf qwer", "hjkl hjkl hjkl", "jajaja", "blah blah")
"""What is no question at all stays out too: in a box of two cards it comes nearer than unrelated questions do."""
FALSE_REFUSALS = 0.02
"""The share of answerable questions that may be refused."""
LEAST_ANSWERABLE, LEAST_UNANSWERABLE = 50, 20
"""Fewer golden cases than this say too little to set a gate by."""
ROC_POINTS = 21


@dataclass(frozen=True, slots=True)
class Gate:
    """The thresholds, and what they rest on."""

    thresholds: Mapping[str, float]
    """Language of the question → how near the nearest card has to come."""
    basis: str
    """``golden cases`` or ``unrelated questions``."""
    answerable: int = 0
    unanswerable: int = 0
    """Golden cases that had a say."""
    margin: float | None = None
    """From a threshold to the nearest golden case on either side."""
    auroc: float | None = None
    """How often an answerable case comes nearer than an unanswerable one."""
    roc: Sequence[Sequence[float]] = field(default_factory=list)
    """Other places for the gate: how much higher, false refusals there, refusals of the unanswerable, from 0 to 1."""


def calibrate(index: OpenIndex, groups: Collection[str], embedder: QueryEmbedder, cases: Sequence[Case]) -> Gate:
    """
    Set the gate for what these groups see.

    Unrelated questions say how near anything comes, in each language. Golden cases, if there are enough of them that
    the public asks and that are not held out, say how much above or below that the gate should stand: as high as it
    may for no more than ``FALSE_REFUSALS`` of the answerable ones.
    """
    noise = max(_nearest(text, groups, index, embedder)[1] for text in NOISE)
    levels = {
        language: max(noise, _level([_nearest(question, groups, index, embedder)[1] for question in questions]))
        for language, questions in reference_questions().items()
    }
    asked = [case for case in cases if case.groups == (PUBLIC_GROUP,) and not case.held_out]
    leads: dict[bool, list[float]] = {True: [], False: []}
    for case in asked:
        language, nearest = _nearest(case.question, case.groups, index, embedder)
        leads[bool(case.grades)].append(nearest - levels[language])
    return place_gate(levels, leads[True], leads[False])


def place_gate(levels: Mapping[str, float], answerable: Sequence[float], unanswerable: Sequence[float]) -> Gate:
    """
    The gate for golden cases that come so much nearer than ``levels``, which are by the question's language.

    It stands half way between the last case that passes and the next one that stays out.
    """
    if len(answerable) < LEAST_ANSWERABLE or len(unanswerable) < LEAST_UNANSWERABLE:
        return Gate(levels, "unrelated questions")
    passes = sorted(answerable)[int(FALSE_REFUSALS * len(answerable))]
    stays_out = max((lead for lead in (*answerable, *unanswerable) if lead < passes), default=passes)
    shift = (passes + stays_out) / 2
    return Gate(
        thresholds={language: level + shift for language, level in levels.items()},
        basis="golden cases",
        answerable=len(answerable),
        unanswerable=len(unanswerable),
        margin=passes - shift,
        auroc=auroc(answerable, unanswerable),
        roc=_roc(answerable, unanswerable, shift),
    )


def _nearest(question: str, groups: Collection[str], index: OpenIndex, embedder: QueryEmbedder) -> tuple[str, float]:
    """The language of a question, and how near the nearest card comes; -1 where there is no card."""
    found = retrieve(question, groups, index=index, embedder=embedder, top_k=1)
    return found.language, -1.0 if found.best_score is None else found.best_score


def _level(nearest: Sequence[float]) -> float:
    return float(np.quantile(np.asarray(nearest), UNRELATED_QUANTILE))


def _roc(answerable: Sequence[float], unanswerable: Sequence[float], shift: float) -> list[list[float]]:
    points = roc(answerable, unanswerable)
    spread = np.linspace(0, len(points) - 1, min(len(points), ROC_POINTS)).astype(int).tolist()
    return [
        [round(place - shift, 4), round(lost, 4), round(refused, 4)]
        for place, lost, refused in map(points.__getitem__, spread)
    ]
