"""The HTTP contract over a real socket: every route, every identity, and what hostile requests get."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest

from app import create_app
from rag.cards import read_cards
from rag.serving.engine import Engine
from rag.settings import Settings
from tests.conftest import ROOT, STAFF_TOKEN, Server, running
from tests.cross_encoders import write_cross_encoder

EMPTY_STOMACH = "¿se supone que debo tomarlo con el estómago vacío?"
OFF_TOPIC = "¿quién ganó la liga en 1998?"
CANARY = "xyzzy"
"""Stands in every hostile request; no error may give it back."""
STAFF_CARD, ABSENT_CARD = "personal-corte-nevera", "personal-corte-neverb"
# as it reaches a server from a library that sends headers in Latin-1
STAFF = {b"Authorization": f"Bearer {STAFF_TOKEN}".encode("latin-1")}
PROBLEM_KEYS = {"type", "title", "status", "detail"}
ANSWER_KEYS = {
    "request_id",
    "question",
    "searched",
    "answer",
    "segments",
    "question_truncated",
    "language",
    "mode",
    "degraded",
    "degraded_reason",
    "refusal",
    "citations",
    "rejected",
    "retrieved",
    "index_version",
    "timings_ms",
}
CITATION_KEYS = {
    "number",
    "card_id",
    "title",
    "url",
    "language",
    "license",
    "source",
    "accessed_at",
    "quote",
    "start",
    "end",
    "score",
    "verdict",
}
GET_ROUTES = (
    "/",
    "/ask?q=agua",
    "/cards",
    "/cards/pomelo",
    "/cards/pomelo.md",
    "/suggestions",
    "/whoami",
    "/healthz",
    "/readyz",
    "/v1/models",
)
POST_ROUTES = ("/search", "/v1/chat/completions")
"""Those that take no GET."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back over a bare socket."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Attempt:
    """One hostile request and the statuses that are right for it."""

    name: str
    method: str
    target: str | bytes
    statuses: tuple[int, ...]
    slug: str | None = None
    content: bytes | None = None
    kind: str | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def send(server: Server, attempt: Attempt) -> Reply:
    """Send exactly these bytes; no client library tidies them up."""
    target = attempt.target.encode() if isinstance(attempt.target, str) else attempt.target
    lines = [attempt.method.encode() + b" " + target + b" HTTP/1.1", b"Host: localhost", b"Connection: close"]
    if attempt.kind is not None:
        lines.append(b"Content-Type: " + attempt.kind.encode())
    if attempt.content is not None:
        lines.append(b"Content-Length: " + str(len(attempt.content)).encode())
    lines += [name.encode() + b": " + value for name, value in attempt.headers]
    return exchange(server, b"\r\n".join([*lines, b"", attempt.content or b""]), attempt.method)


def exchange(server: Server, data: bytes, method: str = "GET") -> Reply:
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(data)
        response = HTTPResponse(connection, method=method)
        response.begin()
        body = response.read()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


@pytest.fixture
def staff(server: Server) -> Iterator[httpx.Client]:
    """A caller of ``server`` with the token of the group ``staff``."""
    with httpx.Client(base_url=server.url, timeout=30, headers=STAFF) as caller:
        yield caller


def check_envelope(headers: Mapping[str, str]) -> None:
    """Every reply of the application has these."""
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert len(headers["x-request-id"]) == 32
    assert "server" not in headers


def check_problem(reply: Reply, slug: str | None) -> None:
    """An RFC 9457 document with a stable type, and nothing of the caller's own words anywhere."""
    assert reply.headers["content-type"] == "application/problem+json"
    assert CANARY.encode() not in reply.body
    assert CANARY not in repr(reply.headers)
    found = json.loads(reply.body)
    assert set(found) == PROBLEM_KEYS
    assert found["status"] == reply.status
    assert found["type"].startswith("urn:fichero:problem:")
    assert found["title"]
    assert found["detail"]
    if slug:
        assert found["type"] == f"urn:fichero:problem:{slug}"


def problem_of(response: httpx.Response) -> str:
    check_problem(Reply(response.status_code, response.headers, response.content), None)
    kind: str = response.json()["type"]
    return kind.removeprefix("urn:fichero:problem:")


# the contract


def test_an_answer_has_the_shape_of_the_contract(client: httpx.Client) -> None:
    """POST /ask gives the answer object: exactly its keys, valid citations, quotes equal to spans of the card."""
    response = client.post("/ask", json={"question": EMPTY_STOMACH})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    assert set(answer) == ANSWER_KEYS
    assert answer["question"] == EMPTY_STOMACH
    assert answer["language"] == "es"
    assert answer["refusal"] is None
    assert answer["request_id"] == response.headers["x-request-id"]
    assert answer["citations"]
    for citation in answer["citations"]:
        assert set(citation) == CITATION_KEYS
        assert citation["verdict"] == "valid"
        card = client.get(citation["url"]).json()
        assert card["text"][citation["start"] : citation["end"]] == citation["quote"]
        assert card["index_version"] == answer["index_version"]
    assert {segment["type"] for segment in answer["segments"]} == {"text", "citation"}


