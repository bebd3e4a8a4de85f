"""A builder is killed, and what is left is judged."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from benchmarks.boxes import (
    ROOT,
    Box,
    Cards,
    Dump,
    check_good,
    dump_in_use,
    ended,
    problems_in_use,
    problems_with_result,
)
from rag.indexing import CONTEXTS_FILE, VECTORS_FILE
from rag.manifest import OUTCOMES_FILE
from rag.vector_cache import VectorCache
from tests.fake_llm import Asked, FakeLlm, Reply, acceptable, says

CONCURRENCY = 4
ANYWHERE = "anywhere"
PHASES = ("starting", "contexts", "embedding", "writing", "verifying", "publishing")
CARD_COUNT = 5
_WAIT_SECONDS = (0.05, 0.5)
_POLL_SECONDS = 0.005
_SETTLE_SECONDS = 0.1
_ORPHANS_SECONDS = 60.0
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


class Witness:
    """A language model that answers each question in words of their own, and knows which were asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.answers: dict[bytes, str] = {}

    def __call__(self, asked: Asked) -> Reply:
        """Remember, and answer after a while that depends on the question alone."""
        digest = hashlib.sha256(asked.raw).hexdigest()
        answer = json.loads(acceptable(asked).raw)["choices"][0]["message"]["content"]
        # letters, as a number would be taken for an invented one
        answer = f"{answer.removesuffix('.')} {digest[:12].translate(_LETTERS)}."
        self.answers[asked.raw] = answer
        self.asked.append(asked.raw)
        low, high = _WAIT_SECONDS
        return replace(says(answer), wait_seconds=low + (high - low) * int(digest[:4], 16) / 0xFFFF)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A build to kill: a box as it is before, and what it is after."""

    name: str
    box: Box
    before: Dump | None
    after: Dump
    seconds: Mapping[str, float]
    """How long each phase of a clean build takes."""


@dataclass(frozen=True, slots=True)
class Aim:
    """When and what to kill."""

    phase: str
    """Wait for this to begin; ``ANYWHERE`` is the whole build."""
    share: float
    """So much of it has passed, 0 to 1."""
    with_children: bool


@dataclass(slots=True)
class Trial:
    """What came of the kills in one box."""

    phases: list[str] = field(default_factory=list)
    """In which each kill came; none where the builder was quicker."""
    asked_again: int = 0
    problems: list[str] = field(default_factory=list)


class KillLoop:
    """Boxes in a folder, and the model that their builders ask."""

    def __init__(self, folder: Path, llm: FakeLlm, witness: Witness, *, vectors: Path) -> None:
        """Each box begins with the cache ``vectors``, such as ``write_reference_vectors`` makes."""
        self._folder = folder
        self._vectors = vectors
        self._witness = witness
        self._environment = {
            "FICHERO_CONTEXT": "llm",
            "FICHERO_LLM_BASE_URL": llm.url,
            "FICHERO_LLM_MODEL": "fake",
            "FICHERO_LLM_CONCURRENCY": str(CONCURRENCY),
            # whatever is made of its answers, they are kept
            "FICHERO_CONTEXT_COVERAGE": "0",
        }
        self._count = 0

    def scenarios(self, names: Sequence[str] = ()) -> Iterator[Scenario]:
        """Each with its clean build, made in a fresh folder; all of them, or those named."""
        states = _states()
        used, seconds = self._clean("before", states["new"])
        before = dump_in_use(used)
        for name in names or states:
            if name == "new":
                box = self._fresh("new", states["new"])
                yield Scenario(name, box, None, before, seconds)
                continue
            clean, taken = self._clean(f"{name}-clean", states[name])
            box = used.copy_to(self._folder / name)
            box.write(states[name])
            yield Scenario(name, box, before, dump_in_use(clean), taken)

    def run(self, scenario: Scenario, aims: Sequence[Aim], *, reopen: bool = True) -> Trial:
        """
        Kill the builder as often as there are aims, then let it end; look after each.

        Unless an index is to be opened after each kill, it will do that its files are letter by letter as before.
        """
        self._count += 1
        box = scenario.box.copy_to(self._folder / f"run-{self._count}")
        trial, earlier = Trial(), set[bytes]()
        known = {dump.build_id: dump for dump in (scenario.before, scenario.after) if dump}
        groups: list[int] = []
        for aim in aims:
            kept, start = _kept_answers(box), len(self._witness.asked)
            process, phase = self._kill(scenario, box, aim)
            groups.append(process)
            if phase is None:
                break
            trial.phases.append(phase)
            time.sleep(_SETTLE_SECONDS)
            if reopen or (box.current, box.files_in_use()) != (scenario.box.current, scenario.box.files_in_use()):
                trial.problems += problems_in_use(box, known)
            self._count_calls(trial, kept, earlier, start)
        kept, start = _kept_answers(box), len(self._witness.asked)
        rerun = box.build(self._environment)
        if rerun.status != 0:
            trial.problems.append(f"a rerun ends with {rerun.status}: {rerun.errors}")
        self._count_calls(trial, kept, earlier, start)
        trial.problems += [f"process group {group} lives on" for group in groups if not _gone(group)]
        trial.problems += problems_with_result(box, scenario.after)
        shutil.rmtree(box.folder)
        return trial

    def _fresh(self, name: str, cards: Cards) -> Box:
        box = Box(self._folder / name)
        box.write(cards)
        box.take_vectors(self._vectors)
        return box

    def _clean(self, name: str, cards: Cards) -> tuple[Box, dict[str, float]]:
        """A clean build in a fresh folder, and how long its phases took."""
        box = self._fresh(name, cards)
        began: dict[str, float] = {}
        start = len(self._witness.asked)
        with box.start(self._environment) as process:
            while process.poll() is None:
                began.setdefault(self._stage(box, process.pid, None, start), time.monotonic())
                time.sleep(_POLL_SECONDS)
            began["end"] = time.monotonic()
            check_good(ended(process))
        times = list(began.items())
        seconds = {name: after - at for (name, at), (_, after) in pairwise(times)}
        return box, {ANYWHERE: sum(seconds.values()), **seconds}

    def _kill(self, scenario: Scenario, box: Box, aim: Aim) -> tuple[int, str | None]:
        """Start the builder and kill it; gives its process group, and the phase, None if it had ended before."""
        current, start = box.current, len(self._witness.asked)
        phase, began = PHASES[0], False
        with box.start(self._environment) as process:
            end = float("inf")
            while process.poll() is None and time.monotonic() < end:
                phase = max(phase, self._stage(box, process.pid, current, start), key=PHASES.index)
                if not began and (aim.phase == ANYWHERE or PHASES.index(phase) >= PHASES.index(aim.phase)):
                    began = True
                    end = time.monotonic() + aim.share * scenario.seconds.get(aim.phase, 0.1)
                time.sleep(_POLL_SECONDS)
            if process.poll() is not None:
                return process.pid, None
            phase = max(phase, self._stage(box, process.pid, current, start), key=PHASES.index)
            if aim.with_children:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            # its children may hold the other end
            assert process.stderr is not None
            process.stderr.close()
        if phase in ("embedding", "writing"):
            phase = "writing" if _all_embedded(box, scenario.after) else "embedding"
        return process.pid, phase

    def _stage(self, box: Box, process: int, current: str | None, start: int) -> str:
        """The phase of a running builder, as far as its files and calls tell."""
        draft = next(box.index_dir.glob(f".draft-*-{process}"), None)
        if box.current != current or (draft and (draft / OUTCOMES_FILE).exists()):
            return "publishing"
        if draft is None:
            return "contexts" if len(self._witness.asked) > start else "starting"
        if (draft / "manifest.json").exists():
            return "verifying"
        return "writing" if (draft / "chroma").exists() else "embedding"

    def _count_calls(self, trial: Trial, kept: set[str], earlier: set[bytes], start: int) -> None:
        """Hold the calls since ``start`` against the answers kept before them, and against the calls before."""
        calls = Counter(self._witness.asked[start:])
        twice = sum(count > 1 for count in calls.values())
        paid = sum(self._witness.answers[raw] in kept for raw in calls)
        again = sum(raw in earlier for raw in calls)
        earlier |= set(calls)
        trial.asked_again += again
        if twice:
            trial.problems.append(f"{twice} chunks were asked twice in one run")
        if paid:
            trial.problems.append(f"{paid} chunks were asked though their answers were kept")
        if trial.asked_again > CONCURRENCY * len(trial.phases):
            trial.problems.append(f"{again} chunks were asked again, and {CONCURRENCY} calls are made at a time")


def _states() -> dict[str, Cards]:
    """A box as it is before, under ``new``, and after each kind of change."""
    paths = sorted((ROOT / "cards" / "es").glob("*.md"))[:CARD_COUNT]
    cards = {path.stem: path.read_text("utf-8") for path in paths}
    first, second, third, fourth, *_ = cards
    changed = {name: text.replace(". ", ", como siempre. ") for name, text in cards.items()}
    renamed = {name: text for name, text in cards.items() if name != third}
    return {
        "new": cards,
        "changed": changed,
        "edited": {**cards, first: changed[first]},
        "deleted": {name: text for name, text in cards.items() if name != second},
        "renamed": {**renamed, "otro-nombre": cards[third].replace(f"id: {third}\n", "id: otro-nombre\n")},
        "access": {**cards, fourth: cards[fourth].replace("title:", "acl: [public, staff]\ntitle:", 1)},
    }


def _kept_answers(box: Box) -> set[str]:
    """What the cache of contexts holds; a copy is opened, as opening tidies up."""
    path = box.index_dir / CONTEXTS_FILE
    with tempfile.TemporaryDirectory() as work:
        copy = _copy_database(path, Path(work))
        if copy is None:
            return set()
        connection = sqlite3.connect(copy)
        try:
            return {text for (text,) in connection.execute("SELECT text FROM answers")}
        except sqlite3.OperationalError:
            # killed before there was a table
            return set()
        finally:
            connection.close()


def _all_embedded(box: Box, after: Dump) -> bool:
    """Whether the cache of vectors holds all rows of a build."""
    texts = [row.text_indexed for row in after.rows]
    with tempfile.TemporaryDirectory() as work:
        copy = _copy_database(box.index_dir / VECTORS_FILE, Path(work))
        if copy is None:
            return False
        with VectorCache(copy, model_fingerprint=after.manifest.model_fingerprint) as cache:
            return len(cache.get(texts)) == len(set(texts))


def _copy_database(path: Path, folder: Path) -> Path | None:
    """Copy an SQLite file with its log."""
    if not path.exists():
        return None
    for name in (path.name, f"{path.name}-wal"):
        if path.with_name(name).exists():
            shutil.copyfile(path.with_name(name), folder / name)
    return folder / path.name


def _gone(group: int) -> bool:
    """Wait until no process of a group is left; False if one stays."""
    end = time.monotonic() + _ORPHANS_SECONDS
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
