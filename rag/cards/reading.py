"""Reads the files of a folder into cards."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import overload

from rag.cards.body import clean_line, normalise_text, remove_comments
from rag.cards.front_matter import FrontMatterInvalid, Value, parse_front_matter, split_front_matter
from rag.cards.hidden import HiddenText, find_hidden
from rag.errors import CardsInvalid, Fault
from rag.markdown import Kind, heading_title, scan_lines
from rag.records import PUBLIC_GROUP, Card

PARSER_VERSION = 3
"""Raise it when the same file would give another card."""
CARD_LIMIT_BYTES = 1_048_576
LANGUAGES = ("es", "en")
MOST_QUESTIONS, QUESTION_CHARS = 30, 300

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_GROUP = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_UNKNOWN_ACCESS = "there is no front matter, so its access rules cannot be known"
_KEYS = ("id", "title", "language", "topics", "questions", "license", "source", "accessed_at", "acl")


class CardFiles(Sequence[Card]):
    """
    The cards of files, in order of id. Each is read again when it is asked for, so that a big box takes no memory.

    Raises, when a card is asked for:
        CardsInvalid: its file is not any more what it was.
    """

    def __init__(self, cards_dir: Path, files: Sequence[tuple[str, str, str]], *, plain_markdown: bool) -> None:
        """``files`` are card id, path below the folder, and the card's hash."""
        self._cards_dir = cards_dir
        self._files = tuple(sorted(files))
        self._plain_markdown = plain_markdown

    def __len__(self) -> int:
        return len(self._files)

    @overload
    def __getitem__(self, number: int) -> Card: ...
    @overload
    def __getitem__(self, number: slice) -> list[Card]: ...
    def __getitem__(self, number: int | slice) -> Card | list[Card]:
        if isinstance(number, slice):
            return [self._read(*entry) for entry in self._files[number]]
        return self._read(*self._files[number])

    def _read(self, _: str, file: str, digest: str) -> Card:
        card = _Reader(file).read(self._cards_dir / file, plain_markdown=self._plain_markdown)
        if card is None or card_hash(card) != digest:
            raise CardsInvalid([Fault(file, 1, "the file was changed during the build; build again")])
        return card


