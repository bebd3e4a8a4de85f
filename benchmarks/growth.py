"""
What more cards cost: build, index, start, memory and latency of boxes of many sizes: ``python -m benchmarks.growth``.

The cards are invented, about 1,000 characters each, with some texts standing in a box several times under other ids:
the model is paid for the distinct ones only.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.building import Peak, measure_build, question_about, write_box
from benchmarks.machine import describe_machine
from benchmarks.service import Caller, in_turns, started_service
from benchmarks.sizes import folder_bytes
from rag.builds import current_build
from rag.embedding import load_embedder
from rag.settings import parse_settings

SIZES = (60, 1_000, 5_000, 20_000)


@dataclass(frozen=True, slots=True)
class Size:
    """What a box of one size took."""

    cards: int
    build_seconds: float
    build_peak: Peak
    index_mb: float
    start_seconds: float
    memory_rss_mb: int
    memory_private_mb: int
    ask_p50_ms: float
    ask_p95_ms: float
    embedding_p50_ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="cards in each box (default: %(default)s)")
    parser.add_argument("--distinct", type=int, default=400, help="different texts among them (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=200, help="asked of each (default: %(default)s)")
    options = parser.parse_args(arguments)
    print(describe_machine())
    head = (
        "cards",
        "build s",
        "peak MB",
        "index MB",
        "start s",
        "RSS MB",
        "private",
        "p50 ms",
        "p95 ms",
        "bare p50",
        "ratio",
    )
    print("".join(f"{title:>10}" for title in head))
    for cards in options.sizes:
        with tempfile.TemporaryDirectory(prefix="fichero-growth-") as work:
            found = measure_size(Path(work), cards=cards, distinct=options.distinct, questions=options.questions)
        figures = (
            found.cards, round(found.build_seconds), round(found.build_peak.together), round(found.index_mb),
            round(found.start_seconds, 2), found.memory_rss_mb, found.memory_private_mb, round(found.ask_p50_ms, 1),
            round(found.ask_p95_ms, 1), round(found.embedding_p50_ms, 1),
            round(found.ask_p50_ms / found.embedding_p50_ms, 2),
        )  # fmt: skip
        print("".join(f"{figure:>10}" for figure in figures), flush=True)
    return 0


def measure_size(work: Path, *, cards: int, distinct: int, questions: int) -> Size:
    """Build a box in ``work``, serve it and ask it."""
    cards_dir, index_dir = work / "cards", work / "index"
    cards_dir.mkdir()
    write_box(cards_dir, cards=cards, distinct=distinct)
    peak, seconds, _ = measure_build(cards_dir, index_dir)
    asked = [question_about(number) for number in range(questions)]
    settings = parse_settings(os.environ)
    embedder = load_embedder(settings.model_dir, threads=settings.threads)
    started = time.perf_counter()
    with started_service({"FICHERO_INDEX_DIR": str(index_dir)}) as service:
        service.wait_until_ready()
        caller = Caller(service)
        caller.ask(asked[0])
        start = time.perf_counter() - started
        took = in_turns(asked, {"asked": caller.ask, "bare": embedder.embed_query})
        memory = service.memory_mb()
    return Size(
        cards=cards,
        build_seconds=seconds,
        build_peak=peak,
        index_mb=folder_bytes(current_build(index_dir)) / 1e6,
        start_seconds=start,
        memory_rss_mb=memory["Rss"],
        memory_private_mb=memory["Private"],
        ask_p50_ms=statistics.median(took["asked"]),
        ask_p95_ms=statistics.quantiles(took["asked"], n=20)[-1],
        embedding_p50_ms=statistics.median(took["bare"]),
    )


if __name__ == "__main__":
    sys.exit(main())
