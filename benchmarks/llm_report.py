"""Answers that a language model wrote, counted and laid out to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ANSWERABLE, NEAR_MISS, OFF_TOPIC = "answerable", "near_miss", "off_topic"
_MARKED = ("valid", "unsupported", "unknown", "malformed")


@dataclass(frozen=True, slots=True)
class Written:
    """A question and what came of it."""

    model: str
    mode: str
    """``whole`` or ``stream``."""
    kind: str
    question: str
    language: str
    must_cite_one_of: Sequence[str]
    answer: Mapping[str, Any]
    """The answer object."""
    checked: Mapping[str, int]
    """By how much the service's counts of verdicts grew."""
    first_delta_seconds: float | None
    """Until the first words could be read; None where none came before the end."""
    total_seconds: float

    @property
    def by_model(self) -> bool:
        """The model's answer is shown, not quotes or a refusal."""
        return self.answer["mode"] == "llm" and not self.answer["refusal"]

    @property
    def cites_right(self) -> bool:
        """A citation that holds is of one of the cards that answer the question."""
        cited = {citation["card_id"] for citation in self.answer["citations"] if citation["verdict"] == "valid"}
        return bool(cited & set(self.must_cite_one_of))


def outcome(written: Written) -> str:
    """What came of a question, and why, in a few words."""
    answer = written.answer
    reason = f" (degraded, {answer['degraded_reason']})" if answer["degraded"] else ""
    if answer["refusal"]:
        return f"refused, {answer['refusal']['reason']}{reason}"
    return f"quotes{reason}" if not written.by_model else "answered"


def report(everything: Sequence[Written]) -> Iterator[str]:
    """The figures of one mode, line by line, and what the model answered that it should not have."""
    yield f"{len(everything)} questions: {_counted(Counter(map(outcome, everything)))}"
    for kind in (ANSWERABLE, NEAR_MISS, OFF_TOPIC):
        of_kind = [written for written in everything if written.kind == kind]
        yield f"    {kind}: {_counted(Counter(map(outcome, of_kind)))}"
    checked = Counter[str]()
    for written in everything:
        checked.update(written.checked)
    yield "what the model marked, in all attempts: " + ", ".join(f"{checked[name]} {name}" for name in _MARKED)
    shown = Counter(verdict for written in everything for verdict in _shown_verdicts(written))
    yield (
        f"what is shown: {shown['valid']} valid, {shown['unsupported']} unsupported; {checked['added']} were added "
        f"where no marker held, {checked['withheld']} sentences withheld"
    )
    yield from _right_cards(everything)
    yield from _seconds(everything)
    for written in everything:
        if written.by_model and written.kind != ANSWERABLE:
            yield f"ANSWERED THOUGH {written.kind}: {written.question}\n    {written.answer['answer']}"


def readable(everything: Sequence[Written]) -> str:
    """All answers in Markdown: what was asked, what came of it, the answer with its marks, and what it quotes."""
    return "\n\n".join(block for written in everything for block in _blocks(written)) + "\n"


def _counted(counts: Counter[str]) -> str:
    return "; ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"


def _shown_verdicts(written: Written) -> Iterator[str]:
    if written.by_model:
        for segment in written.answer["segments"]:
            if segment["type"] == "citation":
                yield written.answer["citations"][segment["citation"]]["verdict"]


def _right_cards(everything: Sequence[Written]) -> Iterator[str]:
    answered = [written for written in everything if written.kind == ANSWERABLE and not written.answer["refusal"]]
    for name, chosen in (
        ("by the model", [written for written in answered if written.by_model]),
        ("with quotes instead", [written for written in answered if not written.by_model]),
    ):
        if chosen:
            right = sum(written.cites_right for written in chosen)
            share = f"{right} of {len(chosen)} ({100 * right / len(chosen):.0f} %)"
            yield f"answerable, answered {name}: {share} cite a card that answers"


def _seconds(everything: Sequence[Written]) -> Iterator[str]:
    # a refusal of the gate takes no time, and the model has no part in it
    asked = [written for written in everything if written.answer["mode"] == "llm" or written.answer["degraded"]]
    first = [written.first_delta_seconds for written in asked if written.first_delta_seconds is not None]
    for name, seconds in (("first words", first), ("in total", [written.total_seconds for written in asked])):
        if seconds:
            middle, late = np.percentile(seconds, [50, 95])
            yield f"seconds, {name}, of {len(seconds)} that the model was asked: p50 {middle:.1f}, p95 {late:.1f}"


def _blocks(written: Written) -> Iterator[str]:
    answer = written.answer
    yield f"## {written.question}"
    yield f"{written.kind}, {written.language}, {written.mode}: {outcome(written)}; {written.total_seconds:.1f} s"
    if written.must_cite_one_of:
        yield f"Should cite one of: {', '.join(written.must_cite_one_of)}"
    yield "".join(map(_marked, answer["segments"])) or answer["answer"]
    yield from (
        f"- [{citation['number']}] {citation['card_id']}, {citation['verdict']}: {' '.join(citation['quote'].split())}"
        for citation in answer["citations"]
    )
    counts = {name: count for name, count in written.checked.items() if count}
    if counts:
        yield f"Checked: {', '.join(f'{count} {name}' for name, count in counts.items())}"


def _marked(segment: Mapping[str, Any]) -> str:
    if segment["type"] == "citation":
        # quotes follow each other without a space
        return f" [{segment['number']}] "
    text = str(segment["text"])
    return text if segment.get("supported", True) else f"{text} (NOT SUPPORTED)"
