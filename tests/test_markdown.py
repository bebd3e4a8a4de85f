"""What each line of a Markdown text is taken for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.markdown import Kind, headings_above, scan_lines, table_cells, table_header_of

BOUNDED = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

LINES = [
    "# Uno",
    "## Dos",
    "texto",
    "texto | más",
    "|---|---|",
    "--- | ---",
    "| a | b |",
    "- punto",
    "1. paso",
    "> cita",
]
MARKUP = st.lists(st.sampled_from([*LINES, "", " ", "---", "===", "```", "~~~", "  - hondo", "***"]), max_size=12)


def kinds(text: str) -> list[Kind]:
    return [line.kind for line in scan_lines(text)]


@given(st.one_of(st.text(), MARKUP.map("\n".join)))
@BOUNDED
def test_lines_give_back_the_text(text: str) -> None:
    """The lines are those of the text, in order, and each one's content begins inside it."""
    lines = scan_lines(text)
    assert "\n".join(text[line.start : line.end] for line in lines) == text
    assert all(line.start <= line.content <= line.end for line in lines)


@given(MARKUP)
@BOUNDED
def test_only_headings_have_a_level(raw: list[str]) -> None:
    """A heading has a level from 1 to 6, and no other line has one."""
    assert all((1 <= line.level <= 6) == (line.kind is Kind.HEADING) for line in scan_lines("\n".join(raw)))


@given(MARKUP)
@BOUNDED
def test_rows_stand_below_a_header(raw: list[str]) -> None:
    """Every table is a header, a rule, and then rows."""
    found = kinds("\n".join(raw))
    for before, kind in pairwise([None, *found]):
        if kind is Kind.TABLE_RULE:
            assert before is Kind.TABLE_HEADER
        if kind is Kind.TABLE_ROW:
            assert before in (Kind.TABLE_RULE, Kind.TABLE_ROW)


SINGLE = [
    ("", Kind.BLANK, ""),
    ("  \t", Kind.BLANK, ""),
    ("texto", Kind.TEXT, "texto"),
    ("   texto", Kind.TEXT, "texto"),
    ("# Título", Kind.HEADING, "Título"),
    ("###### Seis", Kind.HEADING, "Seis"),
    ("####### Siete", Kind.TEXT, "####### Siete"),
    ("#etiqueta", Kind.TEXT, "#etiqueta"),
    ("#", Kind.HEADING, ""),
    ("- punto", Kind.ITEM, "punto"),
    ("* punto", Kind.ITEM, "punto"),
    ("+ punto", Kind.ITEM, "punto"),
    ("  - hondo", Kind.ITEM, "hondo"),
    ("1. paso", Kind.ITEM, "paso"),
    ("10) paso", Kind.ITEM, "paso"),
    ("-5 grados", Kind.TEXT, "-5 grados"),
    ("1.5 mg", Kind.TEXT, "1.5 mg"),
    ("2026. fue", Kind.ITEM, "fue"),
    ("**negrita** y más", Kind.TEXT, "**negrita** y más"),
    ("---", Kind.RULE, "---"),
    ("- - -", Kind.RULE, "- - -"),
    ("***", Kind.RULE, "***"),
    ("__", Kind.TEXT, "__"),
    ("> cita", Kind.TEXT, "cita"),
    ("> > honda", Kind.TEXT, "honda"),
    ("> - punto", Kind.ITEM, "punto"),
    ("> ## Título", Kind.HEADING, "Título"),
    (">", Kind.BLANK, ""),
    ("```", Kind.CODE, "```"),
    ("~~~ python", Kind.CODE, "~~~ python"),
    ("```código``` en línea", Kind.TEXT, "```código``` en línea"),
    ("| a | b |", Kind.TEXT, "| a | b |"),
]


@pytest.mark.parametrize(("text", "kind", "content"), SINGLE, ids=[repr(text) for text, *_ in SINGLE])
def test_a_line_on_its_own(text: str, kind: Kind, content: str) -> None:
    """A line is known by its markers, and its content stands behind them."""
    [line] = scan_lines(text)
    assert (line.kind, text[line.content : line.end]) == (kind, content)


B, T, I, H, R, C = Kind.BLANK, Kind.TEXT, Kind.ITEM, Kind.HEADING, Kind.RULE, Kind.CODE  # noqa: E741
TH, TU, TR = Kind.TABLE_HEADER, Kind.TABLE_RULE, Kind.TABLE_ROW

