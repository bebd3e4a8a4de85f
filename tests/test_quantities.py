"""Numbers with their units: which a text claims, and which of them another text holds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.quantities import missing_quantities, quantities
from tests.growth import grows_in_step

BOUNDED = settings(
    max_examples=200, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def missing(claim: str, source: str) -> list[str]:
    return missing_quantities(claim, quantities(source, as_source=True))


# what a claim says, what the source says: the same
HELD = [
    ("Tome 500 mg.", "La dosis es de 500 mg."),
    ("500mg", "500 miligramos"),
    ("1 g", "1000 mg"),
    ("0,5 g", "500 mg"),
    ("0.5 g", "0,5 g"),
    ("1.000 mg", "1 g"),
    ("1,000 mg", "1 g"),
    ("1\u00a0000 mg", "1 g"),
    ("1'000 mg", "1 g"),
    ("1.0 mg", "1 mg"),
    ("250 mcg", "0,25 mg"),
    ("250 µg", "250 microgramos"),
    ("2 kg", "2000 gramos"),
    ("2 litros", "2000 ml"),
    ("20 cl", "200 ml"),
    ("48 horas", "2 días"),
    ("14 days", "two weeks"),
    ("1 año", "12 meses"),
    ("90 min", "1,5 horas"),
    ("37,5 ºC", "37.5 °C"),
    ("37,5 °C", "37,5 grados"),
    ("10 %", "10%"),
    ("1,50 €", "1.5 euros"),
    ("4-6 horas", "de 4 a 6 horas"),
    ("cada 4 a 6 horas", "4–6 h"),
    ("5 y 10 mg", "5 mg, o 10 mg"),
    ("de 5 mg a 10 mg", "5-10 mg"),
    ("two or three days", "2-3 days"),
    ("cinco días", "5 días"),
    ("5 días", "cinco días"),
    ("Tres veces", "3 times"),
    ("trece pastillas", "13 comprimidos"),
    ("veintiún días", "21 días"),
    ("quinientos mg", "500 mg"),
    ("thirty minutes", "media hora"),
    ("media pastilla", "1/2 comprimido"),
    ("½ comprimido", "medio comprimido"),
    ("half a tablet", "x"),
    ("a las 8:30", "8:30 y 20:30"),
    ("8 : 30", "8:30"),
    ("2 cápsulas", "dos pastillas"),
    ("3 dosis", "tres tomas"),
    ("２００ mg", "200 mg"),
    ("٣ mg", "3 mg"),
    ("24 horas", "un día"),
    ("11 días", "once días"),
    ("112", "Llame al 112."),
    ("5", "5 mg"),
    ("B12", "vitamina B12"),
    ("2026-11-30", "2026-11-30"),
]


@pytest.mark.parametrize(("claim", "source"), HELD, ids=[f"{claim} in {source}" for claim, source in HELD])
def test_a_quantity_is_held_however_it_is_written(claim: str, source: str) -> None:
    """Units, decimal signs, thousands, ranges, words and halves are the same quantity in another form."""
    assert missing(claim, source) == []


MISSING = [
    ("Tome 600 mg.", "500 mg", ["600"]),
    ("500 g", "500 mg", ["500"]),
    ("500 mg", "500 ml", ["500"]),
    ("500 mg", "500", ["500"]),
    ("5 g", "500 mg", ["5"]),
    ("4 a 8 horas", "4-6 horas", ["8"]),
    ("cada 4-6 horas", "cada 4-6 días", ["4", "6"]),
    ("2 semanas", "2 días", ["2"]),
    ("30 días", "1 mes", ["30"]),
    ("trece pastillas", "12 pastillas", ["trece"]),
    ("veintiocho días", "21 días", ["veintiocho"]),
    ("treinta mg", "40 mg", ["treinta"]),
    ("media hora", "15 minutos", ["media"]),
    ("½ comprimido", "1 comprimido", ["½"]),
    ("1,5 mg", "15 mg", ["1,5"]),
    ("1.500 mg", "15 g", ["1.500"]),
    ("8:30", "8:00", ["8:30"]),
    ("112", "113", ["112"]),
    ("38 °C", "37,5 °C y 38 %", ["38"]),
    ("5 mg y 6 ml", "5 ml y 6 mg", ["5", "6"]),
    ("２００ mg", "100 mg", ["200"]),
    ("2 tablets", "two times", ["2"]),
]


@pytest.mark.parametrize(
    ("claim", "source", "expected"), MISSING, ids=[f"{claim} in {source}" for claim, source, _ in MISSING]
)
def test_another_quantity_is_missing(claim: str, source: str, expected: list[str]) -> None:
    """A number that is not there, or is there with another unit only, is named as it was written."""
    assert missing(claim, source) == expected


NOTHING = [
    "Beba agua.",
    "1. Lave.\n2. Seque.\n10) Guarde.",
    "Tome una pastilla una vez.",
    "Take one tablet, once a day.",
    "La parte media del día, o medio.",
    "Half of them",
    "De la A a la Z - y más",
    "5/0",
    "",
]


@pytest.mark.parametrize("text", NOTHING, ids=[repr(text) for text in NOTHING])
def test_text_that_claims_no_quantity(text: str) -> None:
    """Numbers of lists, articles and halves of no unit are no claims."""
    assert quantities(text) == []


VALUES = [
    ("1,5 g", [("1,5", {"1500"}, "mass")]),
    ("1.500 mg", [("1.500", {"1500"}, "mass")]),
    ("4-6 h", [("4", {"14400"}, "time"), ("6", {"21600"}, "time")]),
    ("8:30", [("8:30", {"510"}, None)]),
    ("3/4 de hora", [("3/4", {"3/4"}, None)]),
    ("2 años", [("2", {"24"}, "months")]),
    ("5 mg/kg", [("5", {"5"}, "mass")]),
    ("Son 3. Tome 2 ml", [("3", {"3"}, None), ("2", {"2"}, "volume")]),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=[text for text, _ in VALUES])
def test_values_and_dimensions(text: str, expected: list[tuple[str, set[str], str | None]]) -> None:
    """A quantity is read in its dimension's base unit; a point that may divide thousands gives both readings."""
    found = [(each.written, each.values, each.dimension) for each in quantities(text)]
    assert found == [(written, frozenset(map(Fraction, values)), unit) for written, values, unit in expected]


