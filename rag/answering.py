"""The answer line: question → passages → verbatim sentences → checked citations."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rag.embedding import QueryEmbedder
from rag.opening import OpenIndex
from rag.records import (
    Answer,
    Card,
    CardLink,
    Citation,
    CitationSegment,
    Passage,
    Refusal,
    Retrieval,
    RetrievedCard,
    ScoredSentence,
    Span,
    TextSegment,
    card_url,
)
from rag.reranking import Reranker
from rag.retrieval import retrieve
from rag.terms import coverage, terms
from rag.things import thing_asked_for

CARDS_QUOTED = 2
SENTENCES_LEAST, SENTENCES_MOST = 2, 3
ANSWER_CHARS = 400
"""A third sentence is quoted only if the answer stays within this."""
COVERAGE_WEIGHT = 0.6
NEAREST_CARDS = 3

_REFUSED = {
    "es": "Las fichas no responden a esta pregunta, así que no hay respuesta.",
    "en": "The cards do not answer this question, so there is no answer.",
}


@dataclass(frozen=True, slots=True)
class _Quote:
    """A sentence chosen for the answer."""

    card: Card
    span: Span
    score: float
    """The cosine of question and sentence."""


def answer_question(
    question: str,
    groups: Collection[str],
    *,
    index: OpenIndex,
    embedder: QueryEmbedder,
    top_k: int,
    min_similarity: float | None,
    request_id: str,
    fusion: str = "coverage",
    reranker: Reranker | None = None,
) -> Answer:
    """
    Answer from the cards that the caller may see, by quoting their sentences; or refuse, with the reason.

    ``min_similarity`` overrides the gate that was calibrated with the index; ``fusion`` and ``reranker`` are as in
    ``retrieve``.
    """
    started = time.perf_counter()
    found = retrieve(
        question,
        groups,
        index=index,
        embedder=embedder,
        top_k=top_k,
        threshold=min_similarity,
        fusion=fusion,
        reranker=reranker,
    )
    citations = _cite(_choose(question, found.passages)) if found.passed else []
    refusal = None if citations else _refuse(found)
    timings = {
        "embed": found.embed_ms,
        "search": found.search_ms,
        "total": (time.perf_counter() - started) * 1e3,
    }
    return Answer(
        request_id=request_id,
        question=question,
        answer=_REFUSED[found.language] if refusal else _text(citations),
        segments=_segments(citations),
        language=found.language,
        mode="extractive",
        degraded=False,
        degraded_reason=None,
        refusal=refusal,
        citations=tuple(citations),
        retrieved=() if refusal else retrieved_cards(found.passages),
        index_version=index.build_id,
        timings_ms={name: round(value, 2) for name, value in timings.items()},
    )


def retrieved_cards(passages: Sequence[Passage]) -> tuple[RetrievedCard, ...]:
    """The cards of passages, in their order, as the API names them."""
    return tuple(
        RetrievedCard(
            card_id=passage.card.card_id,
            title=passage.card.title,
            url=card_url(passage.card.card_id),
            language=passage.card.language,
            score=round(passage.score, 4),
            dense_score=round(passage.dense_score, 4),
            lexical_score=round(passage.lexical_score, 4),
            rank_score=round(passage.rank_score, 4),
            rerank_score=None if passage.rerank_score is None else round(passage.rerank_score, 4),
            chunk_index=passage.chunk_index,
        )
        for passage in passages
    )


def _choose(question: str, passages: Sequence[Passage]) -> list[_Quote]:
    """
    Two or three sentences of the best two cards, in reading order: card by card as ranked, then as they stand.

    A sentence is as good as its own score, plus that of its card, plus its share of the question's words. Where a
    question asks for something that shows, such as a price, sentences without one will not do.
    """
    wanted, asked_for = terms(question), thing_asked_for(question)

    def worth(passage: Passage, sentence: ScoredSentence) -> float:
        text = passage.card.text[sentence.span.start : sentence.span.end]
        return sentence.score + passage.rank_score + COVERAGE_WEIGHT * coverage(wanted, text)

    candidates = [
        (worth(passage, sentence), rank, _Quote(passage.card, sentence.span, sentence.cosine))
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


def _cite(quotes: Sequence[_Quote]) -> list[Citation]:
    """One citation a quote; neighbours in one card are one quote; a card keeps its number."""
    numbers: dict[str, int] = {}
    citations: list[Citation] = []
    for quote in _join_neighbours(quotes):
        card, span = quote.card, quote.span
        number = numbers.setdefault(card.card_id, len(numbers) + 1)
        citations.append(
            Citation(
                number=number,
                card_id=card.card_id,
                title=card.title,
                url=card_url(card.card_id),
                language=card.language,
                license=card.license,
                source=card.source,
                accessed_at=card.accessed_at,
                quote=card.text[span.start : span.end],
                start=span.start,
                end=span.end,
                score=round(quote.score, 4),
                verdict="valid",
            )
        )
    return citations


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


def _segments(citations: Sequence[Citation]) -> tuple[TextSegment | CitationSegment, ...]:
    segments: list[TextSegment | CitationSegment] = []
    for number, citation in enumerate(citations):
        segments.append(TextSegment(citation.quote, citation.language))
        segments.append(CitationSegment(number, citation.number, citation.card_id))
    return tuple(segments)


def _text(citations: Sequence[Citation]) -> str:
    return " ".join(f"{_without_markers(citation.quote)} [cite:{citation.card_id}]" for citation in citations)


def _without_markers(quote: str) -> str:
    """A quote in which nothing reads as a citation marker: whoever scans the text finds only ours."""
    pieces = quote.split("[")
    return pieces[0] + "".join(("(" if piece.lstrip()[:4].lower() == "cite" else "[") + piece for piece in pieces[1:])


def _refuse(found: Retrieval) -> Refusal:
    reason = "no_cards" if found.best_score is None else "no_evidence" if found.passed else "below_threshold"
    nearest = tuple(
        CardLink(passage.card.card_id, passage.card.title, card_url(passage.card.card_id), passage.card.language)
        for passage in found.passages[:NEAREST_CARDS]
    )
    best = None if found.best_score is None else round(found.best_score, 4)
    return Refusal(reason, best, round(found.threshold, 4), nearest)
