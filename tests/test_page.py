"""The page in a real Chromium, against the real service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.conftest import CASES_DIR, STAFF_TOKEN, running
from tests.pages import Visit, plain

SPANISH = "¿se supone que debo tomarlo con el estómago vacío?"
ENGLISH = "Can I drink coffee with my iron tablets?"
SPANISH_ONLY_CARD = "hierro-cafe"
OFF_TOPIC = "¿quién ganó la liga en 1998?"
STAFF_QUESTION = "¿qué se hace con las insulinas y vacunas de la nevera averiada, con etiqueta naranja?"
STAFF_CARD = "personal-corte-nevera"


def test_a_chip_opens_the_card_at_its_sentence(visit: Callable[..., Visit]) -> None:
    """A chip opens its card with exactly the quote highlighted; any way out gives the focus back to the chip."""
    tab = visit()
    citations = tab.ask(SPANISH)["citations"]
    chips, panel = tab.one("chip"), tab.one("card-panel")
    assert citations
    expect(chips).to_have_count(len(citations))
    ways_out: list[Callable[[], object]] = [
        lambda: tab.page.keyboard.press("Escape"),
        tab.page.go_back,
        tab.one("card-close").click,
    ]
    for turn in range(max(len(ways_out), len(citations))):
        chip, citation = chips.nth(turn % len(citations)), citations[turn % len(citations)]
        expect(chip).to_have_accessible_name(f"Fuente {citation['number']}: {citation['title']}")
        chip.click()
        expect(panel.get_by_role("heading", name=citation["title"])).to_be_focused()
        assert plain(tab.marked()) == plain(citation["quote"])
        ways_out[turn % len(ways_out)]()
        expect(panel).to_be_hidden()
        expect(chip).to_be_focused()


def test_another_chip_takes_the_open_cards_place(visit: Callable[..., Visit]) -> None:
    """With a card open beside the answer, another chip shows its own sentence, the page stays put, and Esc closes."""
    tab = visit()
    citations = tab.ask(SPANISH)["citations"]
    tab.one("chip").first.click()
    tab.marked()
    tab.one("chip").last.scroll_into_view_if_needed()
    before = tab.page.evaluate("scrollY")
    tab.one("chip").last.click()
    assert plain(tab.marked()) == plain(citations[-1]["quote"])
    assert tab.page.evaluate("scrollY") == before
    tab.page.keyboard.press("Escape")
    expect(tab.one("card-panel")).to_be_hidden()
    expect(tab.one("chip").last).to_be_focused()


def test_a_spanish_card_answers_in_an_english_page(visit: Callable[..., Visit]) -> None:
    """Words of a Spanish card in an English page have their own ``lang``; a note says that they are untranslated."""
    tab = visit(locale="en-GB")
    expect(tab.page.locator("html")).to_have_attribute("lang", "en")
    citations = tab.ask(ENGLISH)["citations"]
    assert citations[0]["card_id"] == SPANISH_ONLY_CARD
    answer = tab.one("answer")
    expect(answer.locator(".asked")).to_have_attribute("lang", "en")
    expect(answer.locator(".statement span").first).to_have_attribute("lang", "es")
    expect(answer.get_by_text("Sentences in Spanish are quoted as they stand")).to_be_visible()
    expect(tab.one("source").first.locator(".source-title")).to_have_attribute("lang", "es")
    tab.one("chip").first.click()
    assert plain(tab.marked()) == plain(citations[0]["quote"])
    assert tab.page.locator("mark").first.evaluate("mark => mark.closest('[lang]').lang") == "es"
    expect(tab.page.locator("#card-title")).to_have_attribute("lang", "es")


def test_a_refusal_offers_the_nearest_cards(visit: Callable[..., Visit]) -> None:
    """A question outside the cards gets a reason, no chips, and the nearest cards to open."""
    tab = visit()
    nearest = tab.ask(OFF_TOPIC)["refusal"]["nearest"]
    expect(tab.one("refusal")).to_contain_text("Las fichas no lo dicen")
    expect(tab.one("status")).to_have_text("Sin respuesta en las fichas")
    expect(tab.one("chip")).to_have_count(0)
    expect(tab.one("source")).to_have_count(0)
    expect(tab.one("nearest")).to_have_text([card["title"] for card in nearest])
    tab.one("nearest").first.click()
    expect(tab.page.locator("#card-title")).to_have_text(nearest[0]["title"])
    expect(tab.page.locator(".card-text")).to_be_visible()
    expect(tab.page.locator("mark")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_keyboard_alone_leads_to_the_sentence(visit: Callable[..., Visit], width: int) -> None:
    """Tab, Enter and Esc are enough to ask, open a chip, see the sentence and come back."""
    tab = visit(width=width)
    keyboard = tab.page.keyboard
    tab.tab_to(tab.one("question"))
    keyboard.type(SPANISH)
    keyboard.press("Enter")
    chip = tab.one("chip").nth(1)
    expect(chip).to_be_attached()
    tab.tab_to(chip)
    keyboard.press("Enter")
    assert plain(tab.marked()) == plain(tab.last_answer()["citations"][1]["quote"])
    expect(tab.page.locator("#card-title")).to_be_focused()
    keyboard.press("Escape")
    expect(tab.one("card-panel")).to_be_hidden()
    expect(chip).to_be_focused()


def test_a_narrow_phone_is_enough(visit: Callable[..., Visit]) -> None:
    """At 320 pixels nothing scrolls sideways, and the card is a sheet over the page with its way out in sight."""
    tab = visit(width=320, height=640)
    expect(tab.one("suggestion").first).to_be_visible()
    assert tab.sideways() == 0
    tab.ask(SPANISH)
    assert tab.sideways() == 0
    tab.one("chip").last.click()
    tab.marked()
    panel = tab.one("card-panel")
    assert panel.evaluate("panel => panel.matches(':modal')")
    assert panel.bounding_box() == {"x": 0, "y": 0, "width": 320, "height": 640}
    assert tab.sideways() == 0
    expect(tab.one("card-close")).to_be_in_viewport(ratio=1)
    tab.one("card-close").click()
    expect(panel).to_be_hidden()
    expect(tab.one("chip").last).to_be_focused()


def test_a_wide_table_scrolls_by_itself(visit: Callable[..., Visit]) -> None:
    """A card with a wide table opens at 320 pixels without making the sheet scroll sideways."""
    tab = visit("#/card/lista-medicamentos", width=320, height=640)
    expect(tab.page.locator("table")).to_be_visible()
    assert tab.sideways() == 0


def test_a_link_opens_a_card_at_a_sentence(visit: Callable[..., Visit], client: httpx.Client) -> None:
    """An address that names a card and a span opens there, a table's row too; closing leaves the page without it."""
    text = client.get("/cards/horarios-regulares").json()["text"]
    row = next(line for line in text.splitlines() if line.startswith("|") and "Cada 8 horas" in line)
    start = text.index(row)
    tab = visit(f"#/card/horarios-regulares?s={start}&e={start + len(row)}")
    assert plain(tab.marked()) == plain(row)
    tab.page.keyboard.press("Escape")
    expect(tab.one("card-panel")).to_be_hidden()
    expect(tab.one("question")).to_be_focused()
    assert "#" not in tab.page.url


