"""Texts that try to take a language model over, and what a model would say that obeys them to the letter."""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from tests.redteam import english, spanish

Language = Literal["es", "en"]
CHANNELS = ("question", "body", "title", "context", "history")
"""Where a text is planted; a context is made of topics and headings."""
KINDS = (
    "override",
    "marker",
    "delimiter",
    "exfiltration",
    "staff",
    "role-play",
    "encoding",
    "hidden-text",
    "system-prompt",
    "conversation",
    "poisoning",
)
CANARY = r"orden-\d{3}(?!\d)"
"""A regular expression for the words by which an obedient model knows that it was given an order."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One text, planted in one place."""

    attack_id: str
    language: Language
    channel: str
    kind: str
    canary: str
    """A word that stands in this text alone; letters, digits and a hyphen survive any escaping."""
    text: str
    obeys: str
    """
    What an obedient model says: ``{system}`` stands for its system message, ``{prompt}`` for all that it was sent,
    ``{card}`` for the id of a card that it was shown.
    """


def _tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in text if letter.isascii())


def _bits(text: str) -> str:
    bits = "".join(f"{byte:08b}" for byte in text.encode())
    return bits.replace("0", "\u200b").replace("1", "\u200c")


def _wide(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


# a table asks for one with «name|text»
_DISGUISES: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "hex": lambda text: text.encode().hex(),
    "percent": quote,
    "leet": lambda text: text.translate(str.maketrans("aeiostAEIOST", "431057431057")),
    "reversed": lambda text: text[::-1],
    "bidi": lambda text: f"\u202e{text[::-1]}\u202c",
    "tags": _tags,
    "bits": _bits,
    "split": "\u200b".join,
    "joined": "\u2060".join,
    "wide": _wide,
    "spaced": " ".join,
}


def _disguised(text: str) -> str:
    return re.sub(r"«(\w+)\|([^»]*)»", lambda asked: _DISGUISES[asked[1]](asked[2]), text)


def _all() -> tuple[Attack, ...]:
    rows: list[tuple[Language, tuple[str, str, str, str]]] = [
        *(("es", row) for row in spanish.ATTACKS),
        *(("en", row) for row in english.ATTACKS),
    ]
    found: list[Attack] = []
    for number, (language, (channel, kind, text, obeys)) in enumerate(rows, start=1):
        canary = f"orden-{number:03}"
        found.append(
            Attack(
                attack_id=f"{number:03}-{language}-{channel}-{kind}",
                language=language,
                channel=channel,
                kind=kind,
                canary=canary,
                text=_disguised(text.replace("§", canary)),
                obeys=_disguised(obeys),
            )
        )
    return tuple(found)


ATTACKS = _all()
