"""A new build comes into a running service whole or not at all, and whoever asks meanwhile gets one build's answer."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Semaphore
from typing import Any, cast
from urllib.request import urlopen

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from app import create_app
from rag.cached_embedding import RememberingEmbedder
from rag.embedding import DESCRIPTION_FILE, Embedder, read_description
from rag.errors import IndexMissing, IndexUnusable
from rag.manifest import sealed
from rag.opening import OPEN_ATTEMPTS, open_index
from rag.records import Answer, Retrieval
from rag.reranking import load_reranker
from rag.serving.admission import AT_WORK, Line
from rag.serving.engine import Engine, Loaded
from rag.serving.streaming import last_answer
from rag.settings import Settings
from tests.boxes import (
    NO_TOKEN,
    Box,
    Call,
    ask,
    copy_builds,
    less_varying,
    questions,
    secret_box,
    token_hashes,
    token_of,
    use,
)
from tests.conftest import MODEL_DIR, ROOT, Server, clean_environment, free_port, open_here, running, wait_until_ready
from tests.cross_encoders import write_cross_encoder

MANIFEST = "manifest.json"
RELOADS = 10
ASKING = ("staff", "nurses and staff", "nurses, pharmacy and staff")
"""Who asks while the service reloads. All of them see cards of one build that the other one has not."""
PAUSE_SECONDS = 0.2


@pytest.fixture(scope="module")
def box(run_dir: Path) -> Box:
    """Two builds, one with fewer cards."""
    return secret_box(run_dir / "secrets")


@pytest.fixture
def index_dir(box: Box, tmp_path: Path) -> Path:
    """A copy of both builds, to change; the whole one is in use."""
    return copy_builds(box, tmp_path / "index", box.whole)


@pytest.fixture(scope="module")
def opened(box: Box, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Loaded]:
    """Both builds, opened once, by name."""
    index_dir = copy_builds(box, tmp_path_factory.mktemp("opened") / "index", box.whole)
    loaded: dict[str, Loaded] = {}
    for name in (box.whole, box.reduced):
        use(index_dir, name)
        loaded[name] = Loaded(embedder, open_here(index_dir))
    return loaded


@pytest.fixture
def engine(box: Box, opened: Mapping[str, Loaded], index_dir: Path, model_dir: Path) -> Engine:
    """An engine that answers from the whole box; its folders may be changed."""
    return Engine(Settings(index_dir=index_dir, model_dir=model_dir), opened[box.whole])


def ask_to_reload(server: Server) -> None:
    server.process.send_signal(signal.SIGHUP)


def ready(server: Server) -> Any:
    """What /readyz says; fails if it is not 200."""
    with urlopen(f"{server.url}/readyz", timeout=30) as response:
        return json.load(response)


def state_of(version: str, reload_failed: str | None = None) -> dict[str, str | None]:
    """What /readyz says."""
    return {"status": "ready", "index_version": version, "reload_failed": reload_failed}


def until_state(server: Server, version: str, reload_failed: str | None = None) -> None:
    end = time.monotonic() + 60
    while ready(server) != state_of(version, reload_failed):
        assert time.monotonic() < end, f"in a minute {ready(server)} did not become {version} {reload_failed}"
        time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Gate:
    """A build that stops whoever opens it at its manifest, until that is handed over."""

    path: Path
    manifest: bytes

    def wait(self) -> int:
        """Wait until someone is reading; gives a descriptor to write to."""
        end = time.monotonic() + 60
        while True:
            try:
                return os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO or time.monotonic() > end:
                    raise
                time.sleep(0.005)

    def hand_over(self, descriptor: int, manifest: bytes | None = None) -> None:
        """Let the reader have the manifest, and go on."""
        with open(descriptor, "wb") as file:
            file.write(self.manifest if manifest is None else manifest)


def gated(build_dir: Path) -> Gate:
    """Put a named pipe in the place of a build's manifest."""
    path = build_dir / MANIFEST
    gate = Gate(path, path.read_bytes())
    path.unlink()
    os.mkfifo(path)
    return gate


# a running service


@dataclass(frozen=True, slots=True)
class Service:
    """A running service and its index folder."""

    server: Server
    index_dir: Path


