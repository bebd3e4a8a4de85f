"""Things that a question can ask for and that show in a text: where they do not show, a text is no answer."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thing:
    """How people ask for a thing, and how it shows."""

    name: str
    asked: re.Pattern[str]
    shown: re.Pattern[str]

    def stands_in(self, text: str) -> bool:
        """Whether a text holds such a thing."""
        return self.shown.search(text) is not None


def thing_asked_for(question: str) -> Thing | None:
    """What a question plainly asks for; None for most questions."""
    return next((thing for thing in THINGS if thing.asked.search(question)), None)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


THINGS = (
    Thing(
        "price",
        _words(
            r"\bcu[aá]nto (?:me |nos )?(?:cuesta|cuestan|costar[aá]|vale|valen|sale|hay que pagar|se paga|pago)\b"
            r"|\bqu[eé] (?:precio|coste|tarifa)\b|\b(?:el|al) precio\b"
            r"|\bhow much (?:does|do|is|are|would|will)\b.{1,80}\b(?:cost|costs|price|pay)\b"
            r"|\bwhat(?: is|\'s|’s)? (?:the )?(?:price|cost|fee)\b|\bhow much (?:to|do i) pay\b"
        ),
        _words(
            r"[€$£]|\b(?:euros?|eur|d[oó]lar(?:es)?|dollars?|pounds?|libras|pesos|c[eé]ntimos?|cents?|pence)\b"
            r"|\b(?:gratis|gratuit\w+|free of charge|for free)\b"
        ),
    ),
    Thing(
        "opening hours",
        _words(
            r"\ba qu[eé] horas? (?:abre|abren|abr[ií]s|cierra|cierran|cerr[aá]is|atiend\w+)\b"
            r"|\bhasta qu[eé] hora\b.{0,40}\b(?:abiert|abre|atiend)"
            r"|\bhorarios? (?:de|del) (?:apertura|atenci[oó]n|cierre)\b"
            r"|\bwhat time\b.{1,60}\b(?:open|opens|close|closes|shut|shuts)\b|\bopening (?:hours|times)\b"
        ),
        _words(r"\b\d{1,2}\s?(?:[:.]\s?\d{2}\b|h\b|a\.?m\b|p\.?m\b|o.clock)|\b(?:a|de|desde|hasta) las? \d{1,2}\b"),
    ),
)
