"""Words in common between two texts, whatever their accents, capitals and endings."""

from __future__ import annotations

import unicodedata

LEAST_LETTERS = 4
"""Shorter words are mostly articles and prepositions; numbers count at any length."""
STEM_LETTERS = 5
"""What is compared of a word: enough to tell words apart, little enough to leave endings out."""


def terms(text: str) -> frozenset[str]:
    """The beginnings of the longer words of a text, and its numbers."""
    decomposed = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    words = "".join(letter if letter.isalnum() else " " for letter in plain).split()
    return frozenset(word[:STEM_LETTERS] for word in words if len(word) >= LEAST_LETTERS or word.isdigit())


def coverage(wanted: frozenset[str], text: str) -> float:
    """The share of the wanted terms that a text has, from 0 to 1; 0 where nothing is wanted."""
    return len(wanted & terms(text)) / len(wanted) if wanted else 0.0
