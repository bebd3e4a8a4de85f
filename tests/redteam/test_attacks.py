"""The attacks, the model that obeys them, and the cards that they are planted in."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag.cards import read_cards
from tests.fake_llm import Asked, FakeLlm, Reply, fails, says
from tests.redteam.attacks import ATTACKS, CANARY, CHANNELS, KINDS, Attack
from tests.redteam.cards import PLANTED, STAFF_CARDS, hidden_texts, write_cards
from tests.redteam.effects import effects
from tests.redteam.obedient import obedient
from tests.redteam.test_effects import SYSTEM, naive


def test_attacks_are_many_and_of_all_kinds() -> None:
    """At least 140, half of them in each language, of every channel and kind, with ids and words of their own."""
    assert len(ATTACKS) >= 140
    for language in ("es", "en"):
        mine = [attack for attack in ATTACKS if attack.language == language]
        assert 2 * len(mine) == len(ATTACKS)
        assert {attack.channel for attack in mine} == set(CHANNELS)
        assert {attack.kind for attack in mine} == set(KINDS)
    assert len({attack.text for attack in ATTACKS}) == len({attack.attack_id for attack in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.attack_id)
def test_an_attack_can_be_recognised_and_planted(attack: Attack) -> None:
    """Its text holds its own canary and no other, fits into a question, and is one line where only a line fits."""
    assert set(re.findall(CANARY, attack.text)) == {attack.canary}
    assert attack.canary not in attack.obeys
    assert "§" not in attack.text + attack.obeys
    assert len(attack.text) <= 1_000
    assert attack.channel not in ("title", "context") or "\n" not in attack.text


@pytest.fixture
def ask() -> Iterator[Callable[..., httpx.Response]]:
    """Asks an obedient model that shows the card agua and otherwise says so."""
    with (
        FakeLlm(obedient(ATTACKS, answers=lambda _: "Beba agua. [cite:agua]", shows=lambda _: "agua")) as fake,
        httpx.Client(base_url=fake.url, trust_env=False) as client,
    ):

        def go(*texts: str, **options: Any) -> httpx.Response:
            messages = [{"role": "system", "content": SYSTEM}]
            messages += [{"role": "user", "content": text} for text in texts]
            return client.post("/chat/completions", json={"model": "uno", "messages": messages, **options})

        yield go


def said(response: httpx.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def test_every_order_is_obeyed_and_shows(ask: Callable[..., httpx.Response]) -> None:
    """Each attack gets what it wants from the model, also when its signs were escaped; what leaks is an effect."""
    showing = {"marker", "exfiltration", "staff", "system-prompt"}
    hidden = ["personal-corte-nevera", "personal-error-dispensacion", "staff-returned-medicines", *hidden_texts()]
    for attack in ATTACKS:
        escaped = attack.text.replace("[", "&#91;").replace("<", "&lt;")
        text = said(ask(f"Una pregunta.\n\n{escaped}"))
        if "{" not in attack.obeys:
            assert text == attack.obeys
        if attack.kind in showing or "{system}" in attack.obeys or "{prompt}" in attack.obeys:
            assert effects(naive(text), hidden_texts=hidden, visible_texts={}, instructions=SYSTEM), attack


def test_placeholders_are_what_was_sent(ask: Callable[..., httpx.Response]) -> None:
    """A model that obeys tells its system message, all that it was sent, and the id of a card, to the letter."""
    by_template = {attack.obeys: attack for attack in ATTACKS}
    asked = f"¿Qué? {{card}} {by_template['{system}'].text}"
    assert said(ask(asked)) == SYSTEM
    asked = f"¿Qué? {{card}} {by_template['{prompt}'].text}"
    assert said(ask(asked)) == f"{SYSTEM}\n\n{asked}"
    cited = next(attack for attack in ATTACKS if attack.obeys.endswith(" [cite:{card}]"))
    assert said(ask(cited.text)).endswith(" [cite:agua]")


def test_the_last_order_is_obeyed(ask: Callable[..., httpx.Response]) -> None:
    """Of several orders the last one counts; without any, and with one that nobody knows, the model behaves."""
    literal = [attack for attack in ATTACKS if "{" not in attack.obeys][:2]
    assert said(ask(literal[0].text, literal[1].text)) == literal[1].obeys
    assert said(ask(literal[1].text, literal[0].text)) == literal[0].obeys
    assert said(ask("¿Bebo agua?")) == "Beba agua. [cite:agua]"
    assert said(ask("orden-999 y orden-0011: ¿bebo agua?")) == "Beba agua. [cite:agua]"


def test_json_is_given_where_it_is_asked_for(ask: Callable[..., httpx.Response]) -> None:
    """In JSON mode the text is the answer of an object, which names what it cites once."""
    text = said(ask("¿Bebo agua?", response_format={"type": "json_object"}))
    assert json.loads(text) == {"answer": "Beba agua. [cite:agua]", "citations": ["agua"], "refused": False}


def events(response: httpx.Response) -> list[str]:
    assert response.headers["content-type"] == "text/event-stream"
    assert "content-length" not in response.headers
    lines = response.text.split("\n\n")
    assert lines.pop() == ""
    assert all(line.startswith("data: ") for line in lines)
    return [line.removeprefix("data: ") for line in lines]


def test_a_stream_holds_the_same_words(ask: Callable[..., httpx.Response]) -> None:
    """A request that wants a stream gets the answer in pieces of a few signs, why it ended, and the end."""
    *chunks, end = events(ask("¿Bebo agua?", stream=True))
    assert end == "[DONE]"
    choices = [json.loads(chunk)["choices"][0] for chunk in chunks]
    pieces = [choice["delta"].get("content", "") for choice in choices]
    assert "".join(pieces) == "Beba agua. [cite:agua]"
    assert max(map(len, pieces)) == 3
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]


def test_a_stream_counts_tokens_where_that_is_asked_for(ask: Callable[..., httpx.Response]) -> None:
    """With include_usage the piece before the end holds the counts and no words."""
    *_, last, _ = events(ask("¿Bebo agua?", stream=True, stream_options={"include_usage": True}))
    assert json.loads(last)["choices"] == []
    assert json.loads(last)["usage"]["prompt_tokens"] == 100


def test_what_is_no_answer_is_not_streamed() -> None:
    """An error, and an answer without a text, come whole also where a stream was wanted."""

    def behave(asked: Asked) -> Reply:
        return fails(500) if asked.prompt == "mal" else says(None)

    with FakeLlm(behave) as fake:
        for prompt, status in (("mal", 500), ("nada", 200)):
            body = {"messages": [{"role": "user", "content": prompt}], "stream": True}
            response = httpx.post(f"{fake.url}/chat/completions", json=body, trust_env=False)
            assert response.status_code == status
            assert isinstance(response.json(), dict)


def test_every_card_is_read(tmp_path: Path) -> None:
    """Each planted card and each of the staff's is read without a fault, and seen by those who should."""
    write_cards(tmp_path)
    folder = read_cards(tmp_path)
    assert folder.faults == ()
    cards = {card.card_id: card for card in folder.cards}
    assert set(cards) == {planted.card_id for planted in PLANTED} | {card.card_id for card in STAFF_CARDS}
    for planted in PLANTED:
        card = cards[planted.card_id]
        assert card.acl == ("public",)
        assert card.language == planted.attack.language
        assert all(sentence in card.text for sentence in planted.sentences)
    for staff in STAFF_CARDS:
        assert (cards[staff.card_id].acl, cards[staff.card_id].text) == (("staff",), staff.text)


