"""The evaluation command, on a BEIR folder small enough to check by hand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.cards import read_cards
from rag.cases import Case, CasesInvalid, read_beir, read_golden
from rag.embedding import Embedder
from rag.evaluation.command import main
from rag.evaluation.findings import FINDINGS_FORMAT
from rag.evaluation.vectors import open_cache
from rag.indexing import EVALUATION_FILE
from rag.measuring import evaluate
from rag.opening import OpenIndex
from tests.conftest import ROOT

GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.jsonl"))
Run = Callable[..., subprocess.CompletedProcess[str]]

CORPUS = [
    {"_id": "abeja", "title": "Abejas", "text": "La abeja hace miel. Vive en una colmena de cera."},
    {"_id": "faro", "title": "Faros", "text": "El faro alumbra la costa. Su lámpara gira cada doce segundos."},
    {"_id": "nieve", "title": "", "text": "La nieve cae en invierno. Se derrite con el sol de abril."},
]
QUERIES: list[dict[str, Any]] = [
    {"_id": "q1", "text": "¿Dónde vive la abeja?", "metadata": {"answers": ["una colmena"]}},
    {"_id": "q2", "text": "¿Cada cuánto gira la lámpara del faro?", "metadata": {"answers": ["doce segundos"]}},
]


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """A BEIR folder of three cards and two questions."""
    folder = tmp_path / "mini__c_es"
    folder.mkdir()
    write_lines(folder / "corpus.jsonl", CORPUS)
    write_lines(folder / "queries.jsonl", QUERIES)
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tabeja\t1\nq2\tfaro\t1\nq2\tnieve\t0\n", "utf-8")
    return folder


def write_lines(path: Path, entries: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries), "utf-8")


def test_the_command_measures_a_beir_folder(beir: Path, run_command: Run) -> None:
    """--beir builds a throw-away index and prints, as JSON, every measure that the project promises."""
    before = sorted(path.name for path in beir.parent.rglob("*"))
    ended = run_command("-m", "rag.evaluation", "--beir", str(beir), "--json", "--no-report")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["format"], found["measured"]["cases_from"]) == (FINDINGS_FORMAT, "mini__c_es")
    assert found["strategies"]["whole card"]["figures"]["success"]["1"] == 100.0
    report = found["parts"]["all"]["report"]
    assert report["cases"] == 2
    assert report["success"] == {"1": 100.0, "3": 100.0, "5": 100.0, "10": 100.0}
    assert report["recall"] == {"5": 100.0, "10": 100.0, "20": 100.0}
    assert (report["mrr_10"], report["ndcg_10"]) == (100.0, 100.0)
    assert report["milliseconds"] > 0
    assert (report["refused"], report["answer_recall"]) == (None, 100.0)
    assert sorted(path.name for path in beir.parent.rglob("*")) == before, "nothing is left beside the folder"


def test_a_table_for_people_names_every_measure(
    sample_index_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --json golden cases are reported under the settled names of the measures, for each language too."""
    golden = tmp_path / "golden.jsonl"
    golden.write_text("\n".join(GOLDEN[0].read_text("utf-8").splitlines()[:4]), "utf-8")
    monkeypatch.setenv("FICHERO_MODEL_DIR", str(ROOT / "model"))
    assert main(["--golden", str(golden), "--index", str(sample_index_dir), "--no-report"]) == 0
    shown = capsys.readouterr().out
    for name in (
        "success@1",
        "success@10",
        "recall@20",
        "MRR@10",
        "nDCG@10",
        "ms a question",
        "answerable but refused",
    ):
        assert name in shown
    assert "asked in es" in shown
    assert "Report:" not in shown


def test_the_report_is_written_where_the_command_runs(
    beir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without options the table is followed by a report, whole, in the working folder; --report says where else."""
    monkeypatch.setenv("FICHERO_MODEL_DIR", str(ROOT / "model"))
    monkeypatch.chdir(tmp_path)
    # the second time, the index is there
    elsewhere = ("--report", str(tmp_path / "other.html"))
    for options, name in (((), "evaluation.html"), (elsewhere, "other.html")):
        assert main(["--beir", str(beir), "--work", str(tmp_path / "work"), *options]) == 0
        written = (tmp_path / name).read_text("utf-8")
        assert written.startswith("<!doctype html>")
        assert written.endswith("</html>\n")
        assert "mini__c_es: 2 cases" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["evaluation.html", "other.html"]


def test_a_report_that_cannot_be_written_is_said_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is not there is named before anything is measured."""
    monkeypatch.setenv("FICHERO_MODEL_DIR", str(tmp_path / "no-model"))
    assert main(["--report", str(tmp_path / "no-folder" / "a.html")]) == 2
    assert "no-folder" in capsys.readouterr().err


def test_vectors_of_evaluations_are_no_business_of_the_builder(tmp_path: Path, embedder: Embedder) -> None:
    """They are kept in a file of their own; where nothing can be written, for this one time."""
    with open_cache(tmp_path, embedder.description) as cache:
        cache.put(["a"], np.ones((1, 3), np.float32))
    assert {path.name.partition("-")[0] for path in (tmp_path / "cache").iterdir()} == {Path(EVALUATION_FILE).name}
    with open_cache(tmp_path, embedder.description) as cache:
        assert list(cache.get(["a"])) == ["a"]
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "cache").write_text("a file where the folder should be", "utf-8")
    with open_cache(tmp_path / "blocked", embedder.description) as cache:
        cache.put(["a"], np.ones((1, 3), np.float32))
        assert list(cache.get(["a"])) == ["a"]


def break_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text"\n', "utf-8")


