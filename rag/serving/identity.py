"""Bearer token to groups."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from starlette.requests import Request

from rag.records import PUBLIC_GROUP
from rag.serving.problems import Problem

PUBLIC_KEYS = frozenset({"", "public"})
"""Tokens that stand for none on routes for clients that cannot do without one."""
_SCHEME = "bearer"


def groups_of(
    request: Request, tokens: Mapping[str, frozenset[str]], *, stand_for_none: Collection[str] = ()
) -> frozenset[str]:
    """
    The groups of a caller: everyone is public; a known token adds its own.

    ``tokens`` maps the SHA-256 of a token to its groups; looking up a hash tells nothing about the token by its time.
    Tokens of ``stand_for_none`` are as good as no header, unless they are known.

    Raises:
        Problem: 401, the header holds no known bearer token.
    """
    header = request.headers.get("authorization")
    if header is None:
        return frozenset({PUBLIC_GROUP})
    scheme, _, token = header.partition(" ")
    # browsers send the letters of Latin-1 as such, curl sends UTF-8; what was hashed was UTF-8
    received = token.strip().encode("latin-1")
    spellings = (received, received.decode("latin-1").encode("utf-8"))
    hashes = [hashlib.sha256(spelling).hexdigest() for spelling in spellings]
    groups = next((tokens[digest] for digest in hashes if digest in tokens), None)
    if groups is None and token.strip() in stand_for_none:
        groups = frozenset()
    if scheme.lower() != _SCHEME or groups is None:
        raise Problem(
            401,
            "unauthorized",
            "Send a known token as Authorization: Bearer TOKEN, or no Authorization header for the public cards.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return groups | {PUBLIC_GROUP}