def test_an_unrelated_question_is_refused_with_a_reason(client: httpx.Client) -> None:
    """A refusal is a 200 with a typed reason, the nearest cards, and no citations, segments or retrieved cards."""
    answer = client.post("/ask", json={"question": OFF_TOPIC}).json()
    assert set(answer) == ANSWER_KEYS
    assert set(answer["refusal"]) == {"reason", "best_score", "threshold", "nearest"}
    assert answer["refusal"]["reason"] == "below_threshold"
    assert (answer["citations"], answer["segments"], answer["retrieved"]) == ([], [], [])
    for link in answer["refusal"]["nearest"]:
        assert client.get(link["url"]).status_code == 200


def test_an_english_question_cites_the_only_card_there_is(client: httpx.Client) -> None:
    """An English question about a subject that only a Spanish card covers cites that card and says its language."""
    answer = client.post("/ask", json={"question": "Can I drink coffee when I take iron?"}).json()
    assert answer["language"] == "en"
    assert "hierro-cafe" in {citation["card_id"] for citation in answer["citations"]}
    assert {citation["language"] for citation in answer["citations"]} == {"es"}


def test_every_way_of_asking_gives_the_same_answer(client: httpx.Client) -> None:
    """GET, form and JSON /ask agree in everything but the request's id and the times."""
    answers = [
        client.get("/ask", params={"q": EMPTY_STOMACH, "top_k": "4"}),
        client.post("/ask", data={"q": EMPTY_STOMACH, "top_k": "4"}),
        client.post("/ask", json={"question": EMPTY_STOMACH, "top_k": 4}),
        client.post("/ask", json={"question": EMPTY_STOMACH, "top_k": 4, "stream": False, "history": []}),
        client.post("/ask", json={"question": EMPTY_STOMACH, "top_k": 4.0, "stream": None, "history": None}),
    ]
    bodies = [{key: value for key, value in answer.json().items() if key not in VARYING} for answer in answers]
    assert all(body == bodies[0] for body in bodies)
    assert len(bodies[0]["retrieved"]) == 4


VARYING = ("request_id", "timings_ms")


@pytest.mark.parametrize("top_k", [1, 20])
def test_top_k_bounds_what_is_retrieved(client: httpx.Client, top_k: int) -> None:
    """top_k from 1 to 20 is how many different cards come back, from /ask and from /search."""
    for path in ("/ask", "/search"):
        found = client.post(path, json={"question": EMPTY_STOMACH, "top_k": top_k}).json()["retrieved"]
        assert len({card["card_id"] for card in found}) == len(found) == top_k


def test_search_retrieves_and_does_not_answer(client: httpx.Client) -> None:
    """POST /search gives the ranked cards with scores and the gate's verdict, without an answer."""
    found = client.post("/search", json={"question": EMPTY_STOMACH}).json()
    assert set(found) == {
        "request_id",
        "question",
        "language",
        "passed",
        "best_score",
        "threshold",
        "question_truncated",
        "retrieved",
        "index_version",
        "timings_ms",
    }
    assert found["passed"] is True
    assert found["retrieved"][0]["card_id"] == "estomago-vacio"
    parts = {
        "card_id",
        "title",
        "url",
        "language",
        "score",
        "dense_score",
        "lexical_score",
        "rank_score",
        "rerank_score",
        "chunk_index",
    }
    assert all(set(card) == parts for card in found["retrieved"])
    ranks = [card["rank_score"] for card in found["retrieved"]]
    assert ranks == sorted(ranks, reverse=True)
    answered = client.post("/ask", json={"question": EMPTY_STOMACH}).json()["retrieved"]
    assert answered == found["retrieved"]
    assert {card["rerank_score"] for card in answered} == {None}
    unrelated = client.post("/search", json={"question": OFF_TOPIC}).json()
    assert unrelated["passed"] is False
    assert unrelated["best_score"] < unrelated["threshold"]


def test_a_cross_encoder_orders_what_is_retrieved(sample_index_dir: Path, tmp_path: Path) -> None:
    """With a cross-encoder /search and /ask give its scores, in their order, which is what answers come from."""
    # it knows one word alone
    folder = write_cross_encoder(tmp_path / "cruzado", ["comida"])
    settings = {"FICHERO_INDEX_DIR": str(sample_index_dir), "FICHERO_RERANKER_DIR": str(folder)}
    question = {"question": "¿Qué cuenta como comida si tomo un medicamento?"}
    with running(settings) as started, httpx.Client(base_url=started.url, timeout=30) as caller:
        found = caller.post("/search", json=question).json()["retrieved"]
        answer = caller.post("/ask", json=question).json()
    scores = [card["rerank_score"] for card in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]
    assert answer["retrieved"] == found
    assert {citation["card_id"] for citation in answer["citations"]} <= {card["card_id"] for card in found[:2]}


def test_cards_are_listed_and_opened(client: httpx.Client, staff: httpx.Client) -> None:
    """/cards lists the public's cards in order of id, each opens at its url, and none shows an access rule."""
    listed = client.get("/cards").json()["cards"]
    ids = [card["card_id"] for card in listed]
    known = {card.card_id: card for card in read_cards(ROOT / "cards").cards}
    assert ids == sorted(card_id for card_id, card in known.items() if "public" in card.acl)
    assert [card["card_id"] for card in staff.get("/cards").json()["cards"]] == sorted(known)
    for link in listed[:5]:
        card = client.get(link["url"]).json()
        assert card["text"] == known[link["card_id"]].text
        assert "acl" not in card
        assert tuple(link["questions"]) == known[link["card_id"]].questions
        assert link.items() <= card.items()


