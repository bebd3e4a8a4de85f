"""No text is embedded twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.cached_embedding import EMBED_BATCH, CachedEmbedder, RememberingEmbedder
from rag.embedding import Embedder
from rag.vector_cache import VectorCache


@pytest.fixture
def cache(tmp_path: Path) -> VectorCache:
    """An empty cache."""
    return VectorCache(tmp_path / "v.sqlite", model_fingerprint="m")


def test_vectors_come_in_the_order_asked_for(cache: VectorCache, embedder: Embedder) -> None:
    """Known, unknown and repeated texts give what the model gives, in their order, each embedded once."""
    work = CachedEmbedder(embedder, cache)
    work.passages(["dos"])
    texts = ["uno", "dos", "uno", "tres"]
    assert np.array_equal(work.passages(texts), embedder.embed_passages(texts))
    assert work.embedded == 3
    assert work.passages([]).shape == (0, embedder.description.dimension)


def test_a_question_is_no_passage(cache: VectorCache, embedder: Embedder) -> None:
    """The same words as question and as passage have two vectors, and both are kept."""
    for _ in range(2):
        work = CachedEmbedder(embedder, cache)
        assert np.array_equal(work.embed_query("agua"), embedder.embed_query("agua"))
        assert np.array_equal(work.passages(["agua"])[0], embedder.embed_passages(["agua"])[0])
    assert work.embedded == 0


def test_what_was_embedded_is_kept_batch_by_batch(cache: VectorCache, embedder: Embedder) -> None:
    """A run that is stopped in its second batch has kept the first."""

    def stop(count: int) -> None:
        raise KeyboardInterrupt

    texts = [f"texto {number}" for number in range(EMBED_BATCH + 1)]
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedder(embedder, cache, told=stop).passages(texts)
    assert set(cache.get(texts)) == set(texts[:EMBED_BATCH])


def test_what_is_used_stays_and_what_is_not_goes(tmp_path: Path, embedder: Embedder) -> None:
    """A vector survives one run that has no use for it, and no second one; a helping process counts as the same run."""
    path = tmp_path / "v.sqlite"
    left: list[set[str]] = []
    for texts in (["uno", "dos"], ["dos"], ["dos"]):
        with VectorCache(path, model_fingerprint="m") as cache:
            CachedEmbedder(embedder, cache).passages(texts)
            with VectorCache(path, model_fingerprint="m", run=cache.run) as helper:
                CachedEmbedder(embedder, helper).embed_query("pregunta")
            cache.trim()
            left.append(set(cache.get(["uno", "dos"])) | set(cache.get(["pregunta"], kind="query")))
    assert left == [{"uno", "dos", "pregunta"}, {"uno", "dos", "pregunta"}, {"dos", "pregunta"}]


def test_a_question_is_remembered() -> None:
    """A question asked again is not embedded again."""
    asked: list[str] = []

    class Counting:
        def embed_query(self, question: str) -> NDArray[np.float32]:
            asked.append(question)
            return np.array([len(asked)], np.float32)

        def truncates(self, question: str) -> bool:
            return False

    known = RememberingEmbedder(Counting())
    assert [known.embed_query(question).tolist() for question in ("a", "b", "a")] == [[1], [2], [1]]
    assert asked == ["a", "b"]
