"""Card to chunks: a recursive separator splitter with greedy repacking and a word-aligned overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag.errors import SettingsInvalid
from rag.markdown import Kind, Line, scan_lines
from rag.records import Card, Chunk, Span

CHUNKER_VERSION = 1
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
        self.headings = {line.start for line in lines if line.kind is Kind.HEADING}
        self.rows: list[Line] = [line for line in lines if line.kind in (Kind.TABLE_ROW, Kind.TABLE_HEADER)]
        self.row_starts = {line.start for line in self.rows}

    def spans(self) -> list[Span]:
        packed = self._pack([atom for atom in self._atoms(Span(0, len(self.text)), 0) if atom.end > atom.start])
        return [self._with_overlap(span, packed[number - 1] if number else None) for number, span in enumerate(packed)]

    def _atoms(self, span: Span, level: int) -> Iterator[Span]:
        """Pieces within the budget, trimmed, cut at the strongest separator that does it."""
        span = self._trim(span)
        size = span.end - span.start
        # a word, or a table row, is cut only if no chunk can hold it
        whole = level == len(_BREAKS) or (
            span.start in self.row_starts and "\n" not in self.text[span.start : span.end]
        )
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

    def _pack(self, atoms: list[Span]) -> list[Span]:
        """Join neighbours as long as they fit; a heading moves on to what it heads."""
        packed: list[Span] = []
        group: list[Span] = []
        for atom in atoms:
            room = self.budget if packed else self.limit
            if group and atom.end - group[0].start > room:
                keep = len(group)
                while keep > 1 and group[keep - 1].start in self.headings:
                    keep -= 1
                if keep < len(group) and atom.end - group[keep].start > self.limit:
                    keep = len(group)
                packed.append(Span(group[0].start, group[keep - 1].end))
                group = group[keep:]
            group.append(atom)
        if group:
            packed.append(Span(group[0].start, group[-1].end))
        return packed

    def _with_overlap(self, span: Span, before: Span | None) -> Span:
        """Begin earlier, at a word, by at most the overlap and within the limit; never inside a table row."""
        if before is None or span.start in self.row_starts:
            return span
        earliest = max(span.start - self.overlap, span.end - self.limit, before.start + 1)
        start = next((at for at in range(earliest, span.start) if self._begins_word(at)), span.start)
        row = next((row for row in self.rows if row.start < start < row.end), None)
        return self._trim(Span(min(row.end, span.start) if row else start, span.end))

    def _begins_word(self, at: int) -> bool:
        return self.text[at - 1].isspace() and not self.text[at].isspace()

    def _trim(self, span: Span) -> Span:
        piece = self.text[span.start : span.end]
        start = span.start + len(piece) - len(piece.lstrip())
        return Span(start, max(start, span.start + len(piece.rstrip())))