def test_words_that_are_numbers_in_a_source_only() -> None:
    """A source that says "un" or "once" holds one or eleven, and a text that says so claims neither."""
    assert [each.values for each in quantities("once", as_source=True)] == [{Fraction(1), Fraction(11)}]
    assert quantities("once") == []


UNITS = ["mg", "g", "ml", "horas", "días", "%", "comprimidos", "tablets", "°C", ""]
SAYINGS = st.lists(
    st.tuples(st.integers(0, 9_999), st.sampled_from(UNITS)).map(lambda pair: f"{pair[0]} {pair[1]}"), max_size=6
)


@given(SAYINGS.flatmap(lambda sayings: st.tuples(st.just(sayings), st.permutations(sayings))))
@BOUNDED
def test_a_text_holds_its_own_quantities(both: tuple[list[str], list[str]]) -> None:
    """Nothing is missing from a text that says the same in another order."""
    sayings, mixed = both
    assert missing(", así, ".join(sayings), ", y allí, ".join(mixed)) == []


@given(st.text(max_size=80))
@BOUNDED
def test_any_text_holds_what_it_claims(text: str) -> None:
    """Whatever a text is, it is read, and holds its own quantities."""
    assert missing(text, text) == []


@pytest.mark.parametrize("piece", ["9", "1.", "1 ", "1-", "a ", "1:", "½", "1 a ", "º c", "\n1. "])
def test_reading_grows_with_the_text(piece: str) -> None:
    """No text makes it slow, a number of any length included."""
    assert grows_in_step(quantities, piece, times=2_500)
