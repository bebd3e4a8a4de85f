"""What each part of the ranking is worth: ``python -m benchmarks.ranking BEIR_DIR...``.

Ranks the same index by the cosine of each card's best chunk, by its score with the language taken out, and as the
service does, with the best sentence added.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine
from rag.cases import Case, read_beir
from rag.embedding import Embedder, load_embedder
from rag.indexing import Builder, BuildOptions
from rag.language import detect_language
from rag.metrics import mean, success_at
from rag.opening import OpenIndex, open_index
from rag.records import PUBLIC_GROUP
from rag.retrieval import retrieve
from rag.settings import Settings, parse_settings

COLUMNS = ("chunk cosine", "chunk score", "chunk and sentence")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="BEIR_DIR")
    options = parser.parse_args(arguments)
    settings = parse_settings(os.environ)
    embedder = load_embedder(settings.model_dir, threads=settings.threads)
    print(describe_machine())
    print(f"success@1, per cent{'':22}" + "".join(f"{name:>20}" for name in COLUMNS))
    for folder in options.folders:
        figures = _measure(folder, embedder, settings)
        name = "/".join(folder.parts[-2:])
        print(f"{name:40} " + "".join(f"{figure:20.1f}" for figure in figures), flush=True)
    return 0


def _measure(folder: Path, embedder: Embedder, settings: Settings) -> list[float]:
    cards, cases = read_beir(folder)
    build = BuildOptions(settings.chunk_chars, settings.overlap_chars, settings.context)
    with tempfile.TemporaryDirectory(prefix="fichero-ranking-") as work:
        Builder(Path(work), settings.model_dir, build, settings.threads).build(cards)
        index = open_index(Path(work), embedder.description)
        found = [_first_cards(case, index, embedder, len(cards)) for case in cases if case.grades]
    return [100 * mean([firsts[column] for firsts in found]) for column in range(len(COLUMNS))]


def _first_cards(case: Case, index: OpenIndex, embedder: Embedder, count: int) -> list[float]:
    """Success@1 of each column for one question."""
    vector, language = embedder.embed_query(case.question), detect_language(case.question)
    hits = index.rows.search(vector, language, (PUBLIC_GROUP,), count=count)
    full = retrieve(case.question, (PUBLIC_GROUP,), index=index, embedder=embedder, top_k=1)
    firsts = (
        max(hits, key=lambda hit: hit.cosine).card.card_id,
        hits[0].card.card_id,
        full.passages[0].card.card_id,
    )
    return [success_at(1, [first], case.grades) for first in firsts]


if __name__ == "__main__":
    sys.exit(main())
