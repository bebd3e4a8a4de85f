"""What happened so far, counted for Prometheus: no question, no card and no caller."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from prometheus_client import CollectorRegistry, Counter, generate_latest

from rag.answering import Checked, Event
from rag.records import Answer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Meter:
    """Counts of one service; a restart begins anew."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._answers = Counter(
            "fichero_answers",
            "Answers, by who wrote them and how they ended.",
            ["mode", "outcome"],
            registry=self._registry,
        )
        self._degraded = Counter(
            "fichero_degraded",
            "Answers that the language model should have written, by why it did not.",
            ["reason"],
            registry=self._registry,
        )
        self._checked = Counter(
            "fichero_citations_checked",
            "Citations in what the language model wrote, and sentences withheld, by verdict.",
            ["verdict"],
            registry=self._registry,
        )

    async def count(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """The same events, counted as they pass."""
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Checked):
                    for verdict, number in event.verdicts.items():
                        self._checked.labels(verdict).inc(number)
                elif isinstance(event, Answer):
                    outcome = "refused" if event.refusal else "degraded" if event.degraded else "answered"
                    self._answers.labels(event.mode, outcome).inc()
                    if event.degraded_reason:
                        self._degraded.labels(event.degraded_reason).inc()
                yield event

    def exposition(self) -> bytes:
        """All counts in the text format of Prometheus."""
        return generate_latest(self._registry)
