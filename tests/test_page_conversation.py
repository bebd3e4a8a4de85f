"""Asking on the page: streams, stops, what stays, and what can be taken along; played by a server and for real."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.pages import Visit
from tests.playing import Playing, Scene, answer_events, problem

Open = Callable[..., Visit]
Play = Callable[..., Playing]

CARD = {"card_id": "siesta", "title": "La siesta", "language": "es"}
FULL_CARD: dict[str, Any] = {
    **CARD,
    "topics": [],
    "questions": [],
    "license": None,
    "source": None,
    "accessed_at": None,
}
TEXT = "La siesta dura veinte minutos. Después se toma agua."
VERDICT_WORDS = {"weak": "Respaldo débil", "unsupported": "La ficha no respalda la frase marcada con «?»."}
WATCH_STATUS = """() => {
  window.said = [];
  const line = document.getElementById("status");
  new MutationObserver(() => window.said.push(line.textContent))
    .observe(line, { childList: true, characterData: true, subtree: true });
}"""


def citation(
    quote: str = "La siesta dura veinte minutos.", *, verdict: str = "valid", number: int = 1
) -> dict[str, Any]:
    start = TEXT.find(quote)
    span = {"start": start, "end": start + len(quote)} if quote and start >= 0 else {"start": None, "end": None}
    return {
        "number": number, **CARD, "url": "/cards/siesta", "license": "CC0-1.0", "source": "https://example.org/siesta",
        "accessed_at": "2026-11-30", "quote": quote, "score": 0.9, "verdict": verdict, **span,
    }  # fmt: skip


def answer(question: str, *texts: str, citations: list[dict[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    """An answer whose texts are each followed by their citation."""
    cited = [citation()] if citations is None else citations
    segments: list[dict[str, Any]] = []
    for number, text in enumerate(texts or ("La siesta dura veinte minutos.",)):
        segments.append({"type": "text", "text": text, "language": "es", "supported": True})
        if number < len(cited):
            found = cited[number]
            mark = {"type": "citation", "citation": number, "number": found["number"], "card_id": "siesta"}
            segments.append(mark)
    return {
        "request_id": "x", "question": question, "searched": None, "question_truncated": False,
        "answer": "La siesta. [cite:siesta]",
        "segments": segments, "language": "es", "mode": "llm", "degraded": False, "degraded_reason": None,
        "refusal": None, "citations": cited, "rejected": {}, "retrieved": [CARD], "index_version": "1",
        "timings_ms": {}, **changes,
    }  # fmt: skip


def refusal(question: str) -> dict[str, Any]:
    return answer(question, "x", citations=[], segments=[], refusal={"reason": "no_evidence", "nearest": [CARD]})


def streamed(whole: dict[str, Any], **options: Any) -> Scene:
    return Scene(events=answer_events(whole, [CARD]), **options)


def test_an_answer_grows_and_is_announced_once(visit: Open, play: Play) -> None:
    """Sources come first, then words as they come; the status line says that it searches, and that it is done."""
    words = [f"palabra{number} " for number in range(40)]
    hold = threading.Event()
    server = play({"/ask": streamed(answer("¿siesta?", *words), hold=hold, held_from=20)})
    tab = visit(url=server.url)
    tab.page.evaluate(WATCH_STATUS)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("reading")).to_contain_text("La siesta")
    expect(tab.one("pending")).to_contain_text("palabra17")
    expect(tab.one("pending")).to_have_attribute("aria-busy", "true")
    expect(tab.one("pending").locator("xpath=ancestor-or-self::*[@aria-live or @role='status']")).to_have_count(0)
    assert "palabra30" not in tab.one("pending").inner_text()
    hold.set()
    expect(tab.one("answer")).to_contain_text("palabra39")
    expect(tab.one("pending")).to_have_count(0)
    assert tab.page.evaluate("said") == ["Buscando en las fichas…", "Respuesta lista, 1 fuente"]


def test_a_chip_can_be_used_while_the_answer_grows(visit: Open, play: Play) -> None:
    """A chip of an unfinished answer opens its card, and has the focus back when the answer has ended meanwhile."""
    hold = threading.Event()
    server = play({
        "/ask": streamed(answer("¿siesta?", "La siesta dura veinte minutos.", " Y más."), hold=hold, held_from=3),
        "/cards/siesta": Scene({**FULL_CARD, "text": TEXT}),
    })  # fmt: skip
    tab = visit(url=server.url)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    tab.one("chip").click()
    assert tab.marked() == "La siesta dura veinte minutos."
    hold.set()
    expect(tab.one("answer")).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tab.one("chip")).to_be_focused()


@pytest.mark.parametrize("way", ["button", "Escape"])
def test_what_was_shown_stays_when_it_is_stopped(visit: Open, play: Play, way: str) -> None:
    """A stopped answer keeps its words as incomplete, offers to ask again, and is no history for the next question."""
    hold = threading.Event()
    scenes = [
        streamed(answer("¿siesta?", "Uno. ", "Dos. "), hold=hold, held_from=3),
        streamed(answer("¿siesta?", "Entera.")),
    ]
    server = play({"/ask": scenes})
    tab = visit(url=server.url)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("pending")).to_contain_text("Uno.")
    if way == "button":
        tab.one("stop").click()
    else:
        tab.page.keyboard.press("Escape")
    expect(tab.one("answer")).to_contain_text("Respuesta incompleta")
    expect(tab.one("answer")).to_contain_text("Uno.")
    expect(tab.one("status")).to_have_text("Detenido. La respuesta está incompleta.")
    expect(tab.one("question")).to_have_value("¿siesta?")
    hold.set()
    tab.one("again").click()
    expect(tab.one("answer").first).to_contain_text("Entera.")
    expect(tab.one("answer")).to_have_count(2)
    assert "history" not in json.loads(server.calls[-1][2])


def test_a_stop_before_the_first_word_leaves_the_question(visit: Open, play: Play) -> None:
    """Stopped before anything is there, the question stays in the box and no answer is left behind."""
    hold = threading.Event()
    tab = visit(url=play({"/ask": Scene(hold=hold)}).url)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("pending")).to_be_visible()
    tab.one("stop").click()
    expect(tab.one("status")).to_have_text("Detenido. Su pregunta sigue en el cuadro.")
    expect(tab.one("pending")).to_have_count(0)
    expect(tab.one("answer")).to_have_count(0)
    expect(tab.one("question")).to_have_value("¿siesta?")
    expect(tab.one("question")).to_be_focused()
    hold.set()


def test_a_late_reply_never_takes_a_newer_ones_place(visit: Open, play: Play) -> None:
    """Asked again before the first reply came, only the second answer is shown."""
    hold = threading.Event()
    server = play({"/ask": [Scene(answer("¿uno?", "Tarde."), hold=hold), streamed(answer("¿dos?", "A tiempo."))]})
    tab = visit(url=server.url)
    for question in ("¿uno?", "¿dos?"):
        tab.one("question").fill(question)
        tab.page.keyboard.press("Enter")
        expect(tab.page.get_by_text(question).first).to_be_visible()
    expect(tab.one("answer")).to_contain_text("A tiempo.")
    hold.set()
    tab.page.wait_for_load_state("networkidle")
    expect(tab.one("answer")).to_have_count(1)
    expect(tab.page.get_by_text("Tarde.")).to_have_count(0)


def test_a_server_that_does_not_stream_is_understood(visit: Open, play: Play) -> None:
    """A whole answer in place of a stream is shown like any other."""
    tab = visit(url=play({"/ask": Scene(answer("¿siesta?", "Entera."))}).url)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("answer")).to_contain_text("Entera.")
    expect(tab.one("chip")).to_have_count(1)


def test_the_history_goes_along(visit: Open, play: Play) -> None:
    """A question takes those answered before along, oldest first, without refusals; starting again forgets them."""
    scenes = [streamed(answer("¿uno?", "Uno.")), streamed(refusal("¿nada?")), streamed(answer("¿dos?", "Dos."))]
    server = play({"/ask": [*scenes, streamed(answer("¿tres?", "Tres."))]})
    tab = visit(url=server.url)

    def asked(question: str) -> list[str]:
        before = len(tab.one("answer").all())
        tab.one("question").fill(question)
        tab.page.keyboard.press("Enter")
        expect(tab.one("answer")).to_have_count(before + 1)
        sent = json.loads(server.calls[-1][2])
        assert sent["question"] == question
        return [turn["question"] for turn in sent.get("history", [])]

    assert [asked(question) for question in ("¿uno?", "¿nada?", "¿dos?")] == [[], ["¿uno?"], ["¿uno?"]]
    assert asked("¿tres?") == ["¿uno?", "¿dos?"]
    tab.one("clear").click()
    expect(tab.one("answer")).to_have_count(0)
    assert asked("¿tres?") == []


def test_a_follow_up_is_understood(visit: Open) -> None:
    """The real service completes a second question by the first, and the page says what was searched for."""
    tab = visit()
    tab.ask("¿Puedo tomar el hierro con leche?")
    second = tab.ask("¿y con el café?")
    assert second["citations"]
    if second["searched"]:
        expect(tab.one("answer").first).to_contain_text(second["searched"])


def test_the_conversation_outlives_a_reload_of_its_tab(visit: Open) -> None:
    """A reloaded tab has its answers, chips and all; another tab does not."""
    tab = visit()
    first = tab.ask("¿se supone que debo tomarlo con el estómago vacío?")
    tab.page.reload()
    expect(tab.one("chip")).to_have_count(len(first["citations"]))
    tab.one("chip").first.click()
    tab.marked()
    other = visit()
    expect(other.one("suggestion").first).to_be_visible()
    expect(other.one("answer")).to_have_count(0)


def test_an_answer_can_be_copied_with_its_sources(visit: Open) -> None:
    """Copying gives Markdown with every quote, its card's title and a link that opens it at the sentence."""
    tab = visit(permissions=["clipboard-read", "clipboard-write"])
    found = tab.ask("¿se supone que debo tomarlo con el estómago vacío?")
    tab.one("copy").click()
    expect(tab.one("status")).to_have_text("Respuesta copiada, con sus fuentes")
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    for cited in found["citations"]:
        assert cited["quote"] in copied
        assert cited["title"] in copied
    first = found["citations"][0]
    link = f"{tab.url}/#/card/{first['card_id']}?s={first['start']}&e={first['end']}"
    assert link in copied
    tab.page.goto(link)
    assert tab.marked() == first["quote"]


