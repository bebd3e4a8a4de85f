"""
A chat endpoint on loopback that goes wrong in every way that has a name here, byte for byte as it is told.

It knows nothing of any client. ``FAULTS`` says of each kind what whoever asks has to make of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from types import TracebackType
from typing import Any

TEXT = "Tómelo con agua, sin leche. Una cápsula: 2 µg, ¡no más! 💊"

_REASONS = {200: "OK", 307: "Temporary Redirect", 400: "Bad Request", 429: "Too Many Requests"}
_EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}
_JSON = {"Content-Type": "application/json"}


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


class Turn:
    """One request that is being answered."""

    def __init__(self, asked: Asked, text: str, writer: asyncio.StreamWriter) -> None:
        self.asked = asked
        self.text = text
        self._writer = writer

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    async def head(self, status: int = 200, headers: Mapping[str, str] = _EVENTS) -> None:
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in {**headers, "Connection": "close"}.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))

    async def whole(self, status: int, body: bytes, headers: Mapping[str, str] = _JSON) -> None:
        await self.head(status, {**headers, "Content-Length": str(len(body))})
        await self.send(body)

    async def halves(self, *, first: bool = True, second: bool = True) -> None:
        """The text, a word to an event, or the words of one half of it."""
        words = words_of(self.text)
        middle = max(1, len(words) // 2)
        for word in (words[:middle] if first else []) + (words[middle:] if second else []):
            await self.send(event(word))

    async def silence(self) -> None:
        """Nothing, until the other side leaves."""
        await asyncio.Event().wait()

    def reset(self) -> None:
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


def words_of(text: str) -> list[str]:
    """A text in pieces, as models write it: each word with the blank before it."""
    first, *others = text.split(" ")
    return [first, *(" " + word for word in others)]


def event(content: object = None, *, finish_reason: str | None = None) -> bytes:
    """A piece of an answer as endpoints stream it."""
    delta = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice]}, ensure_ascii=False).encode() + b"\n\n"


ROLE = b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]}\n\n'
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}\n\n'
DONE = b"data: [DONE]\n\n"
END = event(finish_reason="stop")


def whole_answer(text: object) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice]}).encode()


def error_body(message: str = "no") -> bytes:
    return json.dumps({"error": {"message": message, "code": 500}}).encode()


Play = Callable[[Turn], Awaitable[None]]
"""Answers one request; the connection is closed when it is done."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A way to answer, and what is right to make of it."""

    play: Play
    reasons: frozenset[str] = frozenset()
    """Any of these is the right thing to say of it; none where the text gets through."""
    begins: bool = False
    """A part of the text arrives before it goes wrong."""

    @property
    def gets_through(self) -> bool:
        return not self.reasons


def _status(status: int, headers: Mapping[str, str] | None = None, body: bytes = error_body()) -> Play:
    async def play(turn: Turn) -> None:
        await turn.whole(status, body, {**_JSON, **(headers or {})})

    return play


def _body(body: bytes, kind: str = "application/json", **headers: str) -> Play:
    return _status(
        200, {"Content-Type": kind, **{name.replace("_", "-"): said for name, said in headers.items()}}, body
    )


def _stream(*before: bytes, half: bool = False, full: bool = False, then: bytes = b"") -> Play:
    """A stream that ends with its connection."""

    async def play(turn: Turn) -> None:
        await turn.head()
        for raw in before:
            await turn.send(raw)
        await turn.halves(first=half or full, second=full)
        await turn.send(then)

    return play


def _then_silence(play: Play) -> Play:
    async def silent(turn: Turn) -> None:
        await play(turn)
        await turn.silence()

    return silent


async def _close_at_once(turn: Turn) -> None:
    """No byte."""