@pytest.mark.parametrize("language", ["es", "en"])
def test_what_is_suggested_is_answered(client: httpx.Client, staff: httpx.Client, language: str) -> None:
    """Each of the six suggestions is answered for who gets it, and finds its card; Spanish ones come by default."""
    for caller in (client, staff):
        reply = caller.get("/suggestions", params={"language": language}).json()
        assert set(reply) == {"suggestions", "index_version"}
        assert len(reply["suggestions"]) == 6
        for suggestion in reply["suggestions"]:
            assert set(suggestion) == {"question", "language", "card_id"}
            assert suggestion["language"] == language
            answer = caller.post("/ask", json={"question": suggestion["question"]}).json()
            assert answer["refusal"] is None
            assert suggestion["card_id"] in {card["card_id"] for card in answer["retrieved"]}
        if language == "es":
            assert caller.get("/suggestions").json() == reply


@pytest.mark.parametrize("query", ["language=fr", "language=", "language=ES", "language=xyzzy", "language=es%00"])
def test_suggestions_know_two_languages(client: httpx.Client, query: str) -> None:
    """Any other language is 422, and the problem names those there are."""
    response = client.get(f"/suggestions?{query}")
    assert (response.status_code, problem_of(response)) == (422, "invalid-request")
    assert "es, en" in response.json()["detail"]


def test_everyone_can_ask_who_they_are(client: httpx.Client, staff: httpx.Client) -> None:
    """/whoami gives the caller's groups in order; an unknown token is 401 there, too."""
    assert client.get("/whoami").json() == {"groups": ["public"]}
    assert staff.get("/whoami").json() == {"groups": ["public", "staff"]}
    for path in ("/whoami", "/suggestions"):
        refused = client.get(path, headers={"Authorization": "Bearer xyzzy"})
        assert (refused.status_code, problem_of(refused)) == (401, "unauthorized")


def test_markdown_parses_back_to_the_same_card(server: Server, staff: httpx.Client, tmp_path: Path) -> None:
    """Every card's .md, read again, is the same card but for its access rule, and is served as Markdown."""
    known = {card.card_id: card for card in read_cards(ROOT / "cards").cards}
    for card_id in known:
        response = staff.get(f"/cards/{card_id}.md")
        assert response.headers["content-type"] == "text/markdown; charset=utf-8"
        (tmp_path / f"x-{card_id}.md").write_bytes(response.content)
    folder = read_cards(tmp_path)
    assert (folder.faults, folder.notices) == ((), ())
    for card in folder.cards:
        original = known[card.card_id]
        assert card.text == original.text
        assert (card.title, card.language, card.topics) == (original.title, original.language, original.topics)
        assert (card.license, card.source, card.accessed_at) == (
            original.license,
            original.source,
            original.accessed_at,
        )
    assert len(folder.cards) == len(known)


def test_health_and_readiness(client: httpx.Client) -> None:
    """/healthz says alive; /readyz says ready, and with which index."""
    assert client.get("/healthz").json() == {"status": "alive"}
    ready = client.get("/readyz").json()
    assert ready["status"] == "ready"
    assert ready["index_version"] == client.get("/cards").json()["index_version"]


def test_the_page_and_its_files_are_served(client: httpx.Client) -> None:
    """The page is HTML that loads only its own files, and each of those is there with a fitting type."""
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    check_envelope(page.headers)
    for name, kind in (("app.js", "javascript"), ("style.css", "text/css"), ("icon.svg", "image/svg+xml")):
        file = client.get(f"/static/{name}")
        assert file.status_code == 200
        assert kind in file.headers["content-type"]


@pytest.mark.parametrize("path", [*GET_ROUTES, "/static/app.js"])
def test_head_answers_like_get_without_a_body(client: httpx.Client, path: str) -> None:
    """HEAD on every GET route has the status and type of GET, and no body."""
    head, full = client.head(path), client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == full.headers["content-type"]
    check_envelope(
        {
            "cache-control": "no-store",
            **head.headers,
        }
    )


@pytest.mark.parametrize("path", [*GET_ROUTES, *POST_ROUTES, "/static/app.js"])
def test_options_names_the_methods(client: httpx.Client, path: str) -> None:
    """OPTIONS on every route is answered without a body, and Allow names the methods there are."""
    response = client.options(path)
    assert (response.status_code, response.content) == (204, b"")
    allowed = {method.strip() for method in response.headers["allow"].split(",")}
    assert ("POST" in allowed) == path.startswith(("/ask", *POST_ROUTES))
    assert ("GET" in allowed) == (path not in POST_ROUTES)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/ask"),
        ("PUT", "/ask"),
        ("PATCH", "/search"),
        ("GET", "/search"),
        ("HEAD", "/search"),
        ("GET", "/v1/chat/completions"),
        ("HEAD", "/v1/chat/completions"),
        ("POST", "/v1/models"),
        ("POST", "/cards"),
        ("DELETE", "/cards/pomelo"),
        ("POST", "/suggestions"),
        ("POST", "/whoami"),
        ("PUT", "/static/app.js"),
        ("POST", "/healthz"),
        ("POST", "/"),
        ("XYZZY", "/ask"),
    ],
)
def test_other_methods_are_refused(client: httpx.Client, method: str, path: str) -> None:
    """A method that a route does not have is 405 with Allow."""
    response = client.request(method, path)
    assert response.status_code == 405
    assert response.headers["allow"]
    if method != "HEAD":
        assert problem_of(response) == "method-not-allowed"


