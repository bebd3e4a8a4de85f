"""The folder of builds, and what a build says of itself."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.builds import (
    BuildRunning,
    NoEarlierBuild,
    build_in_use,
    builder_lock,
    current_build,
    draft_dir,
    earlier_build,
    folders_of,
    history,
    publish,
    remove_other_builds,
    roll_back,
    use_build,
)
from rag.errors import IndexMissing, IndexUnusable
from rag.manifest import INDEX_FORMAT, Manifest, check_files, file_hashes, read_manifest, sealed, write_manifest
from tests.conftest import ROOT

MANIFEST = Manifest(
    build_id="abc123",
    index_format=INDEX_FORMAT,
    model_name="modelo",
    model_fingerprint="0f",
    dimension=8,
    model={"files": {"model.onnx": "aa"}, "pooling": "mean"},
    chunker={"version": 1, "chunk_chars": 400, "overlap_chars": 60},
    parser_version=1,
    context_version="metadata-1",
    sentences_version=2,
    lexical_version=1,
    reference_version=1,
    chromadb_version="1.5.9",
    card_hashes={"ñandú": "ff", "una": "00"},
    card_rows={"ñandú": (1, "ee"), "una": (2, "dd")},
    acl_version="abc",
    contexts=None,
    counts={"cards": 2, "rows": 3, "sentences": 4},
    gate={"thresholds": {"es": 1.04, "en": 1.03}, "basis": "unrelated questions"},
    evaluation={"success@1": 74.3},
    files={"chroma/a.bin": "aa", "lexical/a": "dd", "reference.npz": "bb", "sentences/spans.npy": "cc"},
)


def a_build(index_dir: Path, build_id: str) -> Path:
    draft = draft_dir(index_dir, build_id)
    (draft / "dato").write_text(build_id)
    write_manifest(draft, replace(MANIFEST, build_id=build_id, files=file_hashes(draft)))
    return draft


def published(index_dir: Path, *build_ids: str) -> None:
    for build_id in build_ids:
        publish(index_dir, a_build(index_dir, build_id), build_id)


def names(index_dir: Path) -> list[str]:
    return sorted(path.name for path in index_dir.iterdir())


def test_a_published_build_is_the_one_in_use(tmp_path: Path) -> None:
    """Publishing moves the draft to its place and makes it current; the one before stays."""
    for build_id in ("aaa", "bbb"):
        assert publish(tmp_path, a_build(tmp_path, build_id), build_id) == tmp_path / build_id
        assert current_build(tmp_path) == build_in_use(tmp_path) == tmp_path / build_id
        assert (tmp_path / "CURRENT").read_text() == f"{build_id}\n"
    assert (tmp_path / "aaa" / "dato").read_text() == "aaa"
    assert names(tmp_path) == ["CURRENT", "HISTORY", "aaa", "bbb"]


def test_a_draft_is_not_in_use(tmp_path: Path) -> None:
    """As long as a build is being made, the one before is current."""
    published(tmp_path, "aaa")
    a_build(tmp_path, "bbb")
    assert build_in_use(tmp_path) == tmp_path / "aaa"
    assert not (tmp_path / "bbb").exists()


def test_a_draft_begins_empty(tmp_path: Path) -> None:
    """What a killed builder left is gone when the next one begins, under whatever name it was."""
    draft = a_build(tmp_path, "aaa")
    (tmp_path / ".draft-bbb-1").mkdir()
    (tmp_path / ".CURRENT.1").write_text("bbb\n", "utf-8")
    assert draft_dir(tmp_path, "aaa") == draft
    assert list(draft.iterdir()) == []
    assert names(tmp_path) == [draft.name]


def test_publishing_replaces_a_build_of_the_same_id(tmp_path: Path) -> None:
    """A build that is not in use is replaced by a new one of its id."""
    published(tmp_path, "aaa", "bbb")
    (tmp_path / "aaa" / "resto").write_text("viejo")
    published(tmp_path, "aaa")
    assert current_build(tmp_path) == tmp_path / "aaa"
    assert not (tmp_path / "aaa" / "resto").exists()


def test_a_build_in_use_is_never_taken_away(tmp_path: Path) -> None:
    """A second build of the id in use gets a place beside it, and the next one the place that is free then."""
    published(tmp_path, "aaa")
    for place in ("aaa-2", "aaa", "aaa-2"):
        before = current_build(tmp_path)
        draft = a_build(tmp_path, "aaa")
        assert publish(tmp_path, draft, "aaa") == tmp_path / place
        assert current_build(tmp_path) == tmp_path / place
        assert (before / "dato").read_text() == "aaa"
        assert {path.name for path in folders_of(tmp_path, "aaa")} == {"aaa", "aaa-2"}


def test_an_older_build_can_be_used_again(tmp_path: Path) -> None:
    """Use_build goes to a build that is still there, and what was in use counts as before it."""
    published(tmp_path, "aaa", "bbb")
    use_build(tmp_path, "aaa")
    assert current_build(tmp_path) == tmp_path / "aaa"
    assert history(tmp_path) == ["aaa", "bbb"]


def test_one_goes_back_build_by_build(tmp_path: Path) -> None:
    """Rolling back goes to the build before, then to the one before that, and then there is none."""
    published(tmp_path, "aaa", "bbb", "ccc")
    for left, target in (("ccc", "bbb"), ("bbb", "aaa")):
        assert earlier_build(tmp_path) == (left, target)
        roll_back(tmp_path, target)
        assert current_build(tmp_path) == tmp_path / target
    with pytest.raises(NoEarlierBuild, match="aaa"):
        earlier_build(tmp_path)


def test_a_build_that_was_gone_back_from_is_no_earlier_one(tmp_path: Path) -> None:
    """After a rollback and a new build, going back leads past what was left behind."""
    published(tmp_path, "aaa", "bbb")
    roll_back(tmp_path, "aaa")
    published(tmp_path, "ccc")
    assert history(tmp_path) == ["ccc", "aaa"]


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"../otra\nzzz\n", b"aaa"], ids=repr)
def test_a_lost_history_loses_no_build_in_use(tmp_path: Path, content: bytes | None) -> None:
    """Whatever became of the list of earlier builds, the one in use is known, and nothing outside is named."""
    published(tmp_path, "aaa", "bbb")
    (tmp_path / "HISTORY").unlink()
    if content is not None:
        (tmp_path / "HISTORY").write_bytes(content)
    assert history(tmp_path) == (["bbb", "aaa"] if content == b"aaa" else ["bbb"])


def test_a_removed_build_is_no_earlier_one(tmp_path: Path) -> None:
    """Nobody goes back to a build that is not there any more."""
    published(tmp_path, "aaa", "bbb")
    shutil.rmtree(tmp_path / "aaa")
    assert history(tmp_path) == ["bbb"]


def test_no_build_is_missing(tmp_path: Path) -> None:
    """Where nothing was ever built, the error says how to build."""
    for index_dir in (tmp_path, tmp_path / "no-hay"):
        with pytest.raises(IndexMissing, match="make ingest"):
            current_build(index_dir)
        assert build_in_use(index_dir) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"zzz", b"..", b"../otra", b"/tmp", b".draft-aaa", b"aaa/..", b"aaa\nbbb", b"\xff\xfe", b"a" * 9_999],
    ids=lambda content: repr(content[:12]),
)
def test_a_broken_current_is_unusable(tmp_path: Path, content: bytes) -> None:
    """A CURRENT that names no build of this folder is refused, and no path leads out of the folder."""
    index_dir = tmp_path / "index"
    index_dir.mkdir()
    (tmp_path / "otra").mkdir()
    published(index_dir, "aaa")
    a_build(index_dir, "aaa")
    (index_dir / "CURRENT").write_bytes(content)
    with pytest.raises(IndexUnusable, match="CURRENT") as caught:
        current_build(index_dir)
    assert len(str(caught.value)) < 400
    assert build_in_use(index_dir) is None


def test_only_builds_are_removed(tmp_path: Path) -> None:
    """Drafts and builds that are not to be kept go; caches and what is not ours stay."""
    published(tmp_path, "aaa", "bbb", "ccc")
    a_build(tmp_path, "ddd")
    (tmp_path / "cache").mkdir()
    (tmp_path / "mias").mkdir()
    (tmp_path / "notas.txt").write_text("mías")
    remove_other_builds(tmp_path, keep=["ccc", "bbb"])
    assert names(tmp_path) == ["CURRENT", "HISTORY", "bbb", "cache", "ccc", "mias", "notas.txt"]


def test_one_builder_wins_and_the_other_says_so(tmp_path: Path) -> None:
    """While one builder is at work a second is refused, with the folder's name; afterwards it is not."""
    with builder_lock(tmp_path), pytest.raises(BuildRunning, match="Another builder") as caught, builder_lock(tmp_path):
        pass
    assert str(tmp_path) in str(caught.value)
    with builder_lock(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_the_lock_is_let_go_of_after_a_failure(tmp_path: Path) -> None:
    """A builder that fails leaves no lock behind."""

    def fail() -> None:
        with builder_lock(tmp_path):
            raise RuntimeError("roto")

    with pytest.raises(RuntimeError, match="roto"):
        fail()
    with builder_lock(tmp_path):
        pass


def test_the_lock_is_let_go_of_by_a_killed_builder(tmp_path: Path) -> None:
    """The kernel lets go of the lock of a builder that was killed."""
    lines = ["import sys, pathlib, rag.builds", "with rag.builds.builder_lock(pathlib.Path(sys.argv[1])):"]
    code = "\n".join([*lines, "    print(1, flush=True)", "    input()"])
    with Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdin=PIPE, stdout=PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"1\n"
        with pytest.raises(BuildRunning), builder_lock(tmp_path):
            pass
        other.kill()
        other.wait()
        with builder_lock(tmp_path):
            pass


def test_a_manifest_comes_back(tmp_path: Path) -> None:
    """What a build says of itself is read as it was written, and written the same each time."""
    write_manifest(tmp_path, MANIFEST)
    first = (tmp_path / "manifest.json").read_bytes()
    assert read_manifest(tmp_path) == MANIFEST
    write_manifest(tmp_path, read_manifest(tmp_path))
    assert (tmp_path / "manifest.json").read_bytes() == first
    assert "ñandú" in first.decode()


def test_a_missing_manifest_is_missing(tmp_path: Path) -> None:
    """A folder without a manifest is no build."""
    with pytest.raises(IndexMissing):
        read_manifest(tmp_path)


MANIFESTS: dict[str, Callable[[dict[str, object]], object]] = {
    "another-format": lambda found: {**found, "index_format": INDEX_FORMAT + 1},
    "no-format": lambda found: {name: value for name, value in found.items() if name != "index_format"},
    "a-field-missing": lambda found: {name: value for name, value in found.items() if name != "gate"},
    "a-field-too-many": lambda found: {**found, "nuevo": 1},
    "a-list": list,
    "null": lambda _: None,
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_another_manifest_is_refused(tmp_path: Path, change: Callable[[dict[str, object]], object]) -> None:
    """A manifest of another format or shape makes the index unusable, and the remedy is named."""
    changed = change(asdict(MANIFEST))
    content = sealed(changed) if isinstance(changed, dict) else json.dumps(changed).encode()
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(IndexUnusable, match="make ingest-clean"):
        read_manifest(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(field=st.sampled_from(sorted(asdict(MANIFEST))), value=JSON, with_seal=st.booleans())
def test_whatever_a_manifest_holds_it_is_read_or_refused(field: str, value: Any, with_seal: bool) -> None:
    """With anything in the place of a field, sealed or not, a manifest is refused by name or read as it stands."""
    values = {**asdict(MANIFEST), field: value}
    with tempfile.TemporaryDirectory() as work:
        content = sealed(values) if with_seal else json.dumps(values).encode()
        (Path(work) / "manifest.json").write_bytes(content)
        try:
            found = read_manifest(Path(work))
        except IndexUnusable as error:
            assert "make ingest-clean" in str(error)  # noqa: PT017 - either is right
        else:
            assert with_seal
            assert {**asdict(found), field: None} == {**asdict(MANIFEST), field: None}


@given(st.binary(max_size=64) | st.sampled_from([b"[" * 100_000, b'{"index_format":' * 9_999, b"1" * 5_000]))
def test_whatever_stands_in_the_place_of_a_manifest_is_refused(content: bytes) -> None:
    """Bytes of any kind, deep nesting and long numbers are no manifest, and one clear error."""
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "manifest.json").write_bytes(content)
        with pytest.raises(IndexUnusable, match="make ingest-clean"):
            read_manifest(Path(work))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"nada"], ids=repr)
