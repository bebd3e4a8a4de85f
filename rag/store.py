"""Rows into Chroma and out again. This module alone imports chromadb, and only where it opens a folder.

Importing chromadb costs more than a second and 60 MB, and opening a folder writes to it. So readers let a child process
open a private copy, and keep only the rows. Writers use a child too: Chroma's graph file holds whatever its process's
memory held before, so that process should know nothing but the rows. Both children use Chroma's engine alone, without
the package around it, where it is the known one.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rag.errors import IndexMissing, IndexUnusable, IndexUnwritable, RagError
from rag.files import sweep_temporary, temporary_dir
from rag.records import Card, Row

STORE_FORMAT = 2
COLLECTION = "chunks"
LARGE_CARD_BYTES = 16_384
"""A larger card's text and questions stand on its row 00 alone."""
PAGE_ROWS = 500
_COPY_PREFIX = "fichero-chroma-"
_NO_COLLECTION = f"it has no collection {COLLECTION!r}"
_PLACE = ("default_tenant", "default_database")
_PARTS = ["embeddings", "metadatas", "documents"]
_GRAPHS_OPEN = 1
_CONFIGURATION = {"hnsw": {"space": "cosine"}, "spann": None, "embedding_function": {"type": "legacy"}}
_OTHER_ENGINE = (ImportError, AttributeError, TypeError)
"""The engine is no public interface, and another release may have made another one of it."""
_ROW_FIELDS = ("parent_id", "chunk_index", "start", "end", "acl_version", "context_version")
_CHILD_ENVIRONMENT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR")
# -m needs the project's root, wherever we were started from
_ROOT = Path(__file__).resolve().parent.parent

Vectors = NDArray[np.float32]


class RowWriter:
    """
    Writes a new Chroma folder page by page, in a child process, and holds no rows itself.

    Raises, from every method:
        IndexUnwritable: the folder could not be written.
    """

    def __init__(self, chroma_dir: Path) -> None:
        self._chroma_dir = chroma_dir
        self._rows: list[Row] = []
        self._vectors: list[Vectors] = []

    def __enter__(self) -> RowWriter:
        # beside what is written, so that a killed writer leaves it where the rest of its draft is
        self._work = Path(tempfile.mkdtemp(prefix=".chroma-", dir=self._chroma_dir.absolute().parent))
        self._said = (self._work / "said").open("w+")
        command, environment = _child("write", self._chroma_dir.absolute(), home=self._work)
        self._child = subprocess.Popen(
            command, cwd=_ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._said
        )
        return self

    def add(self, rows: Sequence[Row], vectors: Vectors) -> None:
        """Write rows with their vectors, (n, d) float32, unit length; a page is gathered before the child gets it."""
        self._rows += rows
        self._vectors.append(vectors)
        if len(self._rows) >= PAGE_ROWS:
            self._send_page()

    def _send_page(self) -> None:
        if not self._rows:
            return
        page = (self._rows, np.concatenate(self._vectors))
        self._rows, self._vectors = [], []
        try:
            pickle.dump(page, self._pipe, protocol=5)
        except OSError as error:
            # the child has ended, and knows why
            self._child.wait()
            raise IndexUnwritable(self._chroma_dir, self._why()) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._send_page()
            else:
                self._child.kill()
            with contextlib.suppress(OSError):
                # without this last word the child would take the pages for all there are
                pickle.dump(None, self._pipe, protocol=5)
                self._pipe.close()
            if self._child.wait() != 0 and kind is None:
                raise IndexUnwritable(self._chroma_dir, self._why())
        finally:
            self._said.close()
            shutil.rmtree(self._work, ignore_errors=True)
        if kind is None and self._work.exists():
            raise IndexUnwritable(self._work, "it is not wanted any more and could not be removed")

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._child.stdin is not None  # opened as a pipe above
        return self._child.stdin

    def _why(self) -> str:
        self._said.seek(0)
        return _last_line(self._said.read(), self._child.returncode)


def read_rows(chroma_dir: Path) -> tuple[list[Row], Vectors]:
    """
    All rows in order of id, with their vectors, (n, d) float32. Opens a private copy in a child process.

    Raises:
        IndexMissing: there is no such folder.
        IndexUnusable: it does not open, or was not written by a ``RowWriter``.
    """
    if not chroma_dir.is_dir():
        raise IndexMissing(chroma_dir)
    sweep_temporary(_COPY_PREFIX)
    with temporary_dir(_COPY_PREFIX) as work:
        copy, result = work / "chroma", work / "rows"
        try:
            shutil.copytree(chroma_dir, copy, copy_function=shutil.copyfile)
        except OSError as error:
            raise IndexUnusable(chroma_dir, f"it cannot be copied: {error}") from error
        command, environment = _child("read", copy, result, home=work)
        ended = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            what = _last_line(ended.stderr, ended.returncode)
            raise IndexUnusable(chroma_dir, f"its copy in {work} does not open: {what}")
        with result.open("rb") as file:
            rows: list[Row]
            rows, vectors = pickle.load(file)
    return rows, vectors


