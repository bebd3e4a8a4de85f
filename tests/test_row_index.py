"""Exact search among the rows that a caller may see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.records import Card, Hit, Row
from rag.reference import LanguageCentring, Reference
from rag.row_index import RowIndex
from tests.conftest import CASES_DIR
from tests.fakes import hashed_vectors, make_card, make_row

Vectors = NDArray[np.float32]

ACLS: list[tuple[str, ...]] = [("public",), ("staff",), ("nurses", "staff"), ("nurses",), ("public", "staff"), ()]
CALLERS: list[set[str]] = [{"public"}, {"public", "staff"}, {"public", "nurses"}, {"public", "nurses", "staff"}]


def a_reference(dimension: int) -> Reference:
    es, en, es_passage, en_passage = hashed_vectors(["es", "en", "es passage", "en passage"], dimension) * 0.8
    return Reference({"es": es, "en": en}, {"es": es_passage, "en": en_passage})


def flat_reference(dimension: int) -> Reference:
    zero = np.zeros(dimension, np.float32)
    return Reference({"es": zero, "en": zero}, {"es": zero, "en": zero})


def a_box(seed: int, dimension: int = 16) -> tuple[list[Row], Vectors]:
    """Cards of random groups, languages and numbers of chunks."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for number in range(30):
        acl = ACLS[random.integers(len(ACLS))]
        card = make_card(f"c{number:02d}", "x" * 100, acl=acl, language=str(random.choice(["es", "en"])))
        rows += [make_row(card, chunk, start=chunk, end=chunk + 5) for chunk in range(random.integers(1, 9))]
    return rows, hashed_vectors([f"{seed} {row.row_id}" for row in rows], dimension)


def open_rows(rows: Sequence[Row], vectors: Vectors, reference: Reference | None = None) -> RowIndex:
    return RowIndex(rows, vectors, reference or a_reference(vectors.shape[1]))


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.card.card_id for hit in hits]


@pytest.mark.parametrize("language", ["es", "en"])
@pytest.mark.parametrize("groups", CALLERS, ids=lambda groups: "+".join(sorted(groups)))
@pytest.mark.parametrize("seed", range(6))
def test_search_is_exact(seed: int, groups: set[str], language: str) -> None:
    """The hits are the best chunk of each visible card, best first, as scoring every row one by one gives them."""
    rows, vectors = a_box(seed)
    index = open_rows(rows, vectors)
    question = hashed_vectors([f"question {seed}"], 16)[0]
    names, public = [row.card.language for row in rows], ["public" in row.card.acl for row in rows]
    centring = LanguageCentring(vectors, names, public, a_reference(16))
    best: dict[str, tuple[float, Row, float]] = {}
    for row, vector in zip(rows, vectors, strict=True):
        if groups & set(row.card.acl):
            number = np.array([centring.number(row.card.language)], np.intp)
            [cosine], [score] = centring.compare(vector[None], number, question, language)
            assert cosine == pytest.approx(float(vector @ question), abs=1e-5)
            if row.card.card_id not in best or score > best[row.card.card_id][0]:
                best[row.card.card_id] = (float(score), row, float(cosine))
    wanted = sorted(best.values(), key=lambda entry: -entry[0])
    for count in (1, 3, 10, 50):
        hits = index.search(question, language, groups, count=count)
        assert [(hit.card, hit.chunk_index, hit.start, hit.end) for hit in hits] == [
            (row.card, row.chunk_index, row.start, row.end) for _, row, _ in wanted[:count]
        ]
        assert [hit.score for hit in hits] == pytest.approx([score for score, *_ in wanted[:count]], abs=1e-5)
        assert [hit.cosine for hit in hits] == pytest.approx([cosine for *_, cosine in wanted[:count]], abs=1e-5)


@pytest.mark.parametrize("dimension", [16, 384])
@pytest.mark.parametrize("groups", CALLERS, ids=lambda groups: "+".join(sorted(groups)))
@pytest.mark.parametrize("seed", range(4))
def test_hidden_rows_change_nothing(seed: int, groups: set[str], dimension: int) -> None:
    """A caller finds the same hits with the same scores, to the last bit, whether hidden cards are there or not."""
    rows, vectors = a_box(seed, dimension)
    seen = [number for number, row in enumerate(rows) if groups & set(row.card.acl)]
    whole, only_visible = open_rows(rows, vectors), open_rows([rows[number] for number in seen], vectors[seen])
    for text in ("una", "dos", "tres"):
        question = hashed_vectors([text], dimension)[0]
        for language in ("es", "en"):
            hits = whole.search(question, language, groups, count=40)
            assert hits == only_visible.search(question, language, groups, count=40)
            assert all(groups & set(hit.card.acl) for hit in hits)
    assert whole.cards(groups) == only_visible.cards(groups)


