"""Measures of ranked lists, by their settled names. All take card ids, best first; lists may be empty."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence


def success_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1.0 if any relevant card is among the first k, else 0.0."""
    return float(any(card in relevant for card in ranking[:k]))


def recall_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """The share of relevant cards that are among the first k; 0.0 where nothing is relevant."""
    return sum(card in relevant for card in ranking[:k]) / len(relevant) if relevant else 0.0


def reciprocal_rank_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1 / rank of the first relevant card, ranks counted from 1; 0.0 if it is not among the first k."""
    return next((1.0 / rank for rank, card in enumerate(ranking[:k], start=1) if card in relevant), 0.0)


def ndcg_at(k: int, ranking: Sequence[str], grades: Mapping[str, float]) -> float:
    """
    Normalised discounted cumulative gain of the first k, with linear gains and log2 discounts.

    0.0 where no grade is above zero.

    Source: Järvelin and Kekäläinen, TOIS 2002.
    """
    gained = _discounted([grades.get(card, 0.0) for card in ranking[:k]])
    ideal = _discounted(sorted(grades.values(), reverse=True)[:k])
    return gained / ideal if ideal > 0 else 0.0


def mean(values: Collection[float]) -> float:
    """The mean; 0.0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
