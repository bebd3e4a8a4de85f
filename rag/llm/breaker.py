"""Leaves an endpoint that keeps failing in peace for a while, so that nobody waits for it in vain."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)


class CircuitBreaker:
    """
    Counts failures in a row; after ``failures`` of them nothing is admitted for ``open_seconds``, and then one request
    at a time, until one succeeds.

    Whoever is admitted gets a number and hands it back to exactly one of ``succeeded``, ``failed`` and ``abandoned``.
    """

    def __init__(
        self, *, failures: int = 5, open_seconds: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.failures = failures
        self.open_seconds = open_seconds
        self._clock = clock
        self._admitted = 0
        self._in_a_row = 0
        self._opened_at: float | None = None
        self._probe: int | None = None

    def admit(self) -> int | None:
        """A number for a request that may be made, None for one that may not."""
        if self._opened_at is not None:
            if self._probe is not None or self._clock() - self._opened_at < self.open_seconds:
                return None
            self._probe = self._admitted
        self._admitted += 1
        return self._admitted - 1

    def succeeded(self, number: int) -> None:
        """Closes the circuit, even by a request that was made before it opened: the endpoint answers."""
        if self._opened_at is not None:
            logger.info("language model: answers again")
        self._in_a_row = 0
        self._opened_at = self._probe = None

    def failed(self, number: int) -> None:
        self._in_a_row += 1
        is_open = self._opened_at is not None
        # while it is open, only the probe says anything new
        if (is_open and self._probe == number) or (not is_open and self._in_a_row >= self.failures):
            logger.warning(
                "language model: %d failures in a row, not asked for %g s", self._in_a_row, self.open_seconds
            )
            self._opened_at, self._probe = self._clock(), None

    def abandoned(self, number: int) -> None:
        """The caller left before there was an outcome; the next one may probe."""
        if self._probe == number:
            self._probe = None
