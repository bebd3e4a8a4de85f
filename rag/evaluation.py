"""Golden cases or a BEIR folder to a report of retrieval and answers: ``python -m rag.evaluation``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag.cases import Case, CasesInvalid, read_beir, read_golden, read_golden_dir
from rag.embedding import Embedder, load_embedder
from rag.errors import RagError
from rag.indexing import open_builder
from rag.measuring import Evaluation, Report, compare, evaluate
from rag.metrics import Difference
from rag.opening import open_index
from rag.settings import Settings, parse_settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when the report was printed, 2 when something could not be read."""
    try:
        settings = parse_settings(os.environ)
        options = _parser(settings).parse_args(arguments)
        started = time.monotonic()
        embedder = load_embedder(settings.model_dir, threads=settings.threads)
        cases = _cases(options, settings)
        if options.compare:
            _compare(options, cases, embedder)
            return 0
        found = _beir(options, embedder, settings) if options.beir else _golden(options, cases, embedder)
    except RagError as error:
        print(error, file=sys.stderr)
        return 2
    reports = {name: evaluation.report for name, evaluation in found.items()}
    if options.json:
        print(json.dumps({name: asdict(report) for name, report in reports.items()}, indent=1))
    else:
        _print(reports, time.monotonic() - started)
    return 0


def _parser(settings: Settings) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rag.evaluation", description=__doc__)
    parser.add_argument(
        "--beir", type=Path, metavar="DIR", help="evaluate on a BEIR folder (corpus.jsonl, queries.jsonl, qrels.tsv)"
    )
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="keep the index of the BEIR folder there; else it is thrown away"
    )
    parser.add_argument(
        "--golden", type=Path, nargs="+", metavar="FILE", help=f"golden cases (default: {settings.golden_dir}/*.jsonl)"
    )
    parser.add_argument(
        "--index", type=Path, default=settings.index_dir, help="index for golden cases (default: %(default)s)"
    )
    parser.add_argument(
        "--compare",
        type=Path,
        nargs=2,
        metavar=("A", "B"),
        help="ask two indexes the same cases, and say what changed from A to B and whether chance explains it",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def _cases(options: argparse.Namespace, settings: Settings) -> list[Case]:
    if options.beir:
        return read_beir(options.beir)[1]
    cases = read_golden(options.golden) if options.golden else list(read_golden_dir(settings.golden_dir).cases)
    if not cases:
        raise CasesInvalid(f"There are no golden cases in {settings.golden_dir}; name files with --golden.")
    return cases


def _beir(options: argparse.Namespace, embedder: Embedder, settings: Settings) -> dict[str, Evaluation]:
    cards, cases = read_beir(options.beir)
    work: AbstractContextManager[Any] = (
        nullcontext(options.work) if options.work else tempfile.TemporaryDirectory(prefix="fichero-evaluation-")
    )
    with work as folder:
        with open_builder(settings, Path(folder), progress=_progress) as builder:
            builder.build(cards)
        index = open_index(Path(folder), embedder.description)
        return {options.beir.name: evaluate(cases, index=index, embedder=embedder)}


def _golden(options: argparse.Namespace, cases: Sequence[Case], embedder: Embedder) -> dict[str, Evaluation]:
    index = open_index(options.index, embedder.description)
    return {name: evaluate(chosen, index=index, embedder=embedder) for name, chosen in _parts(cases).items()}


def _parts(cases: Sequence[Case]) -> dict[str, Sequence[Case]]:
    """All cases, then those that may be tuned on and those that may not, then those asked in each language."""
    parts: dict[str, Sequence[Case]] = {"all": cases}
    if any(case.held_out for case in cases):
        parts["development"] = [case for case in cases if not case.held_out]
        parts["held out"] = [case for case in cases if case.held_out]
    for language in sorted({case.language for case in cases}):
        parts[f"asked in {language}"] = [case for case in cases if case.language == language]
    return parts


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
    for name, difference in differences.items():
        print(f"  {name:15} {_percent(before.outcomes, name)} → {_percent(after.outcomes, name)}   {_say(difference)}")


def _percent(outcomes: Mapping[str, Any], name: str) -> str:
    values = [value for outcome in outcomes.values() if (value := outcome.measure(name)) is not None]
    return f"{100 * sum(values) / len(values):5.1f}"


def _say(difference: Difference) -> str:
    mean, low, high = (100 * value for value in (difference.mean, difference.low, difference.high))
    verdict = "chance explains it" if difference.p >= 0.05 else "more than chance"
    return f"{mean:+5.1f} points (95 %: {low:+.1f} to {high:+.1f}; p = {difference.p:.3f}, {verdict})"


def _progress(what: str, done: int, total: int) -> None:
    if done == total:
        print(f"{what}: {total}", file=sys.stderr)


def _print(reports: Mapping[str, Report], seconds: float) -> None:
    for name, report in reports.items():
        print(f"\n{name}: {report.cases} cases")
        for label, figures in (("success@", report.success), ("recall@", report.recall)):
            print("  " + "   ".join(f"{label}{k} {value:5.1f}" for k, value in figures.items()))
        print(
            f"  MRR@10 {report.mrr_10:5.1f}   nDCG@10 {report.ndcg_10:5.1f}   {report.milliseconds:.1f} ms a question"
        )
        for label, value in (
            ("answerable but refused", report.false_refusals),
            ("unanswerable and refused", report.refused),
            ("answer_recall", report.answer_recall),
        ):
            if value is not None:
                print(f"  {label} {value:.1f} %")
        if report.answer_chars is not None:
            print(f"  answers have {report.answer_chars:.0f} characters (median)")
    print(f"\n{seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
