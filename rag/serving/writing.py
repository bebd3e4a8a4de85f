"""Settings to the writer of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag.errors import SettingsInvalid
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.answering.generated import Writer

TOKEN_BYTES = 400
"""Of a token in a stream, with all that is sent around it."""


def writer_of(settings: Settings) -> Writer | None:
    """
    The language model that the settings name; None where they name none.

    Raises:
        SettingsInvalid: its address is set and its name is not, or the other way round.
    """
    if settings.llm_base_url is None and settings.llm_model is None:
        return None
    if settings.llm_base_url is None or settings.llm_model is None:
        missing = "FICHERO_LLM_MODEL" if settings.llm_model is None else "FICHERO_LLM_BASE_URL"
        raise SettingsInvalid(
            f"{missing} is not set. A language model needs both its address and its name, or neither."
        )
    # costs nothing where there is none
    from rag.answering.generated import Writer  # noqa: PLC0415
    from rag.llm import ChatClient, StreamLimits  # noqa: PLC0415

    client = ChatClient(settings.llm_base_url, settings.llm_model, api_key=settings.llm_api_key)
    limits = StreamLimits(
        connect_seconds=settings.llm_connect_seconds,
        first_byte_seconds=settings.llm_first_byte_seconds,
        idle_seconds=settings.llm_idle_seconds,
        total_seconds=settings.llm_total_seconds,
        reply_bytes=max(StreamLimits().reply_bytes, TOKEN_BYTES * settings.llm_max_tokens),
    )
    return Writer(client, limits=limits, max_tokens=settings.llm_max_tokens, concurrency=settings.llm_concurrency)
