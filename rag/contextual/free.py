"""Chunk and card to ChunkRecord: the context says where a chunk belongs, so that it can be found."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from rag.contextual.prompt import PROMPT_VERSION
from rag.errors import SettingsInvalid
from rag.markdown import Kind, Line, headings_above, scan_lines, table_header_of
from rag.records import Card, Chunk, ChunkRecord

CONTEXT_VERSION = 1
"""Raise it when the same card would give other free contexts."""
STRATEGIES = ("none", "metadata", "surroundings", "llm")
CONTEXT_CHARS = 500
OPENING_CHARS = 160
TAIL_CHARS = 160

_TOPICS = {"es": "Temas", "en": "Topics"}
_SENTENCE_END = re.compile(r"[.!?…][\"'»”)\]]*(?=\s|$)")


def check_strategy(strategy: str) -> None:
    """
    Check the name of a strategy.

    Raises:
        SettingsInvalid: it is none of ``STRATEGIES``.
    """
    if strategy not in STRATEGIES:
        raise SettingsInvalid(f"The context strategy {strategy!r} is unknown; known: {', '.join(STRATEGIES)}.")


def contextualise(
    card: Card, chunks: Sequence[Chunk], *, strategy: str, generated: Mapping[int, str] | None = None
) -> list[ChunkRecord]:
    """
    The records of a card's chunks, in their order.

    ``none`` puts the title before the first chunk; ``metadata`` puts title, section path and topics before every one;
    ``surroundings`` adds the card's first sentence and the text right before the chunk; ``llm`` adds to ``metadata``
    what ``generated`` has under the chunk's index, on a line of its own: titles are what people type, and a generated
    sentence does not always name them. A chunk without one keeps its metadata context, and its version says so.
    A piece of a table that begins below the header row carries that row in its context under each of them.

    Raises:
        SettingsInvalid: the strategy is unknown.
    """
    check_strategy(strategy)
    lines = scan_lines(card.text)
    records: list[ChunkRecord] = []
    for chunk in chunks:
        parts, version = _context(card, chunk, lines, strategy, (generated or {}).get(chunk.chunk_index))
        header = table_header_of(lines, card.text, chunk.start)
        context = "\n".join(part for part in (*parts, header) if part)
        records.append(
            ChunkRecord(
                chunk_id=row_id(card.card_id, chunk.chunk_index),
                document_id=card.card_id,
                chunk_original=chunk.text,
                context=context,
                text_indexed=f"{context}\n\n{chunk.text}" if context else chunk.text,
                acl_version=acl_version(card.acl),
                context_version=version,
            )
        )
    return records


def row_id(card_id: str, chunk_index: int) -> str:
    """The id of a chunk's row."""
    return f"{card_id}::{chunk_index:02d}"


def acl_version(acl: Sequence[str]) -> str:
    """Changes whenever the groups of a card change."""
    return hashlib.sha256("\0".join(acl).encode()).hexdigest()[:12]


def _context(
    card: Card, chunk: Chunk, lines: list[Line], strategy: str, generated: str | None
) -> tuple[list[str], str]:
    """The lines of a chunk's context, and the version of what they are."""
    if strategy == "none":
        return [card.title[:CONTEXT_CHARS] if chunk.chunk_index == 0 else ""], f"none-{CONTEXT_VERSION}"
    # a chunk may begin with the tail of another section, so its middle says where it belongs
    metadata = _metadata(card, headings_above(lines, card.text, (chunk.start + chunk.end) // 2))
    if strategy == "surroundings":
        return _surroundings(card, chunk, lines, metadata), f"surroundings-{CONTEXT_VERSION}"
    if strategy == "llm" and generated:
        return [metadata, generated], f"llm-{PROMPT_VERSION}"
    return [metadata], f"metadata-{CONTEXT_VERSION}"


def _metadata(card: Card, sections: Sequence[str]) -> str:
    path = " › ".join([card.title, *sections])[: CONTEXT_CHARS - 100]
    topics = f" {_TOPICS[card.language]}: {', '.join(card.topics)}." if card.topics else ""
    return f"{path}.{topics}"[:CONTEXT_CHARS]


def _surroundings(card: Card, chunk: Chunk, lines: list[Line], metadata: str) -> list[str]:
    """Metadata, the card's first sentence and what stands before the chunk, as far as the chunk lacks them."""
    parts = [metadata]
    tail = _tail(card.text, chunk.start)
    opening = _opening(card.text, lines)
    around = f"{' '.join(chunk.text.split())} {tail}"
    for part in ("" if opening in around else opening, tail):
        room = CONTEXT_CHARS - sum(len(kept) + 1 for kept in parts)
        parts.append(part if len(part) <= room else "")
    return parts


def _opening(text: str, lines: list[Line]) -> str:
    """The first sentence of a text, headings and tables left out, of bounded length."""
    first = next((line for line in lines if line.kind in (Kind.TEXT, Kind.ITEM)), None)
    if first is None:
        return ""
    paragraph = text[first.content :].split("\n\n", 1)[0]
    end = _SENTENCE_END.search(paragraph)
    sentence = " ".join(paragraph[: end.end() if end else None].split())
    return sentence if len(sentence) <= OPENING_CHARS else sentence[:OPENING_CHARS].rsplit(" ", 1)[0] + " …"


def _tail(text: str, end: int) -> str:
    """The last words before a place, without the signs of Markdown that stand alone."""
    start = max(0, end - TAIL_CHARS)
    words = text[start:end].split()
    if start and not text[start - 1].isspace() and not text[start].isspace():
        del words[:1]
    return " ".join(word for word in words if any(letter.isalnum() for letter in word))
