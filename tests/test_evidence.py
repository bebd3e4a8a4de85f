"""The sentences of all cards on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from rag.evidence import EvidenceWriter, as_float32, open_evidence
from rag.records import Span
from tests.fakes import hashed_vectors

SENTENCES = {"b": [Span(0, 4), Span(5, 9)], "vacia": [], "a": [Span(3, 70_000)], "ñ": [Span(1, 2), Span(2, 3)]}
VECTORS = hashed_vectors(["b0", "b1", "a0", "ñ0", "ñ1"])
LANGUAGES = {"a": "en"}


def write_evidence(folder: Path, sentences: Mapping[str, Sequence[Span]]) -> None:
    """One card after another, with the first of ``VECTORS``."""
    with EvidenceWriter(folder, 8) as writer:
        for card_id, spans in sentences.items():
            first = writer.sentences
            languages = [LANGUAGES.get(card_id, "es")] * len(spans)
            writer.add(card_id, spans, languages, VECTORS[first : first + len(spans)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sentences of four cards, one without any."""
    write_evidence(tmp_path / "sentences", SENTENCES)
    return tmp_path / "sentences"


def test_spans_come_back(folder: Path) -> None:
    """Each card has its own sentences, in reading order."""
    evidence = open_evidence(folder)
    assert {card_id: evidence.spans_of(card_id) for card_id in SENTENCES} == SENTENCES


@pytest.mark.parametrize(
    "card_ids", [["b"], ["a", "b"], ["ñ", "vacia", "b"], ["vacia"], [], ["no-hay", "a"], ["a", "a"]]
)
def test_vectors_come_back(folder: Path, card_ids: list[str]) -> None:
    """The vectors of some cards come in the order asked for, up to half precision, with spans and languages."""
    first = {"b": 0, "a": 2, "ñ": 3}
    numbers = [first[card_id] + number for card_id in card_ids for number in range(len(SENTENCES.get(card_id, [])))]
    evidence = open_evidence(folder)
    chosen = evidence.of(card_ids)
    assert chosen.counts == [len(SENTENCES.get(card_id, [])) for card_id in card_ids]
    assert chosen.vectors.dtype == np.float32
    assert chosen.vectors.shape == (len(numbers), 8)
    assert np.allclose(chosen.vectors, VECTORS[numbers], atol=1e-3)
    spans = [span for card_id in card_ids for span in SENTENCES.get(card_id, [])]
    assert [Span(start, end) for start, end in chosen.spans.tolist()] == spans
    named = [LANGUAGES.get(card_id, "es") for card_id in card_ids for _ in SENTENCES.get(card_id, [])]
    assert [evidence.language_names[number] for number in chosen.languages] == named


def test_an_unknown_card_has_no_sentences(folder: Path) -> None:
    """A card that is not there is one without sentences."""
    assert open_evidence(folder).spans_of("no-hay") == []


@pytest.mark.parametrize("sentences", [{}, {"a": [], "b": []}], ids=["no-cards", "no-sentences"])
def test_nothing_to_quote_can_be_written_and_opened(tmp_path: Path, sentences: dict[str, list[Span]]) -> None:
    """An index of cards without text has evidence files too."""
    write_evidence(tmp_path / "sentences", sentences)
    evidence = open_evidence(tmp_path / "sentences")
    chosen = evidence.of(["a", "b"])
    assert (chosen.vectors.shape, chosen.spans.shape, chosen.languages.shape) == ((0, 8), (0, 2), (0,))
    assert chosen.counts == [0, 0]
    assert evidence.spans_of("a") == []


def test_vectors_are_mapped_and_not_read(folder: Path) -> None:
    """Opening does not load the vectors, and they cannot be changed through it."""
    vectors = open_evidence(folder).vectors
    assert isinstance(vectors, np.memmap)
    assert not vectors.flags.writeable


@pytest.mark.parametrize("damage", [b"", b"nada", None], ids=["empty", "text", "missing"])
@pytest.mark.parametrize("name", ["vectors.npy", "spans.npy", "languages.npy", "cards.json"])
def test_a_damaged_file_is_told_by_its_error(folder: Path, name: str, damage: bytes | None) -> None:
    """A file that is missing or damaged raises OSError or ValueError, as the caller is told."""
    (folder / name).unlink()
    if damage is not None:
        (folder / name).write_bytes(damage)
    with pytest.raises((OSError, ValueError)):
        open_evidence(folder)


@pytest.mark.parametrize("name", ["vectors.npy", "spans.npy", "languages.npy"])
def test_a_cut_file_is_told_by_its_error(folder: Path, name: str) -> None:
    """A file that ends too soon raises ValueError."""
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-3])
    with pytest.raises((OSError, ValueError)):
        open_evidence(folder)


@pytest.mark.parametrize("text", ["[]", '{"a": 5}', '{"a": [0]}', "null"])
def test_json_of_another_shape_is_told_by_its_error(folder: Path, text: str) -> None:
    """A table of cards that is JSON and no table of bounds raises ValueError."""
    (folder / "cards.json").write_text(text)
    with pytest.raises((OSError, ValueError)):
        open_evidence(folder)


def test_evidence_is_never_written_over(folder: Path) -> None:
    """A folder that is there is not written into."""
    with pytest.raises(FileExistsError):
        write_evidence(folder, {})


def test_every_finite_half_is_widened_exactly() -> None:
    """All 63,488 finite float16 numbers, both zeros among them, become the float32 that NumPy makes of them."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    assert np.array_equal(as_float32(finite).view(np.uint32), finite.astype(np.float32).view(np.uint32))
    assert as_float32(np.empty((0, 3), np.float16)).shape == (0, 3)
