"""What quantising and pruning the model cost and save: ``python -m benchmarks.model_forms``.

Every form is exported into a throw-away folder and measured in a process of its own. Texts: sentences of the example
cards as passages, and the golden questions as queries.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine
from rag.cards import read_cards
from rag.cases import read_beir
from rag.embedding import DATA_FILE, GRAPH_FILE, TOKENIZER_FILE, Embedder, ModelDescription
from rag.model_export import graph, vocabulary
from rag.model_export.package import packaged_weights
from rag.model_export.packed import read_packed
from rag.model_export.weights import Encoder
from rag.sentences import split_sentences

ROOT = Path(__file__).resolve().parent.parent
SHORT_TOKENS, LONG_TOKENS = (18, 26), (90, 140)
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write the model."""

    name: str
    vocabulary: str
    write: Callable[[Encoder, Path], None]


FORMS = (
    Form("float32", "es+en", graph.write_float_graph),
    Form("int8, 7 bits, per channel (default)", "es+en", graph.write_int8_graph),
    Form("int8, 8 bits, per channel", "es+en", lambda e, d: graph.write_int8_graph(e, d, seven_bits=False)),
    Form("int8, 7 bits, per tensor", "es+en", lambda e, d: graph.write_int8_graph(e, d, per_channel=False)),
    Form("int8, 7 bits, per channel", "full", graph.write_int8_graph),
    Form("float32", "full", graph.write_float_graph),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, or, with ``--measure``, the child that measures one form."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_forms", description=__doc__)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, default=Path(".cache/model"), help="where the weights are kept")
    parser.add_argument(
        "--beir", type=Path, nargs="+", default=[], metavar="DIR", help="count tokens of these sets too"
    )
    parser.add_argument("--tokens-only", action="store_true", help="measure no form")
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(_measure(options.measure)))
        return 0
    full = read_packed(packaged_weights(ROOT / "requirements-model.txt", options.cache))
    kept = vocabulary.pieces_in_use(full.tokenizer, vocabulary.frequent_words())
    encoders = {"full": full, "es+en": vocabulary.prune(full, kept)}
    texts = _passages() + _questions()
    print(describe_machine())
    print(f"{len(texts)} texts; pieces kept: {len(kept):,} of {len(full.tokenizer['model']['vocab']):,}")
    for name, of_set in [("cards and questions", texts), *((path.name, _beir_texts(path)) for path in options.beir)]:
        equal, total = vocabulary.share_of_equal_tokens(full.tokenizer, encoders["es+en"].tokenizer, of_set)
        print(f"tokens equal to the full tokenizer's: {100 * equal / total:.2f} % of {total:,} ({name})")
    if options.tokens_only:
        return 0
    print(
        f"{'form':36} {'vocabulary':10} {'files':>7} {'memory':>7} {'short':>8} {'long':>8} {'cosine':>12} {'least':>7}"
    )
    reference: np.ndarray | None = None
    for form in FORMS:
        with tempfile.TemporaryDirectory(prefix="fichero-forms-") as work:
            found = _export_and_measure(form, encoders[form.vocabulary], Path(work))
        vectors = np.array(found["vectors"], np.float32)
        reference = vectors if reference is None else reference
        cosines = np.sum(vectors * reference, axis=1)
        print(
            f"{form.name:36} {form.vocabulary:10} {found['files_mb']:4.0f} MB {found['memory_mb']:4.0f} MB "
            f"{found['short_ms']:5.1f} ms {found['long_ms']:5.1f} ms {cosines.mean():12.4f} {cosines.min():7.4f}",
            flush=True,
        )
    return 0


def _export_and_measure(form: Form, encoder: Encoder, model_dir: Path) -> dict[str, Any]:
    form.write(encoder, model_dir)
    (model_dir / TOKENIZER_FILE).write_text(json.dumps(encoder.tokenizer, ensure_ascii=False), "utf-8")
    command = [sys.executable, "-m", "benchmarks.model_forms", "--measure", str(model_dir)]
    found: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    names = (GRAPH_FILE, DATA_FILE, TOKENIZER_FILE)
    found["files_mb"] = sum((model_dir / name).stat().st_size for name in names) / 1e6
    return found


def _measure(model_dir: Path) -> dict[str, Any]:
    passages, questions = _passages(), _questions()
    before = _private_mb()
    embedder = Embedder(model_dir, _description(), threads=2)
    vectors = [embedder.embed_passages(passages), np.array([embedder.embed_query(text) for text in questions])]
    memory = _private_mb() - before
    sized = [(embedder.token_count(text), text) for text in passages + _paragraphs()]
    return {
        "vectors": np.concatenate(vectors).tolist(),
        "memory_mb": memory,
        "short_ms": _median_ms(embedder, [text for size, text in sized if SHORT_TOKENS[0] <= size <= SHORT_TOKENS[1]]),
        "long_ms": _median_ms(embedder, [text for size, text in sized if LONG_TOKENS[0] <= size <= LONG_TOKENS[1]]),
    }


def _median_ms(embedder: Embedder, texts: Sequence[str]) -> float:
    times: list[float] = []
    for text in list(texts[:20]) * REPEATS:
        started = time.perf_counter()
        embedder.embed_passages([text])
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times)


def _description() -> ModelDescription:
    return ModelDescription("measured", 384, "query: ", "passage: ", "mean", 512, {}, ())


def _passages() -> list[str]:
    cards = read_cards(ROOT / "cards").cards
    return [sentence.text for card in cards for sentence in split_sentences(card.text)[::3]]


def _paragraphs() -> list[str]:
    return [part for card in read_cards(ROOT / "cards").cards for part in card.text.split("\n\n")]


def _questions() -> list[str]:
    return [
        json.loads(line)["question"]
        for path in sorted((ROOT / "tests" / "golden").glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]


def _beir_texts(folder: Path) -> list[str]:
    cards, cases = read_beir(folder)
    return [card.text for card in cards] + [case.question for case in cases]


def _private_mb() -> float:
    lines = Path("/proc/self/smaps_rollup").read_text("utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main())
