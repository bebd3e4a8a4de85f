"""A chat request to a question: the last message of the user, and what was said before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import Request

from rag.records import Turn
from rag.serving.chat.errors import ParameterRefused
from rag.serving.chat.replies import MODEL
from rag.serving.chat.wording import without_numbers
from rag.serving.problems import Problem
from rag.serving.questions import (
    ANSWER_LIMIT_CHARS,
    QUESTION_LIMIT_CHARS,
    TURNS_LIMIT,
    Question,
    check_text,
    media_type,
    read_body,
)

IGNORED_ROLES = ("system", "developer", "tool", "function")
"""Whose messages are no part of the question."""
_FORM = '{"messages": [{"role": "user", "content": "..."}]}'


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat request that may be answered."""

    question: Question
    include_usage: bool
    """Whether a stream should end in what was counted."""


async def read_chat(request: Request) -> Chat:
    """
    Read the question of a chat request; parameters that mean nothing here are ignored.

    Raises:
        Problem: 400, 404, 408, 413, 415 or 422, and why.
    """
    if media_type(request) != "application/json":
        raise Problem(415, "unsupported-media-type", "Send the messages with Content-Type application/json.")
    body = await read_body(request)
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Problem(400, "invalid-request", f"The body is not JSON. Send {_FORM}.") from error
    if not isinstance(found, dict):
        raise Problem(400, "invalid-request", f"The body is not an object. Send {_FORM}.")
    _check_model(found.get("model"))
    if found.get("n") is not None and (found["n"] is True or found["n"] != 1):
        raise ParameterRefused("n", "There is one answer to a question; leave n out or send 1.")
    stream = _check_flag(found.get("stream"), "stream")
    include_usage = _check_stream_options(found.get("stream_options"))
    text, history = _check_messages(found.get("messages"))
    return Chat(Question(text, None, stream, history), include_usage)


def _check_model(value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise ParameterRefused("model", f'model is not text; send "{MODEL}" or leave it out.')
    if value != MODEL:
        detail = f'There is no such model here; send "{MODEL}" or leave it out.'
        raise ParameterRefused("model", detail, status=404, slug="model-not-found")


def _check_flag(value: object, name: str) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise ParameterRefused(name, f"{name} is neither true nor false.")
    return value


def _check_stream_options(value: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, dict):
        raise ParameterRefused("stream_options", 'stream_options is not an object like {"include_usage": true}.')
    return _check_flag(value.get("include_usage"), "stream_options.include_usage")


def _check_messages(value: object) -> tuple[str, tuple[Turn, ...]]:
    """The question, and the turns before it: the last ones, each cut to what a turn may have."""
    if not isinstance(value, list):
        raise ParameterRefused("messages", f"messages is not a list of messages. Send {_FORM}.")
    said = [message for number, found in enumerate(value) for message in _read_message(found, f"messages[{number}]")]
    asked = [at for at, (role, _) in enumerate(said) if role == "user"]
    if not asked:
        raise ParameterRefused("messages", f"There is no message of the user. Send {_FORM}.", slug="question-empty")
    try:
        text = check_text(said[asked[-1]][1], "messages")
    except Problem as problem:
        raise ParameterRefused("messages", problem.detail, slug=problem.slug) from problem
    return text, _turns(said[: asked[-1]])


def _turns(said: Sequence[tuple[str, str]]) -> tuple[Turn, ...]:
    """A question without an answer is a turn; an answer without a question, such as a greeting, is none."""
    turns: list[Turn] = []
    for role, text in said:
        if role == "user":
            turns.append(Turn(text[:QUESTION_LIMIT_CHARS]))
        elif turns:
            answer = "\n".join(part for part in (turns[-1].answer, without_numbers(text)) if part)
            turns[-1] = Turn(turns[-1].question, answer[:ANSWER_LIMIT_CHARS])
    return tuple(turn for turn in turns if turn.question.strip())[-TURNS_LIMIT:]


def _read_message(value: object, name: str) -> list[tuple[str, str]]:
    """Role and text of a message; nothing of one that is no part of the conversation."""
    if not isinstance(value, dict):
        raise ParameterRefused(name, f"A message is not an object. Send {_FORM}.")
    role = value.get("role")
    if role in IGNORED_ROLES:
        return []
    if role not in ("user", "assistant"):
        known = ", ".join(("user", "assistant", *IGNORED_ROLES))
        raise ParameterRefused(f"{name}.role", f"A message is of an unknown role. Known: {known}.")
    content = value.get("content")
    if content is None and role == "assistant":
        return []
    return [(role, _read_content(content, f"{name}.content"))]


def _read_content(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ParameterRefused(name, "The content of a message is neither text nor a list of parts.")
    if not all(isinstance(part, dict) and part.get("type") == "text" for part in value):
        raise ParameterRefused(name, 'A part of a message is no text; only {"type": "text", "text": "..."} is read.')
    texts = [part.get("text") for part in value]
    if not all(isinstance(text, str) for text in texts):
        raise ParameterRefused(name, "The text of a part is not a string.")
    return "\n".join(texts)
