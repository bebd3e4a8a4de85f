"""Open an index, and go from a question to its passages."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.builds import build_in_use, current_build
from rag.embedding import ModelDescription, QueryEmbedder
from rag.errors import IndexMissing, IndexUnusable
from rag.evidence import Evidence, open_evidence
from rag.language import detect_language
from rag.manifest import CHROMA_DIR, EVIDENCE_DIR, REFERENCE_FILE, check_files, read_manifest
from rag.records import Card, Hit, Passage, Retrieval, Row, ScoredSentence
from rag.reference import open_reference, reference_questions
from rag.row_index import RowIndex
from rag.store import read_rows

POOL_CARDS = 32
"""Cards whose sentences are compared with the question."""
SAME_LANGUAGE = 0.05
"""What a card in the question's language is ahead: of two that answer alike, that is the one to read."""
OPEN_ATTEMPTS = 3
"""How often opening begins again because another build came into use meanwhile."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """A build in memory, checked and ready to search."""

    build_id: str
    rows: RowIndex
    evidence: Evidence
    thresholds: Mapping[str, float]
    """The gate for questions in each language: cosines, calibrated when the index was built."""


def open_index(index_dir: Path, model: ModelDescription, *, known: OpenIndex | None = None) -> OpenIndex:
    """
    Open the build in use for questions embedded with this model; ``known`` itself, if it is that build.

    A builder may remove a build while it is being opened. When another one is in use by then, that is opened instead.

    Raises:
        IndexMissing: there is none.
        IndexUnusable: a file is damaged or missing, or the build is of another format or model.
    """
    attempts = 0
    while True:
        attempts += 1
        before = build_in_use(index_dir)
        try:
            return _open_build(current_build(index_dir), model, known)
        except (IndexMissing, IndexUnusable):
            if attempts == OPEN_ATTEMPTS or build_in_use(index_dir) in (before, None):
                raise


def _open_build(build_dir: Path, model: ModelDescription, known: OpenIndex | None) -> OpenIndex:
    manifest = read_manifest(build_dir)
    if manifest.model_fingerprint != model.fingerprint:
        made_by = f"{manifest.model_name} ({manifest.model_fingerprint})"
        raise IndexUnusable(build_dir, f"it was made with the model {made_by}, not {model.name} ({model.fingerprint})")
    if known and known.build_id == manifest.build_id:
        return known
    missing = set(reference_questions()) - set(manifest.gate)
    if missing:
        raise IndexUnusable(build_dir, f"its gate is not calibrated for questions in {', '.join(sorted(missing))}")
    check_files(build_dir, manifest)
    rows, vectors = read_rows(build_dir / CHROMA_DIR)
    if len(rows) != manifest.counts["rows"] or vectors.shape != (len(rows), model.dimension):
        found = f"{len(rows)} rows with vectors of shape {vectors.shape}"
        raise IndexUnusable(build_dir, f"{found}, where {manifest.counts['rows']} rows of {model.dimension} should be")
    return assemble(build_dir, manifest.build_id, rows, vectors, thresholds=manifest.gate)


def assemble(
    build_dir: Path, build_id: str, rows: Sequence[Row], vectors: Vectors, *, thresholds: Mapping[str, float]
) -> OpenIndex:
    """
    Put a build together from rows and vectors, (n, d) float32, that its store gave, and its other files.

    Raises:
        IndexUnusable: one of those files is missing or damaged.
    """
    try:
        evidence = open_evidence(build_dir / EVIDENCE_DIR)
        reference = open_reference(build_dir / REFERENCE_FILE)
    except (OSError, ValueError, KeyError) as error:
        raise IndexUnusable(build_dir, f"its sentences cannot be read: {error}") from error
    return OpenIndex(build_id, RowIndex(rows, vectors, reference), evidence, thresholds)


def retrieve(
    question: str,
    groups: Collection[str],
    *,
    index: OpenIndex,
    embedder: QueryEmbedder,
    top_k: int,
    threshold: float | None = None,
) -> Retrieval:
    """
    Embed a question once and find its cards among those that share a group with the caller.

    The best chunks nominate cards; their sentences, each embedded with the card's title at build time, settle the
    order. The gate compares the highest chunk cosine of the cards found with ``threshold``, or with what was calibrated
    for the question's language: e5 puts text of another language further away, and a gate for both would shut one out.
    What was found is returned either way.
    """
    started = time.perf_counter()
    language = detect_language(question)
    vector = embedder.embed_query(question)
    embedded = time.perf_counter()
    hits = index.rows.search(vector, language, groups, count=max(POOL_CARDS, top_k))
    passages = _settle(hits, vector, language, index, top_k)
    best_score = max((passage.score for passage in passages), default=None)
    gate = index.thresholds[language] if threshold is None else threshold
    return Retrieval(
        language=language,
        passages=tuple(passages),
        best_score=best_score,
        threshold=gate,
        passed=best_score is not None and best_score >= gate,
        embed_ms=(embedded - started) * 1e3,
        search_ms=(time.perf_counter() - embedded) * 1e3,
    )


def _settle(hits: Sequence[Hit], question: Vectors, language: str, index: OpenIndex, top_k: int) -> list[Passage]:
    """The best hits in order of their best chunk's score plus their best sentence's."""
    centring = index.rows.centring
    vectors, counts = index.evidence.vectors_of([hit.card.card_id for hit in hits])
    languages = (
        np.repeat([centring.number(hit.card.language) for hit in hits], counts) if hits else np.empty(0, np.intp)
    )
    cosines, scores = centring.compare(vectors, languages, question, language)
    ends = np.cumsum(counts).tolist()
    settled: list[tuple[float, Hit, slice]] = []
    for hit, count, end in zip(hits, counts, ends, strict=True):
        own = slice(end - count, end)
        # a card without sentences is as good as its chunk
        best_sentence = float(scores[own].max()) if count else hit.score
        preference = SAME_LANGUAGE if hit.card.language == language else 0.0
        settled.append((hit.score + best_sentence + preference, hit, own))
    settled.sort(key=lambda entry: -entry[0])
    return [
        Passage(
            hit.card,
            hit.chunk_index,
            hit.start,
            hit.end,
            hit.cosine,
            rank_score,
            _sentences(hit.card, index, cosines[own].tolist(), scores[own].tolist()),
        )
        for rank_score, hit, own in settled[:top_k]
    ]


def _sentences(card: Card, index: OpenIndex, cosines: list[float], scores: list[float]) -> tuple[ScoredSentence, ...]:
    return tuple(map(ScoredSentence, index.evidence.spans_of(card.card_id), cosines, scores))
