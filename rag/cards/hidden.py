"""Finds in a card what a reader does not see and a program reads: a place to hide orders to a language model."""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from rag.cards.body import comments, normalise_text
from rag.cards.front_matter import FrontMatterInvalid, parse_front_matter, split_front_matter
from rag.cards.marks import BIDI, TAGS, ZERO_WIDTH, is_meant
from rag.markdown import Kind, scan_lines


class HiddenKind(StrEnum):
    """The ways of hiding text; the values do not change."""

    ZERO_WIDTH = "zero-width-run"
    BIDI = "bidi-control"
    TAGS = "tag-characters"
    COMMENT = "html-comment"
    MARKUP = "invisible-markup"
    ENCODED = "encoded-run"


# what, why, and the remedy
_SAID = {
    HiddenKind.ZERO_WIDTH: (
        "two or more marks without width in a row",
        "they can spell what only a program reads",
        "delete them",
    ),
    HiddenKind.BIDI: (
        "a mark that changes the direction of text",
        "what is shown differs from what is stored",
        "delete it",
    ),
    HiddenKind.TAGS: ("tag characters", "they spell text that no screen shows", "delete them"),
    HiddenKind.COMMENT: (
        "a comment with words",
        "readers of the card do not see it",
        "make sure that you know what it says, or delete it",
    ),
    HiddenKind.MARKUP: (
        "markup that hides its text",
        "a browser would not show what the card says",
        "delete the text, or the markup around it",
    ),
    HiddenKind.ENCODED: (
        "a long run of encoded text",
        "nobody can read what it says",
        "write it out, delete it, or put it in a code fence",
    ),
}


@dataclass(frozen=True, slots=True)
class HiddenText:
    """A place in a card file where text is hidden; never the text itself."""

    file: str
    """Path below the cards folder."""
    line: int
    """Counted from 1."""
    kind: HiddenKind

    @property
    def remedy(self) -> str:
        return _SAID[self.kind][2]

    def __str__(self) -> str:
        what, why, remedy = _SAID[self.kind]
        return f"{self.file}:{self.line}: {what} ({self.kind}), {why}; {remedy}"


# the three flags there are that a black flag and tags make
_TAG_FLAG = re.compile(
    "\U0001f3f4(?:"
    + "|".join("".join(chr(0xE0000 + ord(letter)) for letter in region) for region in ("gbeng", "gbsct", "gbwls"))
    + ")\U000e007f"
)
_ZERO_WIDTH_RUN, _BIDI, _TAG = re.compile(f"[{ZERO_WIDTH}]{{2,}}"), re.compile(f"[{BIDI}]"), re.compile(f"[{TAGS}]")

# a link definition that nothing refers to is a comment too
_LINK_COMMENT = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]*(?:#|<>)[ \t]*[\"'(].*\w", re.MULTILINE)
_STYLE = re.compile(r"\bstyle\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_TAG_OPENING = re.compile(r"<[a-z][^<>]*>", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_HIDDEN_ATTRIBUTE = re.compile(r"\shidden(?=[\s=/>])", re.IGNORECASE)
_HIDDEN_ELEMENT = re.compile(r"<(?:template|script|style)\b", re.IGNORECASE)
_WHITE_FONT = re.compile(r"<font\b[^<>]*\bcolor\s*=\s*[\"']?\s*(?:white|#fff(?:fff)?)\b", re.IGNORECASE)
# one without an end takes in all that follows
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_NOTHING = re.compile(r"[+-]?(?:0+(?:\.0*)?|\.0+)(?:[a-z]+|%)?")
_NO_ALPHA = re.compile(r"(?:rgb|hsl)a\(.*[,/](?:0+(?:\.0*)?|\.0+)%?\)")
_COLOUR = re.compile(r"#[0-9a-f]+|(?:rgb|hsl)a?\([^)]*\)|[a-z]+")
_WHITE = frozenset({"white", "#fff", "#ffff", "#ffffff", "#ffffffff", "rgb(255,255,255)", "rgb(100%,100%,100%)"})

ENCODED_CHARS = 120
_PERCENT_RUN = re.compile(r"(?:%[0-9a-f]{2}[\w.~-]{0,12}){8,}", re.IGNORECASE | re.ASCII)
_BASE64_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{ENCODED_CHARS},}}")
_BEFORE_IN_WORD_CHARS = 2_000


def find_hidden(file: str, text: str) -> list[HiddenText]:
    """What is hidden in a card file, ``text`` as it was decoded: in order of line, one of each kind a line."""
    raw = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    found = set(_with_lines(raw, _marks(raw)))
    # words that marks cut apart are whole in what becomes of the file, and its lines are the same
    values, body, body_line = _parts(normalise_text(raw))
    found |= {(body_line - 1 + line, kind) for line, kind in _with_lines(body, _written(body))}
    for line, value in values:
        # an escape may have brought marks in
        found |= {(line, kind) for _, kind in [*_marks(value), *_written(normalise_text(value))]}
    return [HiddenText(file, line, kind) for line, kind in sorted(found)]


def _parts(text: str) -> tuple[list[tuple[int, str]], str, int]:
    """The values of the front matter with their lines, the body, and its first line; all is body if it is broken."""
    try:
        parts = split_front_matter(text)
        values = parse_front_matter(parts[0]) if parts else {}
    except FrontMatterInvalid:
        return [], text, 1
    texts = [
        (value.line, item)
        for value in values.values()
        for item in ([value.content] if isinstance(value.content, str) else value.content or [])
    ]
    return (texts, parts[1], parts[2]) if parts else ([], text, 1)


