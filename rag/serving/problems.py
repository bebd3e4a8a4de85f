"""Errors as RFC 9457 problem documents: a stable type, one clear sentence, and never the caller's own text."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_log = logging.getLogger(__name__)

# slug → title, and the statuses under which it is sent
_PROBLEMS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "invalid-request": ("The request cannot be read", (400, 422, 431)),
    "question-empty": ("There is no question", (422,)),
    "question-without-words": ("The question has no words", (422,)),
    "question-too-long": ("The question is too long", (422,)),
    "body-too-large": ("The request is too large", (413,)),
    "request-timeout": ("The request came too slowly", (408,)),
    "unsupported-media-type": ("The request is of an unknown kind", (415,)),
    "unauthorized": ("The token is not known", (401,)),
    "not-found": ("There is nothing here", (404,)),
    "model-not-found": ("There is no such model", (404,)),
    "method-not-allowed": ("This method does not work here", (405,)),
    "not-ready": ("The service is not ready", (503,)),
    "overloaded": ("The service has too much to do", (503,)),
    "too-many-requests": ("There are too many requests", (429,)),
    "stopping": ("The service is being stopped", (503,)),
    "internal": ("Something went wrong here", (500,)),
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


def problem_type(slug: str) -> str:
    """The name by which programs know a problem; it does not change."""
    return f"urn:fichero:problem:{slug}"


def slugs_of(status: int) -> list[str]:
    """The problems that are sent under a status, in a fixed order."""
    return [slug for slug, (_, statuses) in _PROBLEMS.items() if status in statuses]


def problem_document(problem: Problem) -> dict[str, str | int]:
    """What RFC 9457 says of a problem."""
    return {
        "type": problem_type(problem.slug),
        "title": _PROBLEMS[problem.slug][0],
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
    detail = f"{_PROBLEMS[slug][0]}." if slug != "method-not-allowed" else f"Use one of: {headers.get('Allow', 'GET')}."
    return problem_response(Problem(error.status_code, slug, detail, headers=headers))


async def handle_fault(request: Request, error: Exception) -> Response:
    """Exception handler for a fault of ours: the log has it, the caller only that it happened."""
    _log.error("request %s failed", request.scope.get("request_id", "-"), exc_info=error)
    return problem_response(FAULT)
