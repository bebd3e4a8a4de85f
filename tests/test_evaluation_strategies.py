"""Ways to rank, and doing without ranking, worked by hand on an index of five cards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rag.cases import Case
from rag.evaluation.strategies import COMPARED, STRATEGIES, best_cards, compare_strategies, rank_by_strategies
from rag.evaluation.without_retrieval import cut_passage, do_without
from rag.measuring import Asked, ask
from rag.opening import OpenIndex
from tests.tiny import PUBLIC, QUESTION, STAFF, FixedQuestion, embed_passages, tiny_index

ASKER = FixedQuestion()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> OpenIndex:
    """The five cards."""
    return tiny_index(tmp_path_factory.mktemp("tiny"))


def asked_about(index: OpenIndex, *cases: tuple[Sequence[str], tuple[str, ...]]) -> list[Asked]:
    """The question, asked for these right cards by these groups."""
    made = [Case(QUESTION, dict.fromkeys(cards, 1.0), groups, language="es") for cards, groups in cases]
    return ask(made, index=index, embedder=ASKER)


RANKINGS = {
    "whole card": ["pear", "limon", "manzana", "zumo"],
    # 0.7, and what stands on its own: 0.6 and 0.4
    "chunks": ["limon", "pear", "manzana", "zumo"],
    "contextual chunks": ["manzana", "limon", "pear", "zumo"],
    # six times the mean of chunk, sentence and named question: of 0.95 and 0.8; of 0.9, 0.3 and 1; of 0.2 and 0.6
    "dense": ["manzana", "limon", "pear", "zumo"],
    "words": ["manzana"],
    "reciprocal ranks": ["manzana", "limon", "pear", "zumo"],
    "service": ["manzana", "limon", "pear", "zumo"],
}


def test_every_strategy_ranks_by_what_it_says(index: OpenIndex) -> None:
    """Each strategy has the order of its own cosines or words, a card by its best chunk, hidden cards left out."""
    asked = asked_about(index, (["limon"], PUBLIC))
    found = rank_by_strategies(asked, index=index, questions=ASKER, passages=embed_passages)
    assert {name: [list(ranking) for ranking in rankings] for name, rankings in found.items()} == {
        name: [ranking] for name, ranking in RANKINGS.items()
    }
    assert list(found) == list(STRATEGIES)


def test_each_case_is_ranked_among_what_its_caller_sees(index: OpenIndex) -> None:
    """Who may see the hidden card has it in the rankings, in the same run as one who may not."""
    asked = asked_about(index, (["limon"], PUBLIC), (["secreta"], STAFF))
    found = rank_by_strategies(asked, index=index, questions=ASKER, passages=embed_passages)
    assert list(found["contextual chunks"][1]) == ["secreta", "manzana", "limon", "pear", "zumo"]
    assert list(found["whole card"][1]) == ["pear", "secreta", "limon", "manzana", "zumo"]
    assert all("secreta" not in rankings[0] for rankings in found.values())


def test_figures_and_differences_by_hand(index: OpenIndex) -> None:
    """A miss counts as zero, and a difference is what a strategy has more than the service."""
    # the unanswerable one takes no part
    asked = asked_about(index, (["limon"], PUBLIC), (["pear", "manzana"], PUBLIC), ([], PUBLIC))
    found = compare_strategies(asked, index=index, questions=ASKER, passages=embed_passages)
    words, chunks, service = (found[name].figures for name in ("words", "chunks", "service"))
    assert (words.cases, words.success[1], words.success[10], words.recall[10]) == (2, 50.0, 50.0, 25.0)
    assert (chunks.success[1], chunks.success[2], chunks.mrr_10) == (50.0, 100.0, 75.0)
    assert (service.success[1], service.recall[1], service.recall[2], service.mrr_10) == (50.0, 25.0, 75.0, 75.0)
    # gains at ranks 1 and 3 of an ideal at 1 and 2; and a single one at rank 2
    both = (1 + 1 / 2) / (1 + 1 / np.log2(3))
    assert service.ndcg_10 == pytest.approx(100 * (both + 1 / np.log2(3)) / 2, abs=0.01)
    assert found["service"].differences == {}
    differences = found["words"].differences
    assert list(differences) == list(COMPARED)
    assert (differences["success@10"].mean, differences["success@1"].mean) == (-0.5, 0.0)
    assert differences["mrr@10"].mean == -0.25


def test_without_cases_all_is_zero(index: OpenIndex) -> None:
    """No answerable case gives figures of 0 and differences of 0, and nothing to do without retrieval."""
    found = compare_strategies([], index=index, questions=ASKER, passages=embed_passages)
    assert all(strategy.figures.success[1] == 0.0 for strategy in found.values())
    assert found["words"].differences["mrr@10"].mean == 0.0
    assert do_without([], index=index, questions=ASKER, count_tokens=len) is None


def test_best_cards_go_by_their_best_vector() -> None:
    """Each card stands once, ties stay as they stand, and there are no more than asked for."""
    cosines = np.array([0.5, 0.9, 0.9, 0.1, 0.900001], np.float32)
    assert best_cards(["a", "a", "b", "c", "c"], cosines, count=9) == ["a", "b", "c"]
    assert best_cards(["a", "a", "b", "c", "c"], cosines, count=1) == ["a"]
    assert best_cards([], np.empty(0, np.float32), count=3) == []


def words_of(text: str) -> int:
    return len(text.split())


# titles and texts have 9, 2, 4 and 4 words, in order of id
@pytest.mark.parametrize(
    ("limit", "fits", "shares"),
    [(8, (0, 0), (0.0, 0.0)), (9, (1, 9), (50.0, 50.0)), (14, (2, 11), (50.0, 100.0)), (15, (3, 15), (50.0, 100.0))],
)
def test_cards_are_taken_in_order_while_they_fit(
    index: OpenIndex, limit: int, fits: tuple[int, int], shares: tuple[float, float]
) -> None:
    """The first cards that fit under the limit are the prompt; the card of its nearest sentence is the answer."""
    asked = asked_about(index, (["limon"], PUBLIC), (["manzana"], PUBLIC))
    found = do_without(asked, index=index, questions=ASKER, count_tokens=words_of, limit_tokens=limit)
    assert found is not None
    [prompt] = found.prompts
    assert (prompt.cards, prompt.cases, prompt.fitting, prompt.tokens) == (4, 2, *fits)
    assert (found.without.success_1, found.within_reach) == shares
    assert found.without.cards == fits[0]


def test_a_named_question_is_no_sentence(index: OpenIndex) -> None:
    """What a card names as a question is nearest of all, and still is not the answer."""
    asked = asked_about(index, (["manzana"], PUBLIC))
    found = do_without(asked, index=index, questions=ASKER, count_tokens=words_of)
    assert found is not None
    assert found.without.success_1 == 100.0


def test_the_service_stands_beside_it(index: OpenIndex) -> None:
    """The service's prompt is its passages; each set of groups has its own whole box, hidden cards left out."""
    asked = asked_about(index, (["limon"], PUBLIC), (["secreta"], STAFF))
    found = do_without(asked, index=index, questions=ASKER, count_tokens=words_of)
    assert found is not None
    assert [(prompt.groups, prompt.cards, prompt.tokens) for prompt in found.prompts] == [
        (PUBLIC, 4, 19),
        (STAFF, 5, 24),
    ]
    assert (found.service.cards, found.service.prompt_tokens) == (4.5, 21.5)
    assert found.service.success_1 == 50.0
    assert found.service.milliseconds > 0
    assert (found.without.success_1, found.difference.mean) == (50.0, 0.0)


@pytest.mark.parametrize(
    ("start", "end", "cut"), [(4, 6, "3456"), (0, 2, "0123"), (8, 10, "6789"), (0, 10, "3456")], ids=str
)
def test_a_passage_is_cut_around_its_chunk(start: int, end: int, cut: str) -> None:
    """The chunk stands in the middle as far as the text allows, and a short text is whole."""
    assert cut_passage("0123456789", start, end, size=4) == cut
    assert cut_passage("abc", 0, 3, size=4) == "abc"
