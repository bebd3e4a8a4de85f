"""Memory and speed of the builder: ``python -m benchmarks.building``.

A big box is made of invented cards, each of which stands in it several times under other ids: the model is paid for the
distinct ones only, and everything else - reading, cutting, cache, store, verification - works through all of them. The
rate is measured on the distinct cards, against the bare ONNX session on the same texts, in turns.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from benchmarks.machine import describe_machine
from rag.cards import read_cards
from rag.embedding import GRAPH_FILE, TOKENIZER_FILE, read_description
from rag.indexing import Builder, BuildOptions
from rag.indexing.preparing import prepare
from rag.settings import Settings, parse_settings

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_SECONDS = 0.2
_SENTENCES_A_PARAGRAPH, _PARAGRAPHS = 3, 4
_WHO = "la consulta,el centro,la farmacia,el servicio,la oficina,el taller,la biblioteca,el archivo,el museo".split(",")
_DOES = "atiende,entrega,revisa,guarda,anota,devuelve,prepara,explica,recoge,comprueba,renueva,registra".split(",")
_WHAT = "las solicitudes,los formularios,los envases,las llaves,los avisos,las recetas,los carnés,las actas".split(",")
_WHEN = "por la mañana,los martes,antes de las doce,con cita previa,cada dos semanas,al cierre,en verano".split(",")
_HOW = "sin coste,con un justificante,en el mostrador,por teléfono,con la tarjeta,en sobre cerrado".split(",")


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that a build took at one moment, in MB."""

    together: float
    """Resident memory of the builder and all its children, shared pages counted once for each."""
    largest: float
    """Of one process."""


def write_box(folder: Path, *, cards: int, distinct: int, seed: int = 1) -> None:
    """Write so many cards of about 1,000 characters, ``distinct`` texts among them."""
    chance = random.Random(seed)
    texts = [_card(chance, number) for number in range(min(distinct, cards))]
    for number in range(cards):
        (folder / f"c{number:06d}.md").write_text(texts[number % len(texts)], "utf-8")


def _card(chance: random.Random, number: int) -> str:
    paragraphs = [" ".join(_sentence(chance) for _ in range(_SENTENCES_A_PARAGRAPH)) for _ in range(_PARAGRAPHS)]
    body = "\n\n".join(f"## Apartado {count}\n\n{text}" for count, text in enumerate(paragraphs, start=1))
    return f"---\ntitle: Aviso {number}\ntopics: [avisos]\n---\n\n{body}\n"


def _sentence(chance: random.Random) -> str:
    who, does, what, when, how = (chance.choice(words) for words in (_WHO, _DOES, _WHAT, _WHEN, _HOW))
    return f"{who.capitalize()} {does} {what} {when} {how}, número {chance.randrange(1_000)}."


def question_about(seed: int) -> str:
    """A question that such a card can answer."""
    chance = random.Random(seed)
    does, what, when, how = (chance.choice(words) for words in (_DOES, _WHAT, _WHEN, _HOW))
    return f"¿Quién {does} {what} {when} {how}?"


def measure_build(cards_dir: Path, index_dir: Path) -> tuple[Peak, float, str]:
    """Run the builder's command; its peak, seconds and last lines."""
    command = [sys.executable, "build_index.py", "--cards", str(cards_dir), "--index", str(index_dir)]
    started = time.monotonic()
    together = largest = 0.0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            sizes = [_resident_mb(pid) for pid in _tree(process.pid)]
            together, largest = max(together, sum(sizes)), max(largest, *sizes, 0.0)
            time.sleep(SAMPLE_SECONDS)
        said = process.stdout.read() if process.stdout else ""
    if process.returncode != 0:
        raise SystemExit(f"the build ended with {process.returncode}")
    return Peak(together, largest), time.monotonic() - started, said


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def builder_rate(cards_dir: Path, settings: Settings, options: BuildOptions) -> tuple[float, int]:
    """Texts a second from the first card read to the last one written, with an empty cache; and how many texts."""
    times: list[float] = []

    def note(what: str, done: int, total: int) -> None:
        if what == "Cards":
            times.append(time.perf_counter())

    with tempfile.TemporaryDirectory(prefix="fichero-building-") as work:
        builder = Builder(Path(work), settings.model_dir, options, settings.threads, note)
        report = builder.build(read_cards(cards_dir).cards)
    return report.embedded / (times[-1] - times[0]), report.embedded


def bare_rate(texts: Sequence[str], settings: Settings) -> float:
    """Texts a second of the ONNX session alone, tokens ready, as many texts side by side as the builder has."""
    description = read_description(settings.model_dir)
    tokenizer = Tokenizer.from_file(str(settings.model_dir / TOKENIZER_FILE))
    tokenizer.enable_truncation(description.token_limit)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(settings.model_dir / GRAPH_FILE), options, providers=["CPUExecutionProvider"]
    )
    ids = [np.array([tokenizer.encode(description.passage_prefix + text).ids], np.int64) for text in texts]
    started = time.perf_counter()
    with ThreadPoolExecutor(settings.threads) as pool:
        list(pool.map(lambda one: session.run(None, {"input_ids": one, "attention_mask": np.ones_like(one)}), ids))
    return len(texts) / (time.perf_counter() - started)


def measure_rates(settings: Settings, *, cards: int, turns: int) -> list[tuple[float, float]]:
    """Builder and bare session over the same texts, in turns, texts a second."""
    options = BuildOptions(settings.chunk_chars, settings.overlap_chars, "metadata")
    with tempfile.TemporaryDirectory(prefix="fichero-building-") as work:
        cards_dir = Path(work)
        write_box(cards_dir, cards=cards, distinct=cards)
        prepared = [prepare(card, options, lambda *_: {}) for card in read_cards(cards_dir).cards]
        texts = list(dict.fromkeys(text for one in prepared for text in one.texts))
        return [(builder_rate(cards_dir, settings, options)[0], bare_rate(texts, settings)) for _ in range(turns)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.building", description=__doc__)
    parser.add_argument("--cards", type=int, default=20_000, help="cards in the big box (default: %(default)s)")
    parser.add_argument("--distinct", type=int, default=400, help="different texts among them (default: %(default)s)")
    parser.add_argument(
        "--rate-cards", type=int, default=60, help="cards to measure the rate on (default: %(default)s)"
    )
    parser.add_argument("--turns", type=int, default=3, help="turns of the rate (default: %(default)s)")
    options = parser.parse_args(arguments)
    settings = parse_settings(os.environ)
    print(describe_machine())
    rates = measure_rates(settings, cards=options.rate_cards, turns=options.turns)
    for built, bare in rates:
        print(f"builder {built:.1f} texts/s, bare session {bare:.1f} texts/s: {built / bare:.2f}")
    print(f"median ratio {statistics.median(built / bare for built, bare in rates):.2f}")
    with tempfile.TemporaryDirectory(prefix="fichero-building-") as work:
        cards_dir, index_dir = Path(work) / "cards", Path(work) / "index"
        cards_dir.mkdir()
        write_box(cards_dir, cards=options.cards, distinct=options.distinct)
        for what in ("first build", "nothing changed"):
            peak, seconds, said = measure_build(cards_dir, index_dir)
            print(f"\n{what}, {options.cards} cards: {seconds:.0f} s, {peak.together:.0f} MB together, ", end="")
            print(f"{peak.largest:.0f} MB the largest process\n{said}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
