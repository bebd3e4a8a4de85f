"""What tests share: the real model, one index of the example cards, and a real server on loopback."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from hypothesis import settings as hypothesis_settings

from benchmarks.boxes import rows_of, write_reference_vectors
from rag.builds import CURRENT_FILE, current_build
from rag.cards import read_cards
from rag.cases import Golden, read_golden_dir
from rag.embedding import DATA_FILE, DESCRIPTION_FILE, GRAPH_FILE, TOKENIZER_FILE, Embedder, load_embedder
from rag.indexing import VECTORS_FILE, Builder, BuildOptions, BuildReport
from rag.manifest import check_files, read_manifest
from rag.opening import OpenIndex, assemble, open_index
from rag.settings import PREFIX
from tests.pages import browser, play, visit

__all__ = ["browser", "play", "visit"]
"""Fixtures of another file."""

# of tests that do not say how many examples they take; ``--hypothesis-profile deep`` is the proof at full size
hypothesis_settings.register_profile("suite", max_examples=200, deadline=None)
hypothesis_settings.register_profile("deep", max_examples=10_000, deadline=None)
hypothesis_settings.load_profile("suite")

ROOT = Path(__file__).resolve().parent.parent
MODEL_DIR = ROOT / "model"
CASES_DIR = ROOT / "tests" / "cases"
STAFF_TOKEN = "una-contraseña-larga"
DEFAULT_BUILD = BuildOptions(chunk_chars=400, overlap_chars=60, context="metadata")


def build_quietly(
    cards_dir: Path, index_dir: Path, options: BuildOptions = DEFAULT_BUILD, golden: Golden | None = None
) -> BuildReport:
    """Build an index of a folder with the real model; broken cards are left out."""
    warm_up(index_dir)
    return Builder(index_dir, MODEL_DIR, options, golden=golden).build(read_cards(cards_dir).cards)


def warm_up(index_dir: Path) -> None:
    """Give an index without a cache one that knows the reference questions, which every first build asks for."""
    cache_file = index_dir / VECTORS_FILE
    if not cache_file.exists():
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        cache_file.write_bytes(warm_cache())


@functools.cache
def warm_cache() -> bytes:
    """A cache of vectors that knows the reference questions, embedded once in a process."""
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "vectors.sqlite"
        write_reference_vectors(path)
        return path.read_bytes()


def open_here(index_dir: Path) -> OpenIndex:
    """The build in use, checked and opened as a service does, but for the child that reads the rows."""
    build_dir = current_build(index_dir)
    manifest = read_manifest(build_dir)
    check_files(build_dir, manifest)
    rows, vectors = rows_of(build_dir)
    return assemble(build_dir, manifest.build_id, rows, vectors, thresholds=manifest.gate["thresholds"])


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """The real model."""
    return load_embedder(MODEL_DIR)


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """A model folder to damage: the real files, linked, and a copy of the description."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in (GRAPH_FILE, DATA_FILE, TOKENIZER_FILE):
        (folder / name).symlink_to(MODEL_DIR / name)
    shutil.copyfile(MODEL_DIR / DESCRIPTION_FILE, folder / DESCRIPTION_FILE)
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """While one process makes something at this path, others that need it wait."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def built_once(cards_dir: Path, index_dir: Path, golden: Golden | None = None) -> Path:
    """An index of a folder that whoever comes first builds; not to be changed."""
    with locked(index_dir):
        if not (index_dir / CURRENT_FILE).exists():
            build_quietly(cards_dir, index_dir, golden=golden)
    return index_dir


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is made once in a run; processes that run tests side by side share it."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def sample_index_dir(run_dir: Path) -> Path:
    """An index of the example cards, built once for the whole run; not to be changed."""
    return built_once(ROOT / "cards", run_dir / "sample-index", read_golden_dir(ROOT / "tests" / "golden"))


@pytest.fixture(scope="session")
def hostile_index_dir(run_dir: Path) -> Path:
    """An index of O18, a card full of markup, built once for the whole run; not to be changed."""
    return built_once(CASES_DIR / "O18_xss" / "cards", run_dir / "hostile-index")


@pytest.fixture(scope="session")
def textless_index_dir(run_dir: Path) -> Path:
    """An index of O06, cards without text, built once for the whole run; not to be changed."""
    return built_once(CASES_DIR / "O06_empty" / "cards", run_dir / "textless-index")


@pytest.fixture(scope="session")
def sample_index(sample_index_dir: Path, embedder: Embedder) -> OpenIndex:
    """The same index, opened."""
    return open_index(sample_index_dir, embedder.description)


@dataclass(frozen=True, slots=True)
class Server:
    """A running service."""

    url: str
    process: subprocess.Popen[str]


@pytest.fixture(scope="session")
def server(sample_index_dir: Path) -> Iterator[Server]:
    """The service over the example cards; ``STAFF_TOKEN`` opens those of the group ``staff``."""
    digest = hashlib.sha256(STAFF_TOKEN.encode()).hexdigest()
    with running({"FICHERO_INDEX_DIR": str(sample_index_dir), "FICHERO_TOKENS": f"{digest}=staff"}) as started:
        yield started


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    """A caller of ``server`` without a token."""
    with httpx.Client(base_url=server.url, timeout=30) as caller:
        yield caller


@pytest.fixture(scope="session")
def run_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a Python file or module of the project, as a user would."""

    def run(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=clean_environment(environment or {}), capture_output=True, text=True, check=False
        )

    return run


def clean_environment(changes: Mapping[str, str]) -> dict[str, str]:
    """Ours, without settings of the service, plus changes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX) and name != "PORT"}
    return {**kept, **changes}


class running:  # noqa: N801 - a context manager that reads like a verb
    """A service with these settings, ready; stopped at the end."""

    def __init__(self, settings: Mapping[str, str], *, wait: bool = True, log: Path | None = None) -> None:
        """What it logs goes into the file ``log``, if that is given."""
        self.settings = settings
        self.wait = wait
        self._log = log.open("w", encoding="utf-8") if log else None

    def __enter__(self) -> Server:
        port = free_port()
        fixed = {"FICHERO_MODEL_DIR": str(MODEL_DIR), "FICHERO_HOST": "127.0.0.1", "PORT": str(port)}
        # few lines, as nobody empties the pipe while it runs
        settings = {**fixed, "FICHERO_LOG_LEVEL": "error", "FICHERO_RATE_PER_MINUTE": "0", **self.settings}
        self.process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=ROOT,
            env=clean_environment(settings),
            stdout=subprocess.DEVNULL,
            stderr=self._log or subprocess.PIPE,
            text=True,
        )
        started = Server(f"http://127.0.0.1:{port}", self.process)
        if self.wait:
            wait_until_ready(started)
        return started

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        if self._log:
            self._log.close()


def wait_until_ready(started: Server, seconds: float = 60.0) -> None:
    """Wait for 200 of /readyz; fails with what the service printed if it ends before."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if started.process.poll() is not None:
            pytest.fail(f"the service ended with {started.process.returncode}: {started.process.communicate()[1]}")
        try:
            if httpx.get(f"{started.url}/readyz", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    pytest.fail("the service did not become ready")


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
