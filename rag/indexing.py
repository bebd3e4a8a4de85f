"""The build line: cards → chunks → contexts → indexed texts → vectors → sealed index."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.cards import PARSER_VERSION, CardFolder
from rag.chunking import CHUNKER_VERSION, check_chunking, split_card
from rag.contextual import CONTEXT_VERSION, acl_version, check_strategy, contextualise, row_id
from rag.embedding import Embedder, ModelDescription, load_embedder, read_description
from rag.errors import CardsInvalid, Fault, IndexMissing, IndexUnusable, RagError
from rag.evidence import write_evidence
from rag.manifest import (
    CHROMA_DIR,
    EVIDENCE_DIR,
    INDEX_FORMAT,
    REFERENCE_FILE,
    Manifest,
    check_files,
    current_build,
    file_hashes,
    read_manifest,
    use_build,
    write_manifest,
)
from rag.records import PUBLIC_GROUP, Card, Row, Span
from rag.reference import GATE_QUANTILE, REFERENCE_VERSION, Reference, gate_threshold, reference_questions
from rag.sentences import SENTENCES_VERSION, split_sentences
from rag.store import STORE_FORMAT, read_rows, write_rows
from rag.vector_cache import VectorCache

CACHE_FILE = "cache/vectors.sqlite"
LOCK_FILE = ".lock"
EMBED_BATCH = 64
"""Texts between two writes to the cache: what a killed build pays for twice at most."""

Vectors = NDArray[np.float32]
Progress = Callable[[str, int, int], object]
"""Called with what is being done, how many are done, and how many there are."""


class BuildFailed(RagError):
    """A build was made but does not hold what it should; the index in use is untouched."""


class BuildRunning(RagError):
    """Another builder is at work on the same index."""


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
    cards: Sequence[Card], index_dir: Path, model_dir: Path, options: BuildOptions, *, threads: int, progress: Progress
) -> BuildReport:
    """
    Build beside the index in use, verify, and put into use. With nothing changed, nothing is done.

    The build before stays on disk; older ones go.

    Raises:
        BuildRunning: another builder holds the lock.
        BuildFailed: the new build does not verify.
        ModelMissing, ModelUnusable, SettingsInvalid: as named.
    """
    options.check()
    description = read_description(model_dir)
    build_id = _build_id(cards, description, options)
    index_dir.mkdir(parents=True, exist_ok=True)
    with _lock(index_dir):
        before = _build_in_use(index_dir)
        ready = _finished(index_dir / build_id)
        if ready:
            if before != build_id:
                use_build(index_dir, build_id)
            return BuildReport(ready, fresh=before != build_id, embedded=0)
        embedder = load_embedder(model_dir, threads=threads)
        draft = index_dir / f".draft-{build_id}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        with VectorCache(index_dir / CACHE_FILE, model_fingerprint=description.fingerprint) as cache:
            work = _Embedding(embedder, cache, progress)
            manifest = _write(draft, build_id, cards, options, work)
        _verify(draft, manifest)
        shutil.rmtree(index_dir / build_id, ignore_errors=True)
        draft.rename(index_dir / build_id)
        use_build(index_dir, build_id)
        _remove_old_builds(index_dir, keep={build_id, before})
        return BuildReport(manifest, fresh=True, embedded=work.embedded)


def _write(draft: Path, build_id: str, cards: Sequence[Card], options: BuildOptions, work: _Embedding) -> Manifest:
    texts = _texts(cards, options)
    vectors = work.passages("chunks", [row.text_indexed for row in texts.rows])
    sentence_vectors = work.passages("sentences", texts.sentences)
    reference, gate = _calibrate(texts.rows, vectors, work)
    write_rows(draft / CHROMA_DIR, texts.rows, vectors)
    write_evidence(draft / EVIDENCE_DIR, texts.spans, sentence_vectors)
    reference.write(draft / REFERENCE_FILE)
    description = work.embedder.description
    manifest = Manifest(
        build_id=build_id,
        index_format=INDEX_FORMAT,
        model_name=description.name,
        model_fingerprint=description.fingerprint,
        dimension=description.dimension,
        chunker={"version": CHUNKER_VERSION, "chunk_chars": options.chunk_chars, "overlap_chars": options.overlap_chars},
        parser_version=PARSER_VERSION,
        context_version=f"{options.context}-{CONTEXT_VERSION}",
        sentences_version=SENTENCES_VERSION,
        reference_version=REFERENCE_VERSION,
        chromadb_version=version("chromadb"),
        card_hashes={card.card_id: _card_hash(card) for card in cards},
        counts={"cards": len(cards), "rows": len(texts.rows), "sentences": len(texts.sentences)},
        gate=gate,
        files=file_hashes(draft),
    )
    write_manifest(draft, manifest)
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
        yield Row(row_id(card.card_id, 0), 0, 0, 0, card.title, card, acl_version(card.acl), f"{options.context}-{CONTEXT_VERSION}")


def _calibrate(rows: Sequence[Row], vectors: Vectors, work: _Embedding) -> tuple[Reference, dict[str, float]]:
    """The gate and the language means, from the unrelated questions and the public rows."""
    questions = reference_questions()
    as_questions = {name: np.array([work.embedder.embed_query(text) for text in texts]) for name, texts in questions.items()}
    as_passages = {name: work.passages("calibration", texts).mean(axis=0) for name, texts in questions.items()}
    reference = Reference({name: found.mean(axis=0) for name, found in as_questions.items()}, as_passages)
    ranked = [number for number, row in enumerate(rows) if row.end > row.start]
    # hidden cards must not move what others see; where all are hidden, they are all there is
    public = [number for number in ranked if PUBLIC_GROUP in rows[number].card.acl] or ranked
    best = [float((vectors[public] @ vector).max()) for found in as_questions.values() for vector in found if public]
    gate = {"threshold": gate_threshold(best), "quantile": GATE_QUANTILE, "questions": float(len(best))}
    return reference, gate


class _Embedding:
    """Texts to vectors through the cache, with progress."""

    def __init__(self, embedder: Embedder, cache: VectorCache, progress: Progress) -> None:
        self.embedder = embedder
        self.embedded = 0
        self._cache = cache
        self._progress = progress

    def passages(self, what: str, texts: Sequence[str]) -> Vectors:
        """Vectors, (n, d) float32, in the order of the texts."""
        vectors = np.empty((len(texts), self.embedder.description.dimension), np.float32)
        missing: list[int] = []
        for number, text in enumerate(texts):
            found = self._cache.get(text)
            if found is None:
                missing.append(number)
            else:
                vectors[number] = found
        # alike in length, so that a batch holds little padding
        missing.sort(key=lambda number: len(texts[number]))
        self._progress(what, len(texts) - len(missing), len(texts))
        for first in range(0, len(missing), EMBED_BATCH):
            batch = missing[first : first + EMBED_BATCH]
            fresh = self.embedder.embed_passages([texts[number] for number in batch])
            self._cache.put([texts[number] for number in batch], fresh)
            vectors[batch] = fresh
            self.embedded += len(batch)
            self._progress(what, len(texts) - len(missing) + first + len(batch), len(texts))
        return vectors


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


def _build_in_use(index_dir: Path) -> str | None:
    try:
        return current_build(index_dir).name
    except (IndexMissing, IndexUnusable):
        return None


def _finished(build_dir: Path) -> Manifest | None:
    """The manifest of a build that is whole."""
    try:
        manifest = read_manifest(build_dir)
        check_files(build_dir, manifest)
    except (IndexMissing, IndexUnusable):
        return None
    return manifest


def _verify(draft: Path, manifest: Manifest) -> None:
    """Read the build as the server will, in another process, and compare."""
    check_files(draft, manifest)
    rows, vectors = read_rows(draft / CHROMA_DIR)
    check_files(draft, manifest)
    if len(rows) != manifest.counts["rows"]:
        raise BuildFailed(f"{draft}: {len(rows)} rows were read back, not {manifest.counts['rows']}.")
    lengths = np.linalg.norm(vectors, axis=1)
    if vectors.shape != (len(rows), manifest.dimension) or not np.allclose(lengths, 1.0, atol=1e-3):
        raise BuildFailed(f"{draft}: the vectors read back are not {manifest.dimension} numbers of unit length.")


def _remove_old_builds(index_dir: Path, *, keep: set[str | None]) -> None:
    for path in index_dir.iterdir():
        is_build = path.is_dir() and (path.name.startswith(".draft-") or (path / "manifest.json").is_file())
        if is_build and path.name not in keep:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _lock(index_dir: Path) -> Iterator[None]:
    """
    One builder at a time; the kernel lets go of the lock however the builder ends.

    Raises:
        BuildRunning: another one holds it.
    """
    import fcntl  # noqa: PLC0415 - the server, which never locks, also runs where this does not exist

    with (index_dir / LOCK_FILE).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BuildRunning(f"Another builder is at work in {index_dir}; wait until it has finished.") from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