def test_the_language_switch_says_everything_again(visit: Callable[..., Visit]) -> None:
    """The switch turns the page to English with answer and card kept, and the choice outlives a reload."""
    tab = visit()
    expect(tab.one("ask")).to_have_text("Preguntar")
    tab.ask(SPANISH)
    tab.one("chip").first.click()
    marked = tab.marked()
    tab.one("language-switch").click()
    expect(tab.page.locator("html")).to_have_attribute("lang", "en")
    expect(tab.one("ask")).to_have_text("Ask")
    expect(tab.one("card-close")).to_have_text("Close")
    expect(tab.one("status")).to_contain_text("Answer ready")
    expect(tab.one("answer").locator(".asked")).to_contain_text(SPANISH)
    assert tab.marked() == marked
    tab.page.reload()
    expect(tab.one("ask")).to_have_text("Ask")


def test_the_page_says_that_its_content_is_an_example(visit: Callable[..., Visit]) -> None:
    """Before and after an answer, in both languages, the page says that the cards are examples and no advice."""
    tab = visit()
    expect(tab.page.get_by_text("son contenido de ejemplo: no son consejo médico")).to_be_visible()
    tab.ask(SPANISH)
    expect(tab.page.get_by_text("son contenido de ejemplo: no son consejo médico")).to_be_visible()
    tab.one("language-switch").click()
    expect(tab.page.get_by_text("are example content: they are not medical advice")).to_be_visible()


