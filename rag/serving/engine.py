"""Model and index, loaded beside the running server, and the one way to use them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import anyio
import anyio.to_thread

from rag.answering import answer_question
from rag.embedding import Embedder, load_embedder, read_description
from rag.errors import RagError
from rag.records import Answer, Retrieval
from rag.retrieval import OpenIndex, open_index, retrieve
from rag.serving.problems import Problem
from rag.settings import Settings

_log = logging.getLogger(__name__)

CONCURRENT_QUESTIONS = 2
"""More would only share the same cores, and hold more memory."""

_WARM_UP = "¿Cómo se toma un medicamento?"
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A verified model and the index that goes with it."""

    embedder: Embedder
    index: OpenIndex


class Engine:
    """Holds what answers questions. Nothing is answered before ``load`` has verified and warmed up everything."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loaded: Loaded | None = None
        self._limiter = anyio.CapacityLimiter(CONCURRENT_QUESTIONS)
        self.failure: RagError | None = None

    def load(self) -> None:
        """
        Load, verify and warm up; blocks.

        Raises:
            RagError: model or index cannot be used; also kept in ``failure``.
        """
        started, settings = time.perf_counter(), self._settings
        try:
            description = read_description(settings.model_dir)
            # most of the index's time goes by in a process of its own
            with ThreadPoolExecutor(max_workers=1) as beside:
                opening = beside.submit(open_index, settings.index_dir, description)
                embedder = load_embedder(settings.model_dir, threads=settings.threads)
                index = opening.result()
        except RagError as error:
            self.failure = error
            raise
        retrieve(_WARM_UP, (), index=index, embedder=embedder, top_k=1)
        self._loaded = Loaded(embedder, index)
        _log.info("ready with index %s after %.2f s", index.build_id, time.perf_counter() - started)

    @property
    def loaded(self) -> Loaded:
        """
        Model and index.

        Raises:
            Problem: 503, they are not there yet.
        """
        if self._loaded is None:
            detail = "Model and index are still being checked and loaded. Try again in a second."
            raise Problem(503, "not-ready", detail, headers={"Retry-After": "1"})
        return self._loaded

    async def answer(self, question: str, groups: Collection[str], *, top_k: int | None, request_id: str) -> Answer:
        """Answer one question; see ``rag.answering``."""
        loaded, settings = self.loaded, self._settings
        return await self._in_thread(
            lambda: answer_question(
                question,
                groups,
                index=loaded.index,
                embedder=loaded.embedder,
                top_k=top_k or settings.top_k,
                min_similarity=settings.min_similarity,
                request_id=request_id,
            )
        )

    async def search(self, question: str, groups: Collection[str], *, top_k: int | None) -> tuple[Retrieval, str]:
        """Retrieve for one question, and the version of the index that it came from."""
        loaded, settings = self.loaded, self._settings
        found = await self._in_thread(
            lambda: retrieve(
                question,
                groups,
                index=loaded.index,
                embedder=loaded.embedder,
                top_k=top_k or settings.top_k,
                threshold=settings.min_similarity,
            )
        )
        return found, loaded.index.build_id

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)