def test_a_manifest_that_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    """A damaged manifest makes the index unusable, and names the file."""
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(IndexUnusable, match=r"manifest\.json"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("at", range(0, 1_100, 41))
def test_no_value_of_a_manifest_can_be_changed(tmp_path: Path, at: int) -> None:
    """With a byte changed anywhere, the manifest is refused or says the same."""
    write_manifest(tmp_path, MANIFEST)
    path = tmp_path / "manifest.json"
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1
    path.write_bytes(content)
    try:
        assert read_manifest(tmp_path) == MANIFEST
    except IndexUnusable as error:
        assert "make ingest-clean" in str(error)  # noqa: PT017 - either is right


def whole_build(build_dir: Path) -> Manifest:
    (build_dir / "chroma" / "hondo").mkdir(parents=True)
    for name in ("chroma/hondo/a.bin", "reference.npz", "sentences.npy"):
        (build_dir / name).write_text(name)
    manifest = replace(MANIFEST, files=file_hashes(build_dir))
    write_manifest(build_dir, manifest)
    return manifest


def test_a_sealed_build_is_whole(tmp_path: Path) -> None:
    """All files but the manifest are in it, at any depth, and unchanged they pass."""
    manifest = whole_build(tmp_path)
    assert sorted(manifest.files) == ["chroma/hondo/a.bin", "reference.npz", "sentences.npy"]
    check_files(tmp_path, manifest)
    assert file_hashes(tmp_path) == manifest.files


@pytest.mark.parametrize("name", ["chroma/hondo/a.bin", "reference.npz", "sentences.npy"])
@pytest.mark.parametrize("damage", ["missing", "one letter", "empty", "a folder"])
def test_a_changed_file_is_named(tmp_path: Path, name: str, damage: str) -> None:
    """Whichever file of a build is missing or differs, the error names it."""
    manifest = whole_build(tmp_path)
    path = tmp_path / name
    if damage in ("missing", "a folder"):
        path.unlink()
        if damage == "a folder":
            path.mkdir()
    else:
        path.write_text("" if damage == "empty" else path.read_text().swapcase())
    with pytest.raises(IndexUnusable, match=name.replace(".", r"\.")):
        check_files(tmp_path, manifest)
