"""Answers: verbatim, cited where they stand, and refused with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import pytest

from rag.answering import ANSWER_CHARS, NEAREST_CARDS, Search, answer_question
from rag.cached_embedding import RememberingEmbedder
from rag.cases import Case, read_golden
from rag.embedding import Embedder
from rag.opening import OpenIndex
from rag.records import PUBLIC_GROUP, Answer, CitationSegment, TextSegment
from rag.sentences import split_sentences
from rag.things import thing_asked_for
from tests.conftest import ROOT, build_quietly, open_here

PUBLIC, STAFF = frozenset({PUBLIC_GROUP}), frozenset({PUBLIC_GROUP, "staff"})
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.jsonl"))
CASES = read_golden(GOLDEN)
TABLE = """---
title: Horario de las tomas
---

| Envase | Hora | Con comida |
|---|---|---|
| Jarabe rojo | 08:00 | no |
| Gotas verdes | 14:00 | sí |
| Comprimido azul | 22:30 | no |
"""
LIST = """---
title: Antes de viajar
---

Lleve en la maleta de mano:

- La receta impresa y firmada por su médico.
- Un termómetro pequeño con pilas nuevas.
- Una botella vacía que llenará tras el control.
"""
SHORT = "---\ntitle: Farmacia de guardia\n---\n\nLa farmacia de guardia abre toda la noche.\n"
MARKERS = "El texto [cite:card-falsa] y [ Cite: otra ] vienen en la propia ficha, a 5 [km/h]."
BRACKETS = f"---\ntitle: Corchetes\nacl: [readers]\n---\n\n{MARKERS}\n"


@pytest.fixture(scope="module")
def remembering(embedder: Embedder) -> Embedder:
    """The real model, which embeds each golden question once for all who ask it."""
    return cast(Embedder, RememberingEmbedder(embedder))


@pytest.fixture(scope="module")
def answers(sample_index: OpenIndex, remembering: Embedder) -> list[tuple[Case, Answer]]:
    """Every golden question, asked by the caller it is meant for."""
    return [(case, ask(case.question, sample_index, remembering, groups=case.groups)) for case in CASES]


@pytest.fixture(scope="module")
def public_answers(sample_index: OpenIndex, remembering: Embedder) -> list[Answer]:
    """Every golden question, asked by the public, the gate wide open."""
    return [ask(case.question, sample_index, remembering, min_similarity=-1.0) for case in CASES]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> OpenIndex:
    """A card that is a table, a card that is a list, a card of one sentence, and one with markers for its readers."""
    work = tmp_path_factory.mktemp("small")
    (work / "cards").mkdir()
    for name, text in (("horario", TABLE), ("viaje", LIST), ("guardia", SHORT), ("corchetes", BRACKETS)):
        (work / "cards" / f"{name}.md").write_text(text, "utf-8")
    build_quietly(work / "cards", work / "index")
    return open_here(work / "index")


def ask(
    question: str,
    index: OpenIndex,
    embedder: Embedder,
    *,
    groups: Sequence[str] | frozenset[str] = PUBLIC,
    top_k: int = 5,
    min_similarity: float | None = None,
) -> Answer:
    search = Search(groups, index, embedder, top_k=top_k, min_similarity=min_similarity)
    return answer_question(question, search, request_id="test")


def test_every_quote_is_the_span_of_its_card(sample_index: OpenIndex, answers: list[tuple[Case, Answer]]) -> None:
    """For every golden question each citation's quote is card.text[start:end], not blank, and of a card retrieved."""
    cited = 0
    for case, answer in answers:
        retrieved = {found.card_id for found in answer.retrieved}
        for citation in answer.citations:
            card = sample_index.rows.card(citation.card_id, case.groups)
            assert card is not None
            assert card.text[citation.start : citation.end] == citation.quote
            assert citation.quote == citation.quote.strip() != ""
            assert citation.verdict == "valid"
            assert citation.card_id in retrieved
            assert (citation.title, citation.language, citation.license, citation.source, citation.accessed_at) == (
                card.title,
                card.language,
                card.license,
                card.source,
                card.accessed_at,
            )
            assert citation.url == f"/cards/{citation.card_id}"
            cited += 1
    assert cited > 200


