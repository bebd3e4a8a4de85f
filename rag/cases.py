"""Questions with what would answer them: golden cases of our own, and folders in the layout of BEIR."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag.errors import RagError
from rag.language import detect_language
from rag.records import PUBLIC_GROUP, Card

FLOORS_FILE = "floors.json"
FLOORS_SHARE = 0.5
"""Floors hold for a box that this share of the answerable cases is about; another box is not what they were set for."""


class CasesInvalid(RagError):
    """The cases to evaluate cannot be read."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question and what would answer it."""

    question: str
    grades: Mapping[str, float]
    """Card id → grade, above zero; empty means that no card answers."""
    groups: tuple[str, ...] = (PUBLIC_GROUP,)
    answers: tuple[str, ...] = ()
    """Strings of which an answer should hold one."""
    language: str = ""
    held_out: bool = False
    """Nothing is chosen or calibrated by it: it measures alone."""
    kind: str = ""
    """Why no card answers, for reports: ``off_topic`` is about something else, ``near_miss`` about the same subject."""

    @property
    def key(self) -> str:
        """What tells cases apart, and nothing of what they say."""
        said = json.dumps([self.question, sorted(self.grades), self.groups])
        return hashlib.sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Golden:
    """Golden cases, and what a build has to reach on them."""

    cases: tuple[Case, ...]
    at_least: Mapping[str, float]
    """Measure → per cent."""
    at_most: Mapping[str, float]

    def for_cards(self, card_ids: Collection[str]) -> Golden | None:
        """The cases that these cards can answer, with those that none should; None where they can answer none."""
        kept = [case for case in self.cases if not case.grades or any(card_id in card_ids for card_id in case.grades)]
        answerable, left = (sum(bool(case.grades) for case in cases) for cases in (self.cases, kept))
        if not left:
            return None
        whole = replace(self, cases=tuple(kept))
        return whole if left >= FLOORS_SHARE * answerable else replace(whole, at_least={}, at_most={})


def read_golden_dir(folder: Path) -> Golden:
    """
    All ``*.jsonl`` of a folder, and its ``floors.json`` if there is one.

    That holds ``{"at_least": {measure: per cent}, "at_most": {measure: per cent}}``.

    Raises:
        CasesInvalid: one cannot be read.
    """
    cases = read_golden(sorted(folder.glob("*.jsonl")))
    path = folder / FLOORS_FILE
    floors: dict[str, dict[str, float]] = {}
    if path.exists():
        try:
            floors = json.loads(path.read_text("utf-8"))
            if not all(isinstance(value, int | float) for side in floors.values() for value in side.values()):
                raise TypeError("a floor is no number")
            if set(floors) - {"at_least", "at_most"}:
                raise ValueError("it holds more than at_least and at_most")
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise CasesInvalid(f"{path}: cannot be read as floors: {error}.") from error
    return Golden(tuple(cases), floors.get("at_least", {}), floors.get("at_most", {}))


def read_golden(paths: Sequence[Path]) -> list[Case]:
    """
    Golden cases, one JSON object a line: ``question, language, must_cite_one_of, groups``, or ``unanswerable``;
    ``held_out`` where nothing may be tuned on it, and ``kind``, which only reports read.

    Raises:
        CasesInvalid: a file cannot be read, or a line is no such object.
    """
    cases: list[Case] = []
    for path in paths:
        for number, entry in enumerate(_read_lines(path), start=1):
            try:
                cited = [] if entry.get("unanswerable") else entry["must_cite_one_of"]
                groups = tuple(entry.get("groups", (PUBLIC_GROUP,)))
                grades = dict.fromkeys(cited, 1.0)
                held_out, kind = entry.get("held_out", False) is True, str(entry.get("kind", ""))
                language = entry["language"]
                cases.append(Case(entry["question"], grades, groups, language=language, held_out=held_out, kind=kind))
            except (KeyError, TypeError, AttributeError) as error:
                raise CasesInvalid(f"{path}:{number}: not a golden case: {error!r}.") from error
    return cases


def read_beir(folder: Path) -> tuple[list[Card], list[Case]]:
    """
    The cards and cases of a BEIR folder: ``corpus.jsonl``, ``queries.jsonl``, ``qrels.tsv``.

    A folder named ``…__c_en`` or ``…__c_es`` holds cards in that language; of another, most of the texts decide.

    Raises:
        CasesInvalid: a file is missing, or a line is not of that layout.
    """
    try:
        corpus = _read_lines(folder / "corpus.jsonl")
        language = _corpus_language(folder, corpus)
        cards = [
            Card(
                entry["_id"],
                entry.get("title") or entry["_id"],
                entry["text"],
                language,
                (),
                None,
                None,
                None,
                (PUBLIC_GROUP,),
            )
            for entry in corpus
        ]
        if len({card.card_id for card in cards}) < len(cards):
            raise ValueError("an _id stands twice in corpus.jsonl")
        if not all(isinstance(text, str) for card in cards for text in (card.card_id, card.title, card.text)):
            raise ValueError("an _id, title or text in corpus.jsonl is no text")
        grades: dict[str, dict[str, float]] = {}
        for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
            query, card, grade = line.split("\t")
            if grade != "score" and float(grade) > 0:
                grades.setdefault(query, {})[card] = float(grade)
        cases = [
            Case(
                entry["text"], grades.get(entry["_id"], {}), answers=tuple(entry.get("metadata", {}).get("answers", ()))
            )
            for entry in _read_lines(folder / "queries.jsonl")
        ]
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CasesInvalid(
            f"{folder}: not a BEIR folder (corpus.jsonl, queries.jsonl, qrels.tsv): {error!r}."
        ) from error
    return sorted(cards, key=lambda card: card.card_id), cases


def _corpus_language(folder: Path, corpus: Sequence[Mapping[str, Any]]) -> str:
    named = folder.resolve().name.rpartition("__c_")[2]
    if named in ("es", "en"):
        return named
    english = sum(detect_language(entry["text"]) == "en" for entry in corpus)
    return "en" if 2 * english > len(corpus) else "es"


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise CasesInvalid(f"{path}: cannot be read as JSON lines: {error}.") from error
