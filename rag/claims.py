"""What a model writes, sentence by sentence, each with the markers that speak for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rag.markers import Marker, Token
from rag.sentences import SENTENCE_CLOSERS, SENTENCE_ENDS, behind_stops, ends_sentence

CLAIM_CHARS = 1_000
"""A sentence that is longer is cut."""
WORDS_LEAST = 4
"""In front of a marker, to be a claim without what is behind it."""
_STOPS_CHARS = 64
"""Stops and what closes a sentence behind them, at most."""
_NO_SPACE_BEFORE = frozenset(".,;:!?…)]}»”")
_RUN = re.compile(r"\s+|\S+")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer, a part of one that has a marker of its own, or a line that ends without a stop."""

    lead: str
    """The white space before it: one blank, a line break or two; nothing for the first."""
    text: str
    """Without markers; it neither begins nor ends with white space."""
    markers: tuple[tuple[int, Marker], ...]
    """Each with its place in the text, in their order."""


@dataclass(slots=True)
class _Placed:
    """A marker in the text to come."""

    offset: int
    marker: Marker
    breaks_before: int
    """Line breaks between it and the text before."""
    breaks_after: int = 0


@dataclass(slots=True)
class ClaimSplitter:
    """
    Tokens in pieces → claims; a claim comes out as soon as the next one has begun.

    A marker speaks for what stands before it in its sentence, so that nothing behind it borrows its authority; for what
    is behind it where it begins a line, and then all of that line reads this way. Only few words before a marker go
    with those behind it. A line that ends in a colon goes with the next one.
    """

    _text: str = ""
    _lead: str = ""
    _markers: list[_Placed] = field(default_factory=list)
    _scanned: int = 0
    _space: bool = False
    _breaks: int = 0
    """White space that came after the text, kept until more text comes."""
    _leading: bool = False
    _has_words: bool = False
    """Among what is scanned."""

    def feed(self, tokens: Iterable[Token]) -> list[Claim]:
        """The claims that are whole after these tokens."""
        claims: list[Claim] = []
        for token in tokens:
            if isinstance(token, Marker):
                self._markers.append(_Placed(len(self._text), token, self._breaks))
                continue
            for piece in _RUN.findall(token):
                self._take(piece)
                if not piece.isspace():
                    claims += self._whole()
        return claims

    def finish(self, *, cut_off: bool = False) -> list[Claim]:
        """The last claim; not if the text was cut off in the middle of it."""
        if not self._text and not self._markers:
            return []
        if cut_off and self._text.rstrip("".join(SENTENCE_CLOSERS))[-1:] not in SENTENCE_ENDS:
            return []
        return [self._claim(len(self._text), self._markers)]

    def _take(self, piece: str) -> None:
        if piece.isspace():
            self._space = True
            self._breaks += piece.count("\n")
            return
        behind_marker = bool(self._markers) and self._markers[-1].offset == len(self._text)
        for placed in self._markers:
            if placed.offset == len(self._text):
                placed.breaks_after = self._breaks - placed.breaks_before
        # a sentence right behind the marker of the one before
        self._space = self._space or (behind_marker and self._text[-1:] in SENTENCE_ENDS and piece[0].isalnum())
        if self._space and (self._text or self._lead):
            # a stop behind a marker goes where it would stand without the marker
            if not (behind_marker and not self._breaks and piece[0] in _NO_SPACE_BEFORE):
                self._text += "\n" * min(self._breaks, 2) or " "
        elif self._space and not self._text:
            self._lead = "\n" * min(self._breaks, 2) or " "
        self._space, self._breaks = False, 0
        self._text += piece

    def _whole(self) -> Iterator[Claim]:
        while (boundary := self._boundary()) is not None:
            stop, following = boundary
            leads = self._leads()
            breaks = self._text.count("\n", stop, following)
            # asked once: a sentence may have thousands of markers
            own: list[_Placed] = []
            next_ones: list[_Placed] = []
            for placed in self._markers:
                (own if _is_own(placed, stop, following, leads=leads) else next_ones).append(placed)
            claim = self._claim(stop, own)
            self._leading = bool(next_ones) and next_ones[0].offset <= following if breaks else leads
            self._lead = self._text[stop:following]
            self._text = self._text[following:]
            self._markers = [
                _Placed(max(0, placed.offset - following), placed.marker, placed.breaks_before, placed.breaks_after)
                for placed in next_ones
            ]
            self._scanned, self._has_words = 0, False
            yield claim

    def _leads(self) -> bool:
        """Whether the line began with a marker."""
        return self._leading or any(
            not any(map(str.isalpha, self._text[: placed.offset])) for placed in self._markers if placed.offset < 8
        )

    def _boundary(self) -> tuple[int, int] | None:
        """Where the first claim of the text ends, and where the next begins; None while that is not certain."""
        text, end = self._text, len(self._text)
        placed = {each.offset for each in self._markers}
        while self._scanned < end:
            at = self._scanned
            if at >= CLAIM_CHARS:
                cut = text.rfind(" ", CLAIM_CHARS // 2, CLAIM_CHARS)
                return (cut, cut + 1) if cut > 0 else (CLAIM_CHARS, CLAIM_CHARS)
            if at in placed and (text[at - 1 : at] in SENTENCE_ENDS or _has_words(text[:at])):
                stop = at
                while stop < min(end, at + _STOPS_CHARS) and text[stop] in _NO_SPACE_BEFORE:
                    stop += 1
                if stop >= end:
                    return None
                if text[stop].isspace() and self._has_words:
                    return stop, _next_word(text, stop)
            sign = text[at]
            if sign == "\n" and not text[max(0, at - 2) : at].rstrip("\n").endswith(":"):
                return at, at + (2 if text[at + 1] == "\n" else 1)
            if sign in SENTENCE_ENDS and not _numbers_a_line(text, at):
                stop = behind_stops(text, at, min(end, at + _STOPS_CHARS))
                if stop >= end:
                    return None
                if self._has_words and _is_glued(text, at, stop):
                    return stop, stop
                if self._has_words and ends_sentence(text, 0, at, stop, end):
                    return stop, _next_word(text, stop)
                self._scanned = stop
                continue
            self._has_words = self._has_words or sign.isalpha()
            self._scanned += 1
        return None

    def _claim(self, stop: int, placed: Iterable[_Placed]) -> Claim:
        return Claim(self._lead, self._text[:stop], tuple((min(each.offset, stop), each.marker) for each in placed))


def _is_own(placed: _Placed, stop: int, following: int, *, leads: bool) -> bool:
    """Whether a marker is of the claim that ends at ``stop``; ``leads`` says that its line began with one."""
    if placed.offset != stop or following == stop:
        return placed.offset < stop
    begins_line = placed.breaks_before > 0 and placed.breaks_after == 0
    begins_like_its_line = leads and placed.breaks_before == placed.breaks_after == 0
    return not (begins_line or begins_like_its_line)


def _is_glued(text: str, at: int, stop: int) -> bool:
    """Whether a sentence begins right behind a stop, with no blank between."""
    return stop == at + 1 and text[at - 1].islower() and text[stop].isupper()


def _has_words(text: str) -> bool:
    return len(text.split(maxsplit=WORDS_LEAST)) >= WORDS_LEAST


def _next_word(text: str, position: int) -> int:
    """The position of the first sign that is no white space."""
    while text[position].isspace():
        position += 1
    return position


def _numbers_a_line(text: str, at: int) -> bool:
    """Whether the stop at ``at`` stands behind the number that begins a list's item."""
    return at < CLAIM_CHARS and text[text.rfind("\n", 0, at) + 1 : at].strip().isdigit()
