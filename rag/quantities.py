"""Numbers with their units in Spanish and English text, in one form, so that a text can be checked for another's."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction

_UNITS: dict[str, tuple[str, Fraction]] = {}


def _unit(dimension: str, factor: str | int, names: str) -> None:
    for name in names.split():
        _UNITS[name] = (dimension, Fraction(factor))


# what people write, without accents; each in a dimension, and how many of its base unit it is
_unit("mass", "1/1000", "mcg ug µg μg microgramo microgramos microgram micrograms")
_unit("mass", 1, "mg miligramo miligramos milligram milligrams")
_unit("mass", 1000, "g gr gramo gramos gram grams")
_unit("mass", 1_000_000, "kg kilo kilos kilogramo kilogramos kilogram kilograms")
_unit("volume", 1, "ml cc mililitro mililitros millilitre millilitres milliliter milliliters")
_unit("volume", 10, "cl centilitro centilitros")
_unit("volume", 1000, "l litro litros litre litres liter liters")
_unit("time", 1, "s seg segundo segundos sec second seconds")
_unit("time", 60, "min mins minuto minutos minute minutes")
_unit("time", 3600, "h hs hora horas hour hours hr hrs")
_unit("time", 86_400, "dia dias day days")
_unit("time", 604_800, "semana semanas week weeks")
_unit("months", 1, "mes meses month months")
_unit("months", 12, "ano anos year years")
_unit("length", 1, "mm milimetro milimetros millimetre millimetres")
_unit("length", 10, "cm centimetro centimetros centimetre centimetres centimeter centimeters")
_unit("length", 1000, "m metro metros metre metres meter meters")
_unit("length", 1_000_000, "km kilometro kilometros kilometre kilometres")
_unit("temperature", 1, "°c ºc ° º grado grados degree degrees °")
_unit("share", 1, "% por_ciento percent")
_unit("euros", 1, "€ eur euro euros")
_unit("dollars", 1, "$ dolar dolares dollar dollars usd")
_unit("pounds", 1, "£ gbp")
_unit("units", 1, "ui iu unidades units")
_unit("doses", 1, "dosis dose doses toma tomas")
_unit(
    "pieces", 1, "comprimido comprimidos pastilla pastillas tableta tabletas tablet tablets pill pills capsula capsulas"
)
_unit("pieces", 1, "capsule capsules sobre sobres sachet sachets parche parches patch patches")
_unit("drops", 1, "gota gotas drop drops")
_unit("puffs", 1, "puff puffs inhalacion inhalaciones pulsacion pulsaciones")
_unit("spoons", 1, "cucharada cucharadas cucharadita cucharaditas tablespoon tablespoons teaspoon teaspoons")
_unit("times", 1, "vez veces times")

_WORDS: dict[str, Fraction] = {
    word: Fraction(value)
    for value, words in {
        "1/2": "medio media half",
        "2": "dos two twice",
        "3": "tres three",
        "4": "cuatro four",
        "5": "cinco five",
        "6": "seis six",
        "7": "siete seven",
        "8": "ocho eight",
        "9": "nueve nine",
        "10": "diez ten",
        "11": "eleven",
        "12": "doce twelve",
        "13": "trece thirteen",
        "14": "catorce fourteen",
        "15": "quince fifteen",
        "16": "dieciseis sixteen",
        "17": "diecisiete seventeen",
        "18": "dieciocho eighteen",
        "19": "diecinueve nineteen",
        "20": "veinte twenty",
        "21": "veintiuno veintiun veintiuna",
        "22": "veintidos",
        "23": "veintitres",
        "24": "veinticuatro",
        "25": "veinticinco",
        "26": "veintiseis",
        "27": "veintisiete",
        "28": "veintiocho",
        "29": "veintinueve",
        "30": "treinta thirty",
        "40": "cuarenta forty",
        "48": "cuarentaiocho",
        "50": "cincuenta fifty",
        "60": "sesenta sixty",
        "70": "setenta seventy",
        "80": "ochenta eighty",
        "90": "noventa ninety",
        "100": "cien hundred",
        "200": "doscientos doscientas",
        "300": "trescientos trescientas",
        "400": "cuatrocientos cuatrocientas",
        "500": "quinientos quinientas",
        "600": "seiscientos seiscientas",
        "700": "setecientos setecientas",
        "800": "ochocientos ochocientas",
        "900": "novecientos novecientas",
        "1000": "mil thousand",
    }.items()
    for word in words.split()
}
# words that are more often something else: a text that is checked for a number may hold them, and they claim none
_UNCLAIMED = {**dict.fromkeys("un una uno one a an".split(), (1,)), "once": (1, 11)}
_HALVES = frozenset("medio media half".split())

_TOKEN = re.compile(
    r"(?P<number>\d+(?:[.,'\u00a0\u202f]\d+)*(?:\s?[/:]\s?\d+)?|[½¼¾⅓⅔])"
    r"|(?P<unit>°\s?[cC]\b|º\s?[cC]\b|[%€$£°º]|[^\W\d_]+)"
    r"|(?P<dash>[-–—])"
)
_JOINS = frozenset("a o y u to or and".split())
_FRACTIONS = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3"}
_LIST_NUMBER = re.compile(r"^[ \t]*\d{1,3}[.)](?=\s)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, what it can mean, and its unit."""

    written: str
    values: frozenset[Fraction]
    """In the dimension's base unit; more than one for a word that is a number in both languages."""
    dimension: str | None
    """None for a number without a unit that is known."""


