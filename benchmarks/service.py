"""The service as a process of its own, on a free port of loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60.0
ROUND = 20


@dataclass(frozen=True, slots=True)
class Service:
    """A service that was started."""

    url: str
    process: subprocess.Popen[bytes]

    def memory_mb(self) -> dict[str, int]:
        """Resident (``Rss``), proportional (``Pss``) and private (``Private``) memory of the process, in MB."""
        kib = {"Rss": 0, "Pss": 0, "Private": 0}
        for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if name in ("Rss", "Pss"):
                kib[name] += int(value.split()[0])
            elif name.startswith("Private_"):
                kib["Private"] += int(value.split()[0])
        return {name: round(value * 1024 / 1e6) for name, value in kib.items()}

    def wait_until_ready(self, path: str = "/readyz") -> None:
        """
        Wait for a reply of that path other than "not yet" (503).

        Raises:
            SystemExit: it ended, or took more than a minute.
        """
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            self.check_alive()
            try:
                if httpx.get(f"{self.url}{path}", timeout=5).status_code != 503:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise SystemExit("The service did not become ready.")

    def check_alive(self) -> None:
        """
        Check that the process has not ended.

        Raises:
            SystemExit: it has.
        """
        if self.process.poll() is not None:
            raise SystemExit("The service ended. Is there a model and an index? Try: make ingest")


class Caller:
    """A client that adds little of its own to what is measured; httpx takes a millisecond more for each request."""

    def __init__(self, service: Service) -> None:
        self._connection = HTTPConnection(service.url.removeprefix("http://"), timeout=60)

    def ask(self, question: str, path: str = "/ask") -> bytes:
        """
        The reply to a question.

        Raises:
            SystemExit: it is none with status 200.
        """
        body = json.dumps({"question": question}).encode()
        try:
            status, said = self._exchange(path, body)
        except ConnectionError:
            # kept too long without a question
            self._connection.close()
            status, said = self._exchange(path, body)
        if status != 200:
            raise SystemExit(f"{path} answered with {status}: {said[:200]!r}")
        return said

    def _exchange(self, path: str, body: bytes) -> tuple[int, bytes]:
        self._connection.request("POST", path, body, {"Content-Type": "application/json"})
        reply = self._connection.getresponse()
        return reply.status, reply.read()


def in_turns(questions: Sequence[str], asked: Mapping[str, Callable[[str], object]]) -> dict[str, list[float]]:
    """Milliseconds of each question with each of these, ``ROUND`` questions at a time, so that all meet one machine."""
    took: dict[str, list[float]] = {name: [] for name in asked}
    for first in range(0, len(questions), ROUND):
        for name, ask in asked.items():
            for question in questions[first : first + ROUND]:
                started = time.perf_counter()
                ask(question)
                took[name].append((time.perf_counter() - started) * 1e3)
    return took


@contextmanager
def started_service(changes: Mapping[str, str] | None = None) -> Iterator[Service]:
    """Start the service with the settings of this process and changes to them; not yet ready, stopped at the end."""
    # one caller asks all that is measured
    fixed = {"FICHERO_HOST": "127.0.0.1", "FICHERO_LOG_LEVEL": "warning", "FICHERO_RATE_PER_MINUTE": "0"}
    with started_process([sys.executable, "app.py"], {**fixed, **(changes or {})}) as service:
        yield service


@contextmanager
def started_process(command: Sequence[str], changes: Mapping[str, str]) -> Iterator[Service]:
    """Start a command that serves on ``PORT``, in the project's root; stopped at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PORT": str(port), **changes})
    try:
        yield Service(f"http://127.0.0.1:{port}", process)
    finally:
        process.terminate()
        process.wait(timeout=20)


def golden_questions(count: int) -> list[str]:
    """So many questions of the golden cases, from the first again where there are fewer."""
    lines = [
        json.loads(line)["question"]
        for path in sorted((ROOT / "tests" / "golden").glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    return [lines[number % len(lines)] for number in range(count)]
