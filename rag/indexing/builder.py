"""The build line: cards → chunks → contexts → indexed texts → vectors → sealed index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

from rag.builds import (
    build_in_use,
    builder_lock,
    draft_dir,
    earlier_build,
    folders_of,
    history,
    publish,
    remove_drafts,
    remove_other_builds,
    roll_back,
    use_build,
)
from rag.cached_embedding import CachedEmbedder
from rag.cards import PARSER_VERSION, CardFolder, card_hash
from rag.cases import Golden
from rag.chunking import CHUNKER_VERSION
from rag.contextual import CONTEXT_VERSION, ContextGenerator
from rag.embedding import ModelDescription, load_embedder, read_description
from rag.errors import CacheFailed, CardsInvalid, Fault, IndexMissing, RagError, SettingsInvalid
from rag.files import write_whole
from rag.gate import GATE_VERSION
from rag.indexing.changes import Changes, changes_between
from rag.indexing.preparing import BuildOptions, batches, prepare
from rag.indexing.writing import Written, write_files
from rag.lexical import LEXICAL_VERSION
from rag.manifest import (
    INDEX_FORMAT,
    OUTCOMES_FILE,
    Manifest,
    check_files,
    file_hashes,
    read_if_usable,
    read_manifest,
    write_manifest,
)
from rag.measuring import read_outcomes, shortfalls, summary
from rag.records import Card, Chunk
from rag.reference import REFERENCE_VERSION, reference_questions
from rag.sentences import SENTENCES_VERSION
from rag.store import STORE_FORMAT
from rag.vector_cache import VectorCache
from rag.verification import BuildFailed, Verified, verify_build

VECTORS_FILE, CONTEXTS_FILE = "cache/vectors.sqlite", "cache/contexts.sqlite"
EVALUATION_FILE = "cache/evaluation.sqlite"
"""Vectors that only evaluations have a use for: no build marks or trims them, and ``clean`` drops them."""

Progress = Callable[[str, int, int], object]
"""Called with what is being done, how many are done, and how many there are."""


class CleanupFailed(RagError):
    """The new build is in use, but something old could not be removed."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did."""

    manifest: Manifest
    fresh: bool
    """False when the build in use was already this one."""
    changes: Changes
    embedded: int
    """Texts that went through the model; the others came out of the cache."""
    contextualised: int
    """Answers of the language model that this run paid for."""


def usable_cards(folder: CardFolder, *, skip_broken: bool) -> Sequence[Card]:
    """
    The cards to build from.

    Raises:
        CardsInvalid: a card is broken and may not be skipped, or no card is left.
    """
    if folder.faults and not skip_broken:
        raise CardsInvalid(folder.faults)
    if not len(folder.cards):
        left = "all are broken" if folder.faults else "it holds no card; put Markdown files (*.md) there"
        raise CardsInvalid([*folder.faults, Fault(".", 1, f"there is nothing to build from: {left}")])
    return folder.cards