def quantities(text: str, *, as_source: bool = False) -> list[Quantity]:
    """
    The quantities of a text, in their order; numbers that only count the items of a list are none.

    In a range both ends have the unit behind the second: "4-6 horas", "de 4 a 6 horas". ``as_source`` takes words such
    as "un" and "once" for numbers too, which others may be found in.
    """
    plain = _LIST_NUMBER.sub(lambda found: " " * len(found.group()), _without_accents(text))
    waiting: list[tuple[str, frozenset[Fraction]]] = []
    done: list[Quantity] = []
    joined = False
    for token in _TOKEN.finditer(plain):
        written = token.group().replace(" ", "").lower()
        joins = token.lastgroup == "dash" or (written in _JOINS and bool(waiting) and not joined)
        values = frozenset() if joins else _values(token, as_source=as_source)
        if values:
            if not joined:
                done += _with_unit(waiting, "")
                waiting = []
            waiting.append((token.group(), values))
        elif not joins:
            # what joins two numbers was none if no second came
            done += _with_unit(waiting, "" if joined else written)
            waiting = []
        joined = joins and bool(waiting)
    done += _with_unit(waiting, "")
    return done if as_source else [found for found in done if found.dimension or found.written.lower() not in _HALVES]


def missing_quantities(claimed: str, held: Collection[Quantity]) -> list[str]:
    """What a text claims, as written, and ``held`` has not: with the same unit, where it has one that is known."""
    return [found.written for found in quantities(claimed) if not any(_same(found, other) for other in held)]


def _same(claimed: Quantity, held: Quantity) -> bool:
    if claimed.dimension is None:
        return not claimed.values.isdisjoint(held.values) or claimed.written == held.written
    return claimed.dimension == held.dimension and not claimed.values.isdisjoint(held.values)


def _with_unit(found: Iterable[tuple[str, frozenset[Fraction]]], unit: str) -> list[Quantity]:
    dimension, factor = _UNITS.get(unit, (None, Fraction(1)))
    return [Quantity(written, frozenset(value * factor for value in values), dimension) for written, values in found]


def _values(token: re.Match[str], *, as_source: bool) -> frozenset[Fraction]:
    if token.lastgroup == "unit":
        word = token.group().lower()
        if as_source and word in _UNCLAIMED:
            return frozenset(map(Fraction, _UNCLAIMED[word]))
        return frozenset((_WORDS[word],)) if word in _WORDS else frozenset()
    if token.lastgroup != "number":
        return frozenset()
    written = _FRACTIONS.get(token.group(), token.group())
    parts = re.split(r"\s?([/:])\s?", written)
    if len(parts) == 3:
        first, second = (Fraction(part) if part.isascii() and part.isdigit() else None for part in parts[::2])
        if first is None or second is None or (parts[1] == "/" and not second):
            return frozenset()
        return frozenset((first / second if parts[1] == "/" else first * 60 + second,))
    return frozenset(_readings(written))


def _readings(written: str) -> Iterable[Fraction]:
    """What digits with points and commas can mean."""
    digits = re.split(r"[.,'\u00a0\u202f]", written)
    if not all(part.isascii() and part.isdigit() for part in digits) or len(written) > 40:
        return
    if len(digits) == 1:
        yield Fraction(int(written))
        return
    if all(len(part) == 3 for part in digits[1:]) and 1 <= len(digits[0]) <= 3 and digits[0] != "0":
        # read as a decimal as well, every ten would hold ten thousand
        yield Fraction(int("".join(digits)))
    elif len(digits) == 2:
        yield Fraction(int("".join(digits)), 10 ** len(digits[1]))


def _without_accents(text: str) -> str:
    """The same length, but without accents and with plain digits: each sign by itself."""
    return "".join(str(unicodedata.decimal(sign, unicodedata.normalize("NFD", sign)[0])) for sign in text)
