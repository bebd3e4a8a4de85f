"""Rows into a real Chroma folder and out again."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import chromadb
import chromadb.api.rust  # holds the real engine
import numpy as np
import pytest
from chromadb.config import Settings
from numpy.typing import NDArray

from rag.errors import IndexMissing, IndexUnusable, IndexUnwritable, RagError
from rag.records import Card, Row
from rag.store import (
    COLLECTION,
    LARGE_CARD_BYTES,
    PAGE_ROWS,
    RowWriter,
    adding_by_client,
    adding_by_engine,
    read_rows,
    read_rows_here,
    stored_by_client,
    stored_by_engine,
)
from tests.fakes import hashed_vectors, make_card, make_row

# Chroma says this of its own doing whenever a collection without an embedding function is opened
pytestmark = pytest.mark.filterwarnings("ignore:legacy embedding function config:DeprecationWarning")

FULL = Card(
    card_id="a.completa_1",
    title="Título «con» comillas",
    text="Uno: ñandú 👩‍⚕️.\n\nDos\ttres.",
    language="en",
    topics=("uno", "dos, tres"),
    license="CC0-1.0",
    source="https://ejemplo.invalid/?a=b&c=d",
    accessed_at="2026-11-30",
    acl=("nurses", "staff"),
)
BARE = make_card("b-desnuda")
NOBODYS = make_card("c-de-nadie", acl=())
EMPTY = make_card("d-vacia", "")
LARGE = make_card("e-grande", "á" * (LARGE_CARD_BYTES // 2 + 1))
LIMIT = make_card("f-justa", "b" * LARGE_CARD_BYTES)


def write_rows(folder: Path, rows: Sequence[Row], vectors: NDArray[np.float32]) -> None:
    """Row after row, as a builder gives card after card."""
    with RowWriter(folder) as writer:
        for number, row in enumerate(rows):
            writer.add([row], vectors[number : number + 1])


def all_rows() -> list[Row]:
    rows = [replace(make_row(FULL, 0, end=5), text_indexed="Contexto.\n\nUno: ", acl_version="x", context_version="y")]
    rows += [make_row(card) for card in (BARE, NOBODYS, EMPTY)]
    rows += [make_row(card, number, start=number, end=number + 9) for card in (LARGE, LIMIT) for number in range(3)]
    # a document of no letters is what Chroma takes for none, so an empty card is indexed by its title
    return [row if row.text_indexed else replace(row, text_indexed=row.card.title) for row in rows]


def tree(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def foreign_collection(folder: Path, name: str, space: str, *, metadata: dict[str, str] | None = None) -> None:
    """A Chroma folder that this project did not write."""
    client: Any = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
    collection = client.create_collection(name, configuration={"hnsw": {"space": space}}, embedding_function=None)
    collection.add(
        ids=["una::00"], embeddings=[[1.0, 0.0]], documents=["Texto."], metadatas=[metadata] if metadata else None
    )
    client.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of rows of all kinds, given in the opposite order; not to be changed."""
    folder, rows = tmp_path_factory.mktemp("written") / "chroma", all_rows()
    write_rows(folder, list(reversed(rows)), hashed_vectors([row.row_id for row in rows])[::-1].copy())
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy of it, to damage and to open."""
    return shutil.copytree(written, tmp_path / "chroma")


def test_every_field_comes_back(written: Path) -> None:
    """Rows come back in order of id, equal in every field - None, empty lists, large and empty cards - with vectors."""
    rows = all_rows()
    vectors = hashed_vectors([row.row_id for row in rows])
    found, found_vectors = read_rows(written)
    assert found == rows
    assert found_vectors.dtype == np.float32
    assert np.allclose(found_vectors, vectors, atol=1e-6)


@pytest.mark.parametrize("adding", [adding_by_engine, adding_by_client])
@pytest.mark.parametrize("by_client", [False, True], ids=["read by the engine", "read by the client"])
def test_what_either_writes_both_read(tmp_path: Path, adding: Callable[[Path], Any], by_client: bool) -> None:
    """Engine and client write folders with the same collection, and read each other's."""
    folder = tmp_path / "chroma"
    vectors = hashed_vectors(["a", "b"], 4)
    with adding(folder) as add:
        add(["a::00", "b::00"], vectors, ["uno", "dos"], [{"n": 1, "l": ["x", "y"]}, {"t": "ñ"}])
    client: Any = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
    configuration = client.get_collection(COLLECTION, embedding_function=None).configuration
    assert configuration["hnsw"]["space"] == "cosine"
    stored = stored_by_client(client) if by_client else stored_by_engine(folder)
    ids, found, metadatas, documents = stored.page(0)
    client.close()
    assert stored.space == "cosine"
    assert stored.count == 2
    assert list(ids) == ["a::00", "b::00"]
    assert np.array_equal(np.asarray(found, np.float32), vectors)
    assert [dict(one) for one in metadatas] == [{"n": 1, "l": ["x", "y"]}, {"t": "ñ"}]
    assert list(documents) == ["uno", "dos"]


