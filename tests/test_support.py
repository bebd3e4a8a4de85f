"""Whether a card says what a sentence says, with the real model over the example cards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag.embedding import Embedder
from rag.opening import OpenIndex
from rag.records import Card, Passage
from rag.sentences import split_sentences
from rag.support import Sources, Support, is_negative
from tests.fakes import make_card

Supports = Callable[[str, str, str], Support]


@pytest.fixture(scope="module")
def support(sample_index: OpenIndex, embedder: Embedder) -> Supports:
    """What a card has for a claim in a language."""

    def found(card_id: str, claim: str, language: str) -> Support:
        card = sample_index.rows.card(card_id, ["public"])
        assert card
        sources = Sources([passage(card)], index=sample_index, embedder=embedder)
        return sources.support(claim, language)[card_id]

    return found


def passage(card: Card) -> Passage:
    return Passage(card, 0, 0, 1, 0.9, 1.0, 0.0, 1.0, None, ())


def test_a_sentence_of_a_card_is_found_where_it_stands(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Nearly every sentence of the example cards is supported by its own card, and found at that very span."""
    cards = sample_index.rows.cards(["public"])[::7]
    tried = held = right = 0
    for card in cards:
        sources = Sources([passage(card)], index=sample_index, embedder=embedder)
        for sentence in split_sentences(card.text):
            span = sentence.span
            found = sources.support(card.text[span.start : span.end], card.language)[card.card_id]
            tried, held, right = tried + 1, held + found.holds, right + (found.span == span)
    assert tried > 50
    assert held >= 0.99 * tried
    assert right == tried


@pytest.mark.parametrize(
    ("card_id", "claim", "language"),
    [
        ("hierro-cafe", "Debe dejar una o dos horas entre el hierro y el café.", "es"),
        ("pomelo", "El pomelo puede aumentar el efecto de ciertos medicamentos.", "es"),
        ("hierro-cafe", "Leave one or two hours between iron and coffee.", "en"),
        ("conducir", "You should not drive if the medicine makes you sleepy.", "en"),
        ("dosis-olvidada", "If the next dose is almost due, skip the missed dose and carry on as normal.", "en"),
    ],
)
def test_the_same_in_other_words_holds(support: Supports, card_id: str, claim: str, language: str) -> None:
    """A rewording, in the card's language or the other one, is supported."""
    assert support(card_id, claim, language).holds


@pytest.mark.parametrize(
    ("card_id", "claim", "language"),
    [
        ("viajar-avion", "La capital de Australia es Sídney.", "es"),
        ("viajar-avion", "The capital of Australia is Sydney.", "en"),
        ("hierro-cafe", "Debe dejar cinco o seis horas entre el hierro y el café.", "es"),
        ("hierro-cafe", "Leave ten hours between iron and coffee.", "en"),
        ("pomelo", "El pomelo no puede aumentar el efecto de ningún medicamento.", "es"),
        ("conducir", "You can drive if the medicine makes you sleepy.", "en"),
        ("grapefruit", "No hay frutas cítricas que interfieran con mi terapia.", "es"),
        ("recordatorios-movil", "Escriba en la alarma una palabra clave en vez del nombre del medicamento.", "es"),
        ("lista-medicamentos", "Guarde el envase para decir por teléfono el nombre del medicamento.", "es"),
    ],
)
def test_what_a_card_does_not_say_does_not_hold(support: Supports, card_id: str, claim: str, language: str) -> None:
    """Another fact, another number, and the contrary are not supported."""
    assert not support(card_id, claim, language).holds


def test_a_missing_number_is_named(support: Supports) -> None:
    """What of a claim's numbers the card has not is told as it was written."""
    found = support("hierro-cafe", "Deje pasar 7 horas, o 500 mg, entre el hierro y el café.", "es")
    assert (found.holds, found.missing) == (False, ("7", "500"))


def test_only_the_cards_that_were_found_are_looked_at(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Other cards of the index, whoever may see them, support nothing; nor does a card without sentences."""
    card = sample_index.rows.card("pomelo", ["public"])
    assert card
    sources = Sources([passage(card), passage(make_card("sin-frases", ""))], index=sample_index, embedder=embedder)
    assert list(sources.card_ids) == ["pomelo", "sin-frases"]
    assert list(sources.support("Tómelo en ayunas.", "es")) == ["pomelo"]


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        ("No tome leche.", True),
        ("Evite el sol.", True),
        ("Sin alimentos.", True),
        ("Don't take it.", True),
        ("Don’t take it.", True),
        ("Avoid milk.", True),
        ("Never double it.", True),
        ("Tome leche.", False),
        ("Nota: tome agua.", False),
        ("Take it with notes of the nurse.", False),
        ("Anoche tomó dos.", False),
    ],
)
def test_denials_are_recognised(text: str, negative: bool) -> None:
    """A text that denies or advises against is told from one that does not, in both languages."""
    assert is_negative(text) is negative
