"""Citation markers in what a model writes, in any form and any pieces."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag.markers import (
    MARKER_CHARS,
    TARGET_CHARS,
    Marker,
    MarkerScanner,
    Token,
    scan_markers,
    visible_text,
    without_markers,
)
from tests.conftest import CASES_DIR
from tests.cutting import CUTS, pieces_of
from tests.growth import grows_in_step

BOUNDED = settings(
    max_examples=200, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

SIGNS = [*"[](){}【】｛cite:сіе！：℮|!*_`\"'-./& \n\u200b\u2028\u0301", "aé", "card-1", "palabra"]
MARKUP = [
    "[cite:",
    "[cite:card-1]",
    "cite:",
    "](",
    "[c",
    "ite:",
    "[/",
    "&#91;",
    "&#58;",
    "&lbrack;",
    "&amp;",
    "x" * 700,
]
HOSTILE = st.one_of(st.lists(st.sampled_from(SIGNS + MARKUP), max_size=20).map("".join), st.text(max_size=60))
WORDS = st.lists(st.sampled_from("tome agua cada día 5,5 mg (solo) y/o [km/h] ¿sí? 8:30".split()), min_size=1).map(
    " ".join
)

ONE, TWO, TEN = "card-1", "card-2", "card-10"


def joined(tokens: Iterable[Token]) -> list[Token]:
    """Tokens with neighbouring texts as one."""
    found: list[Token] = []
    for token in tokens:
        if isinstance(token, str) and found and isinstance(found[-1], str):
            found[-1] += token
        else:
            found.append(token)
    return found


def text_of(tokens: Iterable[Token]) -> str:
    return "".join(token for token in tokens if isinstance(token, str))


def markers_of(tokens: Iterable[Token]) -> list[Marker]:
    return [token for token in tokens if isinstance(token, Marker)]


def feed(pieces: Iterable[str]) -> list[list[Token]]:
    """What came out at each piece, and at the end."""
    scanner = MarkerScanner()
    return [*(scanner.feed(piece) for piece in pieces), scanner.finish()]


def marker(*card_ids: str, malformed: bool = False) -> Marker:
    return Marker(card_ids, malformed)


NONE = marker(malformed=True)

FORMS: list[list[Token]] = [
    ["A ", marker(ONE), " b."],
    ["A ", marker(ONE, TWO), " b."],
    ["A ", marker(ONE), marker(TEN), " b."],
    ["A ", marker(ONE), " b."],
    ["A ", marker(ONE), " b."],
    ["A ", marker(ONE), ", ", marker(ONE), " b."],
    ["A ", marker("card-999"), " b."],
    ["A ", NONE, " b."],
    ["A ", NONE],
    ["A ", marker(ONE), " b."],
    ["A ", marker(ONE), " b."],
    ["A ", marker(ONE, TWO), " b."],
]
LINES = (CASES_DIR / "O16_marker_forms" / "llm.txt").read_text("utf-8").split("\n")


@pytest.mark.parametrize(("text", "expected"), list(zip(LINES, FORMS, strict=True)), ids=LINES)
def test_forms_that_models_write(text: str, expected: list[Token]) -> None:
    """Each form is taken out of the text whole, and credits just the cards that it names."""
    assert joined(scan_markers(text)) == expected


STREAMS = [json.loads(line) for line in (CASES_DIR / "O16_marker_forms" / "stream.txt").read_text("utf-8").splitlines()]
STREAMED: list[list[list[Token]]] = [
    [["Tome agua "], [], [], [], [], [marker(TEN), " cada"], [" día"], []],
    [["fin "], [], [NONE]],
    [["corchete solo "], ["["]],
]


@pytest.mark.parametrize(
    ("pieces", "expected"), list(zip(STREAMS, STREAMED, strict=True)), ids=["whole", "cut", "bracket"]
)
def test_pieces_of_a_stream(pieces: list[str], expected: list[list[Token]]) -> None:
    """Text comes out as soon as it is certain, a marker when it is whole, and a lone bracket at the end."""
    assert feed(pieces) == expected


def test_brackets_that_are_no_citations() -> None:
    """A unit and a link in brackets stay as they are, and the target of a link that a marker was made into goes."""
    text = (CASES_DIR / "O15_brackets_not_citations" / "llm.txt").read_text("utf-8")
    tokens = scan_markers(text)
    assert markers_of(tokens) == [marker("card-corchetes")] * 3
    assert text_of(tokens) == "Camine a 5 [km/h] y lea [la guía](https://ejemplo.invalid/guia) . Más en  y ."


ALONE = [
    "[сіtе:card-1]",
    "[ｃｉｔｅ：card-1]",
    "[ℂ𝐢𝓽𝖊:card-1]",
    "[c1te:card-1]",
    "[ci\u0301te:card-1]",
    "[ CITE : Card-1 ]",
    "［cite:card-1］",
    "【cite：card-1】",
    "(cite:card-1)",
    "{cite:card-1}",
    "[c\u200bi\u2060te:ca\u00adrd\ufeff-1]",
    "[cite\n:card-1]",
    "[cite:card\u20111]",
    "[cite:#card-1]",
    '[cite:"card-1"]',
    "[cite:`card-1`]",
    "[cite:cite:card-1]",
    "[^cite:card-1]",
    "[/cite:card-1]",
    "[[cite:card-1]]",
    "[[cite:card-1]",
    "`[cite:card-1]`",
    "**[cite:card-1]**",
    "***[cite:card-1]***",
    "_[cite:card-1]_",
    '"[cite:card-1]"',
    "([cite:card-1])",
    "[cite:card-1](https://malo.invalid/x)",
    "[cite:card-1]()",
]


@pytest.mark.parametrize("text", ALONE)
def test_other_spellings_of_a_marker(text: str) -> None:
    """Letters and brackets that look alike, marks that show nothing, wraps and targets are parts of the marker."""
    assert scan_markers(f"Agua {text}.") == ["Agua ", marker(ONE), "."]


BROKEN: list[tuple[str, str, list[Token]]] = [
    ("nested", "[cite:[cite:card-1]]", [NONE, marker(ONE), "]"]),
    ("begun twice", "[cite:card-1 [cite:card-2]", [NONE, " ", marker(TWO)]),
    ("over a paragraph", "[cite:card-1\n\nAgua", [NONE, "\n\nAgua"]),
    ("without an end", "[cite:card-1. Beba agua.", [NONE, " Beba agua."]),
    ("a bad id", "[cite:¿qué?]", [NONE, "¿qué?]"]),
    ("a good id and a bad one", "[cite:card-1, -x]", [marker(ONE, malformed=True)]),
    ("the same id twice", "[cite:card-1, card-1]", [marker(ONE)]),
    ("too long", f"[cite:{'a' * MARKER_CHARS}]", [NONE, "]"]),
    ("an endless target", "[cite:card-1](abc", [marker(ONE), "(abc"]),
    ("a target that is too long", f"[cite:card-1]({'a' * TARGET_CHARS})", [marker(ONE), f"({'a' * TARGET_CHARS})"]),
    ("begun at the end", "Agua [cite", ["Agua [cite"]),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in BROKEN], ids=[row[0].replace(" ", "-") for row in BROKEN]
)
def test_markers_that_are_none(text: str, expected: list[Token]) -> None:
    """What is no whole marker credits nobody, and takes neither the text behind it nor the next marker along."""
    assert joined(scan_markers(text)) == expected


PLAIN = ["Camine a 5 [km/h].", "[cita:card-1]", "cite:card-1", "[cite]", "Véase [1] y (2).", "a[i]: b", "[cítrico: sí]"]


@pytest.mark.parametrize("text", PLAIN)
def test_text_that_is_no_marker(text: str) -> None:
    """Brackets, and words that only begin like a marker, are text."""
    assert text_of(scan_markers(text)) == text == without_markers(text)


@given(HOSTILE, CUTS)
@example("[cite:" + "x" * 900 + "]", list(range(600, 900)))
@BOUNDED
def test_pieces_give_what_the_whole_gives(text: str, cuts: list[int]) -> None:
    """However a text is cut, the tokens are those of the whole text."""
    tokens = [token for given_out in feed(pieces_of(text, cuts)) for token in given_out]
    assert joined(tokens) == joined(scan_markers(text))


@given(HOSTILE, CUTS)
@BOUNDED
def test_no_piece_of_text_begins_a_marker(text: str, cuts: list[int]) -> None:
    """No text that comes out holds a marker, whole or begun."""
    for tokens in feed(pieces_of(text, cuts)):
        assert not any(markers_of(scan_markers(token)) for token in tokens if isinstance(token, str))


@given(HOSTILE)
@example("[cite::card-1]")
@example("[cite:\u200b:card-1]")
@example("[ｃｉｔｅ：card-1]")
@example("&amp;#91;cite:card-1] [cite:card-1]")
@BOUNDED
def test_cleaned_text_has_no_markers(text: str) -> None:
    """Text from elsewhere that was cleaned spells no marker, nor does it where its entities are read."""
    assert not markers_of(scan_markers(without_markers(text)))
    if markers_of(scan_markers(html.unescape(text))):
        assert not markers_of(scan_markers(html.unescape(without_markers(text))))


@given(st.text(alphabet=st.characters(exclude_characters="[({【［〔〖（｛⟦❲⁅⦋")))
@BOUNDED
def test_text_without_brackets_comes_back(text: str) -> None:
    """A text without an opening bracket is given back, but for what shows nothing."""
    assert text_of(scan_markers(text)) == visible_text(text)


@given(st.lists(st.tuples(WORDS, st.sampled_from(ALONE)), max_size=8), WORDS, CUTS)
@BOUNDED
def test_planted_markers_are_all_found(parts: list[tuple[str, str]], ending: str, cuts: list[int]) -> None:
    """Markers between plain words are found in their order, and the words are left."""
    text = "".join(f"{words} {planted} " for words, planted in parts) + ending
    tokens = [token for given_out in feed(pieces_of(text, cuts)) for token in given_out]
    assert markers_of(tokens) == [marker(ONE)] * len(parts)
    assert text_of(tokens).split() == " ".join([*(words for words, _ in parts), ending]).split()


@pytest.mark.parametrize("piece", ["[", "[cite:", "[cite:a", "cite:", "`", "[cite:a](", "(a", "&#91;cite:", "[c\u200b"])
def test_scanning_grows_with_the_text(piece: str) -> None:
    """No text makes scanning slow."""
    assert grows_in_step(scan_markers, piece, times=5_000)
    assert grows_in_step(without_markers, piece, times=5_000)


def test_a_megabyte_of_brackets_is_text() -> None:
    """A text of nothing but opening brackets is scanned to its end."""
    text = "[" * 1_000_000
    assert text_of(scan_markers(text)) == text
