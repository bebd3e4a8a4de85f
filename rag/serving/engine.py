"""Model and index, loaded beside the running server, and the one way to use them."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from rag.answering import (
    Asked,
    Event,
    Search,
    SourcesFound,
    answer_question,
    follow_up,
    may_follow_up,
    shown_of,
)
from rag.embedding import Embedder, load_embedder, read_description
from rag.errors import (
    IndexMissing,
    IndexUnusable,
    ModelMissing,
    ModelUnusable,
    RagError,
    RerankerMissing,
    RerankerUnusable,
)
from rag.opening import OpenIndex, open_index
from rag.records import Retrieval, Turn
from rag.reranking import CrossEncoder, folder_stamp, load_reranker
from rag.retrieval import retrieve
from rag.serving.admission import Line
from rag.serving.problems import Problem
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.answering.generated import Writer

_log = logging.getLogger(__name__)

REASONS: Mapping[type[RagError], str] = {
    IndexMissing: "index-missing",
    IndexUnusable: "index-unusable",
    ModelMissing: "model-missing",
    ModelUnusable: "model-unusable",
    RerankerMissing: "reranker-missing",
    RerankerUnusable: "reranker-unusable",
}
"""What anyone may know of a reload that took nothing; paths and details are in the log."""
UNEXPECTED = "internal"

_WARM_UP = "¿Cómo se toma un medicamento?"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A verified model, the index that goes with it, and a cross-encoder where the settings name one."""

    embedder: Embedder
    index: OpenIndex
    reranker: CrossEncoder | None = None