@pytest.mark.parametrize("engine", [None, object()], ids=["no engine", "another engine"])
def test_without_the_engine_the_client_reads_the_same(
    written: Path, folder: Path, engine: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Chroma's engine is not the known one, its public client gives the same rows and vectors to the bit."""
    rows, vectors = read_rows(written)
    monkeypatch.setitem(sys.modules, "chromadb_rust_bindings", engine)
    found, found_vectors = read_rows_here(folder)
    assert found == rows
    assert np.array_equal(found_vectors, vectors)


def test_reading_leaves_the_folder_as_it_was(written: Path) -> None:
    """Not a byte and not a file of the folder changes by being read, and two readings agree."""
    before = tree(written)
    (first, first_vectors), (second, second_vectors) = read_rows(written), read_rows(written)
    assert tree(written) == before
    assert first == second == all_rows()
    assert np.array_equal(first_vectors, second_vectors)


def test_many_rows_come_back(tmp_path: Path) -> None:
    """More rows than one page holds are written and read, none of them lost or doubled."""
    card = make_card(text="x" * 2_000)
    rows = [make_row(card, number, start=number, end=number + 9) for number in range(2 * PAGE_ROWS + 1)]
    vectors = hashed_vectors([row.row_id for row in rows], 4)
    write_rows(tmp_path / "chroma", rows, vectors)
    found, found_vectors = read_rows_here(tmp_path / "chroma")
    order = sorted(range(len(rows)), key=lambda number: rows[number].row_id)
    assert found == [rows[number] for number in order]
    assert np.allclose(found_vectors, vectors[order], atol=1e-6)


def test_rows_of_a_card_share_it(folder: Path) -> None:
    """The rows of a card hold one card, not a copy each."""
    rows = [row for row in read_rows_here(folder)[0] if row.card == LARGE]
    assert len(rows) == 3
    assert len({id(row.card) for row in rows}) == 1


def test_a_large_text_is_stored_once(folder: Path) -> None:
    """A card over the limit carries its text on its first row alone, one at the limit on each."""
    with sqlite3.connect(folder / "chroma.sqlite3") as database:
        query = "SELECT string_value FROM embedding_metadata WHERE key = 'parent_text'"
        stored = [text for (text,) in database.execute(query)]
    database.close()
    assert stored.count(LARGE.text) == 1
    assert stored.count(LIMIT.text) == 3


@pytest.mark.parametrize("apart", [1, PAGE_ROWS + 1], ids=["in one page", "pages apart"])
def test_two_rows_of_one_id_are_refused(tmp_path: Path, apart: int) -> None:
    """Neither row is dropped in silence, wherever they stand."""
    rows = [make_row(make_card(text="x" * 2_000), number, start=number, end=number + 9) for number in range(apart)]
    rows.append(rows[0])
    with pytest.raises(IndexUnwritable, match="two rows have the id"):
        write_rows(tmp_path / "chroma", rows, hashed_vectors([str(number) for number in range(len(rows))], 4))


def test_no_rows_come_back(tmp_path: Path) -> None:
    """A folder of no rows is read as no rows."""
    write_rows(tmp_path / "chroma", [], np.empty((0, 8), np.float32))
    rows, vectors = read_rows_here(tmp_path / "chroma")
    assert rows == []
    assert len(vectors) == 0


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """Where there is no folder, the error names it and the remedy; nothing is made there."""
    with pytest.raises(IndexMissing, match="chroma") as caught:
        read_rows(tmp_path / "chroma")
    assert caught.value.path == tmp_path / "chroma"
    assert not (tmp_path / "chroma").exists()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """A file in the place of the folder is no index."""
    (tmp_path / "chroma").write_text("nada")
    with pytest.raises(IndexMissing):
        read_rows(tmp_path / "chroma")


@pytest.mark.parametrize("space", ["l2", "ip"])
def test_another_distance_is_refused(tmp_path: Path, space: str) -> None:
    """A collection that does not measure cosine is refused by name: 1 - distance would be no cosine."""
    foreign_collection(tmp_path / "chroma", COLLECTION, space)
    with pytest.raises(RagError, match=f"'{space}'"):
        read_rows_here(tmp_path / "chroma")


def test_a_default_collection_is_refused_with_folder_and_remedy(tmp_path: Path) -> None:
    """The server's way of reading says which folder measures l2, and what to do."""
    folder = tmp_path / "chroma"
    foreign_collection(folder, COLLECTION, "l2")
    with pytest.raises(IndexUnusable, match=r"'l2'.*make ingest-clean") as caught:
        read_rows(folder)
    assert str(folder) in str(caught.value)


def test_a_folder_without_our_collection_is_refused(tmp_path: Path) -> None:
    """A Chroma folder that holds something else is refused, and so is one without our rows' fields."""
    foreign_collection(tmp_path / "other", "otra", "cosine")
    with pytest.raises(RagError, match=f"no collection '{COLLECTION}'"):
        read_rows_here(tmp_path / "other")


@pytest.mark.parametrize("damage", ["foreign rows", "empty folder", "text for a database", "cut database", "dead link"])
def test_a_damaged_folder_is_refused(written: Path, tmp_path: Path, damage: str) -> None:
    """A folder that does not open, or was not written by us, is IndexUnusable, in one line, and stays untouched."""
    folder = tmp_path / "chroma"
    if damage == "foreign rows":
        foreign_collection(folder, COLLECTION, "cosine", metadata={"autor": "otra"})
    elif damage == "empty folder":
        folder.mkdir()
    else:
        shutil.copytree(written, folder)
        database = folder / "chroma.sqlite3"
        if damage == "text for a database":
            database.write_bytes(b"nada de nada" * 1_000)
        elif damage == "cut database":
            database.write_bytes(database.read_bytes()[:20_000])
        else:
            (folder / "perdido").symlink_to(tmp_path / "no-hay")
    before = tree(folder)
    with pytest.raises(IndexUnusable) as caught:
        read_rows(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert tree(folder) == before


def test_a_large_card_without_its_first_row_is_refused(tmp_path: Path) -> None:
    """Rows whose card's text is nowhere are refused instead of read in part."""
    rows = [make_row(LARGE, number, start=number, end=number + 9) for number in (1, 2)]
    write_rows(tmp_path / "chroma", rows, hashed_vectors("ab"))
    with pytest.raises((RagError, KeyError)):
        read_rows_here(tmp_path / "chroma")


def test_a_folder_is_written_once(folder: Path) -> None:
    """Rows are never added to a folder that already has some."""
    with pytest.raises(Exception, match="already exists"):
        write_rows(folder, [make_row(make_card("g-tardia"))], hashed_vectors(["y"]))
    assert read_rows_here(folder)[0] == all_rows()
