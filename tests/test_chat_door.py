"""Chat clients at the door for them: the same answers in their shape, whole and in pieces, and the same refusals."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from app import create_app
from rag.answering import CitationShown, Event, SourcesFound, TextShown, shown_of
from rag.records import Answer, CardLink, Citation, CitationSegment, Refusal, TextSegment
from rag.serving.chat.reading import IGNORED_ROLES
from rag.serving.chat.replies import chunk_blocks, completion
from rag.serving.chat.wording import Wording, content_of, plain_text, without_numbers
from rag.serving.engine import Engine
from rag.serving.identity import PUBLIC_KEYS
from rag.serving.problems import Problem
from rag.settings import Settings
from tests.conftest import Server, running
from tests.fake_llm import Asked, FakeLlm, Reply, says
from tests.faulty_llm import FaultyLlm

EMPTY_STOMACH = "¿se supone que debo tomarlo con el estómago vacío?"
OFF_TOPIC = "¿quién ganó la liga en 1998?"
STAFF_CARD = "personal-corte-nevera"
STAFF_QUESTION = "Si la nevera averiada marca 11 °C, ¿se dispensa y a quién se avisa de guardia?"
CANARY = "xyzzy"
"""Stands in every request that is refused; no error may give it back."""
# what a model says of the card estomago-vacio: of a sentence that is not there a reader is warned
WATER = "El agua sola no rompe el ayuno y es la bebida adecuada para tragar un medicamento en ayunas."
MILK = "La leche, el zumo, el café y las galletas cuentan como comida cuando el prospecto pide el estómago vacío."
INVENTED = "Los caramelos de menta rompen siempre el ayuno de tres semanas."
WRITTEN = " ".join(f"{said} [cite:estomago-vacio]" for said in (WATER, INVENTED, MILK))
NOT_CONFIRMED = "(sin comprobar: la ficha no lo dice así)"

STAFF_KEY = "clave-del-personal"
"""Of ASCII alone, as the client sends no other."""


@dataclass(frozen=True, slots=True)
class Writing:
    """A service with a language model, and the model's side."""

    server: Server
    fake: FakeLlm


def client_of(server: Server, key: str = "public") -> openai.OpenAI:
    """A client that tries once."""
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=30)


@pytest.fixture(scope="module")
def writing(sample_index_dir: Path) -> Iterator[Writing]:
    """The model says ``WRITTEN``; ``STAFF_KEY`` opens the staff's cards."""
    tokens = {"FICHERO_TOKENS": f"{hashlib.sha256(STAFF_KEY.encode()).hexdigest()}=staff"}
    with FakeLlm(in_the_form_asked_for) as fake, running(with_model(sample_index_dir, fake.url) | tokens) as started:
        yield Writing(started, fake)


@pytest.fixture
def chat(server: Server) -> Iterator[openai.OpenAI]:
    """A client without a token."""
    with client_of(server) as client:
        yield client


def whole(client: openai.OpenAI, *messages: str | dict[str, Any], **more: Any) -> ChatCompletion:
    """A whole reply to these messages; a text is the user's."""
    made = [{"role": "user", "content": said} if isinstance(said, str) else said for said in messages]
    return cast(ChatCompletion, client.chat.completions.create(model="fichero", messages=cast(Any, made), **more))


def chunks(client: openai.OpenAI, *messages: str, **more: Any) -> list[ChatCompletionChunk]:
    """A reply to these messages of the user as it comes."""
    return list(cast(Any, whole(client, *messages, stream=True, **more)))


def text_of(reply: ChatCompletion | Sequence[ChatCompletionChunk]) -> str:
    """What a client shows."""
    if isinstance(reply, ChatCompletion):
        return reply.choices[0].message.content or ""
    return "".join(choice.delta.content or "" for chunk in reply for choice in chunk.choices)


def answer_in(reply: ChatCompletion | Sequence[ChatCompletionChunk]) -> Any:
    """The answer object that goes along."""
    found = reply if isinstance(reply, ChatCompletion) else next(chunk for chunk in reply if chunk.model_extra)
    return (found.model_extra or {})["fichero"]


# answers


