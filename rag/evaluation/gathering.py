"""Cases that were asked, to everything that the report says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag.embedding import QueryEmbedder
from rag.evaluation.findings import FINDINGS_FORMAT, Findings, Listed, Measured, Part
from rag.evaluation.latency import latencies
from rag.evaluation.machine import describe_machine
from rag.evaluation.parts import by_direction, figures_of, parts_of, ranked_by_service
from rag.evaluation.refusals import find_refusals
from rag.evaluation.strategies import Passages, compare_strategies
from rag.evaluation.without_retrieval import CountTokens, do_without
from rag.evaluation.wrong import is_missed, is_wrongly_answered, is_wrongly_refused, listed
from rag.manifest import Manifest
from rag.measuring import Asked, report_of
from rag.opening import OpenIndex


def gather(
    asked: Sequence[Asked],
    *,
    index: OpenIndex,
    manifest: Manifest,
    questions: QueryEmbedder,
    passages: Passages,
    count_tokens: CountTokens,
    limit_tokens: int,
    cases_from: str,
    date: str,
) -> Findings:
    """
    Everything about these cases.

    ``questions`` should remember what it has embedded, ``passages`` embeds what the index has no vectors of,
    ``count_tokens`` counts a text's tokens however long it is.
    """
    parts = parts_of(asked) | by_direction(asked, index)

    def those(wrong: Callable[[Asked], bool]) -> list[Listed]:
        return [listed(entry, index) for entry in asked if wrong(entry)]

    return Findings(
        format=FINDINGS_FORMAT,
        measured=_measured(asked, manifest, cases_from, date),
        parts={name: Part(figures_of(ranked_by_service(own)), report_of(own)) for name, own in parts.items()},
        strategies=compare_strategies(asked, index=index, questions=questions, passages=passages),
        without_retrieval=do_without(
            asked, index=index, questions=questions, count_tokens=count_tokens, limit_tokens=limit_tokens
        ),
        refusals=find_refusals(asked, manifest.gate),
        latency=latencies(asked),
        missed=those(is_missed),
        wrongly_refused=those(is_wrongly_refused),
        wrongly_answered=those(is_wrongly_answered),
    )


def _measured(asked: Sequence[Asked], manifest: Manifest, cases_from: str, date: str) -> Measured:
    answerable = sum(bool(entry.case.grades) for entry in asked)
    return Measured(
        cases_from=cases_from,
        index_id=manifest.build_id,
        model=manifest.model_name,
        model_fingerprint=manifest.model_fingerprint,
        context=manifest.context_version,
        cards=manifest.counts["cards"],
        chunks=manifest.counts["rows"],
        sentences=manifest.counts["sentences"],
        answerable=answerable,
        unanswerable=len(asked) - answerable,
        held_out=sum(entry.case.held_out for entry in asked),
        machine=describe_machine(),
        date=date,
    )