@dataclass(frozen=True, slots=True)
class Builder:
    """
    Builds beside the index in use, verifies in a fresh process, and puts into use; with nothing changed, does nothing.

    Cards are taken one after another, so memory does not grow with the box but for some bytes a card.
    """

    index_dir: Path
    model_dir: Path
    options: BuildOptions
    threads: int = 2
    progress: Progress = lambda *_: None
    clean: bool = False
    """Drop the caches of vectors and make everything anew; no other build is kept."""
    keep: int = 1
    """Builds from before that stay on disk."""
    golden: Golden | None = None
    """Cases that a build has to do well on before it is put into use."""
    accept_worse: bool = False
    """Put a build into use though it does worse on them."""
    generator: ContextGenerator | None = None
    """Where generated contexts come from; needed by the strategy ``llm``."""
    context_coverage: float = 0.0
    """The share of chunks that have to get a generated context."""

    def build(self, cards: Sequence[Card]) -> BuildReport:
        """
        Bring the index up to date with these cards, in order of id; each is asked for more than once.

        Raises:
            BuildRunning: another builder holds the lock.
            BuildFailed: the new build does not verify, does worse than it may, or too few contexts were accepted.
            NotConfirmed, CleanupFailed: the new build is in use, but something is not as it should be.
            ModelMissing, ModelUnusable, SettingsInvalid, IndexUnwritable, CacheFailed, GenerationStopped: as named.
            OSError: a file could not be written; names it.
        """
        self.options.check()
        if (self.options.context == "llm") != (self.generator is not None):
            raise SettingsInvalid("The context strategy llm needs a language model, and no other one takes any.")
        description = read_description(self.model_dir)
        self.index_dir.mkdir(parents=True, exist_ok=True)
        with builder_lock(self.index_dir):
            try:
                return self._build(cards, description)
            finally:
                remove_drafts(self.index_dir)

    def _build(self, cards: Sequence[Card], description: ModelDescription) -> BuildReport:
        hashes = {card.card_id: card_hash(card) for card in cards}
        golden = self.golden.for_cards(hashes) if self.golden else None
        contexts = self._generate(cards)
        build_id = self._build_id(hashes, description, golden, contexts)
        before = build_in_use(self.index_dir)
        old = read_if_usable(before)
        called = self.generator.report.called if self.generator else 0
        ready = None if self.clean else self._use_finished(build_id)
        if ready:
            moved = before != build_in_use(self.index_dir)
            if moved:
                self._tidy(build_id)
            return BuildReport(ready, moved, changes_between(old, ready), 0, called)
        if self.clean:
            self._drop_vectors()
        draft = draft_dir(self.index_dir, build_id)
        with VectorCache(self.index_dir / VECTORS_FILE, model_fingerprint=description.fingerprint) as cache:
            # texts side by side are quicker than threads within one
            work = CachedEmbedder(load_embedder(self.model_dir, threads=1, workers=self.threads), cache)
            written = self._write(draft, cards, work)
            if list(written.card_rows) != list(hashes):
                raise BuildFailed("The cards changed during the build; build again. The index in use is untouched.")
            unsealed = self._manifest(build_id, description, hashes, written)
            embedded = work.embedded
            # the process that verifies has a model of its own
            del work
            manifest = self._seal(draft, unsealed, golden, before, cache.run)
            publish(self.index_dir, draft, build_id)
            self._tidy(build_id, cache)
        return BuildReport(manifest, True, changes_between(old, manifest), embedded, called)

    def _use_finished(self, build_id: str) -> Manifest | None:
        """Put a build that is there and whole into use, and give what it says of itself."""
        for folder in folders_of(self.index_dir, build_id):
            manifest = read_if_usable(folder, whole=True)
            if manifest:
                if folder != build_in_use(self.index_dir):
                    use_build(self.index_dir, folder.name)
                return manifest
        return None

    def _drop_vectors(self) -> None:
        for path in (self.index_dir / VECTORS_FILE, self.index_dir / EVALUATION_FILE):
            for part in path.parent.glob(f"{path.name}*"):
                part.unlink()

    def _tidy(self, build_id: str, cache: VectorCache | None = None) -> None:
        """Remove what nobody has a use for now that this build is published."""
        kept = history(self.index_dir)[: 1 if self.clean else 1 + self.keep]
        try:
            if cache:
                cache.trim()
            if self.generator:
                self.generator.trim()
            remove_other_builds(self.index_dir, keep=kept)
        except (OSError, CacheFailed) as error:
            raise CleanupFailed(f"Index {build_id} is in use, but something old is still there: {error}.") from error

    def _generate(self, cards: Sequence[Card]) -> str | None:
        """Have the contexts of all cards in the cache; gives a hash of them."""
        if self.generator is None:
            return None
        report = self.generator.generate((card, self.options.chunks(card)) for card in cards)
        if report.coverage < self.context_coverage:
            raise BuildFailed(
                f"Only {report.coverage:.1%} of {report.chunks} chunks got a context, and {self.context_coverage:.1%} "
                f"are asked for (FICHERO_CONTEXT_COVERAGE); rejected: {_reasons(report.rejected)}; failed: "
                f"{_reasons(report.failed)}. What was answered is kept; the index in use is untouched."
            )
        digest = hashlib.sha256()
        for card in cards:
            digest.update(json.dumps([card.card_id, self._contexts(card, self.options.chunks(card))]).encode())
        return digest.hexdigest()

    def _write(self, draft: Path, cards: Sequence[Card], work: CachedEmbedder) -> Written:
        self.progress("Cards", 0, len(cards))
        prepared = (prepare(card, self.options, self._contexts) for card in cards)
        return write_files(draft, batches(prepared), work, told=lambda count: self.progress("Cards", count, len(cards)))

    def _manifest(
        self, build_id: str, description: ModelDescription, hashes: Mapping[str, str], written: Written
    ) -> Manifest:
        """Without the gate, the figures and the files."""
        options = self.options
        return Manifest(
            build_id=build_id,
            index_format=INDEX_FORMAT,
            model_name=description.name,
            model_fingerprint=description.fingerprint,
            dimension=description.dimension,
            model={
                "files": description.files,
                "query_prefix": description.query_prefix,
                "passage_prefix": description.passage_prefix,
                "pooling": description.pooling,
                "token_limit": description.token_limit,
            },
            chunker={
                "version": CHUNKER_VERSION,
                "chunk_chars": options.chunk_chars,
                "overlap_chars": options.overlap_chars,
            },
            parser_version=PARSER_VERSION,
            context_version=options.context_version,
            sentences_version=SENTENCES_VERSION,
            lexical_version=LEXICAL_VERSION,
            reference_version=REFERENCE_VERSION,
            chromadb_version=version("chromadb"),
            card_hashes=hashes,
            card_rows=written.card_rows,
            acl_version=written.acl_version,
            contexts=_figures(self.generator) if self.generator else None,
            counts={
                "cards": len(written.card_rows),
                "rows": sum(count for count, _ in written.card_rows.values()),
                "sentences": written.sentences,
            },
            gate={"thresholds": {}},
            evaluation={},
            files={},
        )

    def _contexts(self, card: Card, chunks: Sequence[Chunk]) -> Mapping[int, str]:
        return self.generator.cached_contexts(card, chunks) if self.generator else {}

    def _build_id(
        self, hashes: Mapping[str, str], description: ModelDescription, golden: Golden | None, contexts: str | None
    ) -> str:
        """A hash of everything that shapes the result, so that the same inputs give the same id."""
        shape = {
            "formats": [INDEX_FORMAT, STORE_FORMAT],
            "versions": [
                PARSER_VERSION,
                CHUNKER_VERSION,
                CONTEXT_VERSION,
                SENTENCES_VERSION,
                LEXICAL_VERSION,
                REFERENCE_VERSION,
                GATE_VERSION,
            ],
            "reference": reference_questions(),
            "model": description.fingerprint,
            "options": asdict(self.options),
            "contexts": contexts,
            "chromadb": version("chromadb"),
            "cards": list(hashes.items()),
            "golden": asdict(golden) if golden else None,
        }
        return _digest(shape)[:16]

    def _seal(self, draft: Path, unsealed: Manifest, golden: Golden | None, before: Path | None, run: int) -> Manifest:
        """
        Have the build verified, judge it, and write its manifest for good.

        Raises:
            BuildFailed: it does not verify, or does worse than it may.
        """
        self.progress("Verifying", 0, 1)
        write_manifest(draft, replace(unsealed, files=file_hashes(draft)))
        cases = golden.cases if golden else ()
        verified = verify_build(draft, self.model_dir, self.index_dir / VECTORS_FILE, run, cases)
        self._judge(verified, golden, before)
        outcomes = {key: asdict(outcome) for key, outcome in verified.outcomes.items()}
        write_whole(draft / OUTCOMES_FILE, json.dumps(outcomes, indent=0, sort_keys=True).encode())
        manifest = replace(
            unsealed, gate=asdict(verified.gate), evaluation=summary(verified.outcomes), files=file_hashes(draft)
        )
        write_manifest(draft, manifest)
        check_files(draft, manifest)
        self.progress("Verifying", 1, 1)
        return manifest

    def _judge(self, verified: Verified, golden: Golden | None, before: Path | None) -> None:
        reasons = shortfalls(golden, read_outcomes(before), verified.outcomes) if golden else []
        if reasons and not self.accept_worse:
            raise BuildFailed(
                f"The new build does worse on the golden cases than it may: {'; '.join(reasons)}. The index in use is "
                "untouched. To put the new one into use all the same: --accept-worse."
            )


def go_back(index_dir: Path) -> tuple[str, Manifest]:
    """
    Put the build before into use again, if it is whole.

    Gives the name of the one left, and what the other says of itself.

    Raises:
        BuildRunning: a builder holds the lock.
        IndexMissing, NoEarlierBuild: there is no build, or none before.
        IndexUnusable: the build before is damaged or of another format.
    """
    if not index_dir.is_dir():
        raise IndexMissing(index_dir)
    with builder_lock(index_dir):
        left, target = earlier_build(index_dir)
        manifest = read_manifest(index_dir / target)
        check_files(index_dir / target, manifest)
        roll_back(index_dir, target)
        return left, manifest


def _figures(generator: ContextGenerator) -> dict[str, object]:
    # what this run had to ask for says nothing about the build
    figures = {name: value for name, value in asdict(generator.report).items() if name != "called"}
    return figures | {"only": sorted(generator.only) if generator.only is not None else None}


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items()) or "none"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
