"""A client of OpenAI-compatible chat endpoints: bounded in time and size, patient with overload, discreet in errors."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import itertools
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, TypeVar

import httpx

from rag.errors import RagError, SettingsInvalid

BODY_BYTES = 1_000_000
"""A longer answer is refused before it is read to its end."""
LONGEST_WAIT_SECONDS = 60.0
"""A server that asks for more patience than this is given up."""
FIRST_WAIT_SECONDS = 0.5
BACKOFF_SECONDS = 20.0
EXCERPT_CHARS = 120
ECHO_CHARS = 16
"""A piece this long of a prompt makes a server's text unfit to be shown."""

_RETRIED = frozenset({408, 429})
_HOPELESS = frozenset({401, 403, 404})

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote, and what it took."""

    text: str
    finish_reason: str | None
    """``stop``, or ``length`` for a text that was cut off."""
    tokens_in: int | None
    """None where the server does not count."""
    tokens_out: int | None
    seconds: float
    """Of the attempt that succeeded."""
    attempts: int


class LlmFailed(RagError):
    """
    The language model gave no answer that can be used.

    ``reason`` is one of ``timeout``, ``unreachable``, ``rate_limited``, ``denied``, ``status``, ``redirect``,
    ``too_large``, ``error_body``, ``bad_response``. The message holds no prompt, no key, and little of what the
    server said.
    """

    def __init__(self, reason: str, what: str, where: str, remedy: str, *, status: int | None = None) -> None:
        super().__init__(f"The language model at {where} {what}. {remedy}")
        self.reason = reason
        self.status = status

    @property
    def is_hopeless(self) -> bool:
        """Whether every other request would fail likewise."""
        return self.status in _HOPELESS or self.reason == "redirect"


class ChatClient:
    """
    Asks one model of one endpoint; an asynchronous context manager, which may be entered again after it was left.

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
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """
        ``timeout_seconds`` bounds one attempt, its body included; ``now`` is what dates in Retry-After count from.

        Raises:
            SettingsInvalid: the key has signs that no HTTP header can carry.
        """
        if api_key is not None and not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
            raise SettingsInvalid("The key of the language model may hold printable ASCII signs only, without spaces.")
        self.model = model
        self._url = httpx.URL(base_url.rstrip("/") + "/chat/completions")
        self._where = f"{self._url.scheme}://{self._url.netloc.decode()}{self._url.path}"
        self._key = api_key
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._sleep, self._clock, self._now, self._uniform = sleep, clock, now, uniform
        self._http: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"ChatClient({self._where!r}, model={self.model!r})"

    async def __aenter__(self) -> ChatClient:
        # the total of an attempt is bounded below; httpx would bound each read
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
        payload: dict[str, Any] = {
            "model": self.model,
            "messages": [asdict(message) for message in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stream": False,
        }
        if json_mode:
            payload["response_format"] = {"type": "json_object"}
        prompts = [message.content for message in messages]

        async def once(attempt: int) -> Completion:
            started = self._clock()
            async with self._reply(payload, prompts) as response:
                body = await self._read(response)
            return self._completion(body, prompts, seconds=self._clock() - started, attempts=attempt)

        return await self._patiently(once)

    async def _patiently(self, once: Callable[[int], Awaitable[Result]]) -> Result:
        """Try until it works, it is hopeless, or the attempts are used up."""
        for attempt in itertools.count(1):
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    return await once(attempt)
            except _Retriable as fault:
                failed, after = fault.failed, fault.after_seconds
            except (TimeoutError, httpx.TimeoutException):
                failed, after = self._timed_out(), None
            except httpx.HTTPError as fault:
                # the type only: the text of some faults repeats what was sent
                failed, after = self._unreachable(type(fault).__name__), None
            if attempt >= self._attempts:
                raise failed
            if after is not None and after > LONGEST_WAIT_SECONDS:
                raise self._failed(
                    failed.reason,
                    f"asks to wait {after:.0f} seconds, more than the {LONGEST_WAIT_SECONDS:.0f} that are waited",
                    "Try later, or ask fewer things at a time.",
                    status=failed.status,
                )
            wait = self._wait_seconds(attempt, after)
            logger.info("language model: %s, attempt %d of %d in %.1f s", failed.reason, attempt, self._attempts, wait)
            await self._sleep(wait)
        raise AssertionError("counting does not end")

    def _wait_seconds(self, attempt: int, after_seconds: float | None) -> float:
        if after_seconds is not None:
            # never sooner than asked, and not all waiting requests at the same moment
            return after_seconds + self._uniform(0.0, 1.0)
        return self._uniform(0.0, min(BACKOFF_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1)))

    @contextlib.asynccontextmanager
    async def _reply(self, payload: dict[str, Any], prompts: Sequence[str]) -> AsyncIterator[httpx.Response]:
        """The response to one request, its status checked and its body not yet read."""
        if self._http is None:
            raise RuntimeError("the client is not open: use `async with`")
        # a body that unpacks to a thousand times its size is not asked for
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        async with self._http.stream("POST", self._url, headers=headers, content=content) as response:
            if response.status_code != 200:
                await self._refuse_status(response, prompts)
            yield response

    async def _read(self, response: httpx.Response) -> bytes:
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise self._bad("is compressed although that was not asked for")
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > BODY_BYTES:
                raise self._failed(
                    "too_large",
                    f"sent more than {BODY_BYTES} bytes for one answer",
                    "Check that the address is a chat endpoint.",
                )
        return bytes(body)

    async def _refuse_status(self, response: httpx.Response, prompts: Sequence[str]) -> None:
        status = response.status_code
        if 300 <= status < 400:
            raise self._failed(
                "redirect", f"redirects ({status})", "Set the address it redirects to, if you trust it.", status=status
            )
        if status in (401, 403):
            # what the server says here may repeat the key
            raise self._failed("denied", f"denies access ({status})", "Check the key and the model.", status=status)
        if status == 404:
            raise self._failed("status", "is not there (404)", "Check address and model.", status=status)
        said = self._excerpt(await self._error_text(response), prompts)
        reason = "rate_limited" if status == 429 else "status"
        retried = status in _RETRIED or status >= 500
        remedy = "Try later, or ask fewer things at a time." if retried else "Check model, address and limits."
        failed = self._failed(reason, f"answered {status}{said}", remedy, status=status)
        if retried:
            raise _Retriable(failed, self._retry_after(response.headers.get("retry-after")))
        raise failed

    async def _error_text(self, response: httpx.Response) -> str:
        try:
            body = await self._read(response)
            found = _loads(body)
        except (LlmFailed, ValueError):
            return ""
        return _error_message(found) if isinstance(found, dict) else ""

    def _retry_after(self, value: str | None) -> float | None:
        """Seconds to wait by a header in seconds or as a date; None without one that can be read."""
        if not value:
            return None
        if value.strip().isascii() and value.strip().isdigit():
            return float(value.strip()[:9])
        try:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - self._now())
        except (ValueError, OverflowError):
            return None

    def _completion(self, body: bytes, prompts: Sequence[str], *, seconds: float, attempts: int) -> Completion:
        try:
            found = _loads(body)
        except ValueError:
            raise self._bad("is no JSON") from None
        if not isinstance(found, dict):
            raise self._bad("is no JSON object")
        if found.get("error"):
            said = self._excerpt(_error_message(found), prompts)
            raise self._failed("error_body", f"answered with an error under status 200{said}", "Check its log.")
        choices = found.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        text = message.get("content") if isinstance(message, dict) else None
        if not isinstance(choice, dict) or not isinstance(text, str):
            raise self._bad("holds no choices[0].message.content with text")
        reason = choice.get("finish_reason")
        usage = found.get("usage")
        return Completion(
            # half of a surrogate pair, which JSON can spell, cannot be stored or sent
            text=text.encode("utf-8", "replace").decode("utf-8"),
            finish_reason=reason if isinstance(reason, str) else None,
            tokens_in=_count(usage, "prompt_tokens"),
            tokens_out=_count(usage, "completion_tokens"),
            seconds=seconds,
            attempts=attempts,
        )

    def _excerpt(self, text: str, prompts: Sequence[str]) -> str:
        """What may be shown of a server's words, with a colon before it; nothing if they repeat key or prompt."""
        shown = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        if self._key and self._key in shown:
            return ""
        shown = shown[:EXCERPT_CHARS]
        folded = [" ".join(prompt.split()) for prompt in prompts]
        pieces = [shown[at : at + ECHO_CHARS] for at in range(max(1, len(shown) - ECHO_CHARS + 1))]
        if not shown or any(piece in prompt for piece in pieces for prompt in folded):
            return ""
        return f": {shown}"

    def _failed(self, reason: str, what: str, remedy: str, *, status: int | None = None) -> LlmFailed:
        return LlmFailed(reason, what, self._where, remedy, status=status)

    def _bad(self, what: str) -> LlmFailed:
        return self._failed("bad_response", f"sent an answer that {what}", "Check that it is a chat endpoint.")

    def _timed_out(self) -> LlmFailed:
        what = f"did not answer within {self._timeout_seconds:g} seconds"
        return self._failed("timeout", what, "Allow more time, or ask fewer things at a time.")

    def _unreachable(self, fault: str) -> LlmFailed:
        return self._failed("unreachable", f"cannot be reached ({fault})", "Check that it runs and its address.")


class _Retriable(Exception):
    """A fault that may pass, with the seconds that the server asks to wait, if it does."""

    def __init__(self, failed: LlmFailed, after_seconds: float | None) -> None:
        super().__init__(failed.reason)
        self.failed = failed
        self.after_seconds = after_seconds


def _loads(body: bytes) -> Any:
    """
    The value of a JSON text.

    Raises:
        ValueError: it is none, or is nested too deep.
    """
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _error_message(found: dict[str, Any]) -> str:
    error = found.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _count(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
