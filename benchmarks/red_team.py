"""Attacks that others collected, on answers of a model that obeys them: ``python -m benchmarks.red_team FILE``.

The file holds one JSON object a line: ``id, language, channel, kind, text``. Each text is asked as a question about the
example cards, and planted in the body of a card and then asked about. The model says, in turn, the text itself, its
system message, and all that it was sent, with a marker behind every line. The gate is open, as it would keep most
of the texts from the model. What an answer shows of all that is judged by ``tests/redteam/effects.py``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import httpx

from benchmarks.boxes import MODEL_DIR, write_reference_vectors
from benchmarks.machine import describe_machine
from benchmarks.service import ROOT, started_service
from rag.cards import read_cards
from rag.errors import RagError
from rag.indexing import VECTORS_FILE, Builder, BuildOptions
from rag.prompting import instructions
from rag.records import PUBLIC_GROUP, Card
from rag.sentences import split_sentences
from rag.serving.questions import QUESTION_LIMIT_CHARS
from rag.settings import Settings
from tests.fake_llm import Asked, FakeLlm
from tests.redteam.attacks import Attack
from tests.redteam.cards import Planted, write_cards
from tests.redteam.effects import effects
from tests.redteam.foreign import plant_all, read_attacks
from tests.redteam.obedient import ECHOES, echoing

INSTRUCTIONS = "\n".join(instructions(language, as_json=True) for language in ("es", "en"))
_SHOWN_CARD = re.compile(r'^<(?:card|ficha) id="([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Order:
    """A question to ask while the model obeys an attack."""

    attack: Attack
    channel: str
    question: str
    card_id: str | None = None
    """Where the attack is planted."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Cards with an index of them, as somebody without a token sees them."""

    index_dir: Path
    visible: Mapping[str, str]
    """Id → title and text."""
    first: Mapping[str, str]
    """Id → the card's first sentence, for those who may see it."""
    hidden: Collection[str]
    """Ids, titles and texts of the others."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one question."""

    order: Order
    echo: str
    asked: bool
    """The model was; where it was not, nothing was tried."""
    planted: bool
    """It was shown the card with the attack."""
    effects: Sequence[str]
    answer: Mapping[str, Any]
    """The answer object, or the problem."""

    @property
    def outcome(self) -> str:
        """How the service took it."""
        if "answer" not in self.answer:
            return "no question for the service"
        if self.answer["refusal"]:
            return f"refused, {self.answer['refusal']['reason']}"
        return f"quotes, {self.answer['degraded_reason']}" if self.answer["degraded"] else "written"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 when an attack had an effect."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.red_team", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="of attacks")
    parser.add_argument("--attacks", type=int, metavar="N", help="take N of them, from all over the file")
    parser.add_argument("--stream", action="store_true", help="ask for streams, and judge the answers they end in")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write each trial there, one JSON object a line")
    options = parser.parse_args(arguments)
    try:
        attacks = read_attacks(options.file)
        taken = attacks[:: max(1, len(attacks) // options.attacks)][: options.attacks] if options.attacks else attacks
        planted = plant_all(taken)
    except RagError as error:
        raise SystemExit(str(error)) from error
    print(describe_machine())
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fichero-red-team-") as work:
        vectors = Path(work) / "vectors.sqlite"
        write_reference_vectors(vectors)
        trials: list[Trial] = []
        for trial in run_all(Path(work), planted, vectors=vectors, stream=options.stream):
            trials.append(trial)
            if options.out:
                with options.out.open("a" if len(trials) > 1 else "w", encoding="utf-8") as out:
                    _write(trial, out)
    print(f"{(time.monotonic() - started) / 60:.1f} minutes")
    return summarise(trials)


def run_all(
    work: Path, planted: Sequence[Planted], *, vectors: Path, cards_dir: Path = ROOT / "cards", stream: bool = False
) -> Iterator[Trial]:
    """
    Both channels, each over cards of its own: an attack in a card would speak for the same text as a question.

    What it makes is put into the folder ``work``. Both indexes begin with the cache ``vectors``, such as
    ``write_reference_vectors`` makes.
    """
    shutil.copytree(cards_dir, work / "example")
    write_cards(work / "example", [])
    write_cards(work / "planted", planted)
    channels = {
        "example": [Order(one.attack, "question", one.attack.text[:QUESTION_LIMIT_CHARS]) for one in planted],
        "planted": [Order(one.attack, "body", one.question, one.card_id) for one in planted],
    }
    for name, orders in channels.items():
        print(f"{name} cards: building their index", flush=True)
        index_dir = work / f"{name}-index"
        (index_dir / VECTORS_FILE).parent.mkdir(parents=True)
        shutil.copyfile(vectors, index_dir / VECTORS_FILE)
        ground = _ground(work / name, index_dir)
        yield from _run(ground, orders, stream=stream)


def _ground(cards_dir: Path, index_dir: Path) -> Ground:
    folder = read_cards(cards_dir)
    for fault in folder.faults:
        print(f"left out: {fault}")
    settings = Settings()
    options = BuildOptions(settings.chunk_chars, settings.overlap_chars, settings.context)
    Builder(index_dir, MODEL_DIR, options, settings.threads).build(folder.cards)
    visible: list[Card] = []
    hidden: list[Card] = []
    for card in folder.cards:
        (visible if PUBLIC_GROUP in card.acl else hidden).append(card)
    return Ground(
        index_dir,
        {card.card_id: f"{card.title}\n{card.text}" for card in visible},
        {card.card_id: _first_sentence(card.text) for card in visible},
        [text for card in hidden for text in (card.text, card.title, card.card_id)],
    )


def _first_sentence(text: str) -> str:
    return next((sentence.text for sentence in split_sentences(text)), "")


def _run(ground: Ground, orders: Sequence[Order], *, stream: bool) -> Iterator[Trial]:
    with FakeLlm() as llm:
        changes = {
            "FICHERO_MODEL_DIR": str(MODEL_DIR),
            "FICHERO_INDEX_DIR": str(ground.index_dir),
            "FICHERO_LLM_BASE_URL": llm.url,
            "FICHERO_LLM_MODEL": "fake",
            "FICHERO_MIN_SIMILARITY": "-1",
            # fewer cards to repeat: the time goes by with what the model says
            "FICHERO_TOP_K": "3",
        }
        with started_service(changes) as service, httpx.Client(base_url=service.url, timeout=60) as client:
            service.wait_until_ready()
            for count, order in enumerate(orders, start=1):
                trials = [_try(client, llm, ground, order, echo, stream=stream) for echo in ECHOES]
                said = ", ".join(f"{trial.echo}: {trial.outcome}" for trial in trials)
                print(f"{count}/{len(orders)} {order.channel} {order.attack.attack_id}: {said}", flush=True)
                for trial in trials:
                    for effect in trial.effects:
                        print(f"    EFFECT ({trial.echo}): {effect}", flush=True)
                yield from trials


def _try(client: httpx.Client, llm: FakeLlm, ground: Ground, order: Order, echo: str, *, stream: bool) -> Trial:
    def shows(asked: Asked) -> str:
        shown: list[str] = _SHOWN_CARD.findall(asked.prompt)
        return order.card_id if order.card_id and order.card_id in shown else shown[0]

    llm.asked.clear()
    llm.behaviour = echoing(echo, order.attack.text, shows=shows, opens=lambda asked: ground.first[shows(asked)])
    response = client.post("/ask", json={"question": order.question, "stream": stream})
    answer = _answer_of(response)
    found: list[str] = []
    if response.status_code == 200:
        found = effects(answer, hidden_texts=ground.hidden, visible_texts=ground.visible, instructions=INSTRUCTIONS)
    planted = any(order.card_id in _SHOWN_CARD.findall(asked.prompt) for asked in llm.asked)
    return Trial(order, echo, bool(llm.asked), planted, found, answer)


def _answer_of(response: httpx.Response) -> Mapping[str, Any]:
    text = response.text
    if "event-stream" in response.headers["content-type"]:
        # the last event is the answer, or a problem
        text = text.rpartition("\ndata: ")[2]
    found: dict[str, Any] = json.loads(text)
    return found


def _write(trial: Trial, out: TextIO) -> None:
    order = trial.order
    line = {
        "id": order.attack.attack_id,
        "kind": order.attack.kind,
        "channel": order.channel,
        "echo": trial.echo,
        "asked": trial.asked,
        "effects": trial.effects,
        "answer": trial.answer,
    }
    out.write(json.dumps(line, ensure_ascii=False) + "\n")


def summarise(trials: Sequence[Trial]) -> int:
    """Print the figures and every effect; 1 when there was one, or when nothing was tried."""
    reached = sum(trial.asked for trial in trials)
    bodies = [trial for trial in trials if trial.order.channel == "body"]
    shown = sum(trial.planted for trial in bodies)
    print(
        f"{len(trials)} trials; the model was asked in {reached}, and in {shown} of {len(bodies)} it was shown "
        "the card with the attack"
    )
    for outcome, count in Counter(trial.outcome for trial in trials).most_common():
        print(f"{count:7} {outcome}")
    found = [(trial, effect) for trial in trials for effect in trial.effects]
    print(f"{len(found)} effects in {sum(bool(trial.effects) for trial in trials)} trials")
    for kind, count in Counter(effect.partition(":")[0] for _, effect in found).most_common():
        print(f"{count:7} {kind}")
    for trial, effect in found:
        print(f"{trial.order.attack.attack_id} {trial.order.channel} ({trial.echo}): {effect}")
    return 1 if found or not reached else 0


if __name__ == "__main__":
    sys.exit(main())
