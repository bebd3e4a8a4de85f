"""The log, a line an event: a JSON object for programs, or text for people."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from rag.settings import LOG_FORMATS


def configure_logging(level: str, log_format: str) -> None:
    """Have all loggers write to standard error; ``level`` in lower case, ``log_format`` one of ``LOG_FORMATS``."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if log_format == LOG_FORMATS[0] else PlainLines())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def noted(**fields: Any) -> dict[str, Any]:
    """What a line holds beside its message, for the ``extra`` of a logger's call."""
    return {"fields": fields}


class JsonLines(logging.Formatter):
    """``time`` (ISO 8601, UTC), ``level``, ``logger``, ``message``, then what was noted, and ``exception`` if any."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        found: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(found, default=str).decode()


class PlainLines(logging.Formatter):
    """Time, level, logger and message, then ``name=value`` of what was noted."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The first line."""
        return " ".join(
            [super().formatMessage(record), *(f"{name}={value}" for name, value in _fields(record).items())]
        )


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields
