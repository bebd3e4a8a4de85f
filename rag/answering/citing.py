"""A citation of a card, and its place in an answer's text."""

from __future__ import annotations

from rag.records import Card, Citation, Span, card_url


def cite(card: Card, span: Span | None, *, number: int, score: float, verdict: str) -> Citation:
    """The citation of a span of a card; without a span it quotes nothing."""
    start, end = (span.start, span.end) if span else (0, 0)
    return Citation(
        number=number,
        card_id=card.card_id,
        title=card.title,
        url=card_url(card.card_id),
        language=card.language,
        license=card.license,
        source=card.source,
        accessed_at=card.accessed_at,
        quote=card.text[start:end],
        start=start,
        end=end,
        score=round(score, 4),
        verdict=verdict,
    )
