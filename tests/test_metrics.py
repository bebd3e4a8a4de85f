"""Measures of ranked lists: worked by hand, against trec_eval's figures, and against their definitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.metrics import auroc, mean, ndcg_at, paired_bootstrap, recall_at, reciprocal_rank_at, roc, success_at

BOUNDED = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

CARDS = "abcdefghij"
RANKING = st.permutations(CARDS).flatmap(lambda cards: st.integers(0, len(cards)).map(lambda count: cards[:count]))
GRADES = st.dictionaries(st.sampled_from(CARDS), st.integers(0, 3))
CUT = st.integers(1, 12)


def test_success_by_hand() -> None:
    """Success is 1 as soon as one relevant card is among the first k."""
    assert [success_at(k, "xya", {"a", "b"}) for k in (1, 2, 3)] == [0.0, 0.0, 1.0]


def test_recall_by_hand() -> None:
    """Recall is the share of relevant cards among the first k, whatever k is."""
    assert [recall_at(k, "axb", {"a", "b", "c", "d"}) for k in (1, 2, 3, 9)] == [0.25, 0.25, 0.5, 0.5]


def test_reciprocal_rank_by_hand() -> None:
    """The third place counts a third, and one behind k nothing."""
    assert [reciprocal_rank_at(k, "xyab", {"a", "b"}) for k in (2, 3, 4)] == [0.0, 1 / 3, 1 / 3]


def test_ndcg_by_hand() -> None:
    """With grades 3 and 2 at places 2 and 3, the gain is 3/log2(3) + 2/2 of an ideal 3 + 2/log2(3)."""
    gained, ideal = 3 / math.log2(3) + 2 / 2, 3 + 2 / math.log2(3)
    assert ndcg_at(3, "xab", {"a": 3, "b": 2}) == pytest.approx(gained / ideal)


# figures of trec_eval (through pytrec_eval 0.5): success 3, recall 3 and 5, reciprocal rank, nDCG 3 and 5
TREC_EVAL: list[tuple[str, dict[str, float], list[float]]] = [
    ("abc", {"a": 3, "b": 2, "c": 1}, [1, 1, 1, 1, 1, 1]),
    ("cba", {"a": 3, "b": 2, "c": 1}, [1, 1, 1, 1, 0.789998, 0.789998]),
    ("xaybz", {"a": 1, "b": 2, "c": 3}, [1, 0.333333, 0.666667, 0.5, 0.132497, 0.313382]),
    ("xyzwa", {"a": 1, "b": 1}, [0, 0, 0.5, 0.2, 0, 0.237198]),
    ("bxacydzefg", {"a": 3, "c": 2, "e": 1, "h": 3, "x": 0}, [1, 0.25, 0.5, 0.333333, 0.254548, 0.373427]),
]


@pytest.mark.parametrize(("ranking", "grades", "figures"), TREC_EVAL, ids=[ranking for ranking, *_ in TREC_EVAL])
def test_figures_of_trec_eval(ranking: str, grades: Mapping[str, float], figures: Sequence[float]) -> None:
    """The measures are those of trec_eval."""
    relevant = {card for card, grade in grades.items() if grade > 0}
    found = [
        success_at(3, ranking, relevant),
        recall_at(3, ranking, relevant),
        recall_at(5, ranking, relevant),
        reciprocal_rank_at(10, ranking, relevant),
        ndcg_at(3, ranking, grades),
        ndcg_at(5, ranking, grades),
    ]
    assert found == pytest.approx(figures, abs=1e-6)


@given(CUT, RANKING, GRADES)
@BOUNDED
def test_definitions(k: int, ranking: list[str], grades: dict[str, float]) -> None:
    """On any list the measures are what their definitions say, place by place."""
    relevant = {card for card, grade in grades.items() if grade > 0}
    ranks = [place + 1 for place in range(min(k, len(ranking))) if ranking[place] in relevant]
    assert success_at(k, ranking, relevant) == (1.0 if ranks else 0.0)
    assert recall_at(k, ranking, relevant) == (len(ranks) / len(relevant) if relevant else 0.0)
    assert reciprocal_rank_at(k, ranking, relevant) == (1 / ranks[0] if ranks else 0.0)
    best = sorted(grades.values(), reverse=True)[:k]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
    gained = sum(grades.get(card, 0) / math.log2(place + 2) for place, card in enumerate(ranking[:k]))
    assert ndcg_at(k, ranking, grades) == pytest.approx(gained / ideal if ideal else 0.0)


@given(CUT, RANKING, GRADES)
@BOUNDED
def test_measures_are_shares(k: int, ranking: list[str], grades: dict[str, float]) -> None:
    """All measures go from 0 to 1, and neither success nor recall nor reciprocal rank falls as k grows."""
    relevant = {card for card, grade in grades.items() if grade > 0}
    for measure in (success_at, recall_at, reciprocal_rank_at):
        assert 0 <= measure(k, ranking, relevant) <= measure(k + 1, ranking, relevant) <= 1
    assert 0 <= ndcg_at(k, ranking, grades) <= 1 + 1e-12


@given(CUT, GRADES)
@BOUNDED
def test_the_ideal_ranking_has_the_highest_ndcg(k: int, grades: dict[str, float]) -> None:
    """Cards in order of their grades score 1, unless nothing is relevant."""
    ideal = sorted(grades, key=lambda card: -grades[card])
    assert ndcg_at(k, ideal, grades) == pytest.approx(1.0 if any(grades.values()) else 0.0)


def test_empty_lists() -> None:
    """Nothing found, or nothing to find, is 0."""
    for ranking, relevant in (("", {"a"}), ("a", set[str]()), ("", set[str]())):
        for measure in (success_at, recall_at, reciprocal_rank_at):
            assert measure(5, ranking, relevant) == 0.0
    assert ndcg_at(5, "", {"a": 1}) == ndcg_at(5, "a", {}) == ndcg_at(5, "a", {"a": 0}) == 0.0


def test_mean() -> None:
    """The mean of some figures, and 0 of none."""
    assert mean([1.0, 0.0, 0.5, 0.5]) == 0.5
    assert mean([]) == 0.0


def test_the_bootstrap_tells_chance_from_change() -> None:
    """A steady change is certain, an even exchange is chance, no change is none; the same figures every time."""
    steady = paired_bootstrap([0.0] * 20, [0.25] * 20)
    assert (steady.mean, steady.low, steady.high, steady.p) == (0.25, 0.25, 0.25, 0.0)
    even = paired_bootstrap([0, 1] * 20, [1, 0] * 20)
    assert even.mean == 0.0
    assert even.p > 0.9
    assert even.low < 0 < even.high
    same = paired_bootstrap([0, 1, 1], [0, 1, 1])
    assert (same.mean, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    assert paired_bootstrap([0, 1] * 20, [1, 0] * 20) == even


def test_the_bootstrap_agrees_with_the_normal_approximation() -> None:
    """For many cases the middle 95 per cent is 1.96 standard errors around the mean, and signs turn with sides."""
    generator = np.random.default_rng(5)
    before, after = generator.random(400).tolist(), (generator.random(400) + 0.05).tolist()
    found, back = paired_bootstrap(before, after), paired_bootstrap(after, before)
    changes = np.array(after) - np.array(before)
    error = 1.96 * changes.std() / np.sqrt(len(changes))
    assert found.mean == pytest.approx(changes.mean())
    assert found.low == pytest.approx(changes.mean() - error, abs=0.004)
    assert found.high == pytest.approx(changes.mean() + error, abs=0.004)
    assert (back.mean, back.low, back.high) == pytest.approx((-found.mean, -found.high, -found.low))


def test_the_bootstrap_needs_pairs() -> None:
    """Lists of other lengths are refused."""
    with pytest.raises(ValueError, match="zip"):
        paired_bootstrap([1.0], [])


def test_a_curve_by_hand() -> None:
    """Three answerable and two unanswerable scores give the six places, the shares and the area worked by hand."""
    positives, negatives = [0.9, 0.8, 0.4], [0.5, 0.3]
    found = roc(positives, negatives)
    assert [place for place, *_ in found] == [0.3, 0.4, 0.5, 0.8, 0.9, np.nextafter(0.9, 1)]
    assert [below for _, *below in found] == [[0, 0], [0, 0.5], [1 / 3, 0.5], [1 / 3, 1], [2 / 3, 1], [1, 1]]
    # five of the six pairs are in order
    assert auroc(positives, negatives) == pytest.approx(5 / 6)
    assert area(found) == pytest.approx(1 / 3 * 0.5 + 2 / 3 * 1)


@pytest.mark.parametrize("seed", range(20))
def test_the_area_below_the_curve_is_the_auroc(seed: int) -> None:
    """Counting pairs and measuring the area agree, with ties too."""
    generator = np.random.default_rng(seed)
    positives, negatives = (generator.integers(low, low + 6, 15).tolist() for low in (2, 0))
    assert area(roc(positives, negatives)) == pytest.approx(auroc(positives, negatives))


def area(points: list[tuple[float, float, float]]) -> float:
    across, up = np.array(points)[:, 1], np.array(points)[:, 2]
    return float((np.diff(across) * (up[1:] + up[:-1]) / 2).sum())


def test_a_curve_needs_both_sides() -> None:
    """Scores of one side alone have no curve."""
    with pytest.raises(ValueError, match="both sides"):
        roc([0.5], [])
