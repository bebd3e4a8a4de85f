"""Asking for JSON in the strictest way that an endpoint understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REFUSING = frozenset({400, 415, 422})
"""How endpoints refuse a format. 404 is none of these: the services that answer it mean the address or the model."""
FORMS = 3
_NAME = "response_format"


class Formats:
    """Ways to ask for JSON, the strictest first, and the one that worked last."""

    def __init__(self) -> None:
        self.working = 0

    def addition(self, form: int, json_schema: Mapping[str, Any] | None) -> dict[str, Any]:
        """What to add to a request."""
        if json_schema is None or form == FORMS - 1:
            return {}
        if form == 0:
            strict = {"name": "answer", "strict": True, "schema": json_schema}
            return {_NAME: {"type": "json_schema", "json_schema": strict}}
        return {_NAME: {"type": "json_object"}}

    @staticmethod
    def is_refused(payload: Mapping[str, Any], status: int, said: str) -> bool:
        """Whether a failure is the format's: by its status, or as the server names it, whatever the status."""
        return _NAME in payload and (status in REFUSING or _NAME in said)
