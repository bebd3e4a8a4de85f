"""Questions to begin with."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.opening import OpenIndex
from rag.records import Card
from rag.serving.suggestions import COUNT, KEPT_RESULTS, SHORT_CHARS, Suggester, Suggestion, suggest
from tests.fakes import make_card

ES = "¿Cuándo se toma el {}?"
EN = "When do I take the {}?"


def card(card_id: str, topic: str | None = None, questions: Sequence[str] = (), **changes: Any) -> Card:
    """A card of one topic that names questions."""
    return replace(make_card(card_id, topics=(topic,) if topic else (), questions=tuple(questions)), **changes)


def ids(suggestions: Sequence[Suggestion]) -> list[str]:
    return [suggestion.card_id for suggestion in suggestions]


LONG_ES, LONG_EN = f"¿Cuándo se toma {'muy ' * 20}tarde?", f"When do I take it {'very ' * 20}late?"


@pytest.mark.parametrize(
    ("questions", "language", "expected"),
    [
        ((ES.format("té"), ES.format("café")), "es", ES.format("té")),
        ((EN.format("tea"), ES.format("té")), "es", ES.format("té")),
        ((ES.format("té"), EN.format("tea"), EN.format("milk")), "en", EN.format("tea")),
        ((LONG_ES, EN.format("tea"), ES.format("té")), "es", ES.format("té")),
        ((LONG_EN, ES.format("té")), "en", LONG_EN),
        ((EN.format("tea"),), "es", "Una"),
        ((), "es", "Una"),
        # no everyday word says what it is: the card does
        (("Ibuprofeno 600",), "es", "Ibuprofeno 600"),
    ],
)
def test_a_card_is_suggested_by_its_first_short_question(
    questions: tuple[str, ...], language: str, expected: str
) -> None:
    """Of a card's questions the first short one in the language is taken, else a long one, else its title."""
    assert len(LONG_ES) > SHORT_CHARS < len(LONG_EN)
    assert suggest([card("una", questions=questions)], language) == (Suggestion(expected, language, "una"),)


def test_a_question_that_names_its_card_comes_before_one_that_leans_on_it() -> None:
    """Of a card's short questions the first that has a word of its title is taken, before shorter and earlier ones."""
    questions = ("¿Antes o después?", f"¿{'Y ' * 50}comidas?", "¿Da igual si la comida es ligera?", "¿Con comida?")
    (found,) = suggest([card("a", "x", questions, title="Tomarlo con las comidas")], "es")
    assert found.question == questions[2]


def test_titles_come_in_their_own_language_after_questions() -> None:
    """A title is suggested only in the language of its card, and behind all questions."""
    cards = [card("a", "x"), card("b", "x", [ES.format("té")]), card("c", "y", language="en"), card("d", "x")]
    assert ids(suggest(cards, "es")) == ["b", "a", "d"]
    assert ids(suggest(cards, "en")) == ["c"]


def test_topics_take_turns() -> None:
    """Each first topic gives one card by turns, the one with most cards first; none is a topic too."""
    cards = [
        card(f"{topic}{number}", topic, [ES.format(f"{topic} {number}")]) for topic in "xyz" for number in range(2)
    ]
    cards += [card("y2", "y", [ES.format("y 2")]), card("none", None, [ES.format("pan")])]
    assert ids(suggest(cards, "es")) == ["y0", "x0", "z0", "none", "y1", "x1"]


def test_cards_in_the_language_come_before_others() -> None:
    """Topics with most cards in the language come first, and in a topic the cards in it, as answers quote cards."""
    both = [EN.format("tea"), ES.format("té")]
    cards = [card(f"es{number}", "efectos", [EN.format(f"{number}")]) for number in range(3)]
    cards += [card("en0", "effects", both, language="en"), card("en1", "efectos", [EN.format("milk")], language="en")]
    cards += [card("en2", "effects", [EN.format("bread")], language="en")]
    assert ids(suggest(cards, "en")) == ["en0", "en1", "en2", "es0", "es1", "es2"]
    assert ids(suggest(cards, "es")) == ["en0", "es0", "es1", "es2"]


def test_where_nothing_is_in_the_language_the_other_is_taken() -> None:
    """A box without a word in the language suggests what it has in the other, and says so; an empty one nothing."""
    spanish = [card("a", "x", [ES.format("té")]), card("b", "x")]
    assert suggest(spanish, "en") == (Suggestion(ES.format("té"), "es", "a"), Suggestion("B", "es", "b"))
    assert suggest([], "en") == suggest([], "es") == ()


def test_two_cards_that_are_not_public_come_first() -> None:
    """Who may see cards that are not public gets two of those first, then public ones, then the rest of their own."""
    own = [card(f"own{number}", "x", [ES.format(f"n{number}")], acl=("staff",)) for number in range(5)]
    public = [card(f"public{number}", "y", [ES.format(f"p{number}")]) for number in range(5)]
    both = card("both", "z", [ES.format("b")], acl=("public", "staff"))
    assert ids(suggest([*public, both, *own], "es")) == ["own0", "own1", "public0", "both", "public1", "public2"]
    assert ids(suggest([*own, *public[:2]], "es")) == ["own0", "own1", "public0", "public1", "own2", "own3"]
    assert ids(suggest([own[0], *public], "es"))[:2] == ["own0", "public0"]


