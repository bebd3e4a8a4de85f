"""Read original weights: a folder with config.json, model.safetensors and tokenizer.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from rag.model_export.weights import Encoder, EncoderConfig, Float32, WeightsUnusable, check_shapes

_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_LAYER_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_in": "intermediate.dense",
    "feed_out": "output.dense",
    "feed_norm": "output.LayerNorm",
}
_ARCHITECTURE = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}


def read_folder(folder: Path) -> Encoder:
    """
    Read a BERT encoder with a Unigram tokenizer, as multilingual-e5-small is published.

    Raises:
        WeightsUnusable: a file is missing or unreadable, or the architecture is another one.
    """
    try:
        settings = json.loads((folder / "config.json").read_text("utf-8"))
        tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        raw = load_file(folder / "model.safetensors")
    except (OSError, ValueError, SafetensorError) as error:
        raise WeightsUnusable(f"{folder}: cannot be read as original weights: {error}.") from error
    try:
        return _encoder(settings, tokenizer, raw, folder)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise WeightsUnusable(f"{folder}: config.json or tokenizer.json is incomplete: {error!r}.") from error


def folder_hash(folder: Path) -> str:
    """
    Changes whenever a file of the folder does.

    Raises:
        WeightsUnusable: a file is missing.
    """
    digest = hashlib.sha256()
    try:
        for name in _FILES:
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise WeightsUnusable(f"{folder}: cannot be read as original weights: {error}.") from error
    return digest.hexdigest()


def _encoder(settings: dict[str, Any], tokenizer: dict[str, Any], raw: dict[str, np.ndarray], folder: Path) -> Encoder:
    _check_architecture(settings, tokenizer, folder)
    config = EncoderConfig(
        hidden=settings["hidden_size"],
        layers=settings["num_hidden_layers"],
        heads=settings["num_attention_heads"],
        feed_forward=settings["intermediate_size"],
        positions=settings["max_position_embeddings"],
        layer_norm_epsilon=settings["layer_norm_eps"],
    )
    encoder = Encoder(config, _rename(raw, config, len(tokenizer["model"]["vocab"]), folder), tokenizer)
    check_shapes(encoder, where=str(folder))
    return encoder


def _check_architecture(settings: dict[str, Any], tokenizer: dict[str, Any], folder: Path) -> None:
    for key, wanted in _ARCHITECTURE.items():
        if settings.get(key, wanted) != wanted:
            raise WeightsUnusable(f"{folder}/config.json: {key} is {settings[key]!r}; only {wanted!r} is known.")
    kind = tokenizer.get("model", {}).get("type")
    if kind != "Unigram":
        raise WeightsUnusable(f"{folder}/tokenizer.json: a {kind} tokenizer; only Unigram is known.")


def _rename(raw: dict[str, np.ndarray], config: EncoderConfig, pieces: int, folder: Path) -> dict[str, Float32]:
    def take(name: str) -> Float32:
        for prefix in ("", "bert."):
            if prefix + name in raw:
                return raw[prefix + name].astype(np.float32)
        raise WeightsUnusable(f"{folder}/model.safetensors: there is no tensor {name}.")

    tensors = {
        # tables are often padded behind the last piece
        "word": take("embeddings.word_embeddings.weight")[:pieces],
        "position": take("embeddings.position_embeddings.weight"),
        "type": take("embeddings.token_type_embeddings.weight")[0],
        "norm.weight": take("embeddings.LayerNorm.weight"),
        "norm.bias": take("embeddings.LayerNorm.bias"),
    }
    for layer in range(config.layers):
        for name, original in _LAYER_NAMES.items():
            for part in ("weight", "bias"):
                tensors[f"{layer}.{name}.{part}"] = take(f"encoder.layer.{layer}.{original}.{part}")
    return tensors
