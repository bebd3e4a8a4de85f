"""Questions to begin with, from the cards that a caller may see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from rag.language import detect_language
from rag.opening import OpenIndex
from rag.records import PUBLIC_GROUP, Card
from rag.terms import terms

COUNT = 6
OWN_FIRST = 2
"""So many from cards that are not public come first, where the caller may see any."""
SHORT_CHARS = 80
"""Questions up to here are taken before longer ones."""
KEPT_RESULTS = 32

_OTHER = {"es": "en", "en": "es"}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What somebody could ask, and the card that it comes from."""

    question: str
    language: str
    card_id: str


def suggest(cards: Sequence[Card], language: str) -> tuple[Suggestion, ...]:
    """
    At most ``COUNT`` questions in a language, or in the other one where there is none; each card gives one at most.

    By turns from each first topic: the one with most cards in that language first, as an answer quotes a card in its
    own, then the one with most cards at all; ties in the order given, and so are the cards of a topic, those in that
    language first. Titles come when there are no more questions. Two from cards that are not public stand before those
    from public cards, further ones behind them.
    """
    return _suggest_in(cards, language) or _suggest_in(cards, _OTHER[language])


def _suggest_in(cards: Sequence[Card], language: str) -> tuple[Suggestion, ...]:
    # nothing answers from a card without text
    answering = [card for card in cards if card.text]
    own = _by_turns([card for card in answering if PUBLIC_GROUP not in card.acl], language)
    public = _by_turns([card for card in answering if PUBLIC_GROUP in card.acl], language)
    chosen: dict[str, Suggestion] = {}
    for suggestion in chain(islice(own, OWN_FIRST), public, own):
        # two cards may name the same question
        chosen.setdefault(suggestion.question.casefold(), suggestion)
        if len(chosen) == COUNT:
            break
    return tuple(chosen.values())


def _by_turns(cards: Sequence[Card], language: str) -> Iterator[Suggestion]:
    """Questions, then titles of the cards that gave none. Looks at no more cards than it has to."""

    def weight(pile: list[Card]) -> tuple[int, int]:
        return sum(card.language == language for card in pile), len(pile)

    topics: dict[str, list[Card]] = {}
    # sorting keeps the order of what is equal
    for card in sorted(cards, key=lambda card: card.language != language):
        topics.setdefault(card.topics[0] if card.topics else "", []).append(card)
    piles = sorted(topics.values(), key=weight, reverse=True)
    asked: set[str] = set()
    for suggestion in _one_of_each(piles, lambda card: _question_of(card, language)):
        asked.add(suggestion.card_id)
        yield suggestion
    yield from _one_of_each(piles, lambda card: _title_of(card, language) if card.card_id not in asked else None)


def _one_of_each(piles: Sequence[Sequence[Card]], make: Callable[[Card], Suggestion | None]) -> Iterator[Suggestion]:
    """What can be made of the first card of each pile that gives anything, then of the next, until all are used up."""
    left = [filter(None, map(make, pile)) for pile in piles]
    while left:
        still = []
        for pile in left:
            made = next(pile, None)
            if made:
                still.append(pile)
                yield made
        left = still


def _question_of(card: Card, language: str) -> Suggestion | None:
    """
    The first question in a language that is short and has a word of the card's title, else a short one, else the first.

    A question beside its card needs no name for the thing; one that stands alone does.
    """
    title = terms(card.title)

    def worth(question: str) -> tuple[bool, bool]:
        return len(question) > SHORT_CHARS, title.isdisjoint(terms(question))

    for question in sorted(card.questions, key=worth):
        if detect_language(question, default=card.language) == language:
            return Suggestion(question, language, card.card_id)
    return None


def _title_of(card: Card, language: str) -> Suggestion | None:
    return Suggestion(card.title, language, card.card_id) if card.language == language else None


class Suggester:
    """Suggests, and remembers the last results: of one build, for callers of the same groups, in one language."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, frozenset[str], str], tuple[Suggestion, ...]] = {}
        self._at_work = asyncio.Lock()

    async def suggest(self, index: OpenIndex, groups: Collection[str], language: str) -> tuple[Suggestion, ...]:
        """See ``suggest``; for those who share these very groups."""
        key = index.build_id, frozenset(groups), language
        if key in self._known:
            return self._known[key]
        # one at a time, beside the loop: thousands of cards take a while
        async with self._at_work:
            if key not in self._known:
                found = await asyncio.to_thread(lambda: suggest(index.rows.cards(groups), language))
                self._known[key] = found
                if len(self._known) > KEPT_RESULTS:
                    del self._known[next(iter(self._known))]
                return found
            return self._known[key]
