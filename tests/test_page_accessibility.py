"""The page for everybody: axe-core in every state, large text, forced colours, visible focus, targets to hit."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from importlib.resources import files

import pytest
from playwright.sync_api import expect

from tests.pages import Visit
from tests.playing import Playing, Scene, answer_events
from tests.test_page_conversation import CARD, FULL_CARD, answer, citation

Open = Callable[..., Visit]
Play = Callable[..., Playing]
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async (options) => (await axe.run(document, options)).violations
  .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`))"""

ASKED = {"es": "¿se supone que debo tomarlo con el estómago vacío?", "en": "Can I drink coffee with my iron tablets?"}
OFF_TOPIC = {"es": "¿quién ganó la liga en 1998?", "en": "who won the world cup in 1998?"}
LOCALES = {"es": "es-ES", "en": "en-GB"}
SIZES = {"phone": (390, 844), "desktop": (1280, 800)}
SHOWCASE = """## Dosis

| Hora | Dosis |
| --- | --- |
| 8:00 | **una** |

1. Primero `esto`.
   - Y *aquello*.

> Una cita.

```
código
```

[Un enlace](https://example.org/)
"""


def violations(tab: Visit, rules: Sequence[str] = ()) -> list[str]:
    """What axe finds in the page as it stands, by all rules of our tags or by those named."""
    if not tab.page.evaluate("'axe' in window"):
        tab.page.evaluate(f"{AXE}; 0")
    run_only = {"type": "rule", "values": list(rules)} if rules else {"type": "tag", "values": TAGS}
    found: list[str] = tab.page.evaluate(RUN_AXE, {"runOnly": run_only})
    return found


def test_axe_is_a_recent_one(visit: Open) -> None:
    """The rules are those of axe-core 4.10 or later, which know WCAG 2.2."""
    version = re.search(r"axe v(\d+)\.(\d+)", AXE)
    assert version
    assert (int(version[1]), int(version[2])) >= (4, 10)
    tab = visit(bypass_csp=True)
    tab.page.evaluate("document.body.append(Object.assign(document.createElement('img'), { src: 'static/icon.svg' }))")
    assert any(found.startswith("image-alt") for found in violations(tab))


@pytest.mark.parametrize(
    ("language", "size", "scheme"),
    [
        *((language, size, "light") for language in LOCALES for size in SIZES),
        ("es", "desktop", "dark"),
        ("en", "phone", "dark"),
    ],
)
def test_no_state_of_the_page_has_a_violation(visit: Open, language: str, size: str, scheme: str) -> None:
    """Empty, refused, answered, card open, cards by topic, signing in, an error: axe finds nothing in any of them."""
    # in the dark only colours differ
    rules = ["color-contrast"] if scheme == "dark" else []
    width, height = SIZES[size]
    tab = visit(
        width=width, height=height, locale=LOCALES[language], bypass_csp=True, color_scheme=scheme,
        expected_fault="ERR_FAILED",
    )  # fmt: skip
    expect(tab.one("suggestion").first).to_be_visible()
    found = {"empty": violations(tab, rules)}
    tab.ask(OFF_TOPIC[language])
    expect(tab.one("refusal")).to_be_visible()
    found["refused"] = violations(tab, rules)
    tab.ask(ASKED[language])
    found["answered"] = violations(tab, rules)
    tab.one("chip").first.click()
    tab.marked()
    found["card"] = violations(tab, rules)
    tab.page.keyboard.press("Escape")
    tab.one("to-cards").click()
    expect(tab.one("browsed").first).to_be_visible()
    found["browse"] = violations(tab, rules)
    tab.one("access").click()
    found["sign-in"] = violations(tab, rules)
    tab.page.keyboard.press("Escape")
    tab.one("to-ask").click()
    tab.page.route("**/ask", lambda route: route.abort())
    tab.one("question").fill(ASKED[language])
    tab.one("ask").click()
    expect(tab.one("error")).to_be_visible()
    found["error"] = violations(tab, rules)
    assert {state: faults for state, faults in found.items() if faults} == {}
    assert len(found) == 7