def card_hash(card: Card) -> str:
    """A hash of everything in a card."""
    return hashlib.sha256(json.dumps(asdict(card), ensure_ascii=False, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class CardFolder:
    """The cards of a folder, in order of id, with what is wrong and what is only worth saying."""

    cards: CardFiles
    faults: tuple[Fault, ...]
    """A file with a fault gives no card; two files of one id give none."""
    notices: tuple[Fault, ...]
    hidden: tuple[HiddenText, ...]
    """What readers of the files do not see, of broken files too; in order of file and line."""
    file_count: int


def read_cards(cards_dir: Path, *, plain_markdown: bool = False) -> CardFolder:
    """
    Read every ``*.md`` file below a folder, hidden ones left out.

    ``plain_markdown`` says that files without front matter are public cards; else each is a fault, as its access rules
    cannot be known.
    """
    found: list[_Found] = []
    faults: list[Fault] = []
    notices: list[Fault] = []
    hidden: list[HiddenText] = []
    paths = list(_markdown_files(cards_dir))
    for path in paths:
        reader = _Reader(path.relative_to(cards_dir).as_posix())
        card = reader.read(path, plain_markdown=plain_markdown)
        faults += reader.faults
        notices += reader.notices
        hidden += find_hidden(reader.file, reader.decoded)
        if card:
            found.append(_Found(card.card_id, reader.file, card_hash(card), reader.id_line))
    unique, repeated = _unique(found)
    files = [(entry.card_id, entry.file, entry.digest) for entry in unique]
    return CardFolder(
        cards=CardFiles(cards_dir, files, plain_markdown=plain_markdown),
        faults=tuple(sorted(faults + repeated, key=lambda fault: (fault.file, fault.line))),
        notices=tuple(notices),
        hidden=tuple(hidden),
        file_count=len(paths),
    )


def slug(relative_path: str) -> str:
    """The id of a file that names none: its path without ``.md``, accents folded, lower case, hyphens."""
    folded = unicodedata.normalize("NFKD", relative_path.removesuffix(".md"))
    plain = "".join(letter for letter in folded if not unicodedata.combining(letter)).lower()
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in plain).split()
    return "-".join(words)[:80].rstrip("-")


def _markdown_files(cards_dir: Path) -> Iterator[Path]:
    for path in sorted(cards_dir.rglob("*.md")):
        hidden = any(part.startswith(".") for part in path.relative_to(cards_dir).parts)
        if path.is_file() and not hidden:
            yield path


@dataclass(frozen=True, slots=True)
class _Found:
    """A file that holds a card."""

    card_id: str
    file: str
    digest: str
    id_line: int


def _unique(found: Sequence[_Found]) -> tuple[list[_Found], list[Fault]]:
    by_id: dict[str, list[_Found]] = {}
    for entry in found:
        by_id.setdefault(entry.card_id, []).append(entry)
    faults = [
        Fault(
            entry.file,
            entry.id_line,
            f"the id {card_id!r} is also that of {_others(entry, same)}; give each card its own id",
        )
        for card_id, same in by_id.items()
        if len(same) > 1
        for entry in same
    ]
    return [same[0] for same in by_id.values() if len(same) == 1], faults


def _others(entry: _Found, same: Sequence[_Found]) -> str:
    return ", ".join(other.file for other in same if other is not entry)


@dataclass(slots=True)
class _Reader:
    """Reads one file, and collects what is wrong with it instead of stopping at the first fault."""

    file: str
    faults: list[Fault] = field(default_factory=list)
    notices: list[Fault] = field(default_factory=list)
    id_line: int = 1
    decoded: str = ""
    """The file as it was, before normalisation; empty if it is no text."""

    def read(self, path: Path, *, plain_markdown: bool) -> Card | None:
        text = self._decode(path)
        if text is None:
            return None
        try:
            parts = split_front_matter(text)
            values = parse_front_matter(parts[0]) if parts else {}
        except FrontMatterInvalid as error:
            self._fault(error.line, error.message)
            return None
        if parts is None and not plain_markdown:
            self._fault(1, f"{_UNKNOWN_ACCESS}; begin the file with ---, a line title: ..., and ---")
            return None
        body = parts[1] if parts else text
        card = self._card(values, remove_comments(body).strip("\n"), named=parts is not None)
        if not self.faults and not card.text.strip():
            self.notices.append(Fault(self.file, 1, "the card has no text: it is listed, but no answer can cite it"))
        return None if self.faults else card

    def _card(self, values: dict[str, Value], body: str, *, named: bool) -> Card:
        self._check_keys(values)
        return Card(
            card_id=self._card_id(values),
            title=self._title(values, body, named=named),
            text=body,
            language=self._language(values),
            topics=tuple(dict.fromkeys(self._list(values, "topics"))),
            license=self._text(values, "license"),
            source=self._text(values, "source"),
            accessed_at=self._date(values),
            acl=self._acl(values),
            questions=self._questions(values),
        )

    def _fault(self, line: int, message: str) -> None:
        self.faults.append(Fault(self.file, line, message))

    def _decode(self, path: Path) -> str | None:
        try:
            data = path.read_bytes()
        except OSError as error:
            self._fault(1, f"the file cannot be read: {error.strerror}")
            return None
        if len(data) > CARD_LIMIT_BYTES:
            self._fault(1, f"the file has {len(data):,} bytes; a card has at most {CARD_LIMIT_BYTES:,}. Split it")
            return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self._fault(line, f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8")
            return None
        if "\0" in text:
            self._fault(text.count("\n", 0, text.index("\0")) + 1, "there is a NUL character; remove it")
            return None
        self.decoded = text
        return normalise_text(text)

    def _check_keys(self, values: dict[str, Value]) -> None:
        for key, value in values.items():
            if key in _KEYS:
                continue
            # a slip in `acl` would publish a private card, so what looks like a known key must be that key
            near = difflib.get_close_matches(key.lower(), _KEYS, n=1, cutoff=0.66)
            if near:
                self._fault(value.line, f"the key {key!r} is unknown; write {near[0]!r} if that is meant, or rename it")
            else:
                self.notices.append(Fault(self.file, value.line, f"the key {key!r} is not used"))

    def _text(self, values: dict[str, Value], key: str) -> str | None:
        value = values.get(key)
        if value is None or value.content is None:
            return None
        if not isinstance(value.content, str):
            self._fault(value.line, f"{key} is a list; write one text")
            return None
        return clean_line(value.content) or None

    def _list(self, values: dict[str, Value], key: str) -> list[str]:
        value = values.get(key)
        if value is None or value.content is None:
            return []
        items = value.content if isinstance(value.content, list) else value.content.split(",")
        return [text for item in items if (text := clean_line(item))]

    def _questions(self, values: dict[str, Value]) -> tuple[str, ...]:
        value = values.get("questions")
        if value is None or value.content is None:
            return ()
        # a question may have commas in it, so a single text is a single question
        items = value.content if isinstance(value.content, list) else [value.content]
        questions = dict.fromkeys(text for item in items if (text := clean_line(item)))
        if len(questions) > MOST_QUESTIONS:
            self._fault(value.line, f"there are {len(questions)} questions; keep the {MOST_QUESTIONS} that matter most")
        for question in questions:
            if len(question) > QUESTION_CHARS:
                self._fault(value.line, f"a question has {len(question)} characters; at most {QUESTION_CHARS} are read")
        return tuple(questions)

    def _card_id(self, values: dict[str, Value]) -> str:
        explicit = self._text(values, "id")
        self.id_line = values["id"].line if explicit else 1
        card_id = explicit or slug(self.file)
        if not _ID.fullmatch(card_id) or card_id.endswith(".md"):
            rule = "lower-case ASCII letters, digits, . _ and -, at most 80, not ending in .md"
            self._fault(self.id_line, f"the id {card_id!r} cannot be used; write id: with {rule}")
        return card_id

    def _title(self, values: dict[str, Value], body: str, *, named: bool) -> str:
        title = self._text(values, "title")
        if title:
            return title
        if named:
            self._fault(values["title"].line if "title" in values else 1, "there is no title; add a line title: ...")
        headings = [line for line in scan_lines(body) if line.kind is Kind.HEADING and line.level == 1]
        return (clean_line(heading_title(headings[0], body)) if headings else "") or clean_line(Path(self.file).stem)

    def _language(self, values: dict[str, Value]) -> str:
        language = self._text(values, "language") or LANGUAGES[0]
        if language not in LANGUAGES:
            known = " or ".join(LANGUAGES)
            self._fault(values["language"].line, f"the language {language!r} is not known; write {known}")
        return language

    def _date(self, values: dict[str, Value]) -> str | None:
        text = self._text(values, "accessed_at")
        if text is None:
            return None
        try:
            # fromisoformat also reads weeks and days without hyphens
            if date.fromisoformat(text).isoformat() != text:
                raise ValueError
        except ValueError:
            self._fault(
                values["accessed_at"].line, f"accessed_at is {text!r}, which is no date; write it as YYYY-MM-DD"
            )
        return text

    def _acl(self, values: dict[str, Value]) -> tuple[str, ...]:
        if "acl" not in values:
            return (PUBLIC_GROUP,)
        groups, line = self._list(values, "acl"), values["acl"].line
        if not groups:
            self._fault(
                line, f"acl names no group, so nobody could read the card; write acl: [{PUBLIC_GROUP}] or name groups"
            )
        for group in groups:
            if not _GROUP.fullmatch(group):
                self._fault(
                    line, f"the group {group!r} cannot be used; write lower-case ASCII letters, digits, . _ and -"
                )
        return tuple(sorted(set(groups)))
