"""What each line of a Markdown text is: enough structure to cut, to find sections and to quote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kinds of line."""

    BLANK = "blank"
    TEXT = "text"
    ITEM = "item"
    """The first line of a list item."""
    HEADING = "heading"
    RULE = "rule"
    """A thematic break, or the underline of a heading."""
    CODE = "code"
    """A fence, or a line between fences."""
    TABLE_HEADER = "table header"
    TABLE_RULE = "table rule"
    TABLE_ROW = "table row"


@dataclass(frozen=True, slots=True)
class Line:
    """One line, in code points of the text: ``text[start:end]``, line end left out."""

    start: int
    end: int
    kind: Kind
    content: int
    """Where the content begins, behind indentation and markers (``#``, ``-``, ``1.``, ``>``)."""
    level: int = 0
    """Of a heading, from 1."""


_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?=[ \t])")
_QUOTE_MARKS = re.compile(r">[>\s]*")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]|$)")
_TABLE_RULE_SIGNS = frozenset("|-: \t")


def scan_lines(text: str) -> list[Line]:
    """The lines of a text in order, in one pass."""
    lines: list[Line] = []
    position, fence = 0, ""
    for raw in text.split("\n"):
        line, fence = _read_line(raw, position, fence)
        lines.append(_with_previous(text, line, lines))
        position += len(raw) + 1
    return lines


def headings_above(lines: list[Line], text: str, position: int) -> list[str]:
    """The titles of the sections that hold a position, outermost first; a heading that starts there counts."""
    path: list[tuple[int, str]] = []
    for line in lines:
        if line.start > position:
            break
        if line.kind is Kind.HEADING:
            path = [entry for entry in path if entry[0] < line.level]
            path.append((line.level, heading_title(line, text)))
    return [title for _, title in path if title]


def heading_title(line: Line, text: str) -> str:
    """The words of a heading, without the signs that may close it (``# Title #``, but not ``# C#``)."""
    title = text[line.content : line.end].strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else title


def opening_fence(line: str) -> str:
    """The run of signs with which a line opens fenced code, or nothing."""
    stripped = line.strip()
    for sign in "`~":
        run = stripped[: len(stripped) - len(stripped.lstrip(sign))]
        # backticks that close in the same line are code within a sentence
        if len(run) >= 3 and not (sign == "`" and sign in stripped[len(run) :]):
            return run
    return ""


def closes_fence(line: str, fence: str) -> bool:
    """Whether a line ends the code that ``fence`` began: the same sign, at least as often, and nothing else."""
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])


def table_header_of(lines: list[Line], text: str, position: int) -> str | None:
    """The header row of the table whose body row stands at a position, if any."""
    header: Line | None = None
    for line in lines:
        if line.kind is Kind.TABLE_HEADER:
            header = line
        if line.start <= position < line.end + 1:
            inside = line.kind in (Kind.TABLE_ROW, Kind.TABLE_RULE) and header is not None
            return text[header.start : header.end].strip() if inside and header else None
    return None


def table_cells(row: str) -> list[str]:
    """The cells of a table row, trimmed; ``\\|`` is a sign and no border."""
    text, cells, begin, escaped = row.strip(), [], 0, False
    for at, letter in enumerate(text):
        if letter == "|" and not escaped:
            cells.append(text[begin:at])
            begin = at + 1
        escaped = letter == "\\" and not escaped
    cells.append(text[begin:])
    trimmed = [cell.strip().replace("\\|", "|") for cell in cells]
    return trimmed[(not trimmed[0]) : (-1 if len(trimmed) > 1 and not trimmed[-1] else None)]


def _read_line(raw: str, start: int, fence: str) -> tuple[Line, str]:
    """A line by its own letters alone, and the fence that is open behind it."""
    end, stripped = start + len(raw), raw.strip()
    content = start + len(raw) - len(raw.lstrip())
    if fence:
        return Line(start, end, Kind.CODE, content), "" if closes_fence(raw, fence) else fence
    opened = opening_fence(raw)
    if opened:
        return Line(start, end, Kind.CODE, content), opened
    if not stripped:
        return Line(start, end, Kind.BLANK, end), ""
    return _read_markers(raw, start, content), ""


def _read_markers(raw: str, start: int, content: int) -> Line:
    end = start + len(raw)
    quoted = _QUOTE_MARKS.match(raw, content - start)
    content = start + quoted.end() if quoted else content
    rest = raw[content - start :]
    heading = _HEADING.match(rest)
    if heading:
        return Line(start, end, Kind.HEADING, content + heading.end(), len(heading.group(1)))
    if _is_rule(rest):
        return Line(start, end, Kind.RULE, content)
    marker = _MARKER.match(rest)
    if marker:
        after = rest[marker.end() :]
        return Line(start, end, Kind.ITEM, content + marker.end() + len(after) - len(after.lstrip()))
    return Line(start, end, Kind.TEXT if rest else Kind.BLANK, content)


def _is_rule(rest: str) -> bool:
    signs = rest.replace(" ", "").replace("\t", "")
    return len(signs) >= 3 and signs[0] in "-*_" and not signs.strip(signs[0])


def _with_previous(text: str, line: Line, lines: list[Line]) -> Line:
    """The line as what stands before makes it; turns a text line into a header or heading where this line says so."""
    before = lines[-1] if lines else None
    if before is None or line.kind not in (Kind.TEXT, Kind.RULE, Kind.ITEM):
        return line
    content = text[line.content : line.end].strip()
    if (
        before.kind is Kind.TEXT
        and _is_table_rule(text[line.start : line.end])
        and "|" in text[before.start : before.end]
    ):
        lines[-1] = Line(before.start, before.end, Kind.TABLE_HEADER, before.content)
        return Line(line.start, line.end, Kind.TABLE_RULE, line.content)
    if before.kind in (Kind.TABLE_RULE, Kind.TABLE_ROW) and line.kind is Kind.TEXT and "|" in content:
        return Line(line.start, line.end, Kind.TABLE_ROW, line.content)
    alone = len(lines) < 2 or lines[-2].kind not in (Kind.TEXT, Kind.ITEM)
    if before.kind is Kind.TEXT and alone and content and not content.strip(content[0]) and content[0] in "=-":
        lines[-1] = Line(before.start, before.end, Kind.HEADING, before.content, 1 if content[0] == "=" else 2)
        return Line(line.start, line.end, Kind.RULE, line.content)
    return line


def _is_table_rule(raw: str) -> bool:
    return "-" in raw and "|" in raw and set(raw) <= _TABLE_RULE_SIGNS
