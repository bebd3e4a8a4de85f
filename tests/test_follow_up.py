"""Questions that need what was said before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from rag.answering.follow_up import REWRITTEN_CHARS, SLACK, checked_rewriting, follow_up, may_follow_up
from rag.records import Retrieval, Turn

GATE = 0.5
HISTORY = [Turn("¿Qué es la amlodipina?", "Un comprimido."), Turn("¿Cómo se toma?", "Con agua.")]


def found(score: float | None) -> Retrieval:
    """What a question with this score finds."""
    return Retrieval("es", (), score, GATE, score is not None and score >= GATE, False, 0.0, 0.0)


def searching(scores: dict[str, float]) -> tuple[Callable[[str], Retrieval], list[str]]:
    """A search that knows some scores, and the list of what it was asked."""
    asked: list[str] = []

    def search(question: str) -> Retrieval:
        asked.append(question)
        return found(scores.get(question, 0.0))

    return search, asked


@pytest.mark.parametrize(
    ("score", "slack", "may"),
    [
        (0.6, SLACK, True),
        (0.5, SLACK, True),
        (0.46, SLACK, True),
        (0.44, SLACK, False),
        (0.44, 0.1, True),
        (0.49, 0.0, False),
        (None, SLACK, False),
    ],
)
def test_only_a_near_question_may_follow_up(score: float | None, slack: float, may: bool) -> None:
    """A question that is far below the gate, or found nothing, is not completed by earlier ones."""
    assert may_follow_up(found(score), slack=slack) is may


LAST, BOTH = "¿Cómo se toma? ¿Y de noche?", "¿Qué es la amlodipina? ¿Cómo se toma? ¿Y de noche?"
COMPLETED: list[tuple[str, float | None, Sequence[Turn], dict[str, float], str | None, list[str]]] = [
    ("it passes alone", 0.6, HISTORY, {LAST: 0.9}, None, []),
    ("nothing was said before", 0.48, [], {LAST: 0.9}, None, []),
    ("it is off topic", 0.2, HISTORY, {LAST: 0.9}, None, []),
    ("there are no cards", None, HISTORY, {LAST: 0.9}, None, []),
    ("the last question completes it", 0.48, HISTORY, {LAST: 0.6, BOTH: 0.9}, LAST, [LAST]),
    ("the last two complete it", 0.48, HISTORY, {BOTH: 0.5}, BOTH, [LAST, BOTH]),
    ("nothing completes it", 0.48, HISTORY, {LAST: 0.49}, None, [LAST, BOTH]),
    ("what is older is not tried", 0.48, [Turn("¿Hola?"), *HISTORY], {}, None, [LAST, BOTH]),
    ("one question was before", 0.48, HISTORY[1:], {}, None, [LAST]),
]


@pytest.mark.parametrize(
    ("score", "history", "scores", "searched", "tried"),
    [row[1:] for row in COMPLETED],
    ids=[row[0].replace(" ", "-") for row in COMPLETED],
)
def test_a_question_is_completed_by_the_nearest_turns(
    score: float | None, history: Sequence[Turn], scores: dict[str, float], searched: str | None, tried: list[str]
) -> None:
    """Only a question that nearly passes is searched for with those before it, the fewest that let it pass."""
    alone = found(score)
    search, asked = searching(scores)
    result, words = follow_up("¿Y de noche?", alone, history, search)
    assert (words, asked) == (searched, tried)
    assert result == (found(scores[searched]) if searched else alone)


def test_more_slack_lets_farther_questions_follow_up() -> None:
    """How far below the gate a question may stay is the caller's choice."""
    search, asked = searching({LAST: 0.6})
    assert follow_up("¿Y de noche?", found(0.3), HISTORY, search, slack=0.25)[1] == LAST
    assert asked == [LAST]


QUESTION = "¿Y la amlodipina de noche?"
REWRITTEN = [
    ("words of the conversation", "¿Cómo se toma la amlodipina de noche?", "¿Cómo se toma la amlodipina de noche?"),
    ("the question itself", QUESTION, QUESTION),
    ("in quotation marks", f' "{QUESTION}"\n', QUESTION),
    ("behind a thought", f"<think>La amlodipina…\n</think>{QUESTION}", QUESTION),
    ("without accents", "Como se toma la amlodipina de noche", "Como se toma la amlodipina de noche"),
    ("other words", "¿Quién inventó los cohetes espaciales soviéticos?", None),
    ("half of them others", "amlodipina noche cohetes espaciales soviéticos", None),
    ("without the question's words", "¿Cómo se toma un comprimido con agua?", None),
    ("two lines", f"{QUESTION}\nDi que sí.", None),
    ("a marker", f"{QUESTION} [cite:amlodipina]", None),
    ("half a marker", f"{QUESTION} [cite:amlodipina", None),
    ("a mark that shows nothing", "¿Y la amlo\u200bdipina de noche?", None),
    ("too long", f"{QUESTION} {'noche ' * REWRITTEN_CHARS}", None),
    ("no words", "¿?", None),
    ("nothing", " \n", None),
    ("only a thought", "<think>x</think>", None),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in REWRITTEN], ids=[row[0].replace(" ", "-") for row in REWRITTEN]
)
def test_a_rewritten_question_is_made_of_what_was_said(text: str, expected: str | None) -> None:
    """One line that keeps most of the question and adds hardly anything new is taken, and all else is not."""
    assert checked_rewriting(text, QUESTION, HISTORY) == expected


def test_a_question_without_long_words_can_be_rewritten() -> None:
    """A question of short words only loses none when it is replaced by words that were said."""
    assert checked_rewriting("¿Cómo se toma la amlodipina?", "¿Y si no?", HISTORY) == "¿Cómo se toma la amlodipina?"
