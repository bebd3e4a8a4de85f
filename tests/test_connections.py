"""Connections that say nothing, or say it too slowly, or are too many."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from rag.serving.admission import OVERLOADED
from rag.serving.connections import (
    MOST_CONNECTIONS,
    SPARE_FILES,
    BoundedConnection,
    is_whole_question,
    most_connections,
)
from rag.serving.envelope import raw_reply

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Quick(BoundedConnection):
    most = 6
    head_seconds = 0.4


async def hello(request: Request) -> Response:
    await request.body()
    return PlainTextResponse("hello")


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """uvicorn with quick deadlines, in a thread."""
    app = Starlette(routes=[Route("/", hello, methods=["GET", "POST"])])
    config = uvicorn.Config(app, port=0, host="127.0.0.1", http=Quick, ws="none", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with serving() as found:
        yield found


def connected(address: tuple[str, int]) -> socket.socket:
    made = socket.create_connection(address, timeout=10)
    made.settimeout(10)
    return made


def ends(connection: socket.socket) -> bool:
    """Whether the other side closes it, by an end or a reset, before the time is out."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_a_silent_connection_is_closed(address: tuple[str, int]) -> None:
    """A connection that brings no request in time is closed."""
    with connected(address) as silent:
        assert ends(silent)


def test_a_trickling_head_is_closed(address: tuple[str, int]) -> None:
    """Bytes that keep coming do not put the deadline of a head off, on a new connection or after a reply."""
    for before in (b"", GET):
        with connected(address) as slow:
            if before:
                slow.sendall(before)
                assert b"hello" in slow.recv(4096)
            started, closed = time.monotonic(), False
            while not closed and time.monotonic() < started + 10:
                try:
                    slow.sendall(b"GET / HTTP/1.1\r\nX: " if time.monotonic() - started < 0.05 else b"a")
                    time.sleep(0.02)
                except OSError:
                    closed = True
            assert closed


def test_a_request_in_time_is_answered_however_long_it_is_kept(address: tuple[str, int]) -> None:
    """The deadline is for heads alone: a body that takes longer, and a next request on the connection, are served."""
    with connected(address) as patient:
        patient.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n")
        for letter in (b"a", b"b", b"c", b"d"):
            time.sleep(0.15)
            patient.sendall(letter)
        assert b"hello" in patient.recv(4096)
        patient.sendall(GET)
        assert b"hello" in patient.recv(4096)


def test_connections_are_bounded(address: tuple[str, int]) -> None:
    """One more than there may be is closed at once, and those that are there are served."""
    with ExitStack() as stack:
        there = [stack.enter_context(connected(address)) for _ in range(Quick.most)]
        there[0].sendall(GET)
        assert b"hello" in there[0].recv(4096)
        assert ends(stack.enter_context(connected(address)))
        there[-1].sendall(GET)
        assert b"hello" in there[-1].recv(4096)
    time.sleep(0.1)
    with connected(address) as later:
        later.sendall(GET)
        assert b"hello" in later.recv(4096)


def whole(
    path: str = "/ask", body: bytes = b"{}", *more: str, method: str = "POST", length: int | None = None
) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: x",
        f"Content-Length: {len(body) if length is None else length}",
        *more,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    ("data", "is_whole"),
    [
        (whole(), True),
        (whole("/search", b'{"question": "a"}'), True),
        (whole("/ask", b"{}", "content-type: application/json"), True),
        (whole("/ask", b"{}", method="GET"), False),
        (whole("/cards"), False),
        (whole("/ask/"), False),
        (whole("/ask?a"), False),
        (whole("/ask", b"{}", length=3), False),
        (whole("/ask", b"{}", length=1), False),
        (whole() + whole(), False),
        (whole()[:-1], False),
        (whole()[:30], False),
        (whole("/ask", b"{}", "Transfer-Encoding: chunked"), False),
        (whole("/ask", b"{}", "expect: 100-continue"), False),
        (whole("/ask", b"{}").replace(b"Content-Length: 2\r\n", b""), False),
        (whole("/ask", b"{}").replace(b"1.1", b"1.0"), False),
        (b"", False),
    ],
)
def test_only_one_whole_question_is_refused_unparsed(data: bytes, is_whole: bool) -> None:
    """What is not plainly one question, all of it and nothing more, goes the long way."""
    assert is_whole_question(data) == is_whole


def test_an_overloaded_service_refuses_in_one_write(monkeypatch: pytest.MonkeyPatch, address: tuple[str, int]) -> None:
    """While there is no room a question gets the prepared reply and the connection stays; all else is served."""
    refusal = raw_reply(OVERLOADED)()
    with connected(address) as asking:
        monkeypatch.setattr(Quick, "overloaded", staticmethod(lambda: refusal))
        for _ in range(2):
            asking.sendall(whole())
            assert asking.recv(65_536) == refusal
        asking.sendall(GET)
        assert b"hello" in asking.recv(4096)
        part = whole()
        asking.sendall(part[:20])
        time.sleep(0.05)
        asking.sendall(part[20:])
        assert b"404" in asking.recv(4096)
        monkeypatch.undo()
        asking.sendall(whole())
        assert b"404" in asking.recv(4096)
    head, _, body = refusal.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert f"content-length: {len(body)}" in head.decode().lower()
    for name in ("retry-after: 1", "content-security-policy: ", "cache-control: no-store"):
        assert name in head.decode().lower()


def test_some_files_are_spared_for_others() -> None:
    """There are never more connections than files that may be open, less some."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limit[1]))
        assert most_connections() == 256 - SPARE_FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert most_connections() <= MOST_CONNECTIONS