def test_a_whole_answer_is_a_completion(chat: openai.OpenAI, client: httpx.Client) -> None:
    """A completion holds the text of /ask with numbers for markers, the cards they mean, and the answer object."""
    reply = whole(chat, EMPTY_STOMACH)
    answer = answer_in(reply)
    asked = client.post("/ask", json={"question": EMPTY_STOMACH}).json()
    assert {**answer, "request_id": "", "timings_ms": {}} == {**asked, "request_id": "", "timings_ms": {}}
    text, _, sources = text_of(reply).partition("\n\nFuentes:\n")
    marked = answer["answer"]
    for cited in answer["citations"]:
        marked = marked.replace(f"[cite:{cited['card_id']}]", f"[{cited['number']}]")
    assert text == marked
    titles = {cited["number"]: f"{cited['title']} — {cited['card_id']}" for cited in answer["citations"]}
    assert sources.split("\n") == [f"[{number}] {said}" for number, said in sorted(titles.items())]
    assert (reply.id, reply.object, reply.model) == (f"chatcmpl-{answer['request_id']}", "chat.completion", "fichero")
    assert [choice.finish_reason for choice in reply.choices] == ["stop"]
    assert reply.usage
    assert reply.usage.prompt_tokens == len(EMPTY_STOMACH.split())
    assert reply.usage.completion_tokens == len(text_of(reply).split())
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_a_stream_says_the_same(chat: openai.OpenAI) -> None:
    """The contents of the chunks together are the whole reply's; the last ones say that it ends, and what it counts."""
    reply = chunks(chat, EMPTY_STOMACH, stream_options={"include_usage": True})
    full = whole(chat, EMPTY_STOMACH)
    assert text_of(reply) == text_of(full)
    assert answer_in(reply)["segments"] == answer_in(full)["segments"]
    assert reply[0].choices[0].delta.role == "assistant"
    assert [choice.finish_reason for chunk in reply for choice in chunk.choices if choice.finish_reason] == ["stop"]
    assert len({(chunk.id, chunk.created, chunk.model, chunk.object) for chunk in reply}) == 1
    assert [chunk.usage for chunk in reply] == [None] * (len(reply) - 1) + [full.usage]
    assert all(chunk.usage is None for chunk in chunks(chat, EMPTY_STOMACH))


def test_a_stream_is_events_to_the_byte(client: httpx.Client) -> None:
    """A stream begins with a comment, holds one line of data an event, and ends in [DONE]."""
    content = {"messages": [{"role": "user", "content": EMPTY_STOMACH}], "stream": True}
    response = client.post("/v1/chat/completions", json=content)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    comment, *events, end = response.text.split("\n\n")
    assert comment.startswith(":")
    assert end == ""
    assert events[-1] == "data: [DONE]"
    assert all(event.startswith("data: {") and "\n" not in event for event in events[:-1])


def test_a_refusal_is_content(chat: openai.OpenAI) -> None:
    """A refusal comes as text with the titles of the nearest cards, in the language of the question."""
    for question, nearest in ((OFF_TOPIC, "Fichas más cercanas:"), ("Who won the cup in 1998?", "Nearest cards:")):
        reply = whole(chat, question)
        answer = answer_in(reply)
        titles = [f"- {card['title']}" for card in answer["refusal"]["nearest"]]
        assert titles
        assert text_of(reply) == "\n".join([answer["answer"], "", nearest, *titles])
        assert text_of(chunks(chat, question)) == text_of(reply)


def test_what_was_said_before_completes_a_question(chat: openai.OpenAI) -> None:
    """A question that needs the one before it is answered with it, and not without."""
    before, question = "¿Qué hago si olvido una dosis?", "¿y si fue ayer?"
    first = whole(chat, before)
    said = {"role": "assistant", "content": text_of(first)}
    reply = whole(chat, {"role": "system", "content": CANARY}, before, said, question)
    assert answer_in(whole(chat, question))["refusal"]
    assert answer_in(reply)["searched"] == f"{before} {question}"
    assert answer_in(reply)["citations"]


