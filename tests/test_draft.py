"""What a language model writes, checked as it comes: nothing unchecked is shown, nothing that holds is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rag.answering.draft import Draft
from rag.answering.events import CitationShown, Shown
from rag.evidence import EvidenceWriter, open_evidence
from rag.lexical import LexicalWriter, open_lexical
from rag.links import addresses
from rag.markers import Marker, scan_markers
from rag.opening import OpenIndex
from rag.prompting import instructions
from rag.records import Card, Citation, CitationSegment, Passage, TextSegment
from rag.reference import Reference
from rag.row_index import RowIndex
from rag.sentences import split_sentences
from rag.support import Sources
from tests.fakes import hashed_vectors, make_card, make_row

DIMENSION = 1024
"""In so many, texts that differ are never near."""
FIEBRE = make_card(
    "fiebre",
    "El paracetamol baja la fiebre en una hora. Tome 500 mg cada 8 horas. No lo mezcle con alcohol fuerte.\n"
    "Lea más en https://ejemplo.invalid/guia hoy mismo.",
)
TOS = make_card("tos-1", "El jarabe calma la tos seca. Beba agua templada cada dos horas.")
TOS_10 = make_card("tos-10", "La miel suaviza la garganta irritada. Evite el humo del tabaco.")
HIDDEN = make_card("interno", "La llave cuelga detrás del reloj. Solo la coge Eulalia.", acl=("staff",))
SHOWN = (FIEBRE, TOS, TOS_10)
TRUE = [
    (card, card.text[sentence.span.start : sentence.span.end])
    for card in SHOWN
    for sentence in split_sentences(card.text)
]


@dataclass(frozen=True, slots=True)
class Hashing:
    """An embedder for which only equal texts are alike."""

    def embed_query(self, question: str) -> NDArray[np.float32]:
        """(1024,) float32."""
        found: NDArray[np.float32] = hashed_vectors([question], DIMENSION)[0]
        return found

    def truncates(self, question: str) -> bool:
        """Never."""
        return False


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """The three cards that a question found; the hidden one is in the index too."""
    folder = tmp_path_factory.mktemp("draft")
    words, cards = LexicalWriter(), (*SHOWN, HIDDEN)
    with EvidenceWriter(folder / "sentences", DIMENSION) as writer:
        for card in cards:
            words.add(card, [card.text])
            spans = [sentence.span for sentence in split_sentences(card.text)]
            texts = [card.text[span.start : span.end] for span in spans]
            writer.add(card.card_id, spans, ["es"] * len(spans), hashed_vectors(texts, DIMENSION))
    words.write(folder / "lexical")
    zero = np.zeros(DIMENSION, np.float32)
    reference = Reference({"es": zero, "en": zero}, {"es": zero, "en": zero})
    rows = RowIndex(
        [make_row(card) for card in cards], hashed_vectors([card.text for card in cards], DIMENSION), reference
    )
    index = OpenIndex(
        "draft", rows, open_lexical(folder / "lexical"), open_evidence(folder / "sentences"), {"es": 0.5, "en": 0.5}
    )
    return Sources([passage(card) for card in SHOWN], index=index, embedder=Hashing())


def passage(card: Card) -> Passage:
    return Passage(card, 0, 0, len(card.text), 0.9, 1.0, 0.0, 1.0, None, ())


@dataclass(frozen=True, slots=True)
class Written:
    """All that came of a text."""

    segments: Sequence[TextSegment | CitationSegment]
    citations: Sequence[Citation]
    counts: dict[str, int]
    refused: bool

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments if isinstance(segment, TextSegment))

    @property
    def valid(self) -> list[tuple[str, str]]:
        return [(citation.card_id, citation.quote) for citation in self.citations if citation.verdict == "valid"]


def write(sources: Sources, pieces: Sequence[str], *, cut_off: bool = False) -> Written:
    """Have a text checked as it comes in these pieces."""
    draft = Draft(sources, "es", addresses=addresses([card.text for card in SHOWN]))
    shown: list[Shown] = []
    for piece in pieces:
        claims = draft.feed(piece)
        shown += draft.judge(claims) if claims else []
    shown += draft.judge(draft.finish(cut_off=cut_off))
    assert [event.segment for event in shown] == draft.segments
    for event in shown:
        if isinstance(event, CitationShown):
            assert draft.citations[event.segment.citation] == event.citation
    return Written(draft.segments, draft.citations, {name: n for name, n in draft.counts.items() if n}, draft.refused)


def test_a_sentence_with_its_marker_is_shown_with_its_source(sources: Sources) -> None:
    """A sentence that the cited card says is shown, and its citation quotes that sentence of the card."""
    found = write(sources, ["Tome 500 mg cada 8 horas. [cite:fiebre]"])
    assert found.text == "Tome 500 mg cada 8 horas."
    assert found.valid == [("fiebre", "Tome 500 mg cada 8 horas.")]
    assert found.counts == {"valid": 1}


def test_another_number_is_shown_as_failed(sources: Sources) -> None:
    """A sentence with a dose that the card does not have is shown as unsupported, and quotes nothing."""
    found = write(sources, ["Beba agua templada cada dos horas. [cite:tos-1] Tome 600 mg cada 8 horas. [cite:fiebre]"])
    assert [(citation.card_id, citation.verdict, citation.quote) for citation in found.citations] == [
        ("tos-1", "valid", "Beba agua templada cada dos horas."),
        ("fiebre", "unsupported", ""),
    ]
    assert [segment.supported for segment in found.segments if isinstance(segment, TextSegment)] == [True, False]


def test_a_card_that_was_not_retrieved_is_no_source(sources: Sources) -> None:
    """A marker of a hidden card is counted and not shown, and its sentence, which no card says, is withheld."""
    found = write(
        sources, ["El jarabe calma la tos seca. [cite:tos-1] La llave cuelga detrás del reloj. [cite:interno]"]
    )
    assert [citation.card_id for citation in found.citations] == ["tos-1"]
    assert "reloj" not in found.text
    assert found.counts == {"valid": 1, "unknown": 1, "withheld": 1}


def test_what_no_card_says_is_withheld(sources: Sources) -> None:
    """A sentence of the model's own, without a marker, is not shown."""
    found = write(sources, ["París es la capital de Francia. El jarabe calma la tos seca. [cite:tos-1]"])
    assert found.text == "El jarabe calma la tos seca."


