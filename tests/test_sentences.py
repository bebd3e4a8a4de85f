"""The spans that an answer may quote."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag.cards import read_cards
from rag.markdown import Kind, scan_lines
from rag.sentences import split_sentences
from tests.conftest import ROOT

BOUNDED = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

PIECES = [
    "Uno.",
    "dos",
    "¿Tres?",
    "¡Cuatro!",
    "5.5",
    "p. ej.",
    "Dr.",
    "…",
    "«Sí.»",
    "\n",
    "\n\n",
    " ",
    "- ",
    "1. ",
    "# ",
]
MARKUP = st.lists(st.sampled_from([*PIECES, "| a | b |", "|---|---|", "```", "---", "===", "> ", "años"]), max_size=20)
TEXT = st.one_of(MARKUP.map(" ".join), MARKUP.map("".join), MARKUP.map("\n".join), st.text(max_size=200))


def quotes(text: str) -> list[str]:
    return [text[sentence.span.start : sentence.span.end] for sentence in split_sentences(text)]


@given(TEXT)
@example("- \nUno.")
@BOUNDED
def test_spans_are_in_order_and_apart(text: str) -> None:
    """Sentences are in reading order, do not overlap, and have no white space around them."""
    spans = [sentence.span for sentence in split_sentences(text)]
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(quote == quote.strip() for quote in quotes(text))


@given(TEXT)
@example("| a |\n|---|\n| |")
@BOUNDED
def test_sentences_hold_something_to_read(text: str) -> None:
    """Every sentence has a letter or a digit in its quote, and its searched text is one line."""
    for sentence, quote in zip(split_sentences(text), quotes(text), strict=True):
        assert any(letter.isalnum() for letter in quote)
        assert sentence.text == " ".join(sentence.text.split())


@given(TEXT)
@BOUNDED
def test_headings_code_and_rules_are_in_no_sentence(text: str) -> None:
    """No sentence reaches into a heading, code, a rule, a blank line or a table's header."""
    forbidden = (Kind.HEADING, Kind.CODE, Kind.RULE, Kind.BLANK, Kind.TABLE_HEADER, Kind.TABLE_RULE)
    for line in scan_lines(text):
        if line.kind in forbidden:
            spans = [sentence.span for sentence in split_sentences(text)]
            assert not any(span.start < line.end and line.start < span.end for span in spans)


@given(TEXT)
@BOUNDED
def test_every_word_of_the_text_can_be_quoted(text: str) -> None:
    """A letter of a paragraph or list item is in a sentence, unless its sentence only announces a list."""
    spans = [sentence.span for sentence in split_sentences(text)]
    held = {position for span in spans for position in range(span.start, span.end)}
    for line in scan_lines(text):
        if line.kind in (Kind.TEXT, Kind.ITEM) and ":" not in text:
            missing = [text[at] for at in range(line.content, line.end) if at not in held and text[at].isalnum()]
            assert not missing


PROSE = [
    ("two", "Tome la pastilla. Beba agua.", ["Tome la pastilla.", "Beba agua."]),
    ("no full stop", "Tome la pastilla", ["Tome la pastilla"]),
    ("decimals", "Tome 1.5 mg al día. Nunca 2.5 mg.", ["Tome 1.5 mg al día.", "Nunca 2.5 mg."]),
    ("decimal comma", "Tome 1,5 mg. Beba agua.", ["Tome 1,5 mg.", "Beba agua."]),
    ("thousands", "Son 1.000 mg. Más no.", ["Son 1.000 mg.", "Más no."]),
    (
        "p. ej.",
        "Evite cítricos, p. ej. Pomelo o lima. Beba agua.",
        ["Evite cítricos, p. ej. Pomelo o lima.", "Beba agua."],
    ),
    ("Dr.", "Pregunte al Dr. García. Él sabe.", ["Pregunte al Dr. García.", "Él sabe."]),
    ("Sra.", "Vea a la Sra. López. Está allí.", ["Vea a la Sra. López.", "Está allí."]),
    ("initial", "Lo dijo J. García. Era así.", ["Lo dijo J. García.", "Era así."]),
    ("EE. UU.", "Se vende en EE. UU. También aquí.", ["Se vende en EE. UU. También aquí."]),
    ("aprox.", "Dura aprox. 5 días. Después, tírelo.", ["Dura aprox. 5 días.", "Después, tírelo."]),
    ("etc.", "Frutas, verduras, etc. y agua. Nada más.", ["Frutas, verduras, etc. y agua.", "Nada más."]),
    ("question", "¿Qué hago? Llame al 112. ¿Y si no?", ["¿Qué hago?", "Llame al 112.", "¿Y si no?"]),
    ("exclamation", "¡Cuidado! No conduzca.", ["¡Cuidado!", "No conduzca."]),
    ("both signs", "¿¡Otra vez!? Sí.", ["¿¡Otra vez!?", "Sí."]),
    ("question inside", "Si duda (¿cuánto?) pregunte. Siempre.", ["Si duda (¿cuánto?) pregunte.", "Siempre."]),
    ("ellipsis sign", "Espere… Ahora sí. Tome…", ["Espere…", "Ahora sí.", "Tome…"]),
    ("ellipsis goes on", "Espere... y luego tome. Bien.", ["Espere... y luego tome.", "Bien."]),
    ("quotation marks", "Dijo: «No la tome.» Y se fue.", ["Dijo: «No la tome.»", "Y se fue."]),
    ("brackets", "(Solo adultos.) Beba agua.", ["(Solo adultos.)", "Beba agua."]),
    ("bold", "**No lo mezcle.** Espere.", ["**No lo mezcle.**", "Espere."]),
    ("begins with a digit", "Espere. 8 horas bastan.", ["Espere.", "8 horas bastan."]),
    ("over lines", "Tome la\npastilla. Beba\nagua.", ["Tome la\npastilla.", "Beba\nagua."]),
    ("two paragraphs", "Uno\n\nDos", ["Uno", "Dos"]),
    ("hour", "Tome a las 8:30. Luego a las 20:30.", ["Tome a las 8:30.", "Luego a las 20:30."]),
    ("url", "Vea https://ejemplo.invalid/a.b?c=d. Hay más.", ["Vea https://ejemplo.invalid/a.b?c=d.", "Hay más."]),
    ("English", "Take one tablet. Wait 8 hours.", ["Take one tablet.", "Wait 8 hours."]),
    ("Mr.", "Ask Mr. Smith. He knows.", ["Ask Mr. Smith.", "He knows."]),
    ("e.g.", "Avoid some, e.g. Grapefruit. Drink water.", ["Avoid some, e.g. Grapefruit.", "Drink water."]),
    ("i.e.", "Once, i.e. One time. Not more.", ["Once, i.e. One time.", "Not more."]),
    ("a.m.", "Take it at 8 a.m. every day. Wait.", ["Take it at 8 a.m. every day.", "Wait."]),
    ("English question", "Can I drive? No, wait. Why?", ["Can I drive?", "No, wait.", "Why?"]),
    ("emoji", "Tome 👩‍⚕️ agua. Sí.", ["Tome 👩‍⚕️ agua.", "Sí."]),
    ("only signs", "... --- !!!", []),
    ("nothing", "", []),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in PROSE], ids=[row[0].replace(" ", "-") for row in PROSE]
)
def test_prose_is_cut_at_sentence_ends(text: str, expected: list[str]) -> None:
    """A sentence ends where a reader ends it: not at decimals, abbreviations, initials or inner questions."""
    assert quotes(text) == expected


