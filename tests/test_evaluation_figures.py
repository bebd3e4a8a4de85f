"""Parts of the cases, refusals, and latency, worked by hand."""

from __future__ import annotations

import pytest

from rag.cases import Case
from rag.evaluation.latency import BINS, latency_of
from rag.evaluation.parts import by_direction, figures_of, parts_of
from rag.evaluation.refusals import curve_of, find_refusals
from rag.evaluation.wrong import is_missed, is_wrongly_answered, is_wrongly_refused, listed
from rag.measuring import Asked, ask
from rag.opening import OpenIndex
from rag.records import Answer, Refusal
from tests.tiny import FixedQuestion, tiny_index


def answer(*, refused: bool = False, language: str = "es") -> Answer:
    """An answer of which only its refusal and its language are looked at."""
    refusal = Refusal("below_threshold", 0.1, 0.5, ()) if refused else None
    timings = {"embed": 1.0, "search": 2.0, "total": 3.0}
    return Answer(
        "", "", None, False, "", (), language, "extractive", False, None, refusal, (), {}, (), "tiny", timings
    )


def a_case(
    best: float | None,
    *,
    right: str = "",
    ranking: str = "",
    threshold: float = 0.5,
    refused: bool | None = None,
    held_out: bool = False,
    kind: str = "",
    language: str = "es",
) -> Asked:
    """A case whose nearest card comes so near."""
    below = best is None or best < threshold
    case = Case("¿?", dict.fromkeys(right.split(), 1.0), language=language, held_out=held_out, kind=kind)
    return Asked(case, tuple(ranking.split()), best, threshold, answer(refused=below if refused is None else refused))


def test_a_curve_needs_both_sides() -> None:
    """Answerable cases alone have no curve."""
    assert curve_of([a_case(0.5, right="a")]) is None


def test_a_curve_is_of_leads_above_the_gate() -> None:
    """Scores count from the gate of their own language, and no card at all is the furthest away."""
    asked = [
        a_case(0.9, right="a", threshold=0.5),
        a_case(1.3, right="a", threshold=1.4),
        a_case(0.7, threshold=0.5),
        a_case(None, threshold=0.5),
    ]
    curve = curve_of(asked)
    assert curve is not None
    assert [place for place, *_ in curve.points[:4]] == pytest.approx([-1.5, -0.1, 0.2, 0.4])
    assert (curve.auroc, curve.at_gate) == (0.75, [0.5, 0.5])


def test_refusals_are_counted_by_part_and_kind() -> None:
    """Shares of each side, by what was held out, by language and by kind; None where there are no cases."""
    asked = [
        a_case(0.9, right="a"),
        a_case(0.1, right="a", held_out=True, language="en"),
        a_case(0.9, kind="near_miss"),
        a_case(0.1, kind="off_topic", held_out=True),
        a_case(0.1, kind="off_topic"),
    ]
    found = find_refusals(asked, {"thresholds": {}})
    rows = {
        name: (row.answerable, row.false_refusals, row.unanswerable, row.refused) for name, row in found.rows.items()
    }
    assert rows == {
        "all": (2, 50.0, 3, 66.67),
        "development": (1, 0.0, 2, 50.0),
        "held out": (1, 100.0, 1, 100.0),
        "asked in en": (1, 100.0, 0, None),
        "asked in es": (1, 0.0, 3, 66.67),
        "near_miss": (0, None, 1, 0.0),
        "off_topic": (0, None, 2, 100.0),
    }
    assert list(found.curves) == ["development", "held out"]
    assert list(find_refusals(asked[:1] + asked[2:3], {"thresholds": {}}).curves) == ["all"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> OpenIndex:
    """Five cards."""
    return tiny_index(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize(
    ("language", "right", "direction"),
    [
        ("es", "limon", "es→es"),
        ("es", "pear limon", "es→es"),
        ("es", "pear", "es→en"),
        ("en", "pear limon", "en→en"),
        ("en", "limon manzana", "en→es"),
        # nobody knows this card, or this caller does not
        ("en", "no-hay", None),
        ("en", "secreta", None),
        ("en", "", None),
    ],
)
def test_a_direction_crosses_only_where_it_must(
    index: OpenIndex, language: str, right: str, direction: str | None
) -> None:
    """A case with a right card in the question's language stays in it."""
    found = by_direction([a_case(0.9, right=right, language=language)], index)
    assert list(found) == ([direction] if direction else [])


def test_a_case_without_language_is_in_the_one_it_was_heard_in() -> None:
    """A BEIR case does not say its language."""
    heard = Asked(Case("?", {}), (), 0.5, 0.5, answer(language="en"))
    assert list(parts_of([heard])) == ["all", "asked in en"]


def test_a_case_without_hits_counts_as_zero() -> None:
    """An empty ranking is a miss like any other."""
    figures = figures_of([([], {"a": 1.0}), (["a"], {"a": 1.0})])
    assert (figures.cases, figures.success[10], figures.recall[10], figures.mrr_10) == (2, 50.0, 50.0, 50.0)
    assert list(figures.success) == list(figures.recall) == list(range(1, 11))


def test_what_went_wrong_is_listed() -> None:
    """Rank 3 is found and rank 4 is missed; a refusal is wrong for one kind of case, an answer for the other."""
    assert [is_missed(a_case(0.9, right="x", ranking=ranking)) for ranking in ("a b x", "a b c x", "")] == [
        False,
        True,
        True,
    ]
    assert not is_missed(a_case(0.9))
    for right, refused, wrong in (("a", True, (True, False)), ("a", False, (False, False))):
        asked = a_case(0.9, right=right, refused=refused)
        assert (is_wrongly_refused(asked), is_wrongly_answered(asked)) == wrong
    for refused, wrong in ((True, (False, False)), (False, (False, True))):
        asked = a_case(0.9, refused=refused)
        assert (is_wrongly_refused(asked), is_wrongly_answered(asked)) == wrong


def test_a_listed_case_names_its_cards(index: OpenIndex) -> None:
    """The cards wanted and found have their titles, as far as the caller may see them."""
    [asked] = ask([Case("¿Es dulce?", {"secreta": 1.0}, language="es")], index=index, embedder=FixedQuestion())
    found = listed(asked, index)
    assert [(card.card_id, card.title) for card in found.wanted] == [("secreta", "")]
    assert [card.title for card in found.found] == ["Manzana", "Limón", "Pear", "Zumo"]
    assert found.rank is None
    assert found.cited[0] == "manzana"


def test_percentiles_and_bins() -> None:
    """Percentiles are those of numpy, every case is in a bin, and the last holds what lies beyond."""
    times = [1.0] * 90 + [3.0] * 9 + [500.0]
    found = latency_of(times)
    assert (found.p50, found.p95) == (1.0, 3.0)
    assert found.step == 0.2
    assert (sum(found.counts), found.counts[5], found.counts[15], found.counts[-1]) == (100, 90, 9, 1)
    assert latency_of([]).counts == [0] * BINS
