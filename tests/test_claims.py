"""What a model writes, sentence by sentence, and which markers speak for which."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag.claims import CLAIM_CHARS, Claim, ClaimSplitter
from rag.markers import MarkerScanner, Token, scan_markers
from tests.cutting import CUTS, pieces_of
from tests.growth import grows_in_step

BOUNDED = settings(
    max_examples=200, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def split(pieces: Iterable[str], *, cut_off: bool = False) -> list[Claim]:
    scanner, splitter = MarkerScanner(), ClaimSplitter()
    claims = [claim for piece in pieces for claim in splitter.feed(scanner.feed(piece))]
    return claims + splitter.feed(scanner.finish()) + splitter.finish(cut_off=cut_off)


def cited(claims: Iterable[Claim]) -> list[tuple[str, str]]:
    """Each text with the ids that speak for it, each id in its place."""
    return [
        (claim.text, " ".join(card_id for _, marker in claim.markers for card_id in marker.card_ids))
        for claim in claims
    ]


TABLE: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("before the stop", "Tome agua [cite:a]. Beba más [cite:b].", [("Tome agua.", "a"), ("Beba más.", "b")]),
    ("behind the stop", "Tome agua. [cite:a] Beba más. [cite:b]", [("Tome agua.", "a"), ("Beba más.", "b")]),
    ("at the stop", "Tome agua.[cite:a] Beba más.[cite:b]", [("Tome agua.", "a"), ("Beba más.", "b")]),
    ("two of them", "Tome agua [cite:a][cite:b]. Beba más.", [("Tome agua.", "a b"), ("Beba más.", "")]),
    ("two ids", "Tome agua [cite:a, b]. Beba más.", [("Tome agua.", "a b"), ("Beba más.", "")]),
    ("only the last", "Uno. Dos. Tres. [cite:a]", [("Uno.", ""), ("Dos.", ""), ("Tres.", "a")]),
    ("leading", "[cite:a] Tome agua. Beba más.", [("Tome agua.", "a"), ("Beba más.", "")]),
    ("leading each line", "[cite:a] Tome agua.\n[cite:b] Beba más.", [("Tome agua.", "a"), ("Beba más.", "b")]),
    (
        "leading twice in a line",
        "[cite:a] Tome agua. [cite:b] Beba más.",
        [("Tome agua.", "a"), ("Beba más.", "b")],
    ),
    ("leading a second line", "Tome agua.\n[cite:a] Beba más.", [("Tome agua.", ""), ("Beba más.", "a")]),
    ("on its own line", "Tome agua.\n[cite:a]\nBeba más.", [("Tome agua.", "a"), ("Beba más.", "")]),
    ("in its own paragraph", "Tome agua.\n\n[cite:a]\n\nBeba más.", [("Tome agua.", "a"), ("Beba más.", "")]),
    ("in a short sentence", "Tome agua [cite:a] y sal.", [("Tome agua y sal.", "a")]),
    (
        "in a long sentence",
        "Tome una pastilla cada ocho horas [cite:a], salvo que le duela.",
        [("Tome una pastilla cada ocho horas,", "a"), ("salvo que le duela.", "")],
    ),
    (
        "twice in a long sentence",
        "Tome una pastilla cada ocho horas [cite:a] y beba mucha agua después [cite:b].",
        [("Tome una pastilla cada ocho horas", "a"), ("y beba mucha agua después.", "b")],
    ),
    ("a list", "- Uno dos [cite:a]\n- Tres cuatro [cite:b]", [("- Uno dos", "a"), ("- Tres cuatro", "b")]),
    ("a numbered list", "1. Uno. [cite:a]\n2. Dos. [cite:b]", [("1. Uno.", "a"), ("2. Dos.", "b")]),
    ("a colon before a list", "Haga esto:\n- Uno [cite:a]\n- Dos", [("Haga esto:\n- Uno", "a"), ("- Dos", "")]),
    ("a colon and a blank line", "Haga esto:\n\n- Uno [cite:a]\n- Dos", [("Haga esto:\n\n- Uno", "a"), ("- Dos", "")]),
    ("a heading", "Título\n\nTome agua [cite:a].", [("Título", ""), ("Tome agua.", "a")]),
    ("a title", "El Dr. García lo dice [cite:a]. Sí.", [("El Dr. García lo dice.", "a"), ("Sí.", "")]),
    ("p. ej.", "Evite, p. ej. Pomelo [cite:a]. Sí.", [("Evite, p. ej. Pomelo.", "a"), ("Sí.", "")]),
    ("decimals", "Son 1.5 mg [cite:a]. Sí.", [("Son 1.5 mg.", "a"), ("Sí.", "")]),
    ("questions", "¿Sí? ¡No! [cite:a] Ya.", [("¿Sí?", ""), ("¡No!", "a"), ("Ya.", "")]),
    ("quotation marks", "Dice «no». [cite:a] Ya.", [("Dice «no».", "a"), ("Ya.", "")]),
    ("no stop", "Tome agua", [("Tome agua", "")]),
    ("a marker alone", "[cite:a]", [("", "a")]),
    ("only white space", " \n ", []),
    ("nothing", "", []),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in TABLE], ids=[row[0].replace(" ", "-") for row in TABLE]
)
def test_markers_speak_for_what_they_stand_behind(text: str, expected: list[tuple[str, str]]) -> None:
    """A marker speaks for its sentence as far as it goes, or for the one behind it where it begins the line."""
    assert cited(split([text])) == expected


CUT_OFF = [
    ("in a sentence", "Tome agua [cite:a]. Beba más y", [("Tome agua.", "a")]),
    ("behind a stop", "Tome agua. Beba más.", [("Tome agua.", ""), ("Beba más.", "")]),
    ("behind a quotation", "Dice: «tome agua.»", [("Dice: «tome agua.»", "")]),
    ("behind a marker", "Tome agua. [cite:a]", [("Tome agua.", "a")]),
    ("in a marker", "Tome agua [cite:a", []),
    ("in the first sentence", "Tome", []),
    ("nowhere", "", []),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in CUT_OFF], ids=[row[0].replace(" ", "-") for row in CUT_OFF]
)
def test_a_text_that_was_cut_off(text: str, expected: list[tuple[str, str]]) -> None:
    """The sentence in which a text was cut off is left out, unless it had come to its end."""
    assert cited(split([text], cut_off=True)) == expected


def test_leads_and_places() -> None:
    """A claim has the white space before it as one blank or up to two line breaks, and its markers' places."""
    claims = split(["Tome agua [cite:a].  Beba más.\nUno [cite:b] dos.\n\n\n\nTres."])
    assert [(claim.lead, claim.text) for claim in claims] == [
        ("", "Tome agua."),
        (" ", "Beba más."),
        ("\n", "Uno dos."),
        ("\n\n", "Tres."),
    ]
    assert [offset for claim in claims for offset, _ in claim.markers] == [len("Tome agua"), len("Uno")]


