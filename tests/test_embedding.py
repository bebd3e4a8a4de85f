"""The real model: its vectors, and what it refuses to load."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.cards import read_cards
from rag.embedding import (
    DATA_FILE,
    DESCRIPTION_FILE,
    GRAPH_FILE,
    TOKENIZER_FILE,
    Embedder,
    Vectors,
    decode_vector,
    encode_vector,
    file_sha256,
    load_embedder,
    read_description,
)
from rag.errors import ModelMissing, ModelUnusable
from rag.sentences import split_sentences
from tests.conftest import MODEL_DIR, ROOT

ODD_TEXTS = ("", " ", "a", "🤔", "\0", "\u202eabc", "ñ" * 3_000, "palabra " * 2_000, "\ud7ff", "你好", "\n\n\t")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Sentences of the example cards, of many lengths."""
    cards = read_cards(ROOT / "cards").cards
    sentences = [sentence.text for card in cards[::6] for sentence in split_sentences(card.text)]
    return [*sentences[:40], *(card.text for card in cards[:2])]


@pytest.fixture(scope="module")
def together(embedder: Embedder, texts: list[str]) -> Vectors:
    """Their vectors, made in one call."""
    return embedder.embed_passages(texts)


@pytest.fixture(scope="module")
def alone(embedder: Embedder, texts: list[str]) -> Vectors:
    """Their vectors, made one by one."""
    return np.stack([embedder.embed_passages([text])[0] for text in texts])


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Replace the description of a model folder, or, when the change gives nothing back, write what it changed."""
    path = folder / DESCRIPTION_FILE
    found = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(change(found) or found), "utf-8")


def test_vectors_have_unit_length(embedder: Embedder, together: Vectors) -> None:
    """Every vector, of a question or a passage, is float32, of the model's dimension and of length 1."""
    odd = embedder.embed_passages(ODD_TEXTS)
    assert together.dtype == odd.dtype == np.float32
    assert odd.shape == (len(ODD_TEXTS), embedder.description.dimension)
    assert np.linalg.norm(np.concatenate([together, odd]), axis=1) == pytest.approx(1.0, abs=1e-5)
    for text in ODD_TEXTS[:6]:
        vector = embedder.embed_query(text)
        assert vector.shape == (embedder.description.dimension,)
        assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-5)


def test_vectors_come_in_the_order_of_the_texts(texts: list[str], together: Vectors, alone: Vectors) -> None:
    """Vector n belongs to text n."""
    assert (alone @ together.T).argmax(axis=1).tolist() == [texts.index(text) for text in texts]


def test_company_does_not_change_a_vector(together: Vectors, alone: Vectors) -> None:
    """A text's vector is the same to the last bit, alone and among others."""
    assert np.array_equal(together, alone)


def test_the_same_text_gives_the_same_vector(embedder: Embedder) -> None:
    """Embedding is deterministic to the last bit, for questions and for passages."""
    text = "Tome el comprimido con agua."
    assert np.array_equal(embedder.embed_query(text), embedder.embed_query(text))
    assert np.array_equal(embedder.embed_passages([text]), embedder.embed_passages([text]))


def test_questions_and_passages_have_their_own_prefix(embedder: Embedder) -> None:
    """A text embedded as a question is near, but not equal to, the same text as a passage."""
    text = "Guarde la insulina en la nevera."
    cosine = float(embedder.embed_query(text) @ embedder.embed_passages([text])[0])
    assert 0.8 < cosine < 0.9999


def test_meaning_crosses_the_languages(embedder: Embedder) -> None:
    """An English question is nearer to the Spanish sentence that answers it than to another Spanish sentence."""
    question = embedder.embed_query("How should I store insulin?")
    near, far = embedder.embed_passages(["Guarde la insulina en la nevera.", "El autobús pasa cada diez minutos."])
    assert question @ near > question @ far + 0.03


def test_text_beyond_the_token_limit_is_not_seen(embedder: Embedder) -> None:
    """The model sees at most 512 tokens; whatever stands behind them changes nothing."""
    assert embedder.description.token_limit == 512
    long = "agua fresca y limpia " * 400
    assert embedder.token_count("agua") < 10
    assert embedder.token_count(long) == 512
    one, other = (embedder.embed_passages([long + tail])[0] for tail in ("", "insulina " * 300))
    assert np.array_equal(one, other)
    assert np.array_equal(embedder.embed_query(long), embedder.embed_query(long + "insulina"))


def test_a_question_beyond_the_token_limit_is_said_to_be(embedder: Embedder) -> None:
    """One token too many for a question is told apart from just enough, and does not change its vector."""
    ends = embedder.length_in_tokens(embedder.description.query_prefix + "agua") - 1
    most = embedder.description.token_limit - ends - 2
    one_less, whole, one_more = (" ".join(["agua"] * count) for count in (most - 1, most, most + 1))
    assert [embedder.truncates(text) for text in (one_less, whole, one_more)] == [False, False, True]
    assert np.array_equal(embedder.embed_query(whole), embedder.embed_query(one_more))
    assert not np.array_equal(embedder.embed_query(one_less), embedder.embed_query(whole))


@pytest.mark.parametrize("times", [0, 1, 100, 1000])
def test_long_texts_are_counted_whole(embedder: Embedder, times: int) -> None:
    """The length of a text counts every token of it, whatever the model would see, and nothing else."""
    assert embedder.length_in_tokens(("agua fresca " * times).strip()) == times * embedder.length_in_tokens(
        "agua fresca"
    )


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    """An empty list of passages gives an empty matrix of the right width."""
    assert embedder.embed_passages([]).shape == (0, embedder.description.dimension)


