"""Golden cases or a BEIR folder to a report of retrieval and answers: ``python -m rag.evaluation``."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag.answering import answer_question
from rag.embedding import Embedder, load_embedder
from rag.errors import RagError
from rag.indexing import BuildOptions, build_index
from rag.metrics import mean, ndcg_at, recall_at, reciprocal_rank_at, success_at
from rag.records import PUBLIC_GROUP, Answer, Card
from rag.retrieval import OpenIndex, open_index, retrieve
from rag.settings import Settings, parse_settings

DEPTH = 20
SUCCESS_DEPTHS, RECALL_DEPTHS = (1, 3, 5, 10), (5, 10, 20)


class CasesInvalid(RagError):
    """The cases to evaluate cannot be read."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question and what would answer it."""

    question: str
    grades: Mapping[str, float]
    """Card id → grade, above zero; empty means that no card answers."""
    groups: tuple[str, ...] = (PUBLIC_GROUP,)
    answers: tuple[str, ...] = ()
    """Strings of which an answer should hold one."""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Means over cases, in per cent unless said; a measure without cases is None."""

    cases: int
    success: dict[int, float]
    recall: dict[int, float]
    mrr_10: float
    ndcg_10: float
    milliseconds: float
    """Median per question, embedding and retrieval."""
    false_refusals: float | None
    """Of the answerable."""
    refused: float | None
    """Of the unanswerable."""
    answer_recall: float | None
    answer_chars: float | None
    """Median, refusals left out."""


def evaluate(cases: Sequence[Case], *, index: OpenIndex, embedder: Embedder) -> Report:
    """Ask every case; a case without hits counts as zero, and retrieval is measured with the gate open."""
    answerable = [case for case in cases if case.grades]
    rankings: list[list[str]] = []
    times: list[float] = []
    for case in answerable:
        found = retrieve(case.question, case.groups, index=index, embedder=embedder, top_k=DEPTH, threshold=-1.0)
        rankings.append([passage.card.card_id for passage in found.passages])
        times.append(found.embed_ms + found.search_ms)
    answers = [_answer(case, index, embedder) for case in cases]
    pairs = list(zip(rankings, answerable, strict=True))
    return Report(
        cases=len(cases),
        success={k: _percent([success_at(k, ranking, case.grades) for ranking, case in pairs]) for k in SUCCESS_DEPTHS},
        recall={k: _percent([recall_at(k, ranking, case.grades) for ranking, case in pairs]) for k in RECALL_DEPTHS},
        mrr_10=_percent([reciprocal_rank_at(10, ranking, case.grades) for ranking, case in pairs]),
        ndcg_10=_percent([ndcg_at(10, ranking, case.grades) for ranking, case in pairs]),
        milliseconds=round(statistics.median(times), 2) if times else 0.0,
        **_judge_answers(cases, answers),
    )


def _answer(case: Case, index: OpenIndex, embedder: Embedder) -> Answer:
    return answer_question(
        case.question,
        case.groups,
        index=index,
        embedder=embedder,
        top_k=5,
        min_similarity=None,
        request_id="evaluation",
    )


def _judge_answers(cases: Sequence[Case], answers: Sequence[Answer]) -> dict[str, float | None]:
    pairs = list(zip(cases, answers, strict=True))
    answerable = [answer.refusal is not None for case, answer in pairs if case.grades]
    unanswerable = [answer.refusal is not None for case, answer in pairs if not case.grades]
    with_strings = [(case, answer) for case, answer in pairs if case.answers]
    lengths = [len(_spoken(answer)) for _, answer in with_strings if not answer.refusal]
    return {
        "false_refusals": _percent(answerable) if answerable else None,
        "refused": _percent(unanswerable) if unanswerable else None,
        "answer_recall": _percent([_holds(answer, case.answers) for case, answer in with_strings])
        if with_strings
        else None,
        "answer_chars": statistics.median(lengths) if lengths else None,
    }


def _spoken(answer: Answer) -> str:
    """The quotes of an answer, without markers."""
    return " ".join(" ".join(citation.quote for citation in answer.citations).split())


def _holds(answer: Answer, strings: Sequence[str]) -> bool:
    text = _spoken(answer)
    return any(" ".join(string.split()) in text for string in strings)


def _percent(values: Sequence[float]) -> float:
    return round(100 * mean(values), 2)


def read_golden(paths: Sequence[Path]) -> list[Case]:
    """
    Golden cases, one JSON object a line: ``question, language, must_cite_one_of, groups``, or ``unanswerable``.

    Raises:
        CasesInvalid: a file cannot be read, or a line is no such object.
    """
    cases: list[Case] = []
    for path in paths:
        for number, entry in enumerate(_read_lines(path), start=1):
            try:
                cited = [] if entry.get("unanswerable") else entry["must_cite_one_of"]
                groups = tuple(entry.get("groups", (PUBLIC_GROUP,)))
                grades = dict.fromkeys(cited, 1.0)
                cases.append(Case(entry["question"], grades, groups, language=entry["language"]))
            except (KeyError, TypeError, AttributeError) as error:
                raise CasesInvalid(f"{path}:{number}: not a golden case: {error!r}.") from error
    return cases


def read_beir(folder: Path) -> tuple[list[Card], list[Case]]:
    """
    The cards and cases of a BEIR folder: ``corpus.jsonl``, ``queries.jsonl``, ``qrels.tsv``.

    A folder named ``…__c_en`` holds English cards; any other, Spanish ones.

    Raises:
        CasesInvalid: a file is missing, or a line is not of that layout.
    """
    language = "en" if folder.resolve().name.endswith("c_en") else "es"
    try:
        cards = [
            Card(
                entry["_id"],
                entry.get("title") or entry["_id"],
                entry["text"],
                language,
                (),
                None,
                None,
                None,
                (PUBLIC_GROUP,),
            )
            for entry in _read_lines(folder / "corpus.jsonl")
        ]
        if len({card.card_id for card in cards}) < len(cards):
            raise ValueError("an _id stands twice in corpus.jsonl")
        if not all(isinstance(text, str) for card in cards for text in (card.card_id, card.title, card.text)):
            raise ValueError("an _id, title or text in corpus.jsonl is no text")
        grades: dict[str, dict[str, float]] = {}
        for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
            query, card, grade = line.split("\t")
            if grade != "score" and float(grade) > 0:
                grades.setdefault(query, {})[card] = float(grade)
        cases = [
            Case(
                entry["text"], grades.get(entry["_id"], {}), answers=tuple(entry.get("metadata", {}).get("answers", ()))
            )
            for entry in _read_lines(folder / "queries.jsonl")
        ]
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CasesInvalid(
            f"{folder}: not a BEIR folder (corpus.jsonl, queries.jsonl, qrels.tsv): {error!r}."
        ) from error
    return sorted(cards, key=lambda card: card.card_id), cases


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise CasesInvalid(f"{path}: cannot be read as JSON lines: {error}.") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when the report was printed, 2 when something could not be read."""
    try:
        settings = parse_settings(os.environ)
        options = _parser(settings).parse_args(arguments)
        started = time.monotonic()
        embedder = load_embedder(settings.model_dir, threads=settings.threads)
        reports = _beir(options.beir, embedder, settings) if options.beir else _golden(options, embedder, settings)
    except RagError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps({name: asdict(report) for name, report in reports.items()}, indent=1))
    else:
        _print(reports, time.monotonic() - started)
    return 0