@pytest.fixture(scope="module")
def started(box: Box, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """
    A service that was told to reload while its first load was running.

    It began with the whole box; when it got the signal and went on, the reduced one was in use.
    """
    index_dir = copy_builds(box, tmp_path_factory.mktemp("service") / "index", box.whole)
    gate = gated(index_dir / box.whole)
    tokens = "; ".join(f"{digest}={','.join(groups)}" for digest, groups in token_hashes().items())
    with running({"FICHERO_INDEX_DIR": str(index_dir), "FICHERO_TOKENS": tokens}, wait=False) as server:
        descriptor = gate.wait()
        ask_to_reload(server)
        use(index_dir, box.reduced)
        gate.hand_over(descriptor)
        wait_until_ready(server)
        yield Service(server, index_dir)


@pytest.fixture
def service(box: Box, started: Service) -> Service:
    """A service that answers from the reduced box, with both builds whole."""
    for name in (box.whole, box.reduced):
        shutil.rmtree(started.index_dir / name)
        shutil.copytree(box.builds_dir / name, started.index_dir / name)
    use(started.index_dir, box.reduced)
    ask_to_reload(started.server)
    until_state(started.server, box.reduced)
    return started


def test_a_signal_during_the_start_is_remembered(box: Box, started: Service) -> None:
    """A SIGHUP while the first load runs does not end the service, and the build in use by then is loaded after it."""
    until_state(started.server, box.reduced)


Expected = Mapping[str, Mapping[Call, object]]
"""Version → request → what is answered, less what varies."""


def expect(opened: Mapping[str, Loaded], embedder: Embedder, caller: str, calls: Sequence[Call]) -> Expected:
    """What each build answers when nothing changes."""
    settings = Settings(tokens=token_hashes(), rate_per_minute=0)
    expected: dict[str, dict[Call, object]] = {}
    for version, loaded in opened.items():
        replies = ask(create_app(settings, Engine(settings, Loaded(embedder, loaded.index))), caller, calls)
        expected[version] = {
            call: less_varying(reply.status, dict(reply.headers), reply.body) for call, reply in replies.items()
        }
    return expected


def keep_asking(url: str, caller: str, expected: Expected, enough: Event) -> set[str]:
    """Ask until it is enough, check that each answer is what the build that it names answers, and give their names."""
    versions: set[str] = set()
    calls = list(next(iter(expected.values())))
    headers = {"Authorization": f"Bearer {token_of(caller)}"}
    with httpx.Client(base_url=url, timeout=30, headers=headers) as client:
        while not enough.is_set():
            for call in calls:
                response = client.request(
                    call.method, call.path, content=call.content, headers={"Content-Type": call.kind}
                )
                told = less_varying(response.status_code, response.headers, response.content)
                if response.status_code == 200 and response.headers["content-type"] == "application/json":
                    version = response.json()["index_version"]
                    assert told == expected[version][call]
                    versions.add(version)
                else:
                    assert told in [replies[call] for replies in expected.values()]
                if call.path in ("/ask", "/search"):
                    # a short breath, as a build that is being loaded needs some of the machine too
                    enough.wait(PAUSE_SECONDS)
    return versions


def test_every_answer_is_of_one_build_while_builds_change(
    box: Box, service: Service, opened: Mapping[str, Loaded], embedder: Embedder
) -> None:
    """While ten builds follow each other under load no request fails, and each answer is all of the build it names."""
    server, enough = service.server, Event()
    only_in_one = next(
        secret.card_id for secret in box.secrets if secret.seen_by("staff") and not secret.seen_by(NO_TOKEN)
    )
    calls = [
        Call("GET", path) for path in ("/cards", "/suggestions", f"/cards/{only_in_one}", f"/cards/{only_in_one}.md")
    ]
    for text in questions(box.secrets)[:6]:
        content = json.dumps({"question": text}).encode()
        calls += [Call("POST", "/ask", content), Call("POST", "/search", content)]
    remembering = cast(Embedder, RememberingEmbedder(embedder))
    expected = {caller: expect(opened, remembering, caller, calls) for caller in ASKING}
    with ThreadPoolExecutor(len(ASKING)) as pool:
        asking = [pool.submit(keep_asking, server.url, caller, expected[caller], enough) for caller in ASKING]
        try:
            for number in range(RELOADS):
                version = (box.whole, box.reduced)[number % 2]
                use(service.index_dir, version)
                ask_to_reload(server)
                until_state(server, version)
        finally:
            enough.set()
        assert [done.result() for done in asking] == [{box.whole, box.reduced}] * len(ASKING)
    # nobody asks any more, so no file of the other build is held
    assert str(service.index_dir / box.whole) not in maps_of(server.process.pid)


def maps_of(pid: int) -> str:
    """The files that a process has mapped; empty where the system does not tell."""
    path = Path(f"/proc/{pid}/maps")
    return path.read_text("utf-8") if path.exists() else ""


def test_the_last_signal_is_never_lost(box: Box, service: Service) -> None:
    """SIGHUPs that come while one reload runs lead to another one after it, which takes the build in use by then."""
    gate = gated(service.index_dir / box.whole)
    use(service.index_dir, box.whole)
    ask_to_reload(service.server)
    descriptor = gate.wait()
    use(service.index_dir, box.reduced)
    for _ in range(3):
        ask_to_reload(service.server)
    assert ready(service.server) == state_of(box.reduced)
    gate.hand_over(descriptor)
    until_state(service.server, box.whole)
    until_state(service.server, box.reduced)


def test_a_broken_build_is_not_taken(box: Box, service: Service) -> None:
    """A build that cannot be used is named in the log and in /readyz, and the old one goes on until another comes."""
    server, damaged = service.server, service.index_dir / box.whole / "reference.npz"
    damaged.write_bytes(b"x")
    use(service.index_dir, box.whole)
    ask_to_reload(server)
    until_state(server, box.reduced, "index-unusable")
    assert httpx.get(f"{server.url}/cards", timeout=30).json()["index_version"] == box.reduced
    assert server.process.stderr
    line = server.process.stderr.readline()
    for part in (box.reduced, str(damaged.parent), damaged.name, "make ingest-clean"):
        assert part in line
    use(service.index_dir, box.reduced)
    ask_to_reload(server)
    until_state(server, box.reduced)


IN_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "app.py"])
"""


@pytest.fixture
def in_a_terminal(index_dir: Path) -> Iterator[tuple[Server, int]]:
    """A service that was started in a terminal, and our end of that."""
    ours, its = os.openpty()
    port = free_port()
    settings = {"FICHERO_INDEX_DIR": str(index_dir), "FICHERO_MODEL_DIR": str(MODEL_DIR), "PORT": str(port)}
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL],
        cwd=ROOT,
        env=clean_environment({**settings, "FICHERO_HOST": "127.0.0.1", "FICHERO_LOG_LEVEL": "error"}),
        stdin=its,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.close(its)
    try:
        yield Server(f"http://127.0.0.1:{port}", process), ours
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


def test_closing_the_terminal_ends_the_service(box: Box, index_dir: Path, in_a_terminal: tuple[Server, int]) -> None:
    """In a terminal SIGHUP reloads as well, but the one that the closing terminal sends ends the service."""
    server, terminal = in_a_terminal
    wait_until_ready(server)
    use(index_dir, "0000")
    ask_to_reload(server)
    until_state(server, box.whole, "index-unusable")
    os.close(terminal)
    assert server.process.wait(timeout=30) == 0


# the engine


def test_with_the_same_build_nothing_is_loaded(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """A reload with the same build in use keeps model and index as they are, and the log says so."""
    before = engine.loaded
    with caplog.at_level(logging.INFO):
        engine.reload()
    assert engine.loaded is before
    assert engine.reload_failed is None
    [record] = caplog.records
    assert "nothing was loaded" in record.getMessage()


def test_only_the_index_is_loaded_and_the_old_one_goes(box: Box, engine: Engine, index_dir: Path) -> None:
    """A new build keeps the model; an index lives as long as an answer that began with it, and no longer."""
    first = engine.loaded
    use(index_dir, box.reduced)
    engine.reload()
    in_progress = engine.loaded
    assert in_progress.index.build_id == box.reduced
    assert in_progress.embedder is first.embedder
    old = weakref.ref(in_progress.index.rows)
    use(index_dir, box.whole)
    engine.reload()
    assert engine.loaded.index.build_id == box.whole
    gc.collect()
    assert old() is not None
    assert len(in_progress.index.rows.cards({"public"})) == len(first.index.rows.cards({"public"}))
    del in_progress
    gc.collect()
    assert old() is None


class Holding:
    """The real model, which keeps one question waiting until it is let go."""

    def __init__(self, embedder: Embedder, question: str) -> None:
        self.description = embedder.description
        self.arrived, self.let_go = Semaphore(0), Event()
        self._embedder = embedder
        self._question = question

    def embed_query(self, question: str) -> NDArray[np.float32]:
        """As the model's."""
        if question == self._question:
            self.arrived.release()
            assert self.let_go.wait(60)
        return self._embedder.embed_query(question)

    def truncates(self, question: str) -> bool:
        """As the model says."""
        return self._embedder.truncates(question)


