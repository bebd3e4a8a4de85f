"""The pictures of the README, taken from the running page: ``python -m benchmarks.screenshots``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from benchmarks.browser import REMEDY, find_chromium, launch
from benchmarks.service import ROOT, started_service

IMAGES_DIR = ROOT / "docs" / "images"
QUESTION = "¿se supone que debo tomarlo con el estómago vacío?"
ENGLISH = "Can I drink coffee with my iron tablets?"
OFF_TOPIC = "¿quién ganó la liga en 1998?"
MOST_BYTES = 300_000
DESKTOP, PHONE = (1280, 800), (390, 844)
"""Width and height in pixels."""


def ask(page: Page, question: str = QUESTION) -> None:
    """Ask, and wait for the answer."""
    page.get_by_test_id("question").fill(question)
    page.get_by_test_id("ask").click()
    expect(page.get_by_test_id("answer")).to_be_visible()


def with_card(page: Page) -> None:
    """The second citation's card, with its sentence in sight."""
    ask(page)
    page.get_by_test_id("chip").nth(1).click()
    expect(page.locator("mark").first).to_be_in_viewport()


def refused(page: Page) -> None:
    """A question that the cards do not answer."""
    ask(page, OFF_TOPIC)
    page.get_by_test_id("refusal").scroll_into_view_if_needed()


def browsed(page: Page) -> None:
    """The cards of a topic."""
    page.get_by_test_id("to-cards").click()
    page.get_by_test_id("topic").select_option("inhaladores")


def unconfirmed(page: Page) -> None:
    """An answer with a sentence that its card does not say: the real one, changed on its way to the page."""

    def change(route: Route) -> None:
        answer = route.fetch(post_data=json.dumps({"question": QUESTION})).json()
        last = answer["citations"][-1]
        last |= {"verdict": "unsupported", "quote": "", "start": None, "end": None}
        words = {"type": "text", "text": "Con un vaso de leche no pasa nada. ", "language": "es", "supported": False}
        segments = [segment for segment in answer["segments"] if segment["type"] == "citation"]
        kept = answer["segments"][: answer["segments"].index(segments[-1]) - 1]
        answer |= {"mode": "llm", "segments": [*kept, words, segments[-1]]}
        route.fulfill(json=answer)

    page.route("**/ask", change)
    ask(page)
    page.get_by_test_id("answer").scroll_into_view_if_needed()


@dataclass(frozen=True, slots=True)
class Picture:
    """How a state of the page is reached, and on what it is shown."""

    prepare: Callable[[Page], None]
    size: tuple[int, int]
    locale: str = "es-ES"
    scheme: Literal["light", "dark"] = "light"


PICTURES: Mapping[str, Picture] = {
    "answer.png": Picture(with_card, DESKTOP),
    "phone.png": Picture(with_card, PHONE),
    "dark.png": Picture(lambda page: ask(page, ENGLISH), PHONE, locale="en-GB", scheme="dark"),
    "refusal.png": Picture(refused, PHONE),
    "cards.png": Picture(browsed, PHONE),
    "unconfirmed.png": Picture(unconfirmed, PHONE),
}


def main() -> int:
    """Take them all; 1 without a Chromium."""
    executable = find_chromium()
    if executable is None:
        print(REMEDY, file=sys.stderr)
        return 1
    IMAGES_DIR.mkdir(parents=True, exist_ok=True)
    with started_service() as service, sync_playwright() as playwright:
        service.wait_until_ready()
        browser = launch(playwright, executable)
        for name, picture in PICTURES.items():
            path = IMAGES_DIR / name
            _take(browser, service.url, picture, path)
            size = path.stat().st_size
            if size > MOST_BYTES:
                print(f"{path} has {size} bytes, more than {MOST_BYTES}", file=sys.stderr)
                return 1
            print(f"{path.relative_to(ROOT)}: {picture.size[0]} × {picture.size[1]} pixels, {size} bytes")
        browser.close()
    return 0


def _take(browser: Browser, url: str, picture: Picture, path: Path) -> None:
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        locale=picture.locale,
        color_scheme=picture.scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(url)
    picture.prepare(page)
    page.mouse.move(0, 0)
    # pictures show no cursor and no focus
    page.evaluate("document.activeElement.blur()")
    page.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    sys.exit(main())