@pytest.mark.parametrize(
    "path",
    [*GET_ROUTES, *POST_ROUTES, "/static/app.js", "/none", "/cards/none", "/ask", "/static/none", "/ask/", "/v1/none"],
)
def test_security_headers_are_on_every_reply(client: httpx.Client, path: str) -> None:
    """Found or not, allowed or not, every reply carries the security headers and an id of its own."""
    for method in ("GET", "POST", "OPTIONS"):
        response = client.request(method, path)
        headers = {**response.headers}
        headers.setdefault("cache-control", "absent")
        check_envelope(headers)


def test_a_fault_of_ours_is_a_problem_with_the_same_headers() -> None:
    """When something breaks inside, the caller gets 500 as a problem with all security headers and no detail of it."""

    class Broken:
        @property
        def loaded(self) -> object:
            raise RuntimeError("/secret/path")

    async def call() -> httpx.Response:
        application = create_app(Settings(), cast(Engine, Broken()))
        transport = httpx.ASGITransport(application, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as caller:
            return await caller.get("/cards")

    response = asyncio.run(call())
    assert response.status_code == 500
    assert problem_of(response) == "internal"
    assert "secret" not in response.text
    check_envelope(response.headers)


def test_questions_at_once_do_not_mix(server: Server) -> None:
    """Questions asked at the same time each get their own answer."""
    questions = [EMPTY_STOMACH, OFF_TOPIC, "Can I drink coffee when I take iron?", "¿Cómo guardo la insulina?"] * 3

    def ask(question: str) -> tuple[str, Any]:
        answer = httpx.get(f"{server.url}/ask", params={"q": question}, timeout=60).json()
        return answer["question"], answer["answer"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, questions))
    assert [question for question, _ in answers] == questions
    assert len(set(answers)) == 4


# identity


def test_staff_cards_open_with_the_token_alone(client: httpx.Client, staff: httpx.Client) -> None:
    """With the token a staff card is listed, opened, found and cited; without it, none of these."""
    question = {"question": "Si la nevera averiada marca 11 °C, ¿se dispensa y a quién se avisa de guardia?"}
    assert staff.get(f"/cards/{STAFF_CARD}").status_code == 200
    assert staff.get(f"/cards/{STAFF_CARD}.md").status_code == 200
    assert STAFF_CARD in staff.get("/cards").text
    assert STAFF_CARD in staff.post("/search", json=question).text
    assert STAFF_CARD in {cited["card_id"] for cited in staff.post("/ask", json=question).json()["citations"]}
    for path in ("/cards", "/"):
        assert STAFF_CARD not in client.get(path).text
    for path in ("/search", "/ask"):
        assert STAFF_CARD not in client.post(path, json={**question, "top_k": 20}).text


def test_a_token_is_the_bytes_that_a_terminal_sends(server: Server) -> None:
    """A token with a letter beyond ASCII works as curl sends it, in UTF-8, the form that was hashed."""
    headers = (("Authorization", f"Bearer {STAFF_TOKEN}".encode()),)
    assert send(server, Attempt("", "GET", f"/cards/{STAFF_CARD}", (200,), headers=headers)).status == 200


