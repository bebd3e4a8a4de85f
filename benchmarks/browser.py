"""The Chromium that is installed: found on the path and started, for the screenshots and the tests of the page."""

from __future__ import annotations

import shutil

from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
REMEDY = "there is no Chromium on the path; install the package chromium (apt-get install -y chromium)"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """Where it is, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def launch(playwright: Playwright, executable: str, *flags: str) -> Browser:
    """Start it, without a window and with further flags; the caller closes it."""
    return playwright.chromium.launch(executable_path=executable, args=[*FLAGS, *flags])
