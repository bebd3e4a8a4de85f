"""An answer as one text: citations are numbers in it, and behind it stand the cards that they mean."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from rag.answering import CitationShown, TextShown, shown_of
from rag.answering.composing import unconfirmed
from rag.answering.events import Shown
from rag.markers import without_markers
from rag.records import Answer, Citation, CitationSegment, TextSegment

_SOURCES = {"es": "Fuentes:", "en": "Sources:"}
_NEAREST = {"es": "Fichas más cercanas:", "en": "Nearest cards:"}
_BROKEN_OFF = {
    "es": "La respuesta se interrumpió y no vale. En su lugar, esto es lo que dicen las fichas:",
    "en": "The answer broke off and does not count. In its place, this is what the cards say:",
}
_NO_SPACE_BEFORE = tuple(".,;:!?…)]}»”")

_OPENERS, _CLOSERS = "[［【〔〖⟦❲⁅", "]］】〕〗⟧❳⁆"
_BRACKETED = re.compile(
    rf"\\?[{re.escape(_OPENERS)}]([^{re.escape(_OPENERS + _CLOSERS)}]*)([{re.escape(_CLOSERS)}]|\Z)"
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[lr](?:brack|sqb));")
_LIST = re.compile(rf"\n\n(?:{'|'.join(_SOURCES.values())})(?:\n\[\d{{1,4}}\] [^\n]*)+")
_NUMBER = re.compile(r" ?\[\d{1,4}\]")
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


class Wording:
    """
    What is shown of an answer goes in, piece by piece; its text comes out, in pieces that are only ever added to.

    No bracketed number comes out of it that is not of a card: others are put into parentheses.
    """

    def __init__(self) -> None:
        self._shown: list[TextSegment | CitationSegment] = []
        self._citations: list[Citation] = []
        self._unconfirmed: str | None = None
        """The language of a sentence that no card says, until that has been said."""
        self._behind_citation = False

    def show(self, shown: Shown) -> str:
        """The text of the next piece; nothing for a citation that is spoken for already."""
        self._shown.append(shown.segment)
        if isinstance(shown, TextShown):
            text = plain_text(shown.segment.text)
            if self._behind_citation and text and not text[0].isspace() and not text.startswith(_NO_SPACE_BEFORE):
                text = f" {text}"
            self._unconfirmed = None if shown.segment.supported else shown.segment.language
            self._behind_citation = False
        else:
            text = self._cite(shown)
            self._behind_citation = True
        return text

    def finish(self, answer: Answer) -> str:
        """
        The rest: the cards that were cited, or in a refusal the nearest ones.

        All of the answer, if it is another one than what was shown; then what was shown is said not to count.
        """
        if tuple(self._shown) == answer.segments:
            return _refused(answer) if answer.refusal else _source_list(self._citations, answer.language)
        before = f"{_source_list(self._citations, answer.language)}\n\n{_BROKEN_OFF[answer.language]}\n\n"
        return (before if self._shown else "") + content_of(answer)

    def _cite(self, shown: CitationShown) -> str:
        if shown.citation.verdict == "valid":
            self._citations.append(shown.citation)
            return f" [{shown.citation.number}]"
        if self._unconfirmed is None:
            return ""
        # in the language of the sentence that it is about: that of the question comes with the whole answer alone
        note, self._unconfirmed = unconfirmed(self._unconfirmed), None
        return f" {note}"


def content_of(answer: Answer) -> str:
    """All the text of a whole answer."""
    wording = Wording()
    pieces = [wording.show(shown) for shown in shown_of(answer)]
    return "".join([*pieces, wording.finish(answer)])


def plain_text(text: str) -> str:
    """Text from elsewhere in which nothing can be taken for a number or a marker of ours."""
    return _BRACKETED.sub(_in_parentheses, _ENTITY.sub(_bracket_or_digit, without_markers(text)))


def without_numbers(text: str) -> str:
    """A text of ours without its numbers and cards: what was said, for whoever reads the conversation."""
    return _NUMBER.sub("", _LIST.sub("", text)).strip()


def _bracket_or_digit(entity: re.Match[str]) -> str:
    """What a client that shows Markdown would make of it, if that matters for numbers."""
    sign = html.unescape(entity.group())
    return sign if sign.isnumeric() or sign in _OPENERS + _CLOSERS else entity.group()


def _in_parentheses(bracketed: re.Match[str]) -> str:
    """A number with whatever signs around it; a bracket left open may get one from the piece that comes behind."""
    inside, closing = bracketed.groups()
    is_open = not closing
    if any(map(str.isalpha, inside)) or not (is_open or any(map(str.isnumeric, inside))):
        return bracketed.group()
    return f"({inside}" if is_open else f"({inside.rstrip(chr(92))})"


def _refused(answer: Answer) -> str:
    nearest = answer.refusal.nearest if answer.refusal else ()
    titles = [f"- {_line(link.title)}" for link in nearest]
    return "\n".join([answer.answer, *(["", _NEAREST[answer.language], *titles] if titles else [])])


def _source_list(citations: Iterable[Citation], language: str) -> str:
    """A line for each card, in the order of their numbers."""
    cited = {citation.number: citation for citation in citations}
    if not cited:
        return ""
    lines = [f"[{number}] {_source_line(citation)}" for number, citation in sorted(cited.items())]
    return "\n".join(["\n", _SOURCES[language], *lines])


def _source_line(citation: Citation) -> str:
    address = citation.source if citation.source and _ADDRESS.fullmatch(citation.source) else None
    return " — ".join(_line(part) for part in (citation.title, address, citation.card_id) if part)


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())
