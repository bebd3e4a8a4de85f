"""What a chat endpoint sends under status 200, whole or in a stream, as values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rag.llm.events import EventReader
from rag.llm.faults import Faults, Retriable

DONE = "[DONE]"
STOP = "stop"


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


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """The next few letters of an answer."""

    text: str
    finish_reason: str | None = None
    """Only the last piece, which may be without text, has one: ``stop`` where the server ended well and named none."""


def read_completion(
    body: bytes, faults: Faults, prompts: Sequence[str], *, seconds: float = 0.0, attempts: int = 1
) -> Completion:
    """
    A whole answer.

    Raises:
        LlmFailed: it is none.
    """
    found = _object(body, faults)
    _refuse_error(found, faults, prompts)
    choices = found.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    text = message.get("content") if isinstance(message, dict) else None
    if not isinstance(choice, dict) or not isinstance(text, str):
        raise faults.bad("holds no choices[0].message.content with text")
    reason = choice.get("finish_reason")
    usage = found.get("usage")
    return Completion(
        text=_storable(text),
        finish_reason=reason if isinstance(reason, str) else None,
        tokens_in=_count(usage, "prompt_tokens"),
        tokens_out=_count(usage, "completion_tokens"),
        seconds=seconds,
        attempts=attempts,
    )


class StreamReader:
    """The chunks of one streamed answer, cut anywhere, to its pieces."""

    def __init__(self, faults: Faults, prompts: Sequence[str]) -> None:
        self._events = EventReader()
        self._faults = faults
        self._prompts = prompts
        self._half = ""

    def pieces(self, chunk: bytes) -> Iterator[StreamPiece]:
        """
        What a chunk adds, up to and with the last piece; nothing may be fed after that.

        Only the first choice counts. Roles, reasoning, counts and events without a choice are passed over.

        Raises:
            LlmFailed: an event is no part of an answer; what came before it was given.
        """
        for data in self._datas(chunk):
            if data.strip() == DONE:
                yield StreamPiece(self._text("", is_last=True), STOP)
                return
            if not data.strip():
                continue
            text, finish_reason = self._delta(data)
            text = self._text(text, is_last=finish_reason is not None)
            if text or finish_reason:
                yield StreamPiece(text, finish_reason)
            if finish_reason:
                return

    def end(self) -> StreamPiece:
        """
        The stream is over, and its last piece was not there.

        Raises:
            Retriable: in any case.
        """
        raise Retriable(self._faults.cut_off("without saying that it is done"))

    def _datas(self, chunk: bytes) -> Iterator[str]:
        datas = self._events.feed(chunk)
        while True:
            try:
                data = next(datas, None)
            except UnicodeDecodeError:
                break
            if data is None:
                return
            yield data
        # out here it is not chained to the fault, which shows the bytes
        raise self._faults.bad("is no UTF-8")

    def _delta(self, data: str) -> tuple[str, str | None]:
        """The text that an event adds, and the finish reason that it names."""
        found = _object(data, self._faults)
        _refuse_error(found, self._faults, self._prompts)
        choices = found.get("choices") or []
        choice = choices[0] if isinstance(choices, list) and choices else {}
        delta = (choice.get("delta") or {}) if isinstance(choice, dict) else None
        content = delta.get("content") or "" if isinstance(delta, dict) else None
        if not isinstance(choices, list) or not isinstance(choice, dict) or not isinstance(content, str):
            raise self._faults.bad("holds an event without choices[0].delta.content with text")
        reason = choice.get("finish_reason")
        # some servers name an empty one in every event
        return content, reason if isinstance(reason, str) and reason else None

    def _text(self, text: str, *, is_last: bool) -> str:
        """Text that can be stored; the first half of a surrogate pair waits for the second, in the next event."""
        text, self._half = self._half + text, ""
        if text[-1:] >= "\ud800" and text[-1:] <= "\udbff" and not is_last:
            text, self._half = text[:-1], text[-1]
        return _storable(text)


class WholeReader:
    """The chunks of an answer that comes whole although a stream was asked for, to its one piece."""

    def __init__(self, faults: Faults, prompts: Sequence[str]) -> None:
        self._body = bytearray()
        self._faults = faults
        self._prompts = prompts

    def pieces(self, chunk: bytes) -> Iterator[StreamPiece]:
        """Nothing yet."""
        self._body += chunk
        return iter(())

    def end(self) -> StreamPiece:
        """
        The body is over.

        Raises:
            LlmFailed: it is no answer.
        """
        found = read_completion(bytes(self._body), self._faults, self._prompts)
        return StreamPiece(found.text, found.finish_reason or STOP)


def error_message(body: bytes) -> str:
    """What the body of an error says in words, if it says anything that can be read."""
    try:
        found = _loads(body)
    except ValueError:
        return ""
    return _message(found) if isinstance(found, dict) else ""


def _object(body: bytes | str, faults: Faults) -> dict[str, Any]:
    try:
        found = _loads(body)
    except ValueError:
        raise faults.bad("is no JSON") from None
    if not isinstance(found, dict):
        raise faults.bad("is no JSON object")
    return found


def _loads(body: bytes | str) -> Any:
    """
    The value of a JSON text.

    Raises:
        ValueError: it is none, or is nested too deep.
    """
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse_error(found: dict[str, Any], faults: Faults, prompts: Sequence[str]) -> None:
    if found.get("error"):
        raise faults.error_body(_message(found), prompts)


def _message(found: dict[str, Any]) -> str:
    error = found.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _storable(text: str) -> str:
    """Pairs of surrogates, which JSON can spell, as one sign; half of one cannot be stored or sent."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return joined.encode("utf-8", "replace").decode("utf-8")
    return text


def _count(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
