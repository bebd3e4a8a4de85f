"""The JSON that a model was asked for, read from what it wrote instead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag.errors import RagError

STARTS_TRIED = 16
"""Opening brackets at which an object is looked for."""
CITATIONS_READ = 32
_THOUGHT_END = "</think>"
# a string without an end is passed over too, or each quote in it would be looked at as the start of one
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[}\]])', re.DOTALL)

REPLY_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "citations": {"type": "array", "items": {"type": "string"}},
        "refused": {"type": "boolean"},
    },
    "required": ["answer", "citations", "refused"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered."""

    answer: str
    """With its markers, if it set any."""
    card_ids: tuple[str, ...]
    """As it listed them; nothing is known of these cards yet."""
    refused: bool


class ReplyUnreadable(RagError):
    """A model's text holds no answer in the form that was asked for."""


def read_reply(text: str) -> Reply:
    """
    The first object with an answer in a model's text, whatever stands around it.

    Code fences, thoughts, commas before a closing bracket, line breaks in strings, names in capitals, a list around the
    object, a list of sentences and a bare string in place of a list are forgiven. A text without any bracket is an
    answer itself, for servers that know no JSON mode.

    Raises:
        ReplyUnreadable: there is none.
    """
    said = text.rpartition(_THOUGHT_END)[2].lstrip("\ufeff").strip()
    starts = [found.start() for found in re.finditer(r"[\[{]", said)][:STARTS_TRIED]
    if not any(said[start] == "{" for start in starts):
        if not said or said.startswith(("[", '"', "```")) or said.endswith("}"):
            raise ReplyUnreadable("The language model wrote neither an object nor a sentence.")
        return Reply(said, (), refused=False)
    for start in starts:
        reply = _reply(_value(said[start:]))
        if reply:
            return reply
    raise ReplyUnreadable("The language model wrote no object with an answer.")


def _value(text: str) -> object:
    """The value that a text starts with; None where it starts with none."""
    decoder = json.JSONDecoder(strict=False)
    for attempt in (text, _TRAILING_COMMA.sub(lambda found: found.group(1) or "", text)):
        try:
            value: object = decoder.raw_decode(attempt)[0]
        except (ValueError, RecursionError):
            continue
        return value
    return None


def _reply(value: object) -> Reply | None:
    if isinstance(value, list):
        value = next((item for item in value if isinstance(item, dict)), None)
    if not isinstance(value, dict):
        return None
    named = {str(name).strip().lower(): content for name, content in value.items()}
    answer, refused = named.get("answer"), named.get("refused") is True
    if isinstance(answer, list) and all(isinstance(sentence, str) for sentence in answer):
        # sentence by sentence
        answer = "\n".join(answer)
    if not isinstance(answer, str) or not (answer.strip() or refused):
        return Reply("", (), refused=True) if refused else None
    listed = named.get("citations")
    items = listed if isinstance(listed, list) else [listed]
    # half of a surrogate pair, which JSON can spell, cannot be sent on
    answer = answer.encode("utf-8", "replace").decode("utf-8")
    return Reply(answer, tuple(item for item in items[:CITATIONS_READ] if isinstance(item, str)), refused=refused)
