"""A light load over loopback: prepared requests on kept connections, sent when they are due."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

LOST = 0
"""In place of a status: no reply came."""
LOST_SECONDS = 10.0
MOST_CONNECTIONS = 400


@dataclass
class Outcome:
    """What became of a load."""

    seconds: float = 0.0
    """From the first request to the last reply."""
    latencies_ms: dict[int, list[float]] = field(default_factory=dict)
    """By status, from when a request was due, so that what waits in front of a slow service counts."""

    @property
    def counts(self) -> dict[int, int]:
        return {status: len(found) for status, found in sorted(self.latencies_ms.items())}

    @property
    def answered_each_second(self) -> float:
        return len(self.latencies_ms.get(200, [])) / self.seconds

    @property
    def longest_ms(self) -> float:
        return max((max(found) for found in self.latencies_ms.values()), default=0.0)

    def percentile(self, share: float) -> float:
        """Milliseconds within which that share of the answers came; 0 without answers."""
        found = sorted(self.latencies_ms.get(200, []))
        return found[min(len(found) - 1, int(share * len(found)))] if found else 0.0


class Target:
    """A service, and the requests that it gets in turn."""

    def __init__(self, url: str, questions: Sequence[str]) -> None:
        place = urlsplit(url)
        self.host, self.port = str(place.hostname), int(place.port or 80)
        self._requests = [self._request(question) for question in questions]
        self._next = 0
        self._free: list[_Connection] = []
        self._gate = asyncio.Semaphore(MOST_CONNECTIONS)

    def _request(self, question: str) -> bytes:
        body = json.dumps({"question": question}).encode()
        head = f"POST /ask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    async def ask(self) -> int:
        """Send the next request and read the reply; its status."""
        request = self._requests[self._next % len(self._requests)]
        self._next += 1
        async with self._gate:
            try:
                connection = await self._connection()
                async with asyncio.timeout(LOST_SECONDS):
                    status = await connection.exchange(request)
            except (OSError, TimeoutError):
                return LOST
            self._free.append(connection)
            return status

    async def _connection(self) -> _Connection:
        """The one used last, unless the service has closed it meanwhile, as it does with idle ones."""
        while self._free:
            connection = self._free.pop()
            if not connection.lost:
                return connection
        return (await asyncio.get_running_loop().create_connection(_Connection, self.host, self.port))[1]

    def close(self) -> None:
        """Close what is kept."""
        for connection in self._free:
            connection.close()


class _Connection(asyncio.Protocol):
    """One request after another; as little work as can be, as it takes the time of the service beside it."""

    def __init__(self) -> None:
        self.lost = False
        self._got = b""
        self._reply: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def exchange(self, request: bytes) -> asyncio.Future[int]:
        self._got, self._reply = b"", asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._reply

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, end, body = self._got.partition(b"\r\n\r\n")
        if not end or self._reply is None or self._reply.done():
            return
        if len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            self._reply.set_result(int(head[9:12]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self._reply and not self._reply.done():
            self._reply.set_exception(ConnectionResetError())

    def close(self) -> None:
        self._transport.close()


async def closed_loop(target: Target, *, clients: int, seconds: float) -> Outcome:
    """So many clients, each of which asks again as soon as it has its reply."""
    outcome, end = Outcome(), time.perf_counter() + seconds

    async def client() -> None:
        while (due := time.perf_counter()) < end:
            _note(outcome, await target.ask(), due)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    outcome.seconds = time.perf_counter() - started
    return outcome


async def open_loop(target: Target, *, each_second: float, seconds: float) -> Outcome:
    """Requests that are due at fixed times, whatever became of those before."""
    outcome = Outcome()
    started = time.perf_counter()

    async def request(due: float) -> None:
        _note(outcome, await target.ask(), due)

    async with asyncio.TaskGroup() as group:
        for due in _times(started, each_second, seconds):
            pause = due - time.perf_counter()
            # also when late: the replies have to be read meanwhile
            await asyncio.sleep(max(0.0, pause))
            group.create_task(request(due))
    outcome.seconds = time.perf_counter() - started
    return outcome


def _times(started: float, each_second: float, seconds: float) -> Iterator[float]:
    for number in range(round(each_second * seconds)):
        yield started + number / each_second


def _note(outcome: Outcome, status: int, due: float) -> None:
    outcome.latencies_ms.setdefault(status, []).append((time.perf_counter() - due) * 1e3)


def statuses(outcome: Outcome) -> str:
    """How many replies of each status there were, in words."""
    named = Counter({"no reply" if status == LOST else str(status): n for status, n in outcome.counts.items()})
    return ", ".join(f"{count} × {status}" for status, count in named.items())
