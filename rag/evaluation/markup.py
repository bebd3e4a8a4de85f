"""Elements of a page. Text is escaped when the page is written, so nothing that a case says can become markup."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, tostring

Child = Element | str | None
Cell = Element | str | float | None

NOTHING = "–"


def tag(name: str, *children: Child, **attributes: str | float | None) -> Element:
    """
    An element: ``tag("p", "text", class_="note")``.

    In the names of attributes a last underscore is dropped and others are hyphens; numbers are rounded to hundredths;
    children and attributes that are None are left out.
    """
    made = Element(name)
    for key, value in attributes.items():
        if value is not None:
            made.set(key.rstrip("_").replace("_", "-"), value if isinstance(value, str) else number(value))
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif child is not None and last is None:
            made.text = (made.text or "") + child
        elif child is not None and last is not None:
            last.tail = (last.tail or "") + child
    return made


def number(value: float) -> str:
    """A number as an attribute has it: at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def page(root: Element) -> str:
    """A document of HTML."""
    return f"<!doctype html>\n{tostring(root, encoding='unicode', method='html')}\n"


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Element:
    """A table that scrolls within itself where it is too wide; the first cell of each row is its header."""
    head = tag("tr", *(tag("th", name, scope="col") for name in header))
    body = [
        tag("tr", tag("th", shown(row[0]), scope="row"), *(tag("td", shown(cell)) for cell in row[1:])) for row in rows
    ]
    made = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def shown(cell: Cell) -> Element | str:
    """A cell: figures with one decimal, counts with none, a dash for what is not known."""
    if cell is None:
        return NOTHING
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.1f}" if isinstance(cell, float) else cell
