"""Cards to accepted contexts: asks a language model, a few chunks at a time, and never twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from rag.contextual.cache import KEPT_CHARS, ContextCache, KeptAnswer
from rag.contextual.prompt import MAX_TOKENS, TEMPERATURE, messages_for
from rag.contextual.report import ContextReport, Tally
from rag.contextual.validation import Rejection, check_context
from rag.contextual.words import CardWords
from rag.errors import RagError
from rag.llm import ChatClient, LlmFailed
from rag.markdown import headings_above, scan_lines
from rag.records import PUBLIC_GROUP, Card, Chunk

FAILURES_IN_A_ROW = 8
"""After so many failed calls without a good one between, asking stops."""

Progress = Callable[[str, int, int], object]
"""Called with what is being done, how many are done, and how many there are (0: unknown)."""

logger = logging.getLogger(__name__)


class GenerationStopped(RagError):
    """The language model fails for every chunk; what had arrived is kept."""

    def __init__(self, cause: LlmFailed, answers: int) -> None:
        super().__init__(
            f"Contexts are no longer asked for, after {answers} answers in this run, which are kept: {cause} "
            "Run the builder again to go on from here, or build without the strategy llm."
        )
        self.reason = cause.reason
        self.status = cause.status


class ContextGenerator:
    """
    Contexts of chunks, from the cache or from a language model.

    ``generate`` asks for all that is missing; ``cached_contexts`` then reads one card's, without a call. Only cards
    that the public may read are sent, unless ``include_private``; ``only`` limits contexts to some cards by id.
    """

    def __init__(
        self,
        client: ChatClient,
        cache: ContextCache,
        *,
        concurrency: int = 4,
        include_private: bool = False,
        only: frozenset[str] | None = None,
        price_in: float = 0.0,
        price_out: float = 0.0,
        progress: Progress = lambda *_: None,
    ) -> None:
        """Prices are per million tokens."""
        self._client = client
        self._cache = cache
        self._concurrency = concurrency
        self._include_private = include_private
        self.only = only
        self._prices = (price_in, price_out)
        self._progress = progress
        self._tally = Tally()
        self._failures = 0
        self._running: dict[bytes, asyncio.Task[None]] = {}

    @property
    def report(self) -> ContextReport:
        """What was generated so far."""
        return self._tally.report(price_in=self._prices[0], price_out=self._prices[1])

    def generate(self, cards: Iterable[tuple[Card, Sequence[Chunk]]], *, total: int = 0) -> ContextReport:
        """
        Ask for the context of every chunk that the cache does not know; ``total`` chunks, for the progress.

        Cards are taken one at a time, as calls come free. A chunk whose call fails is counted and left without a
        context. What arrived before an interruption is kept.

        Raises:
            GenerationStopped: the model denies access or is not there, or too many calls failed in a row.
            CacheFailed: the cache fails.
        """
        self._tally = Tally()
        self._failures = 0
        asyncio.run(self._generate(cards, total))
        return self.report

    def cached_contexts(self, card: Card, chunks: Sequence[Chunk]) -> dict[int, str]:
        """The accepted contexts of a card by chunk_index, as far as the cache has them; makes no call."""
        contexts: dict[int, str] = {}
        if not self._is_wanted(card) or not self._may_be_sent(card):
            return contexts
        words = CardWords(card)
        for chunk in chunks:
            kept = self._cache.get(self._cache.key(card, chunk))
            checked = check_context(kept.text, words, chunk, finish_reason=kept.finish_reason) if kept else None
            if isinstance(checked, str):
                contexts[chunk.chunk_index] = checked
        return contexts

    def trim(self) -> None:
        """Drop old answers; to be called when a build was published."""
        self._cache.trim()

    def _is_wanted(self, card: Card) -> bool:
        return self.only is None or card.card_id in self.only

    def _may_be_sent(self, card: Card) -> bool:
        return self._include_private or PUBLIC_GROUP in card.acl

    async def _generate(self, cards: Iterable[tuple[Card, Sequence[Chunk]]], total: int) -> None:
        async with self._client:
            try:
                for words, chunk in self._wanted(cards):
                    await self._take(words, chunk)
                    self._progress("contexts", self._tally.passed_over, total)
                    # so that an interruption gets through where all is in the cache
                    await asyncio.sleep(0)
                while self._running:
                    await self._wait()
                    self._progress("contexts", self._tally.passed_over, total)
            finally:
                await self._abandon()

    def _wanted(self, cards: Iterable[tuple[Card, Sequence[Chunk]]]) -> Iterator[tuple[CardWords, Chunk]]:
        for card, chunks in cards:
            if not self._is_wanted(card):
                self._tally.left_out += len(chunks)
            elif not self._may_be_sent(card):
                self._tally.withheld += len(chunks)
            else:
                words = CardWords(card)
                yield from ((words, chunk) for chunk in chunks)

    async def _take(self, words: CardWords, chunk: Chunk) -> None:
        """Count what the cache has; else ask, once a call is free."""
        key = self._cache.key(words.card, chunk)
        # two cards of the same words pay for one call
        while key in self._running:
            await self._wait()
        kept = self._cache.get(key)
        if kept:
            self._count(kept, words, chunk)
            return
        while len(self._running) >= self._concurrency:
            await self._wait()
        self._running[key] = asyncio.create_task(self._ask(key, words, chunk))

    async def _wait(self) -> None:
        """Wait until a call is over, and pass on what stopped one."""
        done, _ = await asyncio.wait(self._running.values(), return_when=asyncio.FIRST_COMPLETED)
        self._running = {key: task for key, task in self._running.items() if task not in done}
        stops = [stop for stop in (task.exception() for task in done) if stop]
        if stops:
            raise stops[0]

    async def _ask(self, key: bytes, words: CardWords, chunk: Chunk) -> None:
        card = words.card
        sections = headings_above(scan_lines(card.text), card.text, (chunk.start + chunk.end) // 2)
        try:
            answer = await self._client.complete(
                messages_for(card, chunk, sections), max_tokens=MAX_TOKENS, temperature=TEMPERATURE
            )
        except LlmFailed as failed:
            self._failures += 1
            self._tally.failed[failed.reason] += 1
            logger.warning("no context for %s chunk %d: %s", card.card_id, chunk.chunk_index, failed.reason)
            if failed.is_hopeless or self._failures >= FAILURES_IN_A_ROW:
                raise GenerationStopped(failed, self._tally.called) from failed
            return
        text = answer.text[:KEPT_CHARS]
        kept = KeptAnswer(text, answer.finish_reason, answer.tokens_in, answer.tokens_out, answer.seconds)
        self._cache.put(key, kept)
        self._failures = 0
        self._tally.called += 1
        self._count(kept, words, chunk)

    def _count(self, kept: KeptAnswer, words: CardWords, chunk: Chunk) -> None:
        self._tally.add_answer(kept.tokens_in, kept.tokens_out, kept.seconds)
        checked = check_context(kept.text, words, chunk, finish_reason=kept.finish_reason)
        if isinstance(checked, Rejection):
            self._tally.rejected[checked.reason] += 1
        else:
            self._tally.accepted += 1

    async def _abandon(self) -> None:
        """Let go of calls that are still running: after a stop nobody would count them."""
        running, self._running = list(self._running.values()), {}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
