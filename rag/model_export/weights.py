"""Encoder weights under one set of names, whatever file they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.errors import RagError

Float32 = NDArray[np.float32]


class WeightsUnusable(RagError):
    """The source of the weights is missing, damaged or of another architecture."""


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Shape of a BERT encoder with post-layer-norm, erf GELU and absolute positions."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    positions: int
    layer_norm_epsilon: float


@dataclass(frozen=True, slots=True)
class Encoder:
    """Weights, shape and tokenizer of one model.

    ``tensors`` holds float32 arrays; matrices are [out, in]. Names: ``word`` [vocabulary, hidden], ``position``
    [positions, hidden], ``type`` [hidden] (row 0 of the token types), ``norm.weight .bias``, and for layer i ``i.query
    i.key i.value i.attention_out i.feed_in i.feed_out``, each ``.weight`` and ``.bias``, and the two layer norms
    ``i.attention_norm i.feed_norm`` likewise.

    ``tokenizer`` is the JSON of a Unigram tokenizer of the `tokenizers` package.
    """

    config: EncoderConfig
    tensors: dict[str, Float32]
    tokenizer: dict[str, Any]


LINEAR_NAMES = ("query", "key", "value", "attention_out", "feed_in", "feed_out")
NORM_NAMES = ("attention_norm", "feed_norm")


def check_shapes(encoder: Encoder, *, where: str) -> None:
    """
    Check that every tensor is there with the shape that the configuration asks for.

    Raises:
        WeightsUnusable: a tensor is missing or has another shape; names the first one.
    """
    config = encoder.config
    hidden, wide = config.hidden, config.feed_forward
    if min(config.layers, config.heads, hidden, wide, config.positions) < 1:
        raise WeightsUnusable(f"{where}: a size in the configuration is below 1: {config}.")
    if hidden % config.heads:
        raise WeightsUnusable(f"{where}: {config.heads} heads do not share a width of {hidden}.")
    wanted: dict[str, tuple[int, ...]] = {
        "word": (len(encoder.tokenizer["model"]["vocab"]), hidden),
        "position": (config.positions, hidden),
        "type": (hidden,),
        "norm.weight": (hidden,),
        "norm.bias": (hidden,),
    }
    for layer in range(config.layers):
        for name in LINEAR_NAMES:
            rows = wide if name == "feed_in" else hidden
            columns = wide if name == "feed_out" else hidden
            wanted[f"{layer}.{name}.weight"] = (rows, columns)
            wanted[f"{layer}.{name}.bias"] = (rows,)
        for name in NORM_NAMES:
            wanted[f"{layer}.{name}.weight"] = wanted[f"{layer}.{name}.bias"] = (hidden,)
    for name, shape in wanted.items():
        tensor = encoder.tensors.get(name)
        found = None if tensor is None else tensor.shape
        if found != shape:
            raise WeightsUnusable(f"{where}: tensor {name} should have shape {shape} but has {found}.")
