"""The command: what to ask of which index, and where the findings go."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag.builds import folders_of
from rag.cached_embedding import CachedEmbedder, RememberingEmbedder
from rag.cases import Case, CasesInvalid, read_beir, read_golden, read_golden_dir
from rag.embedding import Embedder, load_embedder
from rag.errors import IndexMissing, RagError, SettingsInvalid
from rag.evaluation.findings import Findings
from rag.evaluation.gathering import gather
from rag.evaluation.parts import parts_of
from rag.evaluation.pieces import rank_pieces
from rag.evaluation.report import render
from rag.evaluation.terminal import print_differences, print_reports
from rag.evaluation.vectors import open_cache
from rag.evaluation.without_retrieval import LIMIT_TOKENS
from rag.files import write_whole
from rag.indexing import open_builder
from rag.manifest import Manifest, read_if_usable
from rag.measuring import Asked, ask, compare, evaluate, report_of
from rag.opening import OpenIndex, open_index
from rag.settings import Settings, parse_settings

REPORT_FILE = Path("evaluation.html")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when all was printed and written, 2 when something could not be read or written."""
    try:
        settings = parse_settings(os.environ)
        options = _parser(settings).parse_args(arguments)
        started = time.monotonic()
        if options.report and not options.report.absolute().parent.is_dir():
            raise SettingsInvalid(f"The report cannot be written to {options.report}: there is no such folder.")
        embedder = load_embedder(settings.model_dir, threads=settings.threads)
        if options.compare:
            _compare(options, _golden(options, settings), embedder)
            return 0
        with _chosen(options, settings, embedder) as chosen:
            _evaluate(options, chosen, embedder, started)
    except (RagError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _parser(settings: Settings) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rag.evaluation",
        description="Golden cases or a BEIR folder to figures and a report of retrieval and answers.",
    )
    add = parser.add_argument
    add("--beir", type=Path, metavar="DIR", help="evaluate on a BEIR folder (corpus.jsonl, queries.jsonl, qrels.tsv)")
    add("--work", type=Path, metavar="DIR", help="keep the index of the BEIR folder there; else it is thrown away")
    what = "ids of the BEIR folder such as doc#3 are pieces of a document, and its other pieces speak for each"
    add("--pieces", action="store_true", help=what)
    golden = f"golden cases (default: {settings.golden_dir}/*.jsonl)"
    add("--golden", type=Path, nargs="+", metavar="FILE", help=golden)
    add("--index", type=Path, default=settings.index_dir, help="index for golden cases (default: %(default)s)")
    what = "ask two indexes the same cases, and say what changed from A to B and whether chance explains it; no report"
    add("--compare", type=Path, nargs=2, metavar=("A", "B"), help=what)
    add("--json", action="store_true", help="print everything as JSON instead of a table")
    add("--report", type=Path, default=REPORT_FILE, metavar="FILE", help="where it goes (default: %(default)s)")
    add("--no-report", action="store_const", const=None, dest="report", help="only print")
    what = "of a prompt that all cards are put into when nothing is retrieved (default: %(default)s)"
    add("--prompt-tokens", type=int, default=LIMIT_TOKENS, metavar="N", help=what)
    return parser


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What is asked, of which index."""

    name: str
    cases: Sequence[Case]
    index: OpenIndex
    index_dir: Path
    in_parts: bool
    """Whether the table tells parts of the cases apart."""


@contextmanager
def _chosen(options: argparse.Namespace, settings: Settings, embedder: Embedder) -> Iterator[_Chosen]:
    """The index of a BEIR folder, which may be made for this one time, or the one that golden cases are about."""
    if not options.beir:
        cases = _golden(options, settings)
        index = open_index(options.index, embedder.description)
        yield _Chosen("golden cases", cases, index, options.index, in_parts=True)
        return
    cards, cases = read_beir(options.beir)
    work: AbstractContextManager[Any] = (
        nullcontext(options.work) if options.work else tempfile.TemporaryDirectory(prefix="fichero-evaluation-")
    )
    with work as folder:
        with open_builder(settings, Path(folder), progress=_progress) as builder:
            builder.build(cards)
        index = open_index(Path(folder), embedder.description)
        yield _Chosen(options.beir.name, cases, index, Path(folder), in_parts=False)


def _golden(options: argparse.Namespace, settings: Settings) -> list[Case]:
    if options.beir:
        return read_beir(options.beir)[1]
    cases = read_golden(options.golden) if options.golden else list(read_golden_dir(settings.golden_dir).cases)
    if not cases:
        raise CasesInvalid(f"There are no golden cases in {settings.golden_dir}; name files with --golden.")
    return cases


def _evaluate(options: argparse.Namespace, chosen: _Chosen, embedder: Embedder, started: float) -> None:
    """Ask, print, and write the report."""
    questions = RememberingEmbedder(embedder)
    asked = ask(chosen.cases, index=chosen.index, embedder=questions)
    if options.pieces:
        asked = rank_pieces(asked, index=chosen.index, questions=questions)
    findings = _find(options, chosen, asked, embedder, questions) if options.json or options.report else None
    if options.report and findings:
        write_whole(options.report, render(findings).encode("utf-8", "replace"))
    if options.json and findings:
        print(json.dumps(asdict(findings), indent=1))
        return
    parts = parts_of(asked) if chosen.in_parts else {chosen.name: asked}
    print_reports({name: report_of(own) for name, own in parts.items()})
    print(f"\n{time.monotonic() - started:.0f} s")
    if options.report:
        print(f"Report: {options.report}")


def _find(
    options: argparse.Namespace,
    chosen: _Chosen,
    asked: Sequence[Asked],
    embedder: Embedder,
    questions: RememberingEmbedder,
) -> Findings:
    with open_cache(chosen.index_dir, embedder.description) as cache:
        findings = gather(
            asked,
            index=chosen.index,
            manifest=_manifest(chosen),
            questions=questions,
            passages=CachedEmbedder(embedder, cache).passages,
            count_tokens=embedder.length_in_tokens,
            limit_tokens=options.prompt_tokens,
            cases_from=chosen.name,
            date=datetime.date.today().isoformat(),
        )
        cache.trim()
    return findings


def _manifest(chosen: _Chosen) -> Manifest:
    """What the build that was asked says of itself."""
    found = map(read_if_usable, folders_of(chosen.index_dir, chosen.index.build_id))
    manifest = next((one for one in found if one), None)
    if manifest is None:
        raise IndexMissing(chosen.index_dir)
    return manifest


def _compare(options: argparse.Namespace, cases: Sequence[Case], embedder: Embedder) -> None:
    before, after = (
        evaluate(cases, index=open_index(index_dir, embedder.description), embedder=embedder)
        for index_dir in options.compare
    )
    differences = compare(before.outcomes, after.outcomes)
    if options.json:
        print(json.dumps({name: asdict(difference) for name, difference in differences.items()}, indent=1))
        return
    print(f"\n{len(before.outcomes)} cases, A {options.compare[0]}, B {options.compare[1]}")
    print_differences(before.outcomes, after.outcomes, differences)


def _progress(what: str, done: int, total: int) -> None:
    if done == total:
        print(f"{what}: {total}", file=sys.stderr)
