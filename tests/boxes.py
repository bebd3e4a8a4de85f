"""A box of cards with secrets, built once, and callers of all kinds: for tests of access and of reloading."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Message, Scope

from rag.builds import current_build
from tests.conftest import build_quietly, locked

PUBLIC = frozenset({"public"})
NEVER_THERE = "ficha-que-no-hubo"
"""The id of no card."""
WRONG = "a wrong token"
NO_TOKEN = "no token"
NAMES = "names.txt"
"""Names the builds of a box, when they are whole."""
VARYING = ("request_id", "timings_ms", "index_version", "id", "created")
"""What may differ between answers that are alike."""

CHAT, CHAT_MODELS = "/v1/chat/completions", "/v1/models"
SHAPED = (CHAT, CHAT_MODELS)
"""Where replies and errors have the shape that chat clients know."""

# things in places, where every place has an access rule of its own
THINGS = [
    "la llave", "el termómetro", "la báscula", "el botiquín", "la linterna", "el extintor", "la escalera",
    "el archivador", "la nevera", "el teléfono", "la impresora", "el carro", "la camilla",
]  # fmt: skip
PLACES: dict[str, tuple[str, ...]] = {
    "del vestíbulo": ("public",),
    "de la entrada": ("public",),
    "del jardín": ("public", "staff"),
    "del almacén": ("staff",),
    "de la enfermería": ("nurses",),
    "de la farmacia": ("pharmacy",),
    "del pasillo": ("nurses", "staff"),
    "de la azotea": ("nurses", "pharmacy", "staff"),
    # groups that begin like others and are others
    "del sótano": ("staff-night",),
    "del garaje": ("staf",),
    # no caller is of these
    "del despacho": ("board",),
    "de la biblioteca": ("archive", "board"),
}

# the groups of their tokens; everyone whose token is known is public too
CALLERS: dict[str, frozenset[str]] = {
    NO_TOKEN: frozenset(),
    "staff": frozenset({"staff"}),
    "nurses": frozenset({"nurses"}),
    "nurses and staff": frozenset({"nurses", "staff"}),
    "nurses, pharmacy and staff": frozenset({"nurses", "pharmacy", "staff"}),
    "a group without cards": frozenset({"visitors"}),
    "pharmacy and a group without cards": frozenset({"pharmacy", "visitors"}),
    WRONG: frozenset(),
}
KNOWN = [name for name in CALLERS if name != WRONG]


@dataclass(frozen=True, slots=True)
class Secret:
    """A card as its file says it is."""

    card_id: str
    groups: frozenset[str]
    words: tuple[str, ...]
    """They stand in its title, topics, source and text, and in no other card."""
    question: str
    """About what stands in this card alone."""

    def seen_by(self, caller: str) -> bool:
        """Whether a caller may see it."""
        return caller != WRONG and not self.groups.isdisjoint(CALLERS[caller] | PUBLIC)


@dataclass(frozen=True, slots=True)
class Box:
    """156 cards of 11 access rules, and two builds."""

    secrets: Sequence[Secret]
    """In order of id."""
    builds_dir: Path
    """An index folder without CURRENT; not to be changed."""
    whole: str
    """The build of all cards."""
    reduced: str
    """The build of the public cards alone."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    method: str
    path: str
    content: bytes = b""
    kind: str = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: tuple[tuple[str, str], ...]
    """Names in lower case; without the request's own id."""
    body: bytes

    @property
    def told(self) -> bytes:
        """All of it, in lower case."""
        return (repr(self.headers).encode() + self.body).lower()

    @property
    def object(self) -> Any:
        """The body as JSON; of a stream, the last event with an answer in it."""
        if not self.streamed:
            return json.loads(self.body)
        return next(found for found in reversed(_events(self.body)) if {"fichero", "answer"} & found.keys())

    @property
    def answer(self) -> Any:
        """The answer object, whatever it goes along with."""
        return self.object.get("fichero", self.object)

    @property
    def streamed(self) -> bool:
        """Whether it is a stream of events."""
        return dict(self.headers)["content-type"].startswith("text/event-stream")


@cache
def secret_box(work: Path) -> Box:
    """The box, made in a folder by whoever comes first."""
    with locked(work):
        if not (work / NAMES).exists():
            _build_box(work)
    whole, reduced = (work / NAMES).read_text("utf-8").split()
    return Box(_read_secrets(work / "cards"), work / "builds", whole, reduced)


def _build_box(work: Path) -> None:
    work.mkdir()
    _write_cards(work / "cards")
    shutil.copytree(work / "cards", work / "public")
    for secret in _read_secrets(work / "cards"):
        if not secret.seen_by(NO_TOKEN):
            (work / "public" / f"{secret.card_id}.md").unlink()
    names: list[str] = []
    for cards_dir in (work / "cards", work / "public"):
        build_quietly(cards_dir, work / "index")
        build = current_build(work / "index")
        shutil.copytree(build, work / "builds" / build.name)
        names.append(build.name)
    (work / NAMES).write_text("\n".join(names), "utf-8")


def use(index_dir: Path, name: str) -> None:
    """Put a build into use as the builder does, by rename."""
    fresh = index_dir / ".CURRENT.fresh"
    fresh.write_text(f"{name}\n", "utf-8")
    fresh.replace(index_dir / "CURRENT")


def copy_builds(box: Box, index_dir: Path, name: str) -> Path:
    """A copy of both builds, one of them in use."""
    shutil.copytree(box.builds_dir, index_dir)
    use(index_dir, name)
    return index_dir


