"""Start, memory and latency of the whole service over loopback: ``python -m benchmarks.serving``."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import httpx

from benchmarks.machine import describe_machine
from benchmarks.service import ROUND, Caller, Service, golden_questions, in_turns, started_service
from rag.embedding import Embedder, load_embedder
from rag.settings import parse_settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--questions", type=int, default=200, help="asked in a row by one client (default: 200)")
    parser.add_argument("--starts", type=int, default=5, help="starts to take the median of (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    options = parser.parse_args(arguments)
    questions = golden_questions(options.questions)
    starts = [_seconds_to_first_answer(questions[0]) for _ in range(options.starts)]
    settings = parse_settings(os.environ)
    embedder = load_embedder(settings.model_dir, threads=settings.threads)
    with started_service() as service:
        service.wait_until_ready()
        asked, bare = _compare(service, embedder, questions)
        memory = service.memory_mb()
    figures = {
        "first_answer_seconds": round(statistics.median(starts), 2),
        "memory_rss_mb": memory["Rss"],
        "memory_pss_mb": memory["Pss"],
        "memory_private_mb": memory["Private"],
        "ask_p50_ms": round(statistics.median(asked), 2),
        "ask_p95_ms": round(statistics.quantiles(asked, n=20)[-1], 2),
        "ask_p99_ms": round(statistics.quantiles(asked, n=100)[-1], 2),
        "embedding_p50_ms": round(statistics.median(bare), 2),
        "ratio_p50": round(statistics.median(asked) / statistics.median(bare), 2),
    }
    if options.json:
        print(json.dumps({"machine": describe_machine(), "questions": len(questions), **figures}, indent=1))
        return 0
    print(describe_machine())
    print(f"process start to first answer: {figures['first_answer_seconds']} s (median of {options.starts})")
    print(
        f"memory after {len(questions)} questions: {figures['memory_rss_mb']} MB resident, of which "
        f"{figures['memory_private_mb']} MB private (the rest is mapped files)"
    )
    print(
        f"/ask p50 {figures['ask_p50_ms']} ms, p95 {figures['ask_p95_ms']} ms, p99 {figures['ask_p99_ms']} ms; "
        f"the embedding alone p50 {figures['embedding_p50_ms']} ms; ratio {figures['ratio_p50']}"
    )
    return 0


def _compare(service: Service, embedder: Embedder, questions: Sequence[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each question, asked and only embedded, in alternating rounds after a warm-up."""
    asked: dict[str, Callable[[str], object]] = {"asked": Caller(service).ask, "bare": embedder.embed_query}
    in_turns(questions[:ROUND], asked)
    took = in_turns(questions, asked)
    return took["asked"], took["bare"]


def _seconds_to_first_answer(question: str) -> float:
    # the client is made before the clock starts: making one costs as much as ten questions
    with httpx.Client(timeout=30) as client:
        started = time.perf_counter()
        with started_service() as service:
            while True:
                service.check_alive()
                try:
                    if client.post(f"{service.url}/ask", json={"question": question}).status_code == 200:
                        return time.perf_counter() - started
                except httpx.TransportError:
                    pass
                time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
