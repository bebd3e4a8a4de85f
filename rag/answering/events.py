"""What happens on the way to an answer, in the order in which a reader may see it; the last is the ``Answer``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag.records import Answer, Citation, CitationSegment, RetrievedCard, TextSegment


@dataclass(frozen=True, slots=True)
class SourcesFound:
    """The cards that the answer can cite; none before a refusal."""

    retrieved: tuple[RetrievedCard, ...]


@dataclass(frozen=True, slots=True)
class TextShown:
    """The next piece of the answer's text."""

    segment: TextSegment


@dataclass(frozen=True, slots=True)
class CitationShown:
    """The next place of a citation in the text."""

    segment: CitationSegment
    citation: Citation


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of what a language model wrote, whether it is shown or not; for those who count."""

    verdicts: Mapping[str, int]
    """``valid``, ``added`` (found by us where the model set no marker that holds), ``unsupported``, ``unknown``,
    ``malformed``; ``withheld`` counts sentences."""


Shown = TextShown | CitationShown
Event = SourcesFound | TextShown | CitationShown | Checked | Answer


def shown_of(answer: Answer) -> list[Shown]:
    """The pieces of a whole answer."""
    return [
        TextShown(segment)
        if isinstance(segment, TextSegment)
        else CitationShown(segment, answer.citations[segment.citation])
        for segment in answer.segments
    ]