def test_a_claim_comes_out_when_the_next_begins() -> None:
    """A sentence waits for what may yet be its marker, and no longer."""
    splitter = ClaimSplitter()
    assert splitter.feed(["Tome agua."]) == []
    assert cited(splitter.feed([*scan_markers(" [cite:a]"), " Beba"])) == [("Tome agua.", "a")]
    assert cited(splitter.finish()) == [("Beba", "")]


@pytest.mark.parametrize(
    "text", ["a" * 2_500, "palabra " * 400, "[cite:a] " + "a, " * 800], ids=["letters", "words", "cited"]
)
def test_a_long_sentence_is_cut(text: str) -> None:
    """No claim is longer than its limit; words stay whole where there are some."""
    claims = split([text])
    assert all(len(claim.text) <= CLAIM_CHARS for claim in claims)
    assert (
        "".join(claim.lead + claim.text for claim in claims).split() == text.removeprefix("[cite:a]").split()
        or " " not in text
    )


PIECES = [
    *[
        "Tome agua",
        "beba",
        "[cite:a]",
        "[cite:b]",
        ".",
        "!",
        "…",
        ",",
        ":",
        " ",
        " ",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "«",
        "»",
    ],
    *["Dr.", "p. ej.", "1.5", "¿", "?", "(", ")", "*", "pastilla cada ocho horas", "x" * 300, "y " * 600],
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


@given(TEXTS, CUTS)
@example("Tome agua.\n\n[cite:a]\n\nBeba.", list(range(30)))
@BOUNDED
def test_pieces_give_what_the_whole_gives(text: str, cuts: list[int]) -> None:
    """However a text is cut, the claims are those of the whole text."""
    assert split(pieces_of(text, cuts)) == split([text])


def letters(text: str) -> str:
    return "".join(text.split())


@given(TEXTS)
@BOUNDED
def test_nothing_is_lost_or_invented(text: str) -> None:
    """All signs of the text and all its markers are in the claims, once and in their order."""
    tokens: list[Token] = scan_markers(text)
    claims = split([text])
    assert letters("".join(claim.text for claim in claims)) == letters("".join(t for t in tokens if isinstance(t, str)))
    assert [marker for claim in claims for _, marker in claim.markers] == [t for t in tokens if not isinstance(t, str)]


@given(TEXTS)
@example("Hoy:\n\nTome agua.")
@BOUNDED
def test_claims_are_well_formed(text: str) -> None:
    """A claim has no white space around it, is within its limit, and its markers stand inside it in their order."""
    for claim in split([text]):
        assert claim.text == claim.text.strip()
        assert len(claim.text) <= CLAIM_CHARS
        assert claim.lead in ("", " ", "\n", "\n\n")
        offsets = [offset for offset, _ in claim.markers]
        assert offsets == sorted(offsets)
        assert all(0 <= offset <= len(claim.text) for offset in offsets)


@pytest.mark.parametrize("piece", ["a", "a ", ".", ". ", "A. ", ":\n", "\n", "[cite:a]", "a [cite:a]", "1. ", "a."])
def test_splitting_grows_with_the_text(piece: str) -> None:
    """No text makes it slow."""
    assert grows_in_step(lambda text: split([text]), piece, times=1_000)
