"""Citation markers in what a model writes: a linear scanner that takes its text in any pieces.

``[cite:card-id]`` is what models are asked for. What they write, or are talked into writing, varies: several ids, other
brackets, capitals, letters that look alike, a link behind it, an end that never comes. All of it is taken out of the
text; an id is credited only where a whole marker names it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

MARKER_CHARS = 700
"""A marker that is longer is none: it is taken out and credits nobody."""
TARGET_CHARS = 2_000
_INTRODUCER_CHARS = 64
"""From an opening bracket to the colon, at most."""
_WRAP_CHARS = 3

_OPENERS, _CLOSERS = "[({【［〔〖（｛⟦❲⁅⦋", "])}】］〕〗）｝⟧❳⁆⦌"
_WRAPS = dict(zip(_OPENERS, _CLOSERS, strict=True)) | {sign: sign for sign in "`*_\"'"}


def _invisible() -> Iterator[int]:
    for code in (*range(0x20), *range(0x7F, 0x3400), *range(0xF900, 0x10000), *range(0x1D000, 0x1E000)):
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs") and chr(code) not in "\n\t":
            yield code
    # fillers and joiners that show nothing, variation selectors, tags
    yield from (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)
    yield from (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000))


# what shows nothing can hide a marker, or text from the reader
_SHOWN: dict[int, str | None] = dict.fromkeys(_invisible()) | dict.fromkeys((0x0B, 0x0C, 0x85, 0x2028, 0x2029), "\n")

_LOOK_ALIKE = {"c": "сϲᴄςⲥ", "i": "іιɩıɪӏⅰ!|1l", "t": "тτᴛ", "e": "еҽɛεє℮3", ":": "։׃᛬꞉∶"}


def _classes() -> Iterator[str]:
    """For each letter of a marker's name, and its colon, a class of what can be read as it."""
    ranges = (range(0x20, 0x2E80), range(0xA640, 0xAB70), range(0xFB00, 0x10000), range(0x1D400, 0x1D800))
    folded = [(chr(code), unicodedata.normalize("NFKD", chr(code))[0].casefold()) for code in chain(*ranges)]
    for letter, alike in _LOOK_ALIKE.items():
        meant = {letter, *alike}
        yield "[" + re.escape("".join(sign for sign, plain in folded if plain in meant or sign in meant)) + "]"


_MARKS = "[\\s\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20ff]{0,3}"
_CLASSES = dict(zip(_LOOK_ALIKE, _classes(), strict=True))
_CORE = re.compile(_MARKS.join(_CLASSES[letter] for letter in "cite:"))
_MORE_COLONS = re.compile(f"(?:{_MARKS}{_CLASSES[':']})*")
# the same for a text of ASCII signs alone, where it is ten times as fast
_PLAIN_CORE = re.compile(r"\s{0,3}".join(["[cC]", "[iI!1lL|]", "[tT]", "[eE3]", ":"]))
_INSIDE = re.compile(r"[^\w\s.,;:|/&+`'\"#\-‐-―\u0300-\u036f]")
_BETWEEN_IDS = re.compile(r"[\s,;|/&+]+")
_FIRST_ID = re.compile(r"\s*[\w.\-‐-―]*")
_TARGET_END = re.compile(r"[\s)]|[" + re.escape(_OPENERS) + "]")
_DASHES = dict.fromkeys(range(0x2010, 0x2016), "-")
CARD_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker as it stood in a text."""

    card_ids: tuple[str, ...]
    """In their order, each once; nothing is known of these cards yet."""
    malformed: bool = False
    """Something in it was no id, or it had no end."""


Token = str | Marker


def visible_text(text: str) -> str:
    """The text without what shows nothing: controls, zero-width and direction marks, tags, fillers."""
    return text.translate(_SHOWN)


class MarkerScanner:
    """
    Text in pieces → text without markers, and the markers, in their order.

    However a text is cut into pieces, what comes out of all of them is the same, and no piece of a marker is ever
    part of the text. Time is linear in the length.
    """

    def __init__(self) -> None:
        self._pending = ""

    def feed(self, text: str) -> list[Token]:
        """What is certain after this piece."""
        self._pending += visible_text(text)
        return list(self._scan(final=False))

    def finish(self) -> list[Token]:
        """The rest, now that no more text comes."""
        return list(self._scan(final=True))

    def _scan(self, *, final: bool) -> Iterator[Token]:
        text, position = self._pending, 0
        while True:
            found = _introducer(text, position)
            if found is None:
                break
            start, inside = found
            if start > position:
                yield text[position:start]
            read = _read_marker(text, start, inside, final=final)
            if read is None:
                self._pending = text[start:]
                return
            marker, position = read
            yield marker
        kept = len(text) if final else _undecided(text, position)
        if kept > position:
            yield text[position:kept]
        self._pending = text[kept:]


def scan_markers(text: str) -> list[Token]:
    """The tokens of a whole text."""
    scanner = MarkerScanner()
    return scanner.feed(text) + scanner.finish()


def without_markers(text: str) -> str:
    """Text from elsewhere in which nothing can be taken for a marker of ours, spelled with HTML's entities or not."""
    spelled_out = visible_text(html.unescape(text) if "&" in text else text)
    if spelled_out != text and _introducer(spelled_out, 0):
        # an entity that spelled the beginning of another one does not do so now
        text = spelled_out.replace("&", "& ")
    pieces, position = [], 0
    while found := _introducer(text, position):
        start, inside = found
        # without its colon, which is the last sign of every introducer
        pieces += [text[position:start], "(", text[start : inside - 1].strip("".join(_WRAPS)).strip(), " "]
        more = _MORE_COLONS.match(text, inside)
        position = more.end() if more else inside
    return "".join((*pieces, text[position:]))


