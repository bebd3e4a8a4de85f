"""What a question costs beside its embedding: ``python -m benchmarks.retrieval``.

The box is invented: random vectors and words, as many as a box of real cards of that size has. What is measured is the
whole of retrieval but the model: words, rows, sentences, fusion and gate.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import describe_machine
from rag.evidence import EvidenceWriter, open_evidence
from rag.lexical import LexicalWriter, open_lexical
from rag.opening import OpenIndex
from rag.records import PUBLIC_GROUP, Card, Row, Span
from rag.reference import Reference
from rag.retrieval import FUSIONS, retrieve
from rag.row_index import RowIndex

DIMENSION, CHUNKS, SENTENCES, WORDS = 384, 4, 12, 160
VOCABULARY, QUESTION_WORDS = 20_000, 9
COMMON = 1.6
"""How much all vectors have in common: e5's lie in a narrow cone."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Known:
    """An embedder for one question, free of charge."""

    vector: Vectors

    def embed_query(self, question: str) -> Vectors:
        return self.vector

    def truncates(self, question: str) -> bool:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("--cards", type=int, nargs="+", default=[100, 1_000, 5_000], metavar="N")
    parser.add_argument("--questions", type=int, default=300)
    options = parser.parse_args(arguments)
    print(describe_machine())
    print(f"{'cards':>8} {'rows':>8}  " + "  ".join(f"{name:>22}" for name in FUSIONS) + "   (ms, p50 / p95)")
    for cards in options.cards:
        random = np.random.default_rng(1)
        with tempfile.TemporaryDirectory(prefix="fichero-retrieval-") as work:
            index = _box(Path(work), cards, random)
            figures = _measure(index, random, options.questions)
        shown = "  ".join(f"{p50:13.2f} / {p95:6.2f}" for p50, p95 in figures)
        print(f"{cards:8d} {cards * CHUNKS:8d}  {shown}", flush=True)
    return 0


def _box(folder: Path, count: int, random: np.random.Generator) -> OpenIndex:
    centre = _unit(random.normal(size=(1, DIMENSION)))[0]
    cards = [
        Card(f"c{number:06d}", "Aviso", _words(random, WORDS), "es", (), None, None, None, (PUBLIC_GROUP,))
        for number in range(count)
    ]
    rows = [
        Row(f"{card.card_id}::{chunk:02d}", chunk, chunk * 100, chunk * 100 + 100, "", card, "", "")
        for card in cards
        for chunk in range(CHUNKS)
    ]
    words = LexicalWriter()
    spans = [Span(number * 60, number * 60 + 59) for number in range(SENTENCES)]
    with EvidenceWriter(folder / "sentences", DIMENSION) as sentences:
        for card in cards:
            words.add(card, [card.text])
            sentences.add(card.card_id, spans, ["es"] * SENTENCES, _near(random, centre, SENTENCES))
    words.write(folder / "lexical")
    flat = {"es": np.zeros(DIMENSION, np.float32), "en": np.zeros(DIMENSION, np.float32)}
    return OpenIndex(
        "invented",
        RowIndex(rows, _near(random, centre, len(rows)), Reference(flat, flat)),
        open_lexical(folder / "lexical"),
        open_evidence(folder / "sentences"),
        {"es": 0.0, "en": 0.0},
    )


def _measure(index: OpenIndex, random: np.random.Generator, count: int) -> list[tuple[float, float]]:
    """P50 and P95 of each way to fuse, question by question in turns."""
    centre = _unit(random.normal(size=(1, DIMENSION)))[0]
    times: dict[str, list[float]] = {fusion: [] for fusion in FUSIONS}
    for vector in _near(random, centre, count):
        question = f"¿{_words(random, QUESTION_WORDS)}?"
        for fusion in FUSIONS:
            found = retrieve(question, (PUBLIC_GROUP,), index=index, embedder=_Known(vector), top_k=5, fusion=fusion)
            times[fusion].append(found.search_ms)
    return [(float(np.median(times[fusion])), float(np.quantile(times[fusion], 0.95))) for fusion in FUSIONS]


def _words(random: np.random.Generator, count: int) -> str:
    # Zipf's law: the word of rank n is n times rarer than the first
    ranks = np.floor(np.exp(random.random(count) * np.log(VOCABULARY))).astype(int)
    return " ".join(f"palabra{rank}" for rank in ranks)


def _near(random: np.random.Generator, centre: Vectors, count: int) -> Vectors:
    return _unit(COMMON * centre + random.normal(size=(count, DIMENSION)) / np.sqrt(DIMENSION))


def _unit(vectors: NDArray[np.floating]) -> Vectors:
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


if __name__ == "__main__":
    sys.exit(main())