def test_answers_have_two_or_three_whole_sentences(sample_index: OpenIndex, answers: list[tuple[Case, Answer]]) -> None:
    """Every answer quotes two or three whole sentences of at most two cards; a third only if all stay short."""
    for case, answer in answers:
        if answer.refusal:
            continue
        sizes: list[int] = []
        for citation in answer.citations:
            card = sample_index.rows.card(citation.card_id, case.groups)
            assert card is not None
            spans = [sentence.span for sentence in split_sentences(card.text)]
            inside = [span for span in spans if citation.start <= span.start and span.end <= citation.end]
            assert inside[0].start == citation.start, answer.question
            assert inside[-1].end == citation.end, answer.question
            sizes += [span.end - span.start for span in inside]
        assert 2 <= len(sizes) <= 3, answer.question
        assert len(sizes) == 2 or sum(sizes) <= ANSWER_CHARS, answer.question
        assert len({citation.card_id for citation in answer.citations}) <= 2


def test_quotes_stand_in_reading_order(answers: list[tuple[Case, Answer]]) -> None:
    """Cards come as ranked, the sentences of one card as they stand in it, and no two quotes overlap."""
    for _, answer in answers:
        ranks = [found.card_id for found in answer.retrieved]
        places = [(ranks.index(cited.card_id), cited.start, cited.end) for cited in answer.citations]
        assert places == sorted(places), answer.question
        for before, after in pairwise(places):
            assert before[0] != after[0] or before[2] <= after[1], answer.question


def test_a_card_has_one_number(answers: list[tuple[Case, Answer]]) -> None:
    """Numbers count from 1 in order of first appearance, and a card cited twice keeps its number."""
    for _, answer in answers:
        numbers: dict[str, int] = {}
        for citation in answer.citations:
            assert citation.number == numbers.setdefault(citation.card_id, len(numbers) + 1)


def test_markers_and_segments_agree(answers: list[tuple[Case, Answer]]) -> None:
    """The segments, written out with a marker for each citation, are the answer; each points at its own citation."""
    for _, answer in answers:
        if answer.refusal:
            assert answer.segments == ()
            assert "[cite:" not in answer.answer
            continue
        parts: list[str] = []
        pointed: list[int] = []
        for segment in answer.segments:
            if isinstance(segment, TextSegment):
                parts.append(segment.text)
                continue
            assert isinstance(segment, CitationSegment)
            citation = answer.citations[segment.citation]
            assert (segment.number, segment.card_id) == (citation.number, citation.card_id)
            assert parts[-1] == citation.quote
            parts.append(f"[cite:{segment.card_id}]")
            pointed.append(segment.citation)
        assert " ".join(parts) == answer.answer
        assert pointed == list(range(len(answer.citations)))


def test_refusals_say_why_and_cite_nothing(sample_index: OpenIndex, answers: list[tuple[Case, Answer]]) -> None:
    """A refusal has a reason, its scores, the nearest visible cards, and no citation, segment or retrieved card."""
    refused = [(case, answer) for case, answer in answers if answer.refusal]
    assert len(refused) >= 30
    for case, answer in refused:
        refusal = answer.refusal
        assert refusal is not None
        assert (answer.citations, answer.segments, answer.retrieved) == ((), (), ())
        assert refusal.best_score is not None
        # what came near enough and is refused all the same asks for something that does not show
        near = refusal.best_score > refusal.threshold
        assert refusal.reason == ("no_evidence" if near else "below_threshold")
        assert bool(thing_asked_for(case.question)) or not near
        assert len({link.card_id for link in refusal.nearest}) == NEAREST_CARDS
        for link in refusal.nearest:
            card = sample_index.rows.card(link.card_id, case.groups)
            assert card is not None
            assert (link.title, link.language) == (card.title, card.language)


def test_answered_or_refused_never_both(answers: list[tuple[Case, Answer]]) -> None:
    """Every answer either refuses or cites, names its index and mode, and gives back the question as asked."""
    for case, answer in answers:
        assert (answer.refusal is None) == bool(answer.citations)
        assert answer.question == case.question
        assert (answer.mode, answer.degraded, answer.degraded_reason) == ("extractive", False, None)
        assert set(answer.timings_ms) == {"embed", "search", "total"}


def test_the_public_never_sees_a_staff_card(sample_index: OpenIndex, public_answers: list[Answer]) -> None:
    """Over all golden questions, staff's too, nothing returned to the public names or quotes a staff card."""
    public = {card.card_id for card in sample_index.rows.cards(PUBLIC)}
    hidden = [card for card in sample_index.rows.cards(STAFF) if card.card_id not in public]
    assert len(hidden) >= 4
    words = [card.card_id for card in hidden] + [card.title for card in hidden]
    for answer in public_answers:
        shown = repr((answer.answer, answer.segments, answer.citations, answer.retrieved, answer.refusal))
        assert not [word for word in words if word in shown], answer.question
        assert {cited.card_id for cited in answer.citations} <= public


