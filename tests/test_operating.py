"""What an operator sees of the service: its metrics and its log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag.serving.logs import JsonLines, PlainLines, noted
from tests.conftest import Server, running

SECRET = "xyzzy"
"""In all that callers send here, and nowhere in what an operator reads."""
SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Operated:
    """A service, and the file that its log goes into."""

    server: Server
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """What was logged."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]

    def samples(self) -> dict[tuple[str, str], float]:
        """Name and labels → value."""
        text = httpx.get(f"{self.server.url}/metrics").text
        return {(name, labels): float(value) for name, labels, value in SAMPLE.findall(text)}


@pytest.fixture(scope="module")
def operated(hostile_index_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    log = tmp_path_factory.mktemp("operated") / "log"
    settings = {"FICHERO_INDEX_DIR": str(hostile_index_dir), "FICHERO_LOG_LEVEL": "info"}
    with running({**settings, "FICHERO_MIN_SIMILARITY": "0"}, log=log) as server:
        yield Operated(server, log)


def test_every_request_is_one_line_without_a_word_of_its_caller(operated: Operated) -> None:
    """A line says route, status, time and how an answer ended, and nothing of what was asked, sent or called for."""
    before = len(operated.lines())
    with httpx.Client(base_url=operated.server.url, headers={"X-Odd": SECRET, "User-Agent": SECRET}) as client:
        replies = [
            client.post("/ask", json={"question": f"¿Qué dice la ficha de {SECRET}?"}),
            client.post("/ask", json={"question": f"¿Qué dice {SECRET}?", "stream": True}),
            client.get("/ask", params={"q": SECRET * 400}),
            client.post("/search", json={"question": SECRET}),
            client.post("/ask", content=f"{{{SECRET}"),
            client.get(f"/{SECRET}/{SECRET}"),
            client.get(f"/cards/{SECRET}"),
            client.request(SECRET.upper(), "/ask"),
            client.get("/cards", headers={"Authorization": f"Bearer {SECRET}"}),
        ]
    lines = operated.lines()[before:]
    assert [(line["route"], line["status"], line["request_id"]) for line in lines] == [
        (route, reply.status_code, reply.headers["x-request-id"])
        for route, reply in zip(
            ["ask", "ask", "ask", "search", "ask", "none", "show_card", "ask", "list_cards"], replies, strict=True
        )
    ]
    assert lines[0].keys() == {
        "time", "level", "logger", "message", "request_id", "route", "status", "ms", "outcome", "mode", "language",
    }  # fmt: skip
    assert [line.get("outcome") for line in lines] == [*["answered"] * 3, *[None] * 6]
    assert SECRET not in operated.log.read_text("utf-8").lower()
    assert SECRET not in httpx.get(f"{operated.server.url}/metrics").text


def test_what_happens_is_measured(operated: Operated) -> None:
    """Requests, answers, refusals, questions too long for the model and stages grow with what is asked."""
    before = operated.samples()
    with httpx.Client(base_url=operated.server.url) as client:
        client.post("/ask", json={"question": "¿Qué dice la ficha?"})
        client.post("/ask", json={"question": "¿Q. é?" * 300})
        client.post("/ask", json={"question": ""})
        client.get("/nothing")
    after = operated.samples()

    def grown(name: str, labels: str = "") -> float:
        return after.get((name, labels), 0.0) - before.get((name, labels), 0.0)

    assert grown("fichero_requests_total", 'route="ask",status="200"') == 2
    assert grown("fichero_requests_total", 'route="ask",status="422"') == 1
    assert grown("fichero_requests_total", 'route="none",status="404"') == 1
    assert grown("fichero_request_seconds_count", 'route="ask"') == 3
    assert grown("fichero_answers_total", 'mode="extractive",outcome="answered"') == 2
    assert grown("fichero_questions_truncated_total") == 1
    assert (
        grown("fichero_stage_seconds_count", 'stage="embed"')
        == grown("fichero_stage_seconds_count", 'stage="search"')
        == 2
    )
    assert after["fichero_ready", ""] == 1
    assert (
        after["fichero_waiting", ""]
        == after["fichero_turned_away_total", ""]
        == after["fichero_reload_failed", ""]
        == 0
    )
    assert after["process_resident_memory_bytes", ""] > 50e6
    version = httpx.get(f"{operated.server.url}/readyz").json()["index_version"]
    assert after["fichero_index_info", f'version="{version}"'] == 1


def test_no_caller_makes_a_label(operated: Operated) -> None:
    """Whatever paths, methods, statuses and questions come, there is no more to keep than before."""
    with httpx.Client(base_url=operated.server.url) as client:
        for attempt in range(60):
            client.get(f"/{attempt}/{attempt}")
            client.get(f"/cards/{attempt}")
            client.request(f"M{attempt}", "/ask")
            client.get("/ask", params={"q": f"¿{attempt}?", f"p{attempt}": "1"})
            if attempt == 9:
                before = operated.samples().keys()
    assert operated.samples().keys() == before


def test_text_for_people_says_the_same() -> None:
    """Both forms have message, fields and exception; a line break in a message does not make a second JSON line."""
    try:
        raise ValueError("x")
    except ValueError as error:
        record = logging.LogRecord("a.b", logging.ERROR, "p", 1, "two\nlines %s", ("ñ",), (type(error), error, None))
    for name, value in noted(status=500, route="ask").items():
        setattr(record, name, value)
    line = JsonLines().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert found | {"time": ""} == {
        "time": "", "level": "ERROR", "logger": "a.b", "message": "two\nlines ñ", "status": 500, "route": "ask",
        "exception": "ValueError: x",
    }  # fmt: skip
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", found["time"])
    assert PlainLines().format(record).endswith("ERROR a.b two\nlines ñ status=500 route=ask\nValueError: x")