def test_content_may_come_in_parts(chat: openai.OpenAI) -> None:
    """Parts that are texts are one text, as is what a chat client adds that means nothing here."""
    parts = [{"type": "text", "text": text} for text in EMPTY_STOMACH.split(" ", 1)]
    reply = whole(chat, {"role": "user", "content": parts}, temperature=0.2, max_tokens=5, n=1, user=CANARY)
    assert answer_in(reply)["question"] == EMPTY_STOMACH.replace(" ", "\n", 1)
    assert answer_in(reply)["citations"]


def test_messages_that_ask_nothing_are_ignored(chat: openai.OpenAI) -> None:
    """What is said in another role is no part of the question, whatever it holds, nor is what stands behind it."""
    others = [{"role": role, "content": CANARY, "tool_call_id": "1", "name": "a"} for role in IGNORED_ROLES]
    reply = whole(chat, *others, EMPTY_STOMACH, *others, {"role": "assistant", "content": "Tómelo"})
    assert text_of(reply) == text_of(whole(chat, EMPTY_STOMACH))


def test_a_long_conversation_is_cut(client: httpx.Client) -> None:
    """Of a conversation the last turns count, and of a long message its beginning: no client has to cut anything."""
    pair = [{"role": "user", "content": "agua"}, {"role": "assistant", "content": "sí"}]
    long = [{"role": "user", "content": "a" * 9_000}, {"role": "assistant", "content": "a" * 20_000}]
    last = {"role": "user", "content": EMPTY_STOMACH}
    response = client.post("/v1/chat/completions", json={"messages": [*pair * 100, *long, last]})
    assert response.status_code == 200
    assert response.json()["fichero"]["citations"]


def test_the_models_are_one(chat: openai.OpenAI, client: httpx.Client) -> None:
    """The list of models holds the name that requests may give, and a request may leave it out."""
    assert [model.id for model in chat.models.list()] == ["fichero"]
    content = {"messages": [{"role": "user", "content": EMPTY_STOMACH}]}
    assert client.post("/v1/chat/completions", json=content).json()["model"] == "fichero"


def test_answers_are_counted(chat: openai.OpenAI, client: httpx.Client) -> None:
    """An answer given through this door counts as any other."""

    def counted() -> float:
        line = next(line for line in client.get("/metrics").text.splitlines() if line.startswith(COUNT))
        return float(line.removeprefix(COUNT))

    whole(chat, EMPTY_STOMACH)
    before = counted()
    whole(chat, EMPTY_STOMACH)
    chunks(chat, EMPTY_STOMACH)
    assert counted() == before + 2


COUNT = 'fichero_answers_total{mode="extractive",outcome="answered"} '


# identity


def test_the_key_is_the_token(writing: Writing) -> None:
    """With the staff's token as key a staff card is cited; with the public's key nothing tells that it is there."""
    for key, times in ((STAFF_KEY, 1), ("public", 0)):
        with client_of(writing.server, key) as client:
            reply = whole(client, STAFF_QUESTION)
            streamed_reply = chunks(client, STAFF_QUESTION)
        assert text_of(reply).count(f"— {STAFF_CARD}") == times
        assert text_of(streamed_reply) == text_of(reply)
        assert (STAFF_CARD in reply.to_json()) == bool(times)


@pytest.mark.parametrize("value", ["Bearer", "Bearer public", "bearer  public ", *(f"Bearer {k}" for k in PUBLIC_KEYS)])
def test_some_keys_stand_for_none(server: Server, value: str) -> None:
    """A client that has to send a key is served as the public with these, on the routes for such clients alone."""
    headers = {"Authorization": value.strip()}
    assert httpx.get(f"{server.url}/v1/models", headers=headers).status_code == 200
    assert httpx.get(f"{server.url}/cards", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "value", ["Bearer xyzzy", "Bearer PUBLIC", "Bearer public public", "public", "Basic public", ""]
)
def test_other_keys_are_refused(server: Server, value: str) -> None:
    """A key that is not known is 401 before anything is read, in the shape that clients know."""
    bodies = set()
    for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions")):
        response = httpx.request(method, f"{server.url}{path}", headers={"Authorization": value}, content=b"{")
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        bodies.add(response.text)
    [told] = bodies
    assert json.loads(told)["error"]["code"] == "invalid_api_key"
    assert CANARY not in told


