"""The cross-encoder: scores that can be counted by hand, and folders that cannot be used."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from rag.errors import RagError, RerankerMissing, RerankerUnusable
from rag.reranking import GRAPH_FILE, TOKEN_LIMIT, TOKENIZER_FILE, folder_stamp, load_reranker
from tests.cross_encoders import BREAKS, WORDS, write_cross_encoder, write_graph, write_tokenizer

QUESTION = "¿Pomelo con estatinas?"
TEXTS = ["Pomelo con agua", "Nada de eso", "Zumo de pomelo con estatinas", "estatinas"]
COUNTS = [2.0, 0.0, 3.0, 1.0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good folder, to damage."""
    return write_cross_encoder(tmp_path / "cruzado")


def test_scores_are_in_the_order_of_the_texts(folder: Path) -> None:
    """A score is what the model makes of question and text together, as float32, in the order of the texts."""
    scores = load_reranker(folder).score(QUESTION, TEXTS)
    assert scores.dtype == np.float32
    assert scores.tolist() == COUNTS


def test_no_texts_have_no_scores(folder: Path) -> None:
    """Without texts there are no scores, and no error."""
    assert load_reranker(folder).score(QUESTION, []).shape == (0,)


def test_a_score_does_not_depend_on_the_other_texts(folder: Path) -> None:
    """Each text has the same score alone, among others, and twice."""
    reranker = load_reranker(folder)
    assert [float(reranker.score(QUESTION, [text])[0]) for text in TEXTS] == COUNTS
    assert reranker.score(QUESTION, TEXTS[::-1] * 2).tolist() == COUNTS[::-1] * 2


def test_a_model_without_token_types_is_taken(tmp_path: Path) -> None:
    """A graph that does not ask for token types gets none."""
    reranker = load_reranker(write_cross_encoder(tmp_path / "x", token_types=False))
    # of each word once in a pair and once beside it: itself; of each word twice: all four combinations
    assert reranker.score(QUESTION, ["agua", "pomelo", "pomelo con"]).tolist() == [4, 6, 9]


def test_of_two_logits_the_second_counts(tmp_path: Path) -> None:
    """With two classes a score is how far the second logit is ahead of the first."""
    scores = load_reranker(write_cross_encoder(tmp_path / "x", logits=2)).score(QUESTION, TEXTS)
    assert scores.tolist() == [count - 1 for count in COUNTS]


@pytest.mark.parametrize(("truncate_at", "limit"), [(None, TOKEN_LIMIT), (24, 24), (9_000, TOKEN_LIMIT)])
def test_pairs_are_cut_to_what_the_model_takes(tmp_path: Path, truncate_at: int | None, limit: int) -> None:
    """A pair has as many tokens as its tokenizer says, at most 512, and the longer of the two loses its end."""
    reranker = load_reranker(write_cross_encoder(tmp_path / "x", truncate_at=truncate_at))
    room = limit - 4  # [CLS] pomelo [SEP] ... [SEP]
    for filler, count in ((room - 1, 1), (room, 0)):
        assert reranker.score("pomelo", ["agua " * filler + "pomelo"]).tolist() == [count]
        assert reranker.score("agua " * filler + "pomelo", ["pomelo"]).tolist() == [count]


def test_a_text_that_is_hard_to_read_has_a_score(folder: Path) -> None:
    """Empty and odd texts, and an endless word, are scored like any other."""
    reranker = load_reranker(folder)
    assert (
        reranker.score(
            "", ["", "\0", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "x" * 100_000]
        ).tolist()
        == [0] * 4
    )


def test_a_score_that_is_no_number_is_a_fault(folder: Path) -> None:
    """Where the model gives no number there are no scores at all, and the error names the folder and no text."""
    reranker = load_reranker(folder)
    with pytest.raises(RerankerUnusable, match="score inf") as caught:
        reranker.score(QUESTION, ["pomelo", f"pomelo {BREAKS}", "con"])
    assert str(folder) in str(caught.value)
    assert "pomelo" not in str(caught.value).lower()
    assert reranker.score(QUESTION, ["pomelo"]).tolist() == [1]


def test_a_fault_of_the_tokenizer_is_told_as_the_reranker(folder: Path) -> None:
    """Text that is no Unicode ends in the one error that retrieval expects."""
    with pytest.raises(RerankerUnusable, match="fails on a question"):
        load_reranker(folder).score(QUESTION, ["\ud800"])


# folders


@pytest.mark.parametrize("name", [None, GRAPH_FILE, TOKENIZER_FILE])
def test_what_is_not_there_is_named(folder: Path, name: str | None) -> None:
    """Without the folder or one of its two files the path of what is missing is named, with the remedy."""
    if name:
        (folder / name).unlink()
    else:
        shutil.rmtree(folder)
    missing = folder / name if name else folder
    with pytest.raises(RerankerMissing, match="FICHERO_RERANKER_DIR") as caught:
        load_reranker(folder)
    assert caught.value.path == missing
    assert f"no {missing}." in str(caught.value)


