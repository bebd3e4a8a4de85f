"""What chat clients send and get, as schemas."""

from __future__ import annotations

from rag.serving.chat import IGNORED_ROLES, MODEL
from rag.serving.description.pieces import Schema, choice, list_of, or_null, record, ref, text, truth, whole
from rag.serving.description.questions import QUESTION

_CHAT_HEAD = {
    "id": text("chatcmpl- and the request's id.", pattern="^chatcmpl-"),
    "created": whole("In seconds since 1970.", minimum=0),
    "model": {"const": MODEL},
}
_INDEX = {"index": {"const": 0}}

_CHUNK = {
    **_CHAT_HEAD,
    "object": {"const": "chat.completion.chunk"},
    "choices": list_of(
        record(
            "The only choice.",
            {
                **_INDEX,
                "delta": record(
                    "What is added.",
                    {"role": {"const": "assistant"}, "content": text("A piece of the text.")},
                    required=[],
                ),
                "finish_reason": or_null(choice("In the last one with a choice.", "stop")),
            },
        ),
        "One, or none beside the usage.",
        maxItems=1,
    ),
    "usage": or_null(ref("Usage")),
    "fichero": ref("Answer"),
}

CHAT_REPLIES: dict[str, Schema] = {
    "Usage": record(
        "Words in place of tokens.",
        {name: whole("Words.", minimum=0) for name in ("prompt_tokens", "completion_tokens", "total_tokens")},
    ),
    "Completion": record(
        "An answer as a chat completion.",
        {
            **_CHAT_HEAD,
            "object": {"const": "chat.completion"},
            "choices": list_of(
                record(
                    "The only choice.",
                    {
                        **_INDEX,
                        "message": record(
                            "What is said.",
                            {"role": {"const": "assistant"}, "content": text("With numbers, and the cards behind.")},
                        ),
                        "finish_reason": {"const": "stop"},
                    },
                ),
                "One.",
                minItems=1,
                maxItems=1,
            ),
            "usage": ref("Usage"),
            "fichero": ref("Answer"),
        },
    ),
    "CompletionChunk": record(
        "A piece of an answer. The one that has a finish_reason holds the answer object; the last may hold the usage.",
        _CHUNK,
        required=[name for name in _CHUNK if name not in ("usage", "fichero")],
    ),
    "Models": record(
        "What there is to choose from.",
        {
            "object": {"const": "list"},
            "data": list_of(
                record(
                    "A model.",
                    {
                        "id": {"const": MODEL},
                        "object": {"const": "model"},
                        "created": {"const": 0},
                        "owned_by": {"const": MODEL},
                    },
                ),
                "One.",
            ),
        },
    ),
    "ChatError": record(
        "An error in the shape that chat clients know.",
        {
            "error": record(
                "What went wrong.",
                {
                    "message": text("What to do about it."),
                    "type": choice("Whose fault it is.", "invalid_request_error", "server_error"),
                    "param": or_null(text("The parameter that it is about.")),
                    "code": text("Stable."),
                },
            )
        },
    ),
}
"""By the name under which ``components`` holds it."""

_PARTS = list_of(
    {
        "type": "object",
        "description": "A part; others than texts are refused.",
        "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
        "required": ["type", "text"],
    },
    "Texts that belong together.",
)


def _message(description: str, roles: list[str], content: Schema | None, *, required: list[str]) -> Schema:
    properties = {"role": {"enum": roles}} | ({"content": content} if content else {})
    return {"type": "object", "description": description, "properties": properties, "required": ["role", *required]}


CHAT_REQUEST: Schema = {
    "type": "object",
    "description": "Parameters that are not named here are ignored.",
    "properties": {
        "messages": list_of(
            {
                "oneOf": [
                    _message("A question.", ["user"], {"oneOf": [QUESTION, _PARTS]}, required=["content"]),
                    _message(
                        "What was answered.",
                        ["assistant"],
                        {"oneOf": [{"type": ["string", "null"]}, _PARTS]},
                        required=[],
                    ),
                    _message("No part of the question.", list(IGNORED_ROLES), None, required=[]),
                ]
            },
            "The last message of the user is the question, and what was said before it the history.",
            contains={"properties": {"role": {"const": "user"}}, "required": ["role"]},
        ),
        "model": or_null(choice("The only one there is.", MODEL)),
        "n": {"enum": [1, None], "description": "There is one answer."},
        "stream": or_null(truth("Whether the answer is wanted in pieces.")),
        "stream_options": {
            "type": ["object", "null"],
            "properties": {"include_usage": or_null(truth("Whether a stream ends in the usage."))},
        },
    },
    "required": ["messages"],
}