def test_a_wrong_key_is_an_authentication_error(server: Server) -> None:
    """The client tells a wrong key from everything else, for each of its calls."""
    with client_of(server, CANARY) as client:
        with pytest.raises(openai.AuthenticationError):
            client.models.list()
        with pytest.raises(openai.AuthenticationError) as caught:
            chunks(client, EMPTY_STOMACH)
    assert caught.value.code == "invalid_api_key"


# errors

USER = {"role": "user", "content": f"agua {CANARY}"}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no messages": ({"messages": []}, "messages", "question_empty"),
    "null messages": ({"messages": None}, "messages", "invalid_request"),
    "messages a text": ({"messages": CANARY}, "messages", "invalid_request"),
    "nobody asks": ({"messages": [{"role": "system", "content": CANARY}]}, "messages", "question_empty"),
    "a message a text": ({"messages": [CANARY]}, "messages[0]", "invalid_request"),
    "no role": ({"messages": [USER, {"content": CANARY}]}, "messages[1].role", "invalid_request"),
    "role of none": ({"messages": [{"role": CANARY, "content": CANARY}]}, "messages[0].role", "invalid_request"),
    "role a list": ({"messages": [{"role": [CANARY], "content": CANARY}]}, "messages[0].role", "invalid_request"),
    "null content": ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "invalid_request"),
    "content a number": ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content", "invalid_request"),
    "a picture": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": CANARY}}]}]},
        "messages[0].content",
        "invalid_request",
    ),
    "a picture before": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": CANARY}, {"type": CANARY}]}, USER]},
        "messages[0].content",
        "invalid_request",
    ),
    "a part without text": (
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content",
        "invalid_request",
    ),
    "no parts": ({"messages": [{"role": "user", "content": []}]}, "messages", "question_empty"),
    "blank": ({"messages": [USER, {"role": "user", "content": " \n"}]}, "messages", "question_empty"),
    "signs": ({"messages": [{"role": "user", "content": "¿?"}]}, "messages", "question_without_words"),
    "too long": ({"messages": [{"role": "user", "content": CANARY * 401}]}, "messages", "question_too_long"),
    "two answers": ({"messages": [USER], "n": 2}, "n", "invalid_request"),
    "n a truth": ({"messages": [USER], "n": True}, "n", "invalid_request"),
    "stream a text": ({"messages": [USER], "stream": CANARY}, "stream", "invalid_request"),
    "stream a number": ({"messages": [USER], "stream": 1}, "stream", "invalid_request"),
    "options a text": ({"messages": [USER], "stream_options": CANARY}, "stream_options", "invalid_request"),
    "usage a text": (
        {"messages": [USER], "stream_options": {"include_usage": CANARY}},
        "stream_options.include_usage",
        "invalid_request",
    ),
    "model a number": ({"messages": [USER], "model": 7}, "model", "invalid_request"),
}


@pytest.mark.parametrize(("content", "parameter", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_read_names_the_parameter(
    server: Server, content: dict[str, Any], parameter: str, code: str
) -> None:
    """A request that cannot be read is 400 with the parameter and a code, and without a word of the request."""
    with client_of(server) as client, pytest.raises(openai.BadRequestError) as caught:
        client.post("/chat/completions", body=content, cast_to=object)
    error = caught.value
    assert (error.param, error.code, error.type) == (parameter, code, "invalid_request_error")
    assert CANARY not in error.response.text


def test_other_models_are_not_found(chat: openai.OpenAI) -> None:
    """Another model than the one there is is 404, as clients expect, before the messages are looked at."""
    with pytest.raises(openai.NotFoundError) as caught:
        chat.chat.completions.create(model=CANARY, messages=[])
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert CANARY not in caught.value.response.text


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_request"),
        (b"[]", "application/json", 400, "invalid_request"),
        (b'{"messages": ["\\ud800xyzzy"]}', "application/json", 400, "invalid_request"),
        (b"[" * 30_000, "application/json", 400, "invalid_request"),
        (b"q=xyzzy", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b" " * 65_537, "application/json", 413, "body_too_large"),
    ],
    ids=["cut", "a list", "a surrogate", "deep", "a form", "too large"],
)
def test_bodies_are_refused_in_the_same_shape(
    client: httpx.Client, content: bytes, kind: str, status: int, code: str
) -> None:
    """A body that is none gets the status that it gets elsewhere, and an error that chat clients can read."""
    response = client.post("/v1/chat/completions", content=content, headers={"content-type": kind})
    assert response.status_code == status
    assert set(response.json()) == {"error"}
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert response.json()["error"]["code"] == code
    assert CANARY not in response.text


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_ready_says_so(stream: bool) -> None:
    """Before model and index are loaded a question is 503 with the time to wait, whole or streamed."""
    response = post_to(Engine(Settings()), stream=stream)
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json()["error"]["code"] == "not_ready"
    assert response.json()["error"]["type"] == "server_error"


