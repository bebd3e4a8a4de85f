"""
How many questions the service answers on this machine, and what it does when there are more:
``python -m benchmarks.capacity``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from benchmarks.load import Outcome, Target, closed_loop, open_loop, statuses
from benchmarks.machine import describe_machine
from benchmarks.service import Service, golden_questions, started_service
from rag.embedding import Embedder, load_embedder
from rag.serving.admission import AT_WORK
from rag.settings import parse_settings

CLIENTS = (1, 2, 4, 8, 16, 32, 64)
SHARES = (0.5, 0.8, 1.0, 2.0, 10.0)
"""Of the capacity, as arrivals."""
SILENT = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One load, and what became of it."""

    load: str
    answered_each_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    longest_ms: float
    replies: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each load (default: 8)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    options = parser.parse_args(arguments)
    settings = parse_settings(os.environ)
    embedder = load_embedder(settings.model_dir, threads=settings.threads)
    questions = golden_questions(200)
    with started_service() as service:
        service.wait_until_ready()
        bare, rows = asyncio.run(_measure(service, embedder, questions, options.seconds))
        memory = service.memory_mb()
    capacity = max(row.answered_each_second for row in rows if "clients" in row.load)
    figures = {
        "machine": describe_machine(),
        "bare_embeddings_each_second": round(bare, 1),
        "capacity_each_second": capacity,
        "capacity_ratio": round(capacity / bare, 2),
        "memory_rss_mb": memory["Rss"],
        "rows": [asdict(row) for row in rows],
    }
    print(json.dumps(figures, indent=1) if options.json else _as_text(figures, rows))
    return 0


async def _measure(
    service: Service, embedder: Embedder, questions: Sequence[str], seconds: float
) -> tuple[float, list[Row]]:
    """Embeddings a second of the model alone, in turns with the clients; then arrivals at shares of the capacity."""
    rows, bare, capacity = [], [], 0.0
    target = Target(service.url, questions)
    await closed_loop(target, clients=4, seconds=2)
    for clients in CLIENTS:
        bare.append(await asyncio.to_thread(_bare, embedder, questions, seconds / 2))
        outcome = await closed_loop(target, clients=clients, seconds=seconds)
        capacity = max(capacity, outcome.answered_each_second)
        rows.append(_row(f"{clients} clients", outcome))
    for share in SHARES:
        outcome = await open_loop(target, each_second=share * capacity, seconds=seconds)
        rows.append(_row(f"{share:g} × capacity", outcome))
    for name, trickle in (("silent", False), ("trickling", True)):
        async with asyncio.TaskGroup() as group:
            idle = [group.create_task(_idle(target, trickle=trickle)) for _ in range(SILENT)]
            await asyncio.sleep(0.5)
            rows.append(_row(f"0.5 × capacity beside {SILENT} {name} connections", await open_loop(
                target, each_second=0.5 * capacity, seconds=seconds)))  # fmt: skip
            for task in idle:
                task.cancel()
    target.close()
    return statistics.median(bare), rows


def _bare(embedder: Embedder, questions: Sequence[str], seconds: float) -> float:
    """Embeddings a second, as many at a time as the service works on."""
    end, done = time.perf_counter() + seconds, [0] * AT_WORK

    def work(number: int) -> None:
        at = number
        while time.perf_counter() < end:
            embedder.embed_query(questions[at % len(questions)])
            at += AT_WORK
            done[number] += 1

    started = time.perf_counter()
    with ThreadPoolExecutor(AT_WORK) as threads:
        list(threads.map(work, range(AT_WORK)))
    return sum(done) / (time.perf_counter() - started)


async def _idle(target: Target, *, trickle: bool) -> None:
    """Connect and say nothing, or a byte now and then; again when the connection is closed."""
    while True:
        try:
            reader, writer = await asyncio.open_connection(target.host, target.port)
            writer.write(b"POST /ask HTTP/1.1\r\nX: " if trickle else b"")
            while trickle and not reader.at_eof():
                writer.write(b"a")
                await asyncio.sleep(0.5)
            await reader.read()
            writer.close()
        except OSError:
            await asyncio.sleep(0.1)


def _row(load: str, outcome: Outcome) -> Row:
    p50, p95, p99 = (round(outcome.percentile(share), 1) for share in (0.5, 0.95, 0.99))
    each_second, longest = round(outcome.answered_each_second, 1), round(outcome.longest_ms, 1)
    return Row(load, each_second, p50, p95, p99, longest, statuses(outcome))


def _as_text(figures: dict[str, object], rows: Sequence[Row]) -> str:
    lines = [
        str(figures["machine"]),
        f"the embedding alone {figures['bare_embeddings_each_second']} a second; /ask at most "
        f"{figures['capacity_each_second']}; ratio {figures['capacity_ratio']}; "
        f"{figures['memory_rss_mb']} MB afterwards",
        f"{'load':44} {'answers/s':>9} {'p50 ms':>8} {'p95':>8} {'p99':>8} {'longest':>8}  replies",
    ]
    lines += [
        f"{row.load:44} {row.answered_each_second:9.1f} {row.p50_ms:8.1f} {row.p95_ms:8.1f} {row.p99_ms:8.1f} "
        f"{row.longest_ms:8.1f}  {row.replies}"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
