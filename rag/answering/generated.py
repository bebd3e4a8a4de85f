"""Answers that a language model writes, and the extractive ones that stand in where it does not."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from rag.answering.composing import Asked, compose_quotes, compose_written, refuse, retrieved_cards
from rag.answering.draft import Draft
from rag.answering.events import Checked, Event, Shown, SourcesFound
from rag.answering.extractive import quote_passages, to_the_point
from rag.answering.follow_up import checked_rewriting
from rag.claims import Claim
from rag.embedding import QueryEmbedder
from rag.links import addresses
from rag.llm import ChatClient, LlmFailed, Message, StreamLimits, StreamPiece
from rag.opening import OpenIndex
from rag.prompting import answer_messages, rewrite_messages
from rag.records import Retrieval, Turn
from rag.replies import REPLY_SCHEMA, ReplyUnreadable, read_reply
from rag.support import Sources

REWRITE_TOKENS = 120
NO_CITATION, BESIDE, UNREADABLE, BUSY = "no_valid_citation", "beside_the_point", "unreadable_reply", "busy"

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class InThread(Protocol):
    """Runs blocking work beside the event loop."""

    def __call__(self, work: Callable[[], _Result], /) -> Awaitable[_Result]:
        """What the work gives."""
        ...


class Writer:
    """Asks a language model for answers, some at a time; all that may go wrong with it ends in an extractive answer."""

    def __init__(
        self,
        client: ChatClient,
        *,
        limits: StreamLimits,
        max_tokens: int,
        concurrency: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``limits.total_seconds`` bounds all that is asked of the model for one answer; ``concurrency``, answers."""
        self._client = client
        self._limits = limits
        self._max_tokens = max_tokens
        self._places = asyncio.Semaphore(concurrency)
        self._clock = clock

    @property
    def client(self) -> ChatClient:
        """Of the model; to be open while anything is written."""
        return self._client

    def deadline(self) -> float:
        """When all that is asked of the model for an answer that begins now has to be done."""
        return self._clock() + self._limits.total_seconds

    async def write(
        self,
        asked: Asked,
        found: Retrieval,
        history: Sequence[Turn],
        *,
        index: OpenIndex,
        embedder: QueryEmbedder,
        in_thread: InThread,
        whole: bool,
        deadline: float,
    ) -> AsyncGenerator[Event, None]:
        """
        Have the answer written from what was found, with one more attempt if none of its citations holds.

        ``whole`` asks for one JSON object, else the text is shown as it comes. Either way the last event is the answer:
        the model's, its refusal, or quotes with ``degraded_reason``. Where pieces were shown and the answer is another
        one after all, the answer is what counts. Closing the iterator ends the model's work. ``deadline`` is one of
        ``deadline()``.
        """
        question = asked.searched or asked.question
        quotes = await in_thread(lambda: quote_passages(question, found.passages)) if found.passed else []
        if not quotes:
            yield SourcesFound(())
            yield refuse(asked, found)
            return
        yield SourcesFound(retrieved_cards(found.passages))
        sources = await in_thread(lambda: Sources(found.passages, index=index, embedder=embedder))
        known = addresses(passage.card.text for passage in found.passages)
        points = to_the_point(question, found.passages)
        reason = BUSY
        try:
            async with self._place(deadline):
                for again in (False, True):
                    draft = Draft(sources, found.language, addresses=known, points=points)
                    messages = answer_messages(
                        asked.question, found.language, found.passages, history, as_json=whole, again=again
                    )
                    written = self._write_whole if whole else self._write_stream
                    reason = NO_CITATION
                    try:
                        async with aclosing(written(draft, messages, deadline, in_thread)) as events:
                            async for event in events:
                                yield event
                    except ReplyUnreadable:
                        reason = UNREADABLE
                    yield Checked(draft.counts)
                    if draft.is_beside:
                        reason = BESIDE
                    if draft.has_valid:
                        yield compose_written(
                            asked, found, tuple(draft.segments), draft.citations, rejected=draft.rejected
                        )
                        return
                    if draft.refused:
                        yield refuse(asked, found, reason="llm_refused")
                        return
        except LlmFailed as failed:
            reason = failed.reason
            _log.warning("request %s gets quotes: %s", asked.request_id, failed)
        except TimeoutError:
            _log.warning("request %s gets quotes: no place at the language model came free", asked.request_id)
        yield compose_quotes(asked, found, quotes, degraded_reason=reason)

    async def rewrite(self, question: str, history: Sequence[Turn], language: str, *, deadline: float) -> str | None:
        """The question so that it can be understood without what was said before; None where that fails."""
        try:
            async with self._place(deadline):
                messages = rewrite_messages(question, language, history)
                pieces = self._pieces(messages, deadline, max_tokens=REWRITE_TOKENS)
                async with aclosing(pieces):
                    text = "".join([piece.text async for piece in pieces])
        except (LlmFailed, TimeoutError) as failed:
            _log.warning("a question stays as it was asked: %s", failed)
            return None
        return checked_rewriting(text, question, history)

    async def _write_whole(
        self, draft: Draft, messages: Sequence[Message], deadline: float, in_thread: InThread
    ) -> AsyncGenerator[Event, None]:
        pieces = self._pieces(messages, deadline, json_schema=REPLY_SCHEMA)
        async with aclosing(pieces):
            text = "".join([piece.text async for piece in pieces])
        reply = read_reply(text)
        draft.refused = reply.refused
        if reply.refused:
            return
        claims = draft.feed(reply.answer) + draft.finish()
        for shown in await in_thread(lambda: draft.judge(claims, listed=reply.card_ids)):
            yield shown

    async def _write_stream(
        self, draft: Draft, messages: Sequence[Message], deadline: float, in_thread: InThread
    ) -> AsyncGenerator[Event, None]:
        finish_reason = None
        pieces = self._pieces(messages, deadline)
        async with aclosing(pieces):
            async for piece in pieces:
                finish_reason = piece.finish_reason or finish_reason
                for shown in await self._judge(draft, draft.feed(piece.text), in_thread):
                    yield shown
        for shown in await self._judge(draft, draft.finish(cut_off=finish_reason == "length"), in_thread):
            yield shown

    async def _judge(self, draft: Draft, claims: Sequence[Claim], in_thread: InThread) -> Sequence[Shown]:
        return await in_thread(lambda: draft.judge(claims)) if claims else ()

    def _pieces(
        self,
        messages: Sequence[Message],
        deadline: float,
        *,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[StreamPiece, None]:
        left = max(0.0, deadline - self._clock())
        return self._client.stream(
            messages,
            max_tokens=max_tokens or self._max_tokens,
            json_schema=json_schema,
            limits=replace(self._limits, total_seconds=left),
        )

    @asynccontextmanager
    async def _place(self, deadline: float) -> AsyncIterator[None]:
        """One of the places at the model; waited for no longer than until the deadline."""
        async with asyncio.timeout(max(0.0, deadline - self._clock())):
            await self._places.acquire()
        try:
            yield
        finally:
            self._places.release()
