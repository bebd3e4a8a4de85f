"""Words in common between two texts, whatever their accents, capitals and endings."""

from __future__ import annotations

import re
import unicodedata

LEAST_LETTERS = 4
"""Shorter words are mostly articles and prepositions; numbers count at any length."""
STEM_LETTERS = 5
"""What is compared of a word: enough to tell words apart, little enough to leave endings out."""

_MARKS = re.compile("[\u0300-\u034e\u0350-\u036f]+")
_FAR = re.compile("[^\0-\u0482]")
"""Beyond what Latin, Greek and Cyrillic are written with: there are further marks."""
_WORDS = re.compile(r"[^\W_]+")


def terms(text: str) -> frozenset[str]:
    """The beginnings of the longer words of a text, and its numbers."""
    words = _WORDS.findall(_without_marks(text.lower()))
    return frozenset(word[:STEM_LETTERS] for word in words if len(word) >= LEAST_LETTERS or word.isdigit())


def _without_marks(text: str) -> str:
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    if _FAR.search(decomposed):
        return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return _MARKS.sub("", decomposed)


def coverage(wanted: frozenset[str], text: str) -> float:
    """The share of the wanted terms that a text has, from 0 to 1; 0 where nothing is wanted."""
    return len(wanted & terms(text)) / len(wanted) if wanted else 0.0
