"""Whether work grows with what it is done on, and not with its square."""

from __future__ import annotations

import time
from collections.abc import Callable

ATTEMPTS = 6
SHORT_SECONDS = 0.05


def grows_in_step(work: Callable[[str], object], piece: str, *, times: int = 1_000) -> bool:
    """
    Whether four times as many pieces are about four times the work, not sixteen times.

    By processor time; a collection of garbage can fall on either half, so one fair attempt of several is enough.
    """

    def cost(count: int) -> float:
        text = piece * count
        begin = time.process_time()
        work(text)
        return time.process_time() - begin

    return any((long := cost(4 * times)) < SHORT_SECONDS or long < 10 * cost(times) for _ in range(ATTEMPTS))