def test_nothing_is_suggested_twice() -> None:
    """Two cards that name the same question are one suggestion."""
    cards = [
        card("a", "x", ["¿Cuándo se toma?"]),
        card("b", "y", ["¿CUÁNDO se toma?"]),
        card("c", "y", [ES.format("té")]),
    ]
    assert ids(suggest(cards, "es")) == ["b", "c"]


def test_a_card_without_text_is_not_suggested() -> None:
    """Nothing answers from a card that has no text, so nobody is led to ask for it."""
    assert suggest([make_card("a", "", questions=(ES.format("té"),))], "es") == ()


CARDS = st.lists(
    st.builds(
        lambda topic, language, questions, public: (topic, language, questions, public),
        st.sampled_from(["x", "y", None]),
        st.sampled_from(["es", "en"]),
        st.lists(st.sampled_from([ES.format("té"), EN.format("tea"), LONG_ES, LONG_EN, "Tabaco"]), max_size=3),
        st.booleans(),
    ),
    max_size=12,
)


@given(drawn=CARDS, language=st.sampled_from(["es", "en"]))
def test_suggestions_of_any_box_hold(drawn: list[tuple[str | None, str, list[str], bool]], language: str) -> None:
    """Of any cards: at most six, one a card, each its own question or title, in one language, the same each time."""
    cards = [
        card(f"c{number:02d}", topic, questions, language=of, acl=("public",) if public else ("staff",))
        for number, (topic, of, questions, public) in enumerate(drawn)
    ]
    found = suggest(cards, language)
    assert found == suggest(cards, language)
    assert len(found) == len(set(ids(found))) <= COUNT
    assert len({suggestion.language for suggestion in found}) <= 1
    assert bool(found) == bool(cards)
    known = {card.card_id: card for card in cards}
    for suggestion in found:
        of = known[suggestion.card_id]
        titled = suggestion.question == of.title and suggestion.language == of.language
        assert titled or suggestion.question in of.questions


# remembering


@dataclass
class Rows:
    """Cards behind access rules; counts how often they are asked for."""

    all_cards: Sequence[Card]
    asked: int = 0

    def cards(self, groups: Collection[str]) -> list[Card]:
        """Those that share a group."""
        self.asked += 1
        return [card for card in self.all_cards if not set(card.acl).isdisjoint(groups)]


@dataclass
class Index:
    """As much of an index as suggestions need."""

    build_id: str
    rows: Rows


def index(build_id: str, *cards: Card) -> OpenIndex:
    return cast(OpenIndex, Index(build_id, Rows(cards)))


def asked(of: OpenIndex) -> int:
    return cast(Rows, of.rows).asked


def test_results_are_remembered_for_one_build_groups_and_language() -> None:
    """The same groups get the same result without any card being looked at; others, and other builds, get their own."""
    hidden, public = card("hidden", "x", [ES.format("té")], acl=("staff",)), card("public", "x", [ES.format("café")])
    first, second = index("one", hidden, public), index("two", public)

    async def run() -> None:
        suggester = Suggester()
        for _ in range(3):
            assert ids(await suggester.suggest(first, {"public", "staff"}, "es")) == ["hidden", "public"]
            assert ids(await suggester.suggest(first, {"public"}, "es")) == ["public"]
            assert ids(await suggester.suggest(first, ["staff"], "es")) == ["hidden"]
            assert ids(await suggester.suggest(first, {"nurses"}, "es")) == []
            assert ids(await suggester.suggest(second, {"public", "staff"}, "es")) == ["public"]
        assert (asked(first), asked(second)) == (4, 1)
        await suggester.suggest(first, {"public"}, "en")
        assert asked(first) == 5

    asyncio.run(run())


def test_callers_at_once_share_the_work() -> None:
    """Many who ask the same at the same time have it made once."""
    one = index("one", card("a", "x", [ES.format("té")]))

    async def run() -> None:
        suggester = Suggester()
        found = await asyncio.gather(*(suggester.suggest(one, {"public"}, "es") for _ in range(20)))
        assert len(set(found)) == 1

    asyncio.run(run())
    assert asked(one) == 1


def test_few_results_are_remembered() -> None:
    """Of many builds and groups only the last results are kept, and the index of none."""
    one = index("one", card("a", "x", [ES.format("té")]))

    async def run() -> None:
        suggester = Suggester()
        for number in range(KEPT_RESULTS + 1):
            await suggester.suggest(one, {"public", f"group {number}"}, "es")
        await suggester.suggest(one, {"public", f"group {KEPT_RESULTS}"}, "es")
        assert asked(one) == KEPT_RESULTS + 1
        await suggester.suggest(one, {"public", "group 0"}, "es")
        assert asked(one) == KEPT_RESULTS + 2

    asyncio.run(run())


def test_few_cards_of_many_are_looked_at() -> None:
    """In a large box whose cards name questions in the language, only the first ones of each topic are read."""

    class Watched(tuple[str, ...]):
        """Questions that count who reads them."""

        __slots__ = ()
        read = 0

        def __iter__(self) -> Iterator[str]:
            Watched.read += 1
            return super().__iter__()

    cards = [
        make_card(f"c{number:04d}", topics=(f"t{number % 10}",), questions=Watched([ES.format(str(number))]))
        for number in range(5_000)
    ]
    random.Random(0).shuffle(cards)
    assert len(suggest(cards, "es")) == COUNT
    assert Watched.read == COUNT