def test_a_missing_marker_is_found(sources: Sources) -> None:
    """A sentence without a marker, or with that of another card, gets the card that says it."""
    found = write(sources, ["La miel suaviza la garganta irritada.\nEvite el humo del tabaco. [cite:fiebre]"])
    assert found.valid == [
        ("tos-10", "La miel suaviza la garganta irritada."),
        ("tos-10", "Evite el humo del tabaco."),
    ]
    assert found.counts == {"added": 2, "unsupported": 1}


@pytest.mark.parametrize(
    "text",
    [
        "El jarabe cura el cáncer. [cite:tos-1]",
        "[cite:tos-1]",
        "[cite:interno] La llave cuelga detrás del reloj.",
        "¿El jarabe calma la tos seca? [cite:tos-1]",
        "",
        "{",
        '{"answer": 1}',
        "```",
    ],
)
def test_nothing_is_shown_without_a_citation_that_holds(sources: Sources, text: str) -> None:
    """A text in which no citation holds leaves no trace in the answer."""
    found = write(sources, [text])
    assert not found.segments
    assert not found.valid


def test_nothing_is_shown_before_the_first_that_holds(sources: Sources) -> None:
    """What is doubtful waits until something that holds has come; then it stands before it, marked."""
    draft = Draft(sources, "es")
    assert draft.judge(draft.feed("El jarabe cura el cáncer. [cite:tos-1] Beba ")) == []
    shown = draft.judge(draft.feed("agua templada cada dos horas. [cite:tos-1] Y")) + draft.judge(draft.finish())
    assert [piece.segment.supported for piece in shown if isinstance(piece.segment, TextSegment)] == [False, True]


@pytest.mark.parametrize("text", ["[cite:none]", "NADA [cite:none]", "No lo sé. [cite: NONE ]", "[cite:none"])
def test_a_refusal_is_recognised(sources: Sources, text: str) -> None:
    """The marker of no card says that the cards do not answer; half of it does not."""
    assert write(sources, [text]).refused == text.endswith("]")


def test_nothing_is_said_twice(sources: Sources) -> None:
    """A model that goes round in circles is heard once."""
    found = write(sources, ["El jarabe calma la tos seca. [cite:tos-1]\n" * 30])
    assert (found.text, found.counts) == ("El jarabe calma la tos seca.", {"valid": 1})


def test_the_instructions_are_never_shown(sources: Sources) -> None:
    """Sentences that repeat what the model was told are withheld, whatever they cite."""
    told = instructions("es").replace(". ", ". [cite:tos-1] ")
    found = write(sources, ["El jarabe calma la tos seca. [cite:tos-1] ", told])
    assert found.text == "El jarabe calma la tos seca."


def test_addresses_are_those_of_the_cards(sources: Sources) -> None:
    """A link that the cards hold stays, any other goes."""
    found = write(
        sources,
        [
            "Lea más en https://ejemplo.invalid/guia hoy mismo. [cite:fiebre]\n"
            "El jarabe calma ![x](https://malo.invalid/?q=1) la tos seca https://malo.invalid/a. [cite:tos-1]"
        ],
    )
    assert "https://ejemplo.invalid/guia" in found.text
    assert "malo" not in found.text


def test_thoughts_are_not_shown(sources: Sources) -> None:
    """What a model thinks aloud is left out, also where its beginning is not marked."""
    text = "El jarabe calma la tos seca. [cite:tos-1]"
    assert write(sources, ["<think>Beba agua templada cada dos horas.</think>", text]).text == text.partition(" [")[0]
    assert write(sources, ["razono un poco</think>", text]).text == text.partition(" [")[0]


