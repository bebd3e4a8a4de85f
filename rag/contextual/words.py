"""The words of a card and of a context, folded so that they can be compared."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from rag.contextual.figures import values_in
from rag.markdown import Kind, heading_title, scan_lines
from rag.records import Card
from rag.terms import terms

EDGES = ".,;:!?()«»“”\"'…"
"""What may stand right before or behind a word."""


class CardWords:
    """A card as contexts are checked against it: what it says, folded once for all its chunks."""

    def __init__(self, card: Card) -> None:
        self.card = card
        lines = scan_lines(card.text)
        self.text = "\n".join((card.title, *card.topics, card.text))
        self.folded = f" {fold(self.text)} "
        """Words with a space on either side of each."""
        self.letters = frozenset(unicodedata.normalize("NFC", self.text).casefold())
        self.words = frozenset(words_of(self.text))
        """Folded, of every word."""
        self.common = frozenset(fold(word) for word in raw_words_of(self.text) if word[:1].islower())
        """Folded, of words that the card writes in small letters somewhere: no names."""
        self.numbers = values_in(self.text)
        self.terms = terms(self.text)
        headings = [fold(heading_title(line, card.text)) for line in lines if line.kind is Kind.HEADING]
        bare = [heading.lstrip("0123456789 ") for heading in headings]
        self.headings = frozenset({*headings, *bare, fold(card.title)} - {""})
        """Folded, of the card's headings, with and without the number before them, and of its title."""


def fold(text: str) -> str:
    """Words and numbers only, without accents and capitals, one space between."""
    return " ".join(words_of(text))


def words_of(text: str) -> Iterator[str]:
    """Words and numbers in order, without accents and capitals."""
    return (plain(word) for word in raw_words_of(text))


def plain(word: str) -> str:
    """The same without accents and capitals."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def raw_words_of(text: str) -> list[str]:
    """Words and numbers in order, as they are written."""
    return "".join(letter if letter.isalnum() else " " for letter in unicodedata.normalize("NFC", text)).split()
