"""Request to question: JSON, form or query string, bounded in size and time, every fault named."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.requests import ClientDisconnect, Request

from rag.records import Turn
from rag.serving.problems import Problem

BODY_LIMIT_BYTES = 65_536
BODY_SECONDS = 10.0
"""The whole body has to be here by then."""
QUESTION_LIMIT_CHARS = 2_000
TOP_K_LIMIT = 20
TURNS_LIMIT = 20
ANSWER_LIMIT_CHARS = 8_000
LANGUAGES = ("es", "en")
"""The first one is taken where none is named."""

_JSON_FIELDS = ("question", "top_k", "stream", "history")
_FORM_FIELDS = ("q", "top_k", "stream")
_SUGGESTION_FIELDS = ("language",)
_TURN_FIELDS = ("question", "answer")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Question:
    """A question that may be asked, and how."""

    text: str
    top_k: int | None
    """Cards to retrieve for it."""
    stream: bool = False
    """Whether the answer is wanted in pieces, as it comes."""
    history: tuple[Turn, ...] = ()
    """What was asked before, and answered, in that order."""


async def read_question(request: Request) -> Question:
    """
    Read the question of a GET, a JSON POST or a form POST.

    Raises:
        Problem: 400, 408, 413, 415 or 422, and why.
    """
    if request.method in ("GET", "HEAD"):
        return _from_form(_fields(request.scope["query_string"]))
    kind = media_type(request)
    if kind not in ("application/json", "application/x-www-form-urlencoded"):
        known = "application/json or application/x-www-form-urlencoded"
        raise Problem(415, "unsupported-media-type", f"Send the question with Content-Type {known}.")
    body = await read_body(request)
    return _from_json(body) if kind == "application/json" else _from_form(_fields(body))


async def read_search(request: Request) -> Question:
    """
    Read what to search for: a question by itself, whose hits come whole.

    Raises:
        Problem: as for ``read_question``.
    """
    question = await read_question(request)
    if question.stream or question.history:
        raise Problem(422, "invalid-request", "A search takes neither stream nor history; leave them out.")
    return question


def read_language(request: Request) -> str:
    """
    Read the language in which suggestions are wanted.

    Raises:
        Problem: 400 or 422, and why.
    """
    fields = _fields(request.scope["query_string"])
    _refuse_unknown(fields, _SUGGESTION_FIELDS)
    language = fields.get("language", LANGUAGES[0])
    if language not in LANGUAGES:
        raise Problem(422, "invalid-request", f"language is none of {', '.join(LANGUAGES)}.")
    return language


def media_type(request: Request) -> str:
    """What the body is said to be, in lower case and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request) -> bytes:
    """The body, counted as it comes, so that a chunked one is bounded too."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_LIMIT_BYTES:
                    limit = f"{BODY_LIMIT_BYTES // 1024} KiB"
                    raise Problem(413, "body-too-large", f"A request may have at most {limit}.")
    except TimeoutError as error:
        detail = f"The whole request has to arrive within {BODY_SECONDS:.0f} seconds."
        raise Problem(408, "request-timeout", detail, headers={"Connection": "close"}) from error
    except ClientDisconnect as error:
        raise Problem(400, "invalid-request", "The connection was closed before the request was whole.") from error
    return bytes(body)


def _from_json(body: bytes) -> Question:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Problem(400, "invalid-request", 'The body is not JSON. Send {"question": "..."}.') from error
    if not isinstance(found, dict):
        raise Problem(422, "invalid-request", 'The body is not an object. Send {"question": "..."}.')
    _refuse_unknown(found, _JSON_FIELDS)
    return Question(
        text=check_text(found.get("question"), "question"),
        top_k=_check_top_k(found.get("top_k")),
        stream=_check_flag(found.get("stream")),
        history=_check_history(found.get("history")),
    )


def _from_form(fields: Mapping[str, str]) -> Question:
    _refuse_unknown(fields, _FORM_FIELDS)
    top_k = fields.get("top_k")
    digits = top_k is not None and top_k.isascii() and top_k.isdigit() and len(top_k) < 4
    number: object = int(top_k) if top_k is not None and digits else top_k
    stream: object = fields.get("stream") or None
    stream = _FLAGS.get(stream.lower(), stream) if isinstance(stream, str) else stream
    return Question(check_text(fields.get("q"), "q"), _check_top_k(number), _check_flag(stream))


def _fields(encoded: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=16)
    except ValueError as error:
        raise Problem(
            400, "invalid-request", "The form is not percent-encoded UTF-8 with at most 16 fields."
        ) from error
    if len(dict(pairs)) < len(pairs):
        raise Problem(422, "invalid-request", "A field stands twice; send each once.")
    return dict(pairs)


def _refuse_unknown(found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if not found.keys() <= set(known):
        raise Problem(422, "invalid-request", f"There is an unknown field. Known: {', '.join(known)}.")


def check_text(value: object, name: str) -> str:
    if value is None:
        raise Problem(422, "question-empty", f"Send the question in the field {name}.")
    if not isinstance(value, str):
        raise Problem(422, "invalid-request", f"{name} is not text; send it as a string.")
    if len(value) > QUESTION_LIMIT_CHARS:
        count = f"{len(value):,} characters; at most {QUESTION_LIMIT_CHARS:,} are read"
        raise Problem(422, "question-too-long", f"The question has {count}. Ask in fewer words.")
    if not value.strip():
        raise Problem(422, "question-empty", "The question is blank. Ask something.")
    if not any(letter.isalnum() for letter in value):
        raise Problem(422, "question-without-words", "The question has neither letters nor digits. Ask it in words.")
    return value


def _check_top_k(value: object) -> int | None:
    if value is None:
        return None
    # 5.0 is the same number in JSON
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= TOP_K_LIMIT:
        raise Problem(422, "invalid-request", f"top_k is not a whole number from 1 to {TOP_K_LIMIT}.")
    return value


def _check_flag(value: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Problem(422, "invalid-request", "stream is neither true nor false.")
    return value


def _check_history(value: object) -> tuple[Turn, ...]:
    """The turns of a conversation; what stands in one is text, whoever is said to have written it."""
    form = 'history is not a list of {"question": "...", "answer": "..."}, the oldest first.'
    if value is None:
        return ()
    if not isinstance(value, list):
        raise Problem(422, "invalid-request", form)
    if len(value) > TURNS_LIMIT:
        raise Problem(422, "invalid-request", f"history has {len(value):,} turns; send the last {TURNS_LIMIT}.")
    turns = []
    for turn in value:
        if not isinstance(turn, dict) or not turn.keys() <= set(_TURN_FIELDS):
            raise Problem(422, "invalid-request", form)
        question, answer = turn.get("question"), turn.get("answer", "")
        if not isinstance(question, str) or not isinstance(answer, str):
            raise Problem(422, "invalid-request", form)
        if len(question) > QUESTION_LIMIT_CHARS or len(answer) > ANSWER_LIMIT_CHARS:
            most = f"{QUESTION_LIMIT_CHARS:,} and {ANSWER_LIMIT_CHARS:,} characters"
            raise Problem(422, "invalid-request", f"A question or answer of history is too long; at most {most}.")
        turns.append(Turn(question, answer))
    return tuple(turns)
