"""
What a generated context may say: nothing that the card does not say, and nothing that is not a plain sentence.

A context is a retrieval signal and never an authority, so a wrong refusal costs little (the chunk keeps its metadata
context) and what slips through is never shown. Out of reach of these checks: numbers in words, units, a name that
opens a sentence or is written in small letters, a third language in Spanish letters, and a false statement made of the
card's own words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from rag.contextual.form import find_foreign, find_markup, unquoted, without_lead
from rag.contextual.instructions import find_instruction
from rag.contextual.references import (
    invented_name,
    invented_number,
    invented_page,
    invented_quote,
    invented_section,
    invented_url,
)
from rag.contextual.words import CardWords, fold
from rag.records import Chunk
from rag.terms import terms

VALIDATION_VERSION = 1
"""Raise it when the same answer would be judged otherwise. No call is paid for because of it."""
CONTEXT_CHARS = 500
DETAIL_CHARS = 60
_CUT_OFF = frozenset({"length", "max_tokens", "content_filter"})


class Reason(StrEnum):
    """Why a context was refused; the names are stable."""

    TRUNCATED = "truncated"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    MARKUP = "markup"
    INSTRUCTIONS = "instructions"
    WRONG_LANGUAGE = "wrong_language"
    ECHO = "echo"
    OFF_TOPIC = "off_topic"
    INVENTED_URL = "invented_url"
    INVENTED_NUMBER = "invented_number"
    INVENTED_PAGE = "invented_page"
    INVENTED_SECTION = "invented_section"
    INVENTED_TITLE = "invented_title"
    INVENTED_NAME = "invented_name"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A context that is not used, with the piece that decided it."""

    reason: Reason
    detail: str = ""


def check_context(answer: str, words: CardWords, chunk: Chunk, *, finish_reason: str | None = None) -> str | Rejection:
    """
    The context that an answer makes for a chunk, or why it makes none.

    Whitespace is folded, and quotes around the whole and a lead such as ``El fragmento trata sobre`` are left out:
    they say nothing of the chunk, and the same words before every chunk only make chunks more alike.
    """
    if finish_reason in _CUT_OFF:
        return Rejection(Reason.TRUNCATED, str(finish_reason))
    raw = unicodedata.normalize("NFC", answer).strip()
    context = unquoted(" ".join(raw.split()))
    if not any(letter.isalpha() for letter in context):
        return Rejection(Reason.EMPTY)
    if len(context) > CONTEXT_CHARS:
        return Rejection(Reason.TOO_LONG, f"{len(context)} characters")
    checks: tuple[tuple[Reason, Callable[[], str]], ...] = (
        (Reason.INVENTED_URL, lambda: invented_url(context, words)),
        (Reason.MARKUP, lambda: find_markup(raw)),
        (Reason.INSTRUCTIONS, lambda: find_instruction(raw)),
        (Reason.WRONG_LANGUAGE, lambda: find_foreign(context, words)),
        (Reason.INVENTED_PAGE, lambda: invented_page(context, words)),
        (Reason.INVENTED_SECTION, lambda: invented_section(context, words)),
        (Reason.INVENTED_TITLE, lambda: invented_quote(context, words)),
        (Reason.INVENTED_NUMBER, lambda: invented_number(context, words)),
        (Reason.INVENTED_NAME, lambda: invented_name(context, words)),
        (Reason.ECHO, lambda: _echo(context, chunk)),
        (Reason.OFF_TOPIC, lambda: _off_topic(context, words)),
    )
    for reason, find in checks:
        found = find()
        if found:
            return Rejection(reason, found[:DETAIL_CHARS])
    return without_lead(context)


_ECHO_SHARE = 0.9
"""Of the runs of three words of a context: what the chunk has so many of, it says itself."""
_TOPIC_SHARE = 1 / 3
"""Of the longer words of a context that its card should have; the words that only tell are others."""
_LEAST_TERMS = 4


def _echo(context: str, chunk: Chunk) -> str:
    """The context, if the chunk says the same in the same words."""
    said, own = fold(context).split(), fold(chunk.text).split()
    size = min(3, len(said))
    there = {tuple(own[at : at + size]) for at in range(len(own) - size + 1)}
    runs = [tuple(said[at : at + size]) for at in range(len(said) - size + 1)]
    share = sum(run in there for run in runs) / len(runs)
    return context if share >= _ECHO_SHARE else ""


def _off_topic(context: str, words: CardWords) -> str:
    """The context, if hardly a word of it is the card's: an excuse, or the topic of another card."""
    said = terms(context)
    return context if len(said) >= _LEAST_TERMS and len(said & words.terms) < _TOPIC_SHARE * len(said) else ""
