"""What an image promises, looked for in its files and while it runs."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.image.building import Image
from benchmarks.image.running import MEMORY_BYTES, Container, Reply
from benchmarks.sizes import folder_bytes

OURS = ("opt", "srv")
"""Folders of the image in which all that this project adds has its place."""
BILL = Path("srv/fichero/sbom.cdx.json")
LABELS = ("title", "description", "licenses", "version", "revision")
TOOLS = ("cc", "gcc", "g++", "clang", "make", "git", "uv")
SIZE_MB = 400
READY_SECONDS, STOP_SECONDS = 20.0, 8.0
QUESTION = "¿se supone que debo tomarlo con el estómago vacío?"


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise."""

    what: str
    holds: bool
    found: Any


def check_files(image: Image) -> Iterator[Finding]:
    """What can be seen without running it."""
    config = image.config
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()}
    yield Finding("labels", all(labels.get(name) for name in LABELS), ", ".join(sorted(labels)))
    yield Finding("does not run as root", config["User"].partition(":")[0] not in ("", "0", "root"), config["User"])
    yield Finding("health check", bool(config.get("Healthcheck")), (config.get("Healthcheck") or {}).get("Test"))
    yield Finding("no tool to build with", *_none_of(_tools(image.root)))
    yield Finding("nothing of the workshop", *_none_of(_left_over(image.root)))
    yield Finding("bill of materials", *_bill(image.root))
    size, base = (folder_bytes(root) / 1e6 for root in (image.root, image.base_root))
    yield Finding(
        f"at most {SIZE_MB} MB without the base", size - base <= SIZE_MB, f"{size - base:.0f} MB, on {base:.0f}"
    )


def check_running(container: Container) -> Iterator[Finding]:
    """What it does, from its start to its end."""
    ready = _wait_until_ready(container)
    yield Finding(f"ready within {READY_SECONDS:.0f} s", ready is not None, f"{ready:.1f} s" if ready else "not at all")
    if ready is None:
        return
    fields = container.status_fields()
    yield Finding("user", "0" not in fields["Uid"].split(), fields["Uid"].split()[0])
    yield Finding(
        "no rights beyond that", int(fields["CapEff"], 16) == 0 and fields["NoNewPrivs"] == "1", fields["CapEff"]
    )
    yield Finding("no network but its own loopback", container.interfaces() == ["lo"], container.interfaces())
    refused = [path for path in ("/srv/fichero", "/opt/run", "/etc") if _can_write(container, path)]
    yield Finding("cannot write but to /tmp", not refused and _can_write(container, "/tmp"), refused or "as promised")
    yield Finding("cited answer", *_cited_answer(container))
    page, health = container.ask("/"), container.execute("python", "-m", "rag.serving.healthcheck")
    yield Finding("page", page is not None and page.status == 200, f"{len(page.text):,} characters" if page else "none")
    yield Finding("health check passes", health.returncode == 0, health.returncode)
    used = container.memory_bytes()
    found = "not limited here" if used is None else f"{used / 1e6:.0f} MB at most, its files in /tmp included"
    yield Finding(f"within {MEMORY_BYTES / 1e6:.0f} MB", used is not None and used < MEMORY_BYTES, found)
    yield from _stopped(container)


def _none_of(found: list[str]) -> tuple[bool, str]:
    return not found, ", ".join(found) or "none"


def _tools(root: Path) -> list[str]:
    folders = ("bin", "usr/bin", "usr/local/bin", "opt/run/bin")
    return [f"{folder}/{name}" for folder in folders for name in TOOLS if (root / folder / name).exists()]


def _left_over(root: Path) -> list[str]:
    """Tests, installers, histories and caches in what this project adds."""
    names = {".git", ".github", ".pytest_cache", "pip", "wheel", "golden", "model_export", "cache"}
    found = [path for part in OURS for path in (root / part).rglob("*") if path.name in names and path.is_dir()]
    found += [path for path in (root / "srv/fichero").glob("*") if path.name in ("tests", "benchmarks", "docs")]
    # Debian's own, and what packages call by such names, are no business of ours
    return [
        str(path.relative_to(root))
        for path in found
        if "site-packages" not in path.parts or path.parts[-2] == "site-packages"
    ]


def _bill(root: Path) -> tuple[bool, str]:
    """All installed packages, by name and version, and the model."""
    try:
        bill = json.loads((root / BILL).read_text("utf-8"))
    except (OSError, ValueError) as error:
        return False, str(error)
    listed = {(_plain(part["name"]), part.get("version")) for part in bill["components"]}
    kinds = [part["type"] for part in bill["components"]]
    installed = {
        (_plain(name), version)
        for path in (root / "opt/run").rglob("*.dist-info")
        for name, _, version in [path.name.removesuffix(".dist-info").partition("-")]
    }
    missing = sorted(name for name, _ in installed - listed)
    holds = bool(installed) and not missing and "machine-learning-model" in kinds
    return (
        holds,
        f"lacks {', '.join(missing)}" if missing else f"{len(listed)} parts, as CycloneDX {bill['specVersion']}",
    )


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _wait_until_ready(container: Container) -> float | None:
    while (waited := time.monotonic() - container.started) < READY_SECONDS and not container.has_ended:
        try:
            reply = container.ask("/readyz")
        except (OSError, IndexError, ValueError):  # it is still being put together
            reply = None
        if reply and reply.status == 200:
            return waited
        time.sleep(0.05)
    return None


def _can_write(container: Container, folder: str) -> bool:
    code = f"open({folder + '/written'!r}, 'w').close()"
    return container.execute("python", "-c", code).returncode == 0


def _cited_answer(container: Container) -> tuple[bool, str]:
    """An answer whose citations hold, letter by letter."""
    reply = container.ask("/ask", {"question": QUESTION})
    if reply is None or reply.status != 200:
        return False, f"status {reply.status if reply else None}"
    citations = json.loads(reply.text)["citations"]
    held = [citation for citation in citations if citation["verdict"] == "valid" and _is_quoted(container, citation)]
    return bool(held) and len(held) == len(citations), f"{len(held)} citations of {len(citations)} hold"


def _is_quoted(container: Container, citation: dict[str, Any]) -> bool:
    card = container.ask(citation["url"])
    text = json.loads(card.text)["text"] if card else ""
    return bool(citation["quote"]) and text[citation["start"] : citation["end"]] == citation["quote"]


def _stopped(container: Container) -> Iterator[Finding]:
    """SIGTERM while questions are being answered: those get their answers, and it ends."""
    replies: list[Reply | None] = []
    asking = [
        threading.Thread(target=lambda: replies.append(container.ask("/ask", {"question": QUESTION}))) for _ in range(4)
    ]
    for thread in asking:
        thread.start()
    time.sleep(0.1)
    container.signal(signal.SIGTERM)
    seconds = container.wait(STOP_SECONDS)
    for thread in asking:
        thread.join()
    # who had not yet connected finds nobody, and is no reply
    statuses = [reply.status for reply in replies if reply]
    found = "it goes on" if seconds is None else f"after {seconds:.1f} s, with replies {statuses}"
    yield Finding(
        f"SIGTERM ends it within {STOP_SECONDS:.0f} s", seconds is not None and not set(statuses) - {200, 503}, found
    )
