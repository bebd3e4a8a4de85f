"""Card to chunks: a recursive separator splitter with greedy repacking and a word-aligned overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag.errors import SettingsInvalid
from rag.markdown import Kind, Line, scan_lines
from rag.records import Card, Chunk, Span

CHUNKER_VERSION = 2
"""Raise it when the same card would give other chunks."""
MINIMUM_CHARS = 20

# paragraph break, line break, sentence end, word; behind the last comes a hard cut by character
_BREAKS = tuple(map(re.compile, (r"\n[ \t]*\n\s*", r"\n", r"[.!?…][\"'»”)\]]*\s+", r"\s+")))


def check_chunking(*, chunk_chars: int, overlap_chars: int) -> None:
    """
    Check the splitter's settings.

    Raises:
        SettingsInvalid: a chunk under 20 characters, a negative overlap, or one over half a chunk.
    """
    if chunk_chars < MINIMUM_CHARS:
        raise SettingsInvalid(f"chunk_chars is {chunk_chars}; a chunk needs at least {MINIMUM_CHARS} characters.")
    if not 0 <= overlap_chars <= chunk_chars // 2:
        raise SettingsInvalid(
            f"overlap_chars is {overlap_chars}; with chunk_chars {chunk_chars} it goes from 0 to {chunk_chars // 2}."
        )


def split_card(card: Card, *, chunk_chars: int, overlap_chars: int) -> list[Chunk]:
    """
    Cut a card's text into chunks in reading order.

    Every chunk is a span of at most ``chunk_chars``; together they hold every word. A chunk begins at a word, unless
    that word alone is longer than a chunk; table rows that fit are whole. Blank text gives no chunk.

    Raises:
        SettingsInvalid: as for ``check_chunking``.
    """
    check_chunking(chunk_chars=chunk_chars, overlap_chars=overlap_chars)
    splitter = _Splitter(card.text, chunk_chars, overlap_chars)
    return [
        Chunk(card.card_id, index, span.start, span.end, card.text[span.start : span.end])
        for index, span in enumerate(splitter.spans())
    ]


class _Splitter:
    def __init__(self, text: str, chunk_chars: int, overlap_chars: int) -> None:
        self.text = text
        self.limit = chunk_chars
        self.overlap = overlap_chars
        # what is left for new text beside the overlap
        self.budget = chunk_chars - overlap_chars
        lines = scan_lines(text)
        self.headings = _heading_spans(text, lines)
        self.rows: list[Line] = [line for line in lines if line.kind in (Kind.TABLE_ROW, Kind.TABLE_HEADER)]
        self.row_starts = {line.content for line in self.rows}

    def spans(self) -> list[Span]:
        packed = self._pack(self._units())
        return [self._with_overlap(span, packed[number - 1] if number else None) for number, span in enumerate(packed)]

    def _units(self) -> Iterator[Span]:
        """What is not to be cut: atoms, each with the headings right above it that fit beside it."""
        waiting: list[Span] = []
        for heading, atom in self._atoms_of_sections():
            if heading:
                waiting.append(atom)
                continue
            while waiting and atom.end - waiting[0].start > self.limit:
                yield waiting.pop(0)
            yield Span(waiting[0].start if waiting else atom.start, atom.end)
            waiting = []
        yield from waiting

    def _atoms_of_sections(self) -> Iterator[tuple[bool, Span]]:
        """Atoms in reading order, headings that fit apart (True) from the text around them."""
        position = 0
        for heading in [*self.headings, Span(len(self.text), len(self.text))]:
            yield from (
                (False, atom) for atom in self._atoms(Span(position, heading.start), 0) if atom.end > atom.start
            )
            if heading.end - heading.start <= self.limit:
                yield from [(True, heading)] if heading.end > heading.start else []
            else:
                yield from ((False, atom) for atom in self._atoms(heading, 0))
            position = heading.end

    def _atoms(self, span: Span, level: int) -> Iterator[Span]:
        """Pieces within the budget, trimmed, cut at the strongest separator that does it."""
        span = self._trim(span)
        size = span.end - span.start
        # a word, or a table row, is cut only if no chunk can hold it
        is_row = span.start in self.row_starts and "\n" not in self.text[span.start : span.end]
        whole = is_row or level == len(_BREAKS)
        if size <= self.budget or (whole and size <= self.limit):
            yield span
        elif level == len(_BREAKS):
            for start in range(span.start, span.end, self.budget):
                yield Span(start, min(start + self.budget, span.end))
        else:
            start = span.start
            for separator in _BREAKS[level].finditer(self.text, span.start, span.end):
                yield from self._atoms(Span(start, separator.end()), level + 1)
                start = separator.end()
            yield from self._atoms(Span(start, span.end), level + 1)

    def _pack(self, units: Iterator[Span]) -> list[Span]:
        """Join neighbours as long as they fit."""
        packed: list[Span] = []
        for unit in units:
            room = self.budget if len(packed) > 1 else self.limit
            if packed and unit.end - packed[-1].start <= room:
                packed[-1] = Span(packed[-1].start, unit.end)
            else:
                packed.append(unit)
        return packed

    def _with_overlap(self, span: Span, before: Span | None) -> Span:
        """Begin earlier, at a word, by at most the overlap and within the limit; never inside a table row."""
        if before is None or span.start in self.row_starts:
            return span
        earliest = max(span.start - self.overlap, span.end - self.limit, before.start + 1)
        start = next((at for at in range(earliest, span.start) if self._begins_word(at)), span.start)
        row = next((row for row in self.rows if row.content < start < row.end), None)
        return self._trim(Span(min(row.end, span.start) if row else start, span.end))

    def _begins_word(self, at: int) -> bool:
        return self.text[at - 1].isspace() and not self.text[at].isspace()

    def _trim(self, span: Span) -> Span:
        piece = self.text[span.start : span.end]
        start = span.start + len(piece) - len(piece.lstrip())
        return Span(start, max(start, span.start + len(piece.rstrip())))


def _heading_spans(text: str, lines: list[Line]) -> list[Span]:
    """The headings, each with the line that underlines it if there is one, trimmed."""
    spans: list[Span] = []
    for number, line in enumerate(lines):
        if line.kind is not Kind.HEADING:
            continue
        below = lines[number + 1] if number + 1 < len(lines) else line
        is_underlined = below.kind is Kind.RULE and not text[line.start : line.end].lstrip(" >").startswith("#")
        end = below.end if is_underlined else line.end
        start = line.start + len(text[line.start : end]) - len(text[line.start : end].lstrip())
        spans.append(Span(start, start + len(text[start:end].rstrip())))
    return spans
