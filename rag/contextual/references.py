"""What a context refers to and its card does not have: addresses, pages, sections, titles, numbers, names."""

from __future__ import annotations

import re

from rag.contextual.figures import is_among, numbers_in
from rag.contextual.words import EDGES, CardWords, fold, plain, words_of

_HOST = re.compile(r"[a-z0-9-]{3,}(?:\.[a-z0-9-]+)*\.[a-z]{2,6}(?:[/:?#].*)?")
_SCHEMES = ("www.", "mailto:", "javascript:", "data:")
_PAGE = re.compile(r"\b(?:paginas?|pags?|pages?|pp?|folio)\.?\s{0,2}(\d{1,6})(?:\s?(?:-|–|a|y|to|and)\s?(\d{1,6}))?")
_SECTION = re.compile(r"\b(?:seccion|apartado|epigrafe|capitulo|section|chapter|heading)\b")
_SECTION_BEHIND = ("section", "chapter")
_NAMED_WORDS = 2
_NUMBERING = re.compile(r"[\s:]*(?:n[.º°]?\s?)?(\d[\d.]*|[IVX]+\b)")
# no context is longer; without a bound, quotes that never end would each be looked for to the end of the text
_QUOTED = re.compile(r"“([^”]{0,500})”|«([^»]{0,500})»|\"([^\"]{0,500})\"|‘([^’]{0,500})’|(?<!\w)'([^']{0,500})'(?!\w)")
_NAME = re.compile(r"[^\W_]+(?:[’'][^\W_]+)*")
_OPENERS = frozenset('.!?…:¿¡(“«"‘')
_PROMPT_WORDS = frozenset("documento fragmento ficha texto nota seccion document chunk card text note section".split())
_ABBREVIATED_LETTERS = 3
_ENDINGS = ("es", "s", "a", "o", "as", "os")
_STEM_LETTERS = 4


def invented_url(context: str, words: CardWords) -> str:
    """An address that the card does not have."""
    for token in context.split():
        bare = token.strip(EDGES)
        lowered = bare.lower()
        is_address = "://" in lowered or lowered.startswith(_SCHEMES) or "@" in bare or _HOST.fullmatch(bare)
        if is_address and bare not in words.text:
            return bare
    return ""


def invented_page(context: str, words: CardWords) -> str:
    """A page that the card does not name."""
    said = _pages(context)
    return min(said - _pages(words.text), default="") if said else ""


def _pages(text: str) -> set[str]:
    return {page for match in _PAGE.finditer(plain(text)) for page in match.groups() if page}


def invented_section(context: str, words: CardWords) -> str:
    """A section, by number or by name, that is none of the card's headings; its title counts as one."""
    letters = _plain_letters(context)
    for match in _SECTION.finditer(letters):
        rest = context[match.end() :].lstrip(" :")
        numbered = _NUMBERING.match(rest)
        quoted = _QUOTED.match(rest)
        if numbered:
            known = _has_number(numbered.group(1), words)
        elif quoted:
            known = fold(_inner(quoted)) in words.headings
        else:
            known = not rest[:1].isupper() or _begins_with_heading(rest, words)
        if not known and not _is_named(match.group(), rest, words):
            return context[match.start() :]
    for quoted in _QUOTED.finditer(context):
        is_section = letters[quoted.end() :].lstrip().startswith(_SECTION_BEHIND)
        if is_section and fold(_inner(quoted)) not in words.headings:
            return _inner(quoted)
    return ""


def _has_number(number: str, words: CardWords) -> bool:
    return any(f"{title} ".startswith(fold(number) + " ") for title in words.headings)


def _is_named(kind: str, rest: str, words: CardWords) -> bool:
    """Whether the card itself speaks of ``section 3`` or ``section Side effects``, of another text perhaps."""
    return f" {fold(kind)} {' '.join(fold(rest).split()[:_NAMED_WORDS])} " in words.folded


def _begins_with_heading(rest: str, words: CardWords) -> bool:
    said = fold(rest) + " "
    return any(said.startswith(f"{title} ") for title in words.headings)


def _inner(quoted: re.Match[str]) -> str:
    return next(group for group in quoted.groups() if group is not None)


def invented_quote(context: str, words: CardWords) -> str:
    """Something in quotes, as a title would be, that the card does not say in these words."""
    for quoted in _QUOTED.finditer(context):
        if f" {fold(_inner(quoted))} " not in words.folded:
            return _inner(quoted) or '""'
    return ""


def invented_number(context: str, words: CardWords) -> str:
    """A number in digits that the card does not have."""
    return next((number.text for number in numbers_in(context) if not is_among(number, words.numbers)), "")


def invented_name(context: str, words: CardWords) -> str:
    """A word written like a name or an acronym that the card does not have, endings aside."""
    for match in _NAME.finditer(context):
        word = match.group()
        capitals = sum(letter.isupper() for letter in word)
        if len(word) < 2 or not capitals:
            continue
        if capitals == 1 and word[0].isupper() and _opens_sentence(context[: match.start()]):
            continue
        parts = list(words_of(word))
        if not all(_is_known(part, words) for part in parts if len(part) > 1):
            return word
    return ""


def _opens_sentence(before: str) -> bool:
    """Whether a sentence, a quote or the like begins behind this."""
    before = before.rstrip(" ")
    if not before.endswith("."):
        return not before or before[-1] in _OPENERS
    # the point of Dr. or EE. ends no sentence
    last = before.rsplit(" ", 1)[-1].strip(EDGES)
    return not (len(last) <= _ABBREVIATED_LETTERS and last[:1].isupper())


def _is_known(word: str, words: CardWords) -> bool:
    if word in words.words or word in _PROMPT_WORDS:
        return True
    # plurals of anything; genders only of words that are no names
    if any(form in words.words for form in (f"{word}s", f"{word}es", word.removesuffix("s"), word.removesuffix("es"))):
        return True
    stems = {word, *(word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))}
    return any(
        stem + ending in words.common for stem in stems if len(stem) >= _STEM_LETTERS for ending in ("", *_ENDINGS)
    )


def _plain_letters(text: str) -> str:
    """Without accents and capitals, letter for letter, so that places stay where they are."""
    return "".join((plain(letter) or " ")[0] for letter in text)