def test_a_conversation_can_be_saved(visit: Open, tmp_path: Path) -> None:
    """The conversation is saved as Markdown to read, the oldest first, and as JSON with the answers as they came."""
    tab = visit()
    answers = [tab.ask(question) for question in ("¿Puedo vaciar las cápsulas?", "¿Se puede beber alcohol?")]
    saved = {}
    for kind in ("md", "json"):
        with tab.page.expect_download() as download:
            tab.one(f"save-{kind}").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.name.startswith("fichero-")
        saved[kind] = path.read_text(encoding="utf-8")
    exported = json.loads(saved["json"])
    assert exported["answers"] == answers
    assert exported["page"] == f"{tab.url}/"
    places = [saved["md"].index(found["question"]) for found in answers]
    assert places == sorted(places)
    assert "no son consejo médico" in saved["md"]


def test_a_printed_conversation_spells_its_sources_out(visit: Open) -> None:
    """On paper there are the answers with whole quotes and the cards' addresses, and nothing to press."""
    tab = visit()
    found = tab.ask("¿se supone que debo tomarlo con el estómago vacío?")
    tab.page.emulate_media(media="print")
    for hidden in ("question", "ask", "copy", "save-md", "language-switch", "access", "to-cards"):
        expect(tab.one(hidden)).to_be_hidden()
    expect(tab.page.locator(".address").first).to_have_text(f"{tab.url}/#/card/{found['citations'][0]['card_id']}")
    expect(tab.page.locator(".address").first).to_be_visible()
    clipped = (
        "nodes => nodes.filter((node) => node.scrollHeight > node.clientHeight + 1 && node.clientHeight > 0).length"
    )
    assert tab.page.locator(".quote-words").evaluate_all(clipped) == 0
    expect(tab.page.get_by_text("no son consejo médico")).to_be_visible()


