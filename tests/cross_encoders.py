"""Tiny cross-encoders whose scores can be counted by hand, in folders as common tools export them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from rag.reranking import GRAPH_FILE, TOKENIZER_FILE

SPECIAL = ("[UNK]", "[CLS]", "[SEP]")
"""They count for nothing, and so do all words that a tokenizer does not know."""
BREAKS = "rompe"
"""With this word in a pair, its score is no number."""
WORDS = ("pomelo", "con", "estatinas", BREAKS, "agua", "leche", "zumo", "hierro", "café")


def write_cross_encoder(
    folder: Path,
    words: Sequence[str] = WORDS,
    *,
    token_types: bool = True,
    logits: int = 1,
    truncate_at: int | None = None,
    rows: int | None = None,
    positions: int = 512,
) -> Path:
    """
    Write one that counts the equal words of question and text: of each word, how often here times how often there.

    Without ``token_types`` it cannot tell one from the other, and counts pairs of equal words wherever they stand, each
    twice. With two logits the first is always 1. ``rows`` are the tokens it knows (default: all), ``positions`` how
    many it takes.
    """
    folder.mkdir(exist_ok=True)
    write_tokenizer(folder, words, truncate_at=truncate_at)
    known = {word: number for number, word in enumerate([*SPECIAL, *words])}
    weights = np.array([0.0] * len(SPECIAL) + [1.0] * len(words), np.float32)[: rows or len(known)]
    breaking = np.zeros_like(weights)
    if BREAKS in known and known[BREAKS] < len(breaking):
        breaking[known[BREAKS]] = np.inf
    constants: dict[str, np.ndarray] = {
        "weights": weights,
        "breaking": breaking,
        "positions": np.zeros(positions, np.float32),
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
        "two": np.array([2], np.int64),
        "one_logit": np.ones((1, 1), np.float32),
    }
    nodes = [
        # as position embeddings do, this fails where there are more tokens than positions
        helper.make_node("Shape", ["input_ids"], ["length"], start=1, end=2),
        helper.make_node("Slice", ["positions", "zero", "length", "zero"], ["place"]),
        helper.make_node("Gather", ["weights", "input_ids"], ["worth"]),
        helper.make_node("Add", ["worth", "place"], ["placed"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["placed", "mask"], ["all"]),
        *(_sides() if token_types else _one_side()),
        helper.make_node("Unsqueeze", ["input_ids", "two"], ["down"]),
        helper.make_node("Unsqueeze", ["input_ids", "one"], ["across"]),
        helper.make_node("Equal", ["down", "across"], ["same"]),
        helper.make_node("Cast", ["same"], ["equal"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["first", "two"], ["first_down"]),
        helper.make_node("Unsqueeze", ["second", "one"], ["second_across"]),
        helper.make_node("Mul", ["first_down", "second_across"], ["both"]),
        helper.make_node("Mul", ["both", "equal"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "one"], ["by_word"], keepdims=0),
        helper.make_node("ReduceSum", ["by_word", "one"], ["count"], keepdims=1),
        helper.make_node("Gather", ["breaking", "input_ids"], ["broken"]),
        helper.make_node("ReduceSum", ["broken", "one"], ["fault"], keepdims=1),
        helper.make_node("Add", ["count", "fault"], ["score"]),
        # other numbers of logits are wrong on purpose
        helper.make_node("Concat", ["one_logit"] * (logits - 1) + ["score"], ["logits"], axis=1),
    ]
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if token_types else [])]
    write_graph(folder, nodes, constants, inputs, ["logits"])
    return folder


def _sides() -> list[onnx.NodeProto]:
    return [
        helper.make_node("Cast", ["token_type_ids"], ["type"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["all", "type"], ["second"]),
        helper.make_node("Sub", ["all", "second"], ["first"]),
    ]


def _one_side() -> list[onnx.NodeProto]:
    return [helper.make_node("Identity", ["all"], [name]) for name in ("first", "second")]


def write_graph(
    folder: Path,
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, np.ndarray],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> None:
    """Write a graph that takes whole numbers and gives real ones."""
    graph = helper.make_graph(
        list(nodes),
        "cross_encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save_model(model, folder / GRAPH_FILE)


def write_tokenizer(folder: Path, words: Sequence[str], *, truncate_at: int | None = None) -> None:
    """Write one of whole words; with ``truncate_at`` it says, as published ones do, where it cuts and what it fills."""
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    if truncate_at:
        tokenizer.enable_truncation(truncate_at, strategy="only_second")
        tokenizer.enable_padding(length=truncate_at)
    tokenizer.save(str(folder / TOKENIZER_FILE))
