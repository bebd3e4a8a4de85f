"""An answer as a chat completion, whole or in chunks."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import orjson

from rag.answering import CitationShown, Event, TextShown
from rag.records import Answer
from rag.serving.chat.errors import error_document
from rag.serving.chat.wording import Wording, content_of
from rag.serving.problems import FAULT, Problem

_log = logging.getLogger(__name__)

MODEL = "fichero"
"""The only one there is, whatever writes the answers."""
_DONE = b"data: [DONE]\n\n"


def model_list() -> dict[str, Any]:
    """What there is to choose from; the box has a name, and no date."""
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}]}


def completion(answer: Answer, *, created: int) -> dict[str, Any]:
    """A whole answer; ``created`` is in seconds since 1970. The field ``fichero`` is the answer object of /ask."""
    content = content_of(answer)
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return {
        **_head("chat.completion", answer.request_id, created),
        "choices": [choice],
        "usage": _usage(answer.question, content),
        "fichero": answer,
    }


async def chunk_blocks(
    events: AsyncGenerator[Event, None], request_id: str, *, created: int, include_usage: bool
) -> AsyncGenerator[bytes, None]:
    """
    Events of an answer as blocks of a stream; a fault becomes the last one.

    The contents together are the text of the whole answer. The chunk that says so holds the answer object.
    """
    head = _head("chat.completion.chunk", request_id, created) | ({"usage": None} if include_usage else {})
    wording, content = Wording(), ""
    try:
        async with aclosing(events):
            yield _chunk(head, {"role": "assistant", "content": ""})
            async for event in events:
                text = ""
                if isinstance(event, TextShown | CitationShown):
                    text = wording.show(event)
                elif isinstance(event, Answer):
                    text = wording.finish(event)
                content += text
                if text:
                    yield _chunk(head, {"content": text})
                if isinstance(event, Answer):
                    yield _chunk(head, {}, finish_reason="stop", fichero=event)
                    if include_usage:
                        yield _block(head | {"choices": [], "usage": _usage(event.question, content)})
        yield _DONE
    except Problem as problem:
        yield chat_problem_block(problem)
    except Exception:
        _log.exception("request %s failed", request_id)
        yield chat_problem_block(FAULT)


def chat_problem_block(problem: Problem) -> bytes:
    """A problem as the last block of a stream."""
    return _block(error_document(problem))


def _head(kind: str, request_id: str, created: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{request_id}", "object": kind, "created": created, "model": MODEL}


def _chunk(head: dict[str, Any], delta: dict[str, str], *, finish_reason: str | None = None, **more: object) -> bytes:
    return _block(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]} | more)


def _block(data: object) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


def _usage(question: str, content: str) -> dict[str, int]:
    """Words in place of tokens: nobody is billed, and no model's tokens are those of the client."""
    asked, said = len(question.split()), len(content.split())
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