def test_a_preview_tells_what_a_chip_leads_to(visit: Open) -> None:
    """Pointer or Tab on a chip shows its card's title and sentence, as the chip's description; Esc takes it away."""
    tab = visit()
    cited = tab.ask("¿se supone que debo tomarlo con el estómago vacío?")["citations"]
    chip, preview = tab.one("chip").first, tab.one("preview")
    expect(preview).to_be_hidden()
    chip.hover()
    expect(preview).to_contain_text(cited[0]["title"])
    expect(preview).to_contain_text(cited[0]["quote"])
    expect(chip).to_have_accessible_description(preview.inner_text().replace("\n", " "))
    preview.hover()
    expect(preview).to_be_visible()
    tab.page.mouse.move(0, 0)
    expect(preview).to_be_hidden()
    tab.one("question").focus()
    tab.tab_to(chip)
    expect(preview).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(preview).to_be_hidden()
    expect(chip).to_be_focused()


@pytest.mark.parametrize(
    ("verdict", "label", "said"),
    [
        ("valid", "1", "Fuente 1: La siesta"),
        ("weak", "1 ≈", "Fuente 1, respaldo débil: La siesta"),
        ("unsupported", "1 ?", "Fuente 1, no respalda la frase: La siesta"),
        ("unknown", "1 ?", "Cita 1 sin fuente conocida"),
    ],
)
def test_a_citation_that_does_not_hold_reads_so(visit: Open, play: Play, verdict: str, label: str, said: str) -> None:
    """A weak, unsupported or unknown citation has another sign, another name and words that say it."""
    cited = citation("" if verdict in ("unsupported", "unknown") else "La siesta dura veinte minutos.", verdict=verdict)
    whole = answer("¿siesta?", "La siesta dura una hora.", citations=[cited])
    whole["segments"][0]["supported"] = verdict == "valid"
    tab = visit(url=play({"/ask": streamed(whole)}).url)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("answer")).to_be_visible()
    expect(tab.one("chip")).to_have_text(label)
    expect(tab.one("chip")).to_have_accessible_name(said)
    if verdict != "valid":
        expect(tab.one("answer").locator(".note").last).to_contain_text("no lo dice la ficha que cita")
    if words := VERDICT_WORDS.get(verdict):
        expect(tab.one("source")).to_contain_text(words)
    if verdict == "unknown":
        expect(tab.one("source")).to_have_count(0)
        expect(tab.page.locator("button.chip")).to_have_count(0)
    decoration = tab.page.locator(".statement span").first.evaluate(
        "node => getComputedStyle(node).textDecorationStyle"
    )
    assert (decoration == "wavy") == (verdict != "valid")


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"mode": "extractive", "degraded": True, "degraded_reason": "timeout"}, "no estaba disponible"),
        ({"mode": "extractive", "degraded": True, "degraded_reason": "no_valid_citation"}, "no se pudo comprobar"),
        ({"mode": "llm"}, "Redactada por un modelo de lenguaje"),
        ({"searched": "siesta después de comer"}, "Se ha buscado: «siesta después de comer»"),
        ({"question_truncated": True}, "La pregunta es muy larga"),
    ],
    ids=["unavailable", "unproved", "written", "searched", "truncated"],
)
def test_an_answer_says_how_it_was_made(visit: Open, play: Play, changes: dict[str, Any], note: str) -> None:
    """A degraded answer says why, one that a model wrote says so, and a completed question is named."""
    tab = visit(url=play({"/ask": streamed(answer("¿siesta?", **changes))}).url)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("answer")).to_contain_text(note)


