"""Texts that would run on a careless page, wherever a text can come from: they stay text, and nothing else happens."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, Error, Route, expect

from tests.conftest import ROOT
from tests.pages import Visit, chromium
from tests.playing import STATIC_DIR, Playing, Scene, answer_events
from tests.redteam.xss import KINDS, PAYLOADS, RUN, STRANGER

WATCH = (ROOT / "tests" / "redteam" / "watch.js").read_text("utf-8")
EMPTY = "static/icon.svg"
"""An address without scripts, to prepare the page from."""
TOKEN = "una-clave"
KEY = "fichero-conversation"
VERDICTS = ("valid", "weak", "unsupported")
NO_MARKS = re.compile(r"[^\\`*_!\[\]|\n\r]*")
"""Texts that are none but themselves in Markdown too."""
IDS = ("constructor", "prototype", "valueof", "location", "question", "entries", "null", "undefined", "0", "x.y-z_1")
"""What the format of a card's id lets through."""
ASK_ALL = """(questions) => watch.each(questions, async (question) => {
  const [box, form, stop] = ["question", "ask-form", "stop"].map((id) => document.getElementById(id));
  box.value = question;
  form.requestSubmit();
  await watch.until(() => stop.hidden);
}, "#problems")"""
POINT_AT_CHIPS = """() => [...document.querySelectorAll("article:first-child .chip")].map((chip) => {
  chip.dispatchEvent(new PointerEvent("pointerenter", { pointerType: "mouse" }));
  const preview = document.getElementById("preview");
  return [preview.querySelector("strong").textContent, ...watch.faults(preview)];
})"""
OPEN_CARDS = """async () => {
  const shown = [];
  const faults = await watch.each(document.querySelectorAll("#card-list .card-button"), async (button) => {
    button.click();
    const [title, content] = ["card-title", "card-content"].map((id) => document.getElementById(id));
    await watch.until(() => content.querySelector(".card-text"));
    shown.push([title.textContent, content.textContent]);
    content.replaceChildren();
  }, "#card-panel");
  return [faults, shown];
}"""
GO_TO_ALL = """(hashes) => watch.each(hashes, async (hash) => {
  location.hash = hash;
  await new Promise((resolve) => { setTimeout(resolve, 1); });
}, "#card-panel, #card-list")"""
INSERT = """async (payload) => {
  const box = document.querySelector("main").appendChild(document.createElement("div"));
  try { box.append(document.createRange().createContextualFragment(payload)); } catch {}
  await new Promise((resolve) => { setTimeout(resolve, 5); });
  const found = watch.faults(box);
  box.remove();
  return found;
}"""

Open = Callable[..., Visit]
Play = Callable[..., Playing]


class Given(HTMLParser):
    """What index.html holds."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed((STATIC_DIR / "index.html").read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def watcher() -> str:
    """The script that notices, for a page to begin with."""
    elements = Given().elements
    known = {
        "tags": Counter(tag for tag, _ in elements),
        "attributes": sorted({name for _, attributes in elements for name in attributes}),
        "ids": [attributes["id"] for _, attributes in elements if "id" in attributes],
    }
    return f"({WATCH.strip()})({json.dumps(known)});"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium that takes more than 200 new addresses in ten seconds."""
    with chromium("--disable-ipc-flooding-protection") as started:
        yield started


@pytest.fixture(params=[False, True], ids=["no-policy", "policy"])
def policy(request: pytest.FixtureRequest) -> bool:
    """Whether the page comes with its Content-Security-Policy."""
    found: bool = request.param
    return found


@pytest.fixture
def payloads(policy: bool) -> Sequence[str]:
    """All of them where nothing but the page is in their way; of the others, which the browser stops too, some."""
    return PAYLOADS[::3] if policy else PAYLOADS


@pytest.fixture
def act(visit: Open, play: Play, policy: bool) -> Open:
    """Opens a watched page on a server that plays scenes; what is kept can be given."""

    def open_page(
        scenes: dict[str, Scene | list[Scene]], address: str = "", *, kept: Any = None, **options: Any
    ) -> Visit:
        # a picture on its own asks for another one
        server = play({"/favicon.ico": Scene({}), **scenes}, policy=policy)
        tab: Visit = visit(EMPTY, url=server.url, **options)
        tab.page.add_init_script(watcher())
        keep(tab, kept)
        tab.page.goto(f"{server.url}/{address}")
        return tab

    return open_page


def keep(tab: Visit, kept: Any) -> None:
    """Have the tab's storage hold this as its conversation; None is nothing."""
    if kept is not None:
        text = kept if isinstance(kept, str) else json.dumps(kept)
        tab.page.evaluate("([key, text]) => sessionStorage.setItem(key, text)", [KEY, text])


