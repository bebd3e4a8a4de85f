"""Whether a card says what a sentence of an answer says, and where."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.embedding import QueryEmbedder
from rag.opening import OpenIndex
from rag.quantities import Quantity, missing_quantities, quantities
from rag.records import Card, Passage, Span
from rag.terms import coverage, terms

COVERAGE_WEIGHT = 0.6
"""Of the share of a claim's words that a sentence has, beside their vectors: as answers choose sentences."""
SIMILARITY, SHARE, TOGETHER = 0.5, 0.4, 1.25
"""What a claim in a card's own language needs of each, and of both."""
ACROSS_SIMILARITY = 0.62
DENIAL_GAP = 0.1
"""How far behind the nearest sentence one may stay that says yes or no as the claim does."""
NEIGHBOURS = 1
"""Sentences on each side whose words count too: a claim often says what two say."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Support:
    """The sentence of a card that comes nearest to a claim, and whether it is near enough."""

    card: Card
    span: Span
    similarity: float
    """Of claim and sentence, free of the language both are in."""
    coverage: float
    """The share of the claim's words that the sentence and its neighbours have."""
    holds: bool
    missing: tuple[str, ...]
    """Numbers of the claim that the card does not have."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A card with its sentences."""

    card: Card
    spans: Sequence[Span]
    texts: Sequence[str]
    vectors: Vectors
    languages: NDArray[np.intp]
    held: Sequence[Quantity]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A sentence of an answer, as cards are compared with it."""

    text: str
    language: str
    vector: Vectors
    terms: frozenset[str]
    denies: bool


class Sources:
    """The cards that an answer may cite, ready to be compared with its sentences."""

    def __init__(self, passages: Sequence[Passage], *, index: OpenIndex, embedder: QueryEmbedder) -> None:
        """``passages`` are what the caller's question found: no other card is ever looked at."""
        self._centring = index.rows.centring
        self._embedder = embedder
        self._sources = {passage.card.card_id: self._source(passage.card, index) for passage in passages}

    @property
    def card_ids(self) -> Collection[str]:
        """Of the cards, best first."""
        return self._sources.keys()

    def card(self, card_id: str) -> Card:
        """One of them."""
        return self._sources[card_id].card

    def support(self, claim: str, language: str) -> dict[str, Support]:
        """
        What each card has for a claim, by card id, in the order of the passages; a card without sentences has nothing.

        A claim holds if the nearest sentence, or one nearly as near, says yes or no as the claim does and is near
        enough by vector and words, and every number of the claim stands in the card with its unit.
        """
        compared = _Claim(claim, language, self._embedder.embed_query(claim), terms(claim), is_negative(claim))
        return {card_id: self._nearest(source, compared) for card_id, source in self._sources.items() if source.spans}

    def _nearest(self, source: _Source, claim: _Claim) -> Support:
        _, scores = self._centring.compare(source.vectors, source.languages, claim.vector, claim.language)
        covered = [coverage(claim.terms, text) for text in source.texts]
        agrees = np.array([is_negative(text) == claim.denies for text in source.texts], bool)
        worth = scores + np.float32(COVERAGE_WEIGHT) * np.array(covered, np.float32)
        # who denies what the nearest sentence says does not find a farther one to lean on
        near_enough = agrees & (worth >= worth.max() - np.float32(DENIAL_GAP))
        place = int(np.argmax(np.where(near_enough, worth, -np.inf) if near_enough.any() else worth))
        around = source.texts[max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1]
        similarity, share = float(scores[place]), coverage(claim.terms, " ".join(around))
        missing = missing_quantities(claim.text, source.held)
        near = is_near(similarity, share, source.card.language == claim.language)
        return Support(
            source.card,
            source.spans[place],
            similarity,
            share,
            near and bool(near_enough.any()) and not missing,
            tuple(missing),
        )

    def _source(self, card: Card, index: OpenIndex) -> _Source:
        chosen = index.evidence.of([card.card_id])
        own = np.flatnonzero(chosen.spans[:, 1] > chosen.spans[:, 0])
        numbers = np.array([self._centring.number(name) for name in index.evidence.language_names], np.intp)
        spans = [Span(start, end) for start, end in chosen.spans[own].tolist()]
        return _Source(
            card=card,
            spans=spans,
            texts=[card.text[span.start : span.end] for span in spans],
            vectors=chosen.vectors[own],
            languages=numbers[chosen.languages[own]],
            held=_held_by(f"{card.title}\n{card.text}"),
        )


@functools.lru_cache(maxsize=64)
def _held_by(text: str) -> list[Quantity]:
    """The quantities of a card; a long one takes a while, and the same cards are asked for again and again."""
    return quantities(text, as_source=True)


def is_near(similarity: float, share: float, same_language: bool) -> bool:
    """Whether vectors and words speak for a claim; across languages words say little, and vectors have to say more."""
    if not same_language:
        return similarity >= ACROSS_SIMILARITY
    return similarity >= SIMILARITY and share >= SHARE and similarity + share >= TOGETHER


def is_negative(text: str) -> bool:
    """Whether a text denies or advises against something."""
    return _NEGATIVE.search(text) is not None


_NEGATIVE = re.compile(
    r"\b(?:no|nunca|jam[aá]s|ni|sin|nadie|nada|ning[uú]n[ao]?|tampoco|evit\w+|prohib\w+|contraindic\w+|desaconsej\w+"
    r"|not|never|nor|none|nothing|without|avoid\w*|cannot|neither|unless)\b|n['’]t\b",
    re.IGNORECASE,
)
