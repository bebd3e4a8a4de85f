"""The build line: cards → chunks → contexts → indexed texts → vectors → sealed index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.builds import build_in_use, builder_lock, draft_dir, publish, remove_other_builds, use_build
from rag.cached_embedding import CachedEmbedder, Progress
from rag.cards import PARSER_VERSION, CardFolder
from rag.chunking import CHUNKER_VERSION, check_chunking, split_card
from rag.contextual import CONTEXT_VERSION, acl_version, check_strategy, contextualise, row_id
from rag.embedding import ModelDescription, load_embedder, read_description
from rag.errors import CardsInvalid, Fault, IndexMissing, IndexUnusable, RagError
from rag.evidence import write_evidence
from rag.manifest import (
    CHROMA_DIR,
    EVIDENCE_DIR,
    INDEX_FORMAT,
    REFERENCE_FILE,
    Manifest,
    check_files,
    file_hashes,
    read_manifest,
    write_manifest,
)
from rag.records import PUBLIC_GROUP, Card, Row, Span
from rag.reference import GATE_QUANTILE, REFERENCE_VERSION, Reference, gate_threshold, reference_questions
from rag.retrieval import OpenIndex, assemble, retrieve
from rag.sentences import SENTENCES_VERSION, split_sentences
from rag.store import STORE_FORMAT, read_rows, write_rows
from rag.vector_cache import VectorCache

CACHE_FILE = "cache/vectors.sqlite"
CALIBRATION_TOP_K = 5

Vectors = NDArray[np.float32]


class BuildFailed(RagError):
    """A build was made but does not hold what it should; the index in use is untouched."""


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


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did."""

    manifest: Manifest
    fresh: bool
    """False when the build in use was already this one."""
    embedded: int
    """Texts that went through the model; the others came out of the cache."""


@dataclass(frozen=True, slots=True)
class _Texts:
    """Everything that is embedded, in order."""

    rows: list[Row]
    spans: dict[str, list[Span]]
    sentences: list[str]


def usable_cards(folder: CardFolder, *, skip_broken: bool) -> tuple[Card, ...]:
    """
    The cards to build from.

    Raises:
        CardsInvalid: a card is broken and may not be skipped, or no card is left.
    """
    if folder.faults and not skip_broken:
        raise CardsInvalid(folder.faults)
    if not folder.cards:
        left = "all are broken" if folder.faults else "it holds no card; put Markdown files (*.md) there"
        raise CardsInvalid([*folder.faults, Fault(".", 1, f"there is nothing to build from: {left}")])
    return folder.cards


def build_index(
    cards: Sequence[Card],
    index_dir: Path,
    model_dir: Path,
    options: BuildOptions,
    *,
    threads: int,
    progress: Progress,
    clean: bool = False,
) -> BuildReport:
    """
    Build beside the index in use, verify, and put into use. With nothing changed, nothing is done.

    The build before stays on disk; older ones go. ``clean`` drops the cache and makes everything anew; the index in use
    stays until the new one takes its place, and then nothing else is left.

    Raises:
        BuildRunning: another builder holds the lock.
        BuildFailed: the new build does not verify.
        ModelMissing, ModelUnusable, SettingsInvalid: as named.
    """
    options.check()
    description = read_description(model_dir)
    build_id = _build_id(cards, description, options)
    index_dir.mkdir(parents=True, exist_ok=True)
    with builder_lock(index_dir):
        before = build_in_use(index_dir)
        if clean:
            (index_dir / CACHE_FILE).unlink(missing_ok=True)
        ready = None if clean else _finished(index_dir / build_id)
        if ready:
            if before != build_id:
                use_build(index_dir, build_id)
            return BuildReport(ready, fresh=before != build_id, embedded=0)
        # texts side by side are quicker than threads within one
        embedder = load_embedder(model_dir, threads=1, workers=threads)
        draft = draft_dir(index_dir, build_id)
        with VectorCache(index_dir / CACHE_FILE, model_fingerprint=description.fingerprint) as cache:
            work = CachedEmbedder(embedder, cache, progress)
            manifest = _build(draft, build_id, cards, options, work)
        publish(index_dir, draft, build_id)
        remove_other_builds(index_dir, keep={build_id} if clean else {build_id, before})
        return BuildReport(manifest, fresh=True, embedded=work.embedded)


