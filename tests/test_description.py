"""GET /openapi.json: it describes every route, and what routes really reply is as it says."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import jsonschema_rs
import pytest
import schemathesis
from starlette.applications import Starlette
from starlette.routing import Route

from app import create_app
from rag.serving.description import describe
from rag.serving.engine import Engine
from rag.serving.envelope import HEAD_LIMIT_BYTES
from rag.serving.problems import slugs_of
from rag.serving.questions import (
    ANSWER_LIMIT_CHARS,
    BODY_LIMIT_BYTES,
    QUESTION_LIMIT_CHARS,
    TOP_K_LIMIT,
    TURNS_LIMIT,
)
from rag.settings import Settings
from tests.conftest import ROOT, STAFF_TOKEN, Server, running
from tests.fake_llm import FakeLlm, says

DOCUMENT = describe()
EMPTY_STOMACH = "¿se supone que debo tomarlo con el estómago vacío?"
OFF_TOPIC = "¿quién ganó la liga en 1998?"
WRITTEN = (
    "El agua sola no rompe el ayuno y es la bebida adecuada para tragar un medicamento en ayunas. "
    "[cite:estomago-vacio] Los caramelos de menta rompen siempre el ayuno de tres semanas. "
    "[cite:estomago-vacio] [cite:no-hay]"
)
CHAT = "/v1/chat/completions"


def resolved(found: Any) -> Any:
    """A part of the document, wherever it is described."""
    if "$ref" in found:
        _, _, kind, name = found["$ref"].split("/")
        return DOCUMENT["components"][kind][name]
    return found


def check(schema: Mapping[str, Any], value: Any) -> None:
    """A value is as a schema of the document says."""
    whole = {**schema, "components": DOCUMENT["components"]}
    errors = [
        f"{'/'.join(map(str, error.instance_path))}: {error.message[:300]}"
        for error in jsonschema_rs.Draft202012Validator(whole, validate_formats=True).iter_errors(value)
    ]
    assert not errors


@dataclass(frozen=True, slots=True)
class Call:
    """A request to an operation of the document, and the status that it should get."""

    status: int
    method: str
    path: str
    """As the document has it."""
    target: str = ""
    """What is really asked for, where it differs."""
    json: Any = None
    form: Mapping[str, str] | None = None
    content: bytes | None = None
    headers: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.status} {self.method} {self.target or self.path} {json.dumps(self.json or self.form or [])[:40]}"


def send(client: httpx.Client, call: Call) -> httpx.Response:
    more: dict[str, Any] = {"json": call.json} if call.json is not None else {}
    more |= {"data": call.form} if call.form else {"content": call.content} if call.content else {}
    headers = [(name.encode(), value.encode("latin-1")) for name, value in (call.headers or {}).items()]
    return client.request(call.method, call.target or call.path, headers=headers, **more)


def check_reply(call: Call, response: httpx.Response) -> None:
    """A reply has a status, headers, a type and a body that the document knows for its operation."""
    operation = DOCUMENT["paths"][call.path][call.method.lower()]
    assert response.status_code == call.status, response.text[:300]
    described = resolved(operation["responses"][str(call.status)])
    for name, header in described["headers"].items():
        check(resolved(header)["schema"], response.headers[name])
    kind = response.headers.get("content-type", "").partition(";")[0]
    if "content" not in described:
        assert not response.content
        return
    kinds = described["content"]
    schema = kinds[kind if kind in kinds else "*/*"]["schema"]
    if kind == "text/event-stream":
        check_events(schema, response.text)
    elif kind.endswith("json"):
        check(schema, response.json())
    else:
        check(schema, response.text)


def check_events(schema: Mapping[str, Any], text: str) -> None:
    """Each event is one of those described, its data included."""
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    assert blocks
    for block in blocks:
        event = dict(line.split(": ", 1) for line in block.split("\n"))
        assert any(is_event(kind, event) for kind in schema["anyOf"]), block[:300]


def is_event(kind: Mapping[str, Any], event: Mapping[str, str]) -> bool:
    """Whether an event is of a kind; validators leave it to us to look into its data."""
    try:
        check(kind, event)
        coded = kind["properties"]["data"].get("contentSchema")
        if coded:
            check(coded, json.loads(event["data"]))
    except (AssertionError, ValueError):
        return False
    return set(event) == set(kind["properties"])


# the document


def test_every_route_is_described_and_nothing_else() -> None:
    """The paths and methods of the document are those of the application, HEAD and OPTIONS apart."""
    application: Any = create_app(Settings(), cast(Engine, None))
    routes = cast(Starlette, application.app).routes
    served = {
        (route.path, method)
        for route in routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert len(routes) == len(DOCUMENT["paths"])
    assert served == {(path, method.upper()) for path, methods in DOCUMENT["paths"].items() for method in methods}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_is_an_openapi_document() -> None:
    """The document is valid by the schema of OpenAPI 3.1, and each of its schemas can be used."""
    assert DOCUMENT["openapi"].startswith("3.1.")
    schemathesis.openapi.from_dict(DOCUMENT).validate()
    for name in DOCUMENT["components"]["schemas"]:
        check({"anyOf": [{"$ref": f"#/components/schemas/{name}"}, {}]}, None)


def parts(found: Any) -> Iterator[dict[str, Any]]:
    """All objects of a document."""
    if isinstance(found, dict):
        yield found
    for part in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from parts(part)


def test_every_reference_leads_somewhere_and_every_part_is_used() -> None:
    """No reference is broken, no component is left over, and no two operations share an id."""
    wanted = {part["$ref"] for part in parts(DOCUMENT) if isinstance(part.get("$ref"), str)}
    there = {
        f"#/components/{kind}/{name}"
        for kind, entries in DOCUMENT["components"].items()
        for name in entries
        if kind != "securitySchemes"
    }
    assert wanted == there
    ids = [operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()]
    assert len(set(ids)) == len(ids)


def test_it_gives_the_limits_that_hold() -> None:
    """The limits that callers are told are those of the code."""
    post = DOCUMENT["paths"]["/ask"]["post"]["requestBody"]
    asked = post["content"]["application/json"]["schema"]["properties"]
    turn = asked["history"]["items"]["properties"]
    assert (asked["question"]["maxLength"], turn["question"]["maxLength"]) == (QUESTION_LIMIT_CHARS,) * 2
    assert (asked["top_k"]["minimum"], asked["top_k"]["maximum"]) == (1, TOP_K_LIMIT)
    assert (asked["history"]["maxItems"], turn["answer"]["maxLength"]) == (TURNS_LIMIT, ANSWER_LIMIT_CHARS)
    assert f"{BODY_LIMIT_BYTES:,} bytes" in post["description"]


def test_its_version_is_that_of_the_project() -> None:
    """``info.version`` is the version in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert DOCUMENT["info"]["version"] == project["version"]