def write_outputs(*names: str) -> Callable[[Path], object]:
    """A graph that gives the mask back under these names, in the shape of all tokens."""

    def write(folder: Path) -> None:
        nodes = [helper.make_node("Cast", ["attention_mask"], [name], to=1) for name in names]
        write_graph(folder, nodes, {}, ["input_ids", "attention_mask"], names)

    return write


def write_inputs(*names: str) -> Callable[[Path], object]:
    """A graph that takes these."""

    def write(folder: Path) -> None:
        write_graph(folder, [helper.make_node("Cast", [names[0]], ["logits"], to=1)], {}, names, ["logits"])

    return write


def write_score(value: float) -> Callable[[Path], object]:
    """A graph that always gives this."""

    def write(folder: Path) -> None:
        constants = {"all": np.array([[value]], np.float32)}
        nodes = [helper.make_node("Identity", ["all"], ["logits"])]
        write_graph(folder, nodes, constants, ["input_ids", "attention_mask"], ["logits"])

    return write


def cut_in_half(name: str) -> Callable[[Path], object]:
    def cut(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])

    return cut


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "graph is no graph": (lambda folder: (folder / GRAPH_FILE).write_bytes(b"x" * 100), "does not load"),
    "graph is empty": (lambda folder: (folder / GRAPH_FILE).write_bytes(b""), "does not load"),
    "graph is cut": (cut_in_half(GRAPH_FILE), "does not load"),
    "tokenizer is no JSON": (lambda folder: (folder / TOKENIZER_FILE).write_text("{", "utf-8"), "does not load"),
    "tokenizer is other JSON": (lambda folder: (folder / TOKENIZER_FILE).write_text("[]", "utf-8"), "does not load"),
    "tokenizer is no text": (lambda folder: (folder / TOKENIZER_FILE).write_bytes(b"\xff\xfe"), "does not load"),
    "tokenizer is cut": (cut_in_half(TOKENIZER_FILE), "does not load"),
    "no mask": (write_inputs("input_ids"), "inputs of its graph are input_ids; known are"),
    "another input": (write_inputs("input_ids", "attention_mask", "pixels"), "inputs of its graph are .*pixels"),
    "other inputs": (write_inputs("a", "b"), "inputs of its graph are a, b; known are attention_mask and input_ids"),
    "a logit for each token": (write_outputs("logits"), r"shape of its logits for one pair is \(1, \d+\)"),
    "two outputs without names": (write_outputs("a", "b"), "of the outputs of its graph, a, b, none is logits"),
    "an output of another name": (write_outputs("state"), r"shape of its state for one pair is \(1, \d+\)"),
    "three logits": (lambda folder: write_cross_encoder(folder, logits=3), r"is \(1, 3\), not \(1, 1\) or \(1, 2\)"),
    "no number": (write_score(np.nan), "the score nan"),
    "endless": (write_score(-np.inf), "the score -inf"),
    "tokenizer of another model": (lambda folder: write_tokenizer(folder, [*WORDS, "más"]), "out of data bounds"),
    "too few positions": (lambda folder: write_cross_encoder(folder, positions=256), "does not load or run"),
    "no room for a pair": (lambda folder: write_tokenizer(folder, WORDS, truncate_at=2), "cuts at 2 tokens"),
}


@pytest.mark.parametrize(("damage", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_folder_is_refused_at_once(
    folder: Path, damage: Callable[[Path], object], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A folder that gives no scores is refused when it is loaded, in one line with the folder and the remedy."""
    damage(folder)
    with pytest.raises(RerankerUnusable, match=told) as caught:
        load_reranker(folder)
    assert isinstance(caught.value, RagError)
    assert caught.value.path == folder
    message = str(caught.value)
    assert str(folder) in message
    assert "leave it empty" in message
    assert "\n" not in message
    assert len(message) < 800
    # and nothing else is printed by whoever found it
    assert capfd.readouterr() == ("", "")


def test_fewer_positions_need_a_tokenizer_that_says_so(tmp_path: Path) -> None:
    """A model of 256 positions is taken with a tokenizer that cuts at as many."""
    reranker = load_reranker(write_cross_encoder(tmp_path / "x", positions=256, truncate_at=256))
    assert reranker.score("pomelo", ["pomelo " * 1_000]).tolist() == [252]


def test_a_stamp_changes_with_any_file(folder: Path) -> None:
    """Whatever changes in the folder, also weights beside the graph, changes its stamp, and reading does not."""
    seen = {folder_stamp(folder)}
    load_reranker(folder)
    assert folder_stamp(folder) in seen
    (folder / "model.onnx_data").write_bytes(b"x")
    seen.add(folder_stamp(folder))
    (folder / "model.onnx_data").write_bytes(b"yy")
    seen.add(folder_stamp(folder))
    same = (folder / TOKENIZER_FILE).read_bytes()
    (folder / "fresh").write_bytes(same)
    (folder / "fresh").replace(folder / TOKENIZER_FILE)
    seen.add(folder_stamp(folder))
    assert len(seen) == 4
