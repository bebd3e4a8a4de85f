"""Small working implementations for tests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.errors import RerankerUnusable
from rag.records import PUBLIC_GROUP, Card, Row


def make_card(card_id: str = "una", text: str = "Texto.", **changes: object) -> Card:
    """A public Spanish card, with some fields changed."""
    values: dict[str, object] = {
        "card_id": card_id,
        "title": card_id.capitalize(),
        "text": text,
        "language": "es",
        "topics": (),
        "license": None,
        "source": None,
        "accessed_at": None,
        "acl": (PUBLIC_GROUP,),
    }
    return Card(**{**values, **changes})  # type: ignore[arg-type]


def make_row(card: Card, chunk_index: int = 0, *, start: int = 0, end: int | None = None) -> Row:
    """A row for a span of a card."""
    stop = len(card.text) if end is None else end
    row_id, text = f"{card.card_id}::{chunk_index:02d}", card.text[start:stop]
    return Row(row_id, chunk_index, start, stop, text, card, "a", "none-1")


def unit(*values: float) -> NDArray[np.float32]:
    """A vector of unit length."""
    vector = np.array(values, np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def hashed_vectors(texts: Sequence[str], dimension: int = 8) -> NDArray[np.float32]:
    """One unit vector a text, the same for the same text; only for tests that need vectors and no meaning."""
    seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") for text in texts]
    rows = [np.random.default_rng(seed).normal(size=dimension) for seed in seeds]
    return np.array([row / np.linalg.norm(row) for row in rows], np.float32).reshape(len(texts), dimension)


class RememberingReranker:
    """Scores each text by a function, and remembers what it was asked."""

    def __init__(self, worth: Callable[[str], float]) -> None:
        self.worth = worth
        self.asked: list[tuple[str, list[str]]] = []

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The worth of each text."""
        self.asked.append((question, list(texts)))
        return np.array([self.worth(text) for text in texts], np.float32)

    @property
    def texts(self) -> list[str]:
        """All that it ever saw of cards."""
        return [text for _, texts in self.asked for text in texts]


class BrokenReranker:
    """Fails at every question."""

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Nothing, ever."""
        raise RerankerUnusable(Path("cruzado"), "it gives the score nan")
