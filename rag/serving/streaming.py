"""An answer as server-sent events, and work that ends when the caller leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import orjson
from starlette.types import Receive, Scope, Send

from rag.answering import CitationShown, Event, SourcesFound, TextShown
from rag.records import Answer
from rag.serving.problems import FAULT, Problem, problem_document
from rag.serving.stopping import STOPPED, Stopping

_log = logging.getLogger(__name__)

SILENCE_SECONDS = 10.0
"""After so long without an event a comment is sent, so that nobody in between takes the connection for dead."""
_COMMENT = b": fichero\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    # proxies that gather a reply, or compress it, would hold back its pieces
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_Result = TypeVar("_Result")


class Left(Exception):
    """The caller closed the connection."""


class Stopped(Exception):
    """The service ends before the work does."""


class EventStream:
    """
    ASGI application that sends events as they come: ``sources``, ``delta``, ``citation``, then ``done`` or ``error``.

    A comment goes out at once and after each silence. When the caller leaves, what makes the events is closed; when the
    service is stopped, a last block says so.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        *,
        stopping: Stopping,
        problem_block: Callable[[Problem], bytes],
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        """``pieces`` are whole blocks of the stream; what they would raise has been made into a ``problem_block``."""
        self._pieces = pieces
        self._stopping = stopping
        self._problem_block = problem_block
        self._silence_seconds = silence_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all pieces, or as many as the caller stays for."""
        with suppress(Left, OSError):
            try:
                await unless_left(self._send_all(send), receive, self._stopping)
            except Stopped:
                await send({"type": "http.response.body", "body": self._problem_block(STOPPED)})

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _COMMENT, "more_body": True})
        async with aclosing(self._pieces) as pieces:
            while True:
                coming = asyncio.ensure_future(anext(pieces, None))
                try:
                    while not (await asyncio.wait({coming}, timeout=self._silence_seconds))[0]:
                        await send({"type": "http.response.body", "body": _COMMENT, "more_body": True})
                    piece = coming.result()
                finally:
                    # a generator that still runs cannot be closed
                    await _ended(coming)
                if piece is None:
                    break
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def event_blocks(events: AsyncGenerator[Event, None], request_id: str) -> AsyncGenerator[bytes, None]:
    """Events of an answer as blocks of a stream; a fault becomes the last one."""
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, SourcesFound):
                    yield block("sources", {"request_id": request_id, "retrieved": event.retrieved})
                elif isinstance(event, TextShown):
                    yield block("delta", event.segment)
                elif isinstance(event, CitationShown):
                    yield block("citation", {"segment": event.segment, "citation": event.citation})
                elif isinstance(event, Answer):
                    yield block("done", event)
    except Problem as problem:
        yield problem_block(problem)
    except Exception:
        _log.exception("request %s failed", request_id)
        yield problem_block(FAULT)


def problem_block(problem: Problem) -> bytes:
    """A problem as the last block of a stream."""
    return block("error", problem_document(problem))


def block(name: str, data: object) -> bytes:
    """One event; JSON has no line breaks, so its data is one line."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"


async def last_answer(events: AsyncGenerator[Event, None]) -> Answer:
    """The answer that events end in."""
    answer: Answer | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Answer):
                answer = event
    if answer is None:
        raise RuntimeError("the events ended without an answer")
    return answer


async def unless_left(work: Coroutine[Any, Any, _Result], receive: Receive, stopping: Stopping) -> _Result:
    """
    The result of work, which is cancelled when the caller closes the connection, or the service has to end.

    Raises:
        Left: the caller did.
        Stopped: the service does.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_until_left(receive))
    ending = asyncio.ensure_future(stopping.over())
    try:
        await asyncio.wait({working, leaving, ending}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Left if leaving.done() else Stopped
    finally:
        for task in (leaving, ending, working):
            await _ended(task)


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(task: asyncio.Future[Any]) -> None:
    """Cancel what is not done, and wait for it; what it raised is of no interest any more."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