def test_a_fault_of_ours_is_an_error_of_their_shape() -> None:
    """When something breaks inside, the client gets 500 without a word of it."""

    class Broken:
        @property
        def loaded(self) -> object:
            raise RuntimeError("/secret/path")

    response = post_to(cast(Engine, Broken()))
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert "secret" not in response.text


def post_to(engine: Engine, *, stream: bool = False) -> httpx.Response:
    """A question to an application around this engine."""

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(Settings(), engine))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as caller:
            content = {"messages": [{"role": "user", "content": "agua"}], "stream": stream}
            return await caller.post("/v1/chat/completions", json=content)

    return asyncio.run(call())


# with a language model


def in_the_form_asked_for(asked: Asked) -> Reply:
    """``WRITTEN``, as JSON where that is asked for."""
    if "response_format" not in asked.body:
        return says(WRITTEN)
    return says(json.dumps({"answer": WRITTEN, "citations": ["estomago-vacio"], "refused": False}))


def test_what_a_model_writes_is_shown_alike_whole_and_streamed(writing: Writing) -> None:
    """Both ways give the checked text with its numbers, and the words for a sentence that no card says."""
    with client_of(writing.server) as client:
        full, reply = whole(client, EMPTY_STOMACH), chunks(client, EMPTY_STOMACH)
    sources = "\n\nFuentes:\n[1] Tomar un medicamento con el estómago vacío — estomago-vacio"
    assert text_of(full) == f"{WATER} [1] {INVENTED} {NOT_CONFIRMED} {MILK} [1]{sources}"
    assert text_of(reply) == text_of(full)
    assert NOT_CONFIRMED in answer_in(reply)["answer"]
    assert answer_in(full)["mode"] == answer_in(reply)["mode"] == "llm"
    assert len(reply) > 5


def test_a_model_reads_the_conversation_without_our_numbers(writing: Writing) -> None:
    """The model is told what was said before as it was, so that it does not learn to write numbers."""
    with client_of(writing.server) as client:
        said = {"role": "assistant", "content": text_of(whole(client, EMPTY_STOMACH))}
        whole(client, {"role": "assistant", "content": CANARY}, EMPTY_STOMACH, said, EMPTY_STOMACH)
    prompt = writing.fake.asked[-1].prompt
    assert f"<respuesta>{WATER} {INVENTED} {NOT_CONFIRMED} {MILK}</respuesta>" in prompt
    assert CANARY not in prompt


def test_an_answer_that_breaks_off_is_replaced(sample_index_dir: Path) -> None:
    """When the endpoint breaks amid a stream, a line says so and the answer that counts follows, with its own cards."""
    text = f"{MILK} [cite:estomago-vacio] " + "Y sigue la frase que no acaba nunca " * 4
    with (
        FaultyLlm("closes-amid", text=text) as faulty,
        running(with_model(sample_index_dir, faulty.url)) as server,
        client_of(server) as client,
    ):
        reply, full = chunks(client, EMPTY_STOMACH), whole(client, EMPTY_STOMACH)
    answer = answer_in(reply)
    assert (answer["degraded"], answer["degraded_reason"], answer["mode"]) == (True, "cut_off", "extractive")
    begun, line, rest = text_of(reply).partition("\n\nLa respuesta se interrumpió y no vale.")
    assert line
    assert begun == f"{MILK} [1]\n\nFuentes:\n[1] Tomar un medicamento con el estómago vacío — estomago-vacio"
    assert rest.partition("\n\n")[2] == text_of(full)
    assert answer_in(full)["degraded"]


