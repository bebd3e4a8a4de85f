"""Bytes that are no proper request get a 4xx, or an answer, or an end of the connection, and the service goes on."""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import Server, running

QUESTION = b'{"question": "agua"}'
LEAST = 100
"""Requests in all."""
ANSWER_SECONDS = 0.2
"""An answer begins within it; what is no whole request has none to wait for."""
PATIENCE_SECONDS = 13.0
"""Beyond the time that a head or a body has, nobody is waited for."""


def get(target: bytes = b"/healthz", *lines: bytes, method: bytes = b"GET", version: bytes = b"HTTP/1.1") -> bytes:
    """A request without a body, whatever stands in it."""
    return b"\r\n".join([method + b" " + target + b" " + version, b"Host: x", *lines, b"", b""])


def post(*lines: bytes, body: bytes = QUESTION, target: bytes = b"/ask") -> bytes:
    """A question, with these lines in its head and no others that say how long it is."""
    kind = b"Content-Type: application/json"
    return b"\r\n".join([b"POST " + target + b" HTTP/1.1", b"Host: x", kind, *lines, b"", body])


def chunked(body: bytes, *lines: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", *lines, body=body)


LENGTH = b"Content-Length: %d" % len(QUESTION)
LINES = {
    "nothing": b"\r\n\r\n",
    "line ends": b"\r\n" * 500 + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: x\n\n",
    "bare returns": b"GET /healthz HTTP/1.1\rHost: x\r\r",
    "one word": b"GET\r\n\r\n",
    "http 0.9": b"GET /\r\n\r\n",
    "http 0.9 with a line feed": b"GET /\n",
    "http 1.0 without host": b"GET /healthz HTTP/1.0\r\n\r\n",
    "http 1.0 with a length": b"POST /ask HTTP/1.0\r\n\r\n",
    "http 2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2,
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "socks": b"\x05\x01\x00",
    "smtp": b"EHLO x\r\nMAIL FROM:<a@b>\r\n\r\n",
    "zeros": b"\x00" * 5_000 + b"\r\n\r\n",
    "every byte": bytes(range(256)) + b"\r\n\r\n",
    "noise": bytes(at * at * 31 % 251 for at in range(9_000)) + b"\r\n\r\n",
    "a space first": b" GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "two spaces": b"GET  /  HTTP/1.1\r\nHost: x\r\n\r\n",
    "tabs": b"GET\t/\tHTTP/1.1\r\nHost: x\r\n\r\n",
    "a space in the path": get(b"/cards/a b"),
    "small letters": get(method=b"get"),
    "an unknown method": get(method=b"BREW"),
    "a method of signs": get(method=b"G@T"),
    "a method of zeros": get(method=b"G\x00T"),
    "a long method": get(method=b"A" * 70_000),
    "connect": get(b"x:443", method=b"CONNECT"),
    "trace": get(method=b"TRACE"),
    "version 9.9": get(version=b"HTTP/9.9"),
    "version x": get(version=b"HTTP/x"),
    "small version": get(version=b"http/1.1"),
    "long version": get(version=b"HTTP/1.1.1.1"),
    "no version": get(version=b""),
    "another protocol": get(version=b"RTSP/1.0"),
    "upgrade to websocket": get(b"/", b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Key: eA=="),
    "upgrade to http 2": get(b"/", b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AA"),
}
TARGETS = {
    f"target {target[:24]!r} {len(target)}": get(target)
    for target in (
        b"*",
        b"x",
        b"?",
        b"#",
        b"//",
        b"///healthz",
        b"/healthz/",
        b"/healthz?",
        b"/healthz#a",
        b"http://x/healthz",
        b"http://[::1/healthz",
        b"http://evil/../healthz",
        b"ftp://x/healthz",
        b"/../../etc/passwd",
        b"/static/../app.py",
        b"/static/..%2fapp.py",
        b"/static/%2e%2e/app.py",
        b"/static/%252e%252e%252fapp.py",
        b"/static/..%c0%afapp.py",
        b"/static/..\\app.py",
        b"/cards/%00",
        b"/cards/\x00",
        b"/cards/a%00.md",
        b"/cards/%",
        b"/cards/%zz",
        b"/cards/%ff%fe",
        b"/cards/%ed%a0%80",
        b"/cards/\xff\xfe",
        b"/cards/%0d%0aX-Injected:%201",
        b"/cards/" + b"a" * 60_000,
        b"/cards/" + b"%41" * 20_000,
        b"/" + b"a/" * 10_000,
        b"/ask?q=%00",
        b"/ask?q=%ff",
        b"/ask?q=%ed%a0%80",
        b"/ask?q=\xff",
        b"/ask?q=a&q=b",
        b"/ask?" + b"a=b&" * 5_000,
        b"/ask?q=a;top_k=99999999999999999999",
        b"/ask?q=%0d%0aSet-Cookie:%20a=b",
        b"/suggestions?language=%0d%0a",
        b"/" + b"a" * 200_000,
    )
}
HEADS = {
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": get(b"/healthz", b"Host: y"),
    "no colon": get(b"/healthz", b"nothing"),
    "no name": get(b"/healthz", b": a"),
    "a space before the colon": get(b"/healthz", b"A : b"),
    "a name of signs": get(b"/healthz", b"A(b): c"),
    "a name of zeros": get(b"/healthz", b"A\x00: c"),
    "a zero": get(b"/healthz", b"A: b\x00c"),
    "a bell": get(b"/healthz", b"A: \x07"),
    "a bare return": get(b"/healthz", b"A: b\rX-Injected: 1"),
    "a bare line feed": get(b"/healthz", b"A: b\nX-Injected: 1"),
    "latin 1": get(b"/healthz", b"A: \xe9\xff"),
    "folded": get(b"/healthz", b"A: b", b" c"),
    "folded at once": b"GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n",
    "folded length": post(b"Content-Length:", b" 20"),
    "many headers": get(b"/healthz", *[b"A%d: b" % at for at in range(5_000)]),
    "a long header": get(b"/healthz", b"A: " + b"b" * 200_000),
    "a long name": get(b"/healthz", b"A" * 100_000 + b": b"),
    "a long token": get(b"/whoami", b"Authorization: Bearer " + b"a" * 50_000),
    "a token of bytes": get(b"/whoami", b"Authorization: Bearer \xff\xfe\x80"),
    "a token twice": get(b"/whoami", b"Authorization: Bearer a", b"Authorization: Bearer b"),
    "forwarded nonsense": get(b"/whoami", b"X-Forwarded-For: %s" % (b"::," * 5_000), b"Forwarded: for=_"),
    "expect nonsense": post(LENGTH, b"Expect: tea"),
    "an endless list of codings": get(b"/", b"Accept-Encoding: " + b"gzip;q=0," * 5_000),
    "an entity tag of signs": get(b"/", b'If-None-Match: """,,W/"', b"Range: bytes=9-1,-,--5"),
}
BODIES = {
    "both lengths": chunked(b"0\r\n\r\n", LENGTH),
    "both lengths the other way": post(LENGTH, b"Transfer-Encoding: chunked", body=b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    "two lengths": post(LENGTH, b"Content-Length: 5"),
    "one length twice": post(LENGTH, LENGTH),
    "a list of lengths": post(b"Content-Length: 20, 20"),
    "a list of other lengths": post(b"Content-Length: 20, 21"),
    "a negative length": post(b"Content-Length: -1"),
    "a length with a sign": post(b"Content-Length: +20"),
    "a length in hexadecimal": post(b"Content-Length: 0x14"),
    "a broken length": post(b"Content-Length: 20.0"),
    "a length in words": post(b"Content-Length: twenty"),
    "a length of Arabic digits": post("Content-Length: ٢٠".encode()),
    "an empty length": post(b"Content-Length: "),
    "a huge length": post(b"Content-Length: 99999999999999999999999999"),
    "a length of thousands of digits": post(b"Content-Length: " + b"9" * 6_000),
    "a length that is too small": post(b"Content-Length: 5"),
    "no length": post(),
    "an unknown coding": post(b"Transfer-Encoding: gzip"),
    "two codings": post(b"Transfer-Encoding: gzip, chunked"),
    "chunked twice": post(b"Transfer-Encoding: chunked, chunked"),
    "codings twice": chunked(b"0\r\n\r\n", b"Transfer-Encoding: identity"),
    "chunked with a tab": post(b"Transfer-Encoding:\x0bchunked", body=b"0\r\n\r\n"),
    "chunked in 1.0": chunked(b"0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "a size of letters": chunked(b"xyz\r\nabc\r\n0\r\n\r\n"),
    "a negative size": chunked(b"-5\r\nabcde\r\n0\r\n\r\n"),
    "a size with 0x": chunked(b"0x5\r\nabcde\r\n0\r\n\r\n"),
    "a huge size": chunked(b"f" * 40 + b"\r\nabc\r\n"),
    "a size that is too small": chunked(b"2\r\nabcdef\r\n0\r\n\r\n"),
    "a chunk without an end": chunked(b"5\r\nabcdeX0\r\n\r\n"),
    "a chunk of line feeds": chunked(b"5\nabcde\n0\n\n"),
    "long extensions": chunked(b"5;" + b"a" * 100_000 + b"\r\nabcde\r\n0\r\n\r\n"),
    "bytes in an extension": chunked(b"5;\xff\x00=\x01\r\nabcde\r\n0\r\n\r\n"),
    "trailers": chunked(b"14\r\n" + QUESTION + b"\r\n0\r\nContent-Length: 9\r\nHost: y\r\n\r\n"),
    "endless trailers": chunked(b"0\r\n" + b"A: b\r\n" * 20_000),
    "a request behind": post(LENGTH) + b"GET\x00/ HTTP/1.1\r\n\r\n",
    "a get with a body": get(b"/ask?q=agua", b"Content-Length: 5") + b"abcde",
    "too large": post(b"Content-Length: 70000", body=b"a" * 70_000),
}
REQUESTS = LINES | TARGETS | HEADS | BODIES
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@pytest.fixture(scope="module")
def small_server(hostile_index_dir: Path) -> Iterator[Server]:
    """A service over one card."""
    with running({"FICHERO_INDEX_DIR": str(hostile_index_dir)}) as started:
        yield started


def exchange(server: Server, data: bytes) -> bytes:
    """All that comes back for these bytes, when nothing follows them."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE_SECONDS) as connection:
        received = bytearray()
        try:
            connection.sendall(data)
            # who closes at once gets no answer that takes a moment
            if select.select([connection], [], [], ANSWER_SECONDS)[0]:
                received += connection.recv(65_536)
            # they may have closed it already
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65_536):
                received += piece
        except (ConnectionResetError, BrokenPipeError):
            pass
        return bytes(received)


def test_there_are_enough_of_them() -> None:
    """A hundred requests and more are tried."""
    assert len(set(REQUESTS.values())) >= LEAST


@pytest.mark.parametrize("data", REQUESTS.values(), ids=REQUESTS)
def test_no_bytes_make_a_fault(small_server: Server, data: bytes) -> None:
    """Whatever is sent, the reply is no 5xx, nothing sent becomes a header of it, and the service goes on."""
    received = exchange(small_server, data)
    statuses = [int(status) for status in _STATUS.findall(received)]
    assert received == b"" or statuses
    assert all(status < 500 for status in statuses)
    assert b"\r\nx-injected" not in received.lower()
    assert b"\r\nset-cookie" not in received.lower()
    assert exchange(small_server, get()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "name", ["both lengths", "both lengths the other way", "two lengths", "a list of other lengths", "chunked twice"]
)
def test_nobody_can_say_two_lengths(small_server: Server, name: str) -> None:
    """Where a proxy in front could read another length than we do, the request is refused and the connection ends."""
    received = exchange(small_server, REQUESTS[name])
    assert len(_STATUS.findall(received)) <= 1
    assert not received or received.startswith(b"HTTP/1.1 4")
