"""The sentences of all cards on disk: spans and vectors, memory-mapped, so that a question embeds nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from rag.records import Span

_VECTORS, _SPANS, _CARDS = "vectors.npy", "spans.npy", "cards.json"

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Opened sentence files."""

    vectors: NDArray[np.float16]
    """(n, d), unit length up to rounding."""
    spans: NDArray[np.int32]
    """(n, 2): start and end in the card's text."""
    cards: Mapping[str, tuple[int, int]]
    """Card id → first sentence and the one behind the last."""

    def spans_of(self, card_id: str) -> list[Span]:
        """The sentences of a card in reading order."""
        first, last = self.cards.get(card_id, (0, 0))
        return [Span(start, end) for start, end in self.spans[first:last].tolist()]

    def vectors_of(self, card_ids: Sequence[str]) -> tuple[Vectors, list[int]]:
        """The vectors of these cards' sentences one after another, (n, d) float32, and how many each card has."""
        bounds = [self.cards.get(card_id, (0, 0)) for card_id in card_ids]
        pieces = [self.vectors[first:last] for first, last in bounds]
        vectors = np.concatenate(pieces) if pieces else self.vectors[:0]
        return vectors.astype(np.float32), [last - first for first, last in bounds]


def write_evidence(folder: Path, sentences: Mapping[str, Sequence[Span]], vectors: Vectors) -> None:
    """Write the sentences of each card; ``vectors`` is (n, d), all cards' sentences one after another."""
    folder.mkdir()
    bounds: dict[str, tuple[int, int]] = {}
    spans: list[tuple[int, int]] = []
    for card_id, of_card in sentences.items():
        bounds[card_id] = (len(spans), len(spans) + len(of_card))
        spans += [(span.start, span.end) for span in of_card]
    np.save(folder / _VECTORS, vectors.astype(np.float16))
    np.save(folder / _SPANS, np.array(spans, np.int32).reshape(-1, 2))
    (folder / _CARDS).write_text(json.dumps(bounds), "utf-8")


def open_evidence(folder: Path) -> Evidence:
    """
    Open what ``write_evidence`` wrote, without reading the vectors.

    Raises:
        OSError, ValueError: a file is missing or damaged.
    """
    try:
        entries = json.loads((folder / _CARDS).read_text("utf-8")).items()
        cards = {name: (int(first), int(last)) for name, (first, last) in entries}
        return Evidence(_load_vectors(folder / _VECTORS, cards), _load(folder / _SPANS), cards)
    except (EOFError, AttributeError, TypeError) as error:
        raise ValueError(f"the files of sentences are damaged: {error!r}") from error


def _load(path: Path) -> NDArray[Any]:
    with path.open("rb") as file:
        return np.asarray(np.load(file, allow_pickle=False))


def _load_vectors(path: Path, cards: Mapping[str, tuple[int, int]]) -> NDArray[Any]:
    # an empty file cannot be mapped
    filled = any(last > first for first, last in cards.values())
    return open_memmap(path, mode="r") if filled else _load(path)