def test_what_is_under_way_or_does_not_hold_has_no_violation(visit: Open, play: Play) -> None:
    """An answer on its way, citations that do not hold, a preview and a card with everything a card can have."""
    hold = threading.Event()
    cited = [citation(), citation(verdict="weak"), citation("", verdict="unsupported"), citation("", verdict="unknown")]
    whole = answer("¿siesta?", "Uno. ", "Dos. ", "Tres. ", "Cuatro.", citations=cited)
    whole["segments"][4]["supported"] = False
    scenes = {
        "/ask": Scene(events=answer_events(whole, [CARD]), hold=hold, held_from=5),
        "/cards/siesta": Scene({**FULL_CARD, "text": f"La siesta dura veinte minutos.\n\n{SHOWCASE}"}),
    }
    server = play(scenes)
    tab = visit(url=server.url, bypass_csp=True)
    tab.one("question").fill("¿siesta?")
    tab.page.keyboard.press("Enter")
    expect(tab.one("pending")).to_contain_text("Dos.")
    found = {"pending": violations(tab)}
    hold.set()
    expect(tab.one("answer")).to_be_visible()
    found["verdicts"] = violations(tab)
    tab.one("chip").first.hover()
    expect(tab.one("preview")).to_be_visible()
    found["preview"] = violations(tab)
    tab.one("chip").first.click()
    tab.marked()
    expect(tab.page.locator(".card-text table")).to_be_visible()
    found["everything"] = violations(tab)
    assert {state: faults for state, faults in found.items() if faults} == {}


def test_focus_is_seen_and_targets_can_be_hit(visit: Open) -> None:
    """Everything that Tab reaches shows that it has the focus, and is at least 24 by 24 pixels or part of a line."""
    tab = visit(width=390)
    tab.ask(ASKED["es"])
    tab.page.evaluate("window.scrollTo(0, 0)")
    tab.one("language-switch").focus()
    seen = set()
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        state = tab.page.evaluate(
            """() => {
              const node = document.activeElement;
              const { width, height } = node.getBoundingClientRect();
              const { outlineStyle, outlineWidth, display } = getComputedStyle(node);
              return { name: `${node.tagName} ${node.id || node.className} ${node.textContent}`.slice(0, 60),
                body: node === document.body, small: display !== "inline" && (width < 24 || height < 24),
                unseen: outlineStyle === "none" || parseFloat(outlineWidth) < 2 };
            }"""
        )
        if state["body"]:
            break
        seen.add(state["name"])
        assert not state["small"], state
        assert not state["unseen"], state
    assert len(seen) >= 8


def test_forced_colours_keep_what_matters_visible(visit: Open) -> None:
    """With colours forced by the system, chips, buttons and the box have borders, and the marked sentence its mark."""
    tab = visit(forced_colors="active")
    tab.ask(ASKED["es"])
    for selector in (".chip", "#ask", "#question, .ask", ".entry"):
        border = tab.page.locator(selector).first.evaluate("node => getComputedStyle(node).borderTopStyle")
        assert border in ("solid", "dashed"), selector
    tab.one("chip").first.click()
    tab.marked()
    colours = tab.page.locator("mark").first.evaluate(
        "node => [getComputedStyle(node).backgroundColor, getComputedStyle(node.parentElement).backgroundColor]"
    )
    assert colours[0] != colours[1]


def test_motion_stops_for_those_who_ask(visit: Open, play: Play) -> None:
    """With reduced motion nothing on the page is animated, and without it something may be."""
    for reduced in ("reduce", "no-preference"):
        hold = threading.Event()
        playing = play({"/ask": Scene(answer("¿siesta?"), hold=hold)})
        tab = visit(url=playing.url, reduced_motion=reduced)
        tab.one("question").fill("¿siesta?")
        tab.page.keyboard.press("Enter")
        expect(tab.one("pending")).to_be_visible()
        running = tab.page.evaluate("document.getAnimations().length")
        assert (running > 0) == (reduced == "no-preference")
        hold.set()
        expect(tab.one("answer")).to_be_visible()
