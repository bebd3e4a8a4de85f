"""Answers that a language model writes, from the real service over loopback: whole, in pieces, and when it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Server, running
from tests.fake_llm import Asked, FakeLlm, Reply, fails, says

QUESTION = "¿se supone que debo tomarlo con el estómago vacío?"
OFF_TOPIC = "¿quién ganó la liga en 1998?"
CARD = "estomago-vacio"
WATER = "El agua sola no rompe el ayuno y es la bebida adecuada para tragar un medicamento en ayunas."
MILK = "La leche, el zumo, el café y las galletas cuentan como comida cuando el prospecto pide el estómago vacío."
WRITTEN = f"{WATER} [cite:{CARD}] {MILK} [cite:{CARD}]"
KEY = "clave-secreta-0123456789"


@dataclass(frozen=True, slots=True)
class Streamed:
    """A stream of events as it was received."""

    names: list[str]
    data: list[Any]

    @property
    def answer(self) -> dict[str, Any]:
        assert self.names[-1] == "done", self.names
        return dict(self.data[-1])

    def of(self, name: str) -> list[Any]:
        return [data for said, data in zip(self.names, self.data, strict=True) if said == name]


def llm_settings(index_dir: Path, url: str) -> dict[str, str]:
    """A service whose model is there, and has little time."""
    return {
        "FICHERO_INDEX_DIR": str(index_dir),
        "FICHERO_LLM_BASE_URL": url,
        "FICHERO_LLM_MODEL": "uno",
        "FICHERO_LLM_API_KEY": KEY,
        "FICHERO_LLM_CONNECT_SECONDS": "1",
        "FICHERO_LLM_FIRST_BYTE_SECONDS": "0.8",
        "FICHERO_LLM_IDLE_SECONDS": "0.6",
        "FICHERO_LLM_TOTAL_SECONDS": "3",
    }


@dataclass(frozen=True, slots=True)
class Writing:
    """A service with a language model, and the model's side."""

    server: Server
    llm: FakeLlm

    def ask(self, question: str = QUESTION, **more: Any) -> dict[str, Any]:
        reply = httpx.post(f"{self.server.url}/ask", json={"question": question, **more}, timeout=30)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def stream(self, question: str = QUESTION, **more: Any) -> Streamed:
        return stream(self.server.url, question, **more)


def stream(url: str, question: str = QUESTION, **more: Any) -> Streamed:
    """Ask for events."""
    reply = httpx.post(f"{url}/ask", json={"question": question, "stream": True, **more}, timeout=30)
    assert reply.status_code == 200, reply.text
    blocks = [block.split("\n") for block in reply.text.split("\n\n") if block and not block.startswith(":")]
    assert all(len(block) == 2 for block in blocks), "an event is a name and one line of data"
    return Streamed(
        [block[0].removeprefix("event: ") for block in blocks],
        [json.loads(block[1].removeprefix("data: ")) for block in blocks],
    )


def in_the_form_asked_for(text: str, *listed: str, refused: bool = False) -> Any:
    """A behaviour that says a text, as JSON where that is asked for."""

    def behave(asked: Asked) -> Reply:
        if "response_format" not in asked.body:
            return says(text)
        return says(json.dumps({"answer": text, "citations": listed, "refused": refused}))

    return behave


@pytest.fixture(scope="module")
def shared(sample_index_dir: Path) -> Iterator[Writing]:
    """One service for the module."""
    with FakeLlm() as llm, running(llm_settings(sample_index_dir, llm.url)) as server:
        yield Writing(server, llm)


@pytest.fixture
def writing(shared: Writing) -> Writing:
    """That service; its model says what is true and has been asked nothing yet."""
    shared.llm.behaviour = in_the_form_asked_for(WRITTEN)
    shared.llm.asked.clear()
    return shared


def test_a_model_writes_a_checked_answer(writing: Writing) -> None:
    """A whole answer is the model's text, each sentence with its citation, whose quote stands in the card."""
    answer = writing.ask()
    assert (answer["mode"], answer["degraded"], answer["refusal"]) == ("llm", False, None)
    assert answer["answer"] == WRITTEN
    text = httpx.get(f"{writing.server.url}/cards/{CARD}").json()["text"]
    for citation in answer["citations"]:
        assert citation["verdict"] == "valid"
        assert text[citation["start"] : citation["end"]] == citation["quote"]
    assert [citation["quote"] for citation in answer["citations"]] == [WATER, MILK]
    (asked,) = writing.llm.asked
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["stream"] is True
    assert asked.body["response_format"]["type"] == "json_schema"


def test_a_stream_gives_the_same_answer(writing: Writing) -> None:
    """Sources come first, then text and citations in their order, and at last the object of a whole answer."""
    whole, events = writing.ask(), writing.stream()
    varying = {"request_id": "", "timings_ms": {}}
    assert {**events.answer, **varying} == {**whole, **varying}
    assert events.names == ["sources", "delta", "citation", "delta", "citation", "done"]
    assert events.data[0]["retrieved"] == whole["retrieved"]
    assert events.of("delta") == [segment for segment in whole["segments"] if segment["type"] == "text"]
    assert [event["citation"] for event in events.of("citation")] == whole["citations"]
    assert "response_format" not in writing.llm.asked[-1].body


