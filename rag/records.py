"""The frozen records that flow through the build line and the answer line."""

from __future__ import annotations

from dataclasses import dataclass

PUBLIC_GROUP = "public"


@dataclass(frozen=True, slots=True)
class Card:
    """One Markdown file: the parent document, the unit that is cited."""

    card_id: str
    title: str
    text: str
    """The body, normalised once (NFC, LF, invisible marks only where meant); every offset counts its code points."""
    language: str
    topics: tuple[str, ...]
    license: str | None
    source: str | None
    accessed_at: str | None
    """ISO date."""
    acl: tuple[str, ...]
    """Sorted groups; empty means nobody."""
    questions: tuple[str, ...] = ()
    """How people ask for what the card says: they help to find it and are never quoted."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A contiguous span of a card's text: ``card.text[start:end] == chunk.text``."""

    card_id: str
    chunk_index: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A chunk with the context that helps to find it. Only ``chunk_original`` may be quoted or shown."""

    chunk_id: str
    document_id: str
    chunk_original: str
    context: str
    text_indexed: str
    acl_version: str
    context_version: str


@dataclass(frozen=True, slots=True)
class Row:
    """A stored chunk as it goes into the store of record and comes back, less its vector."""

    row_id: str
    chunk_index: int
    start: int
    end: int
    text_indexed: str
    card: Card
    acl_version: str
    context_version: str


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a card's text, in code points: ``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Hit:
    """The best chunk of a card for one question."""

    card: Card
    chunk_index: int
    start: int
    end: int
    cosine: float
    """Of the chunk and the question."""
    score: float
    """What hits are ordered by: higher is better, comparable within one question only."""


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence of a card, compared with one question."""

    span: Span
    cosine: float
    score: float
    """As of a ``Hit``: free of the language both are in."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A card retrieved for one question, with its best chunk and its sentences: what the answerer sees."""

    card: Card
    chunk_index: int
    start: int
    end: int
    score: float
    """The cosine of the best chunk."""
    dense_score: float
    """What the card would be ranked by without its words: the best chunk's score and the best sentence's."""
    lexical_score: float
    """The share of the question's words that the card covers, from 0 to 1; 0 for a card in another language."""
    rank_score: float
    """Both fused: what the order goes by where there is no ``rerank_score``."""
    rerank_score: float | None
    """The cross-encoder's, comparable within one question only; None where there is none, or it failed."""
    sentences: tuple[ScoredSentence, ...]
    """In reading order."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What one question found among the cards its caller may see."""

    language: str
    """Of the question."""
    passages: tuple[Passage, ...]
    """Best first, one a card, at most ``top_k``."""
    best_score: float | None
    """Of the nearest card, on the scale of ``threshold``; None where there was none."""
    threshold: float
    passed: bool
    """False when the best score is below the threshold, or there was nothing to score."""
    truncated: bool
    """The embedding model saw the beginning of the question alone; its words were all searched for."""
    embed_ms: float
    search_ms: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A question asked before, and what was answered."""

    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote and its place in the card: ``card.text[start:end] == quote``; empty if the verdict is not ``valid``."""

    number: int
    card_id: str
    title: str
    url: str
    language: str
    license: str | None
    source: str | None
    accessed_at: str | None
    quote: str
    start: int
    end: int
    score: float
    verdict: str
    """``valid``, or ``unsupported``: the card does not say what the sentence says."""


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A piece of the answer's text in its own language."""

    text: str
    language: str
    type: str = "text"
    supported: bool = True
    """False for a sentence that cites cards which do not say so."""


@dataclass(frozen=True, slots=True)
class CitationSegment:
    """The place of a citation in the answer; ``citation`` counts from 0 in ``citations``."""

    citation: int
    number: int
    card_id: str
    type: str = "citation"


@dataclass(frozen=True, slots=True)
class CardLink:
    """A card named, not quoted."""

    card_id: str
    title: str
    url: str
    language: str


@dataclass(frozen=True, slots=True)
class RetrievedCard:
    """A card that the question found, best first."""

    card_id: str
    title: str
    url: str
    language: str
    score: float
    dense_score: float
    lexical_score: float
    rank_score: float
    rerank_score: float | None
    chunk_index: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer, and the nearest cards this caller may see."""

    reason: str
    """``below_threshold``, ``no_cards``, ``no_evidence`` or ``llm_refused``."""
    best_score: float | None
    threshold: float
    nearest: tuple[CardLink, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer object of the HTTP contract."""

    request_id: str
    question: str
    searched: str | None
    """What was searched for in place of the question, where earlier ones had to complete it."""
    question_truncated: bool
    """What was searched for is longer than the embedding model reads: its end counted by its words alone."""
    answer: str
    """The text with a marker ``[cite:card-id]`` for each citation that holds; in a refusal, the words for that."""
    segments: tuple[TextSegment | CitationSegment, ...]
    language: str
    """The language of the question."""
    mode: str
    """``extractive`` or ``llm``: who wrote the text."""
    degraded: bool
    """The language model should have written it, and could not."""
    degraded_reason: str | None
    refusal: Refusal | None
    citations: tuple[Citation, ...]
    rejected: dict[str, int]
    """What a language model wrote and is not shown: markers of ``unknown`` cards or ``malformed``, sentences
    ``withheld``."""
    retrieved: tuple[RetrievedCard, ...]
    index_version: str
    timings_ms: dict[str, float]


def card_url(card_id: str) -> str:
    """The path of a card on this service."""
    return f"/cards/{card_id}"
