"""The cases that went wrong, to be read one by one."""

from __future__ import annotations

from collections.abc import Sequence

from rag.evaluation.findings import CardFound, Listed
from rag.evaluation.parts import question_language
from rag.evaluation.refusals import lead
from rag.measuring import ANSWER_TOP_K, Asked
from rag.opening import OpenIndex

MISSED_BELOW = 3
"""A right card at a later rank than this is as good as none."""


def is_missed(entry: Asked) -> bool:
    """Whether a case has an answer, and no right card is among the first."""
    rank = entry.outcome.rank
    return bool(entry.case.grades) and (rank is None or rank > MISSED_BELOW)


def is_wrongly_refused(entry: Asked) -> bool:
    """Whether a case has an answer and got none."""
    return bool(entry.case.grades) and entry.answer.refusal is not None


def is_wrongly_answered(entry: Asked) -> bool:
    """Whether a case has no answer and got one."""
    return not entry.case.grades and entry.answer.refusal is None


def listed(entry: Asked, index: OpenIndex) -> Listed:
    """A case with the cards that it wanted and those that it found."""
    case = entry.case

    def named(card_ids: Sequence[str]) -> list[CardFound]:
        cards = [(card_id, index.rows.card(card_id, case.groups)) for card_id in card_ids]
        return [CardFound(card_id, card.title if card else "") for card_id, card in cards]

    return Listed(
        question=case.question,
        language=question_language(entry),
        groups=case.groups,
        held_out=case.held_out,
        kind=case.kind,
        rank=entry.outcome.rank,
        lead=round(lead(entry), 4),
        wanted=named(list(case.grades)),
        found=named(entry.ranking[:ANSWER_TOP_K]),
        cited=list(dict.fromkeys(citation.card_id for citation in entry.answer.citations)),
    )
