"""What each part of the ranking is worth: ``python -m benchmarks.ranking BEIR_DIR...``.

Ranks the same index by the cosine of each card's best chunk, by its score with the language taken out, by the dense
score (chunk, sentence and question together), by words alone, and by both fused in two ways.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from rag.cases import Case, read_beir
from rag.embedding import Embedder, load_embedder
from rag.indexing import Builder, BuildOptions
from rag.metrics import mean, success_at
from rag.opening import OpenIndex, open_index
from rag.records import PUBLIC_GROUP
from rag.retrieval import FUSIONS, question_language, retrieve
from rag.settings import Settings, parse_settings

COLUMNS = ("chunk cosine", "chunk score", "words", *FUSIONS)
_PUBLIC = (PUBLIC_GROUP,)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="BEIR_DIR")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the vectors there; else they are thrown away")
    options = parser.parse_args(arguments)
    settings = parse_settings(os.environ)
    embedder = load_embedder(settings.model_dir, threads=settings.threads)
    print(describe_machine())
    print(f"success@1, per cent{'':13}" + "".join(f"{name:>14}" for name in COLUMNS))
    for folder in options.folders:
        figures = _measure(folder, options.work, embedder, settings)
        name = "/".join(folder.parts[-2:])
        print(f"{name:31} " + "".join(f"{figure:14.1f}" for figure in figures), flush=True)
    return 0


def _measure(folder: Path, kept: Path | None, embedder: Embedder, settings: Settings) -> list[float]:
    cards, cases = read_beir(folder)
    build = BuildOptions(settings.chunk_chars, settings.overlap_chars, settings.context)
    work: AbstractContextManager[Any] = (
        nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="fichero-ranking-")
    )
    with work as index_dir:
        Builder(Path(index_dir), settings.model_dir, build, settings.threads).build(cards)
        index = open_index(Path(index_dir), embedder.description)
        found = [_firsts(case, index, embedder, len(cards)) for case in cases if case.grades]
    return [100 * mean([firsts[column] for firsts in found]) for column in range(len(COLUMNS))]


def _firsts(case: Case, index: OpenIndex, embedder: Embedder, count: int) -> list[float]:
    """Success@1 of each column for one question."""
    known = _Known(embedder, case.question)
    language = question_language(case.question, known.vector, index)
    hits = index.rows.search(known.vector, language, _PUBLIC, count=count)
    rankings = [
        [max(hits, key=lambda hit: hit.cosine).card.card_id],
        [hits[0].card.card_id],
        [card_id for card_id, _ in index.lexical.search(case.question, language, _PUBLIC).best(1)],
    ]
    for fusion in FUSIONS:
        found = retrieve(case.question, _PUBLIC, index=index, embedder=known, top_k=1, fusion=fusion)
        rankings.append([passage.card.card_id for passage in found.passages])
    return [success_at(1, ranking, case.grades) for ranking in rankings]


class _Known:
    """One question, embedded once."""

    def __init__(self, embedder: Embedder, question: str) -> None:
        self.vector = embedder.embed_query(question)

    def embed_query(self, question: str) -> Any:
        return self.vector

    def truncates(self, question: str) -> bool:
        return False


if __name__ == "__main__":
    sys.exit(main())