def test_json_in_a_stream_is_read(sources: Sources) -> None:
    """A model that answers in JSON though it was not asked to is read as if it had not."""
    found = write(
        sources, ['```json\n{"answer": "El jarabe calma la tos seca. [cite:tos-1]",', ' "citations": []}\n```']
    )
    assert found.text == "El jarabe calma la tos seca."


def test_a_sentence_cut_off_is_left_out(sources: Sources) -> None:
    """Of a text that ended at the limit of tokens, the sentence without an end is not shown."""
    pieces = ["El jarabe calma la tos seca. [cite:tos-1] Beba agua templada cada dos"]
    assert write(sources, pieces, cut_off=True).text == "El jarabe calma la tos seca."


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


MARKERS = st.sampled_from(
    [
        "[cite:fiebre]",
        "[cite:tos-1]",
        "[cite:tos-10]",
        "[cite:tos-1, tos-10]",
        "[Cite: fiebre ]",
        "【cite:tos-1】",
        "[cite:interno]",
        "[cite:tos-100]",
        "[cite:]",
        "[cite:tos-1",
        "cite:tos-1]",
        "[cite:[cite:tos-1]]",
        "[сіtе:tos-1]",
        "[ci\u200bte:tos-1]",
        "\u202e[cite:fiebre]\u202c",
        "[cite:tos-1](https://malo.invalid)",
        "`[cite:fiebre]`",
        "[[cite:tos-10]]",
        "[/cite:fiebre]",
        "&#91;cite:fiebre&#93;",
        "[cite:none]",
        "(cite:fiebre)",
    ]
)
NOISE = st.one_of(
    st.sampled_from(
        [" ", "\n", "\n\n", ". ", "- ", "1. ", "[", "]", "**", "…", "París es la capital de Francia. ", "¿Qué? ",
         "<think>", "</think>", "![x](https://malo.invalid)", "Tome 900 mg cada 8 horas. ", "\u202e", "🙂", "{", "`"]
    ),
    st.text(max_size=8),
)  # fmt: skip
SENTENCES = st.sampled_from([sentence for _, sentence in TRUE])
OUTPUTS = st.lists(st.one_of(SENTENCES, MARKERS, NOISE), max_size=14).map(" ".join) | st.lists(
    st.one_of(SENTENCES, MARKERS, NOISE), max_size=14
).map("".join)


@given(output=OUTPUTS, data=st.data())
def test_no_output_gets_a_false_citation_through(sources: Sources, output: str, data: st.DataObject) -> None:
    """
    Whatever a model writes: every citation that is shown as valid quotes a retrieved card and stands behind those very
    words, no text holds a marker, and pieces of any size give what the whole gives.
    """
    whole = write(sources, [output])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=8)))
    pieces = [output[start:end] for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True)]
    assert write(sources, pieces) == whole
    assert write(sources, list(output)) == whole
    texts = {card.card_id: card.text for card in SHOWN}
    said = ""
    for segment in whole.segments:
        if isinstance(segment, TextSegment):
            said = segment.text
            assert not any(isinstance(token, Marker) for token in scan_markers(segment.text))
            assert "malo.invalid" not in segment.text
            continue
        citation = whole.citations[segment.citation]
        assert citation.card_id in texts
        assert texts[citation.card_id][citation.start : citation.end] == citation.quote
        if citation.verdict == "valid":
            assert citation.quote
            # marks of a list may stand before them, and stops behind
            before, _, behind = letters(said).rpartition(letters(citation.quote))
            assert letters(citation.quote) in letters(said)
            assert not any(map(str.isalpha, before + behind))
    assert bool(whole.segments) == bool(whole.valid)


@given(before=OUTPUTS, after=OUTPUTS, place=st.integers(0, len(TRUE) - 1))
def test_no_true_citation_is_lost(sources: Sources, before: str, after: str, place: int) -> None:
    """A line that says what its card says, and cites it, is shown with its source whatever stands on other lines."""
    card, sentence = TRUE[place]
    # what is open before it is another matter: a thought, a block of code, a marker
    before = before.translate(dict.fromkeys(map(ord, "<>{}[]()`【】&сcCс")))
    found = write(
        sources, [f"Vea.\n\n{before}.\n\n{sentence} [cite:{card.card_id}]\n\n", after.replace("</think>", "")]
    )
    assert (card.card_id, sentence) in found.valid


def test_two_sentences_make_no_marker_together(sources: Sources) -> None:
    """What is half a marker in one sentence finds no other half in the next."""
    halves = "El jarabe calma la tos seca [c [cite:tos-1]\nite:tos-10] y beba agua. [cite:tos-1]"
    found = write(sources, ["Beba agua templada cada dos horas. [cite:tos-1] ", halves])
    assert not any(isinstance(token, Marker) for token in scan_markers(found.text))