def test_a_question_in_the_address_is_not_sent(visit: Callable[..., Visit]) -> None:
    """``?q=`` fills the box and leaves it to the visitor to ask."""
    tab = visit("?q=%C2%BFPuedo%20partir%20la%20pastilla%3F")
    expect(tab.one("question")).to_have_value("¿Puedo partir la pastilla?")
    expect(tab.one("suggestion").first).to_be_visible()
    tab.page.wait_for_load_state("networkidle")
    expect(tab.one("answer")).to_have_count(0)
    assert not [address for address in tab.requests if "/ask" in address]


def test_a_staff_card_needs_the_token(visit: Callable[..., Visit], client: httpx.Client) -> None:
    """Without a token a staff card is as absent as one that does not exist, for links and for answers."""
    tab = visit(f"#/card/{STAFF_CARD}", expected_fault="404")
    expect(tab.one("error")).to_have_text("Esta ficha no existe, o no está a su alcance.")
    expect(tab.page.locator(".card-text")).to_have_count(0)
    tab.page.keyboard.press("Escape")
    answer = tab.ask(STAFF_QUESTION)
    assert STAFF_CARD not in str(answer)


def test_the_token_of_the_tab_opens_staff_cards(visit: Callable[..., Visit]) -> None:
    """A token in the tab's storage lets its bearer read and cite a staff card."""
    tab = visit(token=STAFF_TOKEN)
    citations = tab.ask(STAFF_QUESTION)["citations"]
    assert citations[0]["card_id"] == STAFF_CARD
    tab.one("chip").first.click()
    assert plain(tab.marked()) == plain(citations[0]["quote"])


def test_a_hostile_card_stays_text(visit: Callable[..., Visit], hostile_index_dir: Path) -> None:
    """Markup in a card and in a question is shown as text: nothing runs, nothing is fetched, no such link is made."""
    question = (CASES_DIR / "O18_xss" / "question.txt").read_text(encoding="utf-8").strip()
    settings = {"FICHERO_INDEX_DIR": str(hostile_index_dir), "FICHERO_MIN_SIMILARITY": "0"}
    with running(settings) as hostile:
        tab = visit(url=hostile.url)
        expect(tab.one("suggestion")).to_have_text("<img src=x onerror=alert(1)>")
        answer = tab.ask(question)
        assert answer["citations"]
        expect(tab.one("answer").locator(".asked")).to_have_text(f"Pregunta: {question}")
        tab.one("chip").first.click()
        assert "alert" in tab.marked()
        expect(tab.page.locator("#card-title")).to_have_text("<img src=x onerror=alert(1)>")
        expect(tab.one("card-panel").get_by_text("Origen: javascript:alert(5)")).to_be_visible()
        expect(tab.one("card-panel").locator(".card-text")).to_contain_text("<script>alert(2)</script>")
        expect(tab.page.locator("body :is(img, svg, script, iframe, [onmouseover], [onerror])")).to_have_count(0)
        links = tab.page.locator("a").evaluate_all("links => links.map((link) => link.href)")
        assert [link for link in links if not link.startswith(("https://", "http://"))] == []
        tab.page.wait_for_load_state("networkidle")
        assert not [address for address in tab.requests if "malo.invalid" in address]
        tab.page.context.close()


