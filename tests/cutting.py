"""Texts in pieces, as they come from a language model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

CUTS = st.lists(st.integers(0, 120), max_size=8)


def pieces_of(text: str, cuts: Sequence[int]) -> list[str]:
    """The text cut at some places; those behind its end give empty pieces."""
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]
