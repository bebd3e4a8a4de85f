"""Whether a context is a plain sentence in the card's language, and how it is tidied."""

from __future__ import annotations

import re
import unicodedata

from rag.contextual.words import EDGES, CardWords
from rag.language import detect_language

_QUOTES = {'"': '"', "“": "”", "«": "»", "‘": "’", "'": "'"}
_SIGNS = frozenset("`<>[]{}|*\\‹›")
_LIST = re.compile(r"(?:[-+•–—]|\d{1,3}[.)])\s")
_SPACES = frozenset("\n\r\t")


def unquoted(context: str) -> str:
    """The context without a pair of quotes around the whole of it."""
    closing = _QUOTES.get(context[:1])
    inner = context[1:-1]
    alone = len(context) > 2 and context[-1] == closing and context[0] not in inner and context[-1] not in inner
    return inner.strip() if alone else context


def find_markup(raw: str) -> str:
    """What is no plain sentence: signs of Markdown, HTML, templates and markers, lists, invisible characters."""
    for letter in raw:
        if letter in _SIGNS:
            return letter
        if unicodedata.category(letter)[0] == "C" and letter not in _SPACES:
            return f"U+{ord(letter):04X}"
    for line in raw.split("\n"):
        start = line.strip()
        if start.startswith(("#", "~~~", "---", "===")) or _LIST.match(start):
            return start
    for mark in ("~~", "&#", "&lt;", "&gt;", "&amp;", "$$", "cite:"):
        if mark in raw:
            return mark
    # an underscore within a word is a sign of that word; at its edge it is emphasis
    bare = (word.strip(EDGES) for word in raw.split())
    return next((word for word in bare if word.strip("_") != word), "")


_LEADS = re.compile(
    r"(?:nota: |contexto: |note: |context: )?"
    r"(?:(?:el|este) (?:fragmento|documento|texto) "
    r"(?:trata (?:sobre|de|acerca de)|habla (?:sobre|de|acerca de)|se centra en|explica|describe) "
    r"|(?:the|this) (?:chunk|document|text|passage) (?:discusses|describes|explains|covers|deals with|is about) )",
    re.IGNORECASE,
)
_LEAST_LEFT = 3
"""Words that have to be left behind a lead."""


def without_lead(context: str) -> str:
    """The context without the words that say only that a text is about something."""
    lead = _LEADS.match(context)
    rest = context[lead.end() :] if lead else ""
    return rest[:1].upper() + rest[1:] if len(rest.split()) >= _LEAST_LEFT else context


_OWN_LETTERS = {"es": frozenset("áéíóúüñªº"), "en": frozenset()}
_LEAST_WORDS = 8
"""A sentence this long always has everyday words; a shorter one may have none."""


def find_foreign(context: str, words: CardWords) -> str:
    """A letter, or the words, that say that the context is not in the card's language."""
    language = words.card.language
    for letter in context.casefold():
        is_foreign = letter.isalpha() and not letter.isascii() and letter not in _OWN_LETTERS[language]
        if is_foreign and letter not in words.letters:
            return letter
    # names are the same in every language
    plain = " ".join(word for word in context.split() if not any(letter.isupper() for letter in word))
    found = {detect_language(plain, default=default) for default in ("es", "en")}
    if len(found) == 2:
        return "no everyday word" if len(plain.split()) >= _LEAST_WORDS else ""
    return "" if found == {language} else found.pop()
