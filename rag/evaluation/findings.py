"""All that an evaluation finds: the records that are printed as JSON and drawn as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag.measuring import Report
from rag.metrics import Difference

FINDINGS_FORMAT = 1
"""Raise it when the same key would say something else."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over answerable cases, in per cent; 0 where there are none."""

    cases: int
    success: Mapping[int, float]
    """k, from 1 to 10, → success@k."""
    recall: Mapping[int, float]
    mrr_10: float
    ndcg_10: float


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the cases, as the service ranks and answers them."""

    figures: Figures
    report: Report


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to rank, over all answerable cases."""

    what: str
    figures: Figures
    differences: Mapping[str, Difference]
    """Measure → what it has more than the service's own ranking, from 0 to 1; empty for the service."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """All cards that some groups may see, as one prompt."""

    groups: Sequence[str]
    cases: int
    """Answerable ones that these groups ask."""
    cards: int
    fitting: int
    """The first cards, in order of id, that fit under the limit."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Way:
    """One way from a question to a card; means over the answerable cases, times are medians."""

    success_1: float
    """Per cent."""
    cards: float
    """In the prompt."""
    prompt_tokens: float
    milliseconds: float
    """After the question is embedded."""


@dataclass(frozen=True, slots=True)
class WithoutRetrieval:
    """The best sentence of all cards that fit into a prompt, beside the service."""

    limit_tokens: int
    prompts: Sequence[Prompt]
    without: Way
    service: Way
    within_reach: float
    """Per cent of the answerable cases for which a right card fits."""
    difference: Difference
    """Of success@1: what doing without has more than the service, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Curve:
    """How well the distance from the gate tells answerable cases from unanswerable ones."""

    answerable: int
    unanswerable: int
    auroc: float
    points: Sequence[Sequence[float]]
    """A place above or below the gate, false refusals there, refusals of unanswerable cases there; from 0 to 1."""
    at_gate: Sequence[float]
    """False refusals and refusals of unanswerable cases where the gate stands."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What became of some of the cases; shares in per cent, None where there are no cases."""

    answerable: int
    false_refusals: float | None
    unanswerable: int
    refused: float | None


@dataclass(frozen=True, slots=True)
class Refusals:
    """Of the gate."""

    gate: Mapping[str, Any]
    """As it was calibrated when the index was built."""
    curves: Mapping[str, Curve]
    rows: Mapping[str, Refused]


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of one stage, over all cases."""

    p50: float
    p95: float
    step: float
    """Width of a bin."""
    counts: Sequence[int]
    """Cases in each bin, the first of which begins at 0; the last holds all above too."""


@dataclass(frozen=True, slots=True)
class CardFound:
    """A card named in a list."""

    card_id: str
    title: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A case that went wrong."""

    question: str
    language: str
    groups: Sequence[str]
    held_out: bool
    kind: str
    rank: int | None
    """Of the first right card; None where it was not found, or there is none."""
    lead: float
    """How far the nearest card comes above the gate; below 0 is refused."""
    wanted: Sequence[CardFound]
    found: Sequence[CardFound]
    """The first cards, best first."""
    cited: Sequence[str]
    """Ids of the cards that the answer quotes."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, with what, and where."""

    cases_from: str
    index_id: str
    model: str
    model_fingerprint: str
    context: str
    cards: int
    chunks: int
    sentences: int
    answerable: int
    unanswerable: int
    held_out: int
    machine: str
    date: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything."""

    format: int
    measured: Measured
    parts: Mapping[str, Part]
    strategies: Mapping[str, Strategy]
    without_retrieval: WithoutRetrieval | None
    """None where no case is answerable."""
    refusals: Refusals
    latency: Mapping[str, Latency]
    missed: Sequence[Listed]
    """Answerable, and no right card among the first three."""
    wrongly_refused: Sequence[Listed]
    wrongly_answered: Sequence[Listed]
