"""Answers that a real language model writes, over the example cards: ``python -m benchmarks.llm_answers``.

A fixed sample of golden questions is asked of the real service, whole and as streams, one after another. All answers
are written to a folder, as ``answers.jsonl`` and to read as ``answers.md``; those that are there are not asked again.
A key for the endpoint comes from FICHERO_LLM_API_KEY. Needs an index: make ingest.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx

from benchmarks.llm_report import ANSWERABLE, NEAR_MISS, OFF_TOPIC, Written, outcome, readable, report
from benchmarks.machine import describe_machine
from benchmarks.service import ROOT, started_service
from rag.cases import Case, read_golden
from rag.records import PUBLIC_GROUP

GOLDEN_DIR = ROOT / "tests" / "golden"
MODES = ("whole", "stream")
UNANSWERABLE_SHARE = 0.2
"""Of all questions, near misses, and as many off topic."""
ANSWERS_FILE, READABLE_FILE = "answers.jsonl", "answers.md"

_CHECKED = re.compile(r'^fichero_citations_checked_total\{verdict="(\w+)"\} (\S+)$', re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _options(arguments)
    cases = sample(options.questions, options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / ANSWERS_FILE
    known = _known(path, options.model)
    print(describe_machine())
    counts = Counter(f"{kind} {case.language}" for kind, case in cases)
    print(f"{options.model}, {len(cases)} questions with seed {options.seed}: ", end="")
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    for kind, case in cases:
        print(f"    {kind} {case.language}: {case.question}")
    todo = [(mode, kind, case) for mode in options.modes for kind, case in cases if (mode, case.question) not in known]
    with path.open("a", encoding="utf-8") as out:
        for count, written in enumerate(_ask_all(todo, options), start=1):
            known[written.mode, written.question] = written
            out.write(json.dumps(asdict(written), ensure_ascii=False) + "\n")
            out.flush()
            said = f"{outcome(written)}, {written.total_seconds:.1f} s"
            print(f"{count}/{len(todo)} {written.mode} {written.kind} {written.language}: {said}", flush=True)
    for mode in options.modes:
        chosen = [known[mode, case.question] for _, case in cases]
        print("", mode, *report(chosen), sep="\n")
    (options.out / READABLE_FILE).write_text(readable(list(known.values())), "utf-8")
    print(f"\nAll answers: {path}; to read: {options.out / READABLE_FILE}")
    return 0


def sample(count: int, seed: int, golden_dir: Path = GOLDEN_DIR) -> list[tuple[str, Case]]:
    """
    Development cases that the public may ask, each with its kind, in an order that mixes the kinds.

    Three fifths can be answered, a fifth each are near misses and off topic; of each kind, half are Spanish and half
    English, as far as there are.
    """
    chance = random.Random(seed)
    answerable = read_golden(sorted(golden_dir.glob("cards-*.jsonl")))
    unanswerable = read_golden([golden_dir / "unanswerable.jsonl"])
    others = round(count * UNANSWERABLE_SHARE)
    chosen: list[tuple[str, Case]] = []
    for kind, wanted in ((ANSWERABLE, count - 2 * others), (NEAR_MISS, others), (OFF_TOPIC, others)):
        of_kind = answerable if kind == ANSWERABLE else [case for case in unanswerable if case.kind == kind]
        public = [case for case in of_kind if case.groups == (PUBLIC_GROUP,)]
        mixed = chance.sample(public, len(public))
        spanish, english = ([case for case in mixed if case.language == language] for language in ("es", "en"))
        few = spanish[: max(wanted - wanted // 2, wanted - len(english))]
        chosen += [(kind, case) for case in [*few, *english[: wanted - len(few)]]]
    return chance.sample(chosen, len(chosen))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.llm_answers", description=__doc__)
    parser.add_argument("--base-url", required=True, metavar="URL", help="of the endpoint, as FICHERO_LLM_BASE_URL")
    parser.add_argument("--model", required=True, metavar="NAME", help="as FICHERO_LLM_MODEL")
    parser.add_argument("--questions", type=int, default=60, help="in each mode (default: %(default)s)")
    parser.add_argument("--modes", type=_modes, default=MODES, help="whole, stream or both (default: whole,stream)")
    parser.add_argument(
        "--out", type=Path, default=Path("build/llm-answers"), metavar="DIR", help="(default: %(default)s)"
    )
    parser.add_argument("--first-byte-seconds", type=float, default=120.0, help="(default: %(default)s)")
    parser.add_argument("--total-seconds", type=float, default=240.0, help="(default: %(default)s)")
    parser.add_argument("--top-k", type=int, default=3, help="cards that the model is shown (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: %(default)s)")
    return parser.parse_args(arguments)


def _modes(text: str) -> tuple[str, ...]:
    modes = tuple(dict.fromkeys(text.split(",")))
    if not set(modes) <= set(MODES):
        raise argparse.ArgumentTypeError(f"it takes {' and '.join(MODES)}, set apart by a comma")
    return modes


def _known(path: Path, model: str) -> dict[tuple[str, str], Written]:
    """
    What was written before, by mode and question; the file is left without a line that was cut off.

    Raises:
        SystemExit: another model wrote it.
    """
    if not path.exists():
        return {}
    found: list[Written] = []
    for line in path.read_text("utf-8").splitlines():
        try:
            found.append(Written(**json.loads(line)))
        except ValueError:
            print(f"{path}: a line was cut off; its question is asked again")
    others = {written.model for written in found} - {model}
    if others:
        raise SystemExit(f"{path} holds answers of {', '.join(sorted(others))}; name another folder with --out.")
    lines = [json.dumps(asdict(written), ensure_ascii=False) + "\n" for written in found]
    path.write_text("".join(lines), "utf-8")
    return {(written.mode, written.question): written for written in found}


def _ask_all(todo: Sequence[tuple[str, str, Case]], options: argparse.Namespace) -> Iterator[Written]:
    if not todo:
        return
    changes = {
        "FICHERO_LLM_BASE_URL": options.base_url,
        "FICHERO_LLM_MODEL": options.model,
        "FICHERO_LLM_FIRST_BYTE_SECONDS": f"{options.first_byte_seconds:g}",
        "FICHERO_LLM_TOTAL_SECONDS": f"{options.total_seconds:g}",
        "FICHERO_TOP_K": str(options.top_k),
    }
    # the service ends by itself what takes too long
    with started_service(changes) as service, httpx.Client(base_url=service.url, timeout=None) as client:
        service.wait_until_ready()
        for mode, kind, case in todo:
            yield _ask(client, mode, kind, case, options.model)


def _ask(client: httpx.Client, mode: str, kind: str, case: Case, model: str) -> Written:
    before = _checked(client)
    started = time.perf_counter()
    first_delta_seconds, answer = (_ask_stream if mode == "stream" else _ask_whole)(client, case.question)
    total_seconds = time.perf_counter() - started
    checked = {verdict: count - before.get(verdict, 0) for verdict, count in _checked(client).items()}
    return Written(
        model=model,
        mode=mode,
        kind=kind,
        question=case.question,
        language=case.language,
        must_cite_one_of=sorted(case.grades),
        answer=answer,
        checked=checked,
        first_delta_seconds=first_delta_seconds,
        total_seconds=total_seconds,
    )


def _ask_whole(client: httpx.Client, question: str) -> tuple[None, dict[str, Any]]:
    response = client.post("/ask", json={"question": question})
    if response.status_code != 200:
        raise SystemExit(f"The service does not answer: {response.text}")
    return None, response.json()


def _ask_stream(client: httpx.Client, question: str) -> tuple[float | None, dict[str, Any]]:
    started, first_delta_seconds, name = time.perf_counter(), None, ""
    with client.stream("POST", "/ask", json={"question": question, "stream": True}) as response:
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data" and name == "delta" and first_delta_seconds is None:
                first_delta_seconds = time.perf_counter() - started
            elif field == "data" and name == "done":
                return first_delta_seconds, json.loads(value)
    raise SystemExit(f"The service broke off its answer to: {question}")


def _checked(client: httpx.Client) -> dict[str, int]:
    return {verdict: int(float(count)) for verdict, count in _CHECKED.findall(client.get("/metrics").text)}


if __name__ == "__main__":
    sys.exit(main())
