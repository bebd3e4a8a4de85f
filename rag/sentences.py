"""Card to sentences: the spans that an answer may quote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag.markdown import Kind, Line, scan_lines, table_cells
from rag.records import Span

SENTENCES_VERSION = 3
"""Raise it when the same card would give other sentences."""

SENTENCE_ENDS, SENTENCE_CLOSERS, _OPENERS = frozenset(".!?…"), frozenset("\"'»”’)]*_"), frozenset("¿¡\"'«“‘([*_-–—")
# a full stop behind these ends no sentence
_ABBREVIATIONS = frozenset(
    """
        p ej sr sra srta dr dra d dña art arts núm num pág págs aprox máx mín máx. ud uds vs cf fig tel av
        avda mr mrs ms prof st e.g i.e eg ie approx no vol inc ltd ee uu ee.uu a.m p.m
        """.split()
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A quotable span, and the text by which it is found."""

    span: Span
    text: str
    """The span's text; for a table row each cell with its column's name."""


def split_sentences(text: str) -> list[Sentence]:
    """
    The sentences of a card's text, in reading order.

    Headings, code, rules and table headers are no sentences, and neither is a line that only announces a list (it ends
    in a colon). A list item's marker is outside its span; every row of a table is one sentence.
    """
    sentences: list[Sentence] = []
    paragraph: list[Line] = []
    columns: list[str] = []
    for line in scan_lines(text):
        if line.kind is Kind.TEXT and not (paragraph and paragraph[-1].end < line.start - 1):
            paragraph.append(line)
            continue
        sentences += _of_paragraph(text, paragraph)
        paragraph = [line] if line.kind is Kind.ITEM else []
        if line.kind is Kind.TABLE_HEADER:
            columns = table_cells(text[line.start : line.end])
        elif line.kind is Kind.TABLE_ROW and any(map(str.isalnum, text[line.start : line.end])):
            sentences.append(_of_row(text, line, columns))
    sentences += _of_paragraph(text, paragraph)
    return sentences


def _of_row(text: str, line: Line, columns: list[str]) -> Sentence:
    row = text[line.content : line.end].rstrip()
    cells = table_cells(row)
    named = [f"{columns[number]}: {cell}" if number < len(columns) else cell for number, cell in enumerate(cells)]
    return Sentence(Span(line.content, line.content + len(row)), "; ".join(named))


def _of_paragraph(text: str, paragraph: list[Line]) -> Iterator[Sentence]:
    if not paragraph:
        return
    start, end = paragraph[0].content, paragraph[-1].end
    while start < end:
        while start < end and text[start].isspace():
            start += 1
        stop = _sentence_end(text, start, end)
        piece = text[start:stop].rstrip()
        if any(letter.isalnum() for letter in piece) and not piece.endswith(":"):
            yield Sentence(Span(start, start + len(piece)), " ".join(piece.split()))
        start = stop


def _sentence_end(text: str, start: int, end: int) -> int:
    """The position behind the sentence that begins at ``start``."""
    position = start
    while position < end:
        if text[position] not in SENTENCE_ENDS:
            position += 1
            continue
        stop = behind_stops(text, position, end)
        if stop >= end or ends_sentence(text, start, position, stop, end):
            return stop
        position = stop
    return end


def behind_stops(text: str, position: int, end: int) -> int:
    """The position behind the stop at ``position``, more stops and what closes a sentence."""
    stop = position + 1
    while stop < end and (text[stop] in SENTENCE_ENDS or text[stop] in SENTENCE_CLOSERS):
        stop += 1
    return stop


def ends_sentence(text: str, start: int, position: int, stop: int, end: int) -> bool:
    """Whether a sentence from ``start`` ends with the stop at ``position``, with text from ``stop`` up to ``end``."""
    return text[stop].isspace() and _begins_sentence(text, stop, end) and not _abbreviates(text, start, position)


def _begins_sentence(text: str, position: int, end: int) -> bool:
    while position < end and text[position].isspace():
        position += 1
    return position >= end or not text[position].islower()


def _abbreviates(text: str, start: int, stop: int) -> bool:
    """Whether the full stop at ``stop`` belongs to an abbreviation or an initial."""
    if text[stop] != ".":
        return False
    first = stop
    while first > start and not text[first - 1].isspace() and stop - first < 12:
        first -= 1
    word = text[first:stop].lstrip("".join(_OPENERS)).lower()
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and text[stop - 1].isupper())