def busy(seconds: int) -> Scene:
    return problem("too-many-requests", 429, Retry_After=str(seconds))


@pytest.mark.parametrize(
    ("scene", "slug", "words"),
    [
        (Scene(cut=True), "offline", "No se llega al servicio"),
        (problem("unauthorized", 401), "unauthorized", "Su acceso ya no es válido"),
        (problem("internal", 500), "internal", "no es culpa suya"),
        (Scene(b"<html>", 502), "internal", "no es culpa suya"),
        (problem("question-too-long", 422), "question-too-long", "2000"),
        (Scene(events=[("sources", {"retrieved": [CARD]})]), "interrupted", "se ha cortado"),
        (
            Scene(events=[("sources", {"retrieved": [CARD]}), ("error", {"type": "urn:fichero:problem:internal"})]),
            "internal", "no es culpa suya",
        ),
    ],
    ids=["offline", "401", "500", "502", "422", "cut", "error-event"],
)  # fmt: skip
def test_a_failure_is_told_and_can_be_tried_again(visit: Open, play: Play, scene: Scene, slug: str, words: str) -> None:
    """Whatever fails says what it is, keeps the question, and another try is offered where it may help."""
    server = play({"/ask": [scene, streamed(answer("¿siesta?", "Ahora sí."))]})
    tab = visit(url=server.url, expected_fault="Failed to load resource")
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("error")).to_have_attribute("data-problem", slug)
    expect(tab.one("error")).to_contain_text(words)
    expect(tab.one("status")).to_contain_text(words)
    expect(tab.one("question")).to_have_value("¿siesta?")
    expect(tab.one("pending")).to_have_count(0)
    retry = tab.one("retry")
    if slug == "unauthorized":
        retry.click()
        expect(tab.one("sign-in")).to_be_visible()
    elif slug == "question-too-long":
        expect(retry).to_have_count(0)
    else:
        retry.click()
        expect(tab.one("answer")).to_contain_text("Ahora sí.")
        expect(tab.one("error")).to_have_count(0)


