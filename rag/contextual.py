"""Chunk and card to ChunkRecord: the context says where a chunk belongs, so that it can be found."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from rag.errors import SettingsInvalid
from rag.markdown import headings_above, scan_lines, table_header_of
from rag.records import Card, Chunk, ChunkRecord

CONTEXT_VERSION = 1
"""Raise it when the same card would give other contexts."""
STRATEGIES = ("none", "metadata")
CONTEXT_CHARS = 500

_TOPICS = {"es": "Temas", "en": "Topics"}


def check_strategy(strategy: str) -> None:
    """
    Check the name of a strategy.

    Raises:
        SettingsInvalid: it is none of ``STRATEGIES``.
    """
    if strategy not in STRATEGIES:
        raise SettingsInvalid(f"The context strategy {strategy!r} is unknown; known: {', '.join(STRATEGIES)}.")


def contextualise(card: Card, chunks: Sequence[Chunk], *, strategy: str) -> list[ChunkRecord]:
    """
    The records of a card's chunks, in their order.

    ``none`` puts the title before the first chunk; ``metadata`` puts title, section path and topics before every one.
    A piece of a table that begins below the header row carries that row in its context under either.

    Raises:
        SettingsInvalid: the strategy is unknown.
    """
    check_strategy(strategy)
    lines = scan_lines(card.text)
    records: list[ChunkRecord] = []
    for chunk in chunks:
        if strategy == "metadata":
            # a chunk may begin with the tail of another section, so its middle says where it belongs
            context = _metadata(card, headings_above(lines, card.text, (chunk.start + chunk.end) // 2))
        else:
            context = card.title[:CONTEXT_CHARS] if chunk.chunk_index == 0 else ""
        header = table_header_of(lines, card.text, chunk.start)
        context = "\n".join(part for part in (context, header) if part)
        records.append(
            ChunkRecord(
                chunk_id=row_id(card.card_id, chunk.chunk_index),
                document_id=card.card_id,
                chunk_original=chunk.text,
                context=context,
                text_indexed=f"{context}\n\n{chunk.text}" if context else chunk.text,
                acl_version=acl_version(card.acl),
                context_version=f"{strategy}-{CONTEXT_VERSION}",
            )
        )
    return records


def row_id(card_id: str, chunk_index: int) -> str:
    """The id of a chunk's row."""
    return f"{card_id}::{chunk_index:02d}"


def acl_version(acl: Sequence[str]) -> str:
    """Changes whenever the groups of a card change."""
    return hashlib.sha256("\0".join(acl).encode()).hexdigest()[:12]


def _metadata(card: Card, sections: Sequence[str]) -> str:
    path = " › ".join([card.title, *sections])[: CONTEXT_CHARS - 100]
    topics = f" {_TOPICS[card.language]}: {', '.join(card.topics)}." if card.topics else ""
    return f"{path}.{topics}"[:CONTEXT_CHARS]