@pytest.mark.parametrize("groups", CALLERS, ids=lambda groups: "+".join(sorted(groups)))
def test_visible_rows_are_those_that_can_be_found(groups: set[str]) -> None:
    """A caller's rows come in order of id, each with its own vector, rows without text and hidden ones left out."""
    rows, vectors = a_box(3)
    rows[0] = make_row(rows[0].card, rows[0].chunk_index, end=0)
    found, held = open_rows(rows, vectors).visible(groups)
    seen = [number for number, row in enumerate(rows) if groups & set(row.card.acl) and number]
    assert [row.row_id for row in found] == sorted(rows[number].row_id for number in seen)
    own = {rows[number].row_id: vectors[number] for number in seen}
    assert np.array_equal(held, np.array([own[row.row_id] for row in found]))
    assert open_rows(rows, vectors).visible(())[1].shape == (0, 16)


def test_forbidden_looks_like_absent() -> None:
    """A card that the caller may not see is not listed, not opened and not found; one they may see is."""
    rows, vectors = a_box(1)
    index = open_rows(rows, vectors)
    for groups in CALLERS:
        visible = {row.card.card_id for row in rows if groups & set(row.card.acl)}
        assert [card.card_id for card in index.cards(groups)] == sorted(visible)
        for row in rows:
            expected = row.card if row.card.card_id in visible else None
            assert index.card(row.card.card_id, groups) == expected
        assert set(ids(index.search(vectors[0], "es", groups, count=99))) == visible
    assert index.card("no-hay", {"public"}) is None


@pytest.mark.parametrize("groups", [set[str](), {""}, {"public"}, {"staff", "public", "nobody"}], ids=len)
def test_a_card_without_groups_is_nobodys(groups: set[str]) -> None:
    """A missing acl means nobody, not everybody."""
    index = open_rows([make_row(make_card(acl=()))], hashed_vectors(["x"]))
    assert index.cards(groups) == []
    assert index.card("una", groups) is None
    assert index.search(hashed_vectors(["x"])[0], "es", groups, count=5) == []


def test_a_caller_without_groups_sees_nothing() -> None:
    """Who has no group at all, not even public, finds nothing."""
    rows, vectors = a_box(2)
    index = open_rows(rows, vectors)
    assert index.cards(set()) == []
    assert index.search(vectors[0], "es", set(), count=5) == []


def test_an_index_without_rows_finds_nothing() -> None:
    """An empty index can be opened and asked."""
    index = open_rows([], np.empty((0, 8), np.float32))
    assert index.search(hashed_vectors(["x"])[0], "es", {"public"}, count=5) == []
    assert index.cards({"public"}) == []


def test_fewer_cards_than_asked_for() -> None:
    """Asking for more cards than there are gives those there are."""
    cards = [make_card("a"), make_card("b")]
    index = open_rows([make_row(card) for card in cards], hashed_vectors(["a", "b"]))
    assert sorted(ids(index.search(hashed_vectors(["a"])[0], "es", {"public"}, count=10))) == ["a", "b"]


def test_a_card_without_text_is_listed_and_never_found() -> None:
    """A row with an empty span is no hit, but its card is there."""
    empty, full = make_card("vacia", ""), make_card("llena", "Texto.")
    vectors = hashed_vectors(["x", "y"])
    index = open_rows([make_row(empty), make_row(full)], vectors)
    assert ids(index.search(vectors[0], "es", {"public"}, count=5)) == ["llena"]
    assert [card.card_id for card in index.cards({"public"})] == ["llena", "vacia"]
    assert index.card("vacia", {"public"}) == empty


def directions() -> dict[str, Vectors]:
    text = (CASES_DIR / "O09_score_direction" / "config.txt").read_text("utf-8")
    found = re.findall(r"([a-z-]+) \[([-\d,]+)\]", text)
    return {name: np.array([float(part) for part in parts.split(",")], np.float32) for name, parts in found}


def test_case_o09_higher_is_better() -> None:
    """Equal, orthogonal and opposite vectors come in that order, with cosines 1, 0 and -1; only one passes 0.8."""
    vectors = directions()
    question = vectors.pop("query")
    names = sorted(vectors)
    rows = [make_row(make_card(name)) for name in names]
    index = open_rows(rows, np.stack([vectors[name] for name in names]), flat_reference(3))
    hits = index.search(question, "es", {"public"}, count=3)
    assert ids(hits) == ["card-igual", "card-recta", "card-opuesta"]
    assert [hit.cosine for hit in hits] == pytest.approx([1.0, 0.0, -1.0], abs=1e-6)
    assert [hit.card.card_id for hit in hits if hit.cosine >= 0.8] == ["card-igual"]
    assert all(before.score > after.score for before, after in pairwise(hits))


