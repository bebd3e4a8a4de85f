"""What a model thinks aloud before it answers, and answers that come in another form than was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BEGIN, _END = "<think>", "</think>"
_SIGN = re.compile(r"\S")
_ENCLOSED = ("{", "```")
# not by lower(), which makes two of some letters
_END_TAG = re.compile(_END, re.IGNORECASE | re.ASCII)


class Thoughts:
    """
    Text in pieces → the text that is meant for the reader.

    What stands between the tags of a thought is left out. An end without a beginning gives None: what came before it
    was a thought as well, as far as it has not been taken for an answer already. A text that begins as JSON or as a
    block of code is kept in ``enclosed`` instead.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._thinking = False
        self._begun = False
        self._enclosing = False
        self.enclosed = ""

    def feed(self, text: str) -> Iterator[str | None]:
        """What is certain after this piece."""
        self._pending += text
        yield from self._pass(final=False)

    def finish(self) -> Iterator[str | None]:
        """The rest."""
        yield from self._pass(final=True)

    def _pass(self, *, final: bool) -> Iterator[str | None]:
        text, at = self._pending, 0
        while True:
            if not self._thinking and not self._begun:
                at = _next_sign(text, at)
                begin = text[at : at + len(_BEGIN)].lower()
                if not final and any(begin != sign and sign.startswith(begin) for sign in (_BEGIN, *_ENCLOSED)):
                    self._pending = text[at:]
                    return
                self._thinking = begin.startswith(_BEGIN)
                self._begun = not self._thinking
                self._enclosing = begin.startswith(_ENCLOSED)
            end = _END_TAG.search(text, at)
            if end is None:
                break
            if not self._thinking:
                if not self._enclosing and end.start() > at:
                    yield text[at : end.start()]
                self.enclosed = ""
                yield None
            at = end.end()
            self._thinking = self._begun = self._enclosing = False
        kept = 0 if final else _half_end(text[max(at, len(text) - len(_END) + 1) :].lower())
        said, self._pending = text[at : len(text) - kept], text[len(text) - kept :]
        if self._enclosing:
            self.enclosed += said
        elif said and not self._thinking:
            yield said


def _half_end(lowered: str) -> int:
    """How many of the last signs may yet become the end of a thought."""
    return next((size for size in range(len(_END) - 1, 0, -1) if lowered.endswith(_END[:size])), 0)


def _next_sign(text: str, at: int) -> int:
    """The position of the first sign that is no white space; the text's length if there is none."""
    found = _SIGN.search(text, at)
    return found.start() if found else len(text)
