"""Two rankings of the same cards to one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

COVERAGE_WEIGHT = 1.0
RANK_OFFSET = 60

Scores = NDArray[np.float32]


def fuse_coverage(dense: Scores, coverage: Scores, comparable: NDArray[np.bool_]) -> Scores:
    """
    Add what each card covers of the question's words to its dense score; all (n,), one place a card.

    Coverage says something only among the cards written in the question's language: those are ``comparable``. They
    change places among themselves, and are then moved together until the best of them stands as high as the best did
    before. Against a card in another language, which could not have had the same words, they gain and lose nothing.
    """
    fused = dense + np.float32(COVERAGE_WEIGHT) * coverage * comparable
    if comparable.any():
        fused[comparable] += dense[comparable].max() - fused[comparable].max()
    return fused


def reciprocal_rank_fusion(rankings: Sequence[Sequence[str]], *, offset: int = RANK_OFFSET) -> dict[str, float]:
    """
    The sum of 1 / (offset + rank) of each card over the rankings that have it, ranks counted from 1.

    A card has one place in a ranking: its first. A fused score orders the cards of one question; it is no confidence.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    fused: dict[str, float] = {}
    for ranking in rankings:
        for rank, card_id in enumerate(dict.fromkeys(ranking), start=1):
            fused[card_id] = fused.get(card_id, 0.0) + 1.0 / (offset + rank)
    return fused
