"""Which language a question is in."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.language import detect_language
from rag.reference import reference_questions
from tests.conftest import ROOT

BOUNDED = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

QUESTIONS = [
    ("¿Qué hago si olvido una dosis?", "es"),
    ("que hago si olvido una dosis", "es"),
    ("olvide tomar la pastilla", "es"),
    ("puedo tomar alcohol con antibiotico", "es"),
    ("QUE HAGO SI VOMITO", "es"),
    ("¿ibuprofeno?", "es"),
    ("mañana", "es"),
    ("no me la tome", "es"),
    ("a que hora", "es"),
    ("tambien", "es"),
    ("What if I miss a dose?", "en"),
    ("what if i miss a dose", "en"),
    ("can i drink alcohol with it", "en"),
    ("WHEN SHOULD I CALL", "en"),
    ("Can I take paracetamol?", "en"),
    ("is insulin kept in the fridge", "en"),
    ("no, I did not take it", "en"),
    ("don't I need it?", "en"),
]


@pytest.mark.parametrize(("question", "language"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_questions_as_people_type_them(question: str, language: str) -> None:
    """A question is known by its everyday words, with or without accents, signs and capitals."""
    other = "en" if language == "es" else "es"
    assert detect_language(question, default=other) == language


@pytest.mark.parametrize("text", ["", " ", "123", "???", "ibuprofeno 600"[10:], "\u200b", "🤒"])
@pytest.mark.parametrize("default", ["es", "en"])
def test_nothing_to_go_by_gives_the_default(text: str, default: str) -> None:
    """A text without words is taken to be in the default language."""
    assert detect_language(text, default=default) == default


@given(st.text())
@BOUNDED
def test_any_text_has_one_of_the_two(text: str) -> None:
    """Whatever is asked, the answer is a language there is, in either case of letters."""
    assert detect_language(text) in ("es", "en")


@pytest.mark.parametrize("question", ["¿Qué médico?", "¿Cuándo y cómo?", "año"])
def test_decomposed_accents_change_nothing(question: str) -> None:
    """A question typed with combining accents is in the language of the composed one."""
    assert detect_language(unicodedata.normalize("NFD", question), default="en") == detect_language(question)


def test_golden_questions() -> None:
    """At least 98 of 100 questions of the golden cases are told right."""
    golden = (ROOT / "tests" / "golden").glob("*.jsonl")
    cases = [json.loads(line) for file in golden for line in file.read_text("utf-8").splitlines() if line.strip()]
    told = [detect_language(case["question"]) == case["language"] for case in cases]
    assert len(told) > 100
    assert sum(told) / len(told) >= 0.98


def test_reference_questions() -> None:
    """At least 95 of 100 reference questions are told right."""
    told = [detect_language(text) == language for language, texts in reference_questions().items() for text in texts]
    assert sum(told) / len(told) >= 0.95
