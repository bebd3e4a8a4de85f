"""From a question to what it finds, and to an answer made of quotes."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rag.answering.composing import Asked, compose_quotes
from rag.answering.extractive import quote_passages
from rag.answering.follow_up import SLACK, follow_up
from rag.embedding import QueryEmbedder
from rag.opening import OpenIndex
from rag.records import Answer, Retrieval, Turn
from rag.reranking import Reranker
from rag.retrieval import retrieve


@dataclass(frozen=True, slots=True)
class Search:
    """Retrieval for one caller, with everything set but the question; see ``rag.retrieval``."""

    groups: Collection[str]
    index: OpenIndex
    embedder: QueryEmbedder
    top_k: int
    min_similarity: float | None = None
    """Overrides the gate that was calibrated with the index."""
    fusion: str = "coverage"
    reranker: Reranker | None = None

    def __call__(self, question: str) -> Retrieval:
        """What a question finds."""
        return retrieve(
            question,
            self.groups,
            index=self.index,
            embedder=self.embedder,
            top_k=self.top_k,
            threshold=self.min_similarity,
            fusion=self.fusion,
            reranker=self.reranker,
        )

    @property
    def slack(self) -> float:
        """How far below the gate a question may be for earlier ones to help; a gate set by hand gives none."""
        return SLACK if self.min_similarity is None else 0.0


def answer_question(question: str, search: Search, *, request_id: str, history: Sequence[Turn] = ()) -> Answer:
    """Answer from the cards that the caller may see, by quoting their sentences; or refuse, with the reason."""
    started = time.perf_counter()
    found, searched = follow_up(question, search(question), history, search, slack=search.slack)
    citations = quote_passages(searched or question, found.passages) if found.passed else []
    asked = Asked(request_id, question, search.index.build_id, started, searched)
    return compose_quotes(asked, found, citations)
