"""The text of a card: one form for every way of writing the same letters, and no comments."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

# soft hyphen, zero-width space, word joiner, byte order mark: they hide inside words and are never meant
_INVISIBLE = dict.fromkeys((173, 8203, 8288, 65279))


def normalise_text(text: str) -> str:
    """The form in which all text is kept: LF line ends, composed accents, no invisible marks."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", lines.translate(_INVISIBLE))


def clean_line(text: str) -> str:
    """One line of text: white space folded, control characters gone (YAML escapes can bring them in)."""
    return " ".join("".join(" " if letter.isspace() else letter for letter in text if _is_visible(letter)).split())


def _is_visible(letter: str) -> bool:
    return letter.isspace() or unicodedata.category(letter) != "Cc"


def remove_comments(body: str) -> str:
    """
    The body without HTML comments: notes to other editors are neither searched, shown nor quoted.

    Comments inside fenced code stay; an unclosed one is text.
    """
    kept: list[str] = []
    position = 0
    for start, end in _comments(body):
        kept.append(body[position:start])
        position = end
    kept.append(body[position:])
    return "".join(kept)


def _comments(body: str) -> Iterator[tuple[int, int]]:
    fences = _fenced_spans(body)
    position = 0
    while (start := body.find("<!--", position)) >= 0:
        inside = next((span for span in fences if span[0] <= start < span[1]), None)
        end = body.find("-->", start + 4)
        if inside:
            position = inside[1]
        elif end < 0:
            return
        else:
            yield start, end + 3
            position = end + 3


def _fenced_spans(body: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    offset, opened, mark = 0, -1, ""
    for line in body.split("\n"):
        text = line.lstrip(" ")
        if opened < 0 and text.startswith(("```", "~~~")):
            opened, mark = offset, text[:3]
        elif opened >= 0 and text.startswith(mark) and not text.strip(mark[0] + " "):
            spans.append((opened, offset + len(line)))
            opened = -1
        offset += len(line) + 1
    if opened >= 0:
        spans.append((opened, len(body)))
    return spans
