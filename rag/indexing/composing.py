"""Settings to a builder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rag.builds import build_in_use
from rag.cards import PARSER_VERSION
from rag.cases import Golden, read_golden_dir
from rag.contextual import ContextCache, ContextGenerator
from rag.errors import SettingsInvalid
from rag.indexing.builder import CONTEXTS_FILE, Builder, Progress
from rag.indexing.preparing import BuildOptions
from rag.llm import ChatClient
from rag.manifest import read_if_usable
from rag.measuring import read_outcomes
from rag.settings import Settings

MISSING = "missing"
"""Stands for the cards that golden cases should have found and did not."""
MISSING_DEPTH = 3
"""A card further down than this is missing."""


@contextmanager
def open_builder(
    settings: Settings, index_dir: Path, *, progress: Progress, contexts_for: str | None = None
) -> Iterator[Builder]:
    """
    A builder as the settings say, with a language model where the strategy is ``llm``.

    ``contexts_for`` limits generated contexts to cards by id, set apart by commas; ``missing`` stands for those that
    golden cases miss in the build in use, and for those that already have contexts there.

    Raises:
        SettingsInvalid: settings do not go together.
        CasesInvalid: the golden cases cannot be read.
    """
    builder = Builder(
        index_dir=index_dir,
        model_dir=settings.model_dir,
        options=BuildOptions(settings.chunk_chars, settings.overlap_chars, settings.context),
        threads=settings.threads,
        progress=progress,
        golden=read_golden_dir(settings.golden_dir) if settings.golden_dir.is_dir() else None,
        context_coverage=settings.context_coverage,
    )
    if settings.context != "llm":
        if contexts_for is not None:
            raise SettingsInvalid("Contexts for some cards need FICHERO_CONTEXT=llm.")
        yield builder
        return
    if not settings.llm_base_url or not settings.llm_model:
        raise SettingsInvalid(
            "FICHERO_CONTEXT=llm needs a language model: set FICHERO_LLM_BASE_URL, such as http://localhost:8080/v1, "
            "and FICHERO_LLM_MODEL."
        )
    only = None if contexts_for is None else _named_cards(contexts_for, index_dir, builder.golden)
    client = ChatClient(
        settings.llm_base_url,
        settings.llm_model,
        api_key=settings.llm_api_key,
        timeout_seconds=settings.llm_timeout_seconds,
    )
    with ContextCache(index_dir / CONTEXTS_FILE, parser_version=PARSER_VERSION, model=settings.llm_model) as cache:
        generator = ContextGenerator(
            client,
            cache,
            concurrency=settings.llm_concurrency,
            include_private=settings.context_private,
            only=only,
            price_in=settings.llm_price_in,
            price_out=settings.llm_price_out,
            progress=progress,
        )
        yield replace(builder, generator=generator)


def _named_cards(names: str, index_dir: Path, golden: Golden | None) -> frozenset[str]:
    wanted = {name.strip() for name in names.split(",")} - {""}
    if MISSING not in wanted:
        return frozenset(wanted)
    in_use = build_in_use(index_dir)
    outcomes = read_outcomes(in_use)
    if not golden or not outcomes:
        raise SettingsInvalid(
            f"No golden case was asked of the build in use, so it is not known which cards are {MISSING}; name them."
        )
    for case in golden.cases:
        outcome = outcomes.get(case.key)
        if outcome and outcome.answerable and (outcome.rank is None or outcome.rank > MISSING_DEPTH):
            wanted |= set(case.grades)
    manifest = read_if_usable(in_use)
    had = (manifest.contexts or {}).get("only") if manifest else None
    return frozenset(wanted - {MISSING}) | frozenset(had or ())
