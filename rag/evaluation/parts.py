"""Cases asked, part by part: all, tuned on or not, and by the languages of question and cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag.evaluation.findings import Figures
from rag.measuring import Asked, Measure
from rag.metrics import mean, ndcg_at, recall_at, reciprocal_rank_at, success_at
from rag.opening import OpenIndex

DEPTHS = range(1, 11)
DIRECTIONS = ("es→es", "en→en", "es→en", "en→es")

Ranking = Sequence[str]
Ranked = Sequence[tuple[Ranking, Mapping[str, float]]]
"""Rankings, best first, each with the grades of its case."""

_MEASURES: Mapping[str, Measure] = {
    "success": success_at,
    "recall": recall_at,
    "mrr": reciprocal_rank_at,
    "ndcg": ndcg_at,
}


def values(name: str, ranked: Ranked) -> list[float]:
    """A measure, such as ``success@3``, case by case, from 0 to 1."""
    kind, _, k = name.partition("@")
    return [_MEASURES[kind](int(k), ranking, grades) for ranking, grades in ranked]


def figures_of(ranked: Ranked) -> Figures:
    """The means; a case without hits counts as zero."""
    return Figures(
        cases=len(ranked),
        success={k: per_cent(values(f"success@{k}", ranked)) for k in DEPTHS},
        recall={k: per_cent(values(f"recall@{k}", ranked)) for k in DEPTHS},
        mrr_10=per_cent(values("mrr@10", ranked)),
        ndcg_10=per_cent(values("ndcg@10", ranked)),
    )


def per_cent(shares: Sequence[float]) -> float:
    """The mean of shares, in per cent."""
    return round(100 * mean(shares), 2)


def ranked_by_service(asked: Sequence[Asked]) -> Ranked:
    """The answerable ones among these cases, as the service ranks them."""
    return [(entry.ranking, entry.case.grades) for entry in asked if entry.case.grades]


def parts_of(asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    """All cases, then those that may be tuned on and those that may not, then those asked in each language."""
    parts = {"all": list(asked)}
    if any(entry.case.held_out for entry in asked):
        parts["development"] = [entry for entry in asked if not entry.case.held_out]
        parts["held out"] = [entry for entry in asked if entry.case.held_out]
    for language in sorted({question_language(entry) for entry in asked}):
        parts[f"asked in {language}"] = [entry for entry in asked if question_language(entry) == language]
    return parts


def by_direction(asked: Sequence[Asked], index: OpenIndex) -> dict[str, list[Asked]]:
    """The answerable cases from each language of the question to the language of the cards that answer it."""
    found: dict[str, list[Asked]] = {name: [] for name in DIRECTIONS}
    for entry in asked:
        direction = _direction(entry, index)
        if direction:
            found.setdefault(direction, []).append(entry)
    return {name: entries for name, entries in found.items() if entries}


def question_language(entry: Asked) -> str:
    """As the case says; else as the service heard it."""
    return entry.case.language or entry.answer.language


def _direction(entry: Asked, index: OpenIndex) -> str | None:
    """None where no right card is in the index; its own language if any right card is in it."""
    asked_in = question_language(entry)
    cards = [card for card_id in entry.case.grades if (card := index.rows.card(card_id, entry.case.groups))]
    languages = sorted({card.language for card in cards})
    if not languages:
        return None
    return f"{asked_in}→{asked_in if asked_in in languages else languages[0]}"
