"""``build_index.py`` as its user meets it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from benchmarks.boxes import rows_of
from build_index import main
from rag.builds import current_build
from rag.embedding import Embedder
from rag.indexing import EVALUATION_FILE, VECTORS_FILE
from rag.manifest import check_files, read_manifest
from rag.vector_cache import VectorCache
from tests.conftest import CASES_DIR, MODEL_DIR, ROOT, clean_environment, warm_up

Run = Callable[..., subprocess.CompletedProcess[str]]
GOOD = "---\ntitle: Agua\n---\n\nBeba un vaso de agua con cada comprimido.\n"


@pytest.fixture
def cards_dir(tmp_path: Path) -> Path:
    """A folder with one good card."""
    folder = tmp_path / "cards"
    folder.mkdir()
    (folder / "agua.md").write_text(GOOD, "utf-8")
    return folder


OTHER = "---\ntitle: Luz\n---\n\nGuarde el frasco lejos de la luz.\n"


def builder(run_command: Run, folder: Path) -> Run:
    """Runs the command with the real model, on an index below a folder unless told otherwise."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {"FICHERO_MODEL_DIR": str(MODEL_DIR), "FICHERO_INDEX_DIR": str(folder / "index"), **environment}
        return run_command("build_index.py", *arguments, environment=settings)

    return run


@pytest.fixture
def build(run_command: Run, tmp_path: Path) -> Run:
    """Runs the command with an index below tmp_path."""
    return builder(run_command, tmp_path)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """As ``build``, but in this process, which saves a second: for a command that ends before it builds."""
    monkeypatch.chdir(ROOT)
    for name in set(os.environ) - set(clean_environment({})):
        monkeypatch.delenv(name)

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {"FICHERO_MODEL_DIR": str(MODEL_DIR), "FICHERO_INDEX_DIR": str(tmp_path / "index"), **environment}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        try:
            status = main(arguments)
        except SystemExit as error:
            status = cast(int, error.code)
        return subprocess.CompletedProcess(arguments, status, *capsys.readouterr())

    return run


@pytest.fixture
def warm(tmp_path: Path) -> None:
    """The reference questions are in the cache already."""
    warm_up(tmp_path / "index")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def published(folder: Path) -> dict[str, bytes]:
    """The files of an index, less lock and cache."""
    return {name: data for name, data in snapshot(folder).items() if not name.startswith(("cache/", ".lock"))}


@pytest.mark.usefixtures("warm")
def test_a_build_from_start_to_finish(build: Run, tmp_path: Path) -> None:
    """The command builds, says what it built; run again it does nothing; a broken card then leaves all as it was."""
    cards_dir, index_dir = tmp_path / "cards", tmp_path / "index"
    shutil.copytree(CASES_DIR / "O02_yaml_types" / "cards", cards_dir)
    made = build("--cards", str(cards_dir), "--skip-broken")
    assert made.returncode == 0, made.stderr
    assert "4 cards" in made.stdout
    assert "Left out, 2 of 6 files" in made.stdout
    assert "card-dos-puntos.md:3:" in made.stdout
    assert "card-fecha-mala.md:6:" in made.stdout
    directory = current_build(index_dir)
    manifest = read_manifest(directory)
    check_files(directory, manifest)
    assert manifest.build_id in made.stdout
    assert set(manifest.card_hashes) == {"card-buena", "card-fecha", "card-lista-vacia", "card-nulo"}

    before = published(index_dir)
    again = build("--cards", str(cards_dir), "--skip-broken")
    assert again.returncode == 0
    assert "up to date" in again.stdout
    assert "0 texts embedded" in again.stdout
    assert published(index_dir) == before

    broken = build("--cards", str(cards_dir))
    assert (broken.returncode, broken.stdout) == (2, "")
    assert "2 faults in 2 files" in broken.stderr
    assert published(index_dir) == before