TOGETHER = [
    ("setext with dashes", "Título\n---\ntexto", [H, R, T]),
    ("setext with equals", "Título\n===\ntexto", [H, R, T]),
    ("rule behind a blank", "texto\n\n---\ntexto", [T, B, R, T]),
    ("rule behind an item", "- punto\n---", [I, R]),
    ("rule behind two lines", "uno\ndos\n---", [T, T, R]),
    ("fence", "```\n# no\n- no\n| a | b |\n|---|---|\n```\n# sí", [C, C, C, C, C, C, H]),
    ("fence of tildes", "~~~\n```\n~~~\ntexto", [C, C, C, T]),
    ("fence of four", "````\n```\n# no\n```\n````\ntexto", [C, C, C, C, C, T]),
    ("fence in a list", "- punto\n  ```\n  # no\n  ```\ntexto", [I, C, C, C, T]),
    ("open fence", "```\nuno\n\ndos", [C, C, C, C]),
    ("code in a line", "```a``` y\n# Título", [T, H]),
    ("table", "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n| x | y |", [TH, TU, TR, TR, B, T]),
    ("table without edges", "a | b\n--- | ---\n1 | 2", [TH, TU, TR]),
    ("aligned table", "| a | b |\n|:--|--:|\n| 1 | 2 |", [TH, TU, TR]),
    ("table behind text", "texto\n| a | b |\n|---|---|\n| 1 | 2 |\ntexto", [T, TH, TU, TR, T]),
    ("rule that looks like an item", "a | b\n- | -\n1 | 2", [TH, TU, TR]),
    ("one column", "| a |\n|---|\n| 1 |", [TH, TU, TR]),
    ("table cut by a heading", "| a | b |\n|---|---|\n# Título\n| 1 | 2 |", [TH, TU, H, T]),
    ("no table without a rule", "| a | b |\n| 1 | 2 |", [T, T]),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in TOGETHER], ids=[row[0].replace(" ", "-") for row in TOGETHER]
)
def test_lines_together(text: str, expected: list[Kind]) -> None:
    """Fences, tables and underlined headings are known by the lines around."""
    assert kinds(text) == expected


def test_levels_of_underlined_headings() -> None:
    """A heading underlined with = is of level 1, one with - of level 2."""
    lines = scan_lines("Uno\n===\n\nDos\n---")
    assert [(line.level, line.kind) for line in lines if line.level] == [(1, H), (2, H)]


PATHS = [
    ("before any", "texto\n\n# A", 0, []),
    ("at the heading", "# A\n\ntexto", 0, ["A"]),
    ("nested", "# A\n\n## B\n\ntexto", 12, ["A", "B"]),
    ("a sibling replaces", "# A\n\n## B\n\n## C\n\ntexto", 20, ["A", "C"]),
    ("a skipped level", "# A\n\n### B\n\n## C\n\nx", 20, ["A", "C"]),
    ("an empty heading", "# A\n\n##\n\ntexto", 10, ["A"]),
    ("a closed heading", "## A ##\n\ntexto", 10, ["A"]),
    ("a title that ends in a sign", "## C#\n\ntexto", 8, ["C#"]),
    ("underlined", "A\n===\n\ntexto", 8, ["A"]),
    ("in code", "```\n# no\n```\n\ntexto", 14, []),
]


@pytest.mark.parametrize(
    ("text", "position", "expected"), [row[1:] for row in PATHS], ids=[row[0].replace(" ", "-") for row in PATHS]
)
def test_headings_above(text: str, position: int, expected: list[str]) -> None:
    """The path of a position is that of the sections that hold it, outermost first."""
    assert headings_above(scan_lines(text), text, position) == expected


def test_header_of_each_place_in_a_table() -> None:
    """Every position below a table's header row has that row, and no other position has one."""
    text = "texto\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nfin\n\n| c |\n|---|\n| 5 |"
    lines = scan_lines(text)
    for line in lines:
        below_header = line.kind in (TR, Kind.TABLE_RULE)
        wanted = ("| a | b |" if line.start < text.index("fin") else "| c |") if below_header else None
        found = {
            table_header_of(lines, text, position) for position in range(line.start, max(line.end, line.start + 1))
        }
        assert found == {wanted}


CELLS = [
    ("| a | b |", ["a", "b"]),
    ("a | b", ["a", "b"]),
    ("|a|b|", ["a", "b"]),
    ("| a |", ["a"]),
    ("a", ["a"]),
    ("| a |  | c |", ["a", "", "c"]),
    ("|  | b |", ["", "b"]),
    (r"| a \| b | c |", ["a | b", "c"]),
    ("| a | b", ["a", "b"]),
    ("", []),
]


@pytest.mark.parametrize(("row", "cells"), CELLS, ids=[row or "empty" for row, _ in CELLS])
def test_cells_of_a_row(row: str, cells: list[str]) -> None:
    """Cells are trimmed, empty ones keep their place, and an escaped bar is a sign."""
    assert table_cells(row) == cells


@given(st.lists(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1), min_size=1))
@BOUNDED
def test_cells_come_back(cells: list[str]) -> None:
    """A row put together from cells gives the cells."""
    assert table_cells(f"| {' | '.join(cells)} |") == cells
