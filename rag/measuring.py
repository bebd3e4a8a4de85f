"""Cases asked of an open index: how well they are ranked, answered and refused."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag.answering import Search, answer_question
from rag.cached_embedding import RememberingEmbedder
from rag.cases import Case, Golden
from rag.embedding import QueryEmbedder
from rag.manifest import OUTCOMES_FILE
from rag.metrics import Difference, mean, ndcg_at, paired_bootstrap, recall_at, reciprocal_rank_at, success_at
from rag.opening import OpenIndex
from rag.records import Answer
from rag.retrieval import retrieve

DEPTH = 20
SUCCESS_DEPTHS, RECALL_DEPTHS = (1, 3, 5, 10), (5, 10, 20)
ANSWER_TOP_K = 5
SIGNIFICANT = 0.05
MEASURES = ("success@1", "success@3", "success@5", "success@10", "mrr@10", "false_refusals", "refused")
"""What builds are compared by, case by case."""
WORSE_WHEN_HIGHER = frozenset({"false_refusals"})

Measure = Callable[[int, Sequence[str], Mapping[str, float]], float]
"""One of ``rag.metrics``: of the first k of a ranking, given the grades."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case."""

    rank: int | None
    """Of the first relevant card, from 1; None where none was found in ``DEPTH``, or no card answers."""
    refused: bool
    answerable: bool

    def measure(self, name: str) -> float | None:
        """The case's value of one of ``MEASURES``, from 0 to 1; None where it has none."""
        if name in ("false_refusals", "refused"):
            return float(self.refused) if self.answerable == (name == "false_refusals") else None
        if not self.answerable:
            return None
        kind, _, depth = name.partition("@")
        found = self.rank is not None and self.rank <= int(depth)
        return (1 / self.rank if kind == "mrr" else 1.0) if found and self.rank else 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """Means over cases, in per cent unless said; a measure without cases is None."""

    cases: int
    success: dict[int, float]
    recall: dict[int, float]
    mrr_10: float
    ndcg_10: float
    milliseconds: float
    """Median per question, embedding and retrieval."""
    false_refusals: float | None
    """Of the answerable."""
    refused: float | None
    """Of the unanswerable."""
    answer_recall: float | None
    answer_chars: float | None
    """Median, refusals left out."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The means, and the outcome of each case by its key."""

    report: Report
    outcomes: Mapping[str, Outcome]


@dataclass(frozen=True, slots=True)
class Asked:
    """One case, asked."""

    case: Case
    ranking: tuple[str, ...]
    """The cards found, best first, at most ``DEPTH``, whatever the gate says."""
    best_score: float | None
    threshold: float
    """As in ``Retrieval``."""
    answer: Answer
    """As the service gives it, with the times of a question that was never asked before."""

    @property
    def outcome(self) -> Outcome:
        """What builds are compared by."""
        first = (rank for rank, card_id in enumerate(self.ranking, start=1) if card_id in self.case.grades)
        return Outcome(next(first, None), self.answer.refusal is not None, bool(self.case.grades))


def evaluate(cases: Sequence[Case], *, index: OpenIndex, embedder: QueryEmbedder) -> Evaluation:
    """Ask every case; one without hits counts as zero."""
    asked = ask(cases, index=index, embedder=embedder)
    return Evaluation(report_of(asked), {entry.case.key: entry.outcome for entry in asked})


def ask(cases: Sequence[Case], *, index: OpenIndex, embedder: QueryEmbedder) -> list[Asked]:
    """Ask every case as the service would, for ``ANSWER_TOP_K`` cards, and rank ``DEPTH`` of them."""
    known = RememberingEmbedder(embedder)
    asked: list[Asked] = []
    for case in cases:
        search = Search(case.groups, index, known, top_k=ANSWER_TOP_K)
        answer = answer_question(case.question, search, request_id="evaluation")
        found = retrieve(case.question, case.groups, index=index, embedder=known, top_k=DEPTH)
        ranking = tuple(passage.card.card_id for passage in found.passages)
        asked.append(Asked(case, ranking, found.best_score, found.threshold, answer))
    return asked


