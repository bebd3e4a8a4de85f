"""Unrelated questions, and scores that do not favour a language."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from rag.reference import (
    COSINE_WEIGHT,
    PRIOR_ROWS,
    LanguageCentring,
    Reference,
    open_reference,
    reference_questions,
)
from tests.conftest import ROOT
from tests.fakes import hashed_vectors, unit


def a_reference(dimension: int = 8) -> Reference:
    es, en, es_passage, en_passage = hashed_vectors(["es", "en", "es passage", "en passage"], dimension) * 0.8
    return Reference({"es": es, "en": en}, {"es": es_passage, "en": en_passage})


def test_there_are_questions_in_both_languages() -> None:
    """There are as many questions in Spanish as in English, enough for a quantile, and none stands twice."""
    questions = reference_questions()
    assert sorted(questions) == ["en", "es"]
    assert len(questions["es"]) == len(questions["en"]) >= 40
    for texts in questions.values():
        assert len(set(texts)) == len(texts)
        assert not any(text.startswith("#") for text in texts)


def test_the_gate_is_not_calibrated_on_what_measures_it() -> None:
    """No reference question is one of the golden cases."""
    files = (ROOT / "tests" / "golden").glob("*.jsonl")
    golden = {json.loads(line)["question"] for file in files for line in file.read_text("utf-8").splitlines() if line}
    assert not golden & {text for texts in reference_questions().values() for text in texts}


def test_a_reference_comes_back(tmp_path: Path) -> None:
    """What is written is read, letter for letter of every vector."""
    path, reference = tmp_path / "reference.npz", a_reference()
    reference.write(path)
    found = open_reference(path)
    for written, read in (
        (reference.as_questions, found.as_questions),
        (reference.as_passages, found.as_passages),
    ):
        assert sorted(read) == sorted(written)
        assert all(read[name].dtype == np.float32 and np.array_equal(read[name], written[name]) for name in written)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "text", "a-folder", "other-arrays", "pickled"])
def test_a_damaged_reference_is_told_by_its_error(tmp_path: Path, damage: str) -> None:
    """A file that is missing or damaged raises OSError or ValueError, as the caller is told."""
    path = tmp_path / "reference.npz"
    a_reference().write(path)
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "a-folder":
        path.unlink()
        path.mkdir()
    elif damage == "other-arrays":
        np.savez(path, allow_pickle=False, question_es=np.zeros(3, np.float32))
    elif damage == "pickled":
        np.savez(path, question_es=np.array([{}], object), passage_es=np.array([{}], object))
    else:
        path.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "text": b"nada"}[damage])
    with pytest.raises((OSError, ValueError)):
        open_reference(path)
    shutil.rmtree(path, ignore_errors=True)


def test_a_question_leans_towards_its_language() -> None:
    """The mean Spanish question leans by 1, the mean English one by -1, half way between by nothing."""
    reference = a_reference(16)
    centring = LanguageCentring(np.zeros((0, 16), np.float32), [], [], reference)
    spanish, english = reference.as_questions["es"], reference.as_questions["en"]
    leans = [centring.lean(vector) for vector in (spanish, english, (spanish + english) / np.float32(2))]
    assert leans == pytest.approx([1.0, -1.0, 0.0], abs=1e-5)


def test_without_a_difference_nothing_leans() -> None:
    """Where both languages have the same mean, a vector says nothing of its language."""
    same = np.ones(4, np.float32)
    flat = Reference({"es": same, "en": same}, {"es": same, "en": same})
    assert LanguageCentring(np.zeros((0, 4), np.float32), [], [], flat).lean(same) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_scores_follow_the_formula(seed: int) -> None:
    """Cosines and scores are those of the formula, worked in double precision row by row."""
    random = np.random.default_rng(seed)
    matrix = hashed_vectors([f"{seed} {number}" for number in range(40)], 16)
    languages = [str(name) for name in random.choice(["es", "en"], 40)]
    public = [bool(flag) for flag in random.integers(0, 2, 40)]
    reference = a_reference(16)
    centring = LanguageCentring(matrix, languages, public, reference)
    numbers = np.array([centring.number(name) for name in languages], np.intp)
    means = {}
    for name in ("es", "en"):
        rows = [matrix[row].astype(float) for row in range(40) if languages[row] == name and public[row]]
        prior = reference.as_passages[name].astype(float)
        means[name] = (sum(rows, np.zeros(16)) + PRIOR_ROWS * prior) / (len(rows) + PRIOR_ROWS)
    for language in ("es", "en"):
        question = hashed_vectors([f"question {seed}"], 16)[0]
        cosines, scores = centring.compare(matrix, numbers, question, language)
        assert cosines.dtype == scores.dtype == np.float32
        asked, centre = question.astype(float), reference.as_questions[language].astype(float)
        for row in range(40):
            vector, own = matrix[row].astype(float), means[languages[row]]
            special, unrelated = vector - own, asked - centre
            centred = special @ unrelated / (np.linalg.norm(special) * np.linalg.norm(unrelated))
            assert cosines[row] == pytest.approx(vector @ asked, abs=1e-5)
            assert scores[row] == pytest.approx(centred + COSINE_WEIGHT * (vector @ asked - own @ centre), abs=1e-4)


def test_the_mean_by_hand() -> None:
    """Without rows the centre is the prior; ten public rows weigh as much as it does; hidden rows weigh nothing."""
    prior = np.array([0.0, 1.0], np.float32)
    reference = Reference({"es": np.zeros(2, np.float32)}, {"es": prior})
    rows = np.tile(np.array([1.0, 0.0], np.float32), (10, 1))
    question, numbers = unit(1, 0), np.zeros(1, np.intp)
    wanted = {0: (prior, []), 10: (np.array([0.5, 0.5]), [True] * 10), 5: (prior, [False] * 10)}
    for mean, public in wanted.values():
        centring = LanguageCentring(rows[: len(public)], ["es"] * len(public), public, reference)
        _, [score] = centring.compare(np.array([[0.6, 0.8]], np.float32), numbers, question, "es")
        special = np.array([0.6, 0.8]) - mean
        assert score == pytest.approx(special[0] / np.linalg.norm(special) + COSINE_WEIGHT * 0.6, abs=1e-5)


def test_a_question_at_the_centre_gives_finite_scores() -> None:
    """A question that is the unrelated one itself, and a row that is the mean itself, divide by no zero."""
    vector = unit(1, 0)
    reference = Reference({"es": vector}, {"es": vector})
    centring = LanguageCentring(vector[None], ["es"], [True], reference)
    cosines, scores = centring.compare(vector[None], np.zeros(1, np.intp), vector, "es")
    assert np.isfinite(cosines).all()
    assert np.isfinite(scores).all()


def test_nothing_compared_gives_nothing() -> None:
    """No vectors, no scores."""
    centring = LanguageCentring(np.empty((0, 8), np.float32), [], [], a_reference())
    cosines, scores = centring.compare(np.empty((0, 8), np.float32), np.empty(0, np.intp), unit(*range(1, 9)), "es")
    assert len(cosines) == len(scores) == 0