@pytest.mark.parametrize(
    "settings",
    [{"FICHERO_MODEL_DIR": "no-model"}, {"FICHERO_CHUNK_CHARS": "50", "FICHERO_OVERLAP_CHARS": "50"}],
    ids=["no model", "chunks that cannot be"],
)
def test_clean_keeps_the_index_when_it_cannot_call(
    call: Run, cards_dir: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    """--clean that cannot build the new index leaves the one in use where it is."""
    directory = tmp_path / "index" / "0123456789abcdef"
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text("{}", "utf-8")
    (tmp_path / "index" / "CURRENT").write_text(f"{directory.name}\n", "utf-8")
    before = published(tmp_path / "index")
    ended = call("--cards", str(cards_dir), "--clean", **settings)
    assert ended.returncode in (2, 3)
    assert published(tmp_path / "index") == before


def test_clean_removes_nothing_that_is_not_an_index(call: Run, cards_dir: Path, tmp_path: Path) -> None:
    """--clean on a folder that holds other things leaves them where they are."""
    (tmp_path / "index" / "photos").mkdir(parents=True)
    (tmp_path / "index" / "photos" / "family.jpg").write_bytes(b"irreplaceable")
    (tmp_path / "index" / "notes.txt").write_text("mine", "utf-8")
    call("--cards", str(cards_dir), "--clean", "--model", str(tmp_path / "no-model"))
    kept = snapshot(tmp_path / "index")
    assert kept.get("photos/family.jpg") == b"irreplaceable"
    assert kept.get("notes.txt") == b"mine"


def test_every_fault_of_every_file_is_listed(call: Run, cards_dir: Path, tmp_path: Path) -> None:
    """Broken cards end the command with status 2, each fault on its own line as file:line, and nothing is built."""
    (cards_dir / "b.md").write_text("---\ntitle: \nlanguage: fr\nacl: []\n---\nTexto.\n", "utf-8")
    (cards_dir / "c.md").write_text("sin portada\n", "utf-8")
    (cards_dir / "d.md").write_text("---\ntitle: D\nacces: [staff]\naccessed_at: ayer\n", "utf-8")
    (cards_dir / "e.md").write_bytes(b"---\ntitle: E\n---\n\xff\n")
    (cards_dir / "f.md").write_text("---\ntitle: F\nid: agua\n---\nTexto.\n", "utf-8")
    ended = call("--cards", str(cards_dir))
    assert (ended.returncode, ended.stdout) == (2, "")
    for place in ("b.md:2:", "b.md:3:", "b.md:4:", "c.md:1:", "d.md:1:", "e.md:4:", "f.md:3:", "agua.md:1:"):
        assert any(line.startswith(place) for line in ended.stderr.splitlines()), place
    assert "8 faults in 6 files" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "index").exists()


def test_o04_both_files_of_one_id_are_named(call: Run) -> None:
    """O04: two files of one id end the command with status 2, and both are named."""
    ended = call("--cards", str(CASES_DIR / "O04_duplicate_ids" / "cards"))
    assert ended.returncode == 2
    assert "a/basico.md:2:" in ended.stderr
    assert "b/basico.md:2:" in ended.stderr


def test_help_names_the_options(call: Run) -> None:
    """--help explains the options and ends with 0."""
    shown = call("--help")
    assert shown.returncode == 0
    options = ("--cards", "--index", "--model", "--golden", "--skip-broken", "--clean", "--keep", "--accept-worse")
    for option in (*options, "--contexts-for", "--rollback"):
        assert option in shown.stdout


def test_a_folder_that_is_not_there_is_named(call: Run, tmp_path: Path) -> None:
    """No such folder of cards ends with status 2 and one line that names it and the remedy."""
    ended = call("--cards", str(tmp_path / "nada"))
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert str(tmp_path / "nada") in ended.stderr
    assert "--cards" in ended.stderr


