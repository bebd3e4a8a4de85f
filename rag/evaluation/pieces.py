"""Collections that come cut already: ids such as ``doc#3`` are pieces of one document, in reading order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag.embedding import QueryEmbedder
from rag.measuring import DEPTH, Asked
from rag.metrics import mean
from rag.opening import OpenIndex
from rag.retrieval import retrieve

SEPARATOR = "#"


def rank_pieces(asked: Sequence[Asked], *, index: OpenIndex, questions: QueryEmbedder) -> list[Asked]:
    """The same cases, each with the pieces ranked by ``piece_scores`` of all of them."""
    ranked: list[Asked] = []
    for entry in asked:
        case = entry.case
        count = len(index.rows.cards(case.groups))
        found = retrieve(case.question, case.groups, index=index, embedder=questions, top_k=count)
        scores = piece_scores({passage.card.card_id: passage.rank_score for passage in found.passages})
        best = sorted(scores, key=lambda piece: -scores[piece])
        ranked.append(replace(entry, ranking=tuple(best[:DEPTH])))
    return ranked


def piece_scores(own: Mapping[str, float]) -> dict[str, float]:
    """
    The score of each piece plus the mean of its document's pieces, in the order given.

    A piece of a file seldom says what the file is about; its neighbours do.
    """
    of_document: dict[str, list[float]] = {}
    for piece, score in own.items():
        of_document.setdefault(_document(piece), []).append(score)
    return {piece: score + mean(of_document[_document(piece)]) for piece, score in own.items()}


def _document(piece: str) -> str:
    return piece.rpartition(SEPARATOR)[0] or piece