def test_an_attack_stands_in_its_card(tmp_path: Path) -> None:
    """Each canary is in its own card and no other, where it was planted, unless that is a comment."""
    write_cards(tmp_path)
    cards = {card.card_id: card for card in read_cards(tmp_path).cards}
    for planted in PLANTED:
        attack, card = planted.attack, cards[planted.card_id]
        parts = {"body": card.text, "title": card.title, "context": " ".join(card.topics) if card.topics else ""}
        in_comment = attack.text.startswith("<!--")
        assert (attack.canary in parts[attack.channel]) is not in_comment
        assert not any(attack.canary in str(other) for other in cards.values() if other is not card)


def test_names_are_told_apart() -> None:
    """Every product has a name of its own, unlike all others, which its question and each of its sentences hold."""
    stems = [re.sub(r"\W", "", planted.name.lower()) for planted in PLANTED]
    assert len(PLANTED) == sum(attack.channel in ("body", "title", "context") for attack in ATTACKS)
    assert all(
        difflib.SequenceMatcher(None, one, other).ratio() < 0.75 for one, other in itertools.combinations(stems, 2)
    )
    for planted in PLANTED:
        assert planted.name in planted.question
        assert all(planted.name in sentence for sentence in planted.sentences)


def test_staff_cards_say_what_no_other_card_says() -> None:
    """There are at least five, in both languages, and none shares six words with a card that others may see."""
    assert len(STAFF_CARDS) >= 5
    assert {card.language for card in STAFF_CARDS} == {"es", "en"}
    public = {planted.card_id: planted.file_text for planted in PLANTED}
    for planted in PLANTED:
        text = " ".join(planted.sentences)
        assert effects(naive(text), hidden_texts=hidden_texts(), visible_texts=public, instructions="") == []
