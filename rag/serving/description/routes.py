"""Every route: what it takes, and all that it can reply."""

from __future__ import annotations

from rag.serving.description.chat import CHAT_REQUEST
from rag.serving.description.pieces import Schema, content, event, ref, text
from rag.serving.description.questions import (
    ASK,
    ASK_FORM,
    ASK_PARAMETERS,
    LANGUAGE_PARAMETER,
    SEARCH,
    SEARCH_FORM,
    path_parameter,
)
from rag.serving.questions import BODY_LIMIT_BYTES, BODY_SECONDS

JSON, FORM, STREAM = "application/json", "application/x-www-form-urlencoded", "text/event-stream"

# a head can be wrong on any route; then whose token is looked at, and who needs the index
_EVERYWHERE = (400, 431, 500)
_CALLER = (401, *_EVERYWHERE)
_INDEX = (503, *_CALLER)
# and what costs time, so that there can be too much of it
_COSTLY = (429, *_INDEX)
_BODY = (408, 413, 415)
_HEADERS = {"X-Request-Id": ref("RequestId", kind="headers")}

_ASK_EVENTS = {
    "sources": ref("SourcesEvent"),
    "delta": ref("TextSegment"),
    "citation": ref("CitationEvent"),
    "done": ref("Answer"),
    "error": ref("Problem"),
}
_ASK_STREAM = content(
    STREAM,
    {
        "description": "Each event: sources, then delta and citation as they come, and last either done, whose answer "
        "counts in place of all pieces before, or error. A comment comes after each ten seconds of silence.",
        "anyOf": [event(data, name) for name, data in _ASK_EVENTS.items()],
    },
)
_CHAT_STREAM = content(
    STREAM,
    {
        "description": "Each event: chunks, and [DONE] as the last one, or an error.",
        "anyOf": [
            event(ref("CompletionChunk")),
            event(ref("ChatError")),
            {"type": "object", "properties": {"data": {"const": "[DONE]"}}, "required": ["data"]},
        ],
    },
)


def _reply(description: str, *bodies: Schema, **more: object) -> Schema:
    kinds = {kind: value for body in bodies for kind, value in body.items()}
    return {"description": description, "headers": _HEADERS, "content": kinds, **more}


def _operation(
    name: str,
    summary: str,
    reply: Schema,
    problems: tuple[int, ...],
    *,
    in_chat: bool = False,
    **more: object,
) -> Schema:
    kind = "Chat" if in_chat else "Problem"
    refused = {str(status): ref(f"{kind}{status}", kind="responses") for status in sorted(problems)}
    # where nobody's token is looked at, none is asked for
    security: Schema = {} if 401 in problems else {"security": []}
    return {"operationId": name, "summary": summary, "responses": {"200": reply, **refused}, **security, **more}


def _body(*kinds: Schema) -> Schema:
    limit = f"At most {BODY_LIMIT_BYTES:,} bytes, all of them within {BODY_SECONDS:.0f} seconds."
    bodies = {kind: value for body in kinds for kind, value in body.items()}
    return {"requestBody": {"description": limit, "required": True, "content": bodies}}


def _object(schema: str) -> Schema:
    return content(JSON, ref(schema))


def _links(*operations: str) -> Schema:
    """Where the first card of a list can be had."""
    card = {"card_id": "$response.body#/cards/0/card_id"}
    return {operation: {"operationId": operation, "parameters": card} for operation in operations}


def _file(name: str, summary: str, kind: str, *parameters: Schema, problems: tuple[int, ...]) -> Schema:
    """A file that callers may keep; they say which one they have, and get it only if it is another one now."""
    reply = _reply("The file.", content(kind, {}))
    reply["headers"] = {**_HEADERS, "ETag": ref("EntityTag", kind="headers")}
    operation = _operation(name, summary, reply, problems)
    operation["parameters"] = [*parameters, ref("IfNoneMatch", kind="parameters")]
    operation["responses"]["304"] = {"description": "The caller has it.", "headers": reply["headers"]}
    return operation


_CARD = [path_parameter("card_id", "The id of a card.")]
_NAME = path_parameter("name", "The name of a file.", example="app.js")
_ASKED = _reply("An answer or a refusal; events if stream is true.", _object("Answer"), _ASK_STREAM)

PATHS: Schema = {
    "/": {"get": _file("page", "The page.", "text/html", problems=_EVERYWHERE)},
    "/ask": {
        "get": _operation("askByAddress", "Ask.", _ASKED, (422, *_COSTLY), parameters=ASK_PARAMETERS),
        "post": _operation(
            "ask", "Ask.", _ASKED, (*_BODY, 422, *_COSTLY), **_body(content(JSON, ASK), content(FORM, ASK_FORM))
        ),
    },
    "/search": {
        "post": _operation(
            "search",
            "Retrieve, and do not answer.",
            _reply("The cards found.", _object("Found")),
            (*_BODY, 422, *_COSTLY),
            **_body(content(JSON, SEARCH), content(FORM, SEARCH_FORM)),
        )
    },
    "/v1/chat/completions": {
        "post": _operation(
            "chat",
            "Ask, in the protocol of OpenAI. The keys public and the empty one stand for no token.",
            _reply("An answer or a refusal as text; events if stream is true.", _object("Completion"), _CHAT_STREAM),
            (*_BODY, 404, *_COSTLY),
            in_chat=True,
            **_body(content(JSON, CHAT_REQUEST)),
        )
    },
    "/v1/models": {
        "get": _operation("models", "The one model.", _reply("It.", _object("Models")), _CALLER, in_chat=True)
    },
    "/cards": {
        "get": _operation(
            "listCards",
            "The cards.",
            _reply("All that the caller may see.", _object("CardList"), links=_links("card", "cardFile")),
            _INDEX,
        )
    },
    "/cards/{card_id}.md": {
        "get": _operation(
            "cardFile",
            "A card as a Markdown file.",
            _reply("The file.", content("text/markdown", text("Front matter and text."))),
            (404, *_INDEX),
            parameters=_CARD,
        )
    },
    "/cards/{card_id}": {
        "get": _operation("card", "A card.", _reply("It.", _object("Card")), (404, *_INDEX), parameters=_CARD)
    },
    "/suggestions": {
        "get": _operation(
            "suggestions",
            "Questions to begin with.",
            _reply("At most six.", _object("Suggestions")),
            (422, *_INDEX),
            parameters=[LANGUAGE_PARAMETER],
        )
    },
    "/whoami": {"get": _operation("whoami", "Who is asking.", _reply("Their groups.", _object("Caller")), _CALLER)},
    "/healthz": {
        "get": _operation("alive", "Whether the process is alive.", _reply("It is.", _object("Alive")), _EVERYWHERE)
    },
    "/readyz": {
        "get": _operation(
            "ready", "Whether questions are answered.", _reply("They are.", _object("Ready")), (503, *_EVERYWHERE)
        )
    },
    "/metrics": {
        "get": _operation(
            "metrics",
            "Counts for Prometheus.",
            _reply("The counts.", content("text/plain", text("In the text format of Prometheus."))),
            _EVERYWHERE,
        )
    },
    "/openapi.json": {"get": _file("openapi", "This description.", JSON, problems=_EVERYWHERE)},
    "/static/{name}": {"get": _file("file", "A file of the page.", "*/*", _NAME, problems=(404, *_EVERYWHERE))},
    "/static/{version}/{name}": {
        "get": _file(
            "versionedFile",
            "A file of the page, which never changes under its version.",
            "*/*",
            path_parameter("version", "The version of all files, as the page names it."),
            _NAME,
            problems=(404, *_EVERYWHERE),
        )
    },
}
