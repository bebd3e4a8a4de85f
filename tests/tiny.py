"""An index of five cards that can be worked out by hand, and an embedder to ask it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.evidence import EvidenceWriter, open_evidence
from rag.lexical import LexicalWriter, open_lexical
from rag.opening import OpenIndex
from rag.records import Card, Span
from rag.reference import Reference
from rag.row_index import RowIndex
from tests.fakes import make_card, make_row

Vectors = NDArray[np.float32]

LIMON = make_card("limon", "Agrio y amarillo. Va bien con el té.", title="Limón")
MANZANA = make_card("manzana", "Dulce.", title="Manzana")
PEAR = make_card("pear", "Green and soft.", title="Pear", language="en")
SECRETA = make_card("secreta", "Solo para la casa.", title="Secreta", acl=("staff",))
ZUMO = make_card("zumo", "Se bebe frío.", title="Zumo")
CARDS = (LIMON, MANZANA, PEAR, SECRETA, ZUMO)
CUT = LIMON.text.index("Va")
PUBLIC, STAFF = ("public",), ("public", "staff")

QUESTION = "¿Es dulce?"
"""Its vector is the first axis, so a cosine is a vector's first number."""

CHUNKS = (
    (make_row(LIMON, 0, end=CUT - 1), 0.1),
    (make_row(LIMON, 1, start=CUT), 0.9),
    (make_row(MANZANA), 0.95),
    (make_row(PEAR), 0.2),
    (make_row(SECRETA), 0.99),
    (make_row(ZUMO), 0.05),
)
"""With the cosines of what is indexed of them."""
SENTENCES: Mapping[str, Sequence[tuple[Span, float]]] = {
    "limon": [(Span(0, CUT - 1), 0.3), (Span(CUT, len(LIMON.text)), 0.2), (Span(0, 0), 1.0)],
    "manzana": [(Span(0, 6), 0.8)],
    "pear": [(Span(0, 15), 0.6)],
    "secreta": [(Span(0, 18), 0.9)],
    "zumo": [(Span(0, 13), 0.05)],
}
"""The third of the lemon is a question that it names, and no sentence."""
TEXTS = {
    # whole cards
    f"Limón\n\n{LIMON.text}": 0.5,
    "Manzana\n\nDulce.": 0.4,
    "Pear\n\nGreen and soft.": 0.6,
    "Secreta\n\nSolo para la casa.": 0.55,
    "Zumo\n\nSe bebe frío.": 0.05,
    # chunks without context: the title stands before the first one alone
    "Limón\n\nAgrio y amarillo.": 0.2,
    "Va bien con el té.": 0.7,
}
"""What the index has no vectors of, with the cosines of those. A card of one chunk is one text either way."""


@dataclass(frozen=True, slots=True)
class FixedQuestion:
    """An embedder that gives every question the first axis."""

    def embed_query(self, question: str) -> Vectors:
        """(3,) float32."""
        return np.array([1, 0, 0], np.float32)

    def truncates(self, question: str) -> bool:
        """Never."""
        return False


def embed_passages(texts: Sequence[str]) -> Vectors:
    """Vectors of ``TEXTS``, and of nothing else."""
    return at_cosines([TEXTS[text] for text in texts])


def at_cosines(cosines: Sequence[float]) -> Vectors:
    """Unit vectors, (n, 3), at these cosines from the question."""
    first = np.array(cosines, np.float64)
    return np.stack([first, np.sqrt(1 - first**2), np.zeros_like(first)], axis=1).astype(np.float32)


def tiny_index(folder: Path, *, threshold: float = 0.5, cards: Mapping[str, Card] | None = None) -> OpenIndex:
    """The index; ``cards`` take the place of those with these ids."""
    shown = cards or {}
    words = LexicalWriter()
    with EvidenceWriter(folder / "sentences", 3) as sentences:
        for card in CARDS:
            words.add(shown.get(card.card_id, card), [card.text])
            spans, cosines = zip(*SENTENCES[card.card_id], strict=True)
            sentences.add(
                shown.get(card.card_id, card).card_id, spans, [card.language] * len(spans), at_cosines(cosines)
            )
    words.write(folder / "lexical")
    zero = np.zeros(3, np.float32)
    rows = [
        make_row(shown.get(row.card.card_id, row.card), row.chunk_index, start=row.start, end=row.end)
        for row, _ in CHUNKS
    ]
    vectors = at_cosines([cosine for _, cosine in CHUNKS])
    reference = Reference({"es": zero, "en": zero}, {"es": zero, "en": zero})
    return OpenIndex(
        "tiny",
        RowIndex(rows, vectors, reference),
        open_lexical(folder / "lexical"),
        open_evidence(folder / "sentences"),
        {"es": threshold, "en": threshold},
    )
