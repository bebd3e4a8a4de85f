"""Vectors of texts already embedded, on disk, so that no text is embedded twice."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class VectorCache:
    """An SQLite file from text and model to vector. Vectors are kept as float32."""

    def __init__(self, path: Path, *, model_fingerprint: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fingerprint = model_fingerprint
        self._connection = sqlite3.connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    def get(self, text: str) -> Vectors | None:
        """The vector of a text, (d,) float32, if it is there."""
        found = self._connection.execute("SELECT vector FROM vectors WHERE key = ?", (self._key(text),)).fetchone()
        return np.frombuffer(found[0], np.float32) if found else None

    def put(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors, (n, d) float32, of these texts; they are on disk when this returns."""
        entries = [(self._key(text), vector.tobytes()) for text, vector in zip(texts, vectors, strict=True)]
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", entries)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._fingerprint}\0{text}".encode()).digest()
