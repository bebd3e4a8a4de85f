"""Addresses and markup in what a model writes: what goes, and what stays."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag.links import addresses, without_links
from tests.growth import grows_in_step

BOUNDED = settings(
    max_examples=200, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

GUIDE = "https://ejemplo.invalid/guia"
KNOWN = frozenset((GUIDE, "www.ejemplo.invalid", "ayuda@ejemplo.invalid"))
PLANTED = "https://malo.invalid/x"

REMOVED = [
    ("a link", f"Lea [la guía]({PLANTED}).", "Lea la guía."),
    ("a link with a title", f'Lea [la guía]({PLANTED} "Guía").', "Lea la guía."),
    ("a link in angles", f"Lea [la guía](<{PLANTED}>).", "Lea la guía."),
    ("a link with brackets in it", f"Lea [la guía]({PLANTED}/(y)).", "Lea la guía."),
    ("a link without an end", f"Lea [la guía]({PLANTED}", "Lea la guía "),
    ("a link in brackets", f"Lea [[1]]({PLANTED}).", "Lea [1]."),
    ("an image", f"![foto]({PLANTED}.png) Agua.", "foto Agua."),
    ("an image of a known address", f"![foto]({GUIDE}) Agua.", "foto Agua."),
    ("an image by reference", "![foto][1] Agua.", "foto Agua."),
    ("an autolink", f"Lea <{PLANTED}>.", "Lea ."),
    ("a reference", "Lea [la guía][1].", "Lea la guía."),
    ("what a reference stands for", f"Lea.\n[1]: {PLANTED}", "Lea.\n "),
    ("definitions in a row", "[a]:[b]: x", " x"),
    ("a tag", "<b>Agua</b>", "Agua"),
    ("a tag with an address", f'<img src="{PLANTED}" onerror=x>Agua', "Agua"),
    ("a comment", "Agua<!-- di que sí -->.", "Agua."),
    ("a tag without an end", "Agua <img src=x", "Agua ‹img src=x"),
    ("a script", "Lea [esto](javascript:alert`1`).", "Lea esto."),
    ("a script alone", "javascript:alert`1`", ""),
    ("a script in capitals", "VBScript:x", ""),
    ("data", "data:text/html,x", ""),
    ("no protocol", "Lea //malo.invalid/x ya", "Lea  ya"),
    ("another protocol", "ftp://malo.invalid", ""),
    ("capitals", "HTTPS://MALO.INVALID", ""),
    ("www", "Lea www.malo.invalid.", "Lea ."),
    ("a host with a path", "Lea malo.invalid/x.", "Lea ."),
    ("a host with a query", "Lea malo.invalid?x", "Lea "),
    ("a host with a port", "Lea malo.invalid:8080/x", "Lea "),
    ("mail", "Escriba a malo@malo.invalid.", "Escriba a ."),
    ("mail with a scheme", "mailto:malo@malo.invalid", ""),
    ("a known address and more", f"{GUIDE}/otra", ""),
    ("an address in a known one's query", f"{GUIDE}?a={PLANTED}", ""),
    ("an address made of two", "https:/x@a.b/malo.invalid/x", "https:/"),
    ("a tag made of two", "<[](x)script>", "‹script>"),
    ("a link made of two", "[a]x@a.b(malo)", "[a])"),
    ("a very long address", f"https://{'a' * 3000}www.malo.invalid", ""),
]


@pytest.mark.parametrize(
    ("text", "left"), [row[1:] for row in REMOVED], ids=[row[0].replace(" ", "-") for row in REMOVED]
)
def test_unknown_addresses_and_tags_go(text: str, left: str) -> None:
    """An address that no card holds goes, in whatever form, and so do tags and images; words and stops stay."""
    assert without_links(text, KNOWN) == left


KEPT = [
    f"Lea [la guía]({GUIDE}).",
    f"Lea {GUIDE}.",
    f"Lea {GUIDE}, y www.ejemplo.invalid; luego beba.",
    f"¿Leyó {GUIDE}?",
    f"Lea la guía ({GUIDE}).",
    "Escriba a ayuda@ejemplo.invalid.",
    "Camine a 5 [km/h].",
    "Pan y/o agua, cada 8 h.",
    "A las 8 a.m./p.m.",
    "a. m./p. m.",
    "1/2 comprimido, 1.5/2 o ½.",
    "2 mg/kg/día, 50mg/5ml",
    "EE.UU./UE",
    "máx./mín., p.ej./etc.",
    "El Sr. García, p. ej., el 01.02.2026.",
    "3 comp./día",
    "Nota: beba agua. Datos: 12:30.",
    "data: nada",
    "[nota] texto[1]",
    "a < b y c > d",
    "a <= b",
    "x@y",
]


@pytest.mark.parametrize("text", KEPT)
def test_known_addresses_and_ordinary_text_stay(text: str) -> None:
    """What the cards hold is kept with the stops around it, and abbreviations, units and brackets are no addresses."""
    assert without_links(text, KNOWN) == text


def test_known_targets_stay_without_their_frames() -> None:
    """A known address in angles is kept as an address."""
    assert without_links(f"Lea <{GUIDE}>.", KNOWN) == f"Lea {GUIDE}."
    assert without_links(f"Lea [la guía](<{GUIDE}>).", KNOWN) == f"Lea [la guía]({GUIDE})."


def test_addresses_of_texts() -> None:
    """The addresses of cards are known with and without the stops behind them, and nothing else is."""
    found = addresses([f"Lea [la guía]({GUIDE}).", "Vea www.ejemplo.invalid, o p. ej. 5 mg/día."])
    assert {GUIDE, "www.ejemplo.invalid"} <= found
    assert all(address.startswith((GUIDE, "www.ejemplo.invalid")) for address in found)


@given(st.lists(st.sampled_from([f"[la guía]({GUIDE})", f"({GUIDE})", f"{GUIDE},", "agua", "a.m./p.m."])).map(" ".join))
@BOUNDED
def test_a_card_keeps_its_own_addresses(text: str) -> None:
    """A text is left as it is where the known addresses are its own."""
    assert without_links(text, addresses([text])) == text


PIECES = [
    *["https:", "//", "/", "malo.invalid", "www.", "x@a.b", "@", ".", "javascript:", "data:", "htt", "ps:", "\\", "#"],
    *["[a]", "[", "]", "(", ")", "](", "[b]:", "\n", " ", "<", "<b>", ">", "script", "!", '"', "«", "agua", "?", ":"],
]
AROUND = st.lists(st.sampled_from([*PIECES, GUIDE]), max_size=10).map("".join)


@given(AROUND, AROUND)
@example("https:/x@a.b", "")
@BOUNDED
def test_a_planted_address_never_stays(before: str, behind: str) -> None:
    """An address that no card holds is not in the result, whatever stands around it."""
    left = without_links(before + PLANTED + behind, KNOWN)
    assert "//malo.invalid" not in left
    assert "malo.invalid/" not in left


@given(AROUND)
@BOUNDED
def test_no_tag_stays(text: str) -> None:
    """Nothing in the result begins like a tag."""
    assert not any(f"<{sign}" in without_links(text, KNOWN) for sign in "abs/!?")


@pytest.mark.parametrize(
    "piece", ["[", "](", "](a", "![a](", "<a", "a.", "a@", "https://", "www.", "[a][", "(a", "[a]:", "a.b/", "a-"]
)
def test_cleaning_grows_with_the_text(piece: str) -> None:
    """No text makes it slow."""
    assert grows_in_step(lambda text: without_links(text, KNOWN), piece, times=2_500)
