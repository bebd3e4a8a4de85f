"""No text makes a regular expression of ours slow."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import product

import pytest

from rag.cards.body import remove_comments
from rag.cards.hidden import find_hidden
from tests.conftest import ROOT
from tests.growth import SHORT_SECONDS, grows_in_step
from tests.patterns import Attack, Expression, attacks, expressions, modules_of

SIZES = (2_000, 20_000)
"""Characters; the first one, so that what is far too slow shows while it can still be waited for."""
LEAST = 80
"""Fewer expressions would mean that some were not found."""


def test_every_expression_takes_steps_in_step_with_the_text() -> None:
    """No expression of the code takes much more than four times as long for four times the text, whatever that is."""
    files = [*(ROOT / "rag").rglob("*.py"), ROOT / "app.py", ROOT / "build_index.py"]
    found = expressions(modules_of(sorted(files)))
    assert len(found) >= LEAST
    slow = {expression.place: weakness for expression in found if (weakness := weakness_of(expression))}
    assert not slow


def weakness_of(expression: Expression) -> tuple[str, Attack] | None:
    """The first attack that an expression is weak to, and the way in which it is used then."""
    tries = product(expression.ways, attacks(expression.pattern))
    return next(((way, attack) for way, attack in tries if not is_linear(expression, way, attack)), None)


def is_linear(expression: Expression, way: str, attack: Attack) -> bool:
    """Whether one attack comes to nothing; most take so little time that this is plain at once."""
    use = getattr(expression.pattern, way)
    is_bytes = isinstance(expression.pattern.pattern, bytes)

    def work(pieces: str) -> None:
        text = attack.before + pieces + attack.after
        tried = use(text.encode("utf-8", "replace") if is_bytes else text)
        if way == "finditer":
            deque(tried, maxlen=0)

    for size in SIZES:
        count = size // len(attack.piece) + 1
        begin = time.process_time()
        work(attack.piece * count)
        if time.process_time() - begin > SHORT_SECONDS:
            return grows_in_step(work, attack.piece, times=max(1, count // 4))
    return True


@pytest.mark.parametrize(
    "piece", ["<!-- -->", "a <!-- b -->", "<!--", "<!-- --> ```", "```<!-- -->\n", " \n<!-- -->", "~~~ <!-- a\n -->"]
)
@pytest.mark.parametrize("read", [remove_comments, lambda text: find_hidden("a.md", text)], ids=["remove", "find"])
def test_comments_take_steps_in_step_with_the_text(read: Callable[[str], object], piece: str) -> None:
    """However many comments there are, in one line or in many, each is come to once."""
    assert grows_in_step(read, piece, times=2_000)


@pytest.mark.parametrize("value", ["font-size:{}x", "opacity:{}x", "color:rgba(1,{}x", "color:rgba({}x", "{}"])
@pytest.mark.parametrize("piece", ["0", ",0", "/*", "/*0", "0.0"])
def test_styles_take_steps_in_step_with_the_text(value: str, piece: str) -> None:
    """A style in a card, however long, is looked through once."""
    assert grows_in_step(lambda text: find_hidden("a.md", f'<p style="{value.format(text)}">'), piece, times=5_000)
