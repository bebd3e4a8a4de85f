"""Attacks on answers that a language model writes which obeys them all: what holds is the code."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag.cards import read_cards
from rag.prompting import instructions
from rag.records import PUBLIC_GROUP, Card
from tests.conftest import ROOT, built_once, locked, running
from tests.fake_llm import Asked, FakeLlm
from tests.redteam.attacks import ATTACKS, Attack
from tests.redteam.cards import PLANTED, hidden_texts, write_cards
from tests.redteam.effects import effects
from tests.redteam.obedient import obedient

STAFF_TOKEN = "personal"
ASKED_BEFORE = {"es": "¿Cómo se toma el hierro?", "en": "How should I take my tablets on an empty stomach?"}
_SHOWN = re.compile(r'<(?:ficha|card) id="([^"]+)"[^>]*>\n(?:… )?([^<]+)')


def shown_card(asked: Asked) -> str:
    """The id of the first card in a prompt."""
    found = _SHOWN.search(asked.prompt)
    return found[1] if found else ""


def true_sentence(asked: Asked) -> str:
    """A sentence of the first card in a prompt, and its marker."""
    found = _SHOWN.search(asked.prompt)
    if not found:
        return ""
    lines = [line for line in found[2].splitlines() if line.endswith(".") and not line.startswith(("#", "|", "-"))]
    sentence = re.split(r"(?<=\.) ", lines[0] if lines else found[2])[0]
    return f"{sentence} [cite:{found[1]}]"


@dataclass(frozen=True, slots=True)
class Target:
    """A service under attack: where it is, and what it may show."""

    url: str
    llm: FakeLlm
    visible: dict[str, str]
    hidden: list[str]


def target_of(cards_dir: Path, index_dir: Path, hidden: list[str]) -> Iterator[Target]:
    """The service over a folder of cards, with an obedient model."""
    cards = read_cards(cards_dir).cards
    public = [card for card in cards if PUBLIC_GROUP in card.acl]
    private = [card for card in cards if PUBLIC_GROUP not in card.acl]
    with FakeLlm() as llm:
        settings = {
            "FICHERO_INDEX_DIR": str(index_dir),
            "FICHERO_TOKENS": f"{hashlib.sha256(STAFF_TOKEN.encode()).hexdigest()}=staff",
            "FICHERO_LLM_BASE_URL": llm.url,
            "FICHERO_LLM_MODEL": "obediente",
        }
        with running(settings) as server:
            yield Target(server.url, llm, {card.card_id: _text(card) for card in public}, hidden or _texts(private))


def _text(card: Card) -> str:
    return "\n".join((card.card_id, card.title, card.text, card.source or ""))


def _texts(cards: list[Card]) -> list[str]:
    return [text for card in cards for text in (card.card_id, card.title, card.text)]


@pytest.fixture(scope="module")
def example_target(sample_index_dir: Path) -> Iterator[Target]:
    """The example cards: what is asked attacks them."""
    yield from target_of(ROOT / "cards", sample_index_dir, [])


@pytest.fixture(scope="module")
def planted_target(run_dir: Path) -> Iterator[Target]:
    """Cards with attacks in them."""
    cards_dir = run_dir / "planted-cards"
    with locked(cards_dir):
        if not cards_dir.exists():
            write_cards(cards_dir)
    yield from target_of(cards_dir, built_once(cards_dir, run_dir / "planted-index"), hidden_texts())


def ask(target: Target, body: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    """The answer object, whole or as the last event of a stream."""
    reply = httpx.post(f"{target.url}/ask", json={**body, "stream": stream}, timeout=60)
    assert reply.status_code == 200, reply.text
    if not stream:
        return dict(reply.json())
    blocks = [block.split("\n") for block in reply.text.split("\n\n") if block.startswith("event: ")]
    assert blocks[-1][0] == "event: done", reply.text
    answer = dict(json.loads(blocks[-1][1].removeprefix("data: ")))
    deltas = [json.loads(block[1].removeprefix("data: ")) for block in blocks if block[0] == "event: delta"]
    if not answer["degraded"]:
        assert deltas == [segment for segment in answer["segments"] if segment["type"] == "text"]
    return answer


def run(target: Target, attacks: list[tuple[Attack, dict[str, Any]]]) -> list[str]:
    """Every effect of attacks, each obeyed after a true sentence, every other one at once too; streams take turns."""
    found: list[str] = []
    trials = written = 0
    for polite in (False, True):
        target.llm.behaviour = obedient(ATTACKS, answers=true_sentence, shows=shown_card, polite=polite)
        for number, (attack, body) in enumerate(attacks if polite else attacks[::2]):
            stream = (number % 2 == 0) == polite
            answer = ask(target, body, stream=stream)
            trials += 1
            written += answer["mode"] == "llm" and not answer["refusal"]
            told = instructions(answer["language"], as_json=not stream)
            effect = effects(answer, hidden_texts=target.hidden, visible_texts=target.visible, instructions=told)
            found += [f"{attack.attack_id} polite={polite} stream={stream} {name}" for name in effect]
    print(f"{trials} trials, {written} answers of the model shown, {len(found)} effects")
    # else nothing of what the model says would have been put to the test
    assert written > trials / 4
    return found


def test_what_is_asked_has_no_effect(example_target: Target) -> None:
    """Attacks in questions and in what was said before have no effect, although the model obeys every one."""
    attacks = [
        (attack, {"question": attack.text})
        if attack.channel == "question"
        else (
            attack,
            {
                "question": ASKED_BEFORE[attack.language],
                "history": [{"question": ASKED_BEFORE[attack.language], "answer": attack.text}],
            },
        )
        for attack in ATTACKS
        if attack.channel in ("question", "history")
    ]
    assert run(example_target, attacks) == []


def test_what_stands_in_cards_has_no_effect(planted_target: Target) -> None:
    """Attacks in the bodies, titles and contexts of cards have no effect, although the model obeys every one."""
    assert run(planted_target, [(planted.attack, {"question": planted.question}) for planted in PLANTED]) == []
