"""A server on loopback that serves the real page and plays whatever a test has it say to the page's calls."""

from __future__ import annotations

import json
import mimetypes
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

from rag.serving.envelope import CONTENT_SECURITY_POLICY

STATIC_DIR = Path(__file__).resolve().parent.parent / "static"
HOLD_SECONDS = 20.0
"""No test waits longer."""
EVENTS = "text/event-stream; charset=utf-8"
NOTHING_HERE: dict[str, Any] = {
    "/cards": {"cards": []},
    "/suggestions": {"suggestions": []},
    "/whoami": {"groups": ["public"]},
}


@dataclass(frozen=True, slots=True)
class Scene:
    """What is said to one call."""

    body: Any = None
    """Sent as JSON, or as it is if it is bytes."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    events: Sequence[tuple[str, Any]] = ()
    """A stream in place of a body: names and data."""
    hold: threading.Event | None = None
    """What follows ``held_from`` waits for it."""
    held_from: int = 0
    cut: bool = False
    """The connection ends without a reply, or without the rest."""


def problem(slug: str, status: int, **headers: str) -> Scene:
    """A problem document; ``Retry_After`` stands for ``Retry-After``."""
    body = {"type": f"urn:fichero:problem:{slug}", "title": "x", "status": status, "detail": "x"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Scene(body, status, {"Content-Type": "application/problem+json", **named})


def answer_events(answer: Mapping[str, Any], retrieved: Sequence[Mapping[str, Any]] = ()) -> list[tuple[str, Any]]:
    """A whole answer as the service streams it."""
    events: list[tuple[str, Any]] = [("sources", {"retrieved": list(retrieved)})]
    for segment in answer["segments"]:
        if segment["type"] == "text":
            events.append(("delta", segment))
        else:
            citation = answer["citations"][segment["citation"]]
            events.append(("citation", {"segment": segment, "citation": citation}))
    return [*events, ("done", answer)]


class Playing:
    """The server, as a context manager; ``scenes`` may be changed while it runs."""

    def __init__(self, scenes: Mapping[str, Scene | list[Scene]] | None = None, *, policy: bool = True) -> None:
        """
        ``scenes`` are by path; of a list each is played once, and the last one again. ``policy`` tells whether the
        page is sent with its Content-Security-Policy.
        """
        self.scenes = dict(scenes or {})
        self.policy = policy
        self.calls: list[tuple[str, dict[str, str], bytes]] = []
        """Path with query, headers in small letters, body."""

    def __enter__(self) -> Playing:
        stage = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # a reply ends with its connection

            def do_GET(self) -> None:
                stage._serve(self)

            do_POST = do_GET  # noqa: N815 - as the base class names it

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(handler.path).path)
        try:
            if path == "/" or path.startswith("/static/"):
                self._send_file(handler, "index.html" if path == "/" else path.removeprefix("/static/"))
            else:
                length = int(handler.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in handler.headers.items()}
                self.calls.append((handler.path, headers, handler.rfile.read(length)))
                self._play(handler, self._next(path))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _next(self, path: str) -> Scene:
        scenes = self.scenes.get(path)
        if isinstance(scenes, list):
            return scenes.pop(0) if len(scenes) > 1 else scenes[0]
        if scenes is not None:
            return scenes
        return Scene(NOTHING_HERE[path]) if path in NOTHING_HERE else problem("not-found", 404)

    def _send_file(self, handler: BaseHTTPRequestHandler, name: str) -> None:
        file = STATIC_DIR / name
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY} if self.policy else {}
        self._send_head(handler, 200, {"Content-Type": f"{kind}; charset=utf-8", **headers})
        handler.wfile.write(file.read_bytes())

    def _play(self, handler: BaseHTTPRequestHandler, scene: Scene) -> None:
        if scene.hold and scene.held_from == 0:
            scene.hold.wait(HOLD_SECONDS)
        if scene.cut and not scene.events:
            handler.connection.close()
            return
        kind = EVENTS if scene.events else "application/json"
        self._send_head(handler, scene.status, {"Content-Type": kind, **scene.headers})
        if not scene.events:
            handler.wfile.write(scene.body if isinstance(scene.body, bytes) else json.dumps(scene.body).encode())
            return
        handler.wfile.write(b": playing\n\n")
        for number, (name, data) in enumerate(scene.events):
            if scene.hold and number == scene.held_from > 0:
                handler.wfile.flush()
                scene.hold.wait(HOLD_SECONDS)
            handler.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
            handler.wfile.flush()

    def _send_head(self, handler: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str]) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