@pytest.mark.parametrize("arguments", [[], ["--skip-broken"]], ids=["plain", "skip broken"])
def test_an_empty_folder_says_what_to_put_there(call: Run, tmp_path: Path, arguments: list[str]) -> None:
    """A folder without Markdown ends with status 2 and says what belongs there."""
    (tmp_path / "empty").mkdir()
    ended = call("--cards", str(tmp_path / "empty"), *arguments)
    assert ended.returncode == 2
    assert "*.md" in ended.stderr
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("FICHERO_CARD_DIR", "x", "FICHERO_CARDS_DIR"),
        ("FICHERO_CHUNK_CHARS", "0", "20"),
        ("FICHERO_CHUNK_CHARS", "9" * 5_000, "20"),
        ("FICHERO_CHUNK_CHARS", "cien", "whole number"),
        ("FICHERO_CONTEXT", "magia", "metadata"),
    ],
    ids=["unknown", "too small", "far too big", "words", "not one of"],
)
def test_a_bad_setting_is_a_fault_of_the_caller(call: Run, cards_dir: Path, name: str, value: str, told: str) -> None:
    """A setting that cannot be used ends with status 2 and one line that names it and what it takes."""
    ended = call("--cards", str(cards_dir), **{name: value})
    assert name in ended.stderr
    assert told in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.returncode == 2


def test_chunk_settings_that_do_not_fit_together_are_refused(call: Run, cards_dir: Path, tmp_path: Path) -> None:
    """O07: an overlap as long as the chunk is refused with both figures, and never hangs."""
    ended = call("--cards", str(cards_dir), FICHERO_CHUNK_CHARS="50", FICHERO_OVERLAP_CHARS="50")
    assert ended.returncode == 2
    assert "overlap_chars is 50" in ended.stderr
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("what", ["missing", "damaged"])
def test_a_model_that_cannot_be_used_is_named(call: Run, cards_dir: Path, tmp_path: Path, what: str) -> None:
    """Without a usable model the command ends with status 3 and says which command makes one."""
    model_dir = tmp_path / "model"
    model_dir.mkdir()
    if what == "damaged":
        (model_dir / "model.json").write_text("{}", "utf-8")
    ended = call("--cards", str(cards_dir), "--model", str(model_dir))
    assert ended.returncode == 3
    assert ended.stderr.count("\n") == 1
    assert "make model" in ended.stderr


def test_an_index_that_is_a_file_is_refused(call: Run, cards_dir: Path, tmp_path: Path) -> None:
    """A file where the index should be ends with status 3, is named, and stays."""
    (tmp_path / "index").write_text("mine", "utf-8")
    ended = call("--cards", str(cards_dir))
    assert ended.returncode == 3
    assert str(tmp_path / "index") in ended.stderr
    assert "Traceback" not in ended.stderr
    assert (tmp_path / "index").read_text("utf-8") == "mine"


# one card after another


@dataclass(frozen=True, slots=True)
class Step:
    """A build of the command."""

    told: str
    """On standard output."""
    name: str
    """Of the build in use after it."""
    left: int
    """Builds on disk after it."""


@dataclass(frozen=True, slots=True)
class Story:
    """Cards that change four times, with an index that follows; not to be changed."""

    folder: Path
    """Holds cards and index as they are in the end."""
    steps: Sequence[Step]


