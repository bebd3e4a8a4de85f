"""What a language model writes, checked sentence by sentence as it comes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rag.answering.citing import cite
from rag.answering.events import CitationShown, Shown, TextShown
from rag.answering.thoughts import Thoughts
from rag.claims import Claim, ClaimSplitter
from rag.language import detect_language
from rag.links import without_links
from rag.markers import MarkerScanner, without_markers
from rag.prompting import NO_ANSWER, repeats_instructions
from rag.records import Citation, CitationSegment, Span, TextSegment
from rag.replies import ReplyUnreadable, read_reply
from rag.support import Sources, Support

_LINE_START = re.compile(r"^(?:[^\w¿¡«“\"'(]|\d{1,3}[.)]\s)+")
"""What begins a line of a list and is no part of what it says."""
TAIL_CHARS = 100
"""Of a sentence: no marker's beginning is longer."""


class Draft:
    """
    A model's text goes in, in any pieces; what may be shown comes out.

    Every citation is checked before its sentence is shown, and nothing is shown before the first that holds and is to
    the point: an answer without any leaves no trace. A sentence that cites cards which do not say so is shown as such;
    one that cites nothing, and that no card says, is withheld.
    """

    def __init__(
        self,
        sources: Sources,
        language: str,
        *,
        addresses: Collection[str] = (),
        points: Collection[tuple[str, Span]] | None = None,
    ) -> None:
        """
        ``addresses`` are the links that stand in the sources, ``points`` the sentences of cards, by card id, that are
        to the point; None where all are.
        """
        self._sources = sources
        self._language = language
        self._addresses = addresses
        self._points = points
        self._thoughts = Thoughts()
        self._scanner, self._splitter = MarkerScanner(), ClaimSplitter()
        self._held: list[Shown] = []
        self._numbers: dict[str, int] = {}
        self._places: dict[tuple[str, Span | None, str], int] = {}
        self._begun = False
        self._shown: set[str] = set()
        self._tail = ""
        """The end of what was to be shown last."""
        self.refused = False
        """The model said that the cards do not answer."""
        self.has_valid = False
        """Something holds and is to the point."""
        self.is_beside = False
        """Something holds, and is not."""
        self.counts: Counter[str] = Counter()
        self.citations: list[Citation] = []
        self.segments: list[TextSegment | CitationSegment] = []

    def feed(self, text: str) -> list[Claim]:
        """The sentences that are whole after this piece, not yet judged."""
        claims: list[Claim] = []
        for said in self._thoughts.feed(text):
            claims += self._said(said)
        return claims

    def finish(self, *, cut_off: bool = False) -> list[Claim]:
        """The rest of them; not the last one, if the text was cut off in it."""
        claims: list[Claim] = []
        for said in self._thoughts.finish():
            claims += self._said(said)
        if self._thoughts.enclosed:
            try:
                reply = read_reply(self._thoughts.enclosed)
            except ReplyUnreadable:
                return []
            self.refused = self.refused or reply.refused
            claims += self._said(reply.answer)
        claims += self._splitter.feed(self._scanner.finish())
        return claims + self._splitter.finish(cut_off=cut_off)

    def judge(self, claims: Sequence[Claim], *, listed: Sequence[str] = ()) -> list[Shown]:
        """
        What may be shown of sentences, in their order; embeds each of them.

        ``listed`` are cards that the model named beside its text; those that nobody retrieved are counted.
        """
        self.counts["unknown"] += sum(card_id not in self._sources.card_ids for card_id in set(listed) - {NO_ANSWER})
        for claim in claims:
            self._held += self._judge(claim)
        if not self.has_valid:
            return []
        shown, self._held = self._held, []
        self.segments += [piece.segment for piece in shown]
        return shown

    @property
    def rejected(self) -> Mapping[str, int]:
        """What was not shown, counted."""
        return {name: self.counts[name] for name in ("unknown", "malformed", "withheld") if self.counts[name]}

    def _said(self, text: str | None) -> list[Claim]:
        if text is None:
            # what came before were thoughts
            self._scanner, self._splitter = MarkerScanner(), ClaimSplitter()
            return []
        return self._splitter.feed(self._scanner.feed(text))

    def _judge(self, claim: Claim) -> Iterator[Shown]:
        named = dict.fromkeys(card_id for _, marker in claim.markers for card_id in marker.card_ids)
        self.counts["malformed"] += sum(marker.malformed for _, marker in claim.markers)
        known = [card_id for card_id in named if card_id in self._sources.card_ids]
        refuses = NO_ANSWER in named and NO_ANSWER not in known
        self.refused = self.refused or refuses
        self.counts["unknown"] += len(named) - len(known) - refuses
        text = self._clean(claim)
        if not _asserts(text) or repeats_instructions(text):
            self.counts["unsupported"] += len(known)
            self.counts["withheld"] += any(map(str.isalnum, text))
            return
        if text in self._shown:
            # small models go round in circles
            return
        language = detect_language(text, default=self._language)
        supports = self._sources.support(_LINE_START.sub("", text), language)
        holding = [card_id for card_id in known if card_id in supports and supports[card_id].holds]
        added = [] if holding else _best(supports, known)
        if not known and not added:
            self.counts["withheld"] += 1
            return
        self._shown.add(text)
        self.counts["valid"] += len(holding)
        self.counts["added"] += len(added)
        self.counts["unsupported"] += len(known) - len(holding)
        for card_id in (*holding, *added):
            point = self._points is None or (card_id, supports[card_id].span) in self._points
            self.has_valid, self.is_beside = self.has_valid or point, self.is_beside or not point
        shown = TextSegment(text, language, supported=bool(holding or added))
        yield from self._pieces(claim, shown, [*known, *added], supports)

    def _clean(self, claim: Claim) -> str:
        """A sentence without addresses that the cards do not hold, and without anything that reads as a marker."""
        text = without_markers(without_links(claim.text, self._addresses))
        text = unicodedata.normalize("NFC", text).strip()
        # half a marker in the sentence before could find its other half in this one
        before = self._tail + claim.lead
        return text if without_markers(before + text) == before + text else ""

    def _pieces(
        self, claim: Claim, shown: TextSegment, card_ids: Sequence[str], supports: Mapping[str, Support]
    ) -> Iterator[Shown]:
        """A sentence, and behind it its citations."""
        text = (claim.lead if self._begun else "") + shown.text
        self._begun = True
        self._tail = (self._tail + text)[-TAIL_CHARS:]
        yield TextShown(replace(shown, text=text))
        for card_id in card_ids:
            yield self._citation(card_id, supports.get(card_id))

    def _citation(self, card_id: str, support: Support | None) -> CitationShown:
        verdict = "valid" if support and support.holds else "unsupported"
        span = support.span if support and support.holds else None
        number = self._numbers.setdefault(card_id, len(self._numbers) + 1)
        key = (card_id, span, verdict)
        if key not in self._places:
            self._places[key] = len(self.citations)
            score = support.similarity if support else 0.0
            card = self._sources.card(card_id)
            self.citations.append(cite(card, span, number=number, score=score, verdict=verdict))
        place = self._places[key]
        return CitationShown(CitationSegment(place, number, card_id), self.citations[place])


def _best(supports: Mapping[str, Support], tried: Collection[str]) -> list[str]:
    """The card that says most nearly what a sentence says, if any of those not tried does."""
    holding = [support for card_id, support in supports.items() if support.holds and card_id not in tried]
    return [max(holding, key=lambda support: support.similarity + support.coverage).card.card_id] if holding else []


def _asserts(text: str) -> bool:
    """Whether a sentence has words, and is not a question."""
    return any(map(str.isalnum, text)) and not text.endswith("?")
