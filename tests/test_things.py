"""What a question asks for and whether it shows."""

from __future__ import annotations

import pytest

from rag.things import thing_asked_for

PRICE, HOURS = "price", "opening hours"


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("¿Cuánto cuesta una caja de ibuprofeno?", PRICE),
        ("cuanto vale el abono", PRICE),
        ("¿Cuánto me cuesta?", PRICE),
        ("¿Qué precio tiene la tarjeta?", PRICE),
        ("How much does a meter cost?", PRICE),
        ("what's the price of a pass", PRICE),
        ("¿A qué hora abre la piscina los sábados?", HOURS),
        ("what time does the office close?", HOURS),
        ("Opening hours of the library", HOURS),
        ("¿Cuánto tarda en hacer efecto?", None),
        ("¿Cuánto jarabe le doy?", None),
        ("How much water should I drink?", None),
        ("¿A qué hora tomo la pastilla?", None),
        ("What time should I take it?", None),
        ("¿Vale tomarlo con leche?", None),
        ("", None),
    ],
)
def test_things_asked_for(question: str, name: str | None) -> None:
    """Only plain questions for a price or for opening hours ask for one, in both languages, accents or not."""
    thing = thing_asked_for(question)
    assert (thing.name if thing else None) == name


@pytest.mark.parametrize(
    ("question", "text", "stands"),
    [
        ("¿Cuánto cuesta?", "El abono vale 20 euros.", True),
        ("¿Cuánto cuesta?", "La entrada es gratuita.", True),
        ("How much does it cost?", "It is £3 a day.", True),
        ("¿Cuánto cuesta?", "La piscina tiene tres calles y agua caliente.", False),
        ("¿A qué hora abre?", "Los sábados, de 9:30 a 14 h.", True),
        ("¿A qué hora abre?", "Abrimos los lunes a las 10.", True),
        ("What time does it close?", "It closes at 5 pm.", True),
        ("¿A qué hora abre?", "La temperatura cambia cada vez que se abre.", False),
        ("¿Cuánto cuesta?", "Vaya a urgencias si le cuesta respirar.", False),
        ("¿A qué hora abre?", "Traiga el carné y una fotografía.", False),
    ],
)
def test_whether_it_shows(question: str, text: str, stands: bool) -> None:
    """A text that holds no such thing is no answer."""
    thing = thing_asked_for(question)
    assert thing
    assert thing.stands_in(text) is stands