def _write_cards(folder: Path) -> None:
    """One card for each thing in each place; every third in English."""
    folder.mkdir()
    for number, ((place, acl), thing) in enumerate(itertools.product(PLACES.items(), THINGS)):
        card_id, title, topic, source, text = (
            _invented_word(f"{number} {part}") for part in ("id", "title", "topic", "source", "text")
        )
        english = number % 3 == 1
        body = f"Para buscar {thing} {place} hay que mirar en el cajón {text}."
        if english:
            body = f"To find {thing} {place} you have to look in the drawer {text}."
        lines = [
            "---",
            f"title: {thing} {place} {title}",
            f"language: {'en' if english else 'es'}",
            f"topics: [{topic}]",
            f"source: https://{source}.invalid/",
            f"acl: [{', '.join(acl)}]",
            "---",
        ]
        (folder / f"{card_id}.md").write_text("\n".join([*lines, "", body, ""]), "utf-8")


def _invented_word(seed: str) -> str:
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join("bcdfglmnprstvz"[digest[2 * at] % 14] + "aeiou"[digest[2 * at + 1] % 5] for at in range(5))


def _read_secrets(folder: Path) -> list[Secret]:
    """The cards as their files say, read by these few lines alone."""
    secrets: list[Secret] = []
    for path in sorted(folder.glob("*.md")):
        text = path.read_text("utf-8")
        patterns = (r"^title: .* (\w+)$", r"^topics: \[(\w+)\]$", r"//(\w+)\.invalid", r"(?:cajón|drawer) (\w+)\.$")
        words = [re.findall(pattern, text, re.MULTILINE) for pattern in patterns]
        [acl] = re.findall(r"^acl: \[(.*)\]$", text, re.MULTILINE)
        [what] = re.findall(r"^title: (.*) \w+$", text, re.MULTILINE)
        secrets.append(
            Secret(path.stem, frozenset(acl.split(", ")), tuple(word for [word] in words), f"¿Dónde se busca {what}?")
        )
    every_word = [word for secret in secrets for word in (secret.card_id, *secret.words)]
    assert len(set(every_word)) == len(every_word)
    return secrets


def token_of(caller: str) -> str:
    """The bearer token that a caller sends."""
    return f"the token of {caller}"


def token_hashes() -> dict[str, frozenset[str]]:
    """The setting ``tokens`` that knows all callers but the one with the wrong token."""
    return {hashlib.sha256(token_of(name).encode()).hexdigest(): groups for name, groups in CALLERS.items() if groups}


def questions(secrets: Sequence[Secret]) -> list[str]:
    """One about a card of each access rule, and two about no card."""
    about = {secret.groups: secret.question for secret in secrets}
    return [*about.values(), "¿Quién ganó la liga en 1998?", "Where is the printer?"]


def calls_about_questions(secrets: Sequence[Secret]) -> list[Call]:
    """Each question by every route, and for as many cards as there can be."""
    calls: list[Call] = []
    for text in questions(secrets):
        content = json.dumps({"question": text, "top_k": 20}).encode()
        query = f"q={quote(text)}"
        messages = [{"role": "user", "content": text}]
        calls += [
            Call("POST", "/ask", content),
            Call("POST", "/search", content),
            Call("GET", f"/ask?{query}"),
            Call("HEAD", f"/ask?{query}"),
            Call("POST", "/ask", query.encode(), "application/x-www-form-urlencoded"),
            Call("POST", "/ask", json.dumps({"question": text, "stream": True}).encode()),
            Call("POST", CHAT, json.dumps({"messages": messages}).encode()),
            Call("POST", CHAT, json.dumps({"messages": messages, "stream": True}).encode()),
        ]
    return calls


def calls_about_cards(card_ids: Collection[str]) -> list[Call]:
    """Each card by every route."""
    paths = [f"/cards/{card_id}{suffix}" for card_id in card_ids for suffix in ("", ".md")]
    return [Call(method, path) for path in paths for method in ("GET", "HEAD", "OPTIONS")]


def ask(application: ASGIApp, caller: str, calls: Collection[Call]) -> dict[Call, Reply]:
    """Send these requests to an application as somebody."""

    async def send_all() -> dict[Call, Reply]:
        return {call: await _send(application, caller, call) for call in calls}

    return asyncio.run(send_all())


async def _send(application: ASGIApp, caller: str, call: Call) -> Reply:
    path, _, query = call.path.partition("?")
    headers = [] if caller == NO_TOKEN else [(b"authorization", f"Bearer {token_of(caller)}".encode())]
    if call.content:
        headers.append((b"content-type", call.kind.encode()))
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": call.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("box", 80),
    }
    received: asyncio.Queue[Message] = asyncio.Queue()
    received.put_nowait({"type": "http.request", "body": call.content, "more_body": False})
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await application(scope, received.get, send)
    told = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    kept = tuple((name, value) for name, value in told if name != "x-request-id")
    return Reply(sent[0]["status"], kept, b"".join(message.get("body", b"") for message in sent[1:]))


def less_varying(status: int, headers: Mapping[str, str], body: bytes) -> object:
    """A reply without what differs from request to request and from build to build."""
    told: object = body
    kind = headers.get("content-type", "")
    if kind == "application/json" and body:
        told = _less_varying(json.loads(body))
    elif kind.startswith("text/event-stream"):
        told = [_less_varying(found) for found in _events(body)]
    return status, headers.get("content-type"), told


def _less_varying(found: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in found.items() if name not in VARYING}
    return {name: _less_varying(value) if name == "fichero" else value for name, value in kept.items()}


def _events(body: bytes) -> list[Any]:
    """What stands in the events of a stream."""
    return [json.loads(data) for data in re.findall(rb"^data: (\{.*)$", body, re.MULTILINE)]