def raised() -> Iterator[tuple[int, str]]:
    """The status and the slug of each problem that the code makes, where both are written there."""
    for path in (ROOT / "app.py", *sorted((ROOT / "rag" / "serving").glob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem":
                status, slug = node.args[:2]
                if isinstance(status, ast.Constant) and isinstance(slug, ast.Constant):
                    yield cast(int, status.value), cast(str, slug.value)


def test_problems_have_the_statuses_that_are_described() -> None:
    """Every problem that the code raises is described under the status that it has."""
    found = set(raised())
    assert len(found) >= 12
    assert not {(status, slug) for status, slug in found if slug not in slugs_of(status)}


def test_it_costs_its_readers_little(client: httpx.Client) -> None:
    """The document is compressed, has a tag, and is not sent to those who have it; HEAD has no body."""
    first = client.get("/openapi.json")
    assert first.json() == DOCUMENT
    assert first.headers["content-type"] == "application/json"
    assert first.headers["content-encoding"] == "gzip"
    tag = first.headers["etag"]
    again = client.get("/openapi.json", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    head = client.head("/openapi.json")
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)


# real replies

QUESTION = {"question": EMPTY_STOMACH}
MESSAGES = {"messages": [{"role": "user", "content": EMPTY_STOMACH}]}
WRONG = {"Authorization": "Bearer xyzzy"}
STAFF = {"Authorization": f"Bearer {STAFF_TOKEN}"}
JSON_TYPE, PLAIN_TYPE = {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}
TOO_LARGE = b'{"question": "' + b"a" * BODY_LIMIT_BYTES + b'"}'
TWO_LENGTHS = {"Content-Length": "2", "Transfer-Encoding": "chunked"}
HUGE_HEAD = {"X-Filler": "a" * HEAD_LIMIT_BYTES}
FOLLOWING = {"question": "¿y con café?", "history": [{"question": EMPTY_STOMACH, "answer": "No."}]}

CALLS = [
    Call(200, "GET", "/"),
    Call(304, "GET", "/", headers={"If-None-Match": "*"}),
    Call(200, "GET", "/ask", "/ask?q=agua&top_k=2&stream=false"),
    Call(200, "GET", "/ask", "/ask?q=agua&stream=1"),
    Call(400, "GET", "/ask", "/ask?q=%ff"),
    Call(401, "GET", "/ask", "/ask?q=agua", headers=WRONG),
    Call(422, "GET", "/ask", "/ask?q="),
    *(
        Call(200, "POST", path, json=asked)
        for path in ("/ask", "/search")
        for asked in (QUESTION, {"question": OFF_TOPIC, "top_k": 20, "stream": None, "history": []})
    ),
    Call(200, "POST", "/ask", json=QUESTION, headers=STAFF),
    Call(200, "POST", "/ask", json=FOLLOWING),
    Call(200, "POST", "/ask", json={**QUESTION, "stream": True}),
    Call(200, "POST", "/ask", json={**FOLLOWING, "stream": True}),
    Call(200, "POST", "/ask", json={"question": OFF_TOPIC, "stream": True}),
    *(
        call
        for path in ("/ask", "/search")
        for call in (
            Call(200, "POST", path, form={"q": "agua", "top_k": "2", "stream": "false"}),
            Call(400, "POST", path, content=b"{", headers=JSON_TYPE),
            Call(401, "POST", path, json=QUESTION, headers=WRONG),
            Call(413, "POST", path, content=TOO_LARGE, headers=JSON_TYPE),
            Call(415, "POST", path, content=b"agua", headers=PLAIN_TYPE),
            Call(422, "POST", path, json={"question": "a" * (QUESTION_LIMIT_CHARS + 1)}),
            Call(422, "POST", path, json={"question": "¿?"}),
            Call(422, "POST", path, json={}),
            Call(422, "POST", path, json={**QUESTION, "top_k": 0}),
        )
    ),
    Call(200, "POST", CHAT, json=MESSAGES),
    Call(200, "POST", CHAT, json={**MESSAGES, "stream": True, "stream_options": {"include_usage": True}}),
    Call(200, "POST", CHAT, json={"messages": [{"role": "user", "content": OFF_TOPIC}], "stream": True}),
    Call(400, "POST", CHAT, json={"messages": []}),
    Call(400, "POST", CHAT, json={**MESSAGES, "n": 2}),
    Call(401, "POST", CHAT, json=MESSAGES, headers=WRONG),
    Call(404, "POST", CHAT, json={**MESSAGES, "model": "xyzzy"}),
    Call(413, "POST", CHAT, content=TOO_LARGE, headers=JSON_TYPE),
    Call(415, "POST", CHAT, content=b"agua", headers=PLAIN_TYPE),
    Call(200, "GET", "/v1/models"),
    Call(401, "GET", "/v1/models", headers=WRONG),
    Call(200, "GET", "/cards"),
    Call(401, "GET", "/cards", headers=WRONG),
    Call(200, "GET", "/cards/{card_id}", "/cards/pomelo"),
    Call(404, "GET", "/cards/{card_id}", "/cards/none"),
    Call(401, "GET", "/cards/{card_id}", "/cards/pomelo", headers=WRONG),
    Call(200, "GET", "/cards/{card_id}.md", "/cards/pomelo.md"),
    Call(404, "GET", "/cards/{card_id}.md", "/cards/none.md"),
    Call(200, "GET", "/suggestions"),
    Call(200, "GET", "/suggestions", "/suggestions?language=en", headers=STAFF),
    Call(400, "GET", "/suggestions", "/suggestions?language=%ff"),
    Call(422, "GET", "/suggestions", "/suggestions?language=fr"),
    Call(200, "GET", "/whoami", headers=STAFF),
    Call(401, "GET", "/whoami", headers=WRONG),
    Call(200, "GET", "/healthz"),
    Call(200, "GET", "/readyz"),
    Call(200, "GET", "/metrics"),
    Call(200, "GET", "/openapi.json"),
    Call(304, "GET", "/openapi.json", headers={"If-None-Match": "*"}),
    Call(200, "GET", "/static/{name}", "/static/app.js"),
    Call(200, "GET", "/static/{name}", "/static/icon.svg"),
    Call(404, "GET", "/static/{name}", "/static/none"),
    Call(200, "GET", "/static/{version}/{name}", "/static/0/style.css"),
    Call(404, "GET", "/static/{version}/{name}", "/static/0/none"),
]


def test_every_operation_is_called() -> None:
    """The calls below reach each operation, and each status that a request alone can bring about."""
    reached = {(call.path, call.method.lower(), str(call.status)) for call in CALLS}
    described = {
        (path, method, status)
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
        for status in operation["responses"]
    }
    assert {(path, method, "200") for path, method, _ in described} <= reached <= described


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_replies_are_as_described(client: httpx.Client, call: Call) -> None:
    """Status, headers, type and body of a real reply are those that the document gives for its operation."""
    check_reply(call, send(client, call))


@pytest.fixture(scope="module")
def writing(sample_index_dir: Path) -> Iterator[Server]:
    """A service whose language model says something true, something that no card says, and names a card too many."""
    with FakeLlm(lambda _: says(WRITTEN)) as fake:
        settings = {"FICHERO_LLM_BASE_URL": fake.url, "FICHERO_LLM_MODEL": "uno", "FICHERO_LLM_IDLE_SECONDS": "1"}
        with running({"FICHERO_INDEX_DIR": str(sample_index_dir), **settings}) as started:
            yield started


@pytest.mark.parametrize(
    "call",
    [
        Call(200, "POST", "/ask", json={**QUESTION, "stream": True}),
        Call(200, "POST", "/ask", json=QUESTION),
        Call(200, "POST", CHAT, json=MESSAGES),
        Call(200, "POST", CHAT, json={**MESSAGES, "stream": True}),
    ],
    ids=str,
)
def test_what_a_model_writes_is_as_described(writing: Server, call: Call) -> None:
    """Answers that a language model writes, or fails to write, have the same shape."""
    with httpx.Client(base_url=writing.url, timeout=30) as caller:
        check_reply(call, send(caller, call))


def test_what_cannot_be_served_at_all_is_as_described() -> None:
    """On every route: 503 while nothing is loaded, 500 after a fault, 431 and 400 for a wrong head, as described."""

    class Broken:
        writes = False

        @property
        def loaded(self) -> object:
            raise RuntimeError("xyzzy")

    async def call_all(engine: Engine, status: int, headers: Mapping[str, str]) -> int:
        transport = httpx.ASGITransport(create_app(Settings(), engine), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as caller:
            calls = list(calls_with(status))
            for call in calls:
                check_reply(call, await caller.request(call.method, call.target, json=call.json))
            return len(calls)

    assert asyncio.run(call_all(Engine(Settings()), 503, {})) == 9
    assert asyncio.run(call_all(cast(Engine, Broken()), 500, {})) == 9
    for status, headers in ((431, HUGE_HEAD), (400, TWO_LENGTHS)):
        assert asyncio.run(call_all(Engine(Settings()), status, headers)) == len(list(calls_with(status)))


def calls_with(status: int) -> Iterator[Call]:
    """A call of each operation that can reply so whatever is asked; a fault needs what would be ready."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if str(503 if status == 500 else status) in operation["responses"]:
                body = (MESSAGES if path == CHAT else QUESTION) if method == "post" else None
                target = f"{path}?q=agua" if (path, method) == ("/ask", "get") else re.sub(r"\{.*?\}", "a", path)
                yield Call(status, method, path, target, body)