def test_vectors_survive_their_text_form() -> None:
    """A vector written as text and read back is the same, and text that is no vector is refused."""
    vector = np.array([0.1, -2.5, 3e-8], np.float32)
    assert np.array_equal(decode_vector(encode_vector(vector)), vector)
    for text in ("?", "abc", "AAA="):
        with pytest.raises(ValueError, match=r"."):
            decode_vector(text)


def test_a_good_copy_loads(model_dir: Path, embedder: Embedder) -> None:
    """A folder with the same files loads and has the same fingerprint."""
    assert load_embedder(model_dir).description.fingerprint == embedder.description.fingerprint


def test_a_canary_that_moved_stops_the_load(model_dir: Path) -> None:
    """A stored canary vector that the model does not give any more is refused, with the sentence and the cosine."""

    def turn(found: dict[str, Any]) -> None:
        canary = found["canaries"][-1]
        canary["vector"] = encode_vector(np.roll(decode_vector(canary["vector"]), 1))

    rewrite(model_dir, turn)
    sentence = read_description(model_dir).canaries[-1][0]
    with pytest.raises(ModelUnusable, match=r"canary sentence .* cosine .* make model") as caught:
        load_embedder(model_dir)
    assert sentence in str(caught.value)


def test_weights_that_give_other_vectors_stop_the_load(model_dir: Path) -> None:
    """Weights with other numbers among them, described as if they were right, are caught by a canary's vector."""
    data = np.frombuffer((MODEL_DIR / DATA_FILE).read_bytes(), np.uint8).copy()
    chance = np.random.default_rng(1)
    places = chance.integers(0, len(data), len(data) // 50)
    data[places] ^= np.uint8(0x10)
    (model_dir / DATA_FILE).unlink()
    (model_dir / DATA_FILE).write_bytes(data.tobytes())
    rewrite(model_dir, lambda found: found["files"].update({DATA_FILE: file_sha256(model_dir / DATA_FILE)}))
    with pytest.raises(ModelUnusable, match="canary sentence"):
        load_embedder(model_dir)


@pytest.mark.parametrize(
    "vector",
    [np.zeros(384, np.float32), np.full(384, np.nan, np.float32), np.ones(3, np.float32)],
    ids=["zero", "not a number", "too short"],
)
def test_a_canary_that_is_no_vector_stops_the_load(model_dir: Path, vector: np.ndarray) -> None:
    """A canary vector of zeros, of no numbers or of another length is refused and not waved through."""
    rewrite(model_dir, lambda found: found["canaries"][0].update(vector=encode_vector(vector)))
    with pytest.raises(ModelUnusable, match="canary"):
        load_embedder(model_dir)


@pytest.mark.parametrize("name", [GRAPH_FILE, DATA_FILE, TOKENIZER_FILE])
@pytest.mark.parametrize("place", [0.0, 0.5, 0.999])
def test_a_flipped_byte_in_any_file_stops_the_load(model_dir: Path, name: str, place: float) -> None:
    """One changed bit anywhere in a model file is found, and the file is named with the remedy."""
    path = model_dir / name
    data = bytearray((MODEL_DIR / name).read_bytes())
    data[int(place * len(data))] ^= 1
    path.unlink()
    path.write_bytes(data)
    with pytest.raises(ModelUnusable, match=f"{name} is not the file .* make model"):
        load_embedder(model_dir)


@pytest.mark.parametrize("name", [GRAPH_FILE, DATA_FILE, TOKENIZER_FILE])
def test_a_missing_file_is_named(model_dir: Path, name: str) -> None:
    """A model folder without one of its files is refused by that file's name, with the remedy."""
    (model_dir / name).unlink()
    with pytest.raises(ModelUnusable, match=f"{name} cannot be read.* make model"):
        load_embedder(model_dir)


def test_no_model_at_all_says_how_to_make_one(tmp_path: Path) -> None:
    """A folder without model.json, or no folder, is a missing model, named with the command that makes it."""
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(ModelMissing, match="make model") as caught:
            load_embedder(folder)
        assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"x"', "{}", '{"format": 1}', '{"format": 99}', "\xff\xfe"],
    ids=["empty", "cut", "list", "null", "text", "no keys", "one key", "other format", "not JSON"],
)
def test_a_broken_description_is_refused(model_dir: Path, text: str) -> None:
    """A model.json that is no description is one clear error with the remedy, whatever it holds."""
    (model_dir / DESCRIPTION_FILE).write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelUnusable, match="make model"):
        load_embedder(model_dir)


@pytest.mark.parametrize(
    "changes",
    [
        {"files": None},
        {"files": []},
        {"canaries": None},
        {"canaries": [{"text": "x"}]},
        {"canaries": [{"text": "x", "vector": "?"}]},
        {"canaries": "x"},
        {"token_limit": "x"},
        {"dimension": 12},
    ],
    ids="-".join,
)
def test_a_description_with_a_wrong_value_is_refused(model_dir: Path, changes: dict[str, Any]) -> None:
    """A model.json with a value of the wrong type, or a dimension the model does not have, is refused at load."""
    rewrite(model_dir, lambda found: found | changes)
    with pytest.raises(ModelUnusable, match="make model"):
        load_embedder(model_dir)


def test_the_fingerprint_changes_with_whatever_changes_vectors(embedder: Embedder) -> None:
    """Another file, prefix or token limit is another fingerprint; another name is not."""
    description = embedder.description
    files = {**description.files, GRAPH_FILE: "0" * 64}
    changed = (
        replace(description, files=files),
        replace(description, query_prefix="q: "),
        replace(description, passage_prefix="p: "),
        replace(description, token_limit=64),
    )
    assert len({description.fingerprint, *(other.fingerprint for other in changed)}) == 5
    assert replace(description, name="x").fingerprint == description.fingerprint
