"""
The service beside LangChain's parent-document retriever and its ensemble with BM25, both over Chroma, with the same
cards, the same model and the same machine, in turns: ``python -m benchmarks.peer``. Needs a package registry once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import httpx

from benchmarks.machine import describe_machine
from benchmarks.packages import taken_out
from benchmarks.service import ROOT, Caller, Service, golden_questions, in_turns, started_process, started_service
from benchmarks.sizes import folder_bytes
from rag.cases import Case, read_golden_dir
from rag.embedding import file_sha256, load_embedder
from rag.metrics import success_at

HERE = Path(__file__).resolve().parent
NO_SERVER = 404
"""Of a path that the peer does not have, when it is there."""
MODEL_DIR = "PEER_MODEL_DIR"
NAMES = {"service": "/ask", "parent documents": "/ask", "ensemble": "/ensemble"}


@dataclass
class Figures:
    """Of one of them."""

    first_answer_seconds: float = 0.0
    ask_ms: list[float] = field(default_factory=list)
    success_at_1: float = 0.0
    memory_rss_mb: int = 0
    memory_private_mb: int = 0
    packages_mb: int = 0

    @property
    def p50_ms(self) -> float:
        return statistics.median(self.ask_ms)

    def percentile_ms(self, share: float) -> float:
        """Milliseconds within which that share was answered."""
        return sorted(self.ask_ms)[int(share * (len(self.ask_ms) - 1))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer", description=__doc__)
    parser.add_argument("--questions", type=int, default=1000, help="asked of each in a row (default: 1000)")
    parser.add_argument("--starts", type=int, default=5, help="starts to take the median of (default: 5)")
    parser.add_argument("--work", type=Path, default=ROOT / ".cache" / "peer", help="folder for all that is made")
    parser.add_argument("--peer-model", default="model", help="folder of the peer's model (default: model)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    options = parser.parse_args(arguments)
    work: Path = options.work.resolve()
    os.environ[MODEL_DIR] = options.peer_model
    ours = _environment(work / "ours", ROOT / "requirements.txt", without=sorted(taken_out() - {"pip", "setuptools"}))
    theirs = _environment(work / "theirs", HERE / "requirements.txt")
    index = work / "index"
    shutil.rmtree(index, ignore_errors=True)
    subprocess.run([*_peer(theirs), "build", str(index)], cwd=ROOT, check=True)
    figures = {name: Figures() for name in NAMES}
    for name in NAMES:
        figures[name].packages_mb = round(folder_bytes(ours if name == "service" else theirs) / 1e6)
    _measure_starts(figures, [*_peer(theirs), "serve", str(index)], options.starts)
    bare = _measure_answers(figures, [*_peer(theirs), "serve", str(index)], options.questions)
    _print(figures, bare, options.questions, as_json=options.json)
    return 0


def _environment(folder: Path, requirements: Path, *, without: Sequence[str] = ()) -> Path:
    """A virtual environment with these packages and nothing more; made anew when they change."""
    stamp, wanted = folder / "made-of", f"{file_sha256(requirements)} {' '.join(without)}"
    if not stamp.exists() or stamp.read_text("ascii") != wanted:
        print(f"Installing {requirements.relative_to(ROOT)} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        python = str(folder / "bin" / "python")
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--require-hashes", "-r", str(requirements)], check=True)
        if without:
            subprocess.run([*pip, "uninstall", "--yes", *without], check=True)
        subprocess.run([*pip, "uninstall", "--yes", "pip", "setuptools"], check=True)
        stamp.write_text(wanted, "ascii")
    return folder


def _peer(environment: Path) -> list[str]:
    return [str(environment / "bin" / "python"), "-m", "benchmarks.peer.app"]


def _measure_starts(figures: dict[str, Figures], peer: Sequence[str], starts: int) -> None:
    """Seconds from the start of the process to the first answer, in turns."""
    seconds: dict[str, list[float]] = {"service": [], "parent documents": []}
    with httpx.Client(timeout=60) as client:
        for _ in range(starts):
            for name, found in seconds.items():
                started = time.perf_counter()
                with started_service() if name == "service" else started_process(peer, {}) as service:
                    found.append(_until_answered(client, service, NAMES[name], started))
    for name, found in seconds.items():
        figures[name].first_answer_seconds = round(statistics.median(found), 2)
    # one process serves both
    figures["ensemble"].first_answer_seconds = figures["parent documents"].first_answer_seconds


def _until_answered(client: httpx.Client, service: Service, path: str, started: float) -> float:
    while True:
        service.check_alive()
        try:
            if client.post(f"{service.url}{path}", json={"question": "¿Y el agua?"}).status_code == 200:
                return time.perf_counter() - started
        except httpx.TransportError:
            pass
        time.sleep(0.02)


def _measure_answers(figures: dict[str, Figures], peer: Sequence[str], count: int) -> list[float]:
    """Latency in turns, memory afterwards, and what is found; milliseconds of the embedding alone."""
    questions = golden_questions(count)
    embedder = load_embedder(ROOT / "model")
    with ExitStack() as stack:
        service = stack.enter_context(started_service())
        other = stack.enter_context(started_process(peer, {}))
        service.wait_until_ready()
        other.wait_until_ready("/")
        callers = {name: Caller(service if name == "service" else other) for name in NAMES}
        asked: dict[str, Callable[[str], object]] = {
            name: partial(caller.ask, path=NAMES[name]) for name, caller in callers.items()
        }
        took = in_turns(questions, {**asked, "alone": embedder.embed_query})
        for name, caller in callers.items():
            figures[name].ask_ms = took[name]
            memory = (service if name == "service" else other).memory_mb()
            figures[name].memory_rss_mb, figures[name].memory_private_mb = memory["Rss"], memory["Private"]
            path = "/search" if name == "service" else NAMES[name]
            figures[name].success_at_1 = round(100 * _success_at_1(caller, path), 1)
    return took["alone"]


def _success_at_1(caller: Caller, path: str) -> float:
    """The share of answerable public questions whose first card is a right one."""
    cases: list[Case] = [
        case for case in read_golden_dir(ROOT / "tests" / "golden").cases if case.grades and case.groups == ("public",)
    ]
    found = []
    for case in cases:
        ranked = [card["card_id"] for card in json.loads(caller.ask(case.question, path))["retrieved"]]
        found.append(success_at(1, ranked, case.grades))
    return statistics.mean(found)


def _print(figures: dict[str, Figures], bare: Sequence[float], count: int, *, as_json: bool) -> None:
    alone = statistics.median(bare)
    rows = {
        name: {key: value for key, value in asdict(found).items() if key != "ask_ms"}
        | {
            "ask_p50_ms": round(found.p50_ms, 1),
            "ask_p95_ms": round(found.percentile_ms(0.95), 1),
            "ask_p99_ms": round(found.percentile_ms(0.99), 1),
            "ask_p50_ratio": round(found.p50_ms / alone, 2),
        }
        for name, found in figures.items()
    }
    if as_json:
        print(
            json.dumps({"machine": describe_machine(), "questions": count, "embedding_p50_ms": alone, **rows}, indent=1)
        )
        return
    print(describe_machine())
    print(f"{count} questions of each; the embedding alone p50 {alone:.1f} ms")
    print(f"{'':24}" + "".join(f"{name:>18}" for name in rows))
    for key in next(iter(rows.values())):
        print(f"{key:24}" + "".join(f"{row[key]:>18}" for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