@pytest.mark.parametrize("chunks", [2, 13, 60, 500])
def test_case_o14_a_long_card_is_one_hit(chunks: int) -> None:
    """A card whose every chunk beats all others takes one place, and the next cards the others."""
    fat = make_card("card-gorda", "x" * 600)
    thin = [make_card(f"card-fina{number}") for number in range(4)]
    rows = [make_row(fat, number, start=number, end=number + 9) for number in range(chunks)]
    question = np.array([1, 0, 0, 0], np.float32)
    near = [[1.0, 0.001 * number, 0, 0] for number in range(chunks)]
    far = [[0.5, 0.0, 1.0, 0.1 * number] for number in range(4)]
    raw = np.array(near + far, np.float32)
    vectors = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    index = open_rows([*rows, *map(make_row, thin)], vectors, flat_reference(4))
    hits = index.search(question, "es", {"public"}, count=3)
    assert ids(hits) == ["card-gorda", "card-fina0", "card-fina1"]


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_ties_go_by_row_id(count: int) -> None:
    """Rows of one score come in order of their ids, for every count."""
    cards = [make_card(name) for name in "edcbafghi"]
    rows = sorted((make_row(card) for card in cards), key=lambda row: row.row_id)
    index = open_rows(rows, np.repeat(hashed_vectors(["x"]), 9, axis=0))
    assert ids(index.search(hashed_vectors(["x"])[0], "es", {"public"}, count=count)) == list("abcdefghi")[:count]


def test_ties_go_by_row_id_whatever_the_groups() -> None:
    """Rows of one score come in order of their ids even where their access rules differ."""
    acls = {"a": ("staff",), "b": ("public",), "c": ("nurses", "public")}
    rows = [make_row(make_card(name, acl=acl)) for name, acl in acls.items()]
    index = open_rows(rows, np.repeat(hashed_vectors(["x"]), 3, axis=0))
    assert ids(index.search(hashed_vectors(["x"])[0], "es", {"public", "staff"}, count=3)) == list("abc")


def test_ties_within_a_card_go_to_its_first_chunk() -> None:
    """Of equal chunks of a card the first one speaks for it."""
    card: Card = make_card(text="x" * 90)
    rows = [make_row(card, number, start=number * 10, end=number * 10 + 10) for number in range(9)]
    index = open_rows(rows, np.repeat(hashed_vectors(["x"]), 9, axis=0))
    [hit] = index.search(hashed_vectors(["x"])[0], "es", {"public"}, count=3)
    assert (hit.chunk_index, hit.start, hit.end) == (0, 0, 10)


@pytest.mark.parametrize("groups", CALLERS, ids=lambda groups: "+".join(sorted(groups)))
def test_named_cards_come_behind_the_best(groups: set[str]) -> None:
    """Cards named beside a search have the scores that a search gives them, once; hidden and unknown ones have none."""
    rows, vectors = a_box(3)
    index = open_rows(rows, vectors)
    question = hashed_vectors(["pregunta"], 16)[0]
    every = index.search(question, "es", groups, count=99)
    named = [f"c{number:02d}" for number in range(29, -1, -1)]
    hits = index.search(question, "es", groups, count=3, also=[*named, "no-hay", *named])
    assert hits[:3] == every[:3]
    behind = [card_id for card_id in named if card_id in ids(every)[3:]]
    assert ids(hits[3:]) == behind
    assert {hit.card.card_id: hit for hit in hits} == {hit.card.card_id: hit for hit in every}


def test_a_narrow_access_rule_is_searched_exactly() -> None:
    """Where a caller may see 100 of 20,000 rows, the hits are those of scoring these 100 one by one."""
    dimension, random = 32, np.random.default_rng(5)
    cards = [
        make_card(f"c{number:05d}", "x" * 9, acl=("few",) if number % 200 == 7 else ("many",))
        for number in range(5_000)
    ]
    rows = [make_row(card, chunk, start=chunk, end=chunk + 1) for card in cards for chunk in range(4)]
    vectors = random.normal(size=(len(rows), dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = open_rows(rows, vectors)
    few = [number for number, row in enumerate(rows) if row.card.acl == ("few",)]
    assert len(few) == len(rows) // 200
    centring = LanguageCentring(vectors, ["es"] * len(rows), [False] * len(rows), a_reference(dimension))
    languages = np.full(len(few), centring.number("es"))
    for question in hashed_vectors(["una", "dos", "tres"], dimension):
        cosines, scores = centring.compare(vectors[few], languages, question, "es")
        best: dict[str, tuple[float, float]] = {}
        for place in np.argsort(-scores, kind="stable"):
            best.setdefault(rows[few[place]].card.card_id, (float(cosines[place]), float(scores[place])))
        hits = index.search(question, "es", {"few"}, count=10)
        assert ids(hits) == list(best)[:10]
        for hit in hits:
            assert (hit.cosine, hit.score) == pytest.approx(best[hit.card.card_id], abs=1e-5)
