"""An answer while it is written: every wait is bounded, and so is all of them together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from rag.llm.endpoint import Endpoint
from rag.llm.faults import LlmFailed, Retriable
from rag.llm.formats import Formats
from rag.llm.replies import StreamPiece, StreamReader, WholeReader
from rag.llm.retrying import Patience

STREAM_TYPE = "text/event-stream"
WHOLE_TYPE = "application/json"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """What an answer may take; a wait ends by whichever limit comes first."""

    connect_seconds: float = 3.0
    """Until there is a connection, with looking up its name and TLS."""
    first_byte_seconds: float = 15.0
    """From when the request is sent until the first byte of the body, the headers included."""
    idle_seconds: float = 10.0
    """Between two chunks of the body, of whatever kind."""
    total_seconds: float = 45.0
    """Of everything: attempts, waits between them, other formats, and what the reader of the pieces takes."""
    reply_bytes: int = 262_144
    """Of one body as it is sent: a letter in a stream takes some 50 to 300 bytes."""
    longest_wait_seconds: float = 5.0
    """A server that asks for more patience than this is given up at once."""
    attempts: int = 3


class _FormatRefused(Exception):
    """The endpoint does not take the format that was asked for; the last one asks for none."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Exchange:
    """One question to an endpoint and its answer; used once, and the time starts when it is made."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        endpoint: Endpoint,
        prompts: Sequence[str],
        limits: StreamLimits,
        *,
        patience: Patience,
        clock: Callable[[], float],
    ) -> None:
        self._http = http
        self._endpoint = endpoint
        self._faults = endpoint.faults
        self._prompts = prompts
        self._limits = limits
        self._patience = patience
        self._clock = clock
        self._ends = clock() + limits.total_seconds

    async def pieces(
        self, payload: Mapping[str, Any], formats: Formats, json_schema: Mapping[str, Any] | None
    ) -> AsyncGenerator[StreamPiece, None]:
        """The answer, in as many attempts as it takes and in the strictest format that works."""
        form = formats.working
        attempt = 1
        has_text = False
        while True:
            asked = {**payload, **formats.addition(form, json_schema)}
            try:
                async with contextlib.aclosing(self._attempt(asked)) as pieces:
                    async for piece in pieces:
                        if json_schema is not None:
                            formats.working = form
                        has_text = has_text or bool(piece.text)
                        yield piece
                return
            except Retriable as fault:
                failed, after = fault.failed, fault.after_seconds
            except _FormatRefused as fault:
                logger.info("language model: refuses a format (%d)", fault.status)
                form += 1
                continue
            # out here what is raised is not chained to faults that say more than it does
            if has_text or attempt >= self._limits.attempts:
                raise failed
            await self._wait(attempt, failed, after)
            attempt += 1

    async def _wait(self, attempt: int, failed: LlmFailed, after: float | None) -> None:
        """
        Wait for the next attempt.

        Raises:
            LlmFailed: the server wants a longer wait than it gets, or the time would be over.
        """
        if after is not None and after > self._limits.longest_wait_seconds:
            raise self._faults.too_long_a_wait(failed, after, self._limits.longest_wait_seconds)
        wait = self._patience.wait_seconds(attempt, after)
        if wait >= self._left():
            raise failed
        logger.info(
            "language model: %s, attempt %d of %d in %.1f s", failed.reason, attempt, self._limits.attempts, wait
        )
        await self._patience.sleep(wait)

    async def _attempt(self, payload: Mapping[str, Any]) -> AsyncGenerator[StreamPiece, None]:
        """What one request gets; its connection is closed before the last piece is given."""
        response, first_byte_ends = await self._response(payload)
        has_text = False
        last: StreamPiece | None = None
        async with contextlib.aclosing(response):
            if response.status_code != 200:
                said = await self._error_text(response)
                if Formats.is_refused(payload, response.status_code, said):
                    raise _FormatRefused(response.status_code)
                raise self._endpoint.refusal(response, said, self._prompts, self._patience)
            self._endpoint.refuse_encoding(response)
            reader = self._reader(response)
            async with contextlib.aclosing(self._chunks(response.aiter_raw(), first_byte_ends)) as chunks:
                async for chunk in chunks:
                    for piece in reader.pieces(chunk):
                        if piece.finish_reason is not None:
                            last = piece
                            break
                        has_text = True
                        yield piece
                    if last:
                        break
            last = last or reader.end()
        if not has_text and not last.text:
            raise self._faults.failed(
                "empty", "ended its answer without any text", "Allow more tokens, or take a model that thinks less."
            )
        yield last

    async def _response(self, payload: Mapping[str, Any]) -> tuple[httpx.Response, float]:
        """A response without its body, and when by the clock the first byte of the body has to be there."""
        request = self._endpoint.request(self._http, payload)
        first_byte_ends: float | None = None
        try:
            async with asyncio.timeout(self._bounded(self._limits.connect_seconds)) as limit:

                async def traced(event: str, _: Mapping[str, Any]) -> None:
                    nonlocal first_byte_ends
                    if event.endswith("send_request_headers.started"):
                        first_byte_ends = self._clock() + self._limits.first_byte_seconds
                        seconds = self._bounded(self._limits.first_byte_seconds)
                        limit.reschedule(asyncio.get_running_loop().time() + seconds)

                request.extensions["trace"] = traced
                response = await self._http.send(request, stream=True)
            return response, first_byte_ends or self._clock()
        except (TimeoutError, httpx.TimeoutException):
            if first_byte_ends is None:
                failed = self._timed_out(f"gave no connection within {self._limits.connect_seconds:g} seconds")
            else:
                failed = self._late_to_begin()
        except httpx.HTTPError as fault:
            failed = self._faults.unreachable(fault)
        raise Retriable(failed)

    async def _error_text(self, response: httpx.Response) -> str:
        """What an error says; the status alone is enough where that takes too long or breaks off."""
        try:
            async with asyncio.timeout(self._bounded(self._limits.idle_seconds)):
                return await self._endpoint.error_text(response, self._limits.reply_bytes)
        except (TimeoutError, httpx.HTTPError):
            return ""

    def _reader(self, response: httpx.Response) -> StreamReader | WholeReader:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == STREAM_TYPE:
            return StreamReader(self._faults, self._prompts)
        if kind == WHOLE_TYPE:
            return WholeReader(self._faults, self._prompts)
        raise self._faults.bad("is neither a stream of events nor JSON")

    async def _chunks(self, raw: AsyncIterator[bytes], first_byte_ends: float) -> AsyncGenerator[bytes, None]:
        """A body as it comes, to its end."""
        chunk = await self._chunk(raw, first_byte_ends - self._clock(), self._late_to_begin)
        size = 0
        while chunk is not None:
            size += len(chunk)
            if size > self._limits.reply_bytes:
                raise self._faults.too_large(self._limits.reply_bytes)
            yield chunk
            chunk = await self._chunk(raw, self._limits.idle_seconds, self._silent)

    async def _chunk(
        self, raw: AsyncIterator[bytes], seconds: float, timed_out: Callable[[], LlmFailed]
    ) -> bytes | None:
        """The next chunk of a body, None behind the last; waits so many seconds, or until the time is over."""
        # chunks that are there already are read without a pause in which a timeout could strike
        if self._left() <= 0:
            raise Retriable(timed_out())
        try:
            async with asyncio.timeout(self._bounded(seconds)):
                return await anext(raw, None)
        except (TimeoutError, httpx.TimeoutException):
            failed = timed_out()
        except httpx.HTTPError as fault:
            failed = self._faults.cut_off(type(fault).__name__)
        raise Retriable(failed)

    def _late_to_begin(self) -> LlmFailed:
        return self._timed_out(f"did not begin to answer within {self._limits.first_byte_seconds:g} seconds")

    def _silent(self) -> LlmFailed:
        return self._timed_out(f"said nothing more for {self._limits.idle_seconds:g} seconds")

    def _timed_out(self, what: str) -> LlmFailed:
        if self._left() <= 0:
            what = f"was not done within {self._limits.total_seconds:g} seconds"
        return self._faults.timed_out(what)

    def _left(self) -> float:
        return self._ends - self._clock()

    def _bounded(self, seconds: float) -> float:
        return max(0.0, min(seconds, self._left()))
