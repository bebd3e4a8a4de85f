"""A client of one model of one OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

import httpx

from rag.errors import SettingsInvalid
from rag.llm.breaker import CircuitBreaker
from rag.llm.endpoint import Endpoint, hush_transport
from rag.llm.faults import LlmFailed, Retriable
from rag.llm.formats import Formats
from rag.llm.replies import Completion, StreamPiece, read_completion
from rag.llm.retrying import Patience
from rag.llm.streaming import Exchange, StreamLimits

BODY_BYTES = 1_000_000
"""A longer answer is refused before it is read to its end."""
LONGEST_WAIT_SECONDS = 60.0
"""A server that asks for more patience than this is given up."""
DEFAULT_LIMITS = StreamLimits()

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class ChatClient:
    """
    Asks one model of one endpoint; an asynchronous context manager, which may be entered again after it was left.

    ``complete`` is for who can wait, ``stream`` for an answer that somebody is waiting for.

    The environment's proxies, netrc and certificate variables are ignored: what settings do not name gets neither a
    card nor the key. Redirects are not followed, for the same reason.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 60.0,
        attempts: int = 4,
        breaker: CircuitBreaker | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """
        ``timeout_seconds`` bounds one attempt of ``complete``, its body included, and ``attempts`` are its own; ``now``
        is what dates in Retry-After count from. ``breaker`` is of ``stream`` alone.

        Raises:
            SettingsInvalid: the key has signs that no HTTP header can carry.
        """
        if api_key is not None and not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
            raise SettingsInvalid("The key of the language model may hold printable ASCII signs only, without spaces.")
        self.model = model
        self._endpoint = Endpoint(base_url, api_key)
        self._faults = self._endpoint.faults
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._breaker = breaker or CircuitBreaker(clock=clock)
        self._patience = Patience(sleep, now, uniform)
        self._clock = clock
        self._formats = Formats()
        self._http: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"ChatClient({self._endpoint.where!r}, model={self.model!r})"

    async def __aenter__(self) -> ChatClient:
        hush_transport()
        # every wait is bounded where it is made; httpx would bound each read
        self._http = httpx.AsyncClient(timeout=None, trust_env=False, follow_redirects=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        http, self._http = self._http, None
        if http:
            await http.aclose()

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, temperature: float = 0.0, json_mode: bool = False
    ) -> Completion:
        """
        The model's answer to a chat.

        Overload (408, 429, 5xx), timeouts and broken connections are tried again, after at least what Retry-After
        says, else after a random part of a wait that doubles; nothing else is.

        Raises:
            LlmFailed: there is no answer, or it cannot be used.
        """
        payload = self._payload(messages, max_tokens, temperature, stream=False)
        if json_mode:
            payload["response_format"] = {"type": "json_object"}
        prompts = [message.content for message in messages]
        for attempt in itertools.count(1):
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    return await self._completed(payload, prompts, attempt)
            except Retriable as fault:
                failed, after = fault.failed, fault.after_seconds
            except (TimeoutError, httpx.TimeoutException):
                what = f"did not answer within {self._timeout_seconds:g} seconds"
                failed, after = self._faults.timed_out(what), None
            except httpx.HTTPError as fault:
                failed, after = self._faults.unreachable(fault), None
            if attempt >= self._attempts:
                raise failed
            if after is not None and after > LONGEST_WAIT_SECONDS:
                raise self._faults.too_long_a_wait(failed, after, LONGEST_WAIT_SECONDS)
            wait = self._patience.wait_seconds(attempt, after)
            logger.info("language model: %s, attempt %d of %d in %.1f s", failed.reason, attempt, self._attempts, wait)
            await self._patience.sleep(wait)
        raise AssertionError("counting does not end")

    async def _completed(self, payload: Mapping[str, Any], prompts: Sequence[str], attempt: int) -> Completion:
        started = self._clock()
        http = self._open()
        response = await http.send(self._endpoint.request(http, payload), stream=True)
        async with contextlib.aclosing(response):
            if response.status_code != 200:
                said = await self._endpoint.error_text(response, BODY_BYTES)
                raise self._endpoint.refusal(response, said, prompts, self._patience)
            body = await self._endpoint.body(response, BODY_BYTES)
        return read_completion(body, self._faults, prompts, seconds=self._clock() - started, attempts=attempt)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        json_schema: Mapping[str, Any] | None = None,
        limits: StreamLimits = DEFAULT_LIMITS,
    ) -> AsyncGenerator[StreamPiece, None]:
        """
        The model's answer to a chat, piece by piece as it is written; the last piece has a finish reason.

        What ``complete`` tries again is tried again here, until there was text. A schema asks the endpoint for JSON of
        that kind; one that does not know such a wish is asked for any JSON, and then for nothing of the sort, so what
        comes has to be checked. Closing the generator, or cancelling who waits for it, closes the connection.

        Raises:
            LlmFailed: there is no answer, or no more of it.
        """
        payload = self._payload(messages, max_tokens, temperature, stream=True)
        exchange = Exchange(
            self._open(),
            self._endpoint,
            [message.content for message in messages],
            limits,
            patience=self._patience,
            clock=self._clock,
        )
        number = self._breaker.admit()
        if number is None:
            what = f"is not asked, as at least {self._breaker.failures} answers in a row failed"
            raise self._faults.failed("circuit_open", what, "See the reasons before; it is tried again by itself.")
        is_settled = False
        try:
            async with contextlib.aclosing(exchange.pieces(payload, self._formats, json_schema)) as pieces:
                async for piece in pieces:
                    if piece.finish_reason is not None:
                        is_settled = True
                        self._breaker.succeeded(number)
                    yield piece
        except LlmFailed:
            is_settled = True
            self._breaker.failed(number)
            raise
        finally:
            if not is_settled:
                self._breaker.abandoned(number)

    def _payload(
        self, messages: Sequence[Message], max_tokens: int, temperature: float, *, stream: bool
    ) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [asdict(message) for message in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stream": stream,
        }

    def _open(self) -> httpx.AsyncClient:
        if self._http is None:
            raise RuntimeError("the client is not open: use `async with`")
        return self._http
