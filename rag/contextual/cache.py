"""What a language model wrote about chunks, on disk, so that no call is paid for twice."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rag.contextual.prompt import GENERATOR_VERSION, PROMPT_VERSION
from rag.errors import CacheFailed
from rag.records import Card, Chunk

KEPT_CHARS = 4_000
"""Of an answer; one this long is refused anyway."""
_TOUCHES = 1_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY,
    text TEXT NOT NULL,
    finish_reason TEXT,
    tokens_in INTEGER,
    tokens_out INTEGER,
    seconds REAL NOT NULL,
    seen INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS publications (number INTEGER NOT NULL);
INSERT INTO publications SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM publications);
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as it arrived, whether or not it passes validation."""

    text: str
    finish_reason: str | None
    tokens_in: int | None
    tokens_out: int | None
    seconds: float


class ContextCache:
    """
    An SQLite file from (document, chunk, parser, prompt, generator, model) to the model's own words.

    Answers are kept raw and validated on reading: stricter or milder rules cost no call, and an answer that was
    refused is not asked for again. So the file also holds text that nobody may be shown. An answer is on disk when
    ``put`` returns. Only one process writes at a time: the builder, which holds its lock.

    Raises, from every method:
        CacheFailed: the file cannot be read or written; names it.
    """

    def __init__(self, path: Path, *, model: str, parser_version: int) -> None:
        self._path = path
        self._versions = f"{parser_version}\0{PROMPT_VERSION}\0{GENERATOR_VERSION}\0{model}"
        self._touched: list[bytes] = []
        with self._naming():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=30.0)
            try:
                self._publication = self._prepare()
            except sqlite3.Error:
                self._connection.close()
                raise

    def __enter__(self) -> ContextCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            # after a fault the next build notes what it uses anyway
            if error is None:
                with self._naming():
                    self._write_touches()
        finally:
            self._connection.close()

    def key(self, card: Card, chunk: Chunk) -> bytes:
        """
        What an answer is kept under: everything that shapes the question, and nothing that does not.

        Groups, source, licence and id of a card are no part of it: cards with the same words share their answers.
        """
        document = hashlib.sha256("\0".join((card.language, card.title, card.text)).encode()).hexdigest()
        # the same words twice in a card may stand in two sections
        parts = f"{self._versions}\0{document}\0{chunk.start}\0{chunk.text}"
        return hashlib.sha256(parts.encode()).digest()

    def get(self, key: bytes) -> KeptAnswer | None:
        """The answer under a key, if it is there; counts as a use of it."""
        with self._naming():
            found = self._connection.execute(
                "SELECT text, finish_reason, tokens_in, tokens_out, seconds, seen FROM answers WHERE key = ?", (key,)
            ).fetchone()
            if found and found[5] != self._publication:
                self._touched.append(key)
                if len(self._touched) >= _TOUCHES:
                    self._write_touches()
        return KeptAnswer(*found[:5]) if found else None

    def put(self, key: bytes, answer: KeptAnswer) -> None:
        """Keep an answer; it is on disk when this returns."""
        figures = (answer.finish_reason, answer.tokens_in, answer.tokens_out, answer.seconds, self._publication)
        with self._naming(), self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, answer.text, *figures),
            )

    def trim(self) -> int:
        """
        Drop what was used neither since the last call nor between the two before; returns how many answers went.

        To be called when a build was published: builds that were killed in between age nothing.
        """
        with self._naming():
            self._write_touches()
            with self._connection:
                dropped = self._connection.execute("DELETE FROM answers WHERE seen < ?", (self._publication - 1,))
                self._connection.execute("UPDATE publications SET number = ?", (self._publication + 1,))
        self._publication += 1
        return dropped.rowcount

    def __len__(self) -> int:
        with self._naming():
            return int(self._connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def _prepare(self) -> int:
        """Create what is missing; gives the number of publications so far."""
        self._connection.execute("PRAGMA journal_mode = WAL")
        # each answer was paid for, so each commit reaches the disk itself
        self._connection.execute("PRAGMA synchronous = FULL")
        # what is dropped may come from a card that is no longer public
        self._connection.execute("PRAGMA secure_delete = ON")
        self._connection.executescript(_SCHEMA)
        return int(self._connection.execute("SELECT number FROM publications").fetchone()[0])

    def _write_touches(self) -> None:
        touched, self._touched = self._touched, []
        if not touched:
            return
        with self._connection:
            self._connection.executemany(
                "UPDATE answers SET seen = ? WHERE key = ?", [(self._publication, key) for key in touched]
            )

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CacheFailed(self._path, str(error)) from error
