"""The sentences of all cards on disk: spans and vectors, memory-mapped, so that a question embeds nothing else.

Beside a card's sentences stand the questions that it is known to answer, with empty spans: they help to find it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap, write_array_header_1_0
from numpy.typing import NDArray

from rag.files import naming, write_array
from rag.records import Span

_VECTORS, _SPANS, _LANGUAGES, _CARDS = "vectors.npy", "spans.npy", "languages.npy", "cards.json"

Vectors = NDArray[np.float32]
_SIGN, _REST = np.uint32(0x8000), np.uint32(0x7FFF)
_BIAS = np.float32(2.0**112)
"""Between the exponents of float32 and float16."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The sentences of some cards, and how many each card has."""

    vectors: Vectors
    """(n, d)."""
    spans: NDArray[np.int32]
    """(n, 2)."""
    languages: NDArray[np.uint8]
    """(n,)."""
    counts: list[int]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Opened sentence files."""

    vectors: NDArray[np.float16]
    """(n, d), unit length up to rounding."""
    spans: NDArray[np.int32]
    """(n, 2): start and end in the card's text."""
    languages: NDArray[np.uint8]
    """(n,): of each, its place in ``language_names``."""
    language_names: Sequence[str]
    cards: Mapping[str, tuple[int, int]]
    """Card id → first sentence and the one behind the last."""

    def spans_of(self, card_id: str) -> list[Span]:
        """The sentences of a card in reading order."""
        first, last = self.cards.get(card_id, (0, 0))
        return [Span(start, end) for start, end in self.spans[first:last].tolist()]

    def of(self, card_ids: Sequence[str]) -> Chosen:
        """What some cards have, one card after another."""
        bounds = [self.cards.get(card_id, (0, 0)) for card_id in card_ids]
        places = np.concatenate([np.empty(0, np.intp), *(np.arange(first, last) for first, last in bounds)])
        return Chosen(
            # as a plain array: a mapped one looks after its file at every step
            vectors=as_float32(self.vectors.view(np.ndarray)[places]),
            spans=self.spans[places],
            languages=self.languages[places],
            counts=[last - first for first, last in bounds],
        )


def as_float32(halves: NDArray[np.float16]) -> Vectors:
    """
    The same finite numbers as float32, exactly.

    By their bits, which takes a third of the time of NumPy's own conversion where that does one number after another.
    """
    bits = halves.view(np.uint16).astype(np.uint32)
    signs = (bits & _SIGN) << np.uint32(16)
    bits &= _REST
    bits <<= np.uint32(13)
    floats: Vectors = bits.view(np.float32)
    floats *= _BIAS
    bits |= signs
    return floats


class EvidenceWriter:
    """Writes the sentences of one card after another, and holds none of their vectors."""

    def __init__(self, folder: Path, dimension: int) -> None:
        """``folder`` must not be there yet."""
        folder.mkdir()
        self.sentences = 0
        self._folder = folder
        self._dimension = dimension
        self._bounds: dict[str, tuple[int, int]] = {}
        self._spans = array("i")
        self._languages = array("B")
        self._names: list[str] = []

    def __enter__(self) -> EvidenceWriter:
        with naming(self._folder / _VECTORS):
            self._file = (self._folder / _VECTORS).open("wb")
            self._write_header()
        return self

    def add(self, card_id: str, spans: Sequence[Span], languages: Sequence[str], vectors: Vectors) -> None:
        """Write the sentences of a card, with the language of each; ``vectors`` is (n, d), in their order."""
        first = self.sentences
        self.sentences += len(spans)
        self._bounds[card_id] = (first, self.sentences)
        for span in spans:
            self._spans.extend((span.start, span.end))
        for language in languages:
            if language not in self._names:
                self._names.append(language)
            self._languages.append(self._names.index(language))
        with naming(self._folder / _VECTORS):
            self._file.write(vectors.astype(np.float16).tobytes())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with naming(self._folder / _VECTORS), self._file:
            # the header has room for the count, which is known only now
            self._file.seek(0)
            self._write_header()
        if kind is not None:
            return
        write_array(self._folder / _SPANS, np.array(self._spans, np.int32).reshape(-1, 2))
        write_array(self._folder / _LANGUAGES, np.array(self._languages, np.uint8))
        with naming(self._folder / _CARDS):
            shape = {"languages": self._names, "cards": self._bounds}
            (self._folder / _CARDS).write_text(json.dumps(shape), "utf-8")

    def _write_header(self) -> None:
        shape = (self.sentences, self._dimension)
        write_array_header_1_0(self._file, {"descr": "<f2", "fortran_order": False, "shape": shape})


def open_evidence(folder: Path) -> Evidence:
    """
    Open what ``EvidenceWriter`` wrote, without reading the vectors.

    Raises:
        OSError, ValueError: a file is missing or damaged.
    """
    try:
        shape = json.loads((folder / _CARDS).read_text("utf-8"))
        cards = {name: (int(first), int(last)) for name, (first, last) in shape["cards"].items()}
        vectors, spans = _load_vectors(folder / _VECTORS, cards), _load(folder / _SPANS)
        return Evidence(vectors, spans, _load(folder / _LANGUAGES), list(shape["languages"]), cards)
    except (EOFError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"the files of sentences are damaged: {error!r}") from error


def _load(path: Path) -> NDArray[Any]:
    with path.open("rb") as file:
        return np.asarray(np.load(file, allow_pickle=False))


def _load_vectors(path: Path, cards: Mapping[str, tuple[int, int]]) -> NDArray[Any]:
    # an empty file cannot be mapped
    filled = any(last > first for first, last in cards.values())
    return open_memmap(path, mode="r") if filled else _load(path)
