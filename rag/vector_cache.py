"""Vectors of texts already embedded, on disk, so that no text is embedded twice."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from rag.errors import CacheFailed

CACHE_FORMAT = 2
"""Raise it when the table changes; a cache of another format is begun anew."""
RUNS_KEPT = 2
"""A vector that this many builds in a row had no use for is dropped."""
_LOOKUP = 500

Vectors = NDArray[np.float32]


class VectorCache:
    """
    An SQLite file from text and model to vector, float32. ``kind`` tells a question from a passage of equal words.

    What is marked or put is noted with the number of the run: a new one, or ``run`` for a process that helps in it.

    Raises, from every method:
        CacheFailed: the file cannot be read or written; names it.
    """

    def __init__(self, path: Path, *, model_fingerprint: str, run: int | None = None) -> None:
        self._path = path
        self._fingerprint = model_fingerprint
        with self._naming():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path)
            self._connection.execute("PRAGMA journal_mode = WAL")
            # a killed process loses nothing; a power cut may cost the last vectors, which can be computed again
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA secure_delete = ON")
            if self._connection.execute("PRAGMA user_version").fetchone()[0] != CACHE_FORMAT:
                self._connection.execute("DROP TABLE IF EXISTS vectors")
                self._connection.execute(f"PRAGMA user_version = {CACHE_FORMAT}")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, run INTEGER NOT NULL)"
            )
            last = self._connection.execute("SELECT coalesce(max(run), 0) FROM vectors").fetchone()[0]
        self.run: int = last + 1 if run is None else run

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    def get(self, texts: Sequence[str], *, kind: str = "passage") -> dict[str, Vectors]:
        """The vectors, (d,) float32, of those of the texts that are there."""
        keys = {self._key(text, kind): text for text in texts}
        found: dict[str, Vectors] = {}
        ordered = list(keys)
        with self._naming():
            for first in range(0, len(ordered), _LOOKUP):
                page = ordered[first : first + _LOOKUP]
                marks = ",".join("?" * len(page))
                entries = self._connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", page)
                found |= {keys[key]: np.frombuffer(vector, np.float32) for key, vector in entries}
        return found

    def mark(self, texts: Sequence[str], *, kind: str = "passage") -> None:
        """Note that this run had a use for these."""
        entries = [(self.run, self._key(text, kind)) for text in texts]
        with self._naming(), self._connection:
            self._connection.executemany("UPDATE vectors SET run = ?1 WHERE key = ?2 AND run <> ?1", entries)

    def put(self, texts: Sequence[str], vectors: Vectors, *, kind: str = "passage") -> None:
        """Keep vectors, (n, d) float32, of these texts; another process sees them when this returns."""
        entries = [
            (self._key(text, kind), vector.tobytes(), self.run) for text, vector in zip(texts, vectors, strict=True)
        ]
        with self._naming(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", entries)

    def trim(self) -> None:
        """Drop what the last runs had no use for, so that nothing of a deleted card stays for good."""
        with self._naming(), self._connection:
            self._connection.execute("DELETE FROM vectors WHERE run <= ?", (self.run - RUNS_KEPT,))

    def _key(self, text: str, kind: str) -> bytes:
        return hashlib.sha256(f"{self._fingerprint}\0{kind}\0{text}".encode()).digest()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            raise CacheFailed(self._path, str(error)) from error
