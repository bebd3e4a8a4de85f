"""Starting and stopping: ready only when verified, and clear about what is missing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag.builds import current_build
from rag.embedding import DATA_FILE, DESCRIPTION_FILE, Embedder
from rag.errors import IndexUnusable
from rag.manifest import sealed
from rag.opening import open_index
from tests.conftest import CASES_DIR, ROOT, clean_environment, free_port, running
from tests.cross_encoders import write_cross_encoder

Run = Callable[..., subprocess.CompletedProcess[str]]
EXIT_UNUSABLE = 3


@pytest.fixture
def index_dir(hostile_index_dir: Path, tmp_path: Path) -> Path:
    """A copy of an index, to damage."""
    copy = tmp_path / "index"
    shutil.copytree(hostile_index_dir, copy, ignore=shutil.ignore_patterns("cache"))
    return copy


def start(environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the service until it ends by itself."""
    settings = {"FICHERO_HOST": "127.0.0.1", "PORT": str(free_port()), "FICHERO_LOG_LEVEL": "error", **environment}
    return subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=clean_environment(settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def refused(environment: Mapping[str, str]) -> str:
    """The one line with which the service says that it cannot start; its status is 3."""
    ended = start(environment)
    assert ended.returncode == EXIT_UNUSABLE, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


def checksums(folder: Path) -> dict[str, tuple[str, int]]:
    """Path → hash and time of change, of everything below a folder."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns,
        )
        for path in [folder, *folder.rglob("*")]
    }


@pytest.fixture(scope="module")
def read_only(hostile_index_dir: Path) -> Iterator[Path]:
    """The index mounted read-only where that may be done; elsewhere the index itself."""
    point = Path(tempfile.mkdtemp(prefix="fichero-read-only-"))
    mounts = [["mount", "--bind", str(hostile_index_dir), str(point)], ["mount", "-o", "remount,ro,bind", str(point)]]
    mounted = 0
    for command in mounts if os.geteuid() == 0 and shutil.which("mount") else []:
        if subprocess.run(command, capture_output=True, check=False).returncode:
            break
        mounted += 1
    try:
        yield point if mounted == len(mounts) else hostile_index_dir
    finally:
        if mounted:
            subprocess.run(["umount", str(point)], check=True)
        point.rmdir()


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """A service over the read-only index."""

    url: str
    before: Mapping[str, tuple[str, int]]
    """Path → hash and time of change of the index, from before the start."""


@pytest.fixture(scope="module")
def read_only_service(hostile_index_dir: Path, read_only: Path) -> Iterator[ReadOnly]:
    """Answers whatever it is asked; when it has ended, the index has to be as it was."""
    before = checksums(hostile_index_dir)
    with running({"FICHERO_INDEX_DIR": str(read_only), "FICHERO_MIN_SIMILARITY": "0"}) as started:
        yield ReadOnly(started.url, before)
    assert checksums(hostile_index_dir) == before


def test_ready_only_when_verified(hostile_index_dir: Path) -> None:
    """
    From the first moment /healthz is 200 and /readyz 503 with the cause; both are 200 once all is loaded, and SIGINT
    ends the service in order.
    """
    with (
        running({"FICHERO_INDEX_DIR": str(hostile_index_dir)}, wait=False) as started,
        httpx.Client(base_url=started.url, timeout=30) as caller,
    ):
        first = first_reply(caller, "/readyz")
        assert first.status_code == 503
        assert first.headers["content-type"] == "application/problem+json"
        assert first.json()["type"] == "urn:fichero:problem:not-ready"
        assert "loaded" in first.json()["detail"]
        assert first.headers["retry-after"]
        seen = {first.status_code}
        while 200 not in seen:
            assert caller.get("/healthz").status_code == 200
            asked = caller.post("/ask", json={"question": "¿Qué dice el texto?"})
            assert asked.status_code in (200, 503)
            ready = caller.get("/readyz")
            seen.add(ready.status_code)
            time.sleep(0.02)
        assert seen == {200, 503}
        assert ready.json()["status"] == "ready"
        assert caller.post("/ask", json={"question": "¿Qué dice el texto?"}).status_code == 200
        started.process.send_signal(signal.SIGINT)
        started.process.communicate(timeout=30)
        assert started.process.returncode in (0, -signal.SIGINT, 128 + signal.SIGINT)


def first_reply(caller: httpx.Client, path: str) -> httpx.Response:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return caller.get(path)
        except httpx.TransportError:
            time.sleep(0.005)
    raise AssertionError("no reply")


def test_o11_a_read_only_index_serves_and_stays_as_it_was(hostile_index_dir: Path, read_only_service: ReadOnly) -> None:
    """O11: with its folder read-only the service starts and answers, and not a byte or time of the index changes."""
    url = read_only_service.url
    answer = httpx.post(f"{url}/ask", json={"question": "¿Qué dice el texto?"}, timeout=30).json()
    assert answer["citations"]
    assert httpx.get(f"{url}/cards", timeout=30).status_code == 200
    assert checksums(hostile_index_dir) == read_only_service.before


def test_o06_an_index_without_text_serves_and_refuses(textless_index_dir: Path) -> None:
    """O06: an index of cards without text starts, lists and opens them, and refuses every question."""
    asked = (CASES_DIR / "O06_empty" / "question.txt").read_text("utf-8").strip()
    with (
        running({"FICHERO_INDEX_DIR": str(textless_index_dir)}) as started,
        httpx.Client(base_url=started.url, timeout=30) as caller,
    ):
        cards = caller.get("/cards").json()["cards"]
        assert len(cards) == 4
        for card in cards:
            assert caller.get(card["url"]).status_code == 200
            assert caller.get(card["url"] + ".md").status_code == 200
        for text in (asked, "Títulos", "Uno", "# Dos"):
            answer = caller.post("/ask", json={"question": text}).json()
            assert answer["refusal"]["reason"] in ("below_threshold", "no_evidence", "no_cards")
            assert answer["citations"] == []


def test_o18_markup_is_served_as_text(read_only_service: ReadOnly) -> None:
    """O18: a card full of markup comes as JSON or Markdown that no browser runs, and the question is given back."""
    asked = (CASES_DIR / "O18_xss" / "question.txt").read_text("utf-8").strip()
    with httpx.Client(base_url=read_only_service.url, timeout=30) as caller:
        card = caller.get("/cards/card-xss")
        markdown = caller.get("/cards/card-xss.md")
        answer = caller.get("/ask", params={"q": asked})
        for response in (card, markdown, answer):
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in response.headers["content-security-policy"]
        assert card.headers["content-type"] == answer.headers["content-type"] == "application/json"
        assert markdown.headers["content-type"].startswith("text/markdown")
        assert card.json()["title"] == "<img src=x onerror=alert(1)>"
        assert "<script>alert(2)</script>" in card.json()["text"]
        assert answer.json()["question"] == asked


def test_sigterm_ends_the_service(hostile_index_dir: Path) -> None:
    """SIGTERM ends a ready service in order, without a traceback."""
    with running({"FICHERO_INDEX_DIR": str(hostile_index_dir)}) as started:
        started.process.terminate()
        _, printed = started.process.communicate(timeout=30)
        assert started.process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        assert printed == ""


def test_sigterm_ends_a_service_that_is_still_loading(hostile_index_dir: Path) -> None:
    """SIGTERM before the service is ready ends it too."""
    with running({"FICHERO_INDEX_DIR": str(hostile_index_dir)}, wait=False) as started:
        with httpx.Client(base_url=started.url, timeout=30) as caller:
            assert first_reply(caller, "/healthz").status_code == 200
        started.process.terminate()
        started.process.communicate(timeout=60)
        assert started.process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


# what stops a start


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("FICHERO_INDEX", "x", "FICHERO_INDEX_DIR"),
        ("FICHERO_TOP_K", "0", "from 1 to 20"),
        ("FICHERO_MIN_SIMILARITY", "alto", "cosine"),
        ("FICHERO_TOKENS", "una-contraseña-larga=staff", "SHA-256"),
        ("PORT", "ochenta", "65535"),
        ("PORT", "9" * 5_000, "65535"),
    ],
    ids=["unknown", "out of range", "words", "token itself", "port in words", "port of 5,000 digits"],
)
def test_a_bad_setting_stops_the_start(name: str, value: str, told: str) -> None:
    """A setting that cannot be used ends the start with status 3 and one short line: its name and what it takes."""
    line = refused({name: value})
    assert name in line
    assert told in line
    assert len(line) < 800
    assert "contraseña" not in line


def test_a_missing_model_stops_the_start(index_dir: Path, tmp_path: Path) -> None:
    """Without a model the start ends with status 3 and one line: where it should be and which command makes it."""
    line = refused({"FICHERO_INDEX_DIR": str(index_dir), "FICHERO_MODEL_DIR": str(tmp_path / "none")})
    assert str(tmp_path / "none") in line
    assert "make model" in line


def test_a_missing_index_stops_the_start(tmp_path: Path) -> None:
    """Without an index the start ends with status 3 and one line: where it should be and which command makes it."""
    line = refused({"FICHERO_INDEX_DIR": str(tmp_path / "none")})
    assert str(tmp_path / "none") in line
    assert "make ingest" in line


def test_an_index_of_another_model_stops_the_start(index_dir: Path, model_dir: Path) -> None:
    """An index made with another model is named at the start, with both models, and not at the first question."""
    path = model_dir / DESCRIPTION_FILE
    found = json.loads(path.read_text("utf-8"))
    name = found["name"]
    path.write_text(json.dumps({**found, "name": "otro-modelo", "query_prefix": "query:  "}), "utf-8")
    line = refused({"FICHERO_INDEX_DIR": str(index_dir), "FICHERO_MODEL_DIR": str(model_dir)})
    assert "otro-modelo" in line
    assert name in line
    assert "make ingest-clean" in line


def test_a_missing_or_broken_reranker_stops_the_start(index_dir: Path, tmp_path: Path) -> None:
    """A cross-encoder that is not there or gives no scores ends the start with status 3 and one line."""
    folder = tmp_path / "cruzado"
    settings = {"FICHERO_INDEX_DIR": str(index_dir), "FICHERO_RERANKER_DIR": str(folder)}
    assert f"no {folder}." in refused(settings)
    write_cross_encoder(folder, positions=100)
    line = refused(settings)
    assert f"{folder} cannot be used" in line
    assert "FICHERO_RERANKER_DIR" in line


@pytest.mark.parametrize("name", [DATA_FILE, DESCRIPTION_FILE])
def test_a_damaged_model_stops_the_start(index_dir: Path, model_dir: Path, name: str) -> None:
    """A model file that changed ends the start with status 3 and one line that names it and the remedy."""
    (model_dir / name).unlink()
    (model_dir / name).write_bytes(b"{}")
    line = refused({"FICHERO_INDEX_DIR": str(index_dir), "FICHERO_MODEL_DIR": str(model_dir)})
    assert name in line
    assert "make model" in line


def rewrite_manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """Changes the manifest of the build in use."""

    def rewrite(index_dir: Path) -> None:
        path = current_build(index_dir) / "manifest.json"
        found = json.loads(path.read_text("utf-8"))
        del found["seal"]
        change(found)
        path.write_bytes(sealed(found))

    return rewrite


DAMAGES: dict[str, Callable[[Path], object]] = {
    "CURRENT names nothing": lambda index_dir: (index_dir / "CURRENT").write_text("0000\n", "utf-8"),
    "CURRENT is not text": lambda index_dir: (index_dir / "CURRENT").write_bytes(b"\xff\xfe"),
    "store changed": lambda index_dir: (current_build(index_dir) / "chroma" / "chroma.sqlite3").write_bytes(b"x"),
    "sentences gone": lambda index_dir: shutil.rmtree(current_build(index_dir) / "sentences"),
    "manifest cut": lambda index_dir: (current_build(index_dir) / "manifest.json").write_text("{", "utf-8"),
    "manifest of another format": rewrite_manifest(lambda found: found.update(index_format=99)),
    "manifest without a gate": rewrite_manifest(lambda found: found.update(gate={})),
    "gate in words": rewrite_manifest(lambda found: found.update(gate={"es": "alto", "en": "high"})),
    "manifest without counts": rewrite_manifest(lambda found: found.update(counts={})),
    "manifest with files as a list": rewrite_manifest(lambda found: found.update(files=[])),
    "manifest without files": rewrite_manifest(lambda found: found.update(files={})),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_index_does_not_open(index_dir: Path, damage: Callable[[Path], object], embedder: Embedder) -> None:
    """A damaged index is refused when it is opened, with its place and the remedy, and not at the first question."""
    damage(index_dir)
    with pytest.raises(IndexUnusable, match="make ingest-clean") as caught:
        open_index(index_dir, embedder.description)
    assert str(index_dir) in str(caught.value)


@pytest.mark.parametrize("name", ["CURRENT names nothing", "store changed", "manifest without a gate"])
def test_a_damaged_index_stops_the_start(index_dir: Path, name: str) -> None:
    """A damaged index ends the start with status 3 and one line that names the index and the remedy."""
    DAMAGES[name](index_dir)
    line = refused({"FICHERO_INDEX_DIR": str(index_dir)})
    assert str(index_dir) in line
    assert "make ingest" in line


def test_a_port_in_use_is_said_in_one_line(index_dir: Path) -> None:
    """A port that another program has ends the start with an error that names the port, and no traceback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = start({"FICHERO_INDEX_DIR": str(index_dir), "PORT": port})
    assert ended.returncode not in (0, -signal.SIGTERM)
    assert port in ended.stderr
    assert "Traceback" not in ended.stderr
