"""Marks without a shape of their own: which there are, and where they are meant."""

from __future__ import annotations

import re
import unicodedata

BIDI = "\u202a-\u202e\u2066-\u2069"
"""Overrides, embeddings and isolates: they show text in another order than it is stored in."""
TAGS = "\U000e0000-\U000e007f"
"""They can spell any ASCII text without a trace on a screen."""
ZERO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
"""
What else takes no room: joiners, fillers, soft hyphens, variation selectors. For a class of a regular expression.

Source: with the two above, the property Default_Ignorable_Code_Point of Unicode.
"""

_RUN = re.compile(f"[{BIDI}{TAGS}{ZERO_WIDTH}]+")
_JOINERS = "\u200c\u200d"
# their letters neither join nor change shape, so a joiner among them is only a mark to hide things with
_UNJOINED = ("LATIN ", "GREEK ", "CYRILLIC ", "COMBINING ")


def drop_marks(text: str) -> str:
    """The text without them, but for those that vary the sign before them or join the letters or emoji around them."""
    return _RUN.sub(_meant, text)


def is_meant(run: re.Match[str]) -> bool:
    """Whether ``drop_marks`` keeps all of a run of marks."""
    return _meant(run) == run.group()


def _meant(run: re.Match[str]) -> str:
    before, after = run.string[max(0, run.start() - 1) : run.start()], run.string[run.end() : run.end() + 1]
    kept = ""
    for mark in run.group():
        if (not kept and _varies(mark, before, after)) or (mark in _JOINERS and _joins(before, after)):
            kept += mark
        if mark in _JOINERS and kept.endswith(mark):
            break
    return kept


def _joins(before: str, after: str) -> bool:
    return (_is_joined_letter(before) and _is_joined_letter(after)) or (_is_emoji(before) and _is_emoji(after))


def _is_joined_letter(sign: str) -> bool:
    return bool(sign) and unicodedata.category(sign)[0] in "LM" and not unicodedata.name(sign, "").startswith(_UNJOINED)


def _is_emoji(sign: str) -> bool:
    # arrows are mathematical signs, and the colour of a skin is a modifier
    return bool(sign) and (unicodedata.category(sign) in ("So", "Sm") or "\U0001f3fb" <= sign <= "\U0001f3ff")


def _varies(mark: str, before: str, after: str) -> bool:
    if not before:
        return False
    if "\u180b" <= mark <= "\u180d" or mark == "\u180f":
        return "\u1800" <= before <= "\u18af"
    ideograph = (
        "\u3400" <= before <= "\u9fff" or "\uf900" <= before <= "\ufaff" or "\U00020000" <= before <= "\U0003ffff"
    )
    if "\U000e0100" <= mark <= "\U000e01ef":
        return ideograph
    if not "\ufe00" <= mark <= "\ufe0f":
        return False
    if before.isascii():
        return before in "0123456789#*" and after == "\u20e3"
    return ideograph or before == "ℹ" or unicodedata.category(before) in ("So", "Sm", "Po", "Pd")
