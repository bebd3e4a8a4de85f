"""How long to wait before asking again."""

from __future__ import annotations

import email.utils
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

FIRST_WAIT_SECONDS = 0.5
BACKOFF_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Waits before other attempts; what it takes to wait and to draw lots is passed in."""

    sleep: Callable[[float], Awaitable[object]]
    now: Callable[[], float]
    """What dates in Retry-After count from."""
    uniform: Callable[[float, float], float]

    def wait_seconds(self, attempt: int, after_seconds: float | None) -> float:
        """A wait after this attempt, counted from 1, and what the server asked for, if it did."""
        if after_seconds is not None:
            # never sooner than asked, and not all waiting requests at the same moment
            return after_seconds + self.uniform(0.0, 1.0)
        return self.uniform(0.0, min(BACKOFF_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1)))

    def asked_seconds(self, retry_after: str | None) -> float | None:
        """Seconds to wait by a header in seconds or as a date; None without one that can be read."""
        if not retry_after:
            return None
        if retry_after.strip().isascii() and retry_after.strip().isdigit():
            return float(retry_after.strip()[:9])
        try:
            return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - self.now())
        except (ValueError, OverflowError):
            return None
