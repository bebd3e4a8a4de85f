"""
The answer line: what a question found → sentences with checked citations.

``rag.answering.generated`` is not imported here: its HTTP client is for those only who have a language model.
"""

from rag.answering.asking import Search, answer_question
from rag.answering.composing import NEAREST_CARDS, Asked, retrieved_cards
from rag.answering.events import Checked, CitationShown, Event, SourcesFound, TextShown, shown_of
from rag.answering.extractive import ANSWER_CHARS
from rag.answering.follow_up import follow_up, may_follow_up

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
    "answer_question",
    "follow_up",
    "may_follow_up",
    "retrieved_cards",
    "shown_of",
]
