"""All parts as one OpenAPI 3.1 document."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from rag.serving.description.chat import CHAT_REPLIES
from rag.serving.description.pieces import Schema, content, ref, text
from rag.serving.description.replies import REPLIES, problem_schema
from rag.serving.description.routes import JSON, PATHS
from rag.serving.envelope import HEAD_LIMIT_BYTES

VERSION = "0.1.0"
_ABOUT = (
    "Answers questions from a box of Markdown cards, in Spanish and English, with sentences that cite the cards they "
    "come from. What is described for GET answers HEAD as well, and OPTIONS names the methods of a path. Any other "
    "method is 405, any other path 404, both as a problem document. The head of a request has at most "
    f"{HEAD_LIMIT_BYTES:,} bytes; what is no HTTP gets a 400 in plain "
    "text, and so does, as a problem document, a body that has both a length and chunks."
)
_TOKEN = (
    "A token opens the cards of its groups. Without one the caller sees the public cards; an unknown one is 401 on "
    "every route that looks at it."
)
# where a header, too, says what the caller should do
_HEADERS_OF = {
    401: {"WWW-Authenticate": {"schema": {"const": "Bearer"}}},
    **{status: {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}} for status in (429, 503)},
}


def describe() -> dict[str, Any]:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "fichero", "version": VERSION, "description": _ABOUT},
        # no token, or a known one
        "security": [{}, {"bearer": []}],
        "paths": PATHS,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": _TOKEN}},
            "schemas": REPLIES | CHAT_REPLIES,
            "responses": _responses("Problem") | _responses("Chat"),
            "headers": {
                "RequestId": {"required": True, "schema": text("The request's own id.", pattern="^[0-9a-f]{32}$")},
                "EntityTag": {"required": True, "schema": text("Of these very bytes.")},
            },
            "parameters": {
                "IfNoneMatch": {
                    "name": "If-None-Match",
                    "in": "header",
                    "schema": text("The tags that the caller has."),
                }
            },
        },
    }


_OF_HEADS = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)


def _responses(kind: str) -> Schema:
    """Each response that some route of this kind refuses with."""
    names = {
        reply["$ref"].rpartition("/")[2]
        for path in PATHS.values()
        for operation in path.values()
        for reply in operation["responses"].values()
        if "$ref" in reply
    }
    statuses = sorted(int(name.removeprefix(kind)) for name in names if name.startswith(kind))
    return {f"{kind}{status}": _response(kind, status) for status in statuses}


def _response(kind: str, status: int) -> Schema:
    body: Schema = {}
    # a head that is wrong is refused before anyone looks at the path
    if kind == "Problem" or status in _OF_HEADS:
        body |= content("application/problem+json", problem_schema(status))
    if kind == "Chat" and status != HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        body |= content(JSON, ref("ChatError"))
    headers = {"X-Request-Id": ref("RequestId", kind="headers"), **_HEADERS_OF.get(status, {})}
    return {"description": HTTPStatus(status).phrase, "headers": headers, "content": body}
