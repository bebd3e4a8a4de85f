"""What generated contexts came to: counts, tokens, times and cost."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ContextReport:
    """
    The contexts of one build.

    All but ``called`` and ``failed`` count answers wherever they came from, so that a build that reads all of them
    from the cache reports what the first one did.
    """

    chunks: int
    """Asked for; those withheld or left out are no part of it."""
    accepted: int
    rejected: Mapping[str, int]
    """Reason → chunks, the most frequent first."""
    failed: Mapping[str, int]
    """Reason → chunks without an answer."""
    withheld: int
    """Chunks of cards that the public may not read."""
    left_out: int
    """Chunks of cards that contexts were not wanted for."""
    called: int
    """Answers that this run paid for."""
    tokens_in: int
    tokens_out: int
    uncounted: int
    """Answers of a server that counts no tokens."""
    p50_seconds: float | None
    p95_seconds: float | None
    cost: float | None
    """In the currency of the prices; None without prices."""
    cost_per_accepted: float | None
    coverage: float
    """Accepted / chunks; 1 where nothing was asked for."""


@dataclass(slots=True)
class Tally:
    """Counts that grow chunk by chunk."""

    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    withheld: int = 0
    left_out: int = 0
    called: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    uncounted: int = 0
    seconds: array[float] = field(default_factory=lambda: array("d"))

    @property
    def passed_over(self) -> int:
        """Chunks dealt with, one way or another."""
        return self.asked + self.withheld + self.left_out

    @property
    def asked(self) -> int:
        """Chunks with an answer, good or bad, and those that failed."""
        return self.accepted + self.rejected.total() + self.failed.total()

    def add_answer(self, tokens_in: int | None, tokens_out: int | None, seconds: float) -> None:
        """Count what an answer took."""
        self.uncounted += tokens_in is None or tokens_out is None
        self.tokens_in += tokens_in or 0
        self.tokens_out += tokens_out or 0
        self.seconds.append(seconds)

    def report(self, *, price_in: float, price_out: float) -> ContextReport:
        """The counts so far; prices are per million tokens, and 0 means unknown."""
        times = sorted(self.seconds)
        priced = bool(price_in or price_out)
        cost = (self.tokens_in * price_in + self.tokens_out * price_out) / 1e6 if priced else None
        return ContextReport(
            chunks=self.asked,
            accepted=self.accepted,
            rejected=dict(self.rejected.most_common()),
            failed=dict(self.failed.most_common()),
            withheld=self.withheld,
            left_out=self.left_out,
            called=self.called,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            uncounted=self.uncounted,
            p50_seconds=_percentile(times, 50),
            p95_seconds=_percentile(times, 95),
            cost=cost,
            cost_per_accepted=cost / self.accepted if cost is not None and self.accepted else None,
            coverage=self.accepted / self.asked if self.asked else 1.0,
        )


def _percentile(ordered: list[float], percent: int) -> float | None:
    """The smallest value that at least this share of the values does not exceed (nearest rank)."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else None
