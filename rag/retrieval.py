"""From a question to its passages: cards are nominated, compared, fused, and gated."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag.embedding import QueryEmbedder
from rag.errors import RerankerUnusable
from rag.fusion import fuse_coverage, reciprocal_rank_fusion
from rag.language import word_lean
from rag.lexical import Coverage
from rag.opening import OpenIndex
from rag.records import Hit, Passage, Retrieval, ScoredSentence
from rag.reranking import Reranker

_log = logging.getLogger(__name__)

POOL_CARDS, WORD_CARDS = 32, 8
"""Cards that the vectors nominate, and those that the words do; their sentences are compared with the question."""
SAME_LANGUAGE = 0.05
"""What a card in the question's language is ahead: of two that answer alike, that is the one to read."""
LEAD_WEIGHT, SHARE_WEIGHT = 0.25, 0.05
"""Of a card's two best scores and of its coverage beside its cosine, in what the gate reads."""
WORD_WEIGHT = 0.25
"""Of one everyday word beside what the model sees of a question's language."""
RERANK_CARDS = 10
"""Cards that a reranker scores, the best as fused; more when more are asked for."""
FUSIONS = ("dense", "ranks", "coverage")

Vectors = NDArray[np.float32]


def retrieve(
    question: str,
    groups: Collection[str],
    *,
    index: OpenIndex,
    embedder: QueryEmbedder,
    top_k: int,
    threshold: float | None = None,
    fusion: str = "coverage",
    reranker: Reranker | None = None,
) -> Retrieval:
    """
    Embed a question once and find its cards among those that share a group with the caller.

    The best chunks nominate cards, and so do the words. Each card has a dense score, from its best chunk, sentence and
    question, and a lexical one, the share of the question's words that it covers; ``fusion`` makes one of both:
    ``coverage``, ``ranks`` (reciprocal ranks) or ``dense`` (the words have no say). A ``reranker`` orders the best of
    these anew; its time counts as search.

    The gate reads how near the nearest card comes, whatever ordered the cards: its cosine and, weighing less, its two
    best scores and its coverage, against what was calibrated for the question's language; or, against ``threshold``,
    its cosine alone.
    What was found is returned either way.
    """
    started = time.perf_counter()
    vector = embedder.embed_query(question)
    embedded = time.perf_counter()
    language = question_language(question, vector, index)
    asked = _Asked(vector, language, groups)
    covered = index.lexical.search(question, language, groups)
    compared = _compare(_nominate(asked, covered, index, count=max(POOL_CARDS, top_k)), covered, asked, index)
    count = max(RERANK_CARDS, top_k) if reranker else top_k
    passages = _rank(compared, asked, index, fusion=fusion, count=count)
    if reranker and passages:
        passages = _rerank(question, passages, reranker)[:top_k]
    nearness = compared.closeness if threshold is None else compared.cosines
    gate = index.thresholds[language] if threshold is None else threshold
    best_score = float(nearness.max()) if len(nearness) else None
    return Retrieval(
        language=language,
        passages=tuple(passages),
        best_score=best_score,
        threshold=gate,
        passed=best_score is not None and best_score >= gate,
        truncated=embedder.truncates(question),
        embed_ms=(embedded - started) * 1e3,
        search_ms=(time.perf_counter() - embedded) * 1e3,
    )