@pytest.mark.parametrize("suffix", ["", ".md"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
def test_a_forbidden_card_is_byte_for_byte_an_absent_one(server: Server, method: str, suffix: str) -> None:
    """What the public gets for a staff card and for a card that is not there differs in the request's id alone."""
    replies = [
        send(server, Attempt("", method, f"/cards/{card_id}{suffix}", (404,))) for card_id in (STAFF_CARD, ABSENT_CARD)
    ]
    seen = [
        (
            reply.status,
            reply.body,
            {name: value for name, value in reply.headers.items() if name not in ("x-request-id", "date")},
        )
        for reply in replies
    ]
    assert seen[0] == seen[1]
    if method in ("GET", "HEAD"):
        assert replies[0].status == 404


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_may_be_in_any_case(server: Server, scheme: str) -> None:
    """The word Bearer counts in any case."""
    headers = (("Authorization", f"{scheme} {STAFF_TOKEN}".encode("latin-1")),)
    assert send(server, Attempt("", "GET", f"/cards/{STAFF_CARD}", (200,), headers=headers)).status == 200


BAD_CREDENTIALS: dict[str, bytes] = {
    "wrong": b"Bearer xyzzy",
    "empty": b"",
    "no token": b"Bearer",
    "blank token": b"Bearer   ",
    "other scheme": b"Basic eHl6enk6eHl6enk=",
    "right token, wrong scheme": f"Token {STAFF_TOKEN}".encode("latin-1"),
    "no scheme": STAFF_TOKEN.encode("latin-1"),
    "another case": f"Bearer {STAFF_TOKEN.upper()}".encode("latin-1"),
    "with more behind": f"Bearer {STAFF_TOKEN} xyzzy".encode("latin-1"),
    "its hash": b"Bearer " + b"0" * 64,
    "very long": b"Bearer " + b"xyzzy" * 2_000,
    "not text": b"Bearer \xff\xfe\x80xyzzy",
    "quoted": f'Bearer "{STAFF_TOKEN}"'.encode("latin-1"),
}


@pytest.mark.parametrize("value", BAD_CREDENTIALS.values(), ids=BAD_CREDENTIALS.keys())
def test_bad_credentials_are_401_everywhere(server: Server, value: bytes) -> None:
    """Credentials that are not a known bearer token are 401 on every route that has cards, whatever is asked for."""
    bodies: set[bytes] = set()
    for method, target in (
        ("GET", "/cards"),
        ("GET", "/cards/pomelo"),
        ("GET", f"/cards/{STAFF_CARD}"),
        ("GET", f"/cards/{ABSENT_CARD}.md"),
        ("GET", "/ask?q=agua"),
        ("POST", "/search"),
    ):
        reply = send(server, Attempt("", method, target, (401,), headers=(("Authorization", value),), content=b""))
        assert reply.status == 401, target
        assert reply.headers["www-authenticate"].startswith("Bearer")
        check_problem(reply, "unauthorized")
        check_envelope(reply.headers)
        bodies.add(reply.body)
    assert len(bodies) == 1


# bad requests

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
UNREADABLE, INVALID = (400,), (422,)


def body(**values: object) -> bytes:
    return json.dumps({"question": f"agua {CANARY}", **values}).encode()


def question(text: str) -> bytes:
    return json.dumps({"question": text}).encode()


JSON_BODIES: dict[str, tuple[bytes, tuple[int, ...], str]] = {
    "nothing": (b"", UNREADABLE, "invalid-request"),
    "blank": (b"  \n", UNREADABLE, "invalid-request"),
    "cut": (b'{"question": "xyzzy', UNREADABLE, "invalid-request"),
    "single quotes": (b"{'question': 'xyzzy'}", UNREADABLE, "invalid-request"),
    "more behind": (b'{"question": "agua"} xyzzy', UNREADABLE, "invalid-request"),
    "trailing comma": (b'{"question": "xyzzy",}', UNREADABLE, "invalid-request"),
    "comment": (b'{"question": "agua" /* xyzzy */}', UNREADABLE, "invalid-request"),
    "bare newline in text": (b'{"question": "agua\nxyzzy"}', UNREADABLE, "invalid-request"),
    "not UTF-8": (b'{"question": "xyzzy \xff"}', UNREADABLE, "invalid-request"),
    "overlong UTF-8": (b'{"question": "xyzzy \xc0\xaf"}', UNREADABLE, "invalid-request"),
    "surrogate in UTF-8": (b'{"question": "xyzzy \xed\xa0\x80"}', UNREADABLE, "invalid-request"),
    "UTF-16": ('{"question": "xyzzy"}'.encode("utf-16"), UNREADABLE, "invalid-request"),
    "lone high surrogate": (b'{"question": "xyzzy \\ud800"}', UNREADABLE, "invalid-request"),
    "lone low surrogate": (b'{"question": "xyzzy \\udc00 a"}', UNREADABLE, "invalid-request"),
    "surrogates swapped": (b'{"question": "xyzzy \\udc00\\ud800"}', UNREADABLE, "invalid-request"),
    "surrogate in a key": (b'{"question": "agua", "xyzzy\\ud800": 1}', UNREADABLE, "invalid-request"),
    "NaN as question": (b'{"question": NaN}', UNREADABLE, "invalid-request"),
    "NaN as top_k": (b'{"question": "xyzzy", "top_k": NaN}', UNREADABLE, "invalid-request"),
    "infinity": (b'{"question": "xyzzy", "top_k": Infinity}', UNREADABLE, "invalid-request"),
    "deep lists": (b"[" * 30_000, UNREADABLE, "invalid-request"),
    "deep closed lists": (b"[" * 30_000 + b"]" * 30_000, UNREADABLE, "invalid-request"),
    "deep objects": (b'{"question":' * 5_000, UNREADABLE, "invalid-request"),
    "deep question": (b'{"question": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", UNREADABLE, "invalid-request"),
    "a list": (b'["xyzzy"]', INVALID, "invalid-request"),
    "null": (b"null", INVALID, "invalid-request"),
    "a number": (b"7", INVALID, "invalid-request"),
    "a text": (b'"xyzzy"', INVALID, "invalid-request"),
    "a truth": (b"true", INVALID, "invalid-request"),
    "no question": (b"{}", INVALID, "question-empty"),
    "null question": (b'{"question": null}', INVALID, "question-empty"),
    "empty question": (question(""), INVALID, "question-empty"),
    "blank question": (question(" \t\n\u00a0\u3000"), INVALID, "question-empty"),
    "zero-width question": (question("\u200b\u2060"), INVALID, "question-without-words"),
    "NUL question": (question("\0\0"), INVALID, "question-without-words"),
    "emoji alone": (question("🤔👩‍⚕️"), INVALID, "question-without-words"),
    "signs alone": (question("¿?"), INVALID, "question-without-words"),
    "2,001 characters": (question("a" * 2_001), INVALID, "question-too-long"),
    "10,000 characters": (question("xyzzy " * 1_667), INVALID, "question-too-long"),
    "64 KiB to the byte": (question("a" * (65_536 - 16)), INVALID, "question-too-long"),
    "number as question": (b'{"question": 7}', INVALID, "invalid-request"),
    "list as question": (b'{"question": ["xyzzy"]}', INVALID, "invalid-request"),
    "object as question": (b'{"question": {"xyzzy": 1}}', INVALID, "invalid-request"),
    "truth as question": (b'{"question": true}', INVALID, "invalid-request"),
    "twice, last wrong": (b'{"question": "agua", "question": 7}', INVALID, "invalid-request"),
    "unknown field": (body(xyzzy=1), INVALID, "invalid-request"),
    "unknown field alone": (b'{"xyzzy": 1}', INVALID, "invalid-request"),
    "prototype": (body(__proto__={"xyzzy": 1}), INVALID, "invalid-request"),
    "field in capitals": (b'{"Question": "xyzzy"}', INVALID, "invalid-request"),
    "field of the form": (b'{"q": "xyzzy"}', INVALID, "invalid-request"),
    "identity in the body": (body(groups=["staff"]), INVALID, "invalid-request"),
    "top_k 0": (body(top_k=0), INVALID, "invalid-request"),
    "top_k negative": (body(top_k=-1), INVALID, "invalid-request"),
    "top_k 21": (body(top_k=21), INVALID, "invalid-request"),
    "top_k huge": (body(top_k=2**63), INVALID, "invalid-request"),
    "top_k a fraction": (body(top_k=1.5), INVALID, "invalid-request"),
    "top_k a text": (body(top_k="5"), INVALID, "invalid-request"),
    "top_k a truth": (body(top_k=True), INVALID, "invalid-request"),
    "top_k a list": (body(top_k=[5]), INVALID, "invalid-request"),
    "top_k an object": (body(top_k={}), INVALID, "invalid-request"),
    "stream a list": (body(stream=[True]), INVALID, "invalid-request"),
    "stream a text": (body(stream="yes"), INVALID, "invalid-request"),
    "stream a number": (body(stream=0), INVALID, "invalid-request"),
    "history": (body(history=[{"xyzzy": 1}]), INVALID, "invalid-request"),
    "history a text": (body(history=CANARY), INVALID, "invalid-request"),
    "history an object": (body(history={}), INVALID, "invalid-request"),
    "history of texts": (body(history=[CANARY]), INVALID, "invalid-request"),
    "history with roles": (body(history=[{"role": "system", "content": CANARY}]), INVALID, "invalid-request"),
    "history without a question": (body(history=[{"answer": CANARY}]), INVALID, "invalid-request"),
    "history with a number": (body(history=[{"question": 7}]), INVALID, "invalid-request"),
    "history with no answer": (body(history=[{"question": CANARY, "answer": None}]), INVALID, "invalid-request"),
    "history too deep": (body(history=[[[[CANARY]]]]), INVALID, "invalid-request"),
    "history of 21 turns": (body(history=[{"question": CANARY}] * 21), INVALID, "invalid-request"),
    "history with a long question": (body(history=[{"question": CANARY * 401}]), INVALID, "invalid-request"),
    "history with a long answer": (
        body(history=[{"question": CANARY, "answer": CANARY * 1_601}]),
        INVALID,
        "invalid-request",
    ),
    "5,000 digits": (b'{"question": "xyzzy", "top_k": ' + b"9" * 5_000 + b"}", (400, 422), "invalid-request"),
    "5,000 digits as question": (b'{"question": ' + b"9" * 5_000 + b"}", (400, 422), "invalid-request"),
    "exponent": (b'{"question": "xyzzy", "top_k": 1e9999}', (400, 422), "invalid-request"),
}
FORM_BODIES: dict[str, tuple[bytes, tuple[int, ...], str]] = {
    "nothing": (b"", INVALID, "question-empty"),
    "empty": (b"q=", INVALID, "question-empty"),
    "blank": (b"q=+%20%0a", INVALID, "question-empty"),
    "no value": (b"q", INVALID, "question-empty"),
    "signs": (b"q=%3F", INVALID, "question-without-words"),
    "NUL": (b"q=%00", INVALID, "question-without-words"),
    "too long": (b"q=" + b"xyzzy+" * 400, INVALID, "question-too-long"),
    "twice": (b"q=agua&q=xyzzy", INVALID, "invalid-request"),
    "top_k twice": (b"q=xyzzy&top_k=1&top_k=2", INVALID, "invalid-request"),
    "unknown field": (b"q=agua&xyzzy=1", INVALID, "invalid-request"),
    "field of JSON": (b"question=xyzzy", INVALID, "invalid-request"),
    "not UTF-8": (b"q=xyzzy%ff", UNREADABLE, "invalid-request"),
    "cut UTF-8": (b"q=xyzzy%c3", UNREADABLE, "invalid-request"),
    "surrogate": (b"q=xyzzy%ed%a0%80", UNREADABLE, "invalid-request"),
    "overlong": (b"q=xyzzy%c0%af", UNREADABLE, "invalid-request"),
    "bad UTF-8 in a name": (b"q=xyzzy&%ff=1", UNREADABLE, "invalid-request"),
    "seventeen fields": (b"&".join(b"xyzzy%d=1" % number for number in range(17)), UNREADABLE, "invalid-request"),
    "a thousand fields": (b"q=xyzzy&" * 1_000, UNREADABLE, "invalid-request"),
    "stream a word": (b"q=xyzzy&stream=yes", INVALID, "invalid-request"),
    "top_k 0": (b"q=xyzzy&top_k=0", INVALID, "invalid-request"),
    "top_k 21": (b"q=xyzzy&top_k=21", INVALID, "invalid-request"),
    "top_k negative": (b"q=xyzzy&top_k=-1", INVALID, "invalid-request"),
    "top_k signed": (b"q=xyzzy&top_k=%2B5", INVALID, "invalid-request"),
    "top_k empty": (b"q=xyzzy&top_k=", INVALID, "invalid-request"),
    "top_k spaced": (b"q=xyzzy&top_k=+5", INVALID, "invalid-request"),
    "top_k other digits": (b"q=xyzzy&top_k=%D9%A5", INVALID, "invalid-request"),
    "top_k underscore": (b"q=xyzzy&top_k=1_0", INVALID, "invalid-request"),
    "top_k 5,000 digits": (b"q=xyzzy&top_k=" + b"9" * 5_000, INVALID, "invalid-request"),
}
CARD_NAMES = (
    *("%00", "pomelo%00", "pomelo%00.md", "%ff", "%c3%28", "%ed%a0%80", "%u0041", "%", "%2", "%zz"),
    *("..%2f", "..%2f..%2fetc%2fpasswd", "%2e%2e", "%2e%2e%2f%2e%2e", "..%5c..", "%252e%252e%252f", "..;/", "..."),
    *("a" * 300, "a" * 5_000, "ñ" * 100, "%F0%9F%A4%94", "pomelo%20", "%20pomelo", "pomelo%0a", "pomelo%0d%0aX:%201"),
    *("POMELO", "pomelo.MD", "pomelo.md.md", ".md", ".", "..", "pomelo::00", "pomelo%3a%3a00", "null", "-1", "0"),
    *("pomelo'--", "pomelo%27%20or%20%271", "%3Cscript%3Exyzzy", "{xyzzy}", "$%7bxyzzy%7d", "*", "?", "pomelo/xyzzy"),
)
STATIC_NAMES = (
    *("%00", "app.js%00", "a" * 300, "a" * 5_000, "..%2f", "..%2fapp.py", "%2e%2e", "%2e%2e/app.py", "%2e%2e%2fapp.py"),
    *("../app.py", "....//app.py", "..%5capp.py", "%252e%252e%252fapp.py", "/etc/passwd", "%2fetc%2fpasswd", "", "."),
    *(".git/config", "%ff", "app.js/xyzzy", "APP.JS", "xyzzy.js", "//", "%2e", "app.js%0a", "con"),
)
OTHER_TARGETS = (
    "/xyzzy",
    "//",
    "//cards",
    "/%00",
    "/%2e%2e/app.py",
    "/ask/xyzzy",
    "/cardsxyzzy",
    "/.env",
    "/" + "a" * 9_000,
)


def attempts() -> Iterator[Attempt]:
    for path in ("/ask", "/search"):
        for name, (content, statuses, slug) in JSON_BODIES.items():
            yield Attempt(f"JSON {path} {name}", "POST", path, statuses, slug, content, JSON)
    for name, (content, statuses, slug) in FORM_BODIES.items():
        yield Attempt(f"form {name}", "POST", "/ask", statuses, slug, content, FORM)
        yield Attempt(f"query {name}", "GET", b"/ask?" + content, statuses, slug)
    yield Attempt("query bare bytes", "GET", "/ask?q=xyzzyñ".encode(), (400,), None)
    for kind in (
        None,
        "",
        "text/plain",
        "text/json",
        "application/jsonp",
        "multipart/form-data; boundary=xyzzy",
        "*/*",
    ):
        yield Attempt(f"type {kind}", "POST", "/ask", (415,), "unsupported-media-type", body(), kind)
    for number, name in enumerate(CARD_NAMES):
        statuses = (404,) if name.isascii() else (400, 404)
        yield Attempt(f"card {number} {name[:40]}", "GET", f"/cards/{name}", statuses, "not-found")
    for number, name in enumerate(STATIC_NAMES):
        yield Attempt(f"static {number} {name[:40]}", "GET", f"/static/{name}", (404,), "not-found")
        yield Attempt(f"version {number} {name[:40]}", "GET", f"/static/0/{name}", (404,), "not-found")
    for target in OTHER_TARGETS:
        yield Attempt(f"path {target[:40]}", "GET", target, (404,), "not-found")
    for size in (65_537, 200_000):
        content = question("a" * (size - 16))
        yield Attempt(f"{size} bytes", "POST", "/ask", (413,), "body-too-large", content, JSON)


ATTEMPTS = list(attempts())


def test_the_table_of_hostile_requests_is_long() -> None:
    """There are at least 150 hostile requests, each under a name of its own."""
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS) >= 150


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name.encode("ascii", "replace").decode())
def test_hostile_requests_get_a_clear_problem(server: Server, attempt: Attempt) -> None:
    """Each hostile request gets its own 4xx as a problem with a stable type, the security headers, and no echo."""
    reply = send(server, attempt)
    assert reply.status in attempt.statuses, reply.body[:300]
    if reply.headers.get("content-type", "").startswith("text/plain"):
        return  # refused below the application, as no HTTP at all
    check_envelope(reply.headers)
    check_problem(reply, attempt.slug)


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


HEAD_OF_CHUNKED = b"POST /ask HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
HEAD_OF_CHUNKED += b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "pieces", [(b'{"question": "', b"a" * 70_000, b'"}'), (b"a" * 1_000,) * 70], ids=["one", "many"]
)
def test_a_chunked_body_is_bounded_too(server: Server, pieces: tuple[bytes, ...]) -> None:
    """A body over 64 KiB without a declared length is 413 as well."""
    reply = exchange(server, HEAD_OF_CHUNKED + chunked(*pieces), "POST")
    assert reply.status == 413
    check_problem(reply, "body-too-large")