def faults(tab: Visit) -> list[str]:
    """What is wrong with the page as it stands."""
    found: list[str] = tab.page.evaluate("() => watch.faults()")
    return [*found, *(f"a tab at {page.url}" for page in tab.page.context.pages[1:])]


def texts(tab: Visit, selector: str) -> list[str]:
    found: list[str] = tab.page.locator(selector).evaluate_all("nodes => nodes.map((node) => node.textContent)")
    return found


def batches(payloads: Sequence[str], size: int) -> list[Sequence[str]]:
    return [payloads[first : first + size] for first in range(0, len(payloads), size)]


def questions_of(payloads: Sequence[str], most_chars: int) -> list[str]:
    """As few texts as hold all payloads, and none of them in parts."""
    questions = [""]
    for payload in payloads:
        if len(questions[-1]) + len(payload) >= most_chars:
            questions.append("")
        questions[-1] += f"{payload}\n"
    return questions


def titles(payloads: Sequence[str]) -> list[dict[str, Any]]:
    return [{"card_id": payload, "title": payload, "language": payload} for payload in payloads]


def citation(payload: str, number: int, verdict: str = "valid") -> dict[str, Any]:
    """A citation with the same text in every place that can hold one."""
    return {
        "number": number, "card_id": payload, "title": payload, "url": payload, "language": payload,
        "license": payload, "source": payload, "accessed_at": payload, "quote": payload, "start": 0,
        "end": len(payload), "score": 0.9, "verdict": verdict,
    }  # fmt: skip


def answer(question: str, payloads: Sequence[str], **changes: Any) -> dict[str, Any]:
    """An answer with a text and a citation for each payload."""
    segments: list[dict[str, Any]] = []
    for place, payload in enumerate(payloads):
        segments.append({"type": "text", "text": payload, "language": payload, "supported": place % 2 == 0})
        segments.append({"type": "citation", "citation": place, "number": place + 1, "card_id": payload})
    verdicts = [VERDICTS[place % len(VERDICTS)] for place in range(len(payloads))]
    citations = [
        citation(payload, place + 1, verdict)
        for place, (payload, verdict) in enumerate(zip(payloads, verdicts, strict=True))
    ]
    return {
        "request_id": "x", "question": question, "searched": question, "question_truncated": False,
        "answer": question, "segments": segments,
        "language": "es", "mode": "llm", "degraded": False, "degraded_reason": None, "refusal": None,
        "citations": citations, "rejected": {}, "retrieved": titles(payloads), "index_version": "1", "timings_ms": {},
        **changes,
    }  # fmt: skip


def refusal(payload: str, nearest: Sequence[str]) -> dict[str, Any]:
    refused = {"reason": payload, "best_score": None, "threshold": 0.5, "nearest": titles(nearest)}
    return answer(payload, (), refusal=refused, degraded_reason=payload)


def conversation(payloads: Sequence[str]) -> list[dict[str, Any]]:
    """Answers and refusals that hold every payload in every place."""
    unknown = [citation(payload, place + 1, "unknown") for place, payload in enumerate(payloads)]
    return [
        *(answer(payload, [payload]) for payload in payloads),
        *(refusal(payload, [payload]) for payload in payloads),
        answer("¿desconocidas?", payloads, stopped=True, citations=unknown),
        answer("¿literales?", payloads, mode="extractive", degraded=True),
    ]


def card_text(payloads: Sequence[str]) -> str:
    """A card's text with payloads in everything that Markdown has; first as they are, where nothing is a mark."""
    fence = "~" * 9
    parts = [part for payload in payloads for part in (fence, payload, fence, "")]
    for payload in payloads:
        line = " ".join(payload.split())
        parts += [
            payload, "", f"# {line}", f"> {line}", "", f"- {line}", f"1. {line}", "",
            f"| {line} | x |", "| --- | :-: |", f"| x | {line} |", "", line, "===", "", f"``{line}``",
            f"**{line}** _{line}_", f"[{line}](https://a.example/)", f"[x]({line})", f"[x](<{line}>)",
            f'[x](https://a.example/ "{line}")', f"[x](https://a.example/{line})", f"![{line}](x)", f"![x]({line})",
            f"<{line}>", f"\\{line}", f"{line}\\", "",
        ]  # fmt: skip
    return "\n".join(parts)


def in_fence(payload: str) -> str:
    """Every line ends without its carriage return."""
    return payload.replace("\r\n", "\n").removesuffix("\r")


