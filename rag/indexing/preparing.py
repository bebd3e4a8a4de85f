"""Card to rows and sentences: all of it that is stored and embedded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag.cached_embedding import EMBED_BATCH
from rag.cards import card_hash
from rag.chunking import check_chunking, split_card
from rag.contextual import CONTEXT_VERSION, acl_version, check_strategy, contextualise, row_id
from rag.language import detect_language
from rag.records import Card, Chunk, Row, Span
from rag.sentences import split_sentences

Contexts = Callable[[Card, Sequence[Chunk]], Mapping[int, str]]
"""Gives the generated contexts of a card by chunk_index."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What shapes an index, beside the cards and the model."""

    chunk_chars: int
    overlap_chars: int
    context: str

    def check(self) -> None:
        """
        Check all of them.

        Raises:
            SettingsInvalid: one cannot be used.
        """
        check_chunking(chunk_chars=self.chunk_chars, overlap_chars=self.overlap_chars)
        check_strategy(self.context)

    def chunks(self, card: Card) -> list[Chunk]:
        """The chunks of a card."""
        return split_card(card, chunk_chars=self.chunk_chars, overlap_chars=self.overlap_chars)

    @property
    def context_version(self) -> str:
        """Of a build with these options; a row says its own."""
        return f"{self.context}-{CONTEXT_VERSION}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A card with all that is stored and embedded of it."""

    card: Card
    rows: list[Row]
    spans: list[Span]
    """Of its sentences, in reading order."""
    sentences: list[str]
    """With the card's title: it says what a sentence is about when the sentence itself does not."""

    @property
    def texts(self) -> list[str]:
        """What is embedded: of the rows, then of the sentences, then the questions."""
        return [*(row.text_indexed for row in self.rows), *self.sentences, *self.card.questions]

    @property
    def evidence(self) -> list[Span]:
        """The spans of what is embedded beside the rows; a question, which is not in the text, has an empty one."""
        return [*self.spans, *(Span(0, 0) for _ in self.card.questions)]

    @property
    def searched(self) -> list[str]:
        """The texts that words are looked for in; none of a card without text."""
        rows = [row.text_indexed for row in self.rows if row.end > row.start]
        own = self.languages[len(self.spans) :]
        asked = [text for text, name in zip(self.card.questions, own, strict=True) if name == self.card.language]
        return [*rows, *asked] if rows else []

    @property
    def languages(self) -> list[str]:
        """Of what is embedded beside the rows: a question may be in the other language than its card."""
        own = self.card.language
        return [*(own for _ in self.spans), *(detect_language(text, default=own) for text in self.card.questions)]

    def digest(self, model_fingerprint: str) -> str:
        """A hash of all that is stored of the rows."""
        own = [[row.row_id, row.start, row.end, row.text_indexed, row.context_version] for row in self.rows]
        shape = json.dumps([model_fingerprint, card_hash(self.card), own], ensure_ascii=False)
        return hashlib.sha256(shape.encode()).hexdigest()[:16]


def prepare(card: Card, options: BuildOptions, contexts: Contexts) -> Prepared:
    """Cut a card into rows and sentences."""
    sentences = split_sentences(card.text)
    return Prepared(
        card,
        list(_rows(card, options, contexts)),
        [sentence.span for sentence in sentences],
        [f"{card.title}. {sentence.text}" for sentence in sentences],
    )


def batches(prepared: Iterator[Prepared]) -> Iterator[list[Prepared]]:
    """Cards until there is enough to embed side by side."""
    batch: list[Prepared] = []
    texts = 0
    for card in prepared:
        batch.append(card)
        texts += len(card.texts)
        if texts >= EMBED_BATCH:
            yield batch
            batch, texts = [], 0
    if batch:
        yield batch


def _rows(card: Card, options: BuildOptions, contexts: Contexts) -> Iterator[Row]:
    chunks = options.chunks(card)
    records = contextualise(card, chunks, strategy=options.context, generated=contexts(card, chunks))
    for chunk, record in zip(chunks, records, strict=True):
        yield Row(
            record.chunk_id,
            chunk.chunk_index,
            chunk.start,
            chunk.end,
            record.text_indexed,
            card,
            record.acl_version,
            record.context_version,
        )
    if not chunks:
        # a card without text still has a row, so that the store of record holds every card; its span is empty
        version = acl_version(card.acl)
        yield Row(row_id(card.card_id, 0), 0, 0, 0, card.title, card, version, options.context_version)
