"""Where the gate stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag.builds import current_build
from rag.cases import read_golden_dir
from rag.embedding import Embedder
from rag.gate import FALSE_REFUSALS, LEAST_ANSWERABLE, LEAST_UNANSWERABLE, calibrate, place_gate
from rag.manifest import read_manifest
from rag.opening import OpenIndex
from rag.reference import reference_questions
from rag.retrieval import retrieve
from tests.conftest import ROOT

LEVELS = {"es": 1.0, "en": 0.9}
GOLDEN = read_golden_dir(ROOT / "tests" / "golden").cases
PUBLIC = ("public",)


def test_a_gate_by_hand() -> None:
    """Of a hundred answerable cases two may stay out: the gate stands half way below the third lowest."""
    answerable = [0.02 * number for number in range(100)]
    unanswerable = [-0.1] * 19 + [0.03, 0.5]
    gate = place_gate(LEVELS, answerable, unanswerable)
    assert gate.basis == "golden cases"
    # the third is at 0.04, and the next one below it is an unanswerable one at 0.03
    assert gate.thresholds == pytest.approx({"es": 1.035, "en": 0.935})
    assert gate.margin == pytest.approx(0.005)
    assert (gate.answerable, gate.unanswerable) == (100, 21)
    # 0.03 lies below 98 of the hundred; 0.5 below 74 and level with one, which counts half
    assert gate.auroc == pytest.approx((19 * 1.0 + 0.98 + 0.745) / 21)


def test_the_roc_goes_from_letting_all_in_to_keeping_nearly_all_out() -> None:
    """Along the places for the gate both kinds of refusals grow, from none."""
    gate = place_gate(LEVELS, [0.01 * number for number in range(100)], [0.005 * number - 0.2 for number in range(80)])
    places, false_refusals, refused = zip(*gate.roc, strict=True)
    for values in (places, false_refusals, refused):
        assert list(values) == sorted(values)
    assert (false_refusals[0], refused[0]) == (0.0, 0.0)
    assert all(wrong <= right for wrong, right in zip(false_refusals, refused, strict=True))


@pytest.mark.parametrize(
    ("answerable", "unanswerable"),
    [(LEAST_ANSWERABLE - 1, LEAST_UNANSWERABLE), (LEAST_ANSWERABLE, LEAST_UNANSWERABLE - 1), (0, 0)],
)
def test_too_few_cases_have_no_say(answerable: int, unanswerable: int) -> None:
    """With few golden cases the gate stands where the unrelated questions put it, and says so."""
    gate = place_gate(LEVELS, [9.0] * answerable, [8.0] * unanswerable)
    assert (gate.thresholds, gate.basis, gate.margin) == (LEVELS, "unrelated questions", None)


def test_equal_cases_leave_no_margin() -> None:
    """Where every case comes equally near, the gate lets all of them in."""
    gate = place_gate(LEVELS, [0.2] * 60, [0.2] * 30)
    assert (gate.thresholds, gate.margin, gate.auroc) == ({"es": 1.2, "en": 1.1}, 0.0, 0.5)


def test_unrelated_questions_stay_out(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Calibrated by unrelated questions alone, nine in ten of them are refused in each language."""
    gate = calibrate(sample_index, PUBLIC, embedder, [])
    index = replace(sample_index, thresholds=gate.thresholds)
    for questions in reference_questions().values():
        passed = [retrieve(text, PUBLIC, index=index, embedder=embedder, top_k=1).passed for text in questions]
        assert sum(passed) <= 0.1 * len(questions) + 1


def test_held_out_and_private_cases_have_no_say(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Cases that are held out, or that the public does not ask, leave the gate where it would stand without them."""
    cases = [
        *(replace(case, held_out=True) for case in GOLDEN if case.grades),
        *(replace(case, groups=("public", "staff")) for case in GOLDEN if not case.grades),
    ]
    assert calibrate(sample_index, PUBLIC, embedder, cases).basis == "unrelated questions"


def test_the_example_cards_have_a_gate_of_their_own(
    sample_index_dir: Path, sample_index: OpenIndex, embedder: Embedder
) -> None:
    """The example cards' gate is set by their golden cases, and refuses at most two in a hundred of the answerable."""
    gate = read_manifest(current_build(sample_index_dir)).gate
    asked = [case for case in GOLDEN if case.groups == PUBLIC and not case.held_out]
    answerable = [case for case in asked if case.grades]
    assert (gate["basis"], gate["answerable"]) == ("golden cases", len(answerable))
    assert gate["unanswerable"] == len(asked) - len(answerable)
    assert gate["auroc"] > 0.9
    assert gate["margin"] > 0
    assert sample_index.thresholds == gate["thresholds"]
    refused = [
        case.question
        for case in answerable
        if not retrieve(case.question, PUBLIC, index=sample_index, embedder=embedder, top_k=1).passed
    ]
    assert len(refused) <= FALSE_REFUSALS * len(answerable), refused
