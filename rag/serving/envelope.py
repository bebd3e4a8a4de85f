"""Around every request: an id, a bounded head, security headers, and one line in the log."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag.serving.logs import noted
from rag.serving.problems import Problem, problem_response

_log = logging.getLogger(__name__)

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # markup made from text is refused by the browser itself
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


HEAD_LIMIT_BYTES = 65_536
_HEAD_TOO_LARGE = Problem(431, "invalid-request", f"The headers have more than {HEAD_LIMIT_BYTES:,} bytes.")
# a proxy in front may believe the other one, and take what is behind it for the request of somebody else
_TWO_LENGTHS = Problem(
    400,
    "invalid-request",
    "The request says its length in two ways, as Content-Length and as Transfer-Encoding; send one of them.",
    headers={"Connection": "close"},
)


def raw_reply(problem: Problem) -> Callable[[], bytes]:
    """What makes whole replies as they go over the wire, with the headers that every reply has and an id each."""
    response = problem_response(problem)
    headers = MutableHeaders(raw=response.raw_headers)
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Cache-Control", "no-store")
    lines = [b"HTTP/1.1 %d %s" % (problem.status, HTTPStatus(problem.status).phrase.encode())]
    lines += [name + b": " + value for name, value in headers.raw]
    before, after = b"\r\n".join([*lines, b"X-Request-Id: "]), b"\r\n\r\n" + bytes(response.body)
    return lambda: before + uuid.uuid4().hex.encode() + after


_LEFT = 499
"""In place of a status: the caller left before there was one."""


class Envelope:
    """
    ASGI middleware. The id goes into ``scope["request_id"]`` and the header ``X-Request-Id``; what the log should say
    beside a request's status goes into ``scope["notes"]``, a dict of names and values, none of them a caller's words.
    """

    def __init__(self, app: ASGIApp, ended: Callable[[str, int, float], None]) -> None:
        """``ended`` is called after each request with its route, its status and the seconds that it took."""
        self.app = app
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = scope["request_id"] = uuid.uuid4().hex
        notes: dict[str, Any] = {}
        scope["notes"] = notes
        started, status = time.perf_counter(), _LEFT

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                headers["X-Request-Id"] = request_id
            await send(message)

        refusal = _refusal_of(scope)
        app = problem_response(refusal) if refusal else self.app
        try:
            await app(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - started
            # neither path nor method as it came, and no question: these are the caller's own words
            route = _route_of(scope)
            self._ended(route, status, seconds)
            line = {"request_id": request_id, "route": route, "status": status, "ms": round(seconds * 1e3, 1)}
            _log.info("request", extra=noted(**line, **notes))


def _route_of(scope: Scope) -> str:
    """The name of what served a request: one of a few."""
    return getattr(scope.get("endpoint"), "__name__", "none")


def _refusal_of(scope: Scope) -> Problem | None:
    """What is wrong with a head that the server let through."""
    # the server bounds a head that is still coming in, and not one that comes in one piece
    if _head_bytes(scope) > HEAD_LIMIT_BYTES:
        return _HEAD_TOO_LARGE
    return _TWO_LENGTHS if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]} else None


def _head_bytes(scope: Scope) -> int:
    return len(scope.get("raw_path") or b"") + sum(len(name) + len(value) for name, value in scope["headers"])
