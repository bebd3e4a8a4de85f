"""BM25 over whole cards, language by language: how much of what a question says do a card's own words cover."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import Stemmer
from numpy.typing import NDArray

from rag.files import naming, write_array
from rag.records import PUBLIC_GROUP, Card

LEXICAL_VERSION = 1
"""Raise it when the same cards would give other words or other weights."""
K1, B = 0.9, 0.4
"""How soon a repeated word stops adding, and how much a long card's words are discounted."""
SCORE_DIGITS = 5

_STEMMERS = {"es": "spanish", "en": "english"}
# a number keeps its point or comma and its unit: 1,5 and 500mg are one word each
_WORD = re.compile(r"\d+(?:[.,]\d+)*\w*|\w+")
_BLOCKS = "blocks.json"
_ARRAYS = {
    "terms": np.uint64,
    "starts": np.int64,
    "places": np.int32,
    "weights": np.float32,
    "public_terms": np.uint64,
    "public_cards": np.int32,
}
_local = threading.local()

Hashes = NDArray[np.uint64]


def words(text: str, language: str) -> list[str]:
    """
    The words of a text in order, without accents, capitals and endings.

    Accents go before endings do: people leave them out, and both sides have to meet. No word is left out for being
    common; how many cards have it says what it is worth.
    """
    folded = text.casefold()
    if not folded.isascii():
        folded = "".join(letter for letter in unicodedata.normalize("NFKD", folded) if not _is_mark(letter))
    found = [word.replace(",", ".") for word in _WORD.findall(folded)]
    stemmed: list[str] = _stemmer(language).stemWords(found)
    return stemmed


def _is_mark(letter: str) -> bool:
    # Mn: an accent; Cf: a soft hyphen, a joiner
    return unicodedata.category(letter) in ("Mn", "Cf")


def _stemmer(language: str) -> Any:
    # a stemmer may not be shared between threads
    known: dict[str, Any] = _local.__dict__.setdefault("stemmers", {})
    if language not in known:
        known[language] = Stemmer.Stemmer(_STEMMERS[language])
    return known[language]


@dataclass(frozen=True, slots=True)
class _Entry:
    """The words of one card."""

    card_id: str
    terms: Hashes
    """Ascending."""
    counts: NDArray[np.int32]

    @property
    def length(self) -> int:
        return int(self.counts.sum())


class LexicalWriter:
    """
    Gathers the words of cards one after another, as numbers, and writes them at the end: 12 bytes a word of a card.

    Cards are set apart by access rule and language. What a word is worth to the cards of a rule is counted among the
    public cards and these cards alone, so that hidden cards change nothing for those who may not see them.
    """

    def __init__(self) -> None:
        self._blocks: dict[tuple[tuple[str, ...], str], list[_Entry]] = {}
        self._hashes: dict[str, int] = {}

    def add(self, card: Card, texts: Sequence[str]) -> None:
        """Take in a card by the texts that are searched for it, which together are its document."""
        counted = Counter(word for text in texts for word in words(text, card.language))
        hashes = np.array([self._hash(word) for word in counted], np.uint64)
        order = np.argsort(hashes)
        counts = np.array(list(counted.values()), np.int32)
        self._blocks.setdefault((card.acl, card.language), []).append(
            _Entry(card.card_id, hashes[order], counts[order])
        )

    def _hash(self, word: str) -> int:
        return self._hashes.setdefault(word, hash_of(word))

    def write(self, folder: Path) -> None:
        """
        Write everything into a folder that is not there yet.

        Raises:
            OSError: a file could not be written; names it.
        """
        folder.mkdir()
        arrays: dict[str, list[NDArray[Any]]] = {name: [] for name in _ARRAYS}
        languages = {name: self._gather_public(name, arrays) for name in sorted({name for _, name in self._blocks})}
        blocks = [
            self._gather_block(acl, language, languages[language], arrays) for acl, language in sorted(self._blocks)
        ]
        for name, kind in _ARRAYS.items():
            write_array(_path(folder, name), np.concatenate([np.empty(0, kind), *arrays[name]]).astype(kind))
        with naming(folder / _BLOCKS):
            shape = {"languages": languages, "blocks": blocks}
            (folder / _BLOCKS).write_text(json.dumps(shape, ensure_ascii=False), "utf-8")

    def _gather_public(self, language: str, arrays: dict[str, list[NDArray[Any]]]) -> dict[str, int]:
        """Add what the public cards of a language count; gives their size."""
        public = [
            entry
            for (acl, own), entries in self._blocks.items()
            if own == language and PUBLIC_GROUP in acl
            for entry in entries
        ]
        terms, cards = _frequencies(public)
        arrays["public_terms"].append(terms)
        arrays["public_cards"].append(cards)
        return _size(public) | {"terms": len(terms)}

    def _gather_block(
        self, acl: tuple[str, ...], language: str, public: Mapping[str, int], arrays: dict[str, list[NDArray[Any]]]
    ) -> dict[str, Any]:
        """Add the postings of one access rule and language; gives what they are of."""
        entries = sorted(self._blocks[acl, language], key=lambda entry: entry.card_id)
        # public cards are among the public ones already
        own = _size([] if PUBLIC_GROUP in acl else entries)
        average = max(public["words"] + own["words"], 1) / max(public["cards"] + own["cards"], 1)
        terms, starts, places, weights = _postings(entries, average)
        arrays["starts"].append(starts + sum(map(len, arrays["places"])))
        arrays["terms"].append(terms)
        arrays["places"].append(places)
        arrays["weights"].append(weights)
        return {"acl": acl, "language": language, "cards": [entry.card_id for entry in entries], "terms": len(terms)}