def bare(text: str) -> str:
    """As a line without inline marks is shown: without what begins a block, and without space around it."""
    return re.sub(r"^(?:#{1,6}|>|[-+*]|[0-9]{1,9}[.)])[ \t]+", "", text.strip()).strip()


def test_the_texts_are_attacks(browser: Browser, play: Play) -> None:
    """Taken for markup, nine in ten of the payloads that are markup run, load or leave what the watch finds."""
    assert len(PAYLOADS) == len(set(PAYLOADS)) >= 150
    kinds = ("script", "handler", "svg and math", "element")
    markup = [payload.replace("RUN", RUN) for kind in kinds for payload in KINDS[kind]]
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    missed = []
    context = browser.new_context()
    context.add_init_script(watcher())
    context.route(lambda url: STRANGER in url, refuse)
    server = play(policy=False)
    page = context.new_page()
    page.goto(server.url)
    for payload in markup:
        asked.clear()
        try:
            found = page.evaluate(INSERT, payload)
        except Error:  # it led away
            page = context.new_page()
            page.goto(server.url)
        else:
            if not found and not asked:
                missed.append(payload)
    context.close()
    assert len(missed) <= len(markup) // 10, missed


def test_streamed_answers_stay_text(act: Open, payloads: Sequence[str]) -> None:
    """Every payload as title, quote, source, id and sentence of answers that grow, end and are pointed at."""
    parts = batches(payloads, 50)
    holds = [threading.Event() for _ in parts]
    scenes = []
    for part, hold in zip(parts, holds, strict=True):
        events = answer_events(answer(part[0], part), titles(part))
        scenes.append(Scene(events=events, hold=hold, held_from=len(events) - 1))
    tab = act({"/ask": scenes})
    for part, hold in zip(parts, holds, strict=True):
        tab.one("question").fill(part[0])
        tab.page.keyboard.press("Enter")
        expect(tab.one("pending").locator(".chip")).to_have_count(len(part))
        assert texts(tab, ".reading li") == list(part)
        assert faults(tab) == []
        hold.set()
        expect(tab.one("pending")).to_have_count(0)
        entry = "article:first-child"
        assert texts(tab, f"{entry} .asked") == [f"Pregunta: {part[0]}"]
        assert texts(tab, f"{entry} .source-title") == list(part)
        shown = texts(tab, f"{entry} .statement > span")
        plain = [place for place, payload in enumerate(part) if NO_MARKS.fullmatch(payload)]
        assert [shown[place].strip() for place in plain] == [bare(part[place]) for place in plain]
        assert tab.page.evaluate(POINT_AT_CHIPS) == [[payload] for payload in part]
        assert faults(tab) == []


def test_refusals_and_problems_stay_text(act: Open, payloads: Sequence[str]) -> None:
    """Every payload as nearest title of a refusal, and in all that a problem says, as a document and in a stream."""
    parts = batches(payloads, 50)
    scenes = [Scene(refusal(part[0], part)) for part in parts]
    words = ["\n".join(part) for part in batches(payloads, 10)]
    for text in words:
        body = {"type": f"urn:fichero:problem:{text}", "title": text, "detail": text, text: text}
        scenes.append(Scene(body, 422, {"Content-Type": "application/problem+json"}))
        scenes.append(Scene(events=[("error", body)]))
    tab = act({"/ask": scenes}, expected_fault="422")
    assert tab.page.evaluate(ASK_ALL, [*(part[0] for part in parts), *(text for text in words for _ in range(2))]) == []
    assert texts(tab, ".nearest .card-button") == [title for part in reversed(parts) for title in part]
    assert tab.one("error").get_attribute("data-problem") == words[-1]


def test_cards_stay_text(act: Open, payloads: Sequence[str]) -> None:
    """Every payload as topic and question of a listed card, in its title and id, and everywhere in its text."""
    parts = batches(payloads, 12)
    names = ["\n".join(part) for part in parts]
    listed = [
        {"card_id": name, "title": name, "language": name, "topics": [*part, "otro"], "questions": part}
        for name, part in zip(names, parts, strict=True)
    ]
    scenes: dict[str, Scene | list[Scene]] = {"/cards": Scene({"cards": listed})}
    for card, part in zip(listed, parts, strict=True):
        whole = {**card, "license": part[0], "source": part[-1], "accessed_at": part[0], "text": card_text(part)}
        scenes[f"/cards/{card['card_id']}"] = Scene(whole)
    tab = act(scenes, "#/cards")
    expect(tab.one("browsed")).to_have_count(len(parts))
    titles_shown = texts(tab, "#card-list .card-button")
    assert sorted(titles_shown) == sorted(names)
    assert set(texts(tab, "#card-list h3")) == {part[0] for part in parts}
    options = {"Todos", f"otro ({len(parts)})", *(f"{payload} (1)" for payload in payloads)}
    assert set(texts(tab, "#topic option")) == options
    assert faults(tab) == []
    found, shown = tab.page.evaluate(OPEN_CARDS)
    assert found == []
    assert [title for title, _ in shown] == titles_shown
    everything = "\n".join(text for _, text in shown)
    assert [payload for payload in payloads if in_fence(payload) not in everything] == []


