"""The sentences of all cards on disk: spans and vectors, memory-mapped, so that a question embeds nothing else."""

from __future__ import annotations

import io
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

from rag.files import naming
from rag.records import Span

_VECTORS, _SPANS, _CARDS = "vectors.npy", "spans.npy", "cards.json"

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Opened sentence files."""

    vectors: NDArray[np.float16]
    """(n, d), unit length up to rounding."""
    spans: NDArray[np.int32]
    """(n, 2): start and end in the card's text."""
    cards: Mapping[str, tuple[int, int]]
    """Card id → first sentence and the one behind the last."""

    def spans_of(self, card_id: str) -> list[Span]:
        """The sentences of a card in reading order."""
        first, last = self.cards.get(card_id, (0, 0))
        return [Span(start, end) for start, end in self.spans[first:last].tolist()]

    def vectors_of(self, card_ids: Sequence[str]) -> tuple[Vectors, list[int]]:
        """The vectors of these cards' sentences one after another, (n, d) float32, and how many each card has."""
        bounds = [self.cards.get(card_id, (0, 0)) for card_id in card_ids]
        pieces = [self.vectors[first:last] for first, last in bounds]
        vectors = np.concatenate(pieces) if pieces else self.vectors[:0]
        return vectors.astype(np.float32), [last - first for first, last in bounds]


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

    def __enter__(self) -> EvidenceWriter:
        with naming(self._folder / _VECTORS):
            self._file = (self._folder / _VECTORS).open("wb")
            self._write_header()
        return self

    def add(self, card_id: str, spans: Sequence[Span], vectors: Vectors) -> None:
        """Write the sentences of a card; ``vectors`` is (n, d), in their order."""
        first = self.sentences
        self.sentences += len(spans)
        self._bounds[card_id] = (first, self.sentences)
        for span in spans:
            self._spans.extend((span.start, span.end))
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
        with naming(self._folder / _SPANS):
            # into a file, NumPy writes by the C library and takes no notice when the last of it meets a full disk
            data = io.BytesIO()
            np.save(data, np.array(self._spans, np.int32).reshape(-1, 2))
            (self._folder / _SPANS).write_bytes(data.getvalue())
        with naming(self._folder / _CARDS):
            (self._folder / _CARDS).write_text(json.dumps(self._bounds), "utf-8")

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
        entries = json.loads((folder / _CARDS).read_text("utf-8")).items()
        cards = {name: (int(first), int(last)) for name, (first, last) in entries}
        return Evidence(_load_vectors(folder / _VECTORS, cards), _load(folder / _SPANS), cards)
    except (EOFError, AttributeError, TypeError) as error:
        raise ValueError(f"the files of sentences are damaged: {error!r}") from error


def _load(path: Path) -> NDArray[Any]:
    with path.open("rb") as file:
        return np.asarray(np.load(file, allow_pickle=False))


def _load_vectors(path: Path, cards: Mapping[str, tuple[int, int]]) -> NDArray[Any]:
    # an empty file cannot be mapped
    filled = any(last > first for first, last in cards.values())
    return open_memmap(path, mode="r") if filled else _load(path)
