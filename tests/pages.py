"""Tabs of a real Chromium on the page, and what must not happen in any of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, ViewportSize, expect, sync_playwright

from benchmarks.browser import REMEDY, find_chromium, launch
from tests.playing import Playing

WAIT_MS = 15_000
TABS_MOST = 40

REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy violated: ${event.violatedDirective} by ${event.blockedURI}`);
});
"""


@dataclass
class Visit:
    """A tab of its own profile, and what happened in it."""

    page: Page
    url: str
    expected_fault: str | None = None
    """A part of the messages that the console may show."""
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What must not happen: errors, warnings, violations of the policy, dialogs, requests to other places."""

    def listen(self) -> None:
        self.page.on("console", lambda message: self.note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.note("error", str(error)))
        self.page.on("dialog", self.refuse)
        self.page.context.on("request", lambda request: self.follow(request.url))

    def note(self, kind: str, text: str) -> None:
        expected = self.expected_fault is not None and self.expected_fault in text
        if kind in ("error", "warning") and not expected:
            self.faults.append(f"{kind}: {text}")

    def refuse(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def follow(self, address: str) -> None:
        self.requests.append(address)
        if not address.startswith((f"{self.url}/", f"blob:{self.url}/")):
            self.faults.append(f"request: {address}")

    def one(self, test_id: str) -> Locator:
        return self.page.get_by_test_id(test_id)

    def ask(self, question: str) -> dict[str, Any]:
        """Ask by the form, wait until the answer is shown, and give what the service said."""
        before = self.one("answer").count()
        self.one("question").fill(question)
        self.one("ask").click()
        expect(self.one("answer")).to_have_count(before + 1)
        return self.last_answer()

    def last_answer(self) -> dict[str, Any]:
        """The answer object that the page was sent last, as it keeps it."""
        found: dict[str, Any] = self.page.evaluate("JSON.parse(sessionStorage.getItem('fichero-conversation')).at(-1)")
        return found

    def tab_to(self, target: Locator) -> None:
        """Press Tab until the focus is there."""
        for _ in range(TABS_MOST):
            self.page.keyboard.press("Tab")
            if target.evaluate("node => node === document.activeElement"):
                return
        pytest.fail(f"{TABS_MOST} presses of Tab do not reach {target}")

    def marked(self) -> str:
        """The highlighted text of the open card."""
        expect(self.page.locator("mark").first).to_be_in_viewport()
        text: str = self.page.locator("mark").evaluate_all("marks => marks.map((mark) => mark.textContent).join('')")
        return text

    def sideways(self) -> int:
        """How many pixels the page, or the open card in it, can be scrolled to the side."""
        excess: int = self.page.evaluate(
            """() => [document.scrollingElement, document.getElementById("card-scroll")]
              .map((box) => Math.max(0, box.scrollWidth - box.clientWidth)).reduce((one, other) => one + other)"""
        )
        return excess


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """A running Chromium with further flags; without one the test is skipped, and fails where all have to run."""
    executable = find_chromium()
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail(REMEDY)
        pytest.skip(REMEDY)
    with sync_playwright() as playwright:
        started = launch(playwright, executable, *flags)
        expect.set_options(timeout=WAIT_MS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the module; closed with it, as its event loop would be in the way of other tests."""
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Callable[..., Visit]]:
    """Opens the page in a fresh profile; at the end, nothing may have gone wrong in any."""
    visits: list[Visit] = []

    def open_page(
        address: str = "",
        *,
        width: int = 1280,
        height: int = 800,
        locale: str = "es-ES",
        token: str | None = None,
        expected_fault: str | None = None,
        url: str | None = None,
        **options: Any,
    ) -> Visit:
        url = url or request.getfixturevalue("server").url
        viewport = ViewportSize(width=width, height=height)
        # without motion, what is measured has come to rest
        context = browser.new_context(**{"viewport": viewport, "locale": locale, "reduced_motion": "reduce"} | options)
        context.set_default_timeout(WAIT_MS)
        context.add_init_script(REPORT_VIOLATIONS)
        if token is not None:
            context.add_init_script(f"sessionStorage.setItem('fichero-token', '{token}')")
        opened = Visit(context.new_page(), url, expected_fault)
        visits.append(opened)
        opened.listen()
        opened.page.goto(f"{url}/{address}")
        return opened

    yield open_page
    for opened in visits:
        opened.page.context.close()
    faults = [fault for opened in visits for fault in opened.faults]
    assert not faults, faults


@pytest.fixture
def play(browser: Browser) -> Iterator[Callable[..., Playing]]:
    """Starts servers that play scenes; they end with the test."""
    with ExitStack() as stack:
        yield lambda *scenes, **options: stack.enter_context(Playing(*scenes, **options))
        # while there is still a server, as what is on its way would count as lost
        for context in browser.contexts:
            context.close()


def plain(text: str) -> str:
    """A quote without the marks of Markdown, and without spaces, as there are none between the cells of a table."""
    return "".join(text.strip().removeprefix("- ").translate(str.maketrans("", "", "*_`#|")).split())
