"""What becomes of callers when the service has too much to do, or ends."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    """With quotes, every question on an accepted connection gets its whole reply, streams with their last event."""
    with running({"FICHERO_INDEX_DIR": str(sample_index_dir)}) as server, ExitStack() as stack:
        host, port = server.url.removeprefix("http://").split(":")
        connections = [stack.enter_context(socket.create_connection((host, int(port)), 30)) for _ in range(24)]
        for connection in connections:
            # whoever has a reply has been accepted
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            said = b""
            while not said.endswith(b'{"status":"alive"}'):
                said += connection.recv(65_536)
        for number, connection in enumerate(connections):
            body = json.dumps({"question": QUESTION, "stream": bool(number % 2)}).encode()
            head = ["POST /ask HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
            connection.sendall("\r\n".join([*head, "\r\n"]).encode() + body)
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        replies = [read_all(connection) for connection in connections]
        server.process.wait(MOST_SECONDS)
    for number, reply in enumerate(replies):
        assert is_whole_reply(reply, stream=bool(number % 2)), reply


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def is_whole_reply(reply: bytes, *, stream: bool) -> bool:
    """Whether an answer, or a refusal because too many wait, has come to its end."""
    head, _, body = reply.partition(b"\r\n\r\n")
    if stream and head.startswith(b"HTTP/1.1 200 "):
        return body.endswith(b"0\r\n\r\n") and (b"event: done" in body or b"problem:overloaded" in body)
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or -1)
    told = b'"citations"' in body if head.startswith(b"HTTP/1.1 200 ") else b"problem:overloaded" in body
    return len(body) == length and told


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