def test_no_id_takes_a_name(act: Open, payloads: Sequence[str]) -> None:
    """A card whose id is a name of the language or of the page can be opened by its address and in the list."""
    facts: dict[str, Any] = {
        "language": "es",
        "topics": [],
        "questions": [],
        "license": None,
        "source": None,
        "accessed_at": None,
    }
    whole = [{**facts, "card_id": card_id, "title": f"Ficha {card_id}", "text": f"De {card_id}."} for card_id in IDS]
    scenes = {f"/cards/{card['card_id']}": Scene(card) for card in whole}
    tab = act({"/cards": Scene({"cards": whole}), **scenes})
    for card_id in IDS:
        tab.page.evaluate("(hash) => { location.hash = hash; }", f"#/card/{card_id}")
        expect(tab.page.locator(".card-text")).to_have_text(f"De {card_id}.")
        tab.page.evaluate("() => { location.hash = '#/cards'; }")
        tab.page.locator(f"[id='browsed-{card_id}']").click()
        expect(tab.page.locator(".card-text")).to_have_text(f"De {card_id}.")
        tab.page.keyboard.press("Escape")
        expect(tab.page.locator(f"[id='browsed-{card_id}']")).to_be_focused()
        assert faults(tab) == []


def test_suggestions_groups_and_given_questions_stay_text(act: Open, payloads: Sequence[str]) -> None:
    """Every payload as a question to begin with, as a group's name, and in ``?q=``, by which nothing is asked."""
    suggested = [{"question": payload, "language": payload, "card_id": payload} for payload in payloads]
    suggestions = [Scene({"suggestions": suggested}), Scene({"suggestions": []})]
    tab = act({"/suggestions": suggestions, "/whoami": Scene({"groups": payloads})}, token=TOKEN)
    expect(tab.one("suggestion")).to_have_count(len(payloads))
    assert texts(tab, "#suggestion-list button") == list(payloads)
    expect(tab.one("groups")).not_to_be_empty()
    assert texts(tab, "#groups") == [f"Lee como: {', '.join(payloads)}"]
    assert faults(tab) == []
    for question in questions_of(payloads, 2000):
        tab.page.goto(f"{tab.url}/?q={quote(question, safe='')}")
        expect(tab.one("question")).to_have_value(re.sub(r"\r\n?", "\n", question))
        assert faults(tab) == []
    assert not [address for address in tab.requests if address.endswith("/ask")]


def test_addresses_stay_text(act: Open, payloads: Sequence[str]) -> None:
    """Every payload as the card, the place, the topic and the words that an address names, in signs and as it is."""
    tab = act({}, expected_fault="404")
    signs = {text: quote(text, safe="") for text in [*payloads, *("\n".join(part) for part in batches(payloads, 10))]}
    hashes = [f"#/card/{signs[text]}?s={text}&e={text}" for text in payloads]
    joined = [text for text in signs if text not in payloads]
    hashes += [f"#/cards?topic={signs[text]}&text={signs[text]}" for text in joined]
    assert tab.page.evaluate(GO_TO_ALL, hashes) == []
    assert tab.page.url.startswith(f"{tab.url}/#")
    expect(tab.one("filter")).to_have_value("".join(joined[-1].splitlines()))


