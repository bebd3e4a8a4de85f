"""How often one caller may ask."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from rag.serving.problems import Problem

MOST_CALLERS = 10_000
"""So many are remembered, about 2 MB; the one who asked longest ago is forgotten first."""


class RateLimit:
    """
    A bucket for each caller: it holds ``burst`` questions and fills up again steadily.

    A caller who is forgotten has a full bucket, as one who stayed away for a while does.
    """

    def __init__(
        self, per_minute: int, *, most_callers: int = MOST_CALLERS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """A limit of 0 questions a minute is none."""
        self._per_second = per_minute / 60
        self._burst = max(1.0, per_minute / 5)
        self._most_callers = most_callers
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """
        Count a question.

        Raises:
            Problem: 429, this caller asks too often; it is not counted.
        """
        if not self._per_second:
            return
        now = self._clock()
        left, at = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        allowed = left >= 1
        self._left[caller] = left - 1 if allowed else left, now
        if len(self._left) > self._most_callers:
            self._left.popitem(last=False)
        if not allowed:
            wait = str(max(1, math.ceil((1 - left) / self._per_second)))
            detail = f"There are too many questions from this address. Try again in {wait} s."
            raise Problem(429, "too-many-requests", detail, headers={"Retry-After": wait})