BLOCKS = [
    ("list", "- Uno.\n- Dos. Tres.\n* Cuatro", ["Uno.", "Dos.", "Tres.", "Cuatro"]),
    ("numbers", "1. Lave.\n2. Seque.\n10) Guarde.", ["Lave.", "Seque.", "Guarde."]),
    ("item over lines", "- Uno que\n  sigue.\n- Dos.", ["Uno que\n  sigue.", "Dos."]),
    ("nested list", "- Uno.\n  - Dos.", ["Uno.", "Dos."]),
    ("announcement", "Necesita:\n\n- Agua.\n- Jabón.", ["Agua.", "Jabón."]),
    ("announcement behind a sentence", "Lave. Necesita:\n\n- Agua.", ["Lave.", "Agua."]),
    ("announcement right above", "Necesita:\n- Agua.", ["Agua."]),
    ("headings", "# Uno\n\nTexto.\n\n## Dos ##\nMás.", ["Texto.", "Más."]),
    ("setext", "Título\n---\nTexto.\n\nOtro\n===\n\nMás.", ["Texto.", "Más."]),
    ("rule", "Uno.\n\n---\n\nDos.", ["Uno.", "Dos."]),
    ("code", "Uno.\n\n```\nx = 1. Y = 2.\n```\n\nDos.", ["Uno.", "Dos."]),
    ("open code", "Uno.\n\n~~~\nx = 1.", ["Uno."]),
    ("quote", "> Uno. Dos.", ["Uno.", "Dos."]),
    ("table", "| a | b |\n|---|---|\n| 1. | 2. Sí. |\n| 3 | 4 |", ["| 1. | 2. Sí. |", "| 3 | 4 |"]),
    ("text, table, text", "Uno.\n\n| a |\n|---|\n| 1 |\n\nDos.", ["Uno.", "| 1 |", "Dos."]),
    ("an empty row", "| a | b |\n|---|---|\n|  |  |\n| 1 | 2 |", ["| 1 | 2 |"]),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in BLOCKS], ids=[row[0].replace(" ", "-") for row in BLOCKS]
)
def test_blocks_are_not_mixed(text: str, expected: list[str]) -> None:
    """Markers, headings, code, rules and announcements are outside all sentences; a table row is one."""
    assert quotes(text) == expected


ROWS = [
    ("named", "| Envase | Hora |\n|---|---|\n| F83 | 11:00 |", "Envase: F83; Hora: 11:00"),
    ("more cells", "| Envase |\n|---|\n| F83 | 11:00 |", "Envase: F83; 11:00"),
    ("fewer cells", "| Envase | Hora |\n|---|---|\n| F83 |", "Envase: F83"),
    ("second table", "| a |\n|---|\n\n| b |\n|---|\n| 1 |", "b: 1"),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in ROWS], ids=[row[0].replace(" ", "-") for row in ROWS]
)
def test_a_row_is_found_by_its_columns(text: str, expected: str) -> None:
    """The text by which a row is found names each cell's column."""
    assert split_sentences(text)[-1].text == expected


def test_a_sentence_over_lines_is_found_as_one_line() -> None:
    """The searched text has its lines joined, the quote keeps them."""
    [sentence] = split_sentences("Tome la\n  pastilla.")
    assert sentence.text == "Tome la pastilla."


def test_every_example_card_can_be_quoted() -> None:
    """Each of the example cards has sentences, none of them longer than a paragraph."""
    for card in read_cards(ROOT / "cards").cards:
        found = quotes(card.text)
        assert found
        assert not any("\n\n" in quote for quote in found)
