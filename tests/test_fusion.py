"""Two rankings to one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.fusion import COVERAGE_WEIGHT, RANK_OFFSET, fuse_coverage, reciprocal_rank_fusion

SCORES = st.lists(
    st.tuples(st.floats(-1, 2, width=32), st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=20
)


def fused(dense: list[float], coverage: list[float], comparable: list[bool]) -> list[float]:
    """The fused scores as a list."""
    scores = fuse_coverage(np.array(dense, np.float32), np.array(coverage, np.float32), np.array(comparable, bool))
    return [float(score) for score in scores]


def test_coverage_by_hand() -> None:
    """Of two comparable cards the second covers more: it goes ahead, and stands where the first one stood."""
    assert COVERAGE_WEIGHT == 1.0
    assert fused([1.0, 0.9, 0.95], [0.1, 0.5, 0.9], [True, True, False]) == pytest.approx([0.7, 1.0, 0.95])


@given(SCORES)
@settings(max_examples=200, deadline=None, database=None, derandomize=True)
def test_coverage_keeps_languages_where_they_were(scores: list[tuple[float, float, bool]]) -> None:
    """The best comparable card is as high as before, the others stay, and coverage alone tells the comparable apart."""
    dense, coverage, comparable = map(list, zip(*scores, strict=True))
    after = fused(dense, coverage, comparable)
    ours = [place for place, flag in enumerate(comparable) if flag]
    for place in set(range(len(scores))) - set(ours):
        assert after[place] == pytest.approx(dense[place], abs=1e-5)
    if ours:
        assert max(after[place] for place in ours) == pytest.approx(max(dense[place] for place in ours), abs=1e-5)
        gaps = {round(after[place] - dense[place] - coverage[place], 4) for place in ours}
        assert max(gaps) - min(gaps) < 1e-3


def test_nothing_in_common_changes_nothing() -> None:
    """Without coverage, and without cards, the dense scores come back."""
    assert fused([0.5, 0.2], [0.0, 0.0], [True, False]) == pytest.approx([0.5, 0.2])
    assert fused([], [], []) == []


def test_reciprocal_ranks_by_hand() -> None:
    """A card gets 1 / (60 + rank) from each list that has it, and nothing from a list that does not."""
    by_rank = reciprocal_rank_fusion([["a", "b", "c"], ["c", "a"]])
    assert RANK_OFFSET == 60
    assert by_rank == pytest.approx({"a": 1 / 61 + 1 / 62, "b": 1 / 62, "c": 1 / 63 + 1 / 61})


def test_one_vote_a_list() -> None:
    """A card that stands in a list more than once counts by its first place, and pushes no one down."""
    assert reciprocal_rank_fusion([["a", "a", "a", "b"]]) == reciprocal_rank_fusion([["a", "b"]])
    assert reciprocal_rank_fusion([[], []]) == {}
