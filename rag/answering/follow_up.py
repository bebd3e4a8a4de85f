"""Questions that need what was said before: they may be completed by it, but not replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag.markers import scan_markers
from rag.records import Retrieval, Turn
from rag.terms import terms

SLACK = 0.05
"""How far below the gate a question may stay and still be one that earlier ones complete. Off topic is farther away."""
TURNS_TRIED = 2
REWRITTEN_CHARS = 300
KNOWN_SHARE, KEPT_SHARE = 0.7, 0.5
"""Of a rewritten question's words, those said before; of the question's own words, those still there."""


def may_follow_up(found: Retrieval, *, slack: float = SLACK) -> bool:
    """Whether a question, by itself, is near enough to the cards for earlier ones to help."""
    return found.best_score is not None and found.best_score >= found.threshold - slack


def follow_up(
    question: str,
    found: Retrieval,
    history: Sequence[Turn],
    search: Callable[[str], Retrieval],
    *,
    slack: float = SLACK,
) -> tuple[Retrieval, str | None]:
    """
    What a question finds together with those before it, and the words that were searched for.

    Only where the question alone does not pass the gate, and nearly does; together they have to pass it.
    """
    if found.passed or not history or not may_follow_up(found, slack=slack):
        return found, None
    for turns in range(1, min(TURNS_TRIED, len(history)) + 1):
        together = " ".join([turn.question for turn in history[-turns:]] + [question])
        completed = search(together)
        if completed.passed:
            return completed, together
    return found, None


def checked_rewriting(text: str, question: str, history: Sequence[Turn]) -> str | None:
    """
    A question as a model rewrote it, if it is one line made of words of the conversation; else None.

    So a model can put a question together, and neither invent one nor slip in what somebody ordered it to.
    """
    rewritten = text.rpartition("</think>")[2].strip().strip("\"'«»“”`")
    if not rewritten or "\n" in rewritten or len(rewritten) > REWRITTEN_CHARS:
        return None
    if scan_markers(rewritten) != [rewritten]:
        return None
    said = terms(" ".join([question, *(f"{turn.question} {turn.answer}" for turn in history)]))
    words, own = terms(rewritten), terms(question)
    if not words or len(words & said) < KNOWN_SHARE * len(words) or len(words & own) < KEPT_SHARE * len(own):
        return None
    return rewritten
