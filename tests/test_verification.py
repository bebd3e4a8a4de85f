"""A build judged by a process that knows only its files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.boxes import rows_of
from rag.builds import current_build
from rag.cached_embedding import CachedEmbedder
from rag.cards import read_cards
from rag.cases import Case
from rag.embedding import Embedder
from rag.indexing import VECTORS_FILE, Builder
from rag.manifest import CHROMA_DIR, file_hashes, read_manifest, write_manifest
from rag.records import Row
from rag.store import RowWriter
from rag.vector_cache import VectorCache
from rag.verification import BuildFailed, Verified, check_self_recall, verify_build
from tests.conftest import DEFAULT_BUILD, MODEL_DIR, build_quietly

CARDS = {
    "agua": "---\ntitle: Agua\n---\n\nBeba un vaso de agua con cada comprimido.\n",
    "luz": "---\ntitle: Luz\n---\n\nGuarde el frasco lejos de la luz.\n",
    "llave": "---\ntitle: Llave\nacl: [staff]\n---\n\nLa llave cuelga detrás de la puerta.\n",
}


@dataclass(frozen=True, slots=True)
class Box:
    """A build with its cards and cache."""

    folder: Path

    @property
    def build_dir(self) -> Path:
        return current_build(self.folder / "index")

    @property
    def cache_file(self) -> Path:
        return self.folder / "index" / VECTORS_FILE

    def verify(self, *cases: Case) -> Verified:
        return verify_build(self.build_dir, MODEL_DIR, self.cache_file, 1, cases)

    def rewrite(
        self, change: Callable[[list[Row], NDArray[np.float32]], tuple[list[Row], NDArray[np.float32]]]
    ) -> None:
        """Write the store again with other rows, and let the manifest believe it."""
        rows, vectors = change(*rows_of(self.build_dir))
        shutil.rmtree(self.build_dir / CHROMA_DIR)
        with RowWriter(self.build_dir / CHROMA_DIR) as writer:
            writer.add(rows, vectors)
        write_manifest(self.build_dir, replace(read_manifest(self.build_dir), files=file_hashes(self.build_dir)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three cards and their index; not to be changed."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "cards").mkdir()
    for name, text in CARDS.items():
        (folder / "cards" / f"{name}.md").write_text(text, "utf-8")
    build_quietly(folder / "cards", folder / "index")
    return folder


@pytest.fixture
def box(made: Path, tmp_path: Path) -> Box:
    """A copy of it, to damage."""
    shutil.copytree(made, tmp_path / "box")
    return Box(tmp_path / "box")


def test_a_whole_build_verifies(box: Box) -> None:
    """A build as it should be gives its rows, the gate that its manifest has, and what became of each case."""
    cases = [
        Case("¿Dónde cuelga la llave?", {"llave": 1.0}, ("public", "staff")),
        Case("¿Dónde cuelga la llave?", {"llave": 1.0}),
        Case("¿Quién pintó el techo de la capilla?", {}),
    ]
    found = box.verify(*cases)
    manifest = read_manifest(box.build_dir)
    assert (found.rows, asdict(found.gate)) == (3, manifest.gate)
    seen, hidden, unrelated = (found.outcomes[case.key] for case in cases)
    assert (seen.rank, seen.answerable) == (1, True)
    assert hidden.rank is None
    assert (unrelated.answerable, unrelated.refused) == (False, True)


def test_swapped_vectors_are_found(box: Box) -> None:
    """A row that carries the vector of another is named."""
    box.rewrite(lambda rows, vectors: (rows, vectors[[1, 0, 2]]))
    with pytest.raises(BuildFailed, match=r"Row agua::00 is not found by its own text"):
        box.verify()


@pytest.mark.parametrize("value", [np.nan, 0.0, 10.0], ids=["no number", "zero", "too long"])
def test_a_vector_that_is_none_is_found(box: Box, embedder: Embedder, value: float) -> None:
    """A vector that is not of unit length, or no vector, does not pass."""
    rows, vectors = rows_of(box.build_dir)
    changed = vectors.copy()
    changed[2] = vectors[2] * value
    with VectorCache(box.cache_file, model_fingerprint=embedder.description.fingerprint) as cache:
        work = CachedEmbedder(embedder, cache)
        check_self_recall(rows, vectors, work)
        with pytest.raises(BuildFailed):
            check_self_recall(rows, changed, work)


def test_a_missing_row_is_counted(box: Box) -> None:
    """A store with fewer rows than were written does not pass, and both counts are said."""
    box.rewrite(lambda rows, vectors: (rows[:2], vectors[:2]))
    with pytest.raises(BuildFailed, match="2 rows come back, 3 were written"):
        box.verify()


def test_a_changed_file_is_named(box: Box) -> None:
    """A file that differs from its hash in the manifest is named."""
    (box.build_dir / "sentences" / "spans.npy").write_bytes(b"x")
    with pytest.raises(BuildFailed, match=r"sentences/spans\.npy"):
        box.verify()


def test_a_cache_that_lies_is_found_out(box: Box, embedder: Embedder) -> None:
    """A vector of the cache that the model would not give stops the build, and the index in use stays."""
    before = box.build_dir
    (box.folder / "cards" / "nueva.md").write_text("---\ntitle: Nueva\n---\n\nTexto nuevo.\n", "utf-8")
    with VectorCache(box.cache_file, model_fingerprint=embedder.description.fingerprint) as cache:
        cache.put(["Nueva.\n\nTexto nuevo."], embedder.embed_passages(["otra cosa"]))
    cards = read_cards(box.folder / "cards").cards
    with pytest.raises(BuildFailed, match=r"Row nueva::00 .*make ingest-clean"):
        Builder(box.folder / "index", MODEL_DIR, DEFAULT_BUILD).build(cards)
    assert box.build_dir == before
    assert not list((box.folder / "index").glob(".draft-*"))