def _introducer(text: str, position: int) -> tuple[int, int] | None:
    """Where the next marker starts, its wraps included, and where its ids do."""
    pattern = _PLAIN_CORE if text.isascii() else _CORE
    for core in pattern.finditer(text, position):
        bracket = core.start() - 1
        # "[ cite:", "[/cite:"
        while bracket >= position and core.start() - bracket < 8 and not _ends_search(text[bracket]):
            bracket -= 1
        if bracket >= position and text[bracket] in _OPENERS:
            start = bracket
            while start > position and bracket - start < _WRAP_CHARS and text[start - 1] in _WRAPS:
                start -= 1
            return start, core.end()
    return None


def _ends_search(sign: str) -> bool:
    return sign.isalnum() or sign in _OPENERS or sign in _CLOSERS


def _undecided(text: str, position: int) -> int:
    """Where what may yet become the start of a marker begins; the text's length if nothing may."""
    first = max(position, len(text) - _INTRODUCER_CHARS)
    opened = next((at for at in range(first, len(text)) if text[at] in _WRAPS), len(text))
    while opened > position and len(text) - opened < _INTRODUCER_CHARS + _WRAP_CHARS and text[opened - 1] in _WRAPS:
        opened -= 1
    return opened


def _read_marker(text: str, start: int, inside: int, *, final: bool) -> tuple[Marker, int] | None:
    """The marker that starts at ``start``, and where the text goes on; None if that is not certain yet."""
    stop = _INSIDE.search(text, inside, inside + MARKER_CHARS)
    if stop is None or stop.group() not in _CLOSERS or "\n\n" in text[inside : stop.start()]:
        if stop is None and not final and len(text) < inside + MARKER_CHARS:
            return None
        first_id = _FIRST_ID.match(text, inside, inside + MARKER_CHARS)
        return Marker((), malformed=True), first_id.end() if first_id else inside
    end = _behind_wraps(text, start, inside, stop.end(), final=final)
    end = None if end is None else _behind_target(text, end, final=final)
    return None if end is None else (_marker(text[inside : stop.start()]), end)


def _behind_wraps(text: str, start: int, inside: int, end: int, *, final: bool) -> int | None:
    """The position behind the closing brackets, quotes or stars that go with those before the marker."""
    wraps = []
    for sign in text[start:inside]:
        if sign not in _WRAPS:
            break
        wraps.append(_WRAPS[sign])
    for closing in reversed(wraps[:-1]):
        if end >= len(text):
            return end if final else None
        if text[end] != closing:
            break
        end += 1
    return end


def _behind_target(text: str, end: int, *, final: bool) -> int | None:
    """The position behind the target of a link that a marker was made into."""
    if end >= len(text):
        return end if final else None
    if text[end] != "(":
        return end
    stop = _TARGET_END.search(text, end + 1, end + 1 + TARGET_CHARS)
    if stop is None and not final and len(text) < end + 1 + TARGET_CHARS:
        return None
    return stop.end() if stop and stop.group() == ")" else end


def _marker(inside: str) -> Marker:
    card_ids: dict[str, None] = {}
    malformed = False
    for part in _BETWEEN_IDS.split(unicodedata.normalize("NFKC", inside).translate(_DASHES).casefold()):
        card_id = part.strip("`'\"#:").removeprefix("cite:")
        if CARD_ID.fullmatch(card_id):
            card_ids[card_id] = None
        elif card_id:
            malformed = True
    return Marker(tuple(card_ids), malformed or not card_ids)