@dataclass(frozen=True, slots=True)
class _Block:
    """The cards of one access rule and language."""

    acl: frozenset[str]
    language: str
    first_card: int
    size: int
    own_cards: int
    """Cards counted beside the public ones."""
    terms: Hashes
    starts: NDArray[np.int64]
    """Into places and weights, one more than there are terms."""
    places: NDArray[np.int32]
    """Of cards, counted within the block."""
    weights: NDArray[np.float32]


class Coverage:
    """What share of a question's words each card covers, from 0 to 1, common words counting little."""

    def __init__(self, scores: NDArray[np.float32], cards: Sequence[str], places: Mapping[str, int]) -> None:
        """``scores`` is (n,), in the order of ``cards``; ``places`` has the place of each."""
        self._scores = scores
        self._cards = cards
        self._places = places

    def of(self, card_id: str) -> float:
        """The share that a card covers; 0 also for cards in another language than the question's."""
        place = self._places.get(card_id)
        return 0.0 if place is None else float(self._scores[place])

    def best(self, count: int) -> list[tuple[str, float]]:
        """The ``count`` cards that cover most, best first, ties by id; a card that covers nothing is not among them."""
        found = np.flatnonzero(self._scores > 0)
        if len(found) > count:
            edge = np.partition(self._scores[found], len(found) - count)[len(found) - count]
            found = found[self._scores[found] >= edge]
        ranked = sorted((-float(self._scores[place]), self._cards[place]) for place in found.tolist())
        return [(card_id, -score) for score, card_id in ranked[:count]]


class LexicalIndex:
    """What a ``LexicalWriter`` wrote, opened."""

    def __init__(
        self,
        blocks: Sequence[_Block],
        cards: Sequence[str],
        public: Mapping[str, tuple[int, Hashes, NDArray[np.int32]]],
    ) -> None:
        """``public``: language → how many public cards, and their terms with the number of cards that have each."""
        self._blocks = blocks
        self._cards = cards
        self._places = {card_id: place for place, card_id in enumerate(cards)}
        self._public = public

    def search(self, question: str, language: str, groups: Collection[str]) -> Coverage:
        """
        Compare a question with the cards in its own language that share a group with the caller.

        With idf(w) = ln((N - n + 0.5) / (n + 0.5)), never below 0, for a word that n of N cards have:

            coverage = Σ idf(w) · f / (f + k1 (1 - b + b · length / average)) / Σ idf(w)

        where f is how often the card has w. Words that no card has count below the line alone: a card that has
        little of what was asked covers little of it.

        Source: Robertson and Zaragoza, Foundations and Trends in Information Retrieval 2009.
        """
        scores = np.zeros(len(self._cards), np.float32)
        asked = np.array(sorted({hash_of(word) for word in words(question, language)}), np.uint64)
        wanted = frozenset(groups)
        for block in self._blocks:
            if block.language == language and not wanted.isdisjoint(block.acl) and len(block.terms) and len(asked):
                own = scores[block.first_card : block.first_card + block.size]
                self._score(block, asked, own)
        return Coverage(np.round(scores, SCORE_DIGITS), self._cards, self._places)

    def _score(self, block: _Block, asked: Hashes, scores: NDArray[np.float32]) -> None:
        public_cards, public_terms, public_counts = self._public[block.language]
        spots, is_known = _find(block.terms, asked)
        own_counts = (block.starts[spots + 1] - block.starts[spots]) * is_known
        spots_there, is_public = _find(public_terms, asked)
        counts = public_counts[spots_there] * is_public if len(public_terms) else np.zeros(len(asked), np.int64)
        if block.own_cards:
            counts = counts + own_counts
        idf = inverse_frequency(counts, public_cards + block.own_cards)
        total = float(idf.sum())
        for spot, worth in zip(spots[is_known].tolist(), idf[is_known].tolist(), strict=True):
            if worth > 0:
                held = slice(int(block.starts[spot]), int(block.starts[spot + 1]))
                scores[block.places[held]] += np.float32(worth / total) * block.weights[held]