def test_what_was_asked_before_is_answered_from_before(
    box: Box, opened: Mapping[str, Loaded], embedder: Embedder, index_dir: Path
) -> None:
    """Questions in progress and questions that wait for their turn are answered from the build they were asked of."""
    secret = next(secret for secret in box.secrets if secret.groups == {"staff"})
    held, groups = Holding(embedder, secret.question), {"public", "staff"}
    began = Loaded(cast(Embedder, held), opened[box.whole].index)
    engine = Engine(Settings(index_dir=index_dir, model_dir=MODEL_DIR), began)
    engine.line = Line(patience_seconds=60)

    async def ask_across_a_reload() -> tuple[list[Answer], tuple[Retrieval, str], Answer]:
        def answer() -> Coroutine[Any, Any, Answer]:
            return last_answer(engine.answer(secret.question, groups, top_k=1, request_id=""))

        waiting = [asyncio.create_task(answer()) for _ in range(AT_WORK + 1)]
        searching = asyncio.create_task(engine.search(secret.question, groups, top_k=1))
        for _ in range(AT_WORK):
            await asyncio.to_thread(held.arrived.acquire, timeout=60)
        use(index_dir, box.reduced)
        await asyncio.to_thread(engine.reload)
        held.let_go.set()
        return [await task for task in waiting], await searching, await answer()

    before, (found, version), after = asyncio.run(ask_across_a_reload())
    for answer in before:
        assert answer.index_version == box.whole
        assert {citation.card_id for citation in answer.citations} == {secret.card_id}
    assert version == box.whole
    assert [passage.card.card_id for passage in found.passages] == [secret.card_id]
    assert after.index_version == box.reduced
    assert secret.card_id not in {citation.card_id for citation in after.citations}


