"""BM25 over whole cards: words, weights, access rules, and equality with a respected implementation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest

from rag.cards import read_cards
from rag.lexical import K1, B, LexicalIndex, LexicalWriter, hash_of, inverse_frequency, open_lexical, words
from rag.records import Card
from tests.conftest import CASES_DIR, ROOT
from tests.fakes import make_card

PUBLIC = frozenset({"public"})


def written(cards: Sequence[Card], folder: Path) -> LexicalIndex:
    """The cards, each with its text as its document."""
    writer = LexicalWriter()
    for card in cards:
        writer.add(card, [card.text])
    writer.write(folder)
    return open_lexical(folder)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("sesión", "es", ["sesion"]),
        ("SESIÓN sesion Sesio\u0301n", "es", ["sesion"] * 3),
        ("Envase F83", "es", ["envas", "f83"]),
        ("10 µg", "es", ["10", "μg"]),
        ("1,5 ml y 1.5 ml", "es", ["1.5", "ml", "y", "1.5", "ml"]),
        ("500mg/5ml", "es", ["500mg", "5ml"]),
        ("no la de que el", "es", ["no", "la", "de", "que", "el"]),
        ("medi\u00adcina", "es", ["medicin"]),
        ("the tablets aren't", "en", ["the", "tablet", "aren", "t"]),
        ("tablets", "es", ["tablets"]),
        ("¿? 🤔 — ·", "es", []),
        ("", "en", []),
    ],
)
def test_words(text: str, language: str, expected: list[str]) -> None:
    """Words lose accents, capitals and the endings of their language; numbers and units stay whole; none is dropped."""
    assert words(text, language) == expected


@pytest.mark.parametrize(
    ("typed", "written_so"),
    [("medicacion", "medicación"), ("niños", "ninos"), ("dias", "días"), ("acompañamiento", "acompanamiento")],
)
def test_accents_left_out_change_nothing(typed: str, written_so: str) -> None:
    """A word without its accents is the same word."""
    assert words(typed, "es") == words(written_so, "es")


def test_coverage_by_hand(tmp_path: Path) -> None:
    """Of four cards one has both words: it covers what their idf and its length make of them."""
    texts = {"a": "sol playa", "b": "luna", "c": "luna mar", "d": "nube"}
    index = written([make_card(name, text=text) for name, text in texts.items()], tmp_path / "lexical")
    covered = index.search("playa sol nunca", "es", PUBLIC)
    average, idf_one, idf_none = 6 / 4, math.log(3.5 / 1.5), math.log(4.5 / 0.5)
    weight = 1 / (1 + K1 * (1 - B + B * 2 / average))
    assert covered.of("a") == pytest.approx(2 * idf_one * weight / (2 * idf_one + idf_none), abs=1e-5)
    assert [covered.of(name) for name in "bcd"] == [0.0, 0.0, 0.0]
    # half the cards have it, so it tells nothing
    assert index.search("luna", "es", PUBLIC).best(9) == []


def test_scores_are_those_of_bm25s(tmp_path: Path) -> None:
    """Over the Spanish example cards every score is the one that bm25s gives, for each card's words."""
    cards = [card for card in read_cards(ROOT / "cards").cards if card.language == "es" and "public" in card.acl]
    index = written(cards, tmp_path / "lexical")
    other = bm25s.BM25(method="robertson", k1=K1, b=B)
    other.index([words(card.text, "es") for card in cards], show_progress=False)
    for question in ("¿Dónde guardo la insulina abierta?", "me he olvidado la pastilla de ayer", "jarabe 5 ml"):
        asked = sorted(set(words(question, "es")))
        having = np.array([sum(word in words(card.text, "es") for card in cards) for word in asked])
        idf = inverse_frequency(having, len(cards))
        # bm25s lets words that most cards have count against a card; here they count nothing
        told = [word for word, worth in zip(asked, idf, strict=True) if worth > 0 and word in other.vocab_dict]
        wanted = other.get_scores(told) / idf.sum()
        covered = index.search(question, "es", PUBLIC)
        assert [covered.of(card.card_id) for card in cards] == pytest.approx(wanted.tolist(), abs=2e-5)
        best = [card_id for card_id, _ in covered.best(3)]
        assert best[0] == cards[int(np.argmax(wanted))].card_id