def _build(draft: Path, build_id: str, cards: Sequence[Card], options: BuildOptions, work: CachedEmbedder) -> Manifest:
    """Write all files of a build, read them back as the server will, calibrate the gate, and seal."""
    texts = _texts(cards, options)
    vectors = work.passages("Chunks", [row.text_indexed for row in texts.rows])
    sentence_vectors = work.passages("Sentences", texts.sentences)
    write_rows(draft / CHROMA_DIR, texts.rows, vectors)
    write_evidence(draft / EVIDENCE_DIR, texts.spans, sentence_vectors)
    _reference(work).write(draft / REFERENCE_FILE)
    files = file_hashes(draft)
    index = _read_back(draft, build_id, texts.rows, vectors)
    description = work.embedder.description
    manifest = Manifest(
        build_id=build_id,
        index_format=INDEX_FORMAT,
        model_name=description.name,
        model_fingerprint=description.fingerprint,
        dimension=description.dimension,
        chunker={
            "version": CHUNKER_VERSION,
            "chunk_chars": options.chunk_chars,
            "overlap_chars": options.overlap_chars,
        },
        parser_version=PARSER_VERSION,
        context_version=f"{options.context}-{CONTEXT_VERSION}",
        sentences_version=SENTENCES_VERSION,
        reference_version=REFERENCE_VERSION,
        chromadb_version=version("chromadb"),
        card_hashes={card.card_id: _card_hash(card) for card in cards},
        counts={"cards": len(cards), "rows": len(texts.rows), "sentences": len(texts.sentences)},
        gate=_calibrate(index, cards, work),
        files=files,
    )
    write_manifest(draft, manifest)
    check_files(draft, manifest)
    return manifest


def _texts(cards: Sequence[Card], options: BuildOptions) -> _Texts:
    texts = _Texts([], {}, [])
    for card in cards:
        texts.rows.extend(_rows(card, options))
        sentences = split_sentences(card.text)
        texts.spans[card.card_id] = [sentence.span for sentence in sentences]
        # the title says what a sentence is about when the sentence itself does not
        texts.sentences.extend(f"{card.title}. {sentence.text}" for sentence in sentences)
    return texts


def _rows(card: Card, options: BuildOptions) -> Iterator[Row]:
    chunks = split_card(card, chunk_chars=options.chunk_chars, overlap_chars=options.overlap_chars)
    records = contextualise(card, chunks, strategy=options.context)
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
        yield Row(
            row_id(card.card_id, 0),
            0,
            0,
            0,
            card.title,
            card,
            acl_version(card.acl),
            f"{options.context}-{CONTEXT_VERSION}",
        )


def _reference(work: CachedEmbedder) -> Reference:
    questions = reference_questions()
    return Reference(
        {
            name: np.mean([work.embedder.embed_query(text) for text in texts], axis=0)
            for name, texts in questions.items()
        },
        {name: work.passages(f"Reference ({name})", texts).mean(axis=0) for name, texts in questions.items()},
    )


def _read_back(draft: Path, build_id: str, rows: Sequence[Row], vectors: Vectors) -> OpenIndex:
    """
    The build as a server sees it, the gate not calibrated yet.

    Raises:
        BuildFailed: what comes out of the store is not what went in.
    """
    stored, stored_vectors = read_rows(draft / CHROMA_DIR)
    order = sorted(range(len(rows)), key=lambda number: rows[number].row_id)
    if stored != [rows[number] for number in order]:
        raise BuildFailed(f"{draft}: the rows read back ({len(stored)}) are not those written ({len(rows)}).")
    if not np.allclose(stored_vectors, vectors[order], atol=1e-5):
        raise BuildFailed(f"{draft}: the vectors read back are not those written.")
    return assemble(draft, build_id, stored, stored_vectors, thresholds={})


def _calibrate(index: OpenIndex, cards: Sequence[Card], work: CachedEmbedder) -> dict[str, float]:
    """The gates: what unrelated questions find, asked as the public; where nothing is public, as every group."""
    groups = {group for card in cards for group in card.acl}
    caller = {PUBLIC_GROUP} if PUBLIC_GROUP in groups else groups
    gate: dict[str, float] = {"quantile": GATE_QUANTILE}
    for language, questions in reference_questions().items():
        found = [
            retrieve(question, caller, index=index, embedder=work.embedder, top_k=CALIBRATION_TOP_K, threshold=1.0)
            for question in questions
        ]
        gate[language] = gate_threshold([one.best_score for one in found if one.best_score is not None])
    return gate


def _build_id(cards: Sequence[Card], description: ModelDescription, options: BuildOptions) -> str:
    """A hash of everything that shapes the result, so that the same inputs give the same id."""
    shape = {
        "formats": [INDEX_FORMAT, STORE_FORMAT],
        "versions": [PARSER_VERSION, CHUNKER_VERSION, CONTEXT_VERSION, SENTENCES_VERSION, REFERENCE_VERSION],
        "reference": reference_questions(),
        "model": description.fingerprint,
        "options": asdict(options),
        "chromadb": version("chromadb"),
        "cards": [_card_hash(card) for card in cards],
    }
    return _digest(shape)[:16]


def _card_hash(card: Card) -> str:
    return _digest(asdict(card))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def _finished(build_dir: Path) -> Manifest | None:
    """The manifest of a build that is whole."""
    try:
        manifest = read_manifest(build_dir)
        check_files(build_dir, manifest)
    except (IndexMissing, IndexUnusable):
        return None
    return manifest
