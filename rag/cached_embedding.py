"""An embedder behind a cache, with progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.embedding import Embedder
from rag.vector_cache import VectorCache

EMBED_BATCH = 64
"""Texts between two writes to the cache: what a killed build pays for twice at most."""

Vectors = NDArray[np.float32]
Progress = Callable[[str, int, int], object]
"""Called with what is being done, how many are done, and how many there are."""


class CachedEmbedder:
    """Embeds passages, but none twice: what the cache holds is read, and what it does not is kept at once."""

    def __init__(self, embedder: Embedder, cache: VectorCache, progress: Progress) -> None:
        self.embedder = embedder
        self.embedded = 0
        self._cache = cache
        self._progress = progress

    def passages(self, what: str, texts: Sequence[str]) -> Vectors:
        """Vectors, (n, d) float32, in the order of the texts."""
        vectors = np.empty((len(texts), self.embedder.description.dimension), np.float32)
        places: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            places.setdefault(text, []).append(number)
        missing: list[str] = []
        for text, numbers in places.items():
            found = self._cache.get(text)
            if found is None:
                missing.append(text)
            else:
                vectors[numbers] = found
        self._progress(what, len(places) - len(missing), len(places))
        for first in range(0, len(missing), EMBED_BATCH):
            batch = missing[first : first + EMBED_BATCH]
            fresh = self.embedder.embed_passages(batch)
            self._cache.put(batch, fresh)
            for text, vector in zip(batch, fresh, strict=True):
                vectors[places[text]] = vector
            self.embedded += len(batch)
            self._progress(what, len(places) - len(missing) + first + len(batch), len(places))
        return vectors
