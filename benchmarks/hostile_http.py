"""Thousands of hostile bodies for a service over the index in use: ``python -m benchmarks.hostile_http [COUNT]``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import httpx

from benchmarks.hostile_bodies import Hostile, fault_of, hostile_bodies
from benchmarks.service import started_service

COUNT = 3_000
SHOWN_CHARS = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Send them all; 1 if the reply to any is a fault."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with started_service({"FICHERO_LOG_LEVEL": "error"}) as service:
        service.wait_until_ready()
        with httpx.Client(base_url=service.url, timeout=30) as caller:
            statuses, faults = try_all(caller, hostile_bodies(int(given[0]) if given else COUNT))
    for fault in faults:
        print(fault)
    print(", ".join(f"{count:,} of {status}" for status, count in sorted(statuses.items())))
    return 1 if faults else 0


def try_all(caller: httpx.Client, requests: Sequence[Hostile]) -> tuple[Counter[int], list[str]]:
    """How often there was each status, and what went wrong."""
    statuses: Counter[int] = Counter()
    faults = []
    for request in requests:
        headers = {b"Content-Type": request.kind.encode("latin-1")}
        content = request.content if request.pieces == 1 else _in_pieces(request)
        reply = caller.post(request.route, content=content, headers=headers)
        statuses[reply.status_code] += 1
        if fault := fault_of(request, reply.status_code, reply.headers.get("content-type", ""), reply.content):
            shown = request.content[:SHOWN_CHARS]
            faults.append(f"{request.route}, {request.kind[:60]!r}, {shown!r}: {fault}, {reply.text[:SHOWN_CHARS]}")
    return statuses, faults


def _in_pieces(request: Hostile) -> Iterator[bytes]:
    size = len(request.content) // request.pieces + 1
    for start in range(0, len(request.content), size):
        yield request.content[start : start + size]


if __name__ == "__main__":
    sys.exit(main())