def open_lexical(folder: Path) -> LexicalIndex:
    """
    Open what was written, memory-mapped.

    Raises:
        OSError, ValueError: a file is missing or damaged.
    """
    try:
        return _open(folder)
    except (EOFError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"the files of words are damaged: {error!r}") from error


def _open(folder: Path) -> LexicalIndex:
    shape = json.loads((folder / _BLOCKS).read_text("utf-8"))
    # as plain arrays: mapped ones look after their file at every step
    arrays = {
        name: np.load(_path(folder, name), mmap_mode="r", allow_pickle=False).view(np.ndarray) for name in _ARRAYS
    }
    public: dict[str, tuple[int, Hashes, NDArray[np.int32]]] = {}
    first = 0
    for language, found in shape["languages"].items():
        behind = first + found["terms"]
        public[language] = (found["cards"], arrays["public_terms"][first:behind], arrays["public_cards"][first:behind])
        first = behind
    blocks: list[_Block] = []
    cards: list[str] = []
    first = 0
    for number, found in enumerate(shape["blocks"]):
        behind = first + found["terms"]
        own_cards = 0 if PUBLIC_GROUP in found["acl"] else len(found["cards"])
        blocks.append(
            _Block(
                acl=frozenset(found["acl"]),
                language=found["language"],
                first_card=len(cards),
                size=len(found["cards"]),
                own_cards=own_cards,
                terms=arrays["terms"][first:behind],
                # every block before has one start more than it has terms
                starts=arrays["starts"][first + number : behind + number + 1],
                places=arrays["places"],
                weights=arrays["weights"],
            )
        )
        cards += found["cards"]
        first = behind
    return LexicalIndex(blocks, cards, public)


def inverse_frequency(having: NDArray[np.integer[Any]], cards: int) -> NDArray[np.float64]:
    """
    What words are worth, (n,), for the number of cards that have each; nothing for those that half of them have.

    Source: Robertson and Sparck Jones, JASIS 1976.
    """
    return np.maximum(np.log((cards - having + 0.5) / (having + 0.5)), 0.0)


def hash_of(word: str) -> int:
    """64 bits that stand for a word: they sort, they map into memory, and nobody reads cards in them."""
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def _frequencies(entries: Iterable[_Entry]) -> tuple[Hashes, NDArray[np.int32]]:
    """Every term of some cards, ascending, and how many of them have it."""
    terms, cards = np.unique(np.concatenate([np.empty(0, np.uint64), *(e.terms for e in entries)]), return_counts=True)
    return terms, cards.astype(np.int32)


def _size(entries: Sequence[_Entry]) -> dict[str, int]:
    return {"cards": len(entries), "words": sum(entry.length for entry in entries)}


def _postings(
    entries: Sequence[_Entry], average: float
) -> tuple[Hashes, NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Terms, where each begins, and for each the places of its cards with what the word weighs there."""
    every = np.concatenate([entry.terms for entry in entries])
    places = np.repeat(np.arange(len(entries), dtype=np.int32), [len(entry.terms) for entry in entries])
    weights = np.concatenate(
        [entry.counts / (entry.counts + K1 * (1 - B + B * entry.length / average)) for entry in entries]
    ).astype(np.float32)
    order = np.argsort(every, kind="stable")
    terms, firsts = np.unique(every[order], return_index=True)
    return terms, np.append(firsts, len(every)).astype(np.int64), places[order], weights[order]


def _find(terms: Hashes, wanted: Hashes) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """A place for each of ``wanted``, and whether it is really there."""
    spots = np.minimum(np.searchsorted(terms, wanted), max(len(terms) - 1, 0))
    return spots, terms[spots] == wanted if len(terms) else np.zeros(len(wanted), bool)


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"