def test_signing_in_opens_private_cards_and_signing_out_removes_them(visit: Callable[..., Visit]) -> None:
    """A wrong token is told; a right one shows its groups and opens cards; signing out leaves nothing of them."""
    tab = visit(expected_fault="401")
    tab.ask(SPANISH)
    tab.one("access").click()
    tab.one("token").fill("no es esta")
    tab.one("enter").click()
    expect(tab.one("sign-in-fault")).to_contain_text("No se conoce esta clave")
    tab.one("token").fill(STAFF_TOKEN)
    tab.page.keyboard.press("Enter")
    expect(tab.one("sign-in")).to_be_hidden()
    expect(tab.one("groups")).to_have_text("Lee como: staff")
    expect(tab.one("access")).to_have_text("Salir")
    expect(tab.one("access")).to_be_focused()
    expect(tab.one("answer")).to_have_count(1)
    tab.one("to-cards").click()
    private = tab.page.locator(f"#browsed-{STAFF_CARD}")
    expect(private).to_be_visible()
    private.click()
    expect(tab.page.locator(".card-text")).to_be_visible()
    tab.page.keyboard.press("Escape")
    tab.one("to-ask").click()
    assert tab.ask(STAFF_QUESTION)["citations"][0]["card_id"] == STAFF_CARD
    tab.one("access").click()
    expect(tab.one("status")).to_have_text("Ha salido. Lo que estaba en pantalla se ha borrado.")
    expect(tab.one("groups")).to_be_empty()
    expect(tab.one("answer")).to_have_count(0)
    kept = tab.page.evaluate(
        "JSON.stringify(Object.entries(sessionStorage)) + JSON.stringify(Object.entries(localStorage))"
    )
    assert STAFF_TOKEN not in kept
    assert STAFF_CARD not in kept
    tab.one("to-cards").click()
    expect(tab.one("browsed").first).to_be_visible()
    expect(private).to_have_count(0)


def test_a_token_that_is_no_longer_known_is_forgotten(visit: Callable[..., Visit]) -> None:
    """A tab whose token was withdrawn says so when it is loaded, and goes on as anybody's."""
    tab = visit(token="una clave de antes", expected_fault="401")
    expect(tab.one("status")).to_have_text("Su acceso ya no es válido. Vuelva a entrar.")
    expect(tab.one("access")).to_have_text("Entrar")
    expect(tab.one("suggestion").first).to_be_visible()


def test_cards_can_be_looked_through(visit: Callable[..., Visit], client: httpx.Client) -> None:
    """All cards stand under their topics; words without accents and a topic narrow them, and the address keeps both."""
    cards = client.get("/cards").json()["cards"]
    tab = visit()
    tab.one("to-cards").click()
    expect(tab.one("browsed")).to_have_count(len(cards))
    expect(tab.one("status")).to_have_text(f"{len(cards)} de {len(cards)} fichas")
    expect(tab.page.get_by_role("heading", name="inhaladores")).to_be_visible()
    tab.one("filter").fill("CAMARA inhalacion")
    expect(tab.one("browsed")).to_have_text(["Usar una cámara de inhalación"])
    tab.one("filter").fill("")
    topic = "inhaladores"
    tab.one("topic").select_option(topic)
    about = [card for card in cards if topic in card["topics"]]
    expect(tab.one("browsed")).to_have_count(len(about))
    expect(tab.one("status")).to_have_text(f"{len(about)} de {len(cards)} fichas")
    assert tab.page.url.endswith(f"#/cards?topic={topic}")
    first = tab.one("browsed").first
    title = first.inner_text()
    first.click()
    expect(tab.page.locator("#card-title")).to_have_text(title)
    tab.page.go_back()
    expect(tab.one("card-panel")).to_be_hidden()
    expect(first).to_be_focused()
    tab.page.reload()
    expect(tab.one("browsed")).to_have_count(len(about))
    expect(tab.one("topic")).to_have_value(topic)
    assert [address for address in tab.requests if address.endswith("/ask")] == []


@pytest.mark.parametrize("width", [320, 640, 1280])
def test_large_text_fits(visit: Callable[..., Visit], width: int) -> None:
    """With the text at 200 % nothing scrolls sideways: with an answer, with a card, among the cards."""
    tab = visit(width=width)
    tab.page.evaluate("document.documentElement.style.fontSize = '200%'")
    tab.ask(SPANISH)
    assert tab.sideways() == 0
    tab.one("chip").first.click()
    tab.marked()
    assert tab.sideways() == 0
    tab.page.keyboard.press("Escape")
    tab.one("to-cards").click()
    expect(tab.one("browsed").first).to_be_visible()
    assert tab.sideways() == 0
