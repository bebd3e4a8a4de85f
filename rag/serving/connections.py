"""Connections that bring no request in time are closed, and there are never too many."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""From the connection, or the reply before, to the end of a request's head; uvicorn itself would wait for ever."""
MOST_CONNECTIONS = 1_000
SPARE_FILES = 64
"""Left for files of ours, of all that this process may have open."""


def most_connections() -> int:
    """How many connections there may be: what the system allows, with some files to spare, and no more than ours."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, min(MOST_CONNECTIONS, allowed - SPARE_FILES)) if allowed > 0 else MOST_CONNECTIONS


class BoundedConnection(H11Protocol):
    """uvicorn's connection with a deadline for each head of a request, and a bound on their number."""

    most = MOST_CONNECTIONS
    head_seconds = HEAD_SECONDS

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
        if self._deadline is None and self._is_idle():
            self._wait()
        super().data_received(data)
        if not self._is_idle():
            self._wait_no_more()

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
