"""The answer line: what a question found → sentences with checked citations."""

from rag.answering.asking import Search, answer_question
from rag.answering.composing import NEAREST_CARDS, Asked, retrieved_cards
from rag.answering.events import Checked, CitationShown, Event, SourcesFound, TextShown, shown_of
from rag.answering.extractive import ANSWER_CHARS
from rag.answering.follow_up import follow_up, may_follow_up
from rag.answering.generated import Writer

__all__ = [
    "ANSWER_CHARS",
    "NEAREST_CARDS",
    "Asked",
    "Checked",
    "CitationShown",
    "Event",
    "Search",
    "SourcesFound",
    "TextShown",
    "Writer",
    "answer_question",
    "follow_up",
    "may_follow_up",
    "retrieved_cards",
    "shown_of",
]
