"""
End the service again and again, and start it anew: ``python -m benchmarks.endings``.

Half of the rounds send SIGTERM while questions come on many connections, as streams and whole, some with a language
model that takes its time. Whatever was sent before the signal has to get a whole reply, or a stream that says how it
ended, within 8 seconds, by when the process has ended. The other half send SIGKILL at any moment, also while the
service starts, and start it again on what that left: it has to be ready and to answer.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from benchmarks.machine import describe_machine
from benchmarks.service import golden_questions, started_service
from tests.fake_llm import FakeLlm, says

CONNECTIONS = 16
MOST_SECONDS = 8.0
"""From SIGTERM to the end of the process."""
LOAD_SECONDS = 1.5
KILL_SECONDS = 3.0
"""SIGKILL comes at a moment before that, counted from the start of the process."""
SAID, DRIP_SECONDS = "El agua se bebe despacio. " * 16, 0.03
QUIET = {"FICHERO_LOG_LEVEL": "error"}
_ENDS = (b"event: done\n", b"event: error\n")


@dataclass
class Tally:
    """What the rounds came to."""

    ends: Counter[str] = field(default_factory=Counter)
    """Requests by how they ended."""
    stop_seconds: list[float] = field(default_factory=list)
    ready_seconds: list[float] = field(default_factory=list)
    left_over: int = 0
    """Folders that killed starts left in the folder for temporary files."""
    faults: list[str] = field(default_factory=list)


@dataclass
class _Caller:
    """One connection on which questions follow each other until the service closes it."""

    number: int
    sent_at: float = 0.0
    ends: list[str] = field(default_factory=list)
    last: bytes = b""
    """What has come of the last reply."""

    def ask_on(self, url: str, questions: Sequence[str]) -> None:
        """Ask until there is no whole reply; the last of ``ends`` is empty then."""
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), 30) as connection:
            for turn in range(len(questions)):
                question = questions[(self.number + turn) % len(questions)]
                self.ends.append("")
                self.last = b""
                try:
                    connection.sendall(_request(question, stream=bool((self.number + turn) % 2)))
                    self.sent_at = time.monotonic()
                    while not (end := how_it_ended(self.last)):
                        data = connection.recv(65_536)
                        if not data:
                            return
                        self.last += data
                except OSError:
                    return
                self.ends[-1] = end


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endings", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    chance, tally = random.Random(options.seed), Tally()
    print(describe_machine())
    for number in range(options.rounds):
        stop_round(tally, chance, {}, with_model=bool(number % 2))
        _show(number + 1, options.rounds, tally)
    for number in range(options.rounds):
        kill_round(tally, chance, {})
        _show(number + 1, options.rounds, tally)
    print("", file=sys.stderr)
    counted = ", ".join(f"{count:,} {end}" for end, count in tally.ends.most_common())
    print(f"{options.rounds} times SIGTERM under load: {counted}; ended after {_spread(tally.stop_seconds)} s")
    print(
        f"{options.rounds} times SIGKILL: ready again after {_spread(tally.ready_seconds)} s; "
        f"{tally.left_over} temporary folders left over"
    )
    for fault in tally.faults:
        print(f"FAULT {fault}")
    return int(bool(tally.faults))


def stop_round(tally: Tally, chance: random.Random, settings: Mapping[str, str], *, with_model: bool) -> None:
    """SIGTERM at some moment of a load."""
    questions = golden_questions(200)
    callers = [_Caller(number) for number in range(CONNECTIONS)]
    with _model() if with_model else _no_model() as model, started_service({**QUIET, **settings, **model}) as service:
        service.wait_until_ready()
        threads = [threading.Thread(target=caller.ask_on, args=(service.url, questions)) for caller in callers]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.2, LOAD_SECONDS))
        signalled = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(2 * MOST_SECONDS)
        try:
            service.process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            tally.faults.append(f"the process goes on {MOST_SECONDS:.0f} s after SIGTERM")
        seconds = time.monotonic() - signalled
    tally.stop_seconds.append(seconds)
    if seconds > MOST_SECONDS:
        tally.faults.append(f"it took {seconds:.1f} s to end")
    for caller in callers:
        for end in caller.ends:
            tally.ends[end or "sent too late"] += 1
        if caller.ends and not caller.ends[-1] and (caller.sent_at < signalled or caller.last):
            tally.faults.append(f"a request sent {signalled - caller.sent_at:.3f} s before SIGTERM got {caller.last!r}")


def kill_round(tally: Tally, chance: random.Random, settings: Mapping[str, str]) -> None:
    """SIGKILL at any moment, then a start on what is left."""
    with tempfile.TemporaryDirectory(prefix="fichero-endings-") as temporary:
        settings = {**QUIET, **settings, "TMPDIR": temporary}
        with started_service(settings) as service:
            asking = threading.Thread(target=_ask_until_gone, args=(service.url,))
            asking.start()
            time.sleep(chance.uniform(0.05, KILL_SECONDS))
            service.process.kill()
            service.process.wait()
            asking.join()
        tally.left_over += len(list(Path(temporary).iterdir()))
        started = time.monotonic()
        with started_service(settings) as service:
            service.wait_until_ready()
            tally.ready_seconds.append(time.monotonic() - started)
            reply = httpx.post(f"{service.url}/ask", json={"question": golden_questions(1)[0]}, timeout=30)
            if reply.status_code != 200:
                tally.faults.append(f"after SIGKILL it answers with {reply.status_code}")


def how_it_ended(reply: bytes) -> str:
    """How a whole reply ended, in words; empty while it is not whole."""
    head, end, body = reply.partition(b"\r\n\r\n")
    if not end:
        return ""
    status, lower = head[9:12].decode("ascii"), head.lower()
    if b"\r\ntransfer-encoding: chunked" in lower:
        event = next((name for name in _ENDS if name in body), None)
        return f"streams to {event[7:-1].decode()}" if event and body.endswith(b"0\r\n\r\n") else ""
    length = int(lower.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0] or 0)
    return f"with {status}" if len(body) >= length else ""


def _request(question: str, *, stream: bool) -> bytes:
    body = json.dumps({"question": question, "stream": stream}).encode()
    head = f"POST /ask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _ask_until_gone(url: str) -> None:
    """Ask a service that may not be there yet, until it is not there any more."""
    end, seen = time.monotonic() + KILL_SECONDS, False
    with httpx.Client(timeout=30) as client:
        while time.monotonic() < end:
            try:
                client.post(f"{url}/ask", json={"question": "¿Y el agua?"})
                seen = True
            except httpx.TransportError:
                if seen:
                    return
                time.sleep(0.02)


@contextmanager
def _model() -> Iterator[dict[str, str]]:
    """Settings for a language model that writes for some seconds, as a stream or whole."""
    with FakeLlm(lambda asked: replace(says(SAID), drip_seconds=DRIP_SECONDS)) as model:
        yield {"FICHERO_LLM_BASE_URL": model.url, "FICHERO_LLM_MODEL": "x", "FICHERO_LLM_CONCURRENCY": "16"}


@contextmanager
def _no_model() -> Iterator[dict[str, str]]:
    yield {}


def _spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.1f} (median; at most {max(seconds):.1f})"


def _show(done: int, total: int, tally: Tally) -> None:
    print(f"\r{done} of {total}, {len(tally.faults)} faults", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
