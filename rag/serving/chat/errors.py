"""Problems in the shape that chat clients read, with the same words and never the caller's own."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from rag.serving.problems import FAULT, Problem

_log = logging.getLogger(__name__)

_CODES = {"unauthorized": "invalid_api_key"}
"""Where clients know a code; else it is the problem's own name."""

Endpoint = Callable[[Request], Awaitable[ASGIApp]]


class ParameterRefused(Problem):
    """A parameter of a chat request that cannot be used."""

    def __init__(self, parameter: str, detail: str, *, status: int = 400, slug: str = "invalid-request") -> None:
        super().__init__(status, slug, detail)
        self.parameter = parameter


def with_chat_errors(endpoint: Endpoint) -> Endpoint:
    """A handler whose problems, and faults of ours, are replies of OpenAI's shape."""

    @functools.wraps(endpoint)
    async def handle(request: Request) -> ASGIApp:
        try:
            return await endpoint(request)
        except Problem as problem:
            return _error_response(problem)
        except Exception:
            _log.exception("request %s failed", request.scope.get("request_id", "-"))
            return _error_response(FAULT)

    return handle


def error_document(problem: Problem) -> dict[str, Any]:
    """What chat clients read of a problem."""
    return {
        "error": {
            "message": problem.detail,
            "type": "invalid_request_error" if problem.status < 500 else "server_error",
            "param": problem.parameter if isinstance(problem, ParameterRefused) else None,
            "code": _CODES.get(problem.slug, problem.slug.replace("-", "_")),
        }
    }


def _error_response(problem: Problem) -> Response:
    return Response(
        orjson.dumps(error_document(problem)),
        # clients know 400 alone for what they sent
        status_code=400 if problem.status == 422 else problem.status,
        headers=problem.headers,
        media_type="application/json",
    )
