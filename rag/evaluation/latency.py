"""How long the stages of an answer take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag.evaluation.findings import Latency
from rag.measuring import Asked

BINS = 24
_STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)


def latencies(asked: Sequence[Asked]) -> dict[str, Latency]:
    """Of embedding a question, and of all the rest of answering it."""
    times = [entry.answer.timings_ms for entry in asked]
    return {
        "embedding": latency_of([one["embed"] for one in times]),
        "the rest": latency_of([one["total"] - one["embed"] for one in times]),
    }


def latency_of(milliseconds: Sequence[float]) -> Latency:
    """Percentiles, and a histogram whose bins reach well beyond the 95th."""
    if not milliseconds:
        return Latency(0.0, 0.0, _STEPS[0], [0] * BINS)
    values = np.maximum(np.asarray(milliseconds, float), 0.0)
    p50, p95 = (round(float(value), 2) for value in np.quantile(values, [0.5, 0.95]))
    step = next((step for step in _STEPS if step * (BINS - 1) >= 1.25 * p95), _STEPS[-1])
    places = np.minimum((values / step).astype(int), BINS - 1)
    return Latency(p50, p95, step, np.bincount(places, minlength=BINS).tolist())