def report_of(asked: Sequence[Asked]) -> Report:
    """The means over cases that were asked."""
    ranked = [entry for entry in asked if entry.case.grades]
    times = [entry.answer.timings_ms["embed"] + entry.answer.timings_ms["search"] for entry in asked]

    def share(measure: Measure, k: int) -> float:
        return _percent([measure(k, entry.ranking, entry.case.grades) for entry in ranked])

    return Report(
        cases=len(asked),
        success={k: share(success_at, k) for k in SUCCESS_DEPTHS},
        recall={k: share(recall_at, k) for k in RECALL_DEPTHS},
        mrr_10=share(reciprocal_rank_at, 10),
        ndcg_10=share(ndcg_at, 10),
        milliseconds=round(statistics.median(times), 2) if times else 0.0,
        **_judge_answers(asked),
    )


def summary(outcomes: Mapping[str, Outcome]) -> dict[str, float]:
    """The mean of each of ``MEASURES`` that has cases, in per cent."""
    values = {name: _values(outcomes.values(), name) for name in MEASURES}
    return {name: _percent(found) for name, found in values.items() if found}


def compare(before: Mapping[str, Outcome], after: Mapping[str, Outcome]) -> dict[str, Difference]:
    """The difference of each of ``MEASURES`` over the cases that both know, from 0 to 1."""
    shared = [key for key in before if key in after and before[key].answerable == after[key].answerable]
    differences: dict[str, Difference] = {}
    for name in MEASURES:
        old, new = _values([before[key] for key in shared], name), _values([after[key] for key in shared], name)
        if old:
            differences[name] = paired_bootstrap(old, new)
    return differences


def shortfalls(golden: Golden, before: Mapping[str, Outcome], after: Mapping[str, Outcome]) -> list[str]:
    """
    Why a build with these outcomes should not take the place of the one with those before; empty if it may.

    A floor of the cases is missed, or a measure is worse by more than chance explains.
    """
    figures = summary(after)
    reasons = [
        f"{name} is {figures[name]:.1f} %, the floor is {floor:g} %"
        for name, floor in golden.at_least.items()
        if name in figures and figures[name] < floor
    ]
    reasons += [
        f"{name} is {figures[name]:.1f} %, the limit is {limit:g} %"
        for name, limit in golden.at_most.items()
        if name in figures and figures[name] > limit
    ]
    for name, change in compare(before, after).items():
        loss = change.mean if name in WORSE_WHEN_HIGHER else -change.mean
        if loss > 0 and change.p < SIGNIFICANT:
            reasons.append(f"{name} changed by {100 * change.mean:+.1f} points (p = {change.p:.3f})")
    return reasons


def read_outcomes(build_dir: Path | None) -> dict[str, Outcome]:
    """What became of each golden case when a build was made, by the case's key; empty where that is not known."""
    try:
        found = json.loads((build_dir / OUTCOMES_FILE).read_text("utf-8")) if build_dir else {}
        return {key: Outcome(**outcome) for key, outcome in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _values(outcomes: Collection[Outcome], name: str) -> list[float]:
    return [value for outcome in outcomes if (value := outcome.measure(name)) is not None]


def _judge_answers(asked: Sequence[Asked]) -> dict[str, float | None]:
    pairs = [(entry.case, entry.answer) for entry in asked]
    answerable = [answer.refusal is not None for case, answer in pairs if case.grades]
    unanswerable = [answer.refusal is not None for case, answer in pairs if not case.grades]
    with_strings = [(case, answer) for case, answer in pairs if case.answers]
    lengths = [len(_spoken(answer)) for _, answer in with_strings if not answer.refusal]
    return {
        "false_refusals": _percent(answerable) if answerable else None,
        "refused": _percent(unanswerable) if unanswerable else None,
        "answer_recall": _percent([_holds(answer, case.answers) for case, answer in with_strings])
        if with_strings
        else None,
        "answer_chars": statistics.median(lengths) if lengths else None,
    }


def _spoken(answer: Answer) -> str:
    """The quotes of an answer, without markers."""
    return " ".join(" ".join(citation.quote for citation in answer.citations).split())


def _holds(answer: Answer, strings: Sequence[str]) -> bool:
    text = _spoken(answer)
    return any(" ".join(string.split()) in text for string in strings)


def _percent(values: Sequence[float]) -> float:
    return round(100 * mean(values), 2)
