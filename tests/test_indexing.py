"""What a build makes, what it leaves alone, and what it leaves behind."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from benchmarks.boxes import rows_of
from rag.answering import Search, answer_question
from rag.builds import BuildRunning, builder_lock, current_build
from rag.cards import PARSER_VERSION, read_cards
from rag.chunking import CHUNKER_VERSION
from rag.embedding import Embedder
from rag.errors import CardsInvalid, IndexUnwritable, ModelUnusable, SettingsInvalid
from rag.indexing import VECTORS_FILE, Builder, BuildOptions, BuildReport, usable_cards
from rag.manifest import INDEX_FORMAT, Manifest, file_hashes, read_manifest
from rag.opening import OpenIndex
from rag.records import Answer, Row
from rag.retrieval import retrieve
from rag.sentences import split_sentences
from tests.conftest import (
    CASES_DIR,
    DEFAULT_BUILD,
    MODEL_DIR,
    ROOT,
    build_quietly,
    clean_environment,
    open_here,
    running,
)

PUBLIC = frozenset({"public"})
CARDS: Mapping[str, str] = {
    "agua": "---\ntitle: Agua\n---\n\nBeba un vaso de agua con cada comprimido. Un sorbo no basta.\n",
    "luz": "---\ntitle: Luz\n---\n\nGuarde el frasco lejos de la luz. El cartón original lo protege.\n",
    "llave": "---\ntitle: Llave\nacl: [staff]\n---\n\nLa llave del armario cuelga detrás de la puerta.\n",
    "sobre": "---\ntitle: Sobre\n---\n\nTire el sobre rasgado al contenedor gris.\n",
    "taza": "---\ntitle: Taza\n---\n\nMida el jarabe con la taza graduada.\n",
    "vacia": "---\ntitle: Vacía\n---\n",
}


@dataclass(frozen=True, slots=True)
class Box:
    """A folder of cards, and an index that was built from it."""

    cards_dir: Path
    index_dir: Path

    def write(self, name: str, text: str) -> None:
        (self.cards_dir / f"{name}.md").write_text(text, "utf-8")

    def build(self, options: BuildOptions = DEFAULT_BUILD) -> BuildReport:
        return build_quietly(self.cards_dir, self.index_dir, options)

    def rows(self) -> list[Row]:
        return rows_of(current_build(self.index_dir))[0]

    def manifest(self) -> Manifest:
        return read_manifest(current_build(self.index_dir))


def copy_of(box: Box, folder: Path) -> Box:
    """Another box below a folder, with the same cards, index and cache."""
    copy = Box(folder / "cards", folder / "index")
    shutil.copytree(box.cards_dir, copy.cards_dir)
    shutil.copytree(box.index_dir, copy.index_dir)
    return copy


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Box:
    """A box of six cards with its first build; not to be changed."""
    folder = tmp_path_factory.mktemp("built")
    box = Box(folder / "cards", folder / "index")
    box.cards_dir.mkdir()
    for name, text in CARDS.items():
        box.write(name, text)
    box.build()
    return box


@pytest.fixture
def box(built: Box, tmp_path: Path) -> Box:
    """A copy of that box, with its index and cache, to change at will."""
    return copy_of(built, tmp_path)


@pytest.fixture
def empty_box(built: Box, tmp_path: Path) -> Box:
    """No cards and no build, but a cache that knows the reference questions."""
    fresh = Box(tmp_path / "cards", tmp_path / "index")
    fresh.cards_dir.mkdir()
    (fresh.index_dir / VECTORS_FILE).parent.mkdir(parents=True)
    shutil.copyfile(built.index_dir / VECTORS_FILE, fresh.index_dir / VECTORS_FILE)
    return fresh


def ask(question: str, index: OpenIndex, embedder: Embedder, *, min_similarity: float | None = None) -> Answer:
    search = Search(PUBLIC, index, embedder, top_k=5, min_similarity=min_similarity)
    return answer_question(question, search, request_id="test")


def builds_in(index_dir: Path) -> set[str]:
    return {path.parent.name for path in index_dir.glob("*/manifest.json")}


def holds(folder: Path, word: str) -> list[str]:
    """The files of a folder that hold a word anywhere in their bytes."""
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def test_a_build_stores_every_card(built: Box) -> None:
    """Every row of the published build is a span of its card, and every card has a row."""
    rows = built.rows()
    cards = {card.card_id: card for card in read_cards(built.cards_dir).cards}
    assert {row.card.card_id for row in rows} == set(CARDS)
    for row in rows:
        assert row.card == cards[row.card.card_id]
        assert row.text_indexed.endswith(row.card.text[row.start : row.end])


def test_nothing_changed_does_nothing(built: Box) -> None:
    """A second build of the same cards embeds no text, keeps the id and touches no file of the build."""
    before = current_build(built.index_dir)
    times = {path: path.stat().st_mtime_ns for path in before.rglob("*")}
    report = built.build()
    assert (report.embedded, report.fresh, report.manifest.build_id) == (0, False, before.name)
    assert {path: path.stat().st_mtime_ns for path in before.rglob("*")} == times


@dataclass(frozen=True, slots=True)
class Remade:
    """A box whose cards, in files of other names, were built again over a build whose files had changed on disk."""

    box: Box
    report: BuildReport


@pytest.fixture(scope="module")
def remade(built: Box, tmp_path_factory: pytest.TempPathFactory) -> Remade:
    """Made from a copy of the first box; not to be changed."""
    box = copy_of(built, tmp_path_factory.mktemp("remade"))
    for name, text in CARDS.items():
        (box.cards_dir / f"{name}.md").unlink()
        box.write(f"sub-{name}", text.replace("---\n", f"---\nid: {name}\n", 1))
    (current_build(box.index_dir) / "sentences" / "vectors.npy").write_bytes(b"damaged")
    return Remade(box, box.build())


def test_same_inputs_give_the_same_id_elsewhere(built: Box, remade: Remade) -> None:
    """The id of a build depends on cards, model and options, and on no path."""
    assert remade.report.fresh
    assert remade.report.manifest.build_id == built.manifest().build_id
    assert remade.report.embedded == 0


def test_a_damaged_build_is_made_again(remade: Remade) -> None:
    """A build whose files have changed on disk does not count as done: it is built again, from the cache."""
    report = remade.report
    assert (report.fresh, report.embedded) == (True, 0)
    assert open_here(remade.box.index_dir).build_id == report.manifest.build_id


@dataclass(frozen=True, slots=True)
class Edited:
    """A box built again after a sentence, an access rule and a name changed, and a card went, with what it was."""

    box: Box
    before: Mapping[str, Row]
    """By row id."""
    first: str
    """The build before."""
    report: BuildReport
    rows: Sequence[Row]
    index: OpenIndex


@pytest.fixture(scope="module")
def edited(built: Box, tmp_path_factory: pytest.TempPathFactory) -> Edited:
    """Made from a copy of the first box; not to be changed."""
    box = copy_of(built, tmp_path_factory.mktemp("edited"))
    before = {row.row_id: row for row in box.rows()}
    box.write("agua", CARDS["agua"].replace("Un sorbo no basta.", "Dos sorbos no bastan."))
    box.write("luz", CARDS["luz"].replace("title: Luz", "title: Luz\nacl: [staff]"))
    (box.cards_dir / "sobre.md").unlink()
    (box.cards_dir / "taza.md").rename(box.cards_dir / "vaso.md")
    first = box.manifest().build_id
    return Edited(box, before, first, box.build(), box.rows(), open_here(box.index_dir))


def test_one_changed_card_embeds_only_its_own_texts(edited: Edited, tmp_path: Path) -> None:
    """A changed sentence costs that sentence and its chunk; the rows of cards left alone stay as they were."""
    assert edited.report.embedded == 2
    assert edited.report.manifest.build_id != edited.first
    same = {row.card.card_id for row in edited.rows if row == edited.before.get(row.row_id)}
    assert same == {"llave", "vacia"}
    box = copy_of(edited.box, tmp_path)
    for name, text in CARDS.items():
        box.write(name, text)
    (box.cards_dir / "vaso.md").unlink()
    back = box.build()
    assert (back.manifest.build_id, back.embedded) == (edited.first, 0)
    assert current_build(box.index_dir).name == edited.first


def test_a_change_of_access_embeds_nothing(edited: Edited) -> None:
    """Changing the groups of a card embeds no text of it, and the new groups hold at once."""
    assert edited.report.embedded == 2, "those of the changed sentence"
    assert edited.index.rows.card("luz", PUBLIC) is None
    assert edited.index.rows.card("luz", {"staff"}) is not None
    old = {row.card.card_id: row.acl_version for row in edited.before.values()}
    new = {row.card.card_id: row.acl_version for row in edited.rows}
    assert [card_id for card_id in old if card_id in new and old[card_id] != new[card_id]] == ["luz"]


def test_a_deleted_card_leaves_nothing_behind(edited: Edited, embedder: Embedder) -> None:
    """After the build without it, a deleted card is in no row, no file, no list and no result."""
    assert {row.card.card_id for row in edited.rows} == {"agua", "luz", "llave", "vaso", "vacia"}
    assert "sobre" not in edited.report.manifest.card_hashes
    assert holds(current_build(edited.box.index_dir), "rasgado") == []
    assert [card.card_id for card in edited.index.rows.cards(PUBLIC)] == ["agua", "vacia", "vaso"]
    found = retrieve(
        "¿Adónde va el sobre rasgado?", PUBLIC, index=edited.index, embedder=embedder, top_k=10, threshold=-1.0
    )
    assert {passage.card.card_id for passage in found.passages} == {"agua", "vaso"}


def test_a_renamed_card_is_known_by_its_new_id_alone(edited: Edited, embedder: Embedder) -> None:
    """Renaming a file moves its rows to the new id without embedding anything."""
    assert edited.report.embedded == 2, "those of the changed sentence"
    assert {"vaso", "taza"} & {row.card.card_id for row in edited.rows} == {"vaso"}
    answer = ask("¿Con qué mido el jarabe?", edited.index, embedder, min_similarity=0.0)
    assert "vaso" in {citation.card_id for citation in answer.citations}
    assert "taza" not in {citation.card_id for citation in answer.citations}


def test_o10_a_card_that_shrinks_and_moves(empty_box: Box, embedder: Embedder) -> None:
    """O10: after v2 no stored row holds the old text; after v3 the old id is 404 and no answer cites it."""
    case = CASES_DIR / "O10_shrink_rename"
    question = (case / "question.txt").read_text("utf-8").strip()
    ids: list[str] = []
    for version in ("cards_v1", "cards_v2", "cards_v3"):
        shutil.rmtree(empty_box.cards_dir)
        shutil.copytree(case / version, empty_box.cards_dir)
        ids.append(empty_box.build().manifest.build_id)
        text = "\n".join(row.text_indexed + row.card.text for row in empty_box.rows())
        assert ("plateada" in text) == (version == "cards_v1")
        assert ("dorada" in text) == (version != "cards_v1")
        index = open_here(empty_box.index_dir)
        answer = ask(question, index, embedder, min_similarity=0.0)
        assert {cited.card_id for cited in answer.citations} == {
            "card-traslado" if version == "cards_v3" else "card-mudanza"
        }
    assert builds_in(empty_box.index_dir) == set(ids[1:]), "the build before stays, older ones go"
    settings = {"FICHERO_INDEX_DIR": str(empty_box.index_dir), "FICHERO_MIN_SIMILARITY": "0"}
    with running(settings) as started, httpx.Client(base_url=started.url, timeout=30) as caller:
        assert caller.get("/cards/card-mudanza").status_code == 404
        assert caller.get("/cards/card-mudanza.md").status_code == 404
        assert caller.get("/cards/card-traslado").status_code == 200
        found = caller.get("/ask", params={"q": question})
        assert "card-mudanza" not in found.text
        assert "plateada" not in found.json()["answer"]


class Stopped(Exception):
    """Ends a build."""


def test_every_option_changes_the_id(box: Box) -> None:
    """Chunk length, overlap and context strategy each begin a build of their own; stopped, it leaves nothing."""
    begun = {box.manifest().build_id}
    before = sorted(box.index_dir.iterdir())

    def stop(*_: object) -> None:
        [draft] = box.index_dir.glob(".draft-*")
        begun.add(draft.name.split("-")[1])
        raise Stopped

    for options in (
        replace(DEFAULT_BUILD, chunk_chars=300),
        replace(DEFAULT_BUILD, overlap_chars=40),
        replace(DEFAULT_BUILD, context="none"),
    ):
        with pytest.raises(Stopped):
            Builder(box.index_dir, MODEL_DIR, options, progress=stop).build(read_cards(box.cards_dir).cards)
    assert len(begun) == 4
    assert sorted(box.index_dir.iterdir()) == before


@pytest.mark.parametrize(
    "options",
    [
        BuildOptions(50, 50, "none"),
        BuildOptions(50, 80, "none"),
        BuildOptions(0, 0, "none"),
        BuildOptions(50, -1, "none"),
        BuildOptions(400, 60, "magia"),
    ],
    ids=["overlap is the chunk", "overlap beyond", "no chunk", "negative overlap", "unknown context"],
)
def test_options_that_cannot_work_are_refused(options: BuildOptions, tmp_path: Path) -> None:
    """O07: options that could not work are refused by name before anything is written."""
    with pytest.raises(SettingsInvalid):
        Builder(tmp_path / "index", MODEL_DIR, options).build(
            read_cards(CASES_DIR / "O07_chunk_config" / "cards").cards
        )
    assert not (tmp_path / "index").exists()


def test_of_two_builders_the_second_says_so(box: Box) -> None:
    """While one builder holds the index another stops with a clear error and changes nothing."""
    before = current_build(box.index_dir)
    box.write("agua", CARDS["agua"].replace("vaso", "tazón"))
    with builder_lock(box.index_dir), pytest.raises(BuildRunning, match="Another builder is at work"):
        box.build()
    assert current_build(box.index_dir) == before
    assert builds_in(box.index_dir) == {before.name}


def test_a_build_that_breaks_leaves_the_index_in_use(box: Box, tmp_path: Path) -> None:
    """A build that stops half-way leaves CURRENT and the build in use as they were."""
    before = current_build(box.index_dir)
    files = file_hashes(before)
    model_dir = tmp_path / "model"
    model_dir.mkdir()
    for path in MODEL_DIR.iterdir():
        (model_dir / path.name).symlink_to(path)
    (model_dir / "tokenizer.json").unlink()
    (model_dir / "tokenizer.json").write_text("{}", "utf-8")
    box.write("agua", CARDS["agua"].replace("vaso", "tazón"))
    cards = read_cards(box.cards_dir).cards
    with pytest.raises(ModelUnusable):
        Builder(box.index_dir, model_dir, DEFAULT_BUILD).build(cards)
    twice = [*cards, cards[0]]
    with pytest.raises(IndexUnwritable, match="two rows have the id"):
        Builder(box.index_dir, MODEL_DIR, DEFAULT_BUILD).build(twice)
    assert current_build(box.index_dir) == before
    assert file_hashes(before) == files
    assert open_here(box.index_dir).build_id == before.name


def test_a_killed_builder_loses_nothing(box: Box) -> None:
    """A builder killed while embedding leaves the index in use whole, and the next one pays only for the rest."""
    before = current_build(box.index_dir)
    for path in sorted((ROOT / "cards" / "es").glob("a*.md")):
        shutil.copy(path, box.cards_dir)
    cache = box.index_dir / VECTORS_FILE
    kept = cached(cache)
    command = [sys.executable, "build_index.py", "--cards", str(box.cards_dir), "--index", str(box.index_dir)]
    environment = clean_environment({"FICHERO_MODEL_DIR": str(MODEL_DIR)})
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while cached(cache) == kept and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert current_build(box.index_dir) == before
    assert open_here(box.index_dir).build_id == before.name
    paid = cached(cache)
    report = box.build()
    assert kept < paid < cached(cache)
    assert report.embedded == cached(cache) - paid
    assert not list(box.index_dir.glob(".draft-*"))


def cached(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        count: int = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
    connection.close()
    return count


def test_equal_texts_are_embedded_once(empty_box: Box) -> None:
    """O04: a card of forty equal paragraphs is indexed, and equal texts go through the model once."""
    shutil.copy(CASES_DIR / "O04_duplicate_ids" / "cards" / "a" / "repetida.md", empty_box.cards_dir)
    report = empty_box.build()
    assert report.manifest.counts["sentences"] == 40
    card = read_cards(empty_box.cards_dir).cards[0]
    texts = {row.text_indexed for row in empty_box.rows()}
    texts |= {f"{card.title}. {sentence.text}" for sentence in split_sentences(card.text)}
    assert report.embedded == len(texts)


def test_manifest_says_what_shaped_the_build(built: Box, embedder: Embedder) -> None:
    """The manifest names model, versions, options, cards, counts, gate and every file with its hash."""
    build = current_build(built.index_dir)
    manifest = read_manifest(build)
    rows = built.rows()
    model = embedder.description
    assert (manifest.build_id, manifest.index_format) == (build.name, INDEX_FORMAT)
    assert (manifest.model_name, manifest.model_fingerprint) == (model.name, model.fingerprint)
    assert manifest.dimension == model.dimension
    assert manifest.chunker == {"version": CHUNKER_VERSION, "chunk_chars": 400, "overlap_chars": 60}
    assert manifest.parser_version == PARSER_VERSION
    assert manifest.context_version.startswith("metadata-")
    assert set(manifest.card_hashes) == set(manifest.card_rows) == set(CARDS)
    assert sum(count for count, _ in manifest.card_rows.values()) == len(rows)
    assert manifest.model["files"] == model.files
    assert (manifest.contexts, manifest.evaluation) == (None, {})
    assert manifest.counts == {"cards": 6, "rows": len(rows), "sentences": 7}
    assert manifest.gate["basis"] == "unrelated questions"
    assert all(0.5 < manifest.gate["thresholds"][language] < 1.5 for language in ("es", "en"))
    assert manifest.files == file_hashes(build)
    assert json.loads((build / "manifest.json").read_text("utf-8"))["chromadb_version"] == manifest.chromadb_version


def test_o06_cards_without_text_build_and_refuse(textless_index_dir: Path, embedder: Embedder) -> None:
    """O06: an index of nothing but empty cards builds, opens, lists them all and refuses the question."""
    assert read_manifest(current_build(textless_index_dir)).counts["cards"] == 4
    index = open_here(textless_index_dir)
    assert len(index.rows.cards(PUBLIC)) == 4
    answer = ask((CASES_DIR / "O06_empty" / "question.txt").read_text("utf-8"), index, embedder)
    assert answer.refusal is not None
    assert answer.citations == ()


@pytest.mark.parametrize("question", ["Vacía", "¿Qué dice la ficha vacía?"])
def test_a_card_without_text_is_listed_but_never_cited(built: Box, embedder: Embedder, question: str) -> None:
    """A card without text is in the list and can be opened, and no question retrieves or cites it."""
    index = open_here(built.index_dir)
    card = index.rows.card("vacia", PUBLIC)
    assert card is not None
    assert card.text == ""
    assert "vacia" in {listed.card_id for listed in index.rows.cards(PUBLIC)}
    answer = ask(question, index, embedder, min_similarity=-1.0)
    assert "vacia" not in {cited.card_id for cited in answer.citations}
    assert "vacia" not in {found.card_id for found in answer.retrieved}


def test_a_folder_with_nothing_to_build_from_is_refused(tmp_path: Path) -> None:
    """No card at all is a fault that says where to put cards, whether or not broken ones may be skipped."""
    for skip in (False, True):
        with pytest.raises(CardsInvalid, match="nothing to build from"):
            usable_cards(read_cards(tmp_path), skip_broken=skip)


def test_broken_cards_stop_a_build_unless_skipped() -> None:
    """One broken card stops the build with every fault named; skipped, the others are left."""
    folder = read_cards(CASES_DIR / "O02_yaml_types" / "cards")
    with pytest.raises(CardsInvalid) as caught:
        usable_cards(folder, skip_broken=False)
    assert {fault.file for fault in caught.value.faults} == {"card-dos-puntos.md", "card-fecha-mala.md"}
    kept = {card.card_id for card in usable_cards(folder, skip_broken=True)}
    assert kept == {"card-buena", "card-fecha", "card-lista-vacia", "card-nulo"}