def with_model(index_dir: Path, url: str) -> dict[str, str]:
    return {"FICHERO_INDEX_DIR": str(index_dir), "FICHERO_LLM_BASE_URL": url, "FICHERO_LLM_MODEL": "x"}


# texts


def made_answer(*pieces: str | Citation, mode: str = "llm", refusal: Refusal | None = None) -> Answer:
    """An answer of texts and citations; a text that ends in a mark of doubt is one that no card says."""
    citations = [piece for piece in pieces if isinstance(piece, Citation)]
    segments = [
        TextSegment(piece.removesuffix("?"), "es", supported=not piece.endswith("?"))
        if isinstance(piece, str)
        else CitationSegment(citations.index(piece), piece.number, piece.card_id)
        for piece in pieces
    ]
    return Answer(
        request_id="abc",
        question="¿Y el agua?",
        searched=None,
        question_truncated=False,
        answer="No hay respuesta.",
        segments=tuple(segments),
        language="es",
        mode=mode,
        degraded=False,
        degraded_reason=None,
        refusal=refusal,
        citations=tuple(citations),
        rejected={},
        retrieved=(),
        index_version="",
        timings_ms={},
    )


def cited(number: int, title: str = "Agua", *, source: str | None = None, verdict: str = "valid") -> Citation:
    return Citation(
        number, f"agua-{number}", title, "/cards/agua", "es", None, source, None, "Agua.", 0, 5, 1.0, verdict
    )


def test_each_card_is_one_line_of_the_sources() -> None:
    """Cards come in the order of their numbers, once each, with an address where the source is one."""
    answer = made_answer("A", cited(2, "Dos\n[9] nueve", source="http://a.invalid"), "B", cited(1, source="propia"))
    expected = "A [2] B [1]\n\nFuentes:\n[1] Agua — agua-1\n[2] Dos (9) nueve — http://a.invalid — agua-2"
    assert content_of(answer) == expected
    assert without_numbers(f"{expected}\n\nC [1].") == "A B\n\nC."


def test_a_card_that_does_not_say_so_is_no_source() -> None:
    """A sentence that no card says is marked once as not confirmed, and what does not say it is not listed."""
    answer = made_answer("A?", cited(1, verdict="unsupported"), cited(2, verdict="unsupported"), " B", cited(3))
    assert content_of(answer) == f"A {NOT_CONFIRMED} B [3]\n\nFuentes:\n[3] Agua — agua-3"
    answer = made_answer("A", cited(1, verdict="unsupported"), cited(3))
    assert content_of(answer) == "A [3]\n\nFuentes:\n[3] Agua — agua-3"


def test_a_stop_stays_with_its_sentence() -> None:
    """Behind a number there is a space, but before what closes a sentence."""
    assert content_of(made_answer("A", cited(1), ", y B", cited(1), ". C", cited(1))).startswith(
        "A [1], y B [1]. C [1]"
    )


def test_a_number_cannot_be_made_a_link() -> None:
    """What stands behind a number does not touch it, so that no address in it becomes the number's."""
    assert content_of(made_answer("A", cited(1), "(http://a.invalid)")).startswith("A [1] (http://a.invalid)")


