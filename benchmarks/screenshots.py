"""The pictures of the README, taken from the running page: ``python -m benchmarks.screenshots``."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from benchmarks.browser import REMEDY, find_chromium, launch
from benchmarks.service import ROOT, started_service

IMAGES_DIR = ROOT / "docs" / "images"
QUESTION = "¿se supone que debo tomarlo con el estómago vacío?"
SIZES = {"answer.png": (1280, 800), "phone.png": (390, 844)}
"""Width and height in pixels."""
MOST_BYTES = 300_000


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
        for name, (width, height) in SIZES.items():
            path = IMAGES_DIR / name
            _take(browser, service.url, path, width, height)
            size = path.stat().st_size
            if size > MOST_BYTES:
                print(f"{path} has {size} bytes, more than {MOST_BYTES}", file=sys.stderr)
                return 1
            print(f"{path.relative_to(ROOT)}: {width} × {height} pixels, {size} bytes")
        browser.close()
    return 0


def _take(browser: Browser, url: str, path: Path, width: int, height: int) -> None:
    """Ask, open the second citation's card, and take the picture with its sentence in sight."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, locale="es-ES", color_scheme="light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(url)
    page.get_by_test_id("question").fill(QUESTION)
    page.get_by_test_id("ask").click()
    page.get_by_test_id("chip").nth(1).click()
    expect(page.locator("mark").first).to_be_in_viewport()
    page.mouse.move(0, 0)
    page.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    sys.exit(main())
