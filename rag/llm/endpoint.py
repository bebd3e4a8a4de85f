"""One chat endpoint: requests to it, and what is refused of its responses before anybody reads an answer in them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from rag.llm.faults import UNQUOTED, Faults, LlmFailed, Retriable
from rag.llm.replies import error_message
from rag.llm.retrying import Patience

_RETRIED = frozenset({408, 429})
_TALKATIVE = ("httpx", "httpcore.connection", "httpcore.http11")


class Endpoint:
    """Address and key; the key shows in nothing but the header of a request."""

    def __init__(self, base_url: str, key: str | None) -> None:
        self.url = httpx.URL(base_url.rstrip("/") + "/chat/completions")
        self.where = f"{self.url.scheme}://{self.url.netloc.decode()}{self.url.path}"
        self.faults = Faults(self.where, key)
        self._key = key

    def request(self, http: httpx.AsyncClient, payload: Mapping[str, Any]) -> httpx.Request:
        # a body that unpacks to a thousand times its size is not asked for
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        return http.build_request("POST", self.url, headers=headers, content=content)

    def refuse_encoding(self, response: httpx.Response) -> None:
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise self.faults.bad("is compressed although that was not asked for")

    async def body(self, response: httpx.Response, limit_bytes: int) -> bytes:
        """All of a body, uncompressed and of a bounded size."""
        self.refuse_encoding(response)
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > limit_bytes:
                raise self.faults.too_large(limit_bytes)
        return bytes(body)

    async def error_text(self, response: httpx.Response, limit_bytes: int) -> str:
        """What an error says in words; nothing where they would not be shown anyway."""
        if 300 <= response.status_code < 400 or response.status_code in UNQUOTED:
            return ""
        try:
            return error_message(await self.body(response, limit_bytes))
        except LlmFailed:
            return ""

    def refusal(
        self, response: httpx.Response, said: str, prompts: Sequence[str], patience: Patience
    ) -> LlmFailed | Retriable:
        """What a status other than 200 is to be answered with, after what the server ``said``."""
        status = response.status_code
        passes = status in _RETRIED or status >= 500
        failed = self.faults.status(status, said, prompts, passes=passes)
        return Retriable(failed, patience.asked_seconds(response.headers.get("retry-after"))) if passes else failed


def hush_transport() -> None:
    """
    Keep what httpx and httpcore tell below a warning out of all logs.

    They repeat a response's reason and headers as they come, and a server may put prompt or key there.
    """
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING
