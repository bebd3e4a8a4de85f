"""The rows of an index in memory: access rules first, then exact scores, then the best chunk of each card."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rag.records import PUBLIC_GROUP, Card, Hit, Row
from rag.reference import LanguageCentring, Reference

OVER_RETRIEVAL = 4
"""Chunks fetched for each card asked for; widened until there are enough cards."""

SCORE_DIGITS = 5

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows of one access rule, which stand side by side in the matrix."""

    acl: frozenset[str]
    first: int
    last: int


class RowIndex:
    """
    The rows of an index in memory, grouped by access rule.

    Rows are only ever reached through the caller's groups: a row that shares none with them is not scored, counted or
    hinted at. A row without groups is reached by nobody.
    """

    def __init__(self, rows: Sequence[Row], vectors: Vectors, reference: Reference) -> None:
        """``vectors`` is (n, d) float32, unit length, in the order of the rows. Rows without text are not ranked."""
        self._cards = {row.card.card_id: row.card for row in rows}
        self._cards_of: dict[tuple[str, ...], list[Card]] = {}
        for card in self._cards.values():
            self._cards_of.setdefault(card.acl, []).append(card)
        ranked = [number for number, row in enumerate(rows) if row.end > row.start]
        ranked.sort(key=lambda number: (rows[number].card.acl, rows[number].row_id))
        self._rows = [rows[number] for number in ranked]
        by_id = sorted(range(len(ranked)), key=lambda number: self._rows[number].row_id)
        # for each row, its place in order of id: what settles ties
        self._places = np.argsort(np.array(by_id, np.intp))
        self._matrix = np.ascontiguousarray(vectors[ranked])
        self._blocks = _blocks(self._rows)
        self._rows_of = _rows_of(self._rows)
        languages = [row.card.language for row in self._rows]
        public = [PUBLIC_GROUP in row.card.acl for row in self._rows]
        self.centring = LanguageCentring(self._matrix, languages, public, reference)
        numbers = np.array([self.centring.number(language) for language in languages], np.intp)
        self._placed = self.centring.place(self._matrix, numbers)

    def cards(self, groups: Collection[str]) -> list[Card]:
        """The cards that a caller may see, in order of id."""
        wanted = frozenset(groups)
        # rule by rule, so that hidden cards do not even cost time
        seen = [cards for acl, cards in self._cards_of.items() if not wanted.isdisjoint(acl)]
        return sorted(chain.from_iterable(seen), key=lambda card: card.card_id)

    def card(self, card_id: str, groups: Collection[str]) -> Card | None:
        """A card, if it is there and the caller may see it."""
        card = self._cards.get(card_id)
        return card if card and not set(groups).isdisjoint(card.acl) else None

    def visible(self, groups: Collection[str]) -> tuple[list[Row], Vectors]:
        """The rows that a caller may find, in order of id, with a copy of their vectors, (n, d) float32."""
        wanted = frozenset(groups)
        numbers = [
            number
            for block in self._blocks
            if not wanted.isdisjoint(block.acl)
            for number in range(block.first, block.last)
        ]
        numbers.sort(key=self._places.__getitem__)
        return [self._rows[number] for number in numbers], self._matrix[numbers]

    def search(
        self,
        question: Vectors,
        language: str,
        groups: Collection[str],
        *,
        count: int,
        also: Collection[str] = (),
    ) -> list[Hit]:
        """
        The best cards for a question vector, (d,) float32, unit length: each by its best chunk, at most ``count``.

        Best score first, ties by row id; behind them the cards of ``also`` that were not among them, in their order.
        Of those, too, what the caller may not see is not there.
        """
        numbers, cosines, scores = self._scored(question, language, groups)
        # the last digits depend on how many rows stood beside each other, and are no reason to rank
        rounded = np.round(scores, SCORE_DIGITS)
        best = _best_per_card(rounded, numbers, self._places[numbers], self._rows, count)
        found = {self._rows[numbers[position]].card.card_id for position in best}
        for card_id in dict.fromkeys(also):
            held = self._rows_of.get(card_id)
            if held and card_id not in found and self.card(card_id, groups):
                # a card's rows stand side by side, in order of id; what is visible is in the order of the rows
                first = int(np.searchsorted(numbers, held.start))
                best.append(first + int(np.argmax(rounded[first : first + held.stop - held.start])))
        return [
            Hit(
                (row := self._rows[numbers[position]]).card,
                row.chunk_index,
                row.start,
                row.end,
                float(cosines[position]),
                float(scores[position]),
            )
            for position in best
        ]

    def _scored(
        self, question: Vectors, language: str, groups: Collection[str]
    ) -> tuple[NDArray[np.intp], Vectors, Vectors]:
        """Numbers, cosines and scores of the rows that the caller may see, in the order of the rows."""
        wanted = frozenset(groups)
        visible = [slice(block.first, block.last) for block in self._blocks if not wanted.isdisjoint(block.acl)]
        numbers = np.concatenate([np.empty(0, np.intp), *(np.arange(rows.start, rows.stop) for rows in visible)])
        # contiguous blocks are compared where they stand; nothing is copied, and nothing hidden is touched
        compared = [self._matrix[rows] @ question for rows in visible]
        cosines = np.concatenate([np.empty(0, np.float32), *compared])
        placed = self._placed if len(numbers) == len(self._rows) else self._placed.at(numbers)
        return numbers, cosines, self.centring.score(cosines, placed, question, language)


def _blocks(rows: Sequence[Row]) -> list[_Block]:
    blocks: list[_Block] = []
    first = 0
    for number in range(1, len(rows) + 1):
        if number == len(rows) or rows[number].card.acl != rows[first].card.acl:
            blocks.append(_Block(frozenset(rows[first].card.acl), first, number))
            first = number
    return blocks


def _rows_of(rows: Sequence[Row]) -> dict[str, slice]:
    """Where the rows of each card stand; they stand side by side."""
    held: dict[str, slice] = {}
    for number, row in enumerate(rows):
        first = held[row.card.card_id].start if row.card.card_id in held else number
        held[row.card.card_id] = slice(first, number + 1)
    return held


def _best_per_card(
    scores: Vectors, numbers: NDArray[np.intp], places: NDArray[np.intp], rows: Sequence[Row], count: int
) -> list[int]:
    """Positions of the best row of each card, best first: fetch a few rows for each, widen while short of cards."""
    wanted = count * OVER_RETRIEVAL
    while True:
        best: dict[str, int] = {}
        for position in _top(scores, places, wanted).tolist():
            best.setdefault(rows[numbers[position]].card.card_id, position)
        if len(best) >= count or wanted >= len(scores):
            return list(best.values())[:count]
        wanted *= 2


def _top(scores: Vectors, places: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Positions of at least the ``count`` highest scores, best first, ties by place."""
    if count < len(scores):
        edge = np.partition(scores, len(scores) - count)[len(scores) - count]
        candidates = np.flatnonzero(scores >= edge)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.lexsort((places[candidates], -scores[candidates]))]
