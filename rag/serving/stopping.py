"""The end of the service, for answers that take longer than it lasts."""

from __future__ import annotations

import asyncio
import socket
from types import FrameType

import uvicorn

from rag.serving.problems import Problem

GRACE_SECONDS = 3.0
"""Answers that were begun may end by themselves for so long; then their callers are told."""
ACCEPT_SECONDS = 0.05
STOPPED = Problem(503, "stopping", "The service is being stopped. Ask again in a moment.", headers={"Retry-After": "5"})


class Stopping:
    """Whether the service is being stopped."""

    def __init__(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self._begun = asyncio.Event()
        self._grace_seconds = grace_seconds

    def begin(self) -> None:
        """It is, from now on. May be called by a handler of signals: the server's loop turns ten times a second."""
        self._begun.set()

    async def over(self) -> None:
        """Return when answers in progress have had the time that they get."""
        await self._begun.wait()
        await asyncio.sleep(self._grace_seconds)


class StoppableServer(uvicorn.Server):
    """uvicorn's server, which tells when a signal stops it."""

    def __init__(self, config: uvicorn.Config, stopping: Stopping) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle SIGTERM and SIGINT."""
        self._stopping.begin()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, and first take in the connections that the system has accepted for us already."""
        await asyncio.sleep(ACCEPT_SECONDS)
        await super().shutdown(sockets)
