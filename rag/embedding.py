"""Texts to vectors, with an ONNX sentence encoder. This module alone imports onnxruntime and tokenizers."""

from __future__ import annotations

import base64
import hashlib
import json
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

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
_ADDED_TOKENS = 4
"""Before, behind and at the start of a text's own, and one to spare."""
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
        """Changes whenever vectors may: a hash over the files and how they are used."""
        parts = [*sorted(self.files.values()), self.query_prefix, self.passage_prefix, str(self.token_limit)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


class QueryEmbedder(Protocol):
    """What retrieval needs of an encoder: the real one, or one behind a cache."""

    def embed_query(self, question: str) -> Vectors:
        """The vector of one question, (d,) float32, unit length."""
        ...

    def truncates(self, question: str) -> bool:
        """Whether the vector is that of the question's beginning alone."""
        ...


class Embedder:
    """
    A loaded encoder.

    Every text goes through the model alone: activations are quantised by what they hold, so texts in one batch would
    change each other's vectors. ``threads`` work on one text, ``workers`` texts are worked on at once.
    """

    def __init__(self, model_dir: Path, description: ModelDescription, *, threads: int, workers: int = 1) -> None:
        self.description = description
        self._workers = workers
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
        return self._run(self._tokenizer.encode(self.description.query_prefix + question).ids)

    def truncates(self, question: str) -> bool:
        """Whether a question has more tokens than the model reads, so that its end is not in its vector."""
        text = self.description.query_prefix + question
        # a token is a character at least, as the tokenizer normalises; most questions are far from the limit
        if len(unicodedata.normalize("NFKC", text)) <= self.description.token_limit - _ADDED_TOKENS:
            return False
        return bool(self._tokenizer.encode(text).overflowing)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, (n, d) float32, unit length, in the order of the texts."""
        prefix = self.description.passage_prefix
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch([prefix + text for text in texts])]
        with ThreadPoolExecutor(self._workers) as pool:
            vectors = list(pool.map(self._run, tokens))
        return np.array(vectors, np.float32).reshape(len(texts), self.description.dimension)

    def token_count(self, text: str) -> int:
        """How many tokens the model sees of a passage, at most ``token_limit``."""
        return len(self._tokenizer.encode(self.description.passage_prefix + text).ids)

    def length_in_tokens(self, text: str) -> int:
        """How many tokens a text has, however long it is; without prefix and special tokens."""
        encoding = self._tokenizer.encode(text)
        # what the limit cuts off is kept beside it, in pieces with special tokens of their own
        return sum(len(piece) - sum(piece.special_tokens_mask) for piece in (encoding, *encoding.overflowing))

    def _run(self, tokens: Sequence[int]) -> Vectors:
        ids = np.array([tokens], np.int64)
        vectors: Sequence[Vectors] = self._session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
        return vectors[0]


def load_embedder(model_dir: Path, *, threads: int = 2, workers: int = 1) -> Embedder:
    """
    Check a model folder against its description, load it, and compare its canary sentences.

    Raises:
        ModelMissing: there is no model.json.
        ModelUnusable: a file is missing or changed, the format is another one, or a canary's vector is off.
    """
    description = read_description(model_dir)
    _check_files(model_dir, description)
    try:
        embedder = Embedder(model_dir, description, threads=threads, workers=workers)
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
