"""Texts to vectors, with an ONNX sentence encoder. This module alone imports onnxruntime and tokenizers."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from rag.errors import ModelMissing, ModelUnusable

MODEL_FORMAT = 1
GRAPH_FILE, DATA_FILE, TOKENIZER_FILE, DESCRIPTION_FILE = (
    "model.onnx",
    "model.onnx.data",
    "tokenizer.json",
    "model.json",
)
CANARY_COSINE = 0.99
"""A canary sentence whose vector is further than this from the stored one stops the start."""
BATCH_TEXTS = 8
"""Small batches: the runtime keeps the memory of its largest one."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What ``model.json`` says of a model."""

    name: str
    dimension: int
    query_prefix: str
    passage_prefix: str
    pooling: str
    token_limit: int
    files: dict[str, str]
    """File name → SHA-256."""
    canaries: tuple[tuple[str, Vectors], ...]
    """Sentences with their vectors, (d,) float32."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever vectors may: a hash over the files and the prefixes."""
        parts = [*sorted(self.files.values()), self.query_prefix, self.passage_prefix]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


class Embedder:
    """
    A loaded encoder.

    Not to be used from two threads at once for the sake of memory, though that would be correct.
    """

    def __init__(self, model_dir: Path, description: ModelDescription, *, threads: int) -> None:
        self.description = description
        self._tokenizer = Tokenizer.from_file(str(model_dir / TOKENIZER_FILE))
        self._tokenizer.enable_truncation(description.token_limit)
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        graph = str(model_dir / GRAPH_FILE)
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def embed_query(self, question: str) -> Vectors:
        """The vector of one question, (d,) float32, unit length."""
        vector: Vectors = self._run([self._tokenizer.encode(self.description.query_prefix + question).ids])[0]
        return vector

    def embed_passages(self, texts: Sequence[str], *, progress: Callable[[int], object] | None = None) -> Vectors:
        """
        The vectors of passages, (n, d) float32, unit length, in the order of the texts.

        ``progress`` is called with the number of texts done since its last call.
        """
        prefix = self.description.passage_prefix
        vectors = np.empty((len(texts), self.description.dimension), np.float32)
        # neighbours in length share a batch, so that little of it is padding; the longest first shows memory at once
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch([prefix + text for text in texts])]
        order = sorted(range(len(texts)), key=lambda number: -len(tokens[number]))
        for first in range(0, len(order), BATCH_TEXTS):
            batch = order[first : first + BATCH_TEXTS]
            vectors[batch] = self._run([tokens[number] for number in batch])
            if progress:
                progress(len(batch))
        return vectors

    def token_count(self, text: str) -> int:
        """How many tokens the model sees of a passage, at most ``token_limit``."""
        return len(self._tokenizer.encode(self.description.passage_prefix + text).ids)

    def _run(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        longest = max(map(len, tokens))
        ids = np.zeros((len(tokens), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, numbers in enumerate(tokens):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        vectors: Vectors = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        return vectors


def load_embedder(model_dir: Path, *, threads: int = 2) -> Embedder:
    """
    Check a model folder against its description, load it, and compare its canary sentences.

    Raises:
        ModelMissing: there is no model.json.
        ModelUnusable: a file is missing or changed, the format is another one, or a canary's vector is off.
    """
    description = read_description(model_dir)
    _check_files(model_dir, description)
    try:
        embedder = Embedder(model_dir, description, threads=threads)
        _check_canaries(model_dir, embedder)
    except ModelUnusable:
        raise
    except Exception as error:  # onnxruntime and tokenizers raise bare Exceptions of many kinds
        raise ModelUnusable(model_dir, f"it does not load: {error}") from error
    return embedder


def read_description(model_dir: Path) -> ModelDescription:
    """
    Read ``model.json`` alone, which is quick.

    Raises:
        ModelMissing, ModelUnusable: as for ``load_embedder``.
    """
    path = model_dir / DESCRIPTION_FILE
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ModelMissing(model_dir) from error
    except (OSError, ValueError) as error:
        raise ModelUnusable(model_dir, f"{DESCRIPTION_FILE} cannot be read: {error}") from error
    try:
        if found["format"] != MODEL_FORMAT:
            raise ModelUnusable(model_dir, f"its format is {found['format']}, this version reads {MODEL_FORMAT}")
        return ModelDescription(
            name=found["name"],
            dimension=found["dimension"],
            query_prefix=found["query_prefix"],
            passage_prefix=found["passage_prefix"],
            pooling=found["pooling"],
            token_limit=found["token_limit"],
            files=dict(found["files"]),
            canaries=tuple((canary["text"], decode_vector(canary["vector"])) for canary in found["canaries"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelUnusable(model_dir, f"{DESCRIPTION_FILE} is incomplete: {error!r}") from error


def encode_vector(vector: Vectors) -> str:
    """A vector as text: base64 of little-endian float32."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def decode_vector(text: str) -> Vectors:
    """
    The vector that ``encode_vector`` wrote, (d,) float32.

    Raises:
        ValueError: the text is not such a vector.
    """
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_files(model_dir: Path, description: ModelDescription) -> None:
    for name in (GRAPH_FILE, DATA_FILE, TOKENIZER_FILE):
        wanted = description.files.get(name)
        try:
            found = file_sha256(model_dir / name)
        except OSError as error:
            raise ModelUnusable(model_dir, f"{name} cannot be read: {error}") from error
        if found != wanted:
            raise ModelUnusable(model_dir, f"{name} is not the file that {DESCRIPTION_FILE} describes")


def _check_canaries(model_dir: Path, embedder: Embedder) -> None:
    for text, stored in embedder.description.canaries:
        vector = embedder.embed_passages([text])[0]
        cosine = float(vector @ stored) if stored.shape == vector.shape else 0.0
        if not cosine >= CANARY_COSINE:
            what = (
                f"the canary sentence {text!r} is at cosine {cosine:.4f} from its stored vector, below {CANARY_COSINE}"
            )
            raise ModelUnusable(model_dir, what)
