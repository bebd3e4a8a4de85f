"""A question and texts to scores, with an ONNX cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from rag.errors import RagError, RerankerMissing, RerankerUnusable

GRAPH_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"
TOKEN_LIMIT = 512
"""Of a pair, unless its tokenizer cuts at fewer."""
LOGITS = "logits"

_NEEDED, _OPTIONAL = frozenset({"input_ids", "attention_mask"}), frozenset({"token_type_ids"})
_QUESTION, _TEXT = "¿Cómo se toma?", "Tómelo con agua. "

Scores = NDArray[np.float32]
Stamp = tuple[tuple[str, int, int, int], ...]


class Reranker(Protocol):
    """What retrieval needs of a cross-encoder."""

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """
        How well each text answers the question, (n,) float32, finite, in the order of the texts; higher is better.

        Scores are comparable within one question only.

        Raises:
            RerankerUnusable: it failed.
        """
        ...


class CrossEncoder:
    """
    A loaded sequence classifier of pairs, with one logit, or with two of which the second speaks for the text.

    Every pair goes through the model alone: in quantised models the pairs of one batch would change each other's
    scores, and on a CPU a batch saves no time.
    """

    def __init__(self, folder: Path, *, threads: int) -> None:
        self.stamp = folder_stamp(folder)
        self._folder = folder
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._limit = min((self._tokenizer.truncation or {}).get("max_length", TOKEN_LIMIT), TOKEN_LIMIT)
        self._tokenizer.enable_truncation(self._limit, strategy="longest_first")
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what it says is in the exception too
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        graph = str(folder / GRAPH_FILE)
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._inputs = self._check_inputs()
        self._output = self._check_output()
        self._check_runs()

    def score(self, question: str, texts: Sequence[str]) -> Scores:
        """As in ``Reranker``; pairs that are too long lose the end of the longer one."""
        try:
            return np.array([self._score_pair(question, text) for text in texts], np.float32)
        except RerankerUnusable:
            raise
        except Exception as error:  # onnxruntime and tokenizers raise bare Exceptions of many kinds
            raise RerankerUnusable(self._folder, f"it fails on a question: {_in_one_line(error)}") from error

    def _score_pair(self, question: str, text: str, options: onnxruntime.RunOptions | None = None) -> float:
        pair = self._tokenizer.encode(question, text)
        return self._run(pair.ids, pair.type_ids, options)

    def _run(self, ids: Sequence[int], type_ids: Sequence[int], options: onnxruntime.RunOptions | None) -> float:
        fed = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": type_ids}
        feed = {name: np.array([fed[name]], np.int64) for name in self._inputs}
        logits: NDArray[Any] = np.asarray(self._session.run([self._output], feed, options)[0])
        if logits.shape not in ((1, 1), (1, 2)):
            what = f"the shape of its {self._output} for one pair is {logits.shape}, not (1, 1) or (1, 2)"
            raise RerankerUnusable(self._folder, what)
        # of two classes what counts is by how much the second one is likelier
        score = logits[0].astype(np.float32) @ np.array([1] if logits.shape[1] == 1 else [-1, 1], np.float32)
        if not np.isfinite(score):
            raise RerankerUnusable(self._folder, f"it gives the score {score}")
        return float(score)

    def _check_inputs(self) -> list[str]:
        names = [entry.name for entry in self._session.get_inputs()]
        if not _NEEDED <= set(names) <= _NEEDED | _OPTIONAL:
            takes = f"{' and '.join(sorted(_NEEDED))}, and at most {', '.join(_OPTIONAL)} beside them"
            raise RerankerUnusable(self._folder, f"the inputs of its graph are {', '.join(names)}; known are {takes}")
        return names

    def _check_output(self) -> str:
        names = [entry.name for entry in self._session.get_outputs()]
        if LOGITS not in names and len(names) > 1:
            raise RerankerUnusable(self._folder, f"of the outputs of its graph, {', '.join(names)}, none is {LOGITS}")
        return LOGITS if LOGITS in names else names[0]

    def _check_runs(self) -> None:
        """The graph takes all that the tokenizer can give: a pair, the longest one, and the last token."""
        options = onnxruntime.RunOptions()
        # what the longest pair needs is given back
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        longest = self._tokenizer.encode(_QUESTION, _TEXT * self._limit)
        if len(longest.ids) > self._limit:
            raise RerankerUnusable(self._folder, f"its tokenizer cuts at {self._limit} tokens, where no pair has room")
        self._score_pair(_QUESTION, _TEXT, options)
        last = self._tokenizer.get_vocab_size() - 1
        self._run([last] * self._limit, [0] * self._limit, options)


def load_reranker(folder: Path, *, threads: int = 2) -> CrossEncoder:
    """
    Load a folder with ``model.onnx`` and ``tokenizer.json``, as common tools export them, and try it out.

    Raises:
        RerankerMissing: the folder or one of the two files is not there.
        RerankerUnusable: it does not load, is no such classifier, or its files do not go together.
    """
    try:
        reranker = CrossEncoder(folder, threads=threads)
    except RagError:
        raise
    except Exception as error:  # as in ``score``
        raise RerankerUnusable(folder, f"it does not load or run: {_in_one_line(error)}") from error
    if folder_stamp(folder) != reranker.stamp:
        raise RerankerUnusable(folder, "it was replaced while it was being loaded")
    return reranker


def folder_stamp(folder: Path) -> Stamp:
    """
    Changes whenever a file of the folder does; reads none of them.

    Raises:
        RerankerMissing: the folder or one of the two files is not there.
        RerankerUnusable: the folder cannot be read.
    """
    if not folder.is_dir():
        raise RerankerMissing(folder)
    for name in (GRAPH_FILE, TOKENIZER_FILE):
        if not (folder / name).is_file():
            raise RerankerMissing(folder / name)
    try:
        files = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    except OSError as error:
        raise RerankerUnusable(folder, f"it cannot be read: {error}") from error
    return tuple((name, found.st_ino, found.st_size, found.st_ctime_ns) for name, found in files)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]