def test_words_shown_before_a_failure_stay(visit: Open, play: Play) -> None:
    """Where a stream breaks off after some words, they stay as an incomplete answer beside the problem."""
    events = answer_events(answer("¿siesta?", "Uno. ", "Dos. "), [CARD])[:-1]
    tab = visit(url=play({"/ask": Scene(events=events)}).url)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("error")).to_have_attribute("data-problem", "interrupted")
    expect(tab.one("answer")).to_contain_text("Uno. ")
    expect(tab.one("answer")).to_contain_text("Respuesta incompleta")


def test_a_busy_server_is_waited_for_with_a_countdown(visit: Open, play: Play) -> None:
    """After 429 the page counts the seconds down, said aloud once, and then lets the visitor try again."""
    server = play({"/ask": [busy(3), streamed(answer("¿siesta?", "Ahora sí."))]})
    tab = visit(url=server.url, expected_fault="429")
    tab.page.clock.install()
    tab.page.evaluate(WATCH_STATUS)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("error")).to_contain_text("en 3 segundos")
    expect(tab.one("retry")).to_be_disabled()
    tab.page.clock.run_for(2_000)
    expect(tab.one("error")).to_contain_text("en 1 segundo.")
    tab.page.clock.run_for(2_000)
    expect(tab.one("error")).to_contain_text("Ya puede volver a intentarlo.")
    assert len(tab.page.evaluate("said")) == 2
    tab.one("retry").click()
    expect(tab.one("answer")).to_contain_text("Ahora sí.")


def test_a_server_that_starts_is_waited_for(visit: Open, play: Play) -> None:
    """While the service is starting the page says so, and asks again by itself after the time that it was told."""
    starting = problem("not-ready", 503, Retry_After="1")
    server = play({"/ask": [starting, starting, streamed(answer("¿siesta?", "Ahora sí."))]})
    tab = visit(url=server.url, expected_fault="503")
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("status")).to_contain_text("El servicio está arrancando")
    expect(tab.one("answer")).to_contain_text("Ahora sí.")
    expect(tab.one("error")).to_have_count(0)


def test_a_server_that_stays_silent_is_given_up(visit: Open, play: Play) -> None:
    """A minute without a sign of life is a timeout, which can be tried again."""
    hold = threading.Event()
    tab = visit(url=play({"/ask": Scene(hold=hold)}).url)
    tab.page.clock.install()
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("pending")).to_be_visible()
    tab.page.clock.run_for(61_000)
    expect(tab.one("error")).to_have_attribute("data-problem", "timeout")
    expect(tab.one("retry")).to_be_enabled()
    hold.set()