def question_language(question: str, vector: Vectors, index: OpenIndex) -> str:
    """``es`` or ``en``: by a question's everyday words, of which titles have few, and by its vector, (d,) float32."""
    return "es" if index.rows.centring.lean(vector) + WORD_WEIGHT * word_lean(question) >= 0 else "en"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as cards are compared with it."""

    vector: Vectors
    language: str
    groups: Collection[str]


@dataclass(frozen=True, slots=True)
class _Compared:
    """Nominated cards, compared with the question; arrays have one place a card unless said."""

    hits: Sequence[Hit]
    cosines: Vectors
    """Of their best chunks."""
    dense: Vectors
    coverage: Vectors
    closeness: Vectors
    """What the gate reads."""
    sentences: Sequence[slice]
    """The places of their sentences in what follows."""
    sentence_cosines: Vectors
    sentence_scores: Vectors


def _nominate(asked: _Asked, covered: Coverage, index: OpenIndex, *, count: int) -> list[Hit]:
    """The best cards by vector, then those that only their words have found."""
    also = [card_id for card_id, _ in covered.best(max(WORD_CARDS, count - POOL_CARDS))]
    return index.rows.search(asked.vector, asked.language, asked.groups, count=count, also=also)


def _compare(hits: Sequence[Hit], covered: Coverage, asked: _Asked, index: OpenIndex) -> _Compared:
    """The hits with their sentences."""
    centring, evidence = index.rows.centring, index.evidence
    chosen = evidence.of([hit.card.card_id for hit in hits])
    numbers = np.array([centring.number(name) for name in evidence.language_names], np.intp)
    cosines, scores = centring.compare(chosen.vectors, numbers[chosen.languages], asked.vector, asked.language)
    is_question = chosen.spans[:, 0] == chosen.spans[:, 1]
    ends = np.cumsum(chosen.counts, dtype=np.intp).tolist()
    held = [slice(end - count, end) for end, count in zip(ends, chosen.counts, strict=True)]
    parts = _parts([hit.score for hit in hits], scores, is_question, chosen.counts)
    coverage = np.array([covered.of(hit.card.card_id) for hit in hits], np.float32)
    # twice a mean, so that cards with and without questions of their own can be compared
    dense = np.array([2 * sum(scored) / len(scored) for scored in parts], np.float32)
    best_two = np.array([sum(sorted(scored)[-2:]) for scored in parts], np.float32)
    chunk_cosines = np.array([hit.cosine for hit in hits], np.float32)
    preferred = np.array([hit.card.language == asked.language for hit in hits], np.float32)
    return _Compared(
        hits=hits,
        cosines=chunk_cosines,
        dense=dense + np.float32(SAME_LANGUAGE) * preferred,
        coverage=coverage,
        closeness=chunk_cosines + np.float32(LEAD_WEIGHT) * best_two + np.float32(SHARE_WEIGHT) * coverage,
        sentences=held,
        sentence_cosines=cosines,
        sentence_scores=scores,
    )


def _parts(
    of_chunks: Sequence[float], scores: Vectors, is_question: NDArray[np.bool_], counts: Sequence[int]
) -> list[list[float]]:
    """
    For each card the scores of its best chunk, best sentence and, if it has any, best question.

    A card without sentences has its chunk's score instead. ``counts`` says how many of ``scores`` and ``is_question``
    are each card's, in order.
    """
    best_sentence = _best_of_each(np.where(is_question, -np.inf, scores), counts)
    best_question = _best_of_each(np.where(is_question, scores, -np.inf), counts)
    return [
        [chunk, chunk if sentence == -np.inf else sentence, *([] if question == -np.inf else [question])]
        for chunk, sentence, question in zip(of_chunks, best_sentence, best_question, strict=True)
    ]


def _best_of_each(scores: Vectors, counts: Sequence[int]) -> list[float]:
    """The highest of each run of so many scores; minus infinity for a run of none."""
    lengths = np.asarray(counts, np.intp)
    best = np.full(len(lengths), -np.inf)
    filled = lengths > 0
    if filled.any():
        starts = (np.cumsum(lengths) - lengths)[filled]
        best[filled] = np.maximum.reduceat(scores, starts)
    found: list[float] = best.tolist()
    return found


def _rank(compared: _Compared, asked: _Asked, index: OpenIndex, *, fusion: str, count: int) -> list[Passage]:
    """The best ``count`` as passages, best first, ties as they were nominated."""
    hits, dense, coverage = compared.hits, compared.dense, compared.coverage
    ids = [hit.card.card_id for hit in hits]
    fused = dense
    if fusion == "coverage":
        fused = fuse_coverage(dense, coverage, np.array([hit.card.language == asked.language for hit in hits], bool))
    elif fusion == "ranks":
        by_words = [ids[place] for place in _order(coverage) if coverage[place] > 0]
        by_rank = reciprocal_rank_fusion([[ids[place] for place in _order(dense)], by_words])
        fused = np.array([by_rank[card_id] for card_id in ids], np.float32)
    return [
        Passage(
            card=(hit := hits[place]).card,
            chunk_index=hit.chunk_index,
            start=hit.start,
            end=hit.end,
            score=hit.cosine,
            dense_score=float(dense[place]),
            lexical_score=float(coverage[place]),
            rank_score=float(fused[place]),
            rerank_score=None,
            sentences=_sentences(hit, compared, compared.sentences[place], index),
        )
        for place in _order(fused)[:count]
    ]


def _rerank(question: str, passages: Sequence[Passage], reranker: Reranker) -> list[Passage]:
    """The passages by the reranker's score, ties as they stand; all as they stand where it fails, which is logged."""
    try:
        scores = reranker.score(question, [reranked_text(passage) for passage in passages])
    except RerankerUnusable as error:
        _log.error("%d cards stay in their order: %s", len(passages), error)
        return list(passages)
    return [replace(passages[place], rerank_score=float(scores[place])) for place in _order(scores)]


def reranked_text(passage: Passage) -> str:
    """What a reranker sees of a card: its title and, on the next line, its best chunk."""
    return f"{passage.card.title}\n{passage.card.text[passage.start : passage.end]}"


def _sentences(hit: Hit, compared: _Compared, own: slice, index: OpenIndex) -> tuple[ScoredSentence, ...]:
    """The sentences of a card that can be quoted."""
    spans = index.evidence.spans_of(hit.card.card_id)
    cosines, scores = compared.sentence_cosines[own].tolist(), compared.sentence_scores[own].tolist()
    scored = map(ScoredSentence, spans, cosines, scores)
    return tuple(sentence for sentence in scored if sentence.span.end > sentence.span.start)


def _order(scores: Vectors) -> list[int]:
    """Places by score, best first, ties as they stand."""
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order
