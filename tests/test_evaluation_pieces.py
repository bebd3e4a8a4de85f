"""Pieces of documents, ranked with their neighbours."""

from __future__ import annotations

import pytest

from rag.evaluation.pieces import piece_scores


def test_pieces_by_hand() -> None:
    """A piece has its own score and the mean of its document's, in the order given."""
    scores = piece_scores({"a#0": 0.2, "b#0": 0.5, "a#1": 1.0, "b#1": 0.1})
    assert list(scores) == ["a#0", "b#0", "a#1", "b#1"]
    assert scores == pytest.approx({"a#0": 0.8, "b#0": 0.8, "a#1": 1.6, "b#1": 0.4})


def test_what_is_no_piece_stands_for_itself() -> None:
    """An id without a number behind # is a document of one piece; only the last # counts."""
    assert piece_scores({"a": 0.2, "b": 0.3, "": 0.1}) == pytest.approx({"a": 0.4, "b": 0.6, "": 0.2})
    assert piece_scores({"a#b#0": 0.2, "a#b#1": 0.4, "a#c#0": 0.9}) == pytest.approx(
        {"a#b#0": 0.5, "a#b#1": 0.7, "a#c#0": 1.8}
    )