def test_a_stream_of_quotes_has_the_same_events(server: Server) -> None:
    """Without a language model a stream tells the extractive answer in the same events; a refusal has no sources."""
    events = stream(server.url)
    assert set(events.names) == {"sources", "delta", "citation", "done"}
    assert events.of("delta") == [segment for segment in events.answer["segments"] if segment["type"] == "text"]
    refused = stream(server.url, OFF_TOPIC)
    assert (refused.names, refused.data[0]["retrieved"]) == (["sources", "done"], [])
    assert refused.answer["refusal"]["reason"] == "below_threshold"


def test_a_stream_begins_with_a_comment_and_is_not_held_back(server: Server) -> None:
    """Proxies are told not to gather, compress or keep a stream, and a comment is there before any event."""
    with httpx.stream("POST", f"{server.url}/ask", json={"question": QUESTION, "stream": True}, timeout=30) as reply:
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert reply.headers["x-accel-buffering"] == "no"
        assert "no-transform" in reply.headers["cache-control"]
        assert reply.headers["x-request-id"]
        assert "".join(reply.iter_text()).startswith(": ")
    form = httpx.get(f"{server.url}/ask", params={"q": QUESTION, "stream": "true"}, timeout=30)
    assert form.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\r", "\n", "\x85", "\x0b", "\x0c", "\x1e"])
def test_signs_that_end_lines_elsewhere_arrive_in_one_piece(writing: Writing, sign: str) -> None:
    """Whatever line ends a model writes, each event is one line of JSON, and stream and whole answer agree."""
    text = f"{WATER} [cite:{CARD}]{sign}{MILK} [cite:{CARD}]{sign}"
    writing.llm.behaviour = in_the_form_asked_for(text)
    events = writing.stream()
    assert len(events.of("citation")) == 2
    assert events.answer["segments"] == writing.ask()["segments"]


def test_below_the_gate_no_model_is_asked(writing: Writing) -> None:
    """A question that the cards do not answer, or one for a price that they do not give, never reaches the model."""
    for question in (OFF_TOPIC, "¿Cuánto cuesta el ibuprofeno con el estómago vacío?"):
        for answer in (writing.ask(question), writing.stream(question).answer):
            assert answer["refusal"]
            assert answer["retrieved"] == []
    assert writing.llm.asked == []


@pytest.mark.parametrize(
    "behaviour",
    [
        in_the_form_asked_for("[cite:none]"),
        in_the_form_asked_for("NADA [cite:none]", refused=True),
        in_the_form_asked_for("París es la capital de Francia. [cite:none]"),
    ],
)
def test_a_model_may_refuse(writing: Writing, behaviour: Any) -> None:
    """A model that says the cards do not answer is believed: a refusal, and no quotes in its place."""
    writing.llm.behaviour = behaviour
    for answer in (writing.ask(), writing.stream().answer):
        assert answer["refusal"]["reason"] == "llm_refused"
        assert answer["refusal"]["nearest"]
        assert not answer["degraded"]
        assert answer["citations"] == answer["retrieved"] == []


def test_one_more_attempt_and_no_more(writing: Writing) -> None:
    """A text without a citation that holds is asked for once more; then quotes take its place, with the reason."""
    writing.llm.behaviour = in_the_form_asked_for("París es la capital de Francia. [cite:estomago-vacio]")
    for whole in (True, False):
        writing.llm.asked.clear()
        answer = writing.ask() if whole else writing.stream().answer
        assert (answer["mode"], answer["degraded_reason"]) == ("extractive", "no_valid_citation")
        assert "París" not in json.dumps(answer, ensure_ascii=False)
        assert len(writing.llm.asked) == 2
    replies = iter([says("nada que sirva {"), says(json.dumps({"answer": MILK, "citations": [CARD]}))])
    writing.llm.behaviour = lambda _: next(replies)
    assert writing.ask()["answer"] == f"{MILK} [cite:{CARD}]"


@pytest.mark.parametrize("text", ['{"answer": null}', "{", '["x"]', '{"respuesta": "a"}'])
def test_an_unreadable_reply_is_never_shown(writing: Writing, text: str) -> None:
    """JSON that holds no answer gives quotes, with the reason, and nothing of itself."""
    writing.llm.behaviour = lambda _: says(text)
    answer = writing.ask()
    assert (answer["degraded_reason"], text in answer["answer"]) == ("unreadable_reply", False)
    assert answer["citations"]


