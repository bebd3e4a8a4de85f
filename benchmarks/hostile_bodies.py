"""Bodies that no honest client sends, made from what one does send: the same ones for the same number."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag.serving.questions import BODY_LIMIT_BYTES

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
ROUTES = ("/ask", "/search", "/v1/chat/completions")
_PROPER: Mapping[str, Mapping[str, Any]] = {
    "/ask": {
        "question": "agua",
        "top_k": 3,
        "stream": False,
        "history": [{"question": "vino", "answer": "no"}, {"question": "leche"}],
    },
    "/search": {"question": "agua", "top_k": 3},
    "/v1/chat/completions": {
        "model": "fichero",
        "n": 1,
        "stream": False,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "x"},
            {"role": "user", "content": "vino"},
            {"role": "assistant", "content": "no"},
            {"role": "user", "content": [{"type": "text", "text": "agua"}]},
        ],
    },
}
_KINDS = (
    JSON,
    f"{JSON}; charset=utf-16",
    "APPLICATION/JSON ;x",
    FORM,
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "text/plain",
    "application/json, text/html",
    "application/x-ndjson",
    "",
    ";",
    "\xff\xfe",
    "a" * 5_000,
)
_WRONG: Sequence[str] = (
    *(
        "null true false 0 -0 -1 1.5 1e400 -1e400 1E-400 5.0 NaN Infinity -Infinity 0x10 01 +1 .5 1. 'a' undefined"
    ).split(),
    "9" * 30,
    "9" * 5_000,
    "18446744073709551616",
    "-9223372036854775809",
    '""',
    '" "',
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\ud800"',
    '"\\udfff\\ud800"',
    '"\\u202e\\u200b\\ufeff"',
    '"\\x41"',
    '"a\nb"',
    '"' + "a" * 2_001 + '"',
    '"' + "\\u0301" * 1_999 + '"',
    '"' + "é" * 30_000 + '"',
    '"' + "[cite:" * 300 + '"',
    "[]",
    "{}",
    "[[]]",
    '[""]',
    "[null]",
    "[{}]",
    '{"question": []}',
    '{"": ""}',
    '[{"type": "image_url"}]',
    '[{"type": "text", "text": null}]',
    "[" * 60 + "]" * 60,
    "[" * 30_000,
    "[" * 15_000 + "]" * 15_000,
    '{"a":' * 8_000 + "1" + "}" * 8_000,
    "[" + "0," * 20_000 + "0]",
    "{" + ",".join(f'"{number}": 1' for number in range(4_000)) + "}",
)


@dataclass(frozen=True, slots=True)
class Hostile:
    """A request with a body to be tried."""

    route: str
    content: bytes
    kind: str = JSON
    pieces: int = 1
    """Sent in so many chunks; then nothing says how long it is."""


def hostile_bodies(count: int, *, seed: int = 1) -> list[Hostile]:
    """So many requests, of each way to be wrong about as many."""
    chance = random.Random(seed)
    makers: tuple[Callable[[random.Random, str], Hostile], ...] = (
        _misplaced,
        _misplaced,
        _damaged,
        _encoded,
        _sized,
        _other,
    )
    return [makers[number % len(makers)](chance, ROUTES[number // 2 % len(ROUTES)]) for number in range(count)]


def _misplaced(chance: random.Random, route: str) -> Hostile:
    """What is wrong in itself, or of another type, anywhere in a proper body."""
    mark = "\ue000"
    places = list(_places(_PROPER[route]))
    text = json.dumps(_replaced(_PROPER[route], chance.choice(places), mark), ensure_ascii=False)
    content = text.replace(f'"{mark}"', chance.choice(_WRONG))
    return Hostile(route, content.encode("utf-8", "surrogatepass"), pieces=chance.choice((1, 1, 3)))


def _damaged(chance: random.Random, route: str) -> Hostile:
    """A proper body that is cut, or has bytes changed, doubled or put in."""
    content = bytearray(json.dumps(_PROPER[route]).encode())
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(content) or 1)
        way = chance.randrange(4)
        if way == 0:
            del content[at:]
        elif way == 1:
            content[at : at + 1] = bytes([chance.randrange(256)])
        elif way == 2:
            content[at:at] = content[at : at + chance.randint(1, 40)]
        else:
            content[at:at] = chance.choice((b"\x00", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\\", b'"', b"}", b"/**/"))
    return Hostile(route, bytes(content))


def _encoded(chance: random.Random, route: str) -> Hostile:
    """A proper body in another encoding, with keys twice, or with something around it."""
    text = json.dumps(_PROPER[route])
    ways = (
        b"\xef\xbb\xbf" + text.encode(),
        *(text.encode(name) for name in ("utf-16", "utf-16-le", "utf-32", "utf-7", "cp037")),
        b'{"question": "a",' + text[1:].encode(),
        b'{"messages": 1,' + text[1:].encode(),
        b'{"__proto__": {}, "constructor": 1,' + text[1:].encode(),
        b'{"' + b"k" * 40_000 + b'": 1,' + text[1:].encode(),
        b'{"\\ud800": 1,' + text[1:].encode(),
        text.encode() * 2,
        text.encode() + b"\x00",
        b"\x00" + text.encode(),
        b")]}'\n" + text.encode(),
        json.dumps(text).encode(),
        b"[" + text.encode() + b"]",
        b"",
        b" ",
        bytes(chance.randrange(256) for _ in range(chance.randint(1, 400))),
    )
    return Hostile(route, chance.choice(ways), pieces=chance.choice((1, 2)))


def _sized(chance: random.Random, route: str) -> Hostile:
    """A body about as large as one may be: white space behind it, or a long field in it."""
    size = BODY_LIMIT_BYTES + chance.choice((-2, -1, 0, 1, 2, 5_000))
    content = json.dumps(_PROPER[route]).encode()
    filler = chance.choice((b" ", b"\n", b"\x00", b"a"))
    return Hostile(route, content + filler * (size - len(content)), pieces=chance.choice((1, 7)))


def _other(chance: random.Random, route: str) -> Hostile:
    """A body that is said to be of another kind, forms among them."""
    part = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nagua\r\n--x--\r\n'
    forms = (
        "q=agua",
        "q=%ff",
        "q=%00",
        "q=%zz",
        "q=a&q=b",
        "q[]=a",
        "=",
        "&" * 500,
        "q=" + "%41" * 9_000,
        "top_k=1",
        "q=agua&top_k=٣",
    )
    content = chance.choice((part, json.dumps(_PROPER[route]).encode(), *(form.encode() for form in forms)))
    return Hostile(route, content, chance.choice(_KINDS if chance.random() < 0.5 else (FORM,)))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, Mapping):
        for name in value:
            yield from _places(value[name], (*path, name))
    elif isinstance(value, list):
        for at in range(len(value)):
            yield from _places(value[at], (*path, at))


def _replaced(value: Any, path: tuple[Any, ...], by: str) -> Any:
    if not path:
        return by
    if isinstance(value, Mapping):
        return {name: _replaced(item, path[1:], by) if name == path[0] else item for name, item in value.items()}
    return [_replaced(item, path[1:], by) if at == path[0] else item for at, item in enumerate(value)]


def fault_of(request: Hostile, status: int, kind: str, body: bytes) -> str | None:
    """What is wrong with a reply: it has to be an answer, or say in the form of its route what is wrong."""
    if status == 200:
        return None
    if not 400 <= status < 500:
        return f"status {status}"
    try:
        said = json.loads(body)
    except ValueError:
        return "the problem is no JSON"
    if request.route.startswith("/v1/"):
        return None if isinstance(said.get("error"), dict) and said["error"].get("message") else "no error object"
    is_problem = kind == "application/problem+json" and said.get("status") == status and said.get("detail")
    return None if is_problem else "no problem document"