def test_model_and_index_change_together(box: Box, engine: Engine, index_dir: Path, model_dir: Path) -> None:
    """A model with another fingerprint is taken only with an index that was made with it, both at once."""
    before = engine.loaded
    path = model_dir / DESCRIPTION_FILE
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "query_prefix": "query:  "}), "utf-8")
    engine.reload()
    assert engine.loaded is before
    assert engine.reload_failed == "index-unusable"
    made_with = read_description(model_dir).fingerprint
    rewrite_manifest(index_dir / box.reduced, model_fingerprint=made_with)
    use(index_dir, box.reduced)
    engine.reload()
    assert engine.reload_failed is None
    assert engine.loaded.embedder.description.fingerprint == made_with != before.embedder.description.fingerprint
    assert engine.loaded.index.build_id == box.reduced


def rewrite_manifest(build_dir: Path, **changes: object) -> None:
    path = build_dir / MANIFEST
    before = json.loads(path.read_text("utf-8"))
    del before["seal"]
    path.write_bytes(sealed({**before, **changes}))


def remove_model(index_dir: Path, model_dir: Path) -> None:
    (model_dir / DESCRIPTION_FILE).unlink()


def damage_model(index_dir: Path, model_dir: Path) -> None:
    (model_dir / DESCRIPTION_FILE).write_text("{}", "utf-8")


def remove_current(index_dir: Path, model_dir: Path) -> None:
    (index_dir / "CURRENT").unlink()


