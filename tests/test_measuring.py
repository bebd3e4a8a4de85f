"""Outcomes of cases, their means, and whether a build may take the place of another."""

from __future__ import annotations

import pytest

from rag.cases import Golden
from rag.measuring import MEASURES, Outcome, compare, shortfalls, summary

NO_FLOORS = Golden((), {}, {})


def ranked(*ranks: int | None, refused: bool = False) -> dict[str, Outcome]:
    return {f"r{number}": Outcome(rank, refused, True) for number, rank in enumerate(ranks)}


def unanswerable(*refused: bool) -> dict[str, Outcome]:
    return {f"u{number}": Outcome(None, one, False) for number, one in enumerate(refused)}


VALUES = [
    (Outcome(1, False, True), [1, 1, 1, 1, 1, 0, None]),
    (Outcome(3, True, True), [0, 1, 1, 1, 1 / 3, 1, None]),
    (Outcome(11, False, True), [0, 0, 0, 0, 0, 0, None]),
    (Outcome(None, False, True), [0, 0, 0, 0, 0, 0, None]),
    (Outcome(None, True, False), [None, None, None, None, None, None, 1]),
    (Outcome(None, False, False), [None, None, None, None, None, None, 0]),
]


@pytest.mark.parametrize(("outcome", "values"), VALUES, ids=str)
def test_an_outcome_has_its_measures(outcome: Outcome, values: list[float | None]) -> None:
    """Ranks make success and reciprocal rank; a refusal is wrong for one kind of question, right for the other."""
    assert [outcome.measure(name) for name in MEASURES] == values


def test_means_leave_out_what_has_no_cases() -> None:
    """A measure is a mean over the cases it is about, in per cent, and is absent without any."""
    assert summary(unanswerable(True, True, False, True)) == {"refused": 75.0}
    assert summary(ranked(1, 2, None, 4))["mrr@10"] == pytest.approx(43.75)
    assert summary({}) == {}


def test_only_shared_cases_are_compared() -> None:
    """Cases that one side does not know, or knows as another kind, do not count."""
    before = ranked(1, 1) | {"x": Outcome(None, True, False)}
    after = ranked(2, 1, 1, 1) | {"x": Outcome(1, True, True)}
    found = compare(before, after)
    assert found["success@1"].mean == -0.5
    assert "refused" not in found


def test_floors_and_limits_are_named_with_their_figures() -> None:
    """Each floor missed and each limit passed is a reason, with both figures; those met are none."""
    golden = Golden((), {"success@1": 60.0, "success@3": 50.0, "refused": 90.0}, {"false_refusals": 10.0})
    outcomes = ranked(1, 3, 9, 9) | unanswerable(True, False) | {"f": Outcome(1, True, True)}
    reasons = shortfalls(golden, {}, outcomes)
    assert [reason.split(" is ")[0] for reason in reasons] == ["success@1", "refused", "false_refusals"]
    assert "40.0 %" in reasons[0]
    assert "60 %" in reasons[0]
    assert shortfalls(golden, {}, ranked(1, 1) | unanswerable(True)) == []


def test_a_loss_beyond_chance_is_a_reason() -> None:
    """Losing many cases stops a build, losing one of many does not, and neither does winning."""
    good, bad = ranked(*[1] * 60), ranked(*[1] * 45, *[9] * 15)
    assert any(reason.startswith("success@1 changed by -25.0") for reason in shortfalls(NO_FLOORS, good, bad))
    assert shortfalls(NO_FLOORS, bad, good) == []
    assert shortfalls(NO_FLOORS, good, ranked(*[1] * 59, 2)) == []
    refusing = ranked(*[1] * 60, refused=True)
    assert [reason.split(" ")[0] for reason in shortfalls(NO_FLOORS, good, refusing)] == ["false_refusals"]
    assert shortfalls(NO_FLOORS, refusing, good) == []