def test_the_titles_of_a_refusal_are_lines() -> None:
    """A title cannot begin a line of its own or look like a source."""
    refusal = Refusal("below_threshold", 0.1, 0.2, (CardLink("a", "Una\n[1] dos", "/cards/a", "es"),))
    refused = made_answer(refusal=refusal)
    assert content_of(refused) == "No hay respuesta.\n\nFichas más cercanas:\n- Una (1) dos"
    assert content_of(made_answer(refusal=Refusal("no_cards", None, 0.2, ()))) == "No hay respuesta."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a [1] b", "a (1) b"),
        ("a[1][2]", "a(1)(2)"),
        ("a [ 1 ]", "a ( 1 )"),
        ("a [1, 2–3]", "a (1, 2–3)"),
        ("a [^1]: b", "a (^1): b"),
        ("a [**1**](http://b.invalid)", "a (**1**)(http://b.invalid)"),
        (r"a \[1\]", "a (1)"),
        ("a 【1】［２］", "a (1)(２)"),
        ("a [①] [¹]", "a (①) (¹)"),
        ("a &#91;&#49;&#x5D; &lbrack;1&rsqb;", "a (1) (1)"),
        ("[[1]]", "[(1)]"),
        ("a [1", "a (1"),
        ("a [", "a ("),
        ("a [cite:b]", "a (cite b]"),
        ("a [2 mg] [véase] [] &amp; &#65; 1] (1)", "a [2 mg] [véase] [] &amp; &#65; 1] (1)"),
    ],
)
def test_numbers_of_others_are_no_citations(text: str, shown: str) -> None:
    """A number in brackets that is not ours gets parentheses, however it is written; other brackets stay."""
    assert plain_text(text) == shown


def test_pieces_do_not_add_up_to_a_number() -> None:
    """What is no number in two pieces is none when they are put together."""
    answer = made_answer("A", cited(1, verdict="unsupported"), " [", cited(1, verdict="unsupported"), "7] B", cited(2))
    assert "[7]" not in content_of(answer)
    assert content_of(answer).count("[2]") == 2


# streams of our own making


async def events_of(*events: Event, fault: Exception | None = None) -> AsyncGenerator[Event, None]:
    for event in events:
        yield event
    if fault:
        raise fault


def streamed(*events: Event, fault: Exception | None = None) -> list[str]:
    """The data of all blocks."""

    async def collect() -> list[bytes]:
        blocks = chunk_blocks(events_of(*events, fault=fault), "abc", created=7, include_usage=True)
        return [block async for block in blocks]

    return [block.decode().removeprefix("data: ").removesuffix("\n\n") for block in asyncio.run(collect())]


def content_in(data: Sequence[str]) -> str:
    found = [json.loads(text) for text in data if text.startswith("{")]
    return "".join(choice["delta"].get("content", "") for chunk in found for choice in chunk.get("choices", ()))


def test_events_give_what_the_whole_answer_gives() -> None:
    """For the same events the contents of a stream are the content of the whole reply, and so is the count."""
    answer = made_answer("A [1", cited(2), " B", cited(1, verdict="unsupported"), "C.", cited(4))
    data = streamed(SourcesFound(()), *shown_of(answer), answer)
    full = completion(answer, created=7)
    assert content_in(data) == full["choices"][0]["message"]["content"]
    assert data[-1] == "[DONE]"
    assert json.loads(data[-2])["usage"] == full["usage"]
    assert json.loads(data[-3])["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("fault", "code"), [(Problem(503, "not-ready", "Wait."), "not_ready"), (RuntimeError("/secret"), "internal")]
)
def test_a_fault_ends_a_stream(fault: Exception, code: str) -> None:
    """What goes wrong amid a stream is its last event, as an error without details, and not [DONE]."""
    data = streamed(TextShown(TextSegment("A", "es")), fault=fault)
    assert json.loads(data[-1])["error"]["code"] == code
    assert "secret" not in data[-1]
    assert content_in(data) == "A"


def test_what_was_shown_in_vain_keeps_its_own_cards() -> None:
    """Numbers of an answer that does not count stand with its own cards, as they may mean others than those after."""
    wording = Wording()
    first = cited(1, "Vieja")
    begun = [
        wording.show(TextShown(TextSegment("A", "es"))),
        wording.show(CitationShown(CitationSegment(0, 1, "x"), first)),
    ]
    answer = made_answer("B", cited(1, "Nueva"), mode="extractive")
    text = "".join([*begun, wording.finish(answer)])
    before, _, after = text.partition("La respuesta se interrumpió")
    assert before == "A [1]\n\nFuentes:\n[1] Vieja — agua-1\n\n"
    assert after.endswith("\n\nB [1]\n\nFuentes:\n[1] Nueva — agua-1")
