"""Small boxes of cards for proofs about the builder: built by the command, and judged from outside."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.builds import CURRENT_FILE, HISTORY_FILE, LOCK_FILE, build_in_use, current_build
from rag.cached_embedding import CachedEmbedder
from rag.embedding import load_embedder
from rag.errors import IndexMissing, IndexUnusable, RagError
from rag.indexing import CONTEXTS_FILE, VECTORS_FILE
from rag.manifest import CHROMA_DIR, Manifest, check_files, read_manifest
from rag.opening import assemble
from rag.records import Row
from rag.reference import reference_questions
from rag.settings import PREFIX
from rag.store import read_rows_here
from rag.vector_cache import VectorCache

ROOT = Path(__file__).resolve().parent.parent
MODEL_DIR = Path(os.environ.get("FICHERO_MODEL_DIR", ROOT / "model"))
_PROGRESS = re.compile(r"\w+: +\d+(%\|| \[)")

Cards = Mapping[str, str]
"""File name without its ending → text."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run of the builder that came to its end."""

    process: int
    status: int
    errors: list[str]
    """Lines on standard error that are no progress."""


@dataclass(frozen=True, slots=True)
class Box:
    """Cards, their index and what is temporary, all below one folder."""

    folder: Path

    @property
    def cards_dir(self) -> Path:
        """Of the cards."""
        return self.folder / "cards"

    @property
    def index_dir(self) -> Path:
        """Of the index."""
        return self.folder / "index"

    @property
    def temporary_dir(self) -> Path:
        """Where the builder and its children put temporary files."""
        return self.folder / "tmp"

    @property
    def current(self) -> str | None:
        """What CURRENT says, letter by letter."""
        path = self.index_dir / CURRENT_FILE
        return path.read_text("utf-8") if path.exists() else None

    def write(self, cards: Cards) -> None:
        """Make these all the cards there are."""
        shutil.rmtree(self.cards_dir, ignore_errors=True)
        self.cards_dir.mkdir(parents=True)
        self.temporary_dir.mkdir(exist_ok=True)
        for name, text in cards.items():
            (self.cards_dir / f"{name}.md").write_text(text, "utf-8")

    def take_vectors(self, cache: Path) -> None:
        """Begin with a cache of vectors, such as ``write_reference_vectors`` makes."""
        (self.index_dir / VECTORS_FILE).parent.mkdir(parents=True)
        shutil.copyfile(cache, self.index_dir / VECTORS_FILE)

    def copy_to(self, folder: Path) -> Box:
        """A copy of all of it."""
        shutil.copytree(self.folder, folder)
        return Box(folder)

    def start(self, changes: Mapping[str, str]) -> subprocess.Popen[str]:
        """The builder, in a process group of its own, with changes to its environment."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        fixed = {
            "FICHERO_CARDS_DIR": str(self.cards_dir),
            "FICHERO_INDEX_DIR": str(self.index_dir),
            "FICHERO_MODEL_DIR": str(MODEL_DIR),
            # no golden cases: they are about other cards
            "FICHERO_GOLDEN_DIR": str(self.folder / "none"),
            "TMPDIR": str(self.temporary_dir),
        }
        return subprocess.Popen(
            [sys.executable, "build_index.py"],
            cwd=ROOT,
            env={**ours, **fixed, **changes},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def build(self, changes: Mapping[str, str], *, timeout_seconds: float = 120.0) -> Ended:
        """
        Run the builder to its end.

        Raises:
            subprocess.TimeoutExpired: it does not come to one; it was stopped.
        """
        with self.start(changes) as process:
            try:
                return ended(process, timeout_seconds=timeout_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise

    def files_in_use(self) -> dict[str, bytes]:
        """Every file of the build in use, by path below it; none where there is no build."""
        build = build_in_use(self.index_dir)
        return {str(path.relative_to(build)): path.read_bytes() for path in _files(build)} if build else {}


@dataclass(frozen=True, slots=True)
class Dump:
    """What a build holds, free of how its files happen to be laid out."""

    manifest: Manifest
    rows: list[Row]
    vectors: NDArray[np.float32]

    @property
    def build_id(self) -> str:
        """Of the build."""
        return self.manifest.build_id


def ended(process: subprocess.Popen[str], *, timeout_seconds: float = 120.0) -> Ended:
    """Wait for a builder to come to its end."""
    _, errors = process.communicate(timeout=timeout_seconds)
    lines = [line.strip() for line in re.split(r"[\r\n]", errors)]
    return Ended(process.pid, process.returncode, [line for line in lines if line and not _PROGRESS.match(line)])


def check_good(end: Ended) -> None:
    """
    Check that a build without faults went well, as nothing can be shown otherwise.

    Raises:
        SystemExit: it did not; says how it ended.
    """
    if end.status != 0 or end.errors:
        raise SystemExit(f"A build that nobody disturbs does not succeed ({end.status}): {end.errors}")


def write_reference_vectors(path: Path) -> None:
    """Write a cache of vectors that knows the reference questions and nothing else, as they are in every build."""
    embedder = load_embedder(MODEL_DIR)
    with VectorCache(path, model_fingerprint=embedder.description.fingerprint) as cache:
        work = CachedEmbedder(embedder, cache)
        for questions in reference_questions().values():
            work.passages(questions)
            for question in questions:
                work.embed_query(question)


def rows_of(build_dir: Path) -> tuple[list[Row], NDArray[np.float32]]:
    """
    The rows of a build with their vectors, (n, d) float32.

    A copy is opened in this process, which imports Chroma once, where a child for each reading would do so anew.

    Raises:
        IndexUnusable: they cannot be read.
    """
    with tempfile.TemporaryDirectory() as work, warnings.catch_warnings():
        # Chroma says this of its own doing whenever a collection without an embedding function is opened
        warnings.filterwarnings("ignore", "legacy embedding function config", DeprecationWarning)
        try:
            return read_rows_here(shutil.copytree(build_dir / CHROMA_DIR, Path(work) / "chroma"))
        except Exception as error:  # chromadb raises errors of many kinds
            raise IndexUnusable(build_dir, f"its rows cannot be read: {error}") from error


def read_dump(build_dir: Path) -> Dump:
    """
    Open a build, from its files to the last row, and give what is in it.

    Raises:
        IndexMissing, IndexUnusable: it is not whole; says what.
    """
    manifest = read_manifest(build_dir)
    check_files(build_dir, manifest)
    rows, vectors = rows_of(build_dir)
    assemble(build_dir, manifest.build_id, rows, vectors, thresholds=manifest.gate["thresholds"])
    return Dump(manifest, rows, vectors)


def dump_in_use(box: Box) -> Dump:
    """
    The build in use.

    Raises:
        IndexMissing, IndexUnusable: there is none, or it is not whole.
    """
    return read_dump(current_build(box.index_dir))


def differences(found: Dump, wanted: Dump) -> list[str]:
    """In what a build differs from another one that was made of the same cards; vectors are compared to 1e-6."""
    ours, other = found.manifest, wanted.manifest
    named = {
        "ids": (ours.build_id, other.build_id),
        "rows": (found.rows, wanted.rows),
        "hashes of cards": (ours.card_hashes, other.card_hashes),
        "hashes of rows": (ours.card_rows, other.card_rows),
        "counts": (ours.counts, other.counts),
        "groups": (ours.acl_version, other.acl_version),
        "sentences": (_sentence_hashes(ours), _sentence_hashes(other)),
        "names of thresholds": (set(ours.gate["thresholds"]), set(other.gate["thresholds"])),
    }
    differing = [name for name, (one, two) in named.items() if one != two]
    if not differing and not np.allclose(found.vectors, wanted.vectors, rtol=0, atol=1e-6):
        differing.append("vectors")
    thresholds = zip(ours.gate["thresholds"].values(), other.gate["thresholds"].values(), strict=True)
    if not differing and any(abs(one - two) > 1e-6 for one, two in thresholds):
        differing.append("thresholds")
    return [f"differs from a clean build in: {', '.join(differing)}"] if differing else []


def problems_in_use(box: Box, known: Mapping[str, Dump]) -> list[str]:
    """What is wrong with the build in use: it has to open, and to be one of these by id; no build at all is right."""
    if box.current is None:
        return []
    name = box.current.strip()
    if name.startswith("."):
        return [f"CURRENT names {name}"]
    return problems_with(box.index_dir / name, known)


def problems_with(build_dir: Path, known: Mapping[str, Dump]) -> list[str]:
    """What is wrong with one build: it has to open, and to be one of these by id."""
    try:
        found = read_dump(build_dir)
    except RagError as error:
        return [str(error)]
    if found.build_id not in known:
        return [f"{build_dir.name} is of no cards that there ever were"]
    return differences(found, known[found.build_id])


def problems_with_result(box: Box, wanted: Dump) -> list[str]:
    """What is wrong after a builder came to a good end: this build has to be in use, and nothing else left."""
    problems = problems_in_use(box, {wanted.build_id: wanted})
    if box.current is None:
        problems.append(str(IndexMissing(box.index_dir)))
    return problems + leftovers(box)


def leftovers(box: Box) -> list[str]:
    """What lies about that is neither a build nor part of the index."""
    # a log that SQLite could not take away belongs to its file, and is read when that is opened again
    caches = {f"{Path(name).name}{ending}" for name in (CONTEXTS_FILE, VECTORS_FILE) for ending in ("", "-wal", "-shm")}
    expected = {CURRENT_FILE, HISTORY_FILE, LOCK_FILE, "cache"}
    builds = {path.parent.name for path in box.index_dir.glob("[!.]*/manifest.json")}
    found = [path for path in box.index_dir.iterdir() if path.name not in expected | builds]
    found += [path for path in (box.index_dir / "cache").iterdir() if path.name not in caches]
    found += box.temporary_dir.iterdir()
    return [f"{path.relative_to(box.folder)} was left behind" for path in sorted(found)]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _sentence_hashes(manifest: Manifest) -> dict[str, str]:
    """Of the files that hold no vectors, which may differ in the last bit."""
    return {name: digest for name, digest in manifest.files.items() if name.endswith(("spans.npy", "cards.json"))}
