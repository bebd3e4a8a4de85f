"""The words that two texts have in common."""

from __future__ import annotations

import sys
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from rag.terms import LEAST_LETTERS, STEM_LETTERS, coverage, terms

EVERY_LETTER = " ".join(f"aaaa{chr(point)}bbbb" for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000)


def by_the_letter(text: str) -> frozenset[str]:
    """What terms are, letter by letter."""
    decomposed = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    words = "".join(letter if letter.isalnum() else " " for letter in plain).split()
    return frozenset(word[:STEM_LETTERS] for word in words if len(word) >= LEAST_LETTERS or word.isdigit())


@given(st.text() | st.text(alphabet="aáñÇ_ -'0½ß\u0301\u0327\u0483\u05b0ﬁⅣµ", max_size=40))
@example("¿Puede el niño tomar 2,5 ml? ACCIÓN acción Ação")
def test_terms_are_what_they_are_letter_by_letter(text: str) -> None:
    """The quick way gives the same as the plain one."""
    assert terms(text) == by_the_letter(text)


def test_no_letter_is_an_exception() -> None:
    """Every code point there is, between letters and by itself."""
    for part in EVERY_LETTER.split(" "):
        assert terms(part) == by_the_letter(part)


def test_coverage_is_a_share() -> None:
    """Accents, capitals and endings do not count; a text that is asked for nothing covers nothing."""
    assert coverage(terms("pastillas rápidas 5"), "La PASTILLA rapida") == 2 / 3
    assert coverage(terms("pastillas rápidas 5"), "El 5 de mayo") == 1 / 3
    assert coverage(frozenset(), "lo que sea") == 0
