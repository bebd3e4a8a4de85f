"""What if nothing were retrieved: all cards that fit into one prompt, and the best sentence among them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from rag.embedding import QueryEmbedder
from rag.evaluation.findings import Prompt, Way, WithoutRetrieval
from rag.evaluation.parts import per_cent
from rag.measuring import ANSWER_TOP_K, Asked
from rag.metrics import mean, paired_bootstrap, success_at
from rag.opening import OpenIndex
from rag.records import Card
from rag.retrieval import retrieve

LIMIT_TOKENS = 8_192
PASSAGE_CHARS = 600

CountTokens = Callable[[str], int]


def do_without(
    asked: Sequence[Asked],
    *,
    index: OpenIndex,
    questions: QueryEmbedder,
    count_tokens: CountTokens,
    limit_tokens: int = LIMIT_TOKENS,
) -> WithoutRetrieval | None:
    """Answer the answerable cases from all cards that fit; None where there are no such cases."""
    answerable = [entry for entry in asked if entry.case.grades]
    if not answerable:
        return None
    groups = list(dict.fromkeys(entry.case.groups for entry in answerable))
    boxes = {own: _fill(index.rows.cards(own), index, count_tokens, limit_tokens) for own in groups}
    without: list[float] = []
    reach: list[float] = []
    times: list[float] = []
    for entry in answerable:
        box = boxes[entry.case.groups]
        vector = questions.embed_query(entry.case.question)
        started = time.perf_counter()
        nearest = box.nearest_card(vector)
        times.append((time.perf_counter() - started) * 1e3)
        without.append(float(nearest in entry.case.grades))
        reach.append(float(any(card_id in entry.case.grades for card_id in box.card_ids)))
    service = [success_at(1, entry.ranking, entry.case.grades) for entry in answerable]
    shown = [_service_prompt(entry, index, questions, count_tokens) for entry in answerable]
    rest = [entry.answer.timings_ms["total"] - entry.answer.timings_ms["embed"] for entry in answerable]
    held = [boxes[entry.case.groups] for entry in answerable]
    return WithoutRetrieval(
        limit_tokens=limit_tokens,
        prompts=[
            Prompt(
                own, sum(entry.case.groups == own for entry in answerable), box.visible, len(box.card_ids), box.tokens
            )
            for own, box in boxes.items()
        ],
        without=Way(
            success_1=per_cent(without),
            cards=round(mean([len(box.card_ids) for box in held]), 1),
            prompt_tokens=round(mean([box.tokens for box in held]), 1),
            milliseconds=round(statistics.median(times), 2),
        ),
        service=Way(
            success_1=per_cent(service),
            cards=round(mean([cards for cards, _ in shown]), 1),
            prompt_tokens=round(mean([tokens for _, tokens in shown]), 1),
            milliseconds=round(statistics.median(rest), 2),
        ),
        within_reach=per_cent(reach),
        difference=paired_bootstrap(service, without),
    )


def cut_passage(text: str, start: int, end: int, *, size: int = PASSAGE_CHARS) -> str:
    """At most ``size`` characters of a text, with ``text[start:end]`` in the middle as far as the text allows."""
    first = max(0, min((start + end - size) // 2, len(text) - size))
    return text[first : first + size]


@dataclass(frozen=True, slots=True)
class _Box:
    """The cards that fit, with their sentences."""

    visible: int
    card_ids: Sequence[str]
    tokens: int
    owners: Sequence[str]
    """The card of each sentence."""
    sentences: NDArray[np.float32]
    """(n, d)."""

    def nearest_card(self, vector: NDArray[np.float32]) -> str | None:
        """The card of the sentence that is nearest; None where there is no sentence."""
        return self.owners[int(np.argmax(self.sentences @ vector))] if self.owners else None


def _fill(cards: Sequence[Card], index: OpenIndex, count_tokens: CountTokens, limit_tokens: int) -> _Box:
    """Cards in their order, until the next one does not fit."""
    sizes = [count_tokens(_as_prompt(card, card.text)) for card in cards]
    fitting = sum(total <= limit_tokens for total in accumulate(sizes))
    card_ids = [card.card_id for card in cards[:fitting]]
    chosen = index.evidence.of(card_ids)
    owners = np.repeat(np.arange(fitting), np.array(chosen.counts, np.intp))
    quotable = chosen.spans[:, 1] > chosen.spans[:, 0]
    return _Box(
        visible=len(cards),
        card_ids=card_ids,
        tokens=sum(sizes[:fitting]),
        owners=[card_ids[place] for place in owners[quotable].tolist()],
        sentences=chosen.vectors[quotable],
    )


def _service_prompt(
    entry: Asked, index: OpenIndex, questions: QueryEmbedder, count_tokens: CountTokens
) -> tuple[int, int]:
    """How many passages a prompt of the service shows, and how many tokens those have."""
    case = entry.case
    found = retrieve(case.question, case.groups, index=index, embedder=questions, top_k=ANSWER_TOP_K)
    texts = [
        _as_prompt(passage.card, cut_passage(passage.card.text, passage.start, passage.end))
        for passage in found.passages
    ]
    return len(texts), sum(map(count_tokens, texts))


def _as_prompt(card: Card, text: str) -> str:
    return f"{card.title}\n{text}"
