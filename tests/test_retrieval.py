"""Question to passages: who may see what, how many cards come back, and when the gate shuts."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.builds import current_build, use_build
from rag.cached_embedding import RememberingEmbedder
from rag.cases import read_golden
from rag.embedding import Embedder, QueryEmbedder
from rag.errors import IndexMissing, IndexUnusable
from rag.evidence import EvidenceWriter, open_evidence
from rag.lexical import LexicalWriter, open_lexical
from rag.opening import OpenIndex, open_index
from rag.records import PUBLIC_GROUP, Card, Retrieval, Row
from rag.reference import Reference
from rag.reranking import Reranker, load_reranker
from rag.retrieval import FUSIONS, RERANK_CARDS, retrieve
from rag.row_index import OVER_RETRIEVAL, RowIndex
from tests.conftest import CASES_DIR, ROOT, build_quietly, open_here
from tests.cross_encoders import write_cross_encoder
from tests.fakes import BrokenReranker, RememberingReranker, hashed_vectors, make_card, make_row

PUBLIC, STAFF = frozenset({PUBLIC_GROUP}), frozenset({PUBLIC_GROUP, "staff"})
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.jsonl"))
PRIVATE = (
    "---\nid: secreta\ntitle: Insulina en reserva\nacl: [staff]\n---\n\nLa insulina de reserva está en la nevera 2.\n"
)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Three small indexes."""

    zero_scores: OpenIndex
    """The cards of O12."""
    fat: OpenIndex
    """The cards of O14."""
    fat_and_private: OpenIndex
    """The cards of O14 and one for staff alone, on the same subject."""


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Boxes:
    """Built one after another in one folder, so that they share a cache."""
    work = tmp_path_factory.mktemp("retrieval")
    private = work / "private"
    shutil.copytree(CASES_DIR / "O14_parent_dedupe" / "cards", private)
    (private / "secreta.md").write_text(PRIVATE, "utf-8")
    indexes: list[OpenIndex] = []
    for folder in (CASES_DIR / "O12_zero_score_padding" / "cards", CASES_DIR / "O14_parent_dedupe" / "cards", private):
        build_quietly(folder, work / "index")
        indexes.append(open_here(work / "index"))
    return Boxes(*indexes)


def find(
    question: str,
    index: OpenIndex,
    embedder: QueryEmbedder,
    *,
    groups: Collection[str] = PUBLIC,
    top_k: int = 5,
    threshold: float | None = None,
    reranker: Reranker | None = None,
) -> Retrieval:
    return retrieve(
        question, groups, index=index, embedder=embedder, top_k=top_k, threshold=threshold, reranker=reranker
    )


def ids(found: Retrieval) -> list[str]:
    return [passage.card.card_id for passage in found.passages]


@pytest.mark.parametrize(
    "question", (CASES_DIR / "O12_zero_score_padding" / "question.txt").read_text("utf-8").splitlines()
)
def test_o12_a_question_about_nothing_does_not_pass(boxes: Boxes, embedder: Embedder, question: str) -> None:
    """O12: asking two cards for ten with nothing raises nothing; the gate is shut to all that the service lets in."""
    found = find(question, boxes.zero_scores, embedder, top_k=10)
    assert len(found.passages) <= 2
    has_words = any(letter.isalnum() for letter in question)
    assert not (has_words and found.passed)


def test_o14_a_fat_card_does_not_crowd_out_the_others(boxes: Boxes, embedder: Embedder) -> None:
    """O14: three cards asked for are three different cards, though one has most of the best chunks."""
    question = (CASES_DIR / "O14_parent_dedupe" / "question.txt").read_text("utf-8").strip()
    found = find(question, boxes.fat, embedder, top_k=3)
    assert found.passed
    assert len(set(ids(found))) == 3
    assert "card-gorda" in ids(found)