class Engine:
    """Holds what answers questions. Nothing is answered before ``load`` has verified and warmed up everything."""

    def __init__(self, settings: Settings, loaded: Loaded | None = None, writer: Writer | None = None) -> None:
        """``loaded`` is for those who have it already; without a ``writer`` answers are made of quotes."""
        self._settings = settings
        self._writer = writer
        self._loaded = loaded
        self.line = Line()
        self.failure: RagError | None = None
        self.reload_failed: str | None = None
        """Why the last reload took nothing, as one of ``REASONS``; None when it went well or there was none."""

    def load(self) -> None:
        """
        Load, verify and warm up; blocks.

        Raises:
            RagError: model, index or cross-encoder cannot be used; also kept in ``failure``.
        """
        started = time.perf_counter()
        try:
            self._loaded = self._open(None)
        except RagError as error:
            self.failure = error
            raise
        _log.info("ready with index %s after %.2f s", self._loaded.index.build_id, time.perf_counter() - started)

    def reload(self) -> None:
        """
        Open the build now in use beside the one in memory, and answer from it from then on; blocks.

        Model, index and cross-encoder are replaced together; questions in progress keep those that they began with.
        What has not changed is not loaded again. What cannot be used changes nothing: it is logged, and
        ``reload_failed`` says why. One at a time, and only after ``load``.
        """
        started, before = time.perf_counter(), self.loaded
        version = before.index.build_id
        try:
            loaded = self._open(before)
        except RagError as error:
            self.reload_failed = REASONS.get(type(error), UNEXPECTED)
            _log.error("nothing was reloaded, index %s stays in use: %s", version, error)
        except Exception:
            self.reload_failed = UNEXPECTED
            _log.exception("nothing was reloaded, index %s stays in use; mend this and send SIGHUP again", version)
        else:
            self._loaded, self.reload_failed = loaded, None
            if loaded is before:
                _log.info("index %s is still the build in use; nothing was loaded", version)
            elif loaded.index is before.index:
                seconds = time.perf_counter() - started
                _log.info("another cross-encoder came to index %s after %.2f s", version, seconds)
            else:
                seconds = time.perf_counter() - started
                _log.info("index %s took the place of %s after %.2f s", loaded.index.build_id, version, seconds)

    def _open(self, before: Loaded | None) -> Loaded:
        """What answers as it is on disk now, verified and warmed up; ``before`` itself if nothing changed."""
        settings = self._settings
        description = read_description(settings.model_dir)
        kept = before if before and before.embedder.description.fingerprint == description.fingerprint else None
        known = kept.index if kept else None
        # most of the index's time goes by in a process of its own
        with ThreadPoolExecutor(max_workers=1) as beside:
            opening = beside.submit(open_index, settings.index_dir, description, known=known)
            embedder = kept.embedder if kept else load_embedder(settings.model_dir, threads=settings.threads)
            reranker = self._open_reranker(before)
            index = opening.result()
        if kept and index is known and reranker is kept.reranker:
            return kept
        if embedder.description.fingerprint != description.fingerprint:
            raise ModelUnusable(settings.model_dir, "it was replaced while it was being loaded")
        retrieve(_WARM_UP, (), index=index, embedder=embedder, top_k=1)
        return Loaded(embedder, index, reranker)

    def _open_reranker(self, before: Loaded | None) -> CrossEncoder | None:
        """The cross-encoder that the settings name; that of ``before`` if none of its files changed."""
        folder = self._settings.reranker_dir
        if folder is None:
            return None
        known = before.reranker if before else None
        if known and known.stamp == folder_stamp(folder):
            return known
        return load_reranker(folder, threads=self._settings.threads)

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

    @property
    def is_ready(self) -> bool:
        """Whether ``loaded`` is there."""
        return self._loaded is not None

    @property
    def writes(self) -> bool:
        """Whether a language model writes the answers."""
        return self._writer is not None

    async def __aenter__(self) -> Engine:
        if self._writer:
            await self._writer.client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer:
            await self._writer.client.__aexit__(kind, error, traceback)

    async def answer(
        self,
        question: str,
        groups: Collection[str],
        *,
        top_k: int | None,
        request_id: str,
        history: Sequence[Turn] = (),
        whole: bool = True,
    ) -> AsyncGenerator[Event, None]:
        """
        Answer one question; see ``rag.answering``. The last event is the answer.

        ``whole`` says that only that one will be shown.
        """
        search = self._search(groups, top_k)
        if self._writer is None:
            answer = await self.line.enter(
                lambda: answer_question(question, search, request_id=request_id, history=history)
            )
            yield SourcesFound(answer.retrieved)
            for shown in shown_of(answer):
                yield shown
            yield answer
            return
        started, deadline = time.perf_counter(), self._writer.deadline()
        found = await self.line.enter(lambda: search(question))
        searched = None
        if history:
            found, searched = await self._complete(question, found, history, search, deadline)
        written = self._writer.write(
            Asked(request_id, question, search.index.build_id, started, searched),
            found,
            history,
            index=search.index,
            embedder=search.embedder,
            in_thread=self.line.go_on,
            whole=whole,
            deadline=deadline,
        )
        async with aclosing(written):
            async for event in written:
                yield event

    async def search(self, question: str, groups: Collection[str], *, top_k: int | None) -> tuple[Retrieval, str]:
        """Retrieve for one question, and the version of the index that it came from."""
        search = self._search(groups, top_k)
        return await self.line.enter(lambda: search(question)), search.index.build_id

    async def _complete(
        self, question: str, found: Retrieval, history: Sequence[Turn], search: Search, deadline: float
    ) -> tuple[Retrieval, str | None]:
        """What a question finds as the language model rewrote it, else as earlier ones complete it."""
        if self._writer and may_follow_up(found, slack=search.slack):
            rewritten = await self._writer.rewrite(question, history, found.language, deadline=deadline)
            if rewritten and rewritten != question:
                completed = await self.line.go_on(lambda: search(rewritten))
                if completed.passed:
                    return completed, rewritten
        return await self.line.go_on(lambda: follow_up(question, found, history, search, slack=search.slack))

    def _search(self, groups: Collection[str], top_k: int | None) -> Search:
        loaded, settings = self.loaded, self._settings
        return Search(
            groups,
            loaded.index,
            loaded.embedder,
            top_k=top_k or settings.top_k,
            min_similarity=settings.min_similarity,
            fusion=settings.fusion,
            reranker=loaded.reranker,
        )
