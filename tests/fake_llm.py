"""
A small OpenAI-compatible server on loopback that says what a test tells it to, and remembers what it was asked.
A request that wants a stream gets the same words piece by piece.

``python -m tests.fake_llm PORT`` runs one of its own, which answers every chunk with an acceptable context; ``GET
/calls`` there tells how many calls came, and how many of them had been made before.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    """Names in small letters."""
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def prompt(self) -> str:
        """The words of the last message."""
        return str(self.body["messages"][-1]["content"])

    @property
    def wants_stream(self) -> bool:
        """Whether the answer should come piece by piece."""
        try:
            return self.body.get("stream") is True
        except (ValueError, AttributeError):
            return False


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, sent after ``wait_seconds``; ``drip_seconds`` goes by after each of its bytes, or events."""

    raw: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_seconds: float = 0.0
    drip_seconds: float = 0.0
    events: tuple[bytes, ...] = ()
    """Sent one after another, of no length known before, in place of ``raw``."""


Behaviour = Callable[[Asked], Reply]


def says(text: object, *, finish_reason: str = "stop", tokens: tuple[int, int] | None = (100, 20)) -> Reply:
    """An answer with this text."""
    found: dict[str, Any] = {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}]
    }
    if tokens:
        found["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return Reply(json.dumps(found).encode())


def streamed(reply: Reply, *, piece_chars: int = 3, usage: bool = False) -> Reply:
    """An answer as a stream of pieces, with what it took if ``usage``; what is no answer with a text stays as it is."""
    try:
        found = json.loads(reply.raw)
        choice = found["choices"][0]
        text, finish_reason = choice["message"]["content"], choice["finish_reason"]
    except (ValueError, LookupError, TypeError):
        return reply
    if reply.status != 200 or not isinstance(text, str) or reply.events:
        return reply
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": text[at : at + piece_chars]}, None) for at in range(0, len(text), piece_chars)]
    deltas.append(({}, finish_reason))
    bodies: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} for delta, reason in deltas
    ]
    if usage and "usage" in found:
        bodies.append({"choices": [], "usage": found["usage"]})
    told = [json.dumps({"object": "chat.completion.chunk", **body}, ensure_ascii=False) for body in bodies]
    events = tuple(f"data: {data}\n\n".encode() for data in [*told, "[DONE]"])
    return replace(reply, raw=b"", events=events, headers={**reply.headers, "Content-Type": "text/event-stream"})


def fails(status: int, message: str = "no", **headers: str) -> Reply:
    """An error; ``retry_after="2"`` becomes a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps({"error": {"message": message}}).encode(), status, named)


def acceptable(asked: Asked) -> Reply:
    """A context of the card's own words, which any card with a plain title accepts."""
    title = asked.prompt.split("\n")[1].partition(": ")[2].lower()
    spanish = asked.prompt.startswith("<documento>")
    chunk = {word for word in asked.prompt.rsplit("<", 2)[1].split() if word.isalpha() and word.islower()}
    words = sorted(chunk, key=lambda word: (-len(word), word))
    lead = "Esto es lo que se dice sobre" if spanish else "This is what is said about the"
    return says(f"{lead} {title}: {' '.join(words[:6])}.")


class FakeLlm:
    """The server, in threads of this process; a context manager."""

    def __init__(self, behaviour: Behaviour = acceptable, *, port: int = 0) -> None:
        self.behaviour = behaviour
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _handler_for(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> FakeLlm:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, asked: Asked) -> Reply:
        """What the behaviour makes of a request, counted and kept."""
        with self._lock:
            self.asked.append(asked)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self.behaviour(asked)
            if asked.wants_stream:
                options = asked.body.get("stream_options") or {}
                reply = streamed(reply, usage=options.get("include_usage") is True)
            time.sleep(reply.wait_seconds)
            return reply
        finally:
            with self._lock:
                self._at_once -= 1

    def calls(self) -> dict[str, int]:
        """How many calls came, and how many of them had been made before."""
        with self._lock:
            bodies = Counter(asked.raw for asked in self.asked)
        return {"calls": bodies.total(), "repeated": bodies.total() - len(bodies)}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # a thread that waits for a client that left is not waited for
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """A client may leave at any time."""


def _handler_for(fake: FakeLlm) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(fake.answer(Asked(self.path, headers, raw)))

        def do_GET(self) -> None:
            self._send(Reply(json.dumps(fake.calls()).encode()))

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.events:
                self._send_events(reply)
                return
            self.send_header("Content-Length", str(len(reply.raw)))
            self.end_headers()
            if not reply.drip_seconds:
                self.wfile.write(reply.raw)
                return
            for byte in reply.raw:
                self.wfile.write(bytes([byte]))
                time.sleep(reply.drip_seconds)

        def _send_events(self, reply: Reply) -> None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in (*reply.events, b""):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
                time.sleep(reply.drip_seconds if event else 0.0)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler


if __name__ == "__main__":
    with FakeLlm(port=int(sys.argv[1])) as running:
        print(running.url, flush=True)
        threading.Event().wait()
