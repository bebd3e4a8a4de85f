"""Measures of ranked lists, by their settled names. All take card ids, best first; lists may be empty."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
_SEED = 20_260_101
_BLOCK = 500


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from one list of values to another over the same cases."""

    mean: float
    low: float
    high: float
    """The middle 95 per cent of the resampled means."""
    p: float
    """Two-sided: how often chance alone would turn the sign."""


def paired_bootstrap(before: Sequence[float], after: Sequence[float]) -> Difference:
    """
    The mean of ``after - before``, case by case, with its uncertainty; the same figures every time.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993; for rankings, Sakai, SIGIR 2006.

    Raises:
        ValueError: the lists differ in length.
    """
    changes = np.array([new - old for old, new in zip(before, after, strict=True)], np.float64)
    if not changes.any():
        return Difference(0.0, 0.0, 0.0, 1.0)
    generator = np.random.default_rng(_SEED)
    means = np.concatenate(
        [
            changes[generator.integers(0, len(changes), (_BLOCK, len(changes)))].mean(axis=1)
            for _ in range(RESAMPLES // _BLOCK)
        ]
    )
    low, high = np.quantile(means, [0.025, 0.975])
    tail = min(float((means <= 0).mean()), float((means >= 0).mean()))
    return Difference(float(changes.mean()), float(low), float(high), min(1.0, 2 * tail))


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


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """
    How often a positive scores above a negative, a tie counting half; 0.5 where one side is empty.

    Source: Hanley and McNeil, Radiology 1982.
    """
    if not len(positives) or not len(negatives):
        return 0.5
    below = np.sort(np.asarray(negatives, float))
    values = np.asarray(positives, float)
    wins = np.searchsorted(below, values, "left") + np.searchsorted(below, values, "right")
    return float(wins.mean()) / (2 * len(below))


def roc(positives: Sequence[float], negatives: Sequence[float]) -> list[tuple[float, float, float]]:
    """
    Every place where a threshold can make a difference, ascending, with the share of positives and of negatives below.

    It begins where nothing is below and ends where everything is. With positives across and negatives up, the area
    below the curve is ``auroc``.

    Raises:
        ValueError: one side is empty.
    """
    if not len(positives) or not len(negatives):
        raise ValueError("a curve needs scores on both sides")
    sides = [np.sort(np.asarray(scores, float)) for scores in (positives, negatives)]
    places = np.unique(np.concatenate(sides))
    places = np.append(places, np.nextafter(places[-1], np.inf))
    lost, refused = (np.searchsorted(scores, places, "left") / len(scores) for scores in sides)
    return list(zip(places.tolist(), lost.tolist(), refused.tolist(), strict=True))


def mean(values: Collection[float]) -> float:
    """The mean; 0.0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
