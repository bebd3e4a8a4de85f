"""Loading beside the open port: once at the start, and again whenever SIGHUP asks for the build now in use."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from rag.errors import RagError
from rag.serving.engine import Engine

_log = logging.getLogger(__name__)
_STANDARD_INPUT = 0


class Loading:
    """
    Loads the engine, and stops the server when that fails.

    One load at a time. A SIGHUP that comes during one is remembered, however many there are, and the build then in use
    is looked at again afterwards, so that the last one is never lost.
    """

    def __init__(self, engine: Engine, *, stop: Callable[[], None]) -> None:
        """``stop`` asks the server to end."""
        self._engine = engine
        self._stop = stop
        self._asked = asyncio.Event()
        self._ending = False
        self._terminal = os.isatty(_STANDARD_INPUT)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Listen for SIGHUP and start loading; at the end, wait for what is being loaded."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)
        task = asyncio.create_task(self._work())
        async with self._engine:
            yield
        self._ending = True
        self._asked.set()
        await task

    def _hang_up(self) -> None:
        # a terminal that is closed sends the same signal, and what was started in it should end
        if self._terminal and not os.isatty(_STANDARD_INPUT):
            self._stop()
        else:
            self._asked.set()

    async def _work(self) -> None:
        if not await self._load():
            self._stop()
            return
        while True:
            await self._asked.wait()
            # first, so that who asks from now on is heard
            self._asked.clear()
            if self._ending:
                return
            await asyncio.to_thread(self._engine.reload)

    async def _load(self) -> bool:
        try:
            await asyncio.to_thread(self._engine.load)
        except RagError as error:
            print(error, file=sys.stderr)
        except Exception as error:
            self._engine.failure = RagError(str(error))
            _log.exception("model and index could not be loaded")
        return self._engine.failure is None