def name_nothing(index_dir: Path, model_dir: Path) -> None:
    use(index_dir, "0000")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (remove_model, ("model-missing", "make model")),
        (damage_model, ("model-unusable", "make model")),
        (remove_current, ("index-missing", "make ingest")),
        (name_nothing, ("index-unusable", "make ingest-clean")),
    ],
    ids=["no model", "damaged model", "no CURRENT", "CURRENT names nothing"],
)
def test_what_cannot_be_used_has_a_reason(
    damage: Callable[[Path, Path], None],
    told: tuple[str, str],
    engine: Engine,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    """Each kind of failure keeps what was loaded, has a short name for all, and one error with a remedy in the log."""
    reason, remedy = told
    before = engine.loaded
    damage(request.getfixturevalue("index_dir"), request.getfixturevalue("model_dir"))
    engine.reload()
    assert engine.loaded is before
    assert engine.reload_failed == reason
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert remedy in record.getMessage()


@pytest.fixture
def reranked(engine: Engine, index_dir: Path, model_dir: Path, tmp_path: Path) -> Engine:
    """An engine with a cross-encoder in the folder ``cruzado``."""
    folder = write_cross_encoder(tmp_path / "cruzado")
    settings = Settings(index_dir=index_dir, model_dir=model_dir, reranker_dir=folder)
    return Engine(settings, replace(engine.loaded, reranker=load_reranker(folder)))


def test_a_cross_encoder_is_loaded_again_when_it_changed(
    box: Box, reranked: Engine, index_dir: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It stays as it is while its files do, also beside a new build; another one comes to the index that is there."""
    first = reranked.loaded
    reranked.reload()
    assert reranked.loaded is first
    use(index_dir, box.reduced)
    reranked.reload()
    second = reranked.loaded
    assert second.index.build_id == box.reduced
    assert second.reranker is first.reranker is not None
    write_cross_encoder(tmp_path / "cruzado", logits=2)
    with caplog.at_level(logging.INFO):
        reranked.reload()
    third = reranked.loaded
    assert third.reranker not in (None, second.reranker)
    assert (third.embedder, third.index) == (second.embedder, second.index)
    [record] = caplog.records
    assert "another cross-encoder" in record.getMessage()


@pytest.mark.parametrize("reason", ["reranker-missing", "reranker-unusable"])
def test_a_broken_cross_encoder_is_not_taken(
    reason: str, box: Box, reranked: Engine, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    """One that is gone or broken changes nothing, not even beside a good build, and the next good one is taken."""
    before, graph = reranked.loaded, request.getfixturevalue("tmp_path") / "cruzado" / "model.onnx"
    whole = graph.read_bytes()
    use(request.getfixturevalue("index_dir"), box.reduced)
    graph.unlink()
    if reason == "reranker-unusable":
        graph.write_bytes(whole[:100])
    reranked.reload()
    assert reranked.loaded is before
    assert reranked.reload_failed == reason
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "FICHERO_RERANKER_DIR" in record.getMessage()
    graph.write_bytes(whole)
    reranked.reload()
    assert reranked.reload_failed is None
    assert reranked.loaded.index.build_id == box.reduced


def test_an_unforeseen_fault_keeps_the_old_index(
    box: Box, engine: Engine, index_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without room for temporary files the old index goes on, the caller learns no path, and the log has it all."""
    before = engine.loaded
    use(index_dir, box.reduced)
    monkeypatch.setattr(tempfile, "tempdir", str(index_dir / "none"))
    engine.reload()
    assert engine.loaded is before
    assert engine.reload_failed == "internal"
    [record] = caplog.records
    assert record.exc_info


# opening


def test_a_build_removed_while_it_is_opened_gives_way_to_the_next(
    box: Box, index_dir: Path, embedder: Embedder
) -> None:
    """When a builder moves on and removes the build that is being opened, the build now in use is opened instead."""
    gate = gated(index_dir / box.whole)
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(open_index, index_dir, embedder.description)
        descriptor = gate.wait()
        use(index_dir, box.reduced)
        shutil.rmtree(index_dir / box.whole)
        gate.hand_over(descriptor)
        assert opening.result().build_id == box.reduced


def test_opening_gives_up_when_builds_keep_going(box: Box, index_dir: Path, embedder: Embedder) -> None:
    """If each build that is opened goes meanwhile, opening ends with an error after a few."""
    gates = [gate_of_nothing(index_dir, f"b{number}") for number in range(OPEN_ATTEMPTS)]
    use(index_dir, "b0")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(open_index, index_dir, embedder.description)
        following = [*(gate.path.parent.name for gate in gates[1:]), box.reduced]
        for gate, name in zip(gates, following, strict=True):
            descriptor = gate.wait()
            use(index_dir, name)
            gate.hand_over(descriptor)
        with pytest.raises((IndexMissing, IndexUnusable), match=f"b{OPEN_ATTEMPTS - 1}"):
            opening.result()


def gate_of_nothing(index_dir: Path, name: str) -> Gate:
    folder = index_dir / name
    folder.mkdir()
    os.mkfifo(folder / MANIFEST)
    return Gate(folder / MANIFEST, b"{")
