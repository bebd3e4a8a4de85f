"""The pictures of the README, taken from the running page: ``python -m benchmarks.screenshots``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Browser, expect, sync_playwright

from benchmarks.browser import REMEDY, find_chromium, launch

ROOT = Path(__file__).resolve().parent.parent
IMAGES_DIR = ROOT / "docs" / "images"
QUESTION = "¿se supone que debo tomarlo con el estómago vacío?"
SIZES = {"answer.png": (1280, 800), "phone.png": (390, 844)}
"""Width and height in pixels."""
MOST_BYTES = 300_000
START_SECONDS = 60.0


def main() -> int:
    """Take them all; 1 without a Chromium."""
    executable = find_chromium()
    if executable is None:
        print(REMEDY, file=sys.stderr)
        return 1
    IMAGES_DIR.mkdir(parents=True, exist_ok=True)
    with _service() as url, sync_playwright() as playwright:
        browser = launch(playwright, executable)
        for name, (width, height) in SIZES.items():
            path = IMAGES_DIR / name
            _take(browser, url, path, width, height)
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


@contextmanager
def _service() -> Iterator[str]:
    """The address of the service, started on a free port and stopped at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PORT": str(port), "FICHERO_HOST": "127.0.0.1", "FICHERO_LOG_LEVEL": "error"}
    process = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment)
    try:
        _wait(process, f"http://127.0.0.1:{port}/readyz")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait(process: subprocess.Popen[bytes], address: str) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            if httpx.get(address, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise SystemExit("The service does not start. Is there a model and an index? Try: make ingest")


if __name__ == "__main__":
    sys.exit(main())
