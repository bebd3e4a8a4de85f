"""The text of a card: one form for every way of writing the same letters, and no comments."""

from __future__ import annotations

import unicodedata

from rag.markdown import closes_fence, opening_fence

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
    position, fence, line_begins = 0, "", True
    while position < len(body):
        stop = body.find("\n", position) + 1 or len(body)
        line = body[position:stop]
        if fence:
            fence = "" if closes_fence(line, fence) else fence
        elif line_begins and opening_fence(line):
            fence = opening_fence(line)
        elif "<!--" in line:
            start = position + line.index("<!--")
            end = body.find("-->", start + 4)
            if end < 0:
                kept.append(body[position:])
                break
            kept.append(body[position:start])
            line_begins = line_begins and not body[position:start].strip()
            position = end + 3
            continue
        kept.append(line)
        position, line_begins = stop, True
    return "".join(kept)
