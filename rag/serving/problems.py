"""Errors as RFC 9457 problem documents: a stable type, one clear sentence, and never the caller's own text."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_log = logging.getLogger(__name__)

_TITLES = {
    "invalid-request": "The request cannot be read",
    "question-empty": "There is no question",
    "question-without-words": "The question has no words",
    "question-too-long": "The question is too long",
    "body-too-large": "The request is too large",
    "request-timeout": "The request came too slowly",
    "unsupported-media-type": "The request is of an unknown kind",
    "unauthorized": "The token is not known",
    "not-found": "There is nothing here",
    "model-not-found": "There is no such model",
    "method-not-allowed": "This method does not work here",
    "not-ready": "The service is not ready",
    "overloaded": "The service has too much to do",
    "too-many-requests": "There are too many requests",
    "stopping": "The service is being stopped",
    "internal": "Something went wrong here",
}
_OF_STATUS = {404: "not-found", 405: "method-not-allowed"}


class Problem(Exception):
    """A request that cannot be served, and what its sender can do about it."""

    def __init__(self, status: int, slug: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.detail = detail
        self.headers = dict(headers or {})


FAULT = Problem(500, "internal", "The fault was logged. Try again, or tell the operator.")
"""What a caller is told of a fault of ours."""


def problem_document(problem: Problem) -> dict[str, str | int]:
    """What RFC 9457 says of a problem."""
    return {
        "type": f"urn:fichero:problem:{problem.slug}",
        "title": _TITLES[problem.slug],
        "status": problem.status,
        "detail": problem.detail,
    }


def problem_response(problem: Problem) -> Response:
    """The problem document as a response."""
    return Response(
        orjson.dumps(problem_document(problem)),
        status_code=problem.status,
        headers=problem.headers,
        media_type="application/problem+json",
    )


async def handle_problem(request: Request, error: Exception) -> Response:
    """Exception handler for ``Problem``."""
    if not isinstance(error, Problem):
        raise error
    return problem_response(error)


async def handle_http_exception(request: Request, error: Exception) -> Response:
    """Exception handler for what routing refuses; OPTIONS is answered with the methods there are."""
    if not isinstance(error, HTTPException):
        raise error
    headers = dict(error.headers or {})
    if error.status_code == 405 and request.method == "OPTIONS":
        return Response(status_code=204, headers=headers)
    slug = _OF_STATUS.get(error.status_code, "invalid-request" if error.status_code < 500 else "internal")
    detail = f"{_TITLES[slug]}." if slug != "method-not-allowed" else f"Use one of: {headers.get('Allow', 'GET')}."
    return problem_response(Problem(error.status_code, slug, detail, headers=headers))


async def handle_fault(request: Request, error: Exception) -> Response:
    """Exception handler for a fault of ours: the log has it, the caller only that it happened."""
    _log.error("request %s failed", request.scope.get("request_id", "-"), exc_info=error)
    return problem_response(FAULT)
