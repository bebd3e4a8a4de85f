"""Answers without a language model: verbatim sentences of the best cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag.answering.citing import cite
from rag.records import Card, Citation, Passage, ScoredSentence, Span
from rag.terms import coverage, terms
from rag.things import thing_asked_for

CARDS_QUOTED = 2
SENTENCES_LEAST, SENTENCES_MOST = 2, 3
ANSWER_CHARS = 400
"""A third sentence is quoted only if the answer stays within this."""
COVERAGE_WEIGHT = 0.6
POINT_GAP = 0.3
"""How far behind the sentence that answers best another may stay and still be to the point."""


@dataclass(frozen=True, slots=True)
class _Quote:
    """A sentence chosen for the answer."""

    card: Card
    span: Span
    score: float
    """The cosine of question and sentence."""


def quote_passages(question: str, passages: Sequence[Passage]) -> list[Citation]:
    """
    Two or three sentences of the best two cards, in reading order: card by card as ranked, then as they stand.

    A sentence is as good as its own score, plus that of its card, plus its share of the question's words. Where a
    question asks for something that shows, such as a price, sentences without one will not do. Neighbours in one card
    are one quote; a card keeps its number. Nothing, where no sentence will do.
    """
    numbers: dict[str, int] = {}
    return [
        cite(
            quote.card,
            quote.span,
            number=numbers.setdefault(quote.card.card_id, len(numbers) + 1),
            score=quote.score,
            verdict="valid",
        )
        for quote in _join_neighbours(_choose(question, passages))
    ]


def _choose(question: str, passages: Sequence[Passage]) -> list[_Quote]:
    wanted, asked_for = terms(question), thing_asked_for(question)
    candidates = [
        (
            passage.rank_score + _worth(passage, sentence, wanted),
            rank,
            _Quote(passage.card, sentence.span, sentence.cosine),
        )
        for rank, passage in enumerate(passages[:CARDS_QUOTED])
        for sentence in passage.sentences
        if asked_for is None or asked_for.stands_in(passage.card.text[sentence.span.start : sentence.span.end])
    ]
    candidates.sort(key=lambda candidate: -candidate[0])
    chosen: list[tuple[int, _Quote]] = []
    length = 0
    for _, rank, quote in candidates:
        size = quote.span.end - quote.span.start
        if len(chosen) < SENTENCES_LEAST or length + size <= ANSWER_CHARS:
            chosen.append((rank, quote))
            length += size + 1
        if len(chosen) == SENTENCES_MOST:
            break
    chosen.sort(key=lambda entry: (entry[0], entry[1].span.start))
    return [quote for _, quote in chosen]


def to_the_point(question: str, passages: Sequence[Passage]) -> frozenset[tuple[str, Span]]:
    """The sentences of passages, by card id and span, that are nearly as good an answer as the best of them."""
    wanted = terms(question)
    worths = {
        (passage.card.card_id, sentence.span): _worth(passage, sentence, wanted)
        for passage in passages
        for sentence in passage.sentences
    }
    best = max(worths.values(), default=0.0)
    return frozenset(place for place, worth in worths.items() if worth >= best - POINT_GAP)


def _worth(passage: Passage, sentence: ScoredSentence, wanted: frozenset[str]) -> float:
    """How well a sentence answers: its own score, and its share of the question's words."""
    text = passage.card.text[sentence.span.start : sentence.span.end]
    return sentence.score + COVERAGE_WEIGHT * coverage(wanted, text)


def _join_neighbours(quotes: Sequence[_Quote]) -> list[_Quote]:
    joined: list[_Quote] = []
    for quote in quotes:
        before = joined[-1] if joined else None
        if before and before.card is quote.card:
            gap = quote.card.text[before.span.end : quote.span.start]
            if gap.isspace() and "\n" not in gap:
                span = Span(before.span.start, quote.span.end)
                joined[-1] = _Quote(quote.card, span, max(before.score, quote.score))
                continue
        joined.append(quote)
    return joined
