"""Golden cases, and the box that they are about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag.cards import read_cards
from rag.cases import Case, CasesInvalid, Golden, read_golden_dir
from tests.conftest import ROOT

CASES = (
    Case("¿a?", {"a": 1.0}),
    Case("¿b o c?", {"b": 1.0, "c": 1.0}),
    Case("¿d?", {"d": 1.0}),
    Case("¿nada?", {}),
)
GOLDEN = Golden(CASES, {"success@1": 70.0}, {"false_refusals": 5.0})


@pytest.mark.parametrize(
    ("cards", "questions", "floors"),
    [
        ("abcd", ["¿a?", "¿b o c?", "¿d?", "¿nada?"], True),
        ("ac", ["¿a?", "¿b o c?", "¿nada?"], True),
        ("az", ["¿a?", "¿nada?"], False),
        ("xyz", None, False),
        ("", None, False),
    ],
    ids=["all", "most", "few", "another box", "no cards"],
)
def test_only_cases_about_the_box_are_asked(cards: str, questions: list[str] | None, floors: bool) -> None:
    """Cases whose cards are all gone are left out; floors hold for a box that at least half of them are about."""
    golden = GOLDEN.for_cards(set(cards))
    assert (golden and [case.question for case in golden.cases]) == questions
    assert bool(golden and golden.at_least and golden.at_most) == floors


def test_the_example_cards_have_their_golden_cases() -> None:
    """Every golden case of the project is about a card that is there, is there once, and has floors."""
    golden = read_golden_dir(ROOT / "tests" / "golden")
    card_ids = {card.card_id for card in read_cards(ROOT / "cards").cards}
    assert {card_id for case in golden.cases for card_id in case.grades} <= card_ids
    assert len({case.key for case in golden.cases}) == len(golden.cases)
    assert golden.for_cards(card_ids) == golden
    assert golden.at_least
    assert golden.at_most


def test_a_key_tells_cases_apart_and_says_nothing() -> None:
    """Cases of other words, cards or groups have other keys, and no word of a case is in its key."""
    cases = [*CASES, Case("¿a?", {"b": 1.0}), Case("¿a?", {"a": 1.0}, ("staff",))]
    assert len({case.key for case in cases}) == len(cases)
    assert Case("secreto", {"a": 2.0}).key == Case("secreto", {"a": 1.0}).key
    assert "secreto" not in Case("secreto", {}).key


FLOORS = ["{", "[]", '{"at_least": 5}', '{"at_least": {"success@1": "70"}}', '{"floor": {"success@1": 70}}', "\xff"]


@pytest.mark.parametrize("text", FLOORS)
def test_floors_that_cannot_be_read_are_named(tmp_path: Path, text: str) -> None:
    """A file of floors of another shape is refused with its path."""
    (tmp_path / "floors.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(CasesInvalid, match=r"floors\.json"):
        read_golden_dir(tmp_path)


def test_a_folder_without_floors_has_none(tmp_path: Path) -> None:
    """Golden cases may stand alone."""
    line = {"question": "¿a?", "language": "es", "must_cite_one_of": ["a"]}
    (tmp_path / "x.jsonl").write_text(json.dumps(line), "utf-8")
    golden = read_golden_dir(tmp_path)
    assert (len(golden.cases), golden.at_least, golden.at_most) == (1, {}, {})


def test_a_case_may_say_what_kind_it_is(tmp_path: Path) -> None:
    """``kind`` is read where it stands, is empty where it does not, and tells no cases apart."""
    lines = [
        {"question": "¿a?", "language": "es", "unanswerable": True, "kind": "near_miss"},
        {"question": "¿a?", "language": "es", "unanswerable": True},
    ]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    near, plain = read_golden_dir(tmp_path).cases
    assert (near.kind, plain.kind) == ("near_miss", "")
    assert near.key == plain.key