@pytest.mark.parametrize(
    "question", (CASES_DIR / "O12_zero_score_padding" / "question.txt").read_text("utf-8").splitlines()
)
def test_o12_nothing_in_common_is_no_list(question: str, tmp_path: Path) -> None:
    """O12: a question of unknown words, of signs, or of words that say nothing finds no card, and no padding."""
    index = written(read_cards(CASES_DIR / "O12_zero_score_padding" / "cards").cards, tmp_path / "lexical")
    covered = index.search(question, "es", PUBLIC)
    assert covered.best(10) == []
    assert covered.of("card-otra") == covered.of("no-hay") == 0.0


def test_only_cards_in_the_language_of_the_question(tmp_path: Path) -> None:
    """A word that both languages have finds only the cards written in the question's."""
    cards = [make_card(name, text=text, language=name[:2]) for name, text in {
        "es-1": "insulina normal", "es-2": "otra cosa", "es-3": "nada más",
        "en-1": "normal insulin", "en-2": "something else", "en-3": "no more",
    }.items()]  # fmt: skip
    index = written(cards, tmp_path / "lexical")
    assert [card_id for card_id, _ in index.search("normal", "es", PUBLIC).best(9)] == ["es-1"]
    assert [card_id for card_id, _ in index.search("normal", "en", PUBLIC).best(9)] == ["en-1"]


def test_hidden_cards_change_no_figure(tmp_path: Path) -> None:
    """What a caller may not see takes no place and shapes no score; one's own cards count beside the public ones."""
    public = [make_card(f"p{number}", text=f"llave número {number}") for number in range(5)]
    staff = [make_card("s", text="llave secreta", acl=("staff",))]
    other = [make_card(f"o{number}", text="llave secreta secreta", acl=("board",)) for number in range(9)]
    whole = written([*public, *staff, *other], tmp_path / "whole")
    alone = written(public, tmp_path / "alone")
    without = written([*public, *staff], tmp_path / "without")
    for question in ("la llave secreta", "llave 3", "número secreta"):
        for groups, reduced in ((PUBLIC, alone), (PUBLIC | {"staff"}, without)):
            assert whole.search(question, "es", groups).best(99) == reduced.search(question, "es", groups).best(99)
    assert whole.search("secreta", "es", PUBLIC).of("s") == 0.0
    assert whole.search("secreta", "es", PUBLIC | {"staff"}).of("s") > 0.5
    assert whole.search("secreta", "es", frozenset()).best(99) == []


def test_best_is_bounded_and_settles_ties_by_id(tmp_path: Path) -> None:
    """Only as many as were asked for come back, the better first, equal ones in order of id."""
    texts = dict.fromkeys(("c", "a", "b"), "faro") | {"z": "faro faro"} | {f"x{n}": "otro" for n in range(9)}
    index = written([make_card(name, text=text) for name, text in texts.items()], tmp_path / "lexical")
    covered = index.search("faro", "es", PUBLIC)
    assert [card_id for card_id, _ in covered.best(9)] == ["z", "a", "b", "c"]
    assert [card_id for card_id, _ in covered.best(2)] == ["z", "a"]
    scores = [score for _, score in covered.best(9)]
    assert scores == sorted(scores, reverse=True)


def test_a_box_without_words_opens_and_finds_nothing(tmp_path: Path) -> None:
    """No cards at all, or cards of signs alone, are an index that finds nothing."""
    assert written([], tmp_path / "none").search("algo", "es", PUBLIC).best(3) == []
    signs = written([make_card("a", text="¿? —"), make_card("b", text="…")], tmp_path / "signs")
    assert signs.search("algo", "es", PUBLIC).best(3) == []


def test_same_cards_give_the_same_files(tmp_path: Path) -> None:
    """Writing the same cards in another order gives the same bytes."""
    cards = [make_card(name, text=f"texto de {name} y más") for name in ("uno", "dos", "tres")]
    written(cards, tmp_path / "one")
    written(cards[::-1], tmp_path / "two")
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_hashes_sort_words_apart() -> None:
    """Ten thousand words have ten thousand hashes, and any text has one."""
    assert len({hash_of(f"palabra{number}") for number in range(10_000)}) == 10_000
    assert hash_of("\udcff") >= 0
