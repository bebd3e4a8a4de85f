"""Connections that bring no request in time are closed, there are never too many, and a "no" costs next to nothing."""

from __future__ import annotations

import asyncio
import re
import resource
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""From the connection, or the reply before, to the end of a request's head; uvicorn itself would wait for ever."""
FIRST_REQUEST_SECONDS = 0.5
"""What a new connection gets when the service is being stopped."""
MOST_CONNECTIONS = 1_000
SPARE_FILES = 64
"""Left for files of ours, of all that this process may have open."""

_QUESTION = re.compile(rb"POST /(?:ask|search) HTTP/1\.1\r\n", re.ASCII)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,6})[ \t]*\r\n", re.ASCII | re.IGNORECASE)
_TRANSFER = re.compile(rb"\r\n(?:transfer-encoding|expect)[ \t]*:", re.ASCII | re.IGNORECASE)


def most_connections() -> int:
    """How many connections there may be: what the system allows, with some files to spare, and no more than ours."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, min(MOST_CONNECTIONS, allowed - SPARE_FILES)) if allowed > 0 else MOST_CONNECTIONS


def is_whole_question(data: bytes) -> bool:
    """Whether these bytes are one plain request with a question, all of it and nothing more."""
    if not _QUESTION.match(data):
        return False
    head, end, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head + end[:2])
    return bool(end and length) and not _TRANSFER.search(head) and len(body) == int(length[1] if length else -1)


class BoundedConnection(H11Protocol):
    """uvicorn's connection with a deadline for each head of a request, and a bound on their number."""

    most = MOST_CONNECTIONS
    head_seconds = HEAD_SECONDS
    overloaded: Callable[[], bytes | None] = staticmethod(lambda: None)
    """
    The whole reply for questions while there is no room for any more, else None. It is sent before the question is
    parsed: when ten times too many come, saying no the long way would take the time of those who are answered.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Keep it, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A head that is there in time ends the waiting; more bytes of it do not."""
        idle = self._is_idle()
        if idle and self._begins_here() and is_whole_question(data) and (refusal := type(self).overloaded()):
            self.transport.write(refusal)
            return
        if self._deadline is None and idle:
            self._wait()
        super().data_received(data)
        if not self._is_idle():
            self._wait_no_more()

    def shutdown(self) -> None:
        """End after the request in progress; a new connection may still bring its first one, which is on its way."""
        if self.cycle is None:
            self.loop.call_later(FIRST_REQUEST_SECONDS, super().shutdown)
        else:
            super().shutdown()

    def _begins_here(self) -> bool:
        """Whether no bytes of a request have come before."""
        return not self.conn.trailing_data[0]

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self._give_up)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.abort()
