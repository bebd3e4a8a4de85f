"""Who may use the cores: a few at a time, a few more waiting, and nobody for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rag.serving.problems import Problem

AT_WORK = 2
"""More questions at a time would only share the same cores, and hold more memory."""
MOST_WAITING = 32
PATIENCE_SECONDS = 1.0
"""Who has waited for so long is told to come back."""

OVERLOADED = Problem(
    503,
    "overloaded",
    "More questions are waiting than can be answered soon. Try again in a moment.",
    headers={"Retry-After": "1"},
)
_Result = TypeVar("_Result")


class Line:
    """A bounded line in front of a few threads, first come, first served."""

    def __init__(
        self, *, at_work: int = AT_WORK, most_waiting: int = MOST_WAITING, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """``most_waiting`` counts those who have no thread yet."""
        # a caller may leave while their thread is at work: no more threads than these there are all the same
        self._threads = ThreadPoolExecutor(at_work, thread_name_prefix="questions")
        self._places = asyncio.Semaphore(at_work)
        self.waiting = 0
        """Callers who have no thread yet."""
        self.turned_away = 0
        """Callers who got none."""
        self._most_waiting = most_waiting
        self._patience_seconds = patience_seconds

    @property
    def is_full(self) -> bool:
        """Whether the next one would be turned away."""
        return self.waiting >= self._most_waiting

    def turn_away(self) -> Problem:
        """What to tell a caller for whom there is no room; counted."""
        self.turned_away += 1
        return OVERLOADED

    def check(self) -> None:
        """
        Say at once whether there is room, before anything is begun.

        Raises:
            Problem: 503, the line is full.
        """
        if self.is_full:
            raise self.turn_away()

    async def enter(self, work: Callable[[], _Result]) -> _Result:
        """
        Do the first piece of work for a caller, in a thread, when it is their turn.

        Raises:
            Problem: 503, the line is full, or does not move.
        """
        self.check()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._places.acquire()
        except TimeoutError as error:
            raise self.turn_away() from error
        finally:
            self.waiting -= 1
        return await self._work(work)

    async def go_on(self, work: Callable[[], _Result]) -> _Result:
        """Do a further piece of work for a caller who was let in before, and is not turned away any more."""
        await self._places.acquire()
        return await self._work(work)

    async def _work(self, work: Callable[[], _Result]) -> _Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._places.release()