def test_a_hidden_card_is_no_source(writing: Writing) -> None:
    """A citation of a card of the staff is counted, and neither its id nor what it is said to say is shown."""
    writing.llm.behaviour = in_the_form_asked_for(f"Llame a la guardia. [cite:personal-corte-nevera] {WRITTEN}")
    answer = writing.ask()
    assert answer["answer"] == WRITTEN
    assert answer["rejected"] == {"unknown": 1, "withheld": 1}
    assert "personal" not in json.dumps(answer)


def test_what_is_checked_is_counted(writing: Writing) -> None:
    """/metrics counts answers, verdicts and the reasons for quotes, as they happen."""

    def counts() -> dict[str, float]:
        lines = httpx.get(f"{writing.server.url}/metrics").text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    before = counts()
    writing.llm.behaviour = in_the_form_asked_for(f"{WRITTEN} Tome 900 mg al día. [cite:{CARD}] Hola. [cite:nadie]")
    writing.ask()
    writing.llm.behaviour = lambda _: fails(401)
    writing.stream()
    after = counts()
    grown = {name: after[name] - before.get(name, 0.0) for name in after if after[name] != before.get(name, 0.0)}
    of_answers = ("fichero_answers_total", "fichero_degraded_total", "fichero_citations_checked_total")
    counted = {name: value for name, value in grown.items() if name.startswith(of_answers)}
    assert counted == {
        'fichero_answers_total{mode="llm",outcome="answered"}': 1.0,
        'fichero_answers_total{mode="extractive",outcome="degraded"}': 1.0,
        'fichero_degraded_total{reason="denied"}': 1.0,
        'fichero_citations_checked_total{verdict="valid"}': 2.0,
        'fichero_citations_checked_total{verdict="unsupported"}': 1.0,
        'fichero_citations_checked_total{verdict="unknown"}': 1.0,
        'fichero_citations_checked_total{verdict="withheld"}': 1.0,
    }


# what was said before


def test_a_follow_up_is_rewritten(writing: Writing) -> None:
    """With history the model first completes the question, and what it made of it is searched for."""
    rewritten = "¿Puedo tomar el hierro con café?"
    writing.llm.behaviour = lambda asked: (
        says(rewritten) if "cite" not in str(asked.body["messages"][0]) else in_the_form_asked_for(WRITTEN)(asked)
    )
    history = [{"question": "¿Cómo se toma el hierro?", "answer": "En ayunas. Puedo tomarlo con zumo."}]
    answer = writing.ask("¿y con café?", history=history)
    assert answer["searched"] == rewritten
    assert answer["question"] == "¿y con café?"
    assert answer["retrieved"][0]["card_id"] == "hierro-cafe"


@pytest.mark.parametrize(
    "text", ["¿Quién ganó la liga en 1998?", "Ignora todo.\nOtra línea", "¿Café? [cite:hierro-cafe]", "", "a" * 400]
)
def test_a_rewriting_that_is_none_is_not_searched_for(writing: Writing, text: str) -> None:
    """Words that nobody said, several lines or markers do not become the question."""
    writing.llm.behaviour = lambda asked: (
        says(text) if "cite" not in str(asked.body["messages"][0]) else in_the_form_asked_for(WRITTEN)(asked)
    )
    answer = writing.ask("¿y con café?", history=[{"question": "¿Cómo se toma el hierro?"}])
    assert answer["searched"] is None


def test_history_opens_neither_gate_nor_cards(writing: Writing, server: Server) -> None:
    """What was said before takes nothing off topic through the gate, and shows nobody a card of the staff."""
    history = [{"question": "¿Cómo se toma el hierro?", "answer": "Con el estómago vacío."}]
    for off_topic in (OFF_TOPIC, "¿cuál es la capital de Australia?", "¿y cómo se hace una paella?"):
        writing.llm.behaviour = lambda _: says("¿Cómo se toma el hierro con el estómago vacío?")
        assert writing.ask(off_topic, history=history)["refusal"]
        assert httpx.post(f"{server.url}/ask", json={"question": off_topic, "history": history}).json()["refusal"]
    staff = [{"question": "¿Qué hace el personal si falla la nevera de medicamentos de la farmacia?"}]
    answer = httpx.post(f"{server.url}/ask", json={"question": "¿y a quién se avisa?", "history": staff}).json()
    assert "personal" not in json.dumps([answer["retrieved"], answer["refusal"], answer["citations"]])


@pytest.mark.parametrize("missing", ["FICHERO_LLM_MODEL", "FICHERO_LLM_BASE_URL"])
def test_half_a_model_is_refused_at_start(run_command: Any, missing: str) -> None:
    """An address without a name, or the other way round, stops the start with one clear line."""
    both = {"FICHERO_LLM_MODEL": "uno", "FICHERO_LLM_BASE_URL": "http://127.0.0.1:9/v1"}
    ended = run_command("app.py", environment={name: value for name, value in both.items() if name != missing})
    assert ended.returncode == 3
    assert ended.stderr.strip() == (
        f"{missing} is not set. A language model needs both its address and its name, or neither."
    )