async def _well(turn: Turn) -> None:
    """As it should be, in chunks, with all that good endpoints add."""
    await turn.head(headers={**_EVENTS, "Transfer-Encoding": "chunked"})
    for raw in [b": hello\n\n", ROLE, *map(event, words_of(turn.text)), END, USAGE, DONE]:
        await turn.send(chunked(raw))
    await turn.send(b"0\r\n\r\n")


def chunked(raw: bytes) -> bytes:
    return f"{len(raw):x}\r\n".encode() + raw + b"\r\n"


async def _retry_soon(turn: Turn) -> None:
    await _status(429, {"Retry-After": formatdate(time.time() + 2, usegmt=True)})(turn)


async def _headers_slowly(turn: Turn) -> None:
    await turn.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await turn.send(b"X-Wait: 1\r\n")
        await asyncio.sleep(0.02)


async def _reset(turn: Turn) -> None:
    await _stream(half=True)(turn)
    # what was sent may be thrown away with the connection, if nobody has read it yet
    await asyncio.sleep(0.05)
    turn.reset()


async def _broken_chunks(turn: Turn) -> None:
    await turn.head(headers={**_EVENTS, "Transfer-Encoding": "chunked"})
    await turn.send(chunked(event(words_of(turn.text)[0])))


async def _comments(turn: Turn) -> None:
    await turn.head()
    while True:
        await turn.send(b": still here\n\n")
        await asyncio.sleep(0.02)


async def _flood(turn: Turn) -> None:
    await turn.head()
    await turn.halves(second=False)
    await asyncio.sleep(0.05)
    while True:
        await turn.send(event("y más ") * 100)


async def _endless_line(turn: Turn) -> None:
    await turn.head()
    await turn.send(b"data: ")
    while True:
        await turn.send(b"x" * 10_000)


async def _byte_by_byte(turn: Turn) -> None:
    await turn.head(headers={**_EVENTS, "Transfer-Encoding": "chunked"})
    for raw in [ROLE, *map(event, words_of(turn.text)), END, DONE]:
        for byte in raw:
            await turn.send(chunked(bytes([byte])))
            await asyncio.sleep(0)
    await turn.send(b"0\r\n\r\n")


async def _whole(turn: Turn) -> None:
    await turn.whole(200, whole_answer(turn.text))