@pytest.fixture(scope="module")
def story(run_command: Run, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A box of two cards; one becomes staff's; it gets another name; the other one gets another sentence."""
    folder = tmp_path_factory.mktemp("story")
    cards_dir, build = folder / "cards", builder(run_command, folder)
    warm_up(folder / "index")
    cards_dir.mkdir()
    steps: list[Step] = []

    def follow(*options: str) -> None:
        told = build("--cards", str(cards_dir), *options).stdout
        left = len(list((folder / "index").glob("*/manifest.json")))
        steps.append(Step(told, current_build(folder / "index").name, left))

    (cards_dir / "agua.md").write_text(GOOD, "utf-8")
    (cards_dir / "luz.md").write_text(OTHER, "utf-8")
    follow("--keep", "2")
    (cards_dir / "luz.md").write_text(OTHER.replace("title: Luz", "title: Luz\nacl: [staff]"), "utf-8")
    follow("--keep", "2")
    (cards_dir / "luz.md").rename(cards_dir / "sol.md")
    follow("--keep", "2")
    (cards_dir / "agua.md").write_text(f"{GOOD}\nUn sorbo no basta.\n\n<!-- con Ana -->\n", "utf-8")
    follow()
    return Story(folder, steps)


@pytest.fixture
def after(story: Story, tmp_path: Path) -> Sequence[Step]:
    """Cards and index below tmp_path as they are after the story."""
    shutil.copytree(story.folder, tmp_path, dirs_exist_ok=True)
    return story.steps


def test_what_changed_is_counted(story: Story) -> None:
    """Added, changed, removed and unchanged cards are counted, and a change of access alone embeds nothing."""
    first, access, renamed, edited = (step.told for step in story.steps)
    assert "2 added, 0 changed, 0 removed, 0 unchanged. Rows: 2 new, 0 as before." in first
    assert "0 added, 1 changed, 0 removed, 1 unchanged. Rows: 1 new, 1 as before. 0 texts embedded, 0 chunks" in access
    assert "1 added, 0 changed, 1 removed, 1 unchanged. Rows: 1 new, 1 as before. 0 texts embedded, 0 chunks" in renamed
    assert "0 added, 1 changed, 0 removed, 1 unchanged. Rows: 1 new, 1 as before. 2 texts embedded, 0 chunks" in edited
    assert len({step.name for step in story.steps}) == 4


def test_hidden_text_is_told_and_does_not_stop_a_build(story: Story) -> None:
    """Text that readers do not see is a warning with file, line and kind, never the text, and the card is built."""
    told = story.steps[-1].told
    assert "Warning: agua.md:9: a comment with words (html-comment)" in told
    assert "Ana" not in told
    assert "1 changed" in told
    assert not any("Warning" in step.told for step in story.steps[:-1])


def test_a_file_that_was_only_touched_has_not_changed(build: Run, after: Sequence[Step], tmp_path: Path) -> None:
    """A card whose file has another time and the same text is no change."""
    (tmp_path / "cards" / "agua.md").touch()
    assert "up to date" in build("--cards", str(tmp_path / "cards")).stdout
    assert current_build(tmp_path / "index").name == after[-1].name


def test_golden_cases_about_other_cards_are_left_out(story: Story) -> None:
    """A box that no golden case is about is built all the same, and it is said that nothing was measured."""
    assert "No golden case is about these cards" in story.steps[0].told


def test_one_can_go_back_and_forward(build: Run, after: Sequence[Step], tmp_path: Path) -> None:
    """--rollback puts the build before into use, says which, and refuses to go further; a build goes forward again."""
    first, second = after[-2].name, after[-1].name
    back = build("--rollback")
    assert (back.returncode, current_build(tmp_path / "index").name) == (0, first)
    assert first in back.stdout
    assert second in back.stdout
    refused = build("--rollback")
    assert (refused.returncode, refused.stderr.count("\n")) == (3, 1)
    assert current_build(tmp_path / "index").name == first
    forward = build("--cards", str(tmp_path / "cards"))
    assert "0 texts embedded" in forward.stdout
    assert current_build(tmp_path / "index").name == second


def test_nobody_goes_back_to_a_damaged_build(call: Run, after: Sequence[Step], tmp_path: Path) -> None:
    """--rollback to a build whose files changed is refused by name, and the one in use stays."""
    (tmp_path / "index" / after[-2].name / "reference.npz").write_bytes(b"x")
    refused = call("--rollback")
    assert refused.returncode == 3
    assert "reference.npz" in refused.stderr
    assert current_build(tmp_path / "index").name == after[-1].name


def test_nobody_goes_back_without_an_index(call: Run) -> None:
    """--rollback where nothing was built is refused."""
    assert call("--rollback").returncode == 3


def test_as_many_builds_stay_as_are_asked_for(build: Run, after: Sequence[Step], tmp_path: Path) -> None:
    """--keep N leaves the build in use and N from before it; without it one stays."""
    assert [step.left for step in after] == [1, 2, 3, 2]
    assert build("--rollback").returncode == 0
    build("--cards", str(tmp_path / "cards"), "--keep", "0")
    assert [path.parent.name for path in (tmp_path / "index").glob("*/manifest.json")] == [after[-1].name]


@pytest.mark.parametrize("keep", ["-1", "dos", "1.5", ""])
def test_a_number_of_builds_is_a_whole_number(call: Run, keep: str) -> None:
    """--keep takes a whole number, and says so."""
    ended = call("--keep", keep)
    assert ended.returncode == 2
    assert "whole number" in ended.stderr or "expected one argument" in ended.stderr


def test_clean_of_the_same_cards_takes_the_place_of_the_index_in_use(
    build: Run, after: Sequence[Step], tmp_path: Path, embedder: Embedder
) -> None:
    """--clean embeds everything again, whatever any cache says, gives the same id, and leaves one build."""
    cards_dir = str(tmp_path / "cards")
    with VectorCache(tmp_path / "index" / VECTORS_FILE, model_fingerprint=embedder.description.fingerprint) as cache:
        lie = embedder.embed_passages(["otra cosa"])
        for row in rows_of(current_build(tmp_path / "index"))[0]:
            assert cache.get([row.text_indexed])
            cache.put([row.text_indexed], lie)
    of_evaluations = tmp_path / "index" / EVALUATION_FILE
    of_evaluations.write_bytes(b"vectors")
    before = read_manifest(current_build(tmp_path / "index"))
    again = build("--cards", cards_dir, "--clean")
    assert again.returncode == 0
    assert "0 texts embedded" not in again.stdout
    assert not of_evaluations.exists()
    directory = current_build(tmp_path / "index")
    assert directory.name != after[-1].name
    assert read_manifest(directory).build_id == before.build_id
    assert [path.parent for path in (tmp_path / "index").glob("*/manifest.json")] == [directory]
    assert "up to date" in build("--cards", cards_dir).stdout


@pytest.mark.usefixtures("warm")
def test_a_build_that_does_worse_is_not_put_into_use(build: Run, cards_dir: Path, tmp_path: Path) -> None:
    """A build under a floor of the golden cases ends with status 3 and the figures, unless it is accepted as it is."""
    golden = tmp_path / "golden"
    golden.mkdir()
    case = {
        "question": "¿Con cuánta agua se toma?",
        "language": "es",
        "must_cite_one_of": ["agua"],
        "groups": ["public"],
    }
    hard = {**case, "question": "¿Dónde está el mar?", "must_cite_one_of": ["luz", "agua"], "groups": ["nobody"]}
    (golden / "cases.jsonl").write_text(f"{json.dumps(case)}\n{json.dumps(hard)}\n", "utf-8")
    (golden / "floors.json").write_text('{"at_least": {"success@1": 100}}', "utf-8")
    arguments = ("--cards", str(cards_dir), "--golden", str(golden))
    refused = build(*arguments)
    assert refused.returncode == 3
    assert "success@1 is 50.0 %, the floor is 100 %" in refused.stderr
    assert "--accept-worse" in refused.stderr
    assert not (tmp_path / "index" / "CURRENT").exists()
    assert list((tmp_path / "index").glob(".draft-*")) == []
    accepted = build(*arguments, "--accept-worse")
    assert accepted.returncode == 0
    assert "success@1 50.0" in accepted.stdout
    assert read_manifest(current_build(tmp_path / "index")).evaluation["success@1"] == 50.0


def test_unknown_options_are_refused(build: Run) -> None:
    """An option that does not exist ends with status 2 and the usage."""
    ended = build("--cards-dir", "x")
    assert ended.returncode == 2
    assert "usage" in ended.stderr
