"""What happened so far, measured for Prometheus: no question, no card and no caller, and labels of few values."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from rag.answering import Checked, Event
from rag.records import Answer
from rag.serving.engine import Engine

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 45.0)
STAGE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Upper ends, in seconds."""
_STAGES = ("embed", "search")


class Meter:
    """Measures of one service; a restart begins anew."""

    def __init__(self, engine: Engine) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter(
            "fichero_requests", "Requests, by route and status; 499 left early.", ["route", "status"], registry=registry
        )
        self._request_seconds = Histogram(
            "fichero_request_seconds",
            "Seconds to the end of the reply.",
            ["route"],
            registry=registry,
            buckets=REQUEST_BUCKETS,
        )
        self._answers = Counter(
            "fichero_answers",
            "Answers, by who wrote them and how they ended.",
            ["mode", "outcome"],
            registry=registry,
        )
        self._refusals = Counter("fichero_refusals", "Refusals, by reason.", ["reason"], registry=registry)
        self._degraded = Counter(
            "fichero_degraded",
            "Answers that the language model should have written, by why it did not.",
            ["reason"],
            registry=registry,
        )
        self._checked = Counter(
            "fichero_citations_checked",
            "Citations in what the language model wrote, and sentences withheld, by verdict.",
            ["verdict"],
            registry=registry,
        )
        self._truncated = Counter(
            "fichero_questions_truncated", "Questions longer than the embedding model reads.", registry=registry
        )
        self._stage_seconds = Histogram(
            "fichero_stage_seconds",
            "Seconds of an answer's stages.",
            ["stage"],
            registry=registry,
            buckets=STAGE_BUCKETS,
        )
        registry.register(_State(engine))
        ProcessCollector(registry=registry)

    def note_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    async def count(
        self, events: AsyncGenerator[Event, None], notes: dict[str, Any] | None = None
    ) -> AsyncGenerator[Event, None]:
        """The same events, counted as they pass; how the answer ended goes into ``notes``."""
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Checked):
                    for verdict, number in event.verdicts.items():
                        self._checked.labels(verdict).inc(number)
                elif isinstance(event, Answer):
                    self._count_answer(event, {} if notes is None else notes)
                yield event

    def exposition(self) -> bytes:
        """All of it in the text format of Prometheus."""
        return generate_latest(self._registry)

    def _count_answer(self, answer: Answer, notes: dict[str, Any]) -> None:
        outcome = "refused" if answer.refusal else "degraded" if answer.degraded else "answered"
        notes |= {"outcome": outcome, "mode": answer.mode, "language": answer.language}
        self._answers.labels(answer.mode, outcome).inc()
        if answer.refusal:
            notes["refusal"] = answer.refusal.reason
            self._refusals.labels(answer.refusal.reason).inc()
        if answer.degraded_reason:
            notes["degraded_reason"] = answer.degraded_reason
            self._degraded.labels(answer.degraded_reason).inc()
        if answer.question_truncated:
            self._truncated.inc()
        for stage in _STAGES:
            self._stage_seconds.labels(stage).observe(answer.timings_ms[stage] / 1e3)


class _State(Collector):
    """How the service is just now, asked when somebody wants to know."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """The state as metrics."""
        engine, line = self._engine, self._engine.line
        ready = engine.is_ready
        yield GaugeMetricFamily("fichero_ready", "Whether questions are answered.", int(ready))
        yield GaugeMetricFamily(
            "fichero_reload_failed", "Whether the last reload took nothing.", int(engine.reload_failed is not None)
        )
        version = engine.loaded.index.build_id if ready else ""
        yield InfoMetricFamily("fichero_index", "The index in use.", {"version": version})
        yield GaugeMetricFamily("fichero_waiting", "Questions that wait for a thread.", line.waiting)
        yield CounterMetricFamily(
            "fichero_turned_away", "Questions turned away for want of room in the line.", line.turned_away
        )
