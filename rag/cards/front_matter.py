"""The YAML front matter of a card, read as strings and lists of strings, every value with its line."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

FENCE = "---"
LIMIT_CHARS = 16_384

_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar (str), a list of scalars, or None for a null, and the line it stands on, counted from 1."""

    content: str | list[str] | None
    line: int


class FrontMatterInvalid(Exception):
    """One fault; the caller knows the file."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def split_front_matter(text: str) -> tuple[str, str, int] | None:
    """
    Cut a file (LF line ends) into front matter, body, and the body's first line counted from 1.

    None when the file does not begin with a line ``---``.

    Raises:
        FrontMatterInvalid: the closing line is missing.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]), number + 2
    raise FrontMatterInvalid(1, "the front matter has no closing line; end it with a line ---")


def parse_front_matter(text: str, *, first_line: int = 2) -> dict[str, Value]:
    """
    Read a mapping of keys to strings or lists of strings; nothing is turned into a number, date or boolean.

    Raises:
        FrontMatterInvalid: not YAML, not such a mapping, a key twice, an alias or a tag, or too long.
    """
    if len(text) > LIMIT_CHARS:
        raise FrontMatterInvalid(
            first_line, f"the front matter has {len(text)} characters; at most {LIMIT_CHARS} are read"
        )
    for number, raw in enumerate(text.split("\n")):
        if any(unicodedata.category(letter) == "Cc" and letter != "\t" for letter in raw):
            raise FrontMatterInvalid(first_line + number, "there is a control character; remove it")
    try:
        return _mapping(_events(text), first_line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        raise FrontMatterInvalid(line, _explain(error, text, mark.line if mark else 0)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise FrontMatterInvalid(first_line, f"the front matter is not YAML: {error}") from error


def _explain(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    problem = error.problem or error.context or "unknown problem"
    lines = text.split("\n")
    shown = lines[line].strip()[:80] if line < len(lines) else ""
    key, colon, value = shown.partition(": ")
    if "mapping values are not allowed" in problem and colon and ": " in value:
        return f'the value of {key} holds ": "; put it in quotes: {key}: "{value}"'
    remedy = "put the value in quotes if it holds signs such as : # [ {"
    return f"the front matter is not YAML ({problem}) at {shown!r}; {remedy}"


def _events(text: str) -> Iterator[yaml.Event]:
    for event in yaml.parse(text, Loader=_Parser):
        if not isinstance(
            event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentStartEvent | yaml.DocumentEndEvent
        ):
            yield event


def _mapping(events: Iterator[yaml.Event], first_line: int) -> dict[str, Value]:
    values: dict[str, Value] = {}
    start = next(events, None)
    if start is None:
        return values
    if not isinstance(start, yaml.MappingStartEvent):
        raise FrontMatterInvalid(first_line, "the front matter holds no keys; write lines such as title: ...")
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        line = first_line + (event.start_mark.line if event.start_mark else 0)
        key = _scalar(event, line)
        if key is None:
            raise FrontMatterInvalid(line, "a key is empty; write key: value")
        if key in values:
            raise FrontMatterInvalid(line, f"the key {key!r} stands twice (first on line {values[key].line}); keep one")
        values[key] = Value(_content(next(events), events, line), line)
    extra = next(events, None)
    if extra is not None:
        line = first_line + (extra.start_mark.line if extra.start_mark else 0)
        raise FrontMatterInvalid(line, "a second YAML document begins here; keep all keys in one")
    return values


def _content(event: yaml.Event, events: Iterator[yaml.Event], line: int) -> str | list[str] | None:
    if not isinstance(event, yaml.SequenceStartEvent):
        return _scalar(event, line)
    items: list[str] = []
    for item in events:
        if isinstance(item, yaml.SequenceEndEvent):
            break
        text = _scalar(item, line)
        if text is None:
            raise FrontMatterInvalid(line, "a list holds an empty item; remove it")
        items.append(text)
    return items


def _scalar(event: yaml.Event, line: int) -> str | None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise FrontMatterInvalid(line, "anchors and aliases (& and *) are not read; write the value out, or in quotes")
    if not isinstance(event, yaml.ScalarEvent):
        raise FrontMatterInvalid(line, "only text and lists of text are read; put the value in quotes")
    if event.tag:
        raise FrontMatterInvalid(line, f"the tag {event.tag!r} is not read; put the value in quotes")
    value: str = event.value
    # a plain scalar has no style; the two parsers say so as None and as an empty text
    return None if not event.style and value in {"", "~", "null"} else value