def test_a_small_chunked_body_is_read(server: Server) -> None:
    """A question in chunks is a question."""
    pieces = question(EMPTY_STOMACH)
    reply = exchange(server, HEAD_OF_CHUNKED + chunked(pieces[:9], pieces[9:20], pieces[20:]), "POST")
    assert reply.status == 200
    assert json.loads(reply.body)["question"] == EMPTY_STOMACH


BROKEN_HTTP: dict[str, bytes] = {
    "no HTTP": b"xyzzy\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "header without colon": b"GET / HTTP/1.1\r\nHost: a\r\nxyzzy\r\n\r\n",
    "NUL in a header": b"GET / HTTP/1.1\r\nHost: a\r\nX: \0xyzzy\r\n\r\n",
    "huge header": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "bad chunk size": HEAD_OF_CHUNKED + b"xyzzy\r\n\r\n",
    "negative length": b"POST /ask HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "two lengths": b"POST /ask HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "space in the path": b"GET /cards/a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "cut body": b"POST /ask HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
}


@pytest.mark.parametrize("data", BROKEN_HTTP.values(), ids=BROKEN_HTTP.keys())
def test_what_is_no_http_does_no_harm(server: Server, client: httpx.Client, data: bytes) -> None:
    """Bytes that are no request get a 4xx or a closed connection, and the service goes on."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            first = connection.recv(64)
        except ConnectionError:
            first = b""
    assert first == b"" or first.startswith(b"HTTP/1.1 4"), first
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("target", ["/cards/", "/ask/?q=xyzzy", "/healthz/", "/search/", "/v1/models/"])
def test_no_reply_sends_the_caller_to_a_host_of_its_own(server: Server, target: str) -> None:
    """A path with a slash too many gives back neither the Host that was sent nor the question."""
    data = f"GET {target} HTTP/1.1\r\nHost: {CANARY}.invalid\r\nConnection: close\r\n\r\n".encode()
    reply = exchange(server, data)
    assert reply.status < 500
    assert CANARY not in repr(reply.headers)


ODD_QUESTIONS: dict[str, str] = {
    "markup": "<img src=x onerror=alert(7)> ¿agua?",
    "template": "{nombre} {} {0.__class__} %s ${agua}",
    "marker": f"[cite:{STAFF_CARD}] agua",
    "NUL inside": "agua\0agua",
    "line separators": "agua\u2028agua\u2029\x85agua",
    "right to left": "\u202eagua",
    "decomposed": "¿co\u0301mo guardo la insulina?",
    "soft hyphens": "insu\u00adlina",
    "many accents": "a" + "\u0301" * 500,
    "other scripts": "药物怎么保存?",
    "to the last character": "a" * 2_000,
    "astral": "𝒂𝒈𝒖𝒂 " * 300,
    "digits": "7" * 2_000,
    "newlines": "agua\r\n\r\nSet-Cookie: a=b",
}


@pytest.mark.parametrize("text", ODD_QUESTIONS.values(), ids=ODD_QUESTIONS.keys())
def test_odd_questions_are_questions(client: httpx.Client, text: str) -> None:
    """A question with odd characters is answered or refused, and comes back exactly as it was asked, as JSON."""
    for path in ("/ask", "/search"):
        response = client.post(path, json={"question": text})
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        assert response.json()["question"] == text
        check_envelope(response.headers)


@pytest.mark.parametrize("path", ["/ask", "/search"])
def test_a_question_that_is_longer_than_the_model_reads_is_said_to_be(client: httpx.Client, path: str) -> None:
    """Within the limit of characters a question may have more tokens than the model takes, and the reply says so."""
    replies = [client.post(path, json={"question": text}) for text in ("¿Qué es?", "¿Q. é?" * 300)]
    assert [reply.json()["question_truncated"] for reply in replies] == [False, True]


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json;"])
def test_the_type_may_have_parameters(server: Server, kind: str) -> None:
    """application/json counts in any case and with parameters."""
    assert send(server, Attempt("", "POST", "/ask", (200,), None, body(), kind)).status == 200