FAULTS: dict[str, Callable[[Path], object]] = {
    "no corpus": lambda folder: (folder / "corpus.jsonl").unlink(),
    "no queries": lambda folder: (folder / "queries.jsonl").unlink(),
    "no qrels": lambda folder: (folder / "qrels.tsv").unlink(),
    "corpus cut": break_corpus,
    "corpus of lists": lambda folder: (folder / "corpus.jsonl").write_text("[1]\n", "utf-8"),
    "card without text": lambda folder: (folder / "corpus.jsonl").write_text('{"_id": "a"}\n', "utf-8"),
    "card without id": lambda folder: (folder / "corpus.jsonl").write_text('{"text": "a"}\n', "utf-8"),
    "query without text": lambda folder: (folder / "queries.jsonl").write_text('{"_id": "a"}\n', "utf-8"),
    "qrels of two columns": lambda folder: (folder / "qrels.tsv").write_text("q1\tabeja\n", "utf-8"),
    "grade in words": lambda folder: (folder / "qrels.tsv").write_text("q1\tabeja\tgood\n", "utf-8"),
    "not UTF-8": lambda folder: (folder / "corpus.jsonl").write_bytes(b'{"_id": "\xff"}\n'),
    "qrels not UTF-8": lambda folder: (folder / "qrels.tsv").write_bytes(b"q1\t\xff\t1\n"),
    "one id twice": lambda folder: write_lines(folder / "corpus.jsonl", [CORPUS[0], CORPUS[0]]),
    "text a number": lambda folder: write_lines(folder / "corpus.jsonl", [{"_id": "a", "text": 7}]),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_bad_beir_folder_is_named(beir: Path, fault: Callable[[Path], object]) -> None:
    """A folder that is not in the layout is one clear error that names it."""
    fault(beir)
    with pytest.raises(CasesInvalid, match="mini__c_es"):
        read_beir(beir)


def test_the_command_ends_with_2_on_a_bad_folder(tmp_path: Path, run_command: Run) -> None:
    """A folder that cannot be read ends the command with status 2 and one line that names it."""
    ended = run_command("-m", "rag.evaluation", "--beir", str(tmp_path / "nothing"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert "nothing" in ended.stderr


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "7", "{}", '{"question": "a"}', '{"question": "a", "language": "es"}', '{"must_cite_one_of": ["a"]}'],
)
def test_a_bad_golden_line_is_named(tmp_path: Path, line: str) -> None:
    """A golden line that is no case is refused, and the file is named."""
    path = tmp_path / "golden.jsonl"
    path.write_text(line + "\n", "utf-8")
    with pytest.raises(CasesInvalid, match=r"golden\.jsonl"):
        read_golden([path])


def test_beir_entries_become_cards_and_cases(beir: Path) -> None:
    """Cards come in order of id, an empty title gives way to the id, and only grades above zero count."""
    cards, cases = read_beir(beir)
    assert [(card.card_id, card.title, card.language) for card in cards] == [
        ("abeja", "Abejas", "es"),
        ("faro", "Faros", "es"),
        ("nieve", "nieve", "es"),
    ]
    assert cases == [
        Case("¿Dónde vive la abeja?", {"abeja": 1.0}, answers=("una colmena",)),
        Case("¿Cada cuánto gira la lámpara del faro?", {"faro": 1.0}, answers=("doce segundos",)),
    ]


def test_a_beir_folder_of_english_cards_is_known_by_its_name(beir: Path) -> None:
    """A folder whose name ends in c_en holds English cards."""
    english = beir.rename(beir.parent / "mini__c_en")
    assert {card.language for card in read_beir(english)[0]} == {"en"}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_golden_files_parse_and_name_cards_that_exist(path: Path) -> None:
    """Every golden line is a case, and every card it must cite is an example card that its caller may see."""
    cards = {card.card_id: card for card in read_cards(ROOT / "cards").cards}
    cases = read_golden([path])
    assert len(cases) == len(path.read_text("utf-8").splitlines())
    for case in cases:
        assert case.question.strip()
        assert case.language in {"es", "en"}
        assert case.groups
        for card_id in case.grades:
            assert card_id in cards, case.question
            assert set(cards[card_id].acl) & set(case.groups), case.question


def test_golden_questions_are_asked_once() -> None:
    """No question stands twice for the same caller over all golden files."""
    asked = [(case.question.casefold(), case.groups) for case in read_golden(GOLDEN)]
    assert len(set(asked)) == len(asked)


def test_measures_count_misses_and_refusals(sample_index: OpenIndex, embedder: Embedder) -> None:
    """One hit, one miss and one refusal give the figures worked out by hand."""
    cases = [
        Case("¿Puedo partir las pastillas por la mitad?", {"partir-pastillas": 1.0}, answers=("no está en la ficha",)),
        Case("¿Puedo partir las pastillas por la mitad?", {"no-hay": 1.0}),
        Case("¿Quién ganó la liga en 1998?", {}),
    ]
    report = evaluate(cases, index=sample_index, embedder=embedder).report
    assert report.cases == 3
    assert report.success == {1: 50.0, 3: 50.0, 5: 50.0, 10: 50.0}
    assert (report.mrr_10, report.ndcg_10) == (50.0, 50.0)
    assert (report.false_refusals, report.refused, report.answer_recall) == (0.0, 100.0, 0.0)
    assert report.answer_chars is not None
    assert 0 < report.answer_chars <= 420


def test_no_cases_give_an_empty_report(sample_index: OpenIndex, embedder: Embedder) -> None:
    """An empty list of cases is measured without an error; measures without cases are None."""
    report = evaluate([], index=sample_index, embedder=embedder).report
    assert (report.cases, report.milliseconds) == (0, 0.0)
    assert (report.false_refusals, report.refused, report.answer_recall, report.answer_chars) == (None,) * 4
