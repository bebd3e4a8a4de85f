"""
Server-sent events: bytes, cut anywhere, to the data of each event.

Source: the HTML standard, "Parsing an event stream" and "Interpreting an event stream".
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

_LINE_END = re.compile("\r\n|\n|\r")


class EventReader:
    """
    Reads one stream. Only ``data`` is kept; other fields and comments are passed over, and an event that its stream
    does not end with a blank line never happened.

    Takes linear time, however small the chunks; holds what belongs to the event under way.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line: list[str] = []
        self._data: list[str] = []
        self._begun = False
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """
        The data of the events that end in a chunk, in order.

        Raises:
            UnicodeDecodeError: the chunk makes the stream something other than UTF-8.
        """
        text = self._decoder.decode(chunk)
        if not text:
            return
        if not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        if self._after_return:
            # the second half of a line end whose first half has counted already
            text = text.removeprefix("\n")
        self._after_return = text.endswith("\r")
        *ended, begun = _LINE_END.split(text)
        for end in ended:
            self._line.append(end)
            line = "".join(self._line)
            self._line.clear()
            if line:
                self._take(line)
            elif self._data:
                data = "\n".join(self._data)
                self._data.clear()
                yield data
        if begun:
            self._line.append(begun)

    def _take(self, line: str) -> None:
        field, _, value = line.partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))