async def _half_of_whole(turn: Turn) -> None:
    body = whole_answer(turn.text)
    await turn.head(headers={**_JSON, "Content-Length": str(len(body))})
    await turn.send(body[: len(body) // 2])


async def _bomb(turn: Turn) -> None:
    await _body(gzip.compress(b" " * 10_000_000), "text/event-stream", Content_Encoding="gzip")(turn)


async def _other_line_ends(turn: Turn) -> None:
    await turn.head()
    for number, raw in enumerate([b"\xef\xbb\xbf: hello\n\n", ROLE, *map(event, words_of(turn.text)), END, DONE]):
        await turn.send(raw.replace(b"\n", [b"\r\n", b"\r", b"\n"][number % 3]))


def _takes_no_format(status: int, *refused: str) -> Play:
    async def play(turn: Turn) -> None:
        wished = (turn.asked.body.get("response_format") or {}).get("type")
        if wished not in refused:
            await _well(turn)
            return
        # some servers check a request late, and call what they find a fault of theirs
        await turn.send(f"HTTP/1.1 {status} No\r\nContent-Type: application/json\r\n\r\n".encode())
        await turn.send(error_body("1 validation error: ('body', 'response_format', 'type'): input should be 'text'"))

    return play


async def _echo(turn: Turn) -> None:
    """Repeats what it was sent wherever it can: reason, headers and body."""
    key = turn.asked.headers.get("authorization", "")
    said = turn.asked.body["messages"][-1]["content"]
    await turn.send(f"HTTP/1.1 400 {key}\r\nX-Key: {key}\r\nX-Said: {said}\r\n".encode("latin-1", "replace"))
    await turn.send(b"Content-Type: application/json\r\n\r\n" + error_body(f"{key} {said}"))


async def _echo_event(turn: Turn) -> None:
    key = turn.asked.headers.get("authorization", "")
    said = turn.asked.body["messages"][-1]["content"]
    await _stream(b"data: " + error_body(f"{key} {said}") + b"\n\n")(turn)


async def _echo_garbage(turn: Turn) -> None:
    """Repeats the key where a status line belongs."""
    await turn.send(turn.asked.headers.get("authorization", "").encode() + b"\r\n\r\n")


def _fails(play: Play, *reasons: str, begins: bool = False) -> Fault:
    return Fault(play, frozenset(reasons), begins)


FAULTS: Mapping[str, Fault] = {
    # the text gets through
    "well": Fault(_well),
    "byte-by-byte": Fault(_byte_by_byte),
    "other-line-ends": Fault(_other_line_ends),
    "no-done": Fault(_stream(full=True, then=END)),
    "done-without-finish": Fault(_stream(full=True, then=DONE)),
    "null-content": Fault(
        _stream(event(None), b'data: {"choices": [{"delta": {"content": null}}]}\n\n', full=True, then=END)
    ),
    "finish-twice": Fault(_stream(full=True, then=END + END + DONE)),
    "open-after-done": Fault(_then_silence(_stream(full=True, then=DONE))),
    "open-after-finish": Fault(_then_silence(_stream(full=True, then=END))),
    "whole-json": Fault(_whole),
    "no-json-schema": Fault(_takes_no_format(400, "json_schema")),
    "breaks-at-json-schema": Fault(_takes_no_format(500, "json_schema")),
    "no-format": Fault(_takes_no_format(422, "json_schema", "json_object")),
    # no connection, or no response
    "refused": _fails(_close_at_once, "unreachable"),
    "not-taken": _fails(_close_at_once, "timeout"),
    "closes-at-once": _fails(_close_at_once, "unreachable"),
    "silent": _fails(Turn.silence, "timeout"),
    "headers-slowly": _fails(_headers_slowly, "timeout", "unreachable"),
    "no-http": _fails(_echo_garbage, "unreachable"),
    # statuses
    "status-400": _fails(_status(400), "status"),
    "status-401": _fails(_status(401), "denied"),
    "status-403": _fails(_status(403), "denied"),
    "status-404": _fails(_status(404), "status"),
    "status-408": _fails(_status(408), "status"),
    "status-413": _fails(_status(413), "status"),
    "status-429": _fails(_status(429), "rate_limited"),
    "status-429-seconds": _fails(_status(429, {"Retry-After": "1"}), "rate_limited"),
    "status-429-date": _fails(_retry_soon, "rate_limited"),
    "status-429-hour": _fails(_status(429, {"Retry-After": "3600"}), "rate_limited"),
    "status-500": _fails(_status(500), "status"),
    "status-502": _fails(_status(502, {"Content-Type": "text/html"}, b"<html>502</html>"), "status"),
    "status-503": _fails(_status(503, {"Retry-After": "1"}), "status"),
    "status-500-silent": _fails(_then_silence(lambda turn: turn.head(500, _JSON)), "status"),
    "redirect": _fails(_status(307, {"Location": "http://169.254.169.254/latest/meta-data/"}, b""), "redirect"),
    "echo": _fails(_echo, "status"),
    # status 200 and no text
    "headers-then-silent": _fails(_then_silence(Turn.head), "timeout"),
    "role-then-silent": _fails(_then_silence(_stream(ROLE)), "timeout"),
    "comments-only": _fails(_comments, "timeout"),
    "html": _fails(_body(b"<html>Hola</html>", "text/html"), "bad_response"),
    "error-body": _fails(_body(error_body()), "error_body"),
    "half-of-json": _fails(_half_of_whole, "cut_off"),
    "bomb": _fails(_bomb, "bad_response"),
    "error-event": _fails(_stream(ROLE, b"data: " + error_body() + b"\n\n"), "error_body"),
    "echo-event": _fails(_echo_event, "error_body"),
    "empty": _fails(_stream(ROLE, then=END + DONE), "empty"),
    "empty-choices": _fails(_stream(USAGE, USAGE, then=DONE), "empty"),
    "whole-empty": _fails(_body(whole_answer("")), "empty"),
    "no-event": _fails(_stream(), "cut_off"),
    "bad-utf-8": _fails(_stream(b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'), "bad_response"),
    "endless-line": _fails(_endless_line, "too_large"),
    # amid the text
    "neither-finish-nor-done": _fails(_stream(full=True), "cut_off", begins=True),
    "closes-amid": _fails(_stream(half=True), "cut_off", begins=True),
    "broken-chunks": _fails(_broken_chunks, "cut_off", begins=True),
    "reset-amid": _fails(_reset, "cut_off", begins=True),
    "stalls-amid": _fails(_then_silence(_stream(half=True)), "timeout", begins=True),
    "error-amid": _fails(_stream(half=True, then=b"data: " + error_body() + b"\n\n"), "error_body", begins=True),
    "half-an-event": _fails(
        _stream(half=True, then=b'data: {"choices": [{"delta": {\n\n'), "bad_response", begins=True
    ),
    "flood": _fails(_flood, "too_large", begins=True),
}


class FaultyLlm:
    """
    The server, in a thread of this process; a context manager.

    It answers with one kind after the other, and with the last again and again; ``play`` changes that, but for
    ``refused`` and ``not-taken``, which stand alone and stay. Requests are kept in ``asked``; ``accepted`` counts
    connections, and ``connections`` are those that are open now.
    """

    def __init__(self, *kinds: str, text: str = TEXT) -> None:
        self.text = text
        self.asked: list[Asked] = []
        self.connections = 0
        self.accepted = 0
        self._kinds = list(kinds or ("well",))
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> FaultyLlm:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._socket.close()

    def play(self, *kinds: str) -> None:
        """Answer with these from now on."""
        self._kinds[:] = kinds

    def wait_until_left(self, seconds: float = 1.0) -> bool:
        """Whether no connection is open any more within so many seconds."""
        end = time.monotonic() + seconds
        while self.connections and time.monotonic() < end:
            time.sleep(0.005)
        return not self.connections

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        # a port that is taken: nobody listens at it, or nobody takes a connection out of a queue that is full
        if self._kinds in (["refused"], ["not-taken"]):
            with contextlib.ExitStack() as queue:
                if self._kinds == ["not-taken"]:
                    self._socket.listen(0)
                    for _ in range(4):
                        waiting = queue.enter_context(socket.socket())
                        waiting.setblocking(False)
                        waiting.connect_ex(self._socket.getsockname())
                self._ready.set()
                await self._stop.wait()
            return
        server = await asyncio.start_server(self._answer, sock=self._socket)
        self._ready.set()
        await self._stop.wait()
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.accepted += 1
        try:
            kind = self._kinds.pop(0) if len(self._kinds) > 1 else self._kinds[0]
            if kind != "closes-at-once":
                asked = await _read(reader)
                self.asked.append(asked)
                await _unless_left(FAULTS[kind].play(Turn(asked, self.text, writer)), reader)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other side may leave at any time
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()
            try:
                await asyncio.wait_for(writer.wait_closed(), 0.5)
            except (OSError, TimeoutError):
                writer.transport.abort()
            self.connections -= 1


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    named = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in named}
    return Asked(head[0].split(" ")[1], headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _unless_left(playing: Awaitable[None], reader: asyncio.StreamReader) -> None:
    """Play until it is done or the other side leaves."""
    play = asyncio.ensure_future(playing)
    leaving = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({play, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if play.done():
            play.result()
    finally:
        for task in (play, leaving):
            task.cancel()
        await asyncio.gather(play, leaving, return_exceptions=True)