def test_a_kept_conversation_stays_text(act: Open, payloads: Sequence[str], tmp_path: Path) -> None:
    """
    Every payload in every place of a conversation that the tab's storage gives back: shown in both languages, saved as
    it came, and copied and saved as Markdown that has no markup and leads nowhere but to the sources.
    """
    answers = conversation(payloads)
    tab = act({}, kept=answers, permissions=["clipboard-read", "clipboard-write"])
    assert texts(tab, ".asked") == [f"Pregunta: {whole['question']}" for whole in reversed(answers)]
    assert faults(tab) == []
    saved = {}
    for kind in ("md", "json"):
        with tab.page.expect_download() as download:
            tab.one(f"save-{kind}").click()
        download.value.save_as(tmp_path / kind)
        saved[kind] = (tmp_path / kind).read_bytes().decode()
    assert json.loads(saved["json"])["answers"] == answers
    leads_nowhere(saved["md"], tab.url)
    for place in (0, 1, len(answers) // 2, -1):
        tab.one("copy").nth(place).click()
        expect(tab.one("status")).to_have_text("Respuesta copiada, con sus fuentes")
        copied = tab.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("## ")
        leads_nowhere(copied, tab.url)
    tab.one("language-switch").click()
    expect(tab.one("ask")).to_have_text("Ask")
    assert texts(tab, ".asked") == [f"Question: {whole['question']}" for whole in reversed(answers)]
    assert faults(tab) == []


def leads_nowhere(text: str, url: str) -> None:
    """As Markdown a text has no HTML and no pictures, and links to the page and to addresses of sources alone."""
    tokens = MarkdownIt("commonmark").parse(text)
    tokens += [child for token in tokens for child in token.children or []]
    assert not [token.content for token in tokens if token.type in ("html_block", "html_inline", "image")]
    links = {str(token.attrs["href"]) for token in tokens if token.type == "link_open"}
    sources = tuple(payload for payload in PAYLOADS if re.fullmatch(r"https://[^\s\"]*", payload))
    strange = [link for link in links if not link.startswith((f"{url}/#/card/", f"https://{STRANGER}/%22", *sources))]
    assert strange == []


def test_what_no_page_of_ours_kept_is_dropped(visit: Open, play: Play) -> None:
    """Storage that does not hold a conversation leaves an empty page that answers."""
    texts_kept = [
        "<script>", '{"__proto__": [], "length": 1}', '[{"__proto__": {"polluted": 1}}]', "[" * 5000,
        '[{"question": {"toString": 1}, "segments": {}, "citations": {}}]',
        '[{"question": "x", "segments": [{"type": "citation", "citation": "__proto__"}], "citations": []}]',
        '[{"question": "x", "refusal": {"reason": {}, "nearest": "<img>"}, "segments": [], "citations": []}]',
    ]  # fmt: skip
    server = play({"/ask": Scene(answer("¿siesta?", ["Sí."]))})
    tab = visit(url=server.url)
    tab.page.add_init_script(watcher())
    for text in texts_kept:
        keep(tab, text)
        tab.page.reload()
        expect(tab.one("ask")).to_have_text("Preguntar")
        assert faults(tab) == []
        expect(tab.one("answer")).to_have_count(0)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("answer")).to_have_count(1)
    assert faults(tab) == []
    tab.page.context.close()


def test_the_browser_refuses_markup_made_of_text(visit: Open) -> None:
    """Under the policy of the real service not even the page's own scripts can make markup of a text."""
    tab = visit(expected_fault="require")
    for code in (
        "document.body.innerHTML = '<b>'",
        "document.body.outerHTML = '<b>'",
        "document.body.insertAdjacentHTML('beforeend', '<b>')",
        "document.write('<b>')",
        "document.createRange().createContextualFragment('<b>')",
        "new DOMParser().parseFromString('<b>', 'text/html')",
        "document.createElement('iframe').srcdoc = '<b>'",
        "document.createElement('script').text = 'x'",
        "document.createElement('script').src = 'static/app.js'",
    ):
        refused = tab.page.evaluate(
            f"() => {{ try {{ {code}; return null; }} catch (error) {{ return error.name; }} }}"
        )
        assert refused == "TypeError", code
    assert tab.page.locator("body > b").count() == 0


NO_MARKUP_OF_TEXT = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|setHTML|setHTMLUnsafe|parseHTMLUnsafe|createContextualFragment"
    r"|DOMParser|srcdoc|execScript|createPolicy)\b"
    r"|\bdocument\.write|\beval\(|\bFunction\(|\bimport\((?!\")|javascript:"
    r"|\bset(?:Timeout|Interval)\(\s*[\"'`]|\bcssText\b|setAttribute\(\s*[\"'`](?:style|on)"
)


@pytest.mark.parametrize("path", sorted(STATIC_DIR.iterdir()), ids=lambda path: path.name)
def test_no_file_makes_markup_of_text(path: Path) -> None:
    """No file of the page has anything that takes a text for markup or for a script."""
    assert NO_MARKUP_OF_TEXT.findall(path.read_text("utf-8")) == []


def test_the_page_has_nothing_inline() -> None:
    """index.html has neither scripts nor styles nor handlers of its own; all is in files."""
    for tag, attributes in Given().elements:
        assert tag != "style"
        assert tag != "script" or (attributes.get("src") or "").startswith("static/")
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
