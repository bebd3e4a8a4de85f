"""The text of a card: one form for every way of writing the same letters, and no comments."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from rag.cards.marks import drop_marks
from rag.markdown import closes_fence, opening_fence


def normalise_text(text: str) -> str:
    """The form in which all text is kept: LF line ends, composed accents, no invisible marks but where one is meant."""
    found = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    while True:
        # what stood on both sides of a mark may compose
        kept = unicodedata.normalize("NFC", drop_marks(found))
        if kept == found:
            return found
        found = kept


def clean_line(text: str) -> str:
    """One line of text: white space folded, control characters and marks gone (YAML escapes can bring them in)."""
    line = "".join(" " if letter.isspace() else letter for letter in text if _is_visible(letter))
    return " ".join(normalise_text(line).split())


def _is_visible(letter: str) -> bool:
    return letter.isspace() or unicodedata.category(letter) != "Cc"


def remove_comments(body: str) -> str:
    """
    The body without HTML comments: notes to other editors are neither searched, shown nor quoted.

    Comments inside fenced code stay; an unclosed one is text.
    """
    kept: list[str] = []
    position = 0
    for start, end in comments(body):
        kept.append(body[position:start])
        position = end
    return "".join([*kept, body[position:]])


def comments(body: str) -> Iterator[tuple[int, int]]:
    """Where each HTML comment outside fenced code begins and ends, its signs included, in order."""
    position, stop, fence, line_begins = 0, 0, "", True
    while position < len(body):
        # a line may hold any number of comments, and is not looked through or copied for each of them
        if position >= stop:
            stop = body.find("\n", position) + 1 or len(body)
        start = body.find("<!--", position, stop)
        is_blank = line_begins and not body[position : start if start >= 0 else stop].strip()
        if fence:
            fence = "" if closes_fence(body[position:stop], fence) else fence
        elif line_begins and not is_blank and (opened := opening_fence(body[position:stop])):
            fence = opened
        elif start >= 0:
            end = body.find("-->", start + 4)
            if end < 0:
                return
            yield start, end + 3
            position, line_begins = end + 3, is_blank
            continue
        position, line_begins = stop, True
