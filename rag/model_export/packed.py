"""Read the packed 4-bit weights of multilingual-e5-small (file format ``E5S1``, little-endian)."""

from __future__ import annotations

import mmap
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rag.model_export.weights import Encoder, EncoderConfig, Float32, WeightsUnusable, check_shapes

MAGIC = b"E5S1"
BLOCK_ELEMENTS = 32
FLOAT32, FOUR_BITS = 0, 1

_LAYER_NAMES = {
    "q": "query",
    "k": "key",
    "v": "value",
    "ao": "attention_out",
    "fi": "feed_in",
    "fo": "feed_out",
    "aln": "attention_norm",
    "oln": "feed_norm",
}


def read_packed(path: Path) -> Encoder:
    """
    Read the whole model; 4-bit matrices come back as float32.

    Raises:
        WeightsUnusable: the file is missing, cut short, or of another format.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(_Cursor(data), path)
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        raise WeightsUnusable(f"{path}: not a readable {MAGIC.decode()} file: {error}.") from error


class _Cursor:
    """Reads fields one after another."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.offset = 0

    def unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.offset)
        self.offset += struct.calcsize("<" + layout)
        return values

    def array(self, dtype: str, count: int) -> np.ndarray:
        values = np.frombuffer(self.data, dtype, count, self.offset).copy()
        self.offset += values.nbytes
        return values

    def take(self, size: int) -> bytes:
        if self.offset + size > len(self.data):
            raise ValueError("the file is cut short")
        chunk = self.data[self.offset : self.offset + size]
        self.offset += size
        return chunk


def _read(cursor: _Cursor, path: Path) -> Encoder:
    if cursor.take(4) != MAGIC:
        raise WeightsUnusable(f"{path}: does not begin with {MAGIC.decode()}.")
    cursor.unpack("I")
    hidden, layers, heads, wide, rows, positions, token_types = cursor.unpack("7i")
    epsilon, block = cursor.unpack("fi")
    if block != BLOCK_ELEMENTS:
        raise WeightsUnusable(f"{path}: blocks of {block} weights, where {BLOCK_ELEMENTS} are known.")
    tokenizer = _read_tokenizer(cursor)
    raw = _read_tensors(cursor)
    config = EncoderConfig(hidden, layers, heads, wide, positions, float(epsilon))
    pieces = len(tokenizer["model"]["vocab"])
    tensors: dict[str, Float32] = {
        # the table has a few spare rows behind the last piece
        "word": raw["emb.word"].reshape(rows, hidden)[:pieces],
        "position": raw["emb.pos"].reshape(positions, hidden),
        "type": raw["emb.type"].reshape(token_types, hidden)[0],
        "norm.weight": raw["emb.ln.w"],
        "norm.bias": raw["emb.ln.b"],
    }
    for layer in range(layers):
        for short, name in _LAYER_NAMES.items():
            bias = raw[f"l{layer}.{short}.b"]
            weight = raw[f"l{layer}.{short}.w"]
            tensors[f"{layer}.{name}.bias"] = bias
            tensors[f"{layer}.{name}.weight"] = weight if name.endswith("norm") else weight.reshape(len(bias), -1)
    encoder = Encoder(config, tensors, tokenizer)
    check_shapes(encoder, where=str(path))
    return encoder


def _read_tokenizer(cursor: _Cursor) -> dict[str, Any]:
    (count,) = cursor.unpack("i")
    bos, eos, pad, unknown = cursor.unpack("4i")
    (blob_size,) = cursor.unpack("Q")
    offsets = cursor.array("<u4", count + 1)
    scores = cursor.array("<f4", count)
    blob = cursor.take(blob_size)
    pieces = [blob[start:end].decode() for start, end in pairwise(offsets)]
    _, map_size = cursor.unpack("iI")
    cursor.take(map_size)  # the same normalisation as NFKC and Nmt below
    return unigram_tokenizer(
        [[piece, float(score)] for piece, score in zip(pieces, scores, strict=True)],
        bos=bos,
        eos=eos,
        pad=pad,
        unknown=unknown,
    )


def unigram_tokenizer(vocabulary: list[list[Any]], *, bos: int, eos: int, pad: int, unknown: int) -> dict[str, Any]:
    """The JSON of an XLM-R style Unigram tokenizer; ``vocabulary`` holds [piece, score] by id."""
    special = [
        {
            "id": number,
            "content": vocabulary[number][0],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number in sorted((bos, eos, pad, unknown))
    ]
    first, last = vocabulary[bos][0], vocabulary[eos][0]
    wrap: list[dict[str, Any]] = [
        {"SpecialToken": {"id": first, "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": last, "type_id": 0}},
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Nmt"},
                {"type": "NFKC"},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": wrap,
            "pair": [*wrap, {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": last, "type_id": 0}}],
            "special_tokens": {
                first: {"id": first, "ids": [bos], "tokens": [first]},
                last: {"id": last, "ids": [eos], "tokens": [last]},
            },
        },
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary, "byte_fallback": False},
    }


def _read_tensors(cursor: _Cursor) -> dict[str, Float32]:
    (count,) = cursor.unpack("i")
    tensors: dict[str, Float32] = {}
    for _ in range(count):
        (name_size,) = cursor.unpack("H")
        name = cursor.take(name_size).decode()
        kind, elements, offset, size = cursor.unpack("BIQQ")
        data = cursor.data[offset : offset + size]
        if kind not in (FLOAT32, FOUR_BITS):
            raise ValueError(f"tensor {name} is of kind {kind}, which is not known")
        if len(data) != size:
            raise ValueError(f"tensor {name} is cut short")
        tensors[name] = np.frombuffer(data, "<f4").astype(np.float32) if kind == FLOAT32 else _unpack_4_bits(data)
        if tensors[name].size != elements:
            raise ValueError(f"tensor {name} has {tensors[name].size} weights, not {elements}")
    return tensors


def _unpack_4_bits(data: bytes) -> Float32:
    """
    Blocks of a float16 scale and 16 bytes; byte j holds weight j (low nibble) and weight j + 16 (high nibble).

    Value = (nibble - 8) x scale.
    """
    blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("nibbles", "u1", (16,))]))
    scale = blocks["scale"].astype(np.float32)[:, None]
    nibbles = np.concatenate([blocks["nibbles"] & 0x0F, blocks["nibbles"] >> 4], axis=1)
    return ((nibbles.astype(np.float32) - 8.0) * scale).reshape(-1)