def _with_lines(text: str, found: Iterable[tuple[int, HiddenKind]]) -> Iterator[tuple[int, HiddenKind]]:
    """Lines, counted from 1, in place of positions."""
    ends = [match.start() for match in re.finditer("\n", text)]
    for position, kind in found:
        yield bisect_left(ends, position) + 1, kind


def _marks(text: str) -> Iterator[tuple[int, HiddenKind]]:
    for run in _ZERO_WIDTH_RUN.finditer(text):
        if not is_meant(run):
            yield run.start(), HiddenKind.ZERO_WIDTH
    yield from ((mark.start(), HiddenKind.BIDI) for mark in _BIDI.finditer(text))
    without_flags = _TAG_FLAG.sub(lambda flag: " " * len(flag.group()), text)
    yield from ((mark.start(), HiddenKind.TAGS) for mark in _TAG.finditer(without_flags))


def _written(text: str) -> Iterator[tuple[int, HiddenKind]]:
    """Comments, markup and encoded text outside code."""
    spans = list(comments(text))
    for start, end in spans:
        if any(letter.isalnum() for letter in text[start:end]):
            yield start, HiddenKind.COMMENT
    prose = _blank(text, spans)
    prose = _blank(prose, [(line.start, line.end) for line in scan_lines(prose) if line.kind is Kind.CODE])
    yield from ((start, HiddenKind.ENCODED) for start in _encoded(prose))
    prose = _blank(prose, _inline_code(prose))
    open_comment = prose.find("<!--")
    if open_comment >= 0 and any(letter.isalnum() for letter in prose[open_comment:]):
        yield open_comment, HiddenKind.COMMENT
    yield from ((match.start(), HiddenKind.COMMENT) for match in _LINK_COMMENT.finditer(prose))
    yield from ((start, HiddenKind.MARKUP) for start in _invisible(prose))


def _blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with spaces in place of some spans, line ends kept, so that positions stay."""
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += [text[position:start], "".join("\n" if letter == "\n" else " " for letter in text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def _inline_code(text: str) -> Iterator[tuple[int, int]]:
    """Code within sentences: between two runs of backticks of one length in one paragraph."""
    runs = [(run.start(), run.end()) for run in re.finditer("`+", text)]
    following: dict[int, int] = {}
    closing: list[int | None] = []
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        closing.append(following.get(length))
        following[length] = number
    closing.reverse()
    number = 0
    while number < len(runs):
        end = closing[number]
        if end is not None and text.find("\n\n", runs[number][1], runs[end][0]) < 0:
            yield runs[number][0], runs[end][1]
            number = end
        number += 1


def _encoded(text: str) -> Iterator[int]:
    yield from (run.start() for run in _PERCENT_RUN.finditer(text) if len(run.group()) >= ENCODED_CHARS)
    for run in _BASE64_RUN.finditer(text):
        # a long address has long paths; what is encoded in one stands between two of its slashes
        before = text[max(0, run.start() - _BEFORE_IN_WORD_CHARS) : run.start()]
        in_address = before[-1:].strip() and "://" in before.split()[-1]
        pieces = run.group().split("/") if in_address else [run.group()]
        if any(_looks_encoded(piece) for piece in pieces):
            yield run.start()


def _looks_encoded(run: str) -> bool:
    """Told from words with hyphens, rules and long paths by what it is made of."""
    cases = sum(any(map(test, run)) for test in (str.isupper, str.islower, str.isdigit))
    return len(run) >= ENCODED_CHARS and cases >= 2 and 8 * sum(not letter.isalnum() for letter in run) < len(run)


def _invisible(text: str) -> Iterator[int]:
    for style in _STYLE.finditer(text):
        if _hides(html.unescape(next(filter(None, style.groups()), ""))):
            yield style.start()
    for tag in _TAG_OPENING.finditer(text):
        if _HIDDEN_ATTRIBUTE.search(_QUOTED.sub('""', tag.group())):
            yield tag.start()
    for pattern in (_HIDDEN_ELEMENT, _WHITE_FONT):
        yield from (match.start() for match in pattern.finditer(text))


def _hides(style: str) -> bool:
    """Whether declarations make their text invisible on a white page or on a background of their own."""
    declared: dict[str, str] = {}
    for declaration in _CSS_COMMENT.sub("", style.lower()).split(";"):
        name, _, value = declaration.partition(":")
        declared[name.strip()] = "".join(value.replace("!important", "").split())
    colour = declared.get("color")
    background = declared.get("background-color") or _colour_in(declared.get("background", "")) or "white"
    return (
        declared.get("display") == "none"
        or declared.get("visibility") in ("hidden", "collapse")
        or any(_NOTHING.fullmatch(declared.get(name) or "1") for name in ("font-size", "opacity"))
        or (colour is not None and (colour == "transparent" or _NO_ALPHA.fullmatch(colour) is not None))
        or (colour is not None and (colour == background or {colour, background} <= _WHITE))
    )


def _colour_in(background: str) -> str | None:
    found = _COLOUR.match(background)
    return found.group() if found else None