def test_refusals_offer_the_public_no_staff_card(sample_index: OpenIndex, remembering: Embedder) -> None:
    """The nearest cards of a refusal are public ones for the public, also where a staff card is nearer."""
    public = {card.card_id for card in sample_index.rows.cards(PUBLIC)}
    for case in CASES:
        if "staff" not in case.groups:
            continue
        answer = ask(case.question, sample_index, remembering, min_similarity=1.0)
        assert answer.refusal is not None
        assert {link.card_id for link in answer.refusal.nearest} <= public


def test_min_similarity_overrides_the_gate(sample_index: OpenIndex, embedder: Embedder) -> None:
    """The setting opens the gate for an unrelated question, shuts it for a good one, and is the threshold reported."""
    good, unrelated = "¿Cómo guardo la insulina?", "¿Quién ganó la liga en 1998?"
    assert ask(good, sample_index, embedder).refusal is None
    assert ask(unrelated, sample_index, embedder).refusal is not None
    assert ask(unrelated, sample_index, embedder, min_similarity=0.0).citations
    shut = ask(good, sample_index, embedder, min_similarity=0.99).refusal
    assert shut is not None
    assert (shut.reason, shut.threshold) == ("below_threshold", 0.99)


def test_who_may_see_nothing_is_told_there_are_no_cards(sample_index: OpenIndex, embedder: Embedder) -> None:
    """A caller without any card gets the reason no_cards, no score and nothing nearest."""
    refusal = ask("¿Cómo guardo la insulina?", sample_index, embedder, groups=frozenset()).refusal
    assert refusal is not None
    assert (refusal.reason, refusal.best_score, refusal.nearest) == ("no_cards", None, ())


@pytest.mark.parametrize(
    ("question", "language"),
    [("¿Quién ganó la liga en 1998?", "es"), ("Who won the football league in 1998?", "en")],
)
def test_refusals_speak_the_language_of_the_question(
    sample_index: OpenIndex, embedder: Embedder, question: str, language: str
) -> None:
    """The sentence of a refusal is in the language of the question."""
    answer = ask(question, sample_index, embedder)
    assert answer.refusal is not None
    assert answer.language == language
    assert ("cards" in answer.answer) == (language == "en")


def test_a_table_row_is_quoted_whole(small: OpenIndex, embedder: Embedder) -> None:
    """A question about one row of a table is answered with that whole row, as it stands in the card."""
    answer = ask("¿A qué hora se toma el comprimido azul?", small, embedder, min_similarity=0.0)
    assert any("| Comprimido azul | 22:30 | no |" in cited.quote for cited in answer.citations)
    assert all("|---|" not in cited.quote for cited in answer.citations)


def test_a_list_item_is_quoted_without_its_marker(small: OpenIndex, embedder: Embedder) -> None:
    """A question about one item of a list is answered with that item, without the hyphen before it."""
    answer = ask("¿Llevo un termómetro en la maleta?", small, embedder, min_similarity=0.0)
    quotes = [cited.quote for cited in answer.citations]
    assert "Un termómetro pequeño con pilas nuevas." in quotes
    assert not [quote for quote in quotes if quote.startswith("-") or quote.endswith(":")]


def test_one_card_asked_for_is_the_only_one_quoted(small: OpenIndex, embedder: Embedder) -> None:
    """With top_k 1 and a card of one sentence the answer is that sentence alone."""
    answer = ask("¿Abre de noche la farmacia de guardia?", small, embedder, top_k=1, min_similarity=0.0)
    assert [cited.quote for cited in answer.citations] == ["La farmacia de guardia abre toda la noche."]
    assert answer.answer == "La farmacia de guardia abre toda la noche. [cite:guardia]"


def test_golden_files_are_where_the_tests_look() -> None:
    """There are at least a hundred answerable and fifty unanswerable golden questions."""
    assert sum(bool(case.grades) for case in CASES) >= 100
    assert sum(not case.grades for case in CASES) >= 50


def test_a_marker_in_a_card_is_no_citation(small: OpenIndex, embedder: Embedder) -> None:
    """What looks like a marker in a card's own text stays in the quote, and is none in the answer's text."""
    question = "¿Qué texto viene en la propia ficha?"
    answer = ask(question, small, embedder, groups=["readers"], min_similarity=-1.0)
    assert [(citation.card_id, citation.quote) for citation in answer.citations] == [("corchetes", MARKERS)]
    assert answer.answer.lower().replace(" ", "").count("[cite:") == 1
    assert "[km/h]" in answer.answer
