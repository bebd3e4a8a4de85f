"""Other ways to rank the same cards for the same cases, beside the service's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from rag.contextual import contextualise
from rag.embedding import QueryEmbedder
from rag.evaluation.findings import Strategy
from rag.evaluation.parts import Ranked, Ranking, figures_of, values
from rag.measuring import DEPTH, Asked
from rag.metrics import paired_bootstrap
from rag.opening import OpenIndex
from rag.records import Chunk, Row
from rag.retrieval import retrieve
from rag.row_index import SCORE_DIGITS

SERVICE = "service"
STRATEGIES: Mapping[str, str] = {
    "whole card": "one vector a card, of its title and text, by cosine",
    "chunks": "each card by its best chunk without context (the title on the first chunk), by cosine",
    "contextual chunks": "each card by its best chunk as it is indexed, with its context, by cosine",
    "dense": "each card by its best chunk, sentence and named question, the language taken out; words have no say",
    "words": "BM25 among the cards in the question's language, with the questions that they name",
    "reciprocal ranks": "dense and words, fused by their ranks",
    SERVICE: "dense and words, fused by coverage: what the service does",
}
COMPARED = ("success@1", "success@3", "success@10", "recall@10", "mrr@10", "ndcg@10")

Vectors = NDArray[np.float32]
Passages = Callable[[Sequence[str]], Vectors]
"""Texts to vectors, (n, d) float32, unit length."""


def compare_strategies(
    asked: Sequence[Asked], *, index: OpenIndex, questions: QueryEmbedder, passages: Passages
) -> dict[str, Strategy]:
    """Every strategy over the answerable cases, by name, each against the service."""
    answerable = [entry for entry in asked if entry.case.grades]
    rankings = rank_by_strategies(answerable, index=index, questions=questions, passages=passages)
    grades = [entry.case.grades for entry in answerable]
    ranked: dict[str, Ranked] = {name: list(zip(rankings[name], grades, strict=True)) for name in STRATEGIES}
    return {
        name: Strategy(
            what=what,
            figures=figures_of(ranked[name]),
            differences={}
            if name == SERVICE
            else {
                measure: paired_bootstrap(values(measure, ranked[SERVICE]), values(measure, ranked[name]))
                for measure in COMPARED
            },
        )
        for name, what in STRATEGIES.items()
    }


def rank_by_strategies(
    asked: Sequence[Asked], *, index: OpenIndex, questions: QueryEmbedder, passages: Passages
) -> dict[str, list[Ranking]]:
    """For each strategy the cards found for each case, best first, at most ``DEPTH``."""
    boxes: dict[tuple[str, ...], Mapping[str, _Vectors]] = {}
    found: dict[str, list[Ranking]] = {name: [] for name in STRATEGIES}
    for entry in asked:
        case = entry.case
        if case.groups not in boxes:
            boxes[case.groups] = _vectors_of(index.rows.visible(case.groups), passages)
        vector = questions.embed_query(case.question)
        for name, held in boxes[case.groups].items():
            found[name].append(best_cards(held.card_ids, held.vectors @ vector, count=DEPTH))
        for name, fusion in (("dense", "dense"), ("reciprocal ranks", "ranks")):
            fused = retrieve(case.question, case.groups, index=index, embedder=questions, top_k=DEPTH, fusion=fusion)
            found[name].append([passage.card.card_id for passage in fused.passages])
        covered = index.lexical.search(case.question, entry.answer.language, case.groups)
        found["words"].append([card_id for card_id, _ in covered.best(DEPTH)])
        found[SERVICE].append(entry.ranking)
    return found


def best_cards(card_ids: Sequence[str], cosines: Vectors, *, count: int) -> list[str]:
    """The ``count`` cards whose best vector has the highest cosine, best first, ties as they stand."""
    order = np.argsort(-np.round(cosines, SCORE_DIGITS), kind="stable").tolist()
    return list(dict.fromkeys(card_ids[place] for place in order))[:count]


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Vectors that cards are ranked by."""

    card_ids: Sequence[str]
    """Of each vector."""
    vectors: Vectors
    """(n, d), unit length."""


def _vectors_of(visible: tuple[Sequence[Row], Vectors], passages: Passages) -> dict[str, _Vectors]:
    """By strategy, the vectors of the rows that a caller may find."""
    rows, stored = visible
    cards = list({row.card.card_id: row.card for row in rows}.values())
    ids = [row.card.card_id for row in rows]
    whole = passages([f"{card.title}\n\n{card.text}" for card in cards])
    return {
        "whole card": _Vectors([card.card_id for card in cards], whole),
        "chunks": _Vectors(ids, passages(_without_context(rows))),
        "contextual chunks": _Vectors(ids, stored),
    }


def _without_context(rows: Sequence[Row]) -> list[str]:
    """What would be embedded of these rows, which are in order of card, with the context strategy ``none``."""
    texts: list[str] = []
    for _, own in groupby(rows, key=lambda row: row.card.card_id):
        held = list(own)
        card = held[0].card
        chunks = [
            Chunk(card.card_id, row.chunk_index, row.start, row.end, card.text[row.start : row.end]) for row in held
        ]
        texts += [record.text_indexed for record in contextualise(card, chunks, strategy="none")]
    return texts
