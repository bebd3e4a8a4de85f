"""The line in front of the model: bounded in length and in time, and fair."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from rag.serving.admission import Line
from rag.serving.problems import Problem


def held(line: Line, release: threading.Event) -> asyncio.Task[str]:
    def work() -> str:
        release.wait(20)
        return "done"

    return asyncio.create_task(line.enter(work))


def test_a_full_line_turns_others_away_at_once() -> None:
    """With all places and all of the line taken, the next is told 503 and when to come back, without waiting."""

    async def fill() -> None:
        line, release = Line(at_work=1, most_waiting=2, patience_seconds=20), threading.Event()
        tasks = [held(line, release) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(Problem) as problem:
            line.check()
        assert (problem.value.status, problem.value.slug) == (503, "overloaded")
        assert problem.value.headers == {"Retry-After": "1"}
        with pytest.raises(Problem):
            await line.enter(lambda: "never")
        release.set()
        assert [await task for task in tasks] == ["done"] * 3
        line.check()
        assert await line.enter(lambda: "again") == "again"

    asyncio.run(fill())


def test_nobody_waits_longer_than_patience_lasts() -> None:
    """Whoever has no place when their patience ends is told so, and the place goes to somebody else later."""

    async def wait() -> None:
        line, release = Line(at_work=1, patience_seconds=0.05), threading.Event()
        first = held(line, release)
        await asyncio.sleep(0.01)
        with pytest.raises(Problem) as problem:
            await line.enter(lambda: "never")
        assert problem.value.slug == "overloaded"
        release.set()
        assert await first == "done"
        assert await line.enter(lambda: "next") == "next"

    asyncio.run(wait())


def test_those_who_were_let_in_go_on() -> None:
    """A further piece of work is never turned away, however full the line is."""

    async def go_on() -> None:
        line, release = Line(at_work=1, most_waiting=0, patience_seconds=0.01), threading.Event()
        with pytest.raises(Problem):
            await line.enter(lambda: "never")
        first = asyncio.create_task(line.go_on(lambda: release.wait(20)))
        second = asyncio.create_task(line.go_on(lambda: "second"))
        await asyncio.sleep(0.05)
        assert not second.done()
        release.set()
        assert await first
        assert await second == "second"

    asyncio.run(go_on())


def test_turns_are_taken_in_order() -> None:
    """Who came first is served first."""

    async def queue() -> list[int]:
        line, order = Line(at_work=1, patience_seconds=20), []

        def note(number: int) -> Callable[[], None]:
            return lambda: order.append(number)

        await asyncio.gather(*(line.enter(note(number)) for number in range(20)))
        return order

    assert asyncio.run(queue()) == list(range(20))


@pytest.mark.parametrize("waiting", [False, True], ids=["at work", "waiting"])
def test_who_leaves_gives_the_place_back(waiting: bool) -> None:
    """A caller who is gone, at work or waiting, holds no place and no room in the line."""

    async def leave() -> None:
        line, release = Line(at_work=1, most_waiting=1, patience_seconds=20), threading.Event()
        tasks = [held(line, release) for _ in range(2)]
        await asyncio.sleep(0.05)
        tasks[waiting].cancel()
        await asyncio.wait({tasks[waiting]})
        release.set()
        assert await tasks[not waiting] == "done"
        assert [await line.enter(lambda: 1), await line.enter(lambda: 2)] == [1, 2]

    asyncio.run(leave())


def test_a_failure_gives_the_place_back() -> None:
    """Work that fails fails for its caller alone."""

    async def fail() -> None:
        line = Line(at_work=1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await line.enter(lambda: 1 // 0)
        assert await line.enter(lambda: "well") == "well"

    asyncio.run(fail())