def test_over_retrieval_widens_until_there_are_enough_cards() -> None:
    """However many of the best chunks are one card's, every card asked for comes back, each by its best chunk."""
    fat, others = make_card("gorda", "x" * 900), [make_card(f"fina{number}") for number in range(4)]
    rows: list[Row] = [make_row(fat, number, start=number, end=number + 1) for number in range(900)]
    rows += [make_row(card) for card in others]
    angles = np.concatenate([np.linspace(0.0, 0.1, 900), np.linspace(0.5, 0.8, 4)])
    vectors = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=1).astype(np.float32)
    question = np.array([1.0, 0.0, 0.0], np.float32)
    index = RowIndex(rows, vectors, flat_reference(3))
    hits = index.search(question, "es", PUBLIC, count=5)
    assert len(rows) > 5 * OVER_RETRIEVAL
    assert [hit.card.card_id for hit in hits] == ["gorda", "fina0", "fina1", "fina2", "fina3"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(index.search(question, "es", PUBLIC, count=3)) == 3
    assert len(index.search(question, "es", PUBLIC, count=50)) == 5


def flat_reference(dimension: int) -> Reference:
    """A reference that favours nothing."""
    zero = np.zeros(dimension, np.float32)
    return Reference({"es": zero, "en": zero}, {"es": zero, "en": zero})


def test_o09_cosines_point_the_right_way() -> None:
    """O09: equal, perpendicular and opposite vectors score 1, 0 and -1, in that order."""
    rows = [make_row(make_card(name)) for name in ("card-opuesta", "card-recta", "card-igual")]
    vectors = np.array([[-1, 0, 0], [0, 1, 0], [1, 0, 0]], np.float32)
    hits = RowIndex(rows, vectors, flat_reference(3)).search(np.array([1, 0, 0], np.float32), "es", PUBLIC, count=3)
    assert [(hit.card.card_id, hit.cosine) for hit in hits] == [
        ("card-igual", 1.0),
        ("card-recta", 0.0),
        ("card-opuesta", -1.0),
    ]


def test_rows_without_groups_are_reached_by_nobody() -> None:
    """A card whose groups are empty is found, listed and opened by no caller, whatever groups that caller has."""
    rows = [make_row(make_card("nadie", acl=())), make_row(make_card("todos"))]
    index = RowIndex(rows, hashed_vectors(["a", "b"]), flat_reference(8))
    everyone = {PUBLIC_GROUP, "staff", ""}
    assert [hit.card.card_id for hit in index.search(hashed_vectors(["a"])[0], "es", everyone, count=9)] == ["todos"]
    assert [card.card_id for card in index.cards(everyone)] == ["todos"]
    assert index.card("nadie", everyone) is None


def test_a_caller_without_groups_finds_nothing(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Who shares no group with any card gets no passage and no score, and the gate stays shut even wide open."""
    found = find("¿Cómo guardo la insulina?", sample_index, embedder, groups=(), threshold=-1.0)
    assert (found.passages, found.best_score, found.passed) == ((), None, False)


def test_hidden_cards_change_nothing_for_the_public(boxes: Boxes, embedder: Embedder) -> None:
    """With or without a staff card on the subject, the public gets the same cards, scores, spans and gate."""
    without, beside = boxes.fat, boxes.fat_and_private
    assert beside.thresholds == pytest.approx(without.thresholds, abs=1e-6)
    for question in (
        "¿Dónde guardo la insulina?",
        "¿Dónde está la insulina de reserva?",
        "reserve insulin in fridge 2",
    ):
        plain, hidden = find(question, without, embedder, top_k=10), find(question, beside, embedder, top_k=10)
        assert ids(hidden) == ids(plain)
        assert (hidden.passed, hidden.language) == (plain.passed, plain.language)
        assert hidden.best_score == pytest.approx(plain.best_score, abs=1e-5)
        for ours, theirs in zip(hidden.passages, plain.passages, strict=True):
            assert (ours.chunk_index, ours.start, ours.end) == (theirs.chunk_index, theirs.start, theirs.end)
            assert ours.rank_score == pytest.approx(theirs.rank_score, abs=1e-4)
            assert [sentence.span for sentence in ours.sentences] == [sentence.span for sentence in theirs.sentences]
        assert "secreta" in ids(find(question, beside, embedder, groups=STAFF, top_k=10))


def test_the_public_never_retrieves_a_staff_card(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Asked for every card there is, with questions made for staff, the public gets all public cards and no other."""
    public = {card.card_id for card in sample_index.rows.cards(PUBLIC)}
    hidden = {card.card_id for card in sample_index.rows.cards(STAFF)} - public
    assert len(hidden) >= 4
    questions = [case.question for case in read_golden(GOLDEN) if "staff" in case.groups and case.grades]
    assert questions
    for question in questions:
        assert set(ids(find(question, sample_index, embedder, top_k=200, threshold=-1.0))) <= public
    wide = find(questions[0], sample_index, embedder, top_k=200, threshold=-1.0)
    assert len(wide.passages) == len(public)


def test_a_staff_token_finds_the_staff_card(sample_index: OpenIndex, embedder: Embedder) -> None:
    """A caller of the group staff finds what answers the questions made for staff among the first five."""
    cases = [case for case in read_golden(GOLDEN) if "staff" in case.groups and case.grades]
    missed = [
        case.question
        for case in cases
        if not set(case.grades) & set(ids(find(case.question, sample_index, embedder, groups=case.groups)))
    ]
    assert len(missed) <= len(cases) // 10, missed


@pytest.mark.parametrize(
    ("question", "card_id"),
    [
        ("Can I drink coffee when I take iron?", "hierro-cafe"),
        ("What should I do if I vomit after taking a tablet?", "vomito-tras-dosis"),
        ("How do I put drops in my ears?", "gotas-oidos"),
        ("Can I drive while taking my medicine?", "conducir"),
    ],
)
def test_an_english_question_finds_a_spanish_card(
    sample_index: OpenIndex, embedder: Embedder, question: str, card_id: str
) -> None:
    """A subject that only a Spanish card covers is found first by an English question, and passes the gate."""
    found = find(question, sample_index, embedder)
    assert found.language == "en"
    assert found.passed
    assert ids(found)[0] == card_id


def test_passages_are_ordered_and_whole(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Passages come best first, one a card, at most top_k, with a chunk and sentences that lie in the card."""
    for top_k in (1, 3, 20, 60):
        found = find("¿Puedo tomar alcohol con los antibióticos?", sample_index, embedder, top_k=top_k)
        assert len(found.passages) == top_k
        assert len(set(ids(found))) == top_k
        scores = [passage.rank_score for passage in found.passages]
        assert scores == sorted(scores, reverse=True)
        for passage in found.passages:
            assert 0 <= passage.start < passage.end <= len(passage.card.text)
            starts = [sentence.span.start for sentence in passage.sentences]
            assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("question", "passes"),
    [
        ("¿se supone que debo tomarlo con el estómago vacío?", True),
        ("How should I store insulin?", True),
        ("¿quién ganó la liga en 1998?", False),
        ("What is the capital of Australia?", False),
        ("asdf qwer zxcv", False),
    ],
)
def test_the_gate_tells_questions_apart(
    sample_index: OpenIndex, embedder: Embedder, question: str, passes: bool
) -> None:
    """The calibrated gate lets the cards' own subjects through and keeps others out."""
    found = find(question, sample_index, embedder)
    assert found.passed is passes
    assert found.threshold == sample_index.thresholds[found.language]


def test_the_gate_counts_the_threshold_itself_as_passed(sample_index: OpenIndex, embedder: Embedder) -> None:
    """A best score equal to the threshold passes, the next float above it does not, and the passages are the same."""
    question = "¿Cómo guardo la insulina?"
    best = find(question, sample_index, embedder, threshold=0.5).best_score
    assert best is not None
    at, above = (
        find(question, sample_index, embedder, threshold=gate) for gate in (best, float(np.nextafter(best, 2)))
    )
    assert (at.passed, above.passed) == (True, False)
    assert ids(at) == ids(above)


def test_a_missing_index_is_named_with_its_remedy(tmp_path: Path, embedder: Embedder) -> None:
    """Opening a folder without a build says which folder it was and which command makes one."""
    with pytest.raises(IndexMissing, match="make ingest") as caught:
        open_index(tmp_path, embedder.description)
    assert str(tmp_path) in str(caught.value)


def test_an_index_of_another_model_is_refused_by_name(sample_index_dir: Path, embedder: Embedder) -> None:
    """An index opened with another model is refused, and both models are named."""
    other = replace(embedder.description, name="otro-modelo", query_prefix="pregunta: ")
    with pytest.raises(IndexUnusable, match="otro-modelo") as caught:
        open_index(sample_index_dir, other)
    assert embedder.description.name in str(caught.value)
    assert "make ingest-clean" in str(caught.value)


@pytest.mark.parametrize("name", ["../fuera", "no-hay", "", "\0", "." * 300])
def test_current_may_only_name_a_build(tmp_path: Path, embedder: Embedder, name: str) -> None:
    """A CURRENT that names no build of its own folder is refused, wherever it points."""
    index_dir = tmp_path / "index"
    index_dir.mkdir()
    (tmp_path / "fuera").mkdir()
    use_build(index_dir, name)
    with pytest.raises(IndexUnusable, match="CURRENT"):
        open_index(index_dir, embedder.description)


def test_every_file_of_a_build_is_checked(sample_index_dir: Path, tmp_path: Path, embedder: Embedder) -> None:
    """A flipped byte in, or the loss of, any file of the build stops it from opening, and the file is named."""
    index_dir = tmp_path / "index"
    shutil.copytree(sample_index_dir, index_dir, ignore=shutil.ignore_patterns("cache"))
    build = current_build(index_dir)
    description = embedder.description
    files = [path for path in sorted(build.rglob("*")) if path.is_file() and path.name != "manifest.json"]
    assert len(files) >= 5
    for path in files:
        whole = path.read_bytes()
        if whole:
            flipped = bytearray(whole)
            flipped[len(whole) // 2] ^= 1
            path.write_bytes(flipped)
            with pytest.raises(IndexUnusable, match=path.name):
                open_index(index_dir, description)
        path.unlink()
        with pytest.raises(IndexUnusable, match=path.name):
            open_index(index_dir, description)
        path.write_bytes(whole)
    assert open_index(index_dir, description).build_id == build.name


def hand_made(folder: Path) -> tuple[OpenIndex, QueryEmbedder]:
    """Forty cards near the question and a far one that alone has its words, and an embedder that gives the question."""
    cards = [make_card(f"cerca{number:02d}", "Otra cosa.") for number in range(40)]
    cards.append(make_card("lejos", "Zumo de pomelo con estatinas."))
    return index_of(folder, cards, np.append(np.linspace(0.93, 0.9, 40), 0.1))


def index_of(folder: Path, cards: Sequence[Card], cosines: NDArray[np.float64]) -> tuple[OpenIndex, QueryEmbedder]:
    """An index of cards of one chunk each, and an embedder that gives a question with these cosines to them."""
    vectors = np.stack([cosines, np.sqrt(1 - cosines**2), np.zeros_like(cosines)], axis=1).astype(np.float32)
    words, folder_of_sentences = LexicalWriter(), folder / "sentences"
    for card in cards:
        words.add(card, [card.text])
    words.write(folder / "lexical")
    with EvidenceWriter(folder_of_sentences, 3) as sentences:
        for card in cards:
            sentences.add(card.card_id, [], [], np.empty((0, 3), np.float32))
    index = OpenIndex(
        "hand-made",
        RowIndex([make_row(card) for card in cards], vectors, flat_reference(3)),
        open_lexical(folder / "lexical"),
        open_evidence(folder_of_sentences),
        {"es": 0.5, "en": 0.5},
    )
    return index, Fixed(np.array([1, 0, 0], np.float32))


@dataclass(frozen=True, slots=True)
class Fixed:
    """An embedder that knows one question."""

    vector: NDArray[np.float32]

    def embed_query(self, question: str) -> NDArray[np.float32]:
        return self.vector

    def truncates(self, question: str) -> bool:
        return False


@pytest.mark.parametrize("fusion", FUSIONS)
def test_o13_the_gate_reads_cosines_whatever_fuses(tmp_path: Path, fusion: str) -> None:
    """O13: however small the fused scores are, a cosine of 0.93 passes a gate of 0.8 and not one of 0.95."""
    index, embedder = hand_made(tmp_path)
    question = "¿pomelo con estatinas?"
    for gate, passes in ((0.8, True), (0.95, False)):
        found = retrieve(question, PUBLIC, index=index, embedder=embedder, top_k=3, threshold=gate, fusion=fusion)
        assert found.passed is passes
        assert found.best_score == pytest.approx(0.93)


@pytest.mark.parametrize("fusion", ["coverage", "ranks"])
def test_o13_a_card_that_only_its_words_find_has_its_own_cosine(tmp_path: Path, fusion: str) -> None:
    """O13: a card far down by vector that alone has the question's words comes up, with its own cosine and scores."""
    index, embedder = hand_made(tmp_path)
    found = retrieve(
        "¿pomelo con estatinas?", PUBLIC, index=index, embedder=embedder, top_k=50, threshold=0.8, fusion=fusion
    )
    far = next(passage for passage in found.passages if passage.card.card_id == "lejos")
    assert far.score == pytest.approx(0.1, abs=1e-6)
    assert far.lexical_score > 0.3
    assert all(passage.lexical_score == 0 for passage in found.passages if passage is not far)


def test_dense_fusion_lets_words_have_no_say(tmp_path: Path) -> None:
    """With the setting dense the order is that of the dense scores, and with ranks words move cards."""
    index, embedder = hand_made(tmp_path)
    orders = {
        fusion: ids(
            retrieve(
                "¿pomelo con estatinas?", PUBLIC, index=index, embedder=embedder, top_k=41, threshold=0.8, fusion=fusion
            )
        )
        for fusion in FUSIONS
    }
    assert orders["dense"][-1] == "lejos"
    assert orders["ranks"].index("lejos") < 40


def test_the_gate_does_not_depend_on_how_much_is_asked_for(sample_index: OpenIndex, embedder: Embedder) -> None:
    """One card asked for, or twenty: the best score is the same."""
    for question in ("¿Puedo tomar alcohol con los antibióticos?", "¿Quién ganó la liga en 1998?"):
        scores = {find(question, sample_index, embedder, top_k=top_k).best_score for top_k in (1, 5, 20)}
        assert len(scores) == 1


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Backup codes", "en"),
        ("Accessibility", "en"),
        ("Privacy & security", "en"),
        ("Códigos de seguridad", "es"),
        ("Accesibilidad", "es"),
        ("Which shaman's proclamation aided Temüjin's rise?", "en"),
        ("e devuelto la pastilla a los veinte minutos, me tomo otra?", "es"),
    ],
)
def test_titles_have_a_language_too(sample_index: OpenIndex, embedder: Embedder, question: str, language: str) -> None:
    """A question without everyday words is known by its vector, and one with many by its words."""
    assert find(question, sample_index, embedder).language == language


def test_a_card_is_found_by_the_questions_that_it_names(tmp_path: Path, embedder: Embedder) -> None:
    """A question in a card's front matter brings it up in either language, and is never quoted."""
    body = "El contenedor gris del vestíbulo se vacía los lunes."
    other = "La máquina del pasillo da cambio de billetes."
    asked = ["¿Dónde tiro los envases que ya no sirven?", "Where do I throw away empty boxes?"]
    (tmp_path / "cards").mkdir()
    for name, questions in (("con", asked), ("sin", [])):
        lines = "".join(f"\n  - {question}" for question in questions)
        key = f"questions:{lines}\n" if questions else ""
        (tmp_path / "cards" / f"{name}.md").write_text(f"---\ntitle: Aviso\n{key}---\n\n{body}\n", "utf-8")
    (tmp_path / "cards" / "otra.md").write_text(f"---\ntitle: Aviso\n---\n\n{other}\n", "utf-8")
    build_quietly(tmp_path / "cards", tmp_path / "index")
    index = open_here(tmp_path / "index")
    for question in asked:
        found = find(question, index, embedder, threshold=0.0)
        assert ids(found)[0] == "con"
        first, second = (passage for passage in found.passages if passage.card.text == body)
        assert first.dense_score > second.dense_score
        for passage in found.passages:
            assert [passage.card.text[s.span.start : s.span.end] for s in passage.sentences] == [passage.card.text]
    assert index.rows.card("con", PUBLIC) == replace(make_card("con", body), title="Aviso", questions=tuple(asked))


# with a reranker


def number_in(text: str) -> float:
    """Of a card made by hand: of two cards the one further away is worth more."""
    return float("".join(filter(str.isdigit, text)) or -1)


def test_a_reranker_orders_the_best_cards_anew(tmp_path: Path) -> None:
    """The ten best as fused are compared with the question by title and best chunk, and its score is the order."""
    index, embedder = hand_made(tmp_path)
    reranker = RememberingReranker(number_in)
    found = find("¿qué cosa?", index, embedder, top_k=3, reranker=reranker)
    assert reranker.asked == [("¿qué cosa?", [f"Cerca{number:02d}\nOtra cosa." for number in range(RERANK_CARDS)])]
    assert ids(found) == ["cerca09", "cerca08", "cerca07"]
    assert [passage.rerank_score for passage in found.passages] == [9.0, 8.0, 7.0]


def test_all_cards_asked_for_are_reranked(tmp_path: Path) -> None:
    """Who asks for more than ten cards gets as many, each with the reranker's score."""
    index, embedder = hand_made(tmp_path)
    found = find("¿qué cosa?", index, embedder, top_k=20, reranker=RememberingReranker(number_in))
    assert ids(found) == [f"cerca{number:02d}" for number in reversed(range(20))]


def test_ties_of_a_reranker_stay_as_fused(tmp_path: Path) -> None:
    """Cards with the same score keep their order among each other."""
    index, embedder = hand_made(tmp_path)
    found = find("¿qué cosa?", index, embedder, top_k=5, reranker=RememberingReranker(lambda text: "Cerca04" in text))
    assert ids(found) == ["cerca04", "cerca00", "cerca01", "cerca02", "cerca03"]


def test_a_real_cross_encoder_orders_cards(tmp_path: Path) -> None:
    """Cards come by how many of the question's words the model counts in title and text, ties as fused."""
    texts = {
        "uno": "Agua.",
        "dos": "Con leche.",
        "tres": "Pomelo con estatinas.",
        "pomelo": "Con agua.",
        "cinco": "Leche.",
    }
    cards = [make_card(name, text) for name, text in texts.items()]
    index, embedder = index_of(tmp_path, cards, np.linspace(0.9, 0.8, 5))
    reranker = load_reranker(write_cross_encoder(tmp_path / "cruzado"))
    found = find("¿Pomelo con estatinas?", index, embedder, reranker=reranker)
    assert [(passage.card.card_id, passage.rerank_score) for passage in found.passages] == [
        ("tres", 3),
        ("pomelo", 2),
        ("dos", 1),
        ("uno", 0),
        ("cinco", 0),
    ]


def test_the_gate_takes_no_notice_of_a_reranker(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Best score, gate and verdict are the same with a reranker, and without one no card has a score of it."""
    for question in ("¿Cómo guardo la insulina?", "¿Quién ganó la liga en 1998?"):
        plain = find(question, sample_index, embedder)
        reranked = find(question, sample_index, embedder, reranker=RememberingReranker(len))
        assert ids(reranked) != ids(plain)
        for name in ("best_score", "threshold", "passed", "language"):
            assert getattr(reranked, name) == getattr(plain, name)
        assert {passage.rerank_score for passage in plain.passages} == {None}


def test_hidden_cards_never_reach_a_reranker(boxes: Boxes, sample_index: OpenIndex, embedder: Embedder) -> None:
    """A reranker sees text of cards that the caller may see and of no other, whatever is asked."""
    reranker = RememberingReranker(len)
    staff_cases = [case for case in read_golden(GOLDEN) if "staff" in case.groups and case.grades]
    for case in staff_cases:
        find(case.question, sample_index, embedder, top_k=20, reranker=reranker)
    titles = {card.title for card in sample_index.rows.cards(PUBLIC)}
    assert reranker.texts
    assert {text.partition("\n")[0] for text in reranker.texts} <= titles
    for groups, sees in ((PUBLIC, False), (STAFF, True)):
        reranker = RememberingReranker(len)
        find("¿Dónde está la insulina de reserva?", boxes.fat_and_private, embedder, groups=groups, reranker=reranker)
        assert any("nevera 2" in text for text in reranker.texts) is sees


def test_without_cards_no_reranker_is_asked(sample_index: OpenIndex, embedder: Embedder) -> None:
    """Who sees no card causes no work."""
    reranker = RememberingReranker(len)
    find("¿Cómo guardo la insulina?", sample_index, embedder, groups=(), reranker=reranker)
    assert reranker.asked == []


def test_a_reranker_that_fails_leaves_the_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The fused order stays, without scores, and one line of the log says so and does not hold the question."""
    index, embedder = hand_made(tmp_path)
    found = find("¿qué cosa?", index, embedder, top_k=3, reranker=BrokenReranker())
    assert ids(found) == ["cerca00", "cerca01", "cerca02"]
    assert {passage.rerank_score for passage in found.passages} == {None}
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "the score nan" in record.getMessage()
    assert "cosa" not in record.getMessage()


def test_the_hybrid_never_regrets(sample_index: OpenIndex, embedder: Embedder) -> None:
    """On the development golden cases both rankings fused find first as often as the better of the two, or nearly."""
    cases = [case for case in read_golden(GOLDEN) if case.grades and not case.held_out]
    known = RememberingEmbedder(embedder)
    firsts = dict.fromkeys(("words", *FUSIONS), 0)
    for case in cases:
        for fusion in FUSIONS:
            found = retrieve(
                case.question, case.groups, index=sample_index, embedder=known, top_k=1, threshold=-1.0, fusion=fusion
            )
            firsts[fusion] += found.passages[0].card.card_id in case.grades
        covered = sample_index.lexical.search(case.question, found.language, case.groups)
        firsts["words"] += any(card_id in case.grades for card_id, _ in covered.best(1))
    assert firsts["coverage"] >= max(firsts["dense"], firsts["words"]) - 0.01 * len(cases), firsts
