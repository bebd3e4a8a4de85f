"""Embedders behind a cache: on disk, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.embedding import Embedder, ModelDescription, QueryEmbedder
from rag.vector_cache import VectorCache

EMBED_BATCH = 64
"""Texts between two writes to the cache: what a killed build pays for twice at most."""

Vectors = NDArray[np.float32]


class CachedEmbedder:
    """Embeds, but no text twice: what the cache holds is read, and what it does not is kept at once."""

    def __init__(self, embedder: Embedder, cache: VectorCache, *, told: Callable[[int], object] | None = None) -> None:
        """``told`` is called with the number of texts embedded, each time some were."""
        self.embedded = 0
        self._embedder = embedder
        self._cache = cache
        self._told = told

    @property
    def description(self) -> ModelDescription:
        """Of the model."""
        return self._embedder.description

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors, (n, d) float32, in the order of the texts."""
        unique = list(dict.fromkeys(texts))
        known = self._cache.get(unique)
        self._cache.mark(list(known))
        missing = [text for text in unique if text not in known]
        for first in range(0, len(missing), EMBED_BATCH):
            batch = missing[first : first + EMBED_BATCH]
            fresh = self._embedder.embed_passages(batch)
            self._cache.put(batch, fresh)
            known.update(zip(batch, fresh, strict=True))
            self.embedded += len(batch)
            if self._told:
                self._told(self.embedded)
        return np.array([known[text] for text in texts], np.float32).reshape(-1, self.description.dimension)

    def embed_query(self, question: str) -> Vectors:
        """The vector of one question, (d,) float32, unit length."""
        known = self._cache.get([question], kind="query")
        if known:
            self._cache.mark([question], kind="query")
            return known[question]
        vector = self._embedder.embed_query(question)
        self._cache.put([question], vector[None], kind="query")
        return vector

    def truncates(self, question: str) -> bool:
        """Whether the model does not read all of the question."""
        return self._embedder.truncates(question)


class RememberingEmbedder:
    """Embeds each question once, and remembers its vector for as long as it lives."""

    def __init__(self, embedder: QueryEmbedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def embed_query(self, question: str) -> Vectors:
        """The vector of one question, (d,) float32, unit length."""
        if question not in self._known:
            self._known[question] = self._embedder.embed_query(question)
        return self._known[question]

    def truncates(self, question: str) -> bool:
        """Whether the model does not read all of the question."""
        return self._embedder.truncates(question)
