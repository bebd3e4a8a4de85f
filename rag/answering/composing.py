"""The answer object, whatever wrote the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.markers import without_markers
from rag.records import (
    Answer,
    CardLink,
    Citation,
    CitationSegment,
    Passage,
    Refusal,
    Retrieval,
    RetrievedCard,
    TextSegment,
    card_url,
)

NEAREST_CARDS = 3
Segments = tuple[TextSegment | CitationSegment, ...]

_REFUSED = {
    "es": "Las fichas no responden a esta pregunta, así que no hay respuesta.",
    "en": "The cards do not answer this question, so there is no answer.",
}
_UNSUPPORTED = {
    "es": "(sin comprobar: la ficha no lo dice así)",
    "en": "(not confirmed: the card does not say so)",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question on its way to an answer."""

    request_id: str
    question: str
    """As the caller put it."""
    index_version: str
    started: float
    """By ``time.perf_counter``."""
    searched: str | None = None
    """What was searched for in place of the question, as what was said before completes it."""


def compose_quotes(
    asked: Asked, found: Retrieval, citations: Sequence[Citation], *, degraded_reason: str | None = None
) -> Answer:
    """The answer that consists of quotes, or a refusal where there are none."""
    segments: list[TextSegment | CitationSegment] = []
    for place, citation in enumerate(citations):
        # a card may hold what looks like a marker; the quote itself stays as it is
        segments.append(TextSegment(without_markers(citation.quote), citation.language))
        segments.append(CitationSegment(place, citation.number, citation.card_id))
    if not citations:
        return refuse(asked, found, degraded_reason=degraded_reason)
    text = " ".join(f"{without_markers(citation.quote)} [cite:{citation.card_id}]" for citation in citations)
    return _answer(asked, found, text, tuple(segments), citations, mode="extractive", degraded_reason=degraded_reason)


def compose_written(
    asked: Asked, found: Retrieval, segments: Segments, citations: Sequence[Citation], rejected: Mapping[str, int]
) -> Answer:
    """The answer that a language model wrote, as far as it was checked."""
    return _answer(
        asked,
        found,
        written_text(segments, citations, found.language),
        segments,
        citations,
        mode="llm",
        rejected=rejected,
    )


def refuse(asked: Asked, found: Retrieval, *, reason: str | None = None, degraded_reason: str | None = None) -> Answer:
    """No answer, why, and the nearest cards; the reason is that of what was found if none is given."""
    if reason is None:
        reason = "no_cards" if found.best_score is None else "no_evidence" if found.passed else "below_threshold"
    nearest = tuple(
        CardLink(passage.card.card_id, passage.card.title, card_url(passage.card.card_id), passage.card.language)
        for passage in found.passages[:NEAREST_CARDS]
    )
    best = None if found.best_score is None else round(found.best_score, 4)
    refusal = Refusal(reason, best, round(found.threshold, 4), nearest)
    return _answer(
        asked,
        found,
        _REFUSED[found.language],
        (),
        (),
        mode="llm" if reason == "llm_refused" else "extractive",
        degraded_reason=degraded_reason,
        refusal=refusal,
    )


def written_text(segments: Segments, citations: Sequence[Citation], language: str) -> str:
    """The text of an answer: a marker for each citation that holds, and words behind a sentence that no card says."""
    pieces: list[str] = []
    warned = True
    for segment in segments:
        if isinstance(segment, TextSegment):
            pieces.append(segment.text)
            warned = segment.supported
        elif citations[segment.citation].verdict == "valid":
            pieces.append(f" [cite:{segment.card_id}]")
        elif not warned:
            pieces.append(f" {unconfirmed(language)}")
            warned = True
    return "".join(pieces)


def unconfirmed(language: str) -> str:
    """What is said behind a sentence that no card says."""
    return _UNSUPPORTED[language]


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


def _answer(
    asked: Asked,
    found: Retrieval,
    text: str,
    segments: Segments,
    citations: Sequence[Citation],
    *,
    mode: str,
    degraded_reason: str | None = None,
    refusal: Refusal | None = None,
    rejected: Mapping[str, int] | None = None,
) -> Answer:
    timings = {
        "embed": found.embed_ms,
        "search": found.search_ms,
        "total": (time.perf_counter() - asked.started) * 1e3,
    }
    return Answer(
        request_id=asked.request_id,
        question=asked.question,
        searched=asked.searched,
        question_truncated=found.truncated,
        answer=text,
        segments=segments,
        language=found.language,
        mode=mode,
        degraded=degraded_reason is not None,
        degraded_reason=degraded_reason,
        refusal=refusal,
        citations=tuple(citations),
        rejected=dict(rejected or {}),
        retrieved=() if refusal else retrieved_cards(found.passages),
        index_version=asked.index_version,
        timings_ms={name: round(value, 2) for name, value in timings.items()},
    )