def _parser(settings: Settings) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rag.evaluation", description=__doc__)
    parser.add_argument("--beir", type=Path, metavar="DIR", help="evaluate on a BEIR folder, with a throw-away index")
    parser.add_argument(
        "--golden", type=Path, nargs="+", metavar="FILE", help="golden cases (default: tests/golden/*.jsonl)"
    )
    parser.add_argument(
        "--index", type=Path, default=settings.index_dir, help="index for golden cases (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def _beir(folder: Path, embedder: Embedder, settings: Settings) -> dict[str, Report]:
    cards, cases = read_beir(folder)
    build = BuildOptions(settings.chunk_chars, settings.overlap_chars, settings.context)
    with tempfile.TemporaryDirectory(prefix="fichero-evaluation-") as work:
        build_index(cards, Path(work), settings.model_dir, build, threads=settings.threads, progress=_progress)
        index = open_index(Path(work), embedder.description)
        return {folder.name: evaluate(cases, index=index, embedder=embedder)}


def _golden(options: argparse.Namespace, embedder: Embedder, settings: Settings) -> dict[str, Report]:
    paths = options.golden or sorted(Path("tests/golden").glob("*.jsonl"))
    if not paths:
        raise CasesInvalid("There are no golden cases in tests/golden; name files with --golden.")
    cases = read_golden(paths)
    index = open_index(options.index, embedder.description)
    reports = {"all": evaluate(cases, index=index, embedder=embedder)}
    for language in sorted({case.language for case in cases}):
        chosen = [case for case in cases if case.language == language]
        reports[f"asked in {language}"] = evaluate(chosen, index=index, embedder=embedder)
    return reports


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
