"""What becomes of callers when the service has too much to do, or ends."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import Server, running
from tests.fake_llm import Asked, FakeLlm, Reply

QUESTION = "¿Puedo tomar la pastilla con leche?"
MOST_SECONDS = 8.0
"""From the signal to the end of the process."""


@contextmanager
def with_slow_model(index_dir: Path) -> Iterator[Server]:
    """The service with a language model that says nothing for a minute."""
    gone = threading.Event()

    def silent(asked: Asked) -> Reply:
        gone.wait(60)
        return Reply(b"{}")

    with FakeLlm(silent) as model:
        settings = {
            "FICHERO_INDEX_DIR": str(index_dir),
            "FICHERO_LLM_BASE_URL": model.url,
            "FICHERO_LLM_MODEL": "x",
            "FICHERO_LLM_FIRST_BYTE_SECONDS": "60",
            "FICHERO_LLM_TOTAL_SECONDS": "60",
        }
        with running(settings) as server:
            try:
                yield server
            finally:
                gone.set()


def test_sigterm_ends_every_answer_with_a_word(sample_index_dir: Path) -> None:
    """Streams end with an error event, whole answers with 503, chat streams with their error; then the process ends."""
    with with_slow_model(sample_index_dir) as server:
        told: dict[str, str] = {}

        def read(name: str, path: str, body: dict[str, object]) -> None:
            reply = httpx.post(f"{server.url}{path}", json=body, timeout=30)
            told[name] = f"{reply.status_code}\n{reply.text}"

        messages = [{"role": "user", "content": QUESTION}]
        calls = {
            "stream": ("/ask", {"question": QUESTION, "stream": True}),
            "whole": ("/ask", {"question": QUESTION}),
            "chat stream": ("/v1/chat/completions", {"messages": messages, "stream": True}),
            "chat": ("/v1/chat/completions", {"messages": messages}),
        }
        threads = [threading.Thread(target=read, args=(name, *call)) for name, call in calls.items()]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        started = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(MOST_SECONDS)
        server.process.wait(MOST_SECONDS)
        assert time.monotonic() - started < MOST_SECONDS
    assert told["stream"].startswith("200\n")
    assert "event: error\ndata: " in told["stream"]
    assert told["stream"].rstrip().splitlines()[-1].startswith('data: {"type":"urn:fichero:problem:stopping"')
    assert told["whole"].startswith("503\n")
    assert "urn:fichero:problem:stopping" in told["whole"]
    assert '"code":"stopping"' in told["chat stream"].rstrip().splitlines()[-1]
    assert told["chat"].startswith("503\n")
    assert '"code":"stopping"' in told["chat"]


def test_answers_in_progress_end_before_the_process_does(sample_index_dir: Path) -> None:
    """With quotes, every question that was accepted before SIGTERM is answered, streams with all their events."""
    with running({"FICHERO_INDEX_DIR": str(sample_index_dir)}) as server:
        ends: list[str] = []

        def ask(stream: bool) -> None:
            try:
                reply = httpx.post(f"{server.url}/ask", json={"question": QUESTION, "stream": stream}, timeout=30)
            except (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError) as error:
                # refused, or waiting to be accepted when the door was closed
                ends.append(type(error).__name__)
            else:
                whole = "event: done" in reply.text if stream else '"citations"' in reply.text
                ends.append("answered" if whole else f"{reply.status_code}: {reply.text}")

        threads = [threading.Thread(target=ask, args=(bool(number % 2),)) for number in range(24)]
        for thread in threads:
            thread.start()
        time.sleep(0.15)
        server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(MOST_SECONDS)
        server.process.wait(MOST_SECONDS)
    counts = Counter(ends)
    # one that ends in the middle of a reply would be a RemoteProtocolError
    assert set(counts) <= {"answered", "ConnectError", "ReadError"}, counts
    assert counts["ReadError"] <= 2
    assert counts["answered"] > 0


@pytest.mark.parametrize("path", ["/ask", "/search", "/v1/chat/completions"])
def test_too_many_questions_from_one_address(hostile_index_dir: Path, path: str) -> None:
    """Past its burst an address gets 429 and when to come back; what costs nothing is still served."""
    settings = {"FICHERO_INDEX_DIR": str(hostile_index_dir), "FICHERO_RATE_PER_MINUTE": "10"}
    body = (
        {"question": "¿Qué?"} if path != "/v1/chat/completions" else {"messages": [{"role": "user", "content": "¿?a"}]}
    )
    with running(settings) as server, httpx.Client(base_url=server.url, timeout=30) as client:
        replies = [client.post(path, json=body) for _ in range(4)]
        assert [reply.status_code for reply in replies] == [200, 200, 429, 429]
        assert 1 <= int(replies[-1].headers["Retry-After"]) <= 6
        assert "too" in replies[-1].text
        forged = client.post(path, json=body, headers={"X-Forwarded-For": "198.51.100.7"})
        assert forged.status_code == 429
        assert client.get("/cards").status_code == client.get("/").status_code == 200