def _child(verb: str, *paths: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    """Command and environment of this module as a process of its own."""
    # chromadb looks for a home, which a container's user may not have; nothing else of ours is its business
    environment = {"HOME": str(home)} | {name: os.environ[name] for name in _CHILD_ENVIRONMENT if name in os.environ}
    return [sys.executable, "-m", "rag.store", verb, *map(str, paths)], environment


def _last_line(text: str, status: int) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else f"its process ended with {status}"


def _write_rows_here(chroma_dir: Path, given: IO[bytes]) -> None:
    """
    Write the pages pickled one after another in ``given``, up to a None.

    Raises:
        RagError: two rows have one id. Chroma's engine would keep one of them and say nothing.
    """
    seen: set[str] = set()
    with adding_by_engine(chroma_dir) or adding_by_client(chroma_dir) as add:
        while (page := pickle.load(given)) is not None:
            rows, vectors = page
            for row in rows:
                if row.row_id in seen:
                    raise RagError(f"two rows have the id {row.row_id!r}")
                seen.add(row.row_id)
            for first in range(0, len(rows), PAGE_ROWS):
                part = rows[first : first + PAGE_ROWS]
                add(
                    [row.row_id for row in part],
                    vectors[first : first + PAGE_ROWS],
                    [row.text_indexed for row in part],
                    [_metadata(row) for row in part],
                )


Add = Callable[[list[str], Vectors, list[str], list[dict[str, Any]]], None]
"""Takes ids, vectors, documents and metadata of at most ``PAGE_ROWS`` rows."""


def adding_by_engine(chroma_dir: Path) -> AbstractContextManager[Add] | None:
    """
    Make the collection in a new folder by the engine that the package chromadb wraps.

    None where it is not the engine that this was written for; it has then made no collection.
    """
    try:
        chroma_dir.mkdir(parents=True, exist_ok=True)
        opened = _open_engine(chroma_dir)
        name = str(opened.create_collection(COLLECTION, json.dumps(_CONFIGURATION), None, None, False, *_PLACE).id)
    except _OTHER_ENGINE:
        return None

    def add(ids: list[str], vectors: Vectors, documents: list[str], metadatas: list[dict[str, Any]]) -> None:
        opened.add(ids, name, list(vectors), metadatas, documents, None, *_PLACE)

    return contextlib.nullcontext(add)


@contextmanager
def adding_by_client(chroma_dir: Path) -> Iterator[Add]:
    """The same by the package's own client."""
    with _open_client(chroma_dir) as client:
        settings = {"hnsw": _CONFIGURATION["hnsw"]}
        collection = client.create_collection(COLLECTION, configuration=settings, embedding_function=None)

        def add(ids: list[str], vectors: Vectors, documents: list[str], metadatas: list[dict[str, Any]]) -> None:
            collection.add(ids=ids, embeddings=vectors, documents=documents, metadatas=metadatas)

        yield add


def read_rows_here(chroma_dir: Path) -> tuple[list[Row], Vectors]:
    """
    As ``read_rows``, but opens the folder itself, in this process.

    Raises:
        RagError: the folder holds no collection of this format.
    """
    try:
        return _read_pages(stored_by_engine(chroma_dir))
    except _OTHER_ENGINE:
        with _open_client(chroma_dir) as client:
            return _read_pages(stored_by_client(client))


@dataclass(frozen=True, slots=True)
class Stored:
    """The collection of a folder that has been opened."""

    space: str
    count: int
    page: Callable[[int], tuple[Sequence[str], Any, Sequence[Any], Sequence[Any]]]
    """Ids, vectors, metadata and documents of at most ``PAGE_ROWS`` rows from a place on."""


def stored_by_engine(chroma_dir: Path) -> Stored:
    """
    Open a folder by the engine that the package chromadb wraps.

    Raises:
        RagError: there is no collection of ours.
        ImportError, AttributeError, TypeError: it is not the engine that this was written for.
    """
    opened = _open_engine(chroma_dir)
    found = [known for known in opened.list_collections(None, None, *_PLACE) if known.name == COLLECTION]
    if not found:
        raise RagError(_NO_COLLECTION)
    name = str(found[0].id)

    def page(first: int) -> tuple[Sequence[str], Any, Sequence[Any], Sequence[Any]]:
        got = opened.get(name, None, None, PAGE_ROWS, first, None, _PARTS, *_PLACE)
        return got.ids, got.embeddings, got.metadatas, got.documents

    return Stored(found[0].configuration["hnsw"]["space"], opened.count(name, *_PLACE), page)


def stored_by_client(client: Any) -> Stored:
    """
    The same by the package's own client.

    Raises:
        RagError: there is no collection of ours.
    """
    if COLLECTION not in [collection.name for collection in client.list_collections()]:
        raise RagError(_NO_COLLECTION)
    collection = client.get_collection(COLLECTION, embedding_function=None)

    def page(first: int) -> tuple[Sequence[str], Any, Sequence[Any], Sequence[Any]]:
        got = collection.get(limit=PAGE_ROWS, offset=first, include=_PARTS)
        return got["ids"], got["embeddings"], got["metadatas"], got["documents"]

    return Stored(collection.configuration["hnsw"]["space"], collection.count(), page)


def _read_pages(stored: Stored) -> tuple[list[Row], Vectors]:
    """All rows by id; what a page holds beside what is wanted is let go of with the page."""
    if stored.space != "cosine":
        raise RagError(f"its collection measures {stored.space!r} distance, not cosine")
    vectors = np.empty((0, 0), np.float32)
    cards: dict[str, Card] = {}
    found: list[tuple[str, dict[str, Any], str]] = []
    for offset in range(0, stored.count, PAGE_ROWS):
        ids, embedded, metadatas, documents = stored.page(offset)
        embeddings = np.asarray(embedded, np.float32)
        if not found:
            vectors = np.empty((stored.count, embeddings.shape[1]), np.float32)
        vectors[offset : offset + len(embeddings)] = embeddings
        for row_id, metadata, document in zip(ids, metadatas, documents, strict=True):
            if "parent_text" in metadata and metadata["parent_id"] not in cards:
                cards[metadata["parent_id"]] = _card(metadata)
            found.append((row_id, {name: metadata[name] for name in _ROW_FIELDS}, document))
    order = sorted(range(len(found)), key=lambda number: found[number][0])
    return [_row(*found[number], cards) for number in order], vectors[order]


def _card(metadata: dict[str, Any]) -> Card:
    return Card(
        card_id=metadata["parent_id"],
        title=metadata["parent_title"],
        text=metadata["parent_text"],
        language=metadata["language"],
        topics=tuple(metadata.get("topics", ())),
        license=metadata.get("license"),
        source=metadata.get("source"),
        accessed_at=metadata.get("accessed_at"),
        acl=tuple(metadata.get("acl", ())),
        questions=tuple(metadata.get("questions", ())),
    )


def _row(row_id: str, metadata: dict[str, Any], document: str, cards: dict[str, Card]) -> Row:
    if metadata["parent_id"] not in cards:
        raise RagError(f"row {row_id} carries no text of its card")
    return Row(
        row_id=row_id,
        chunk_index=metadata["chunk_index"],
        start=metadata["start"],
        end=metadata["end"],
        text_indexed=document,
        card=cards[metadata["parent_id"]],
        acl_version=metadata["acl_version"],
        context_version=metadata["context_version"],
    )


def _metadata(row: Row) -> dict[str, Any]:
    """What Chroma stores beside a row: it takes no None and no empty list, so those stay out."""
    card = row.card
    values: dict[str, Any] = {
        "parent_id": card.card_id,
        "chunk_index": row.chunk_index,
        "start": row.start,
        "end": row.end,
        "parent_title": card.title,
        "topics": list(card.topics),
        "license": card.license,
        "source": card.source,
        "accessed_at": card.accessed_at,
        "language": card.language,
        "acl": list(card.acl),
        "acl_version": row.acl_version,
        "context_version": row.context_version,
    }
    kept = {name: value for name, value in values.items() if value not in (None, [])}
    if row.chunk_index == 0 or len(card.text.encode()) <= LARGE_CARD_BYTES:
        kept["parent_text"] = card.text
        if card.questions:
            kept["questions"] = list(card.questions)
    return kept


def _open_engine(chroma_dir: Path) -> Any:
    """Chroma's engine on a folder; imports in a thirtieth of the package's time."""
    import chromadb_rust_bindings as engine  # noqa: PLC0415 - see the module's docstring

    files = engine.SqliteDBConfig(
        hash_type=engine.MigrationHash.MD5,
        migration_mode=engine.MigrationMode.Apply,
        url=str(chroma_dir / "chroma.sqlite3"),
    )
    return engine.Bindings(
        allow_reset=False, sqlite_db_config=files, persist_path=str(chroma_dir), hnsw_cache_size=_GRAPHS_OPEN
    )


@contextmanager
def _open_client(chroma_dir: Path) -> Iterator[Any]:
    """A Chroma client that is closed, with its files, at the end."""
    import chromadb  # noqa: PLC0415 - see the module's docstring
    from chromadb.config import Settings  # noqa: PLC0415

    settings = Settings(anonymized_telemetry=False, allow_reset=False)
    client: Any = chromadb.PersistentClient(str(chroma_dir), settings=settings)
    try:
        yield client
    finally:
        client.close()


def _main(verb: str, *paths: str) -> int:
    """The child: ``write`` the rows of standard input into a folder, or ``read`` a folder and pickle its rows."""
    try:
        if verb == "write":
            _write_rows_here(Path(paths[0]), sys.stdin.buffer)
        else:
            with Path(paths[1]).open("wb") as result:
                pickle.dump(read_rows_here(Path(paths[0])), result, protocol=5)
    except Exception as error:  # chromadb raises errors of many kinds; the parent names the folder
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
