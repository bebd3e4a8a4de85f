"""What a cross-encoder would cost: ``python -m benchmarks.reranking``.

Its weights are random, as time and memory do not depend on them: 6 layers of width 384, with the vocabulary of the
embedding model. Pairs: golden questions with the ten cards that the service ranks best. Each form is measured in a
process of its own, which has the embedding model loaded, as the service has.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.machine import describe_machine
from rag.cases import read_golden_dir
from rag.embedding import load_embedder
from rag.model_export import graph
from rag.model_export.weights import LINEAR_NAMES, NORM_NAMES, Encoder, EncoderConfig, Float32
from rag.opening import open_index
from rag.records import PUBLIC_GROUP
from rag.reranking import GRAPH_FILE, LOGITS, TOKENIZER_FILE, load_reranker
from rag.retrieval import RERANK_CARDS, reranked_text, retrieve
from rag.settings import Settings, parse_settings

ROOT = Path(__file__).resolve().parent.parent
MINILM = EncoderConfig(hidden=384, layers=6, heads=12, feed_forward=1536, positions=512, layer_norm_epsilon=1e-12)
FORMS: Mapping[str, Callable[[Encoder, Path], None]] = {
    "float32": graph.write_float_graph,
    "int8, 7 bits": graph.write_int8_graph,
}
WARM_UP = 3
"""Questions at the beginning that are not counted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, or, with ``--measure``, the child that measures one form."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reranking", description=__doc__)
    parser.add_argument("--questions", type=int, default=60, help="asked of each form (default: 60)")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    settings = parse_settings(os.environ)
    if options.measure:
        print(json.dumps(_measure(options.measure, json.load(sys.stdin), settings)))
        return 0
    pairs = _pairs(settings, options.questions)
    encoder = _random_encoder(json.loads((settings.model_dir / TOKENIZER_FILE).read_text("utf-8")))
    print(describe_machine())
    print(f"{len(pairs) - WARM_UP} questions, {RERANK_CARDS} pairs each; {settings.threads} threads")
    print(f"{'form':14} {'files':>7} {'memory':>8} {'tokens':>7} {'p50':>9} {'p95':>9} {'embedding':>10} {'ratio':>6}")
    for name, write in FORMS.items():
        with tempfile.TemporaryDirectory(prefix="fichero-reranking-") as work:
            _export(write, encoder, Path(work))
            found = _measure_apart(Path(work), pairs)
            files_mb = sum(path.stat().st_size for path in Path(work).iterdir()) / 1e6
        print(
            f"{name:14} {files_mb:4.0f} MB {found['memory_mb']:+5.0f} MB {found['tokens']:7.0f} {found['p50']:6.1f} ms "
            f"{found['p95']:6.1f} ms {found['embedding']:7.1f} ms {found['p50'] / found['embedding']:6.1f}",
            flush=True,
        )
    return 0


def _pairs(settings: Settings, count: int) -> list[tuple[str, list[str]]]:
    """Golden questions, from all over the set, each with what a reranker sees of the best cards."""
    embedder = load_embedder(settings.model_dir, threads=settings.threads)
    index = open_index(settings.index_dir, embedder.description)
    questions = [case.question for case in read_golden_dir(settings.golden_dir).cases if case.grades]
    chosen = questions[:: max(1, len(questions) // (count + WARM_UP))][: count + WARM_UP]
    found = [
        retrieve(question, (PUBLIC_GROUP,), index=index, embedder=embedder, top_k=RERANK_CARDS) for question in chosen
    ]
    texts = [[reranked_text(passage) for passage in each.passages] for each in found]
    return list(zip(chosen, texts, strict=True))


def _random_encoder(tokenizer: dict[str, Any]) -> Encoder:
    random = np.random.default_rng(0)

    def weights(*shape: int) -> Float32:
        return random.standard_normal(shape, dtype=np.float32) * np.float32(0.02)

    width, wide = MINILM.hidden, MINILM.feed_forward
    tensors = {
        "word": weights(len(tokenizer["model"]["vocab"]), width),
        "position": weights(MINILM.positions, width),
        "type": weights(width),
    }
    for layer in range(MINILM.layers):
        for name in LINEAR_NAMES:
            rows, columns = (wide if name == "feed_in" else width), (wide if name == "feed_out" else width)
            tensors |= {f"{layer}.{name}.weight": weights(rows, columns), f"{layer}.{name}.bias": weights(rows)}
    for norm in ("norm", *(f"{layer}.{name}" for layer in range(MINILM.layers) for name in NORM_NAMES)):
        tensors |= {f"{norm}.weight": np.ones(width, np.float32), f"{norm}.bias": np.zeros(width, np.float32)}
    return Encoder(MINILM, tensors, tokenizer)


def _export(write: Callable[[Encoder, Path], None], encoder: Encoder, folder: Path) -> None:
    """Write an encoder with one logit on its vector, in two files as common tools do."""
    write(encoder, folder)
    model = onnx.load(folder / graph.GRAPH_FILE)
    head = np.ones((MINILM.hidden, 1), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(head, "head"))
    model.graph.node.append(helper.make_node("MatMul", [graph.SENTENCE_VECTOR, "head"], [LOGITS]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, ["batch", 1]))
    (folder / graph.DATA_FILE).unlink()
    onnx.save_model(model, folder / GRAPH_FILE)
    (folder / TOKENIZER_FILE).write_text(json.dumps(encoder.tokenizer, ensure_ascii=False), "utf-8")


def _measure_apart(folder: Path, pairs: Sequence[tuple[str, list[str]]]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.reranking", "--measure", str(folder)]
    done = subprocess.run(command, cwd=ROOT, check=True, input=json.dumps(pairs).encode(), stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure(folder: Path, pairs: Sequence[tuple[str, list[str]]], settings: Settings) -> dict[str, float]:
    """Question by question, the embedding of one and then its ten pairs, so that both meet the same machine."""
    embedder = load_embedder(settings.model_dir, threads=settings.threads)
    for question, _ in pairs:
        embedder.embed_query(question)
    before = _resident_mb()
    reranker = load_reranker(folder, threads=settings.threads)
    embedding, reranking = [], []
    for question, texts in pairs:
        embedding.append(_milliseconds(partial(embedder.embed_query, question)))
        reranking.append(_milliseconds(partial(reranker.score, question, texts)))
    # the vocabulary is the embedding model's
    tokens = [embedder.token_count(f"{question} {text}") for question, texts in pairs for text in texts]
    return {
        "memory_mb": _resident_mb() - before,
        "tokens": statistics.median(tokens),
        "p50": statistics.median(reranking[WARM_UP:]),
        "p95": float(np.percentile(reranking[WARM_UP:], 95)),
        "embedding": statistics.median(embedding[WARM_UP:]),
    }


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def _resident_mb() -> float:
    lines = Path("/proc/self/smaps_rollup").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:")) * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main())
