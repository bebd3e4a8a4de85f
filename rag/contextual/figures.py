"""Numbers in digits, compared by value: 1,5 is 1.5, and 1.000 may be 1000."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

# runs of digits with single points or commas between them
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?![\d])")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written, and the values it may have."""

    text: str
    readings: frozenset[str]
    parts: tuple[Number, ...] = ()
    """``10 000`` may also be two numbers side by side."""


def values_in(text: str) -> frozenset[str]:
    """Every value that a number of a text may have."""
    numbers = [part for number in numbers_in(text) for part in (number, *number.parts)]
    return frozenset(reading for number in numbers for reading in number.readings)


def is_among(number: Number, values: frozenset[str]) -> bool:
    """Whether a number may be one of these values, or all its parts are."""
    in_parts = bool(number.parts) and all(is_among(part, values) for part in number.parts)
    return in_parts or not values.isdisjoint(number.readings)


def numbers_in(text: str) -> Iterator[Number]:
    """
    The numbers of a text in order, whatever letters they touch.

    ``1.000`` reads as a thousand and as one with three decimals. Signs such as ½ and ² count as numbers of their own
    and come last. Numbers in words are not seen.
    """
    position = 0
    spaced = {match.start(): match.group() for match in _SPACED.finditer(text)}
    for match in _DIGITS.finditer(text):
        if match.start() < position:
            continue
        whole = spaced.get(match.start(), "")
        if whole:
            pieces = tuple(Number(piece, frozenset({_integer(piece)})) for piece in _DIGITS.findall(whole))
            joined = frozenset({_integer("".join(piece.text for piece in pieces))})
            # no number begins with a zero, so `000` can only be the end of one
            apart = pieces if not any(piece.text[0] == "0" for piece in pieces[1:]) else ()
            yield Number(whole, joined, apart)
            position = match.start() + len(whole)
        else:
            yield Number(match.group(), _readings(match.group()))
    for sign in text:
        if not sign.isdecimal() and unicodedata.category(sign) in ("No", "Nl"):
            yield Number(sign, frozenset({sign}))


def _readings(written: str) -> frozenset[str]:
    parts = re.split(r"[.,]", written)
    signs = {sign for sign in written if sign in ".,"}
    if len(parts) == 1:
        return frozenset({_integer(written)})
    grouped = len(parts[0]) <= 3 and parts[0].strip("0") != "" and all(len(part) == 3 for part in parts[1:])
    if len(parts) == 2:
        decimal = _decimal(parts[0], parts[1], keep_zeros=grouped)
        return frozenset({decimal, _integer("".join(parts))} if grouped else {decimal})
    if len(signs) == 1:
        return frozenset({_integer("".join(parts))} if grouped else {written})
    # 1.234,5: the last sign is the decimal one if the others group by three
    head = parts[:-1]
    if (
        len(head[0]) <= 3
        and all(len(part) == 3 for part in head[1:])
        and len(set(re.findall(r"[.,]", written)[:-1])) == 1
    ):
        return frozenset({_decimal("".join(head), parts[-1], keep_zeros=False)})
    return frozenset({written})


def _integer(digits: str) -> str:
    return "".join(str(unicodedata.decimal(digit)) for digit in digits).lstrip("0") or "0"


def _decimal(whole: str, fraction: str, *, keep_zeros: bool) -> str:
    plain = "".join(str(unicodedata.decimal(digit)) for digit in fraction)
    plain = plain if keep_zeros else plain.rstrip("0")
    return f"{_integer(whole)}.{plain}" if plain else _integer(whole)
