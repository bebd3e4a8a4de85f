"""One file operation of a build fails, and what is left is judged."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.boxes import (
    Box,
    Cards,
    Dump,
    Ended,
    check_good,
    dump_in_use,
    problems_with,
    problems_with_result,
)
from benchmarks.shim import Fault, Operation, Shim
from tests.fake_llm import FakeLlm

BEFORE: Cards = {
    "agua": "---\ntitle: Agua\n---\n\nBeba un vaso de agua con cada comprimido. Un sorbo no basta.\n",
    "luz": "---\ntitle: Luz\n---\n\nGuarde el frasco lejos de la luz.\n",
}
AFTER: Cards = {**BEFORE, "luz": "---\ntitle: Luz\n---\n\nGuarde el frasco en su caja, lejos de la luz.\n"}
MANY = 1_100
"""Rows; after a thousand, Chroma writes its graph to the disk."""
_FEW = 6
"""Operations of a kind on the graph's files, of thousands."""
_HOOK = "---\ntitle: Gancho {0}\n---\n"

_CHILD = "( by a child)?"
_GRAPH = r"(fopen|fwrite|fflush|fclose) index/{}/chroma/UUID/\w+\.bin by a child"
_GRAPH_FILE = re.compile(_GRAPH.format("draft"))
HARMLESS: Mapping[str, re.Pattern[str]] = {
    why: re.compile(pattern)
    for why, pattern in {
        "making a folder that is there already": f"mkdir index(/cache)?{_CHILD}",
        "trying out a folder for temporary files; the next one is taken": (
            "(open64|write|unlink) index/brief/probe by a child"
        ),
        "opening a file that is then opened in another mode": "open64 index/draft/reference.npz",
        "what SQLite tidies when it closes; the log stays, and is read when the file is opened again": (
            r"((pwrite64|fdatasync|ftruncate64) index/cache/\w+\.sqlite|fdatasync index/cache/\w+\.sqlite-wal|"
            rf"unlink index/cache/\w+\.sqlite-(wal|shm)){_CHILD}"
        ),
        "syncing a folder for SQLite, which does not insist; the builder syncs those of a build itself": (
            f"fdatasync index/cache{_CHILD}|fsync index/draft/chroma by a child"
        ),
        "Chroma's graph files, which it writes without looking; a fresh process read back every row": (
            _GRAPH.format("draft")
        ),
        "what Chroma writes into the copy that is read to verify a build": (
            rf"{_GRAPH.format('brief/brief')}|open64 index/brief/brief/chroma/chroma\.sqlite3 by a child"
        ),
    }.items()
}
"""Why a result does not feel that an operation fails, and which: the build may succeed, and then has to be whole."""

_LOG_OF_DATABASE = re.compile(r"(\w+\.sqlite3?)-\w+")
_FRESH = re.compile(r"\.(\w[\w.]*)\.\d+")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A build to break: a box as it is before, and what it is after."""

    name: str
    box: Box
    before: Dump | None
    after: Dump
    operations: Sequence[Operation]
    """Of the build as it should be."""
    breakable: Sequence[Operation]
    """Those of them that are to fail."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a fault."""

    kind: str | None
    """Of the first operation that failed; None where the build had no such operation."""
    status: int
    problems: list[str]


class Proof:
    """The scenarios, made in a folder, with a language model of their own for the contexts."""

    def __init__(self, folder: Path, library: Path, llm: FakeLlm, *, vectors: Path) -> None:
        """Each box begins with the cache ``vectors``, such as ``write_reference_vectors`` makes."""
        self._folder = folder
        self._vectors = vectors
        self._shim = Shim(library, folder / "shim")
        self._environment = {
            "FICHERO_CONTEXT": "llm",
            "FICHERO_LLM_BASE_URL": llm.url,
            "FICHERO_LLM_MODEL": "fake",
            # whatever is made of its answers, they are kept
            "FICHERO_CONTEXT_COVERAGE": "0",
        }
        self._count = 0

    def full(self) -> Scenario:
        """No index before it."""
        return self._scenario("full", self._box("empty", AFTER))

    def incremental(self, full: Scenario | None = None) -> Scenario:
        """One card of an index in use has changed; what has to come of it may be that of ``full``."""
        box = self._used("used", BEFORE, AFTER)
        return replace(full, box=box, before=dump_in_use(box)) if full else self._scenario("incremental", box)

    def graph(self) -> Scenario:
        """So many rows that Chroma writes its graph, of which a few operations of each kind are to fail."""
        many = {f"gancho-{number}": _HOOK.format(number) for number in range(MANY)}
        found = self._scenario("graph", self._used("many", many, {**many, **AFTER}))
        kinds: dict[str, list[Operation]] = {}
        for operation in found.operations:
            if _GRAPH_FILE.fullmatch(operation.kind):
                kinds.setdefault(operation.kind, []).append(operation)
        few = [one for alike in kinds.values() for one in alike[:: max(1, len(alike) // _FEW)]]
        return replace(found, breakable=few)

    def fail(self, scenario: Scenario, fault: Fault, *, recover: bool = True) -> Outcome:
        """Build with a fault, look at what is left, and, to ``recover``, build without one and look again."""
        self._count += 1
        box = scenario.box.copy_to(self._folder / f"run-{self._count}")
        try:
            self._shim.plan(box.folder, fault)
            try:
                ended = box.build(self._environment | self._shim.environment)
            except subprocess.TimeoutExpired:
                return Outcome(None, -1, ["the builder hangs"])
            failed = [operation for operation in self._shim.operations(ended.process) if operation.failed]
            problems = [*_problems_at_once(scenario, box, ended, failed)]
            if recover:
                again = box.build(self._environment)
                if again.status != 0:
                    problems.append(f"a run without faults ends with {again.status}: {again.errors}")
                problems += [f"a run without faults: {one}" for one in problems_with_result(box, scenario.after)]
            return Outcome(failed[0].kind if failed else None, ended.status, problems)
        finally:
            shutil.rmtree(box.folder)

    def _box(self, name: str, cards: Cards) -> Box:
        box = Box(self._folder / name)
        box.write(cards)
        box.take_vectors(self._vectors)
        return box

    def _used(self, name: str, before: Cards, after: Cards) -> Box:
        """A box with an index in use, and cards that have changed since."""
        box = self._box(name, before)
        check_good(box.build(self._environment))
        box.write(after)
        return box

    def _scenario(self, name: str, box: Box) -> Scenario:
        """Build as it should be: on a copy, for its operations, and from nothing, for what has to come of it."""
        copy = box.copy_to(self._folder / f"{name}-copy")
        self._shim.plan(copy.folder)
        ended = copy.build(self._environment | self._shim.environment)
        check_good(ended)
        before, after = None, copy
        if box.current:
            before, after = dump_in_use(box), box.copy_to(self._folder / f"{name}-clean")
            shutil.rmtree(after.index_dir)
            after.take_vectors(self._vectors)
            check_good(after.build(self._environment))
        operations = self._shim.operations(ended.process)
        return Scenario(name, box, before, dump_in_use(after), operations, operations)


def harmless(kind: str) -> str | None:
    """Why a build may succeed though an operation of this kind failed; None where it may not."""
    return next((why for why, pattern in HARMLESS.items() if pattern.fullmatch(kind)), None)


def _problems_at_once(scenario: Scenario, box: Box, ended: Ended, failed: Sequence[Operation]) -> Iterator[str]:
    in_use = box.current == f"{scenario.after.build_id}\n"
    if ended.status == 0:
        felt = sorted({operation.kind for operation in failed if not harmless(operation.kind)})
        if felt:
            yield f"the builder says that all is well, in spite of: {', '.join(felt)}"
        yield from problems_with_result(box, scenario.after)
        return
    if len(ended.errors) != 1:
        yield f"not one error but {len(ended.errors)}: {ended.errors}"
    said = " ".join(ended.errors)
    if not any(name in said for operation in failed for name in _names(box, operation)):
        yield f"the error names no file that failed: {said}"
    if in_use != ("is in use" in said):
        yield f"the new build is {'' if in_use else 'not '}in use, but the error says: {said}"
    if not in_use:
        if box.current != scenario.box.current:
            yield f"CURRENT says {box.current!r}"
        if box.files_in_use() != scenario.box.files_in_use():
            yield "the build in use has changed"
    known = {dump.build_id: dump for dump in (scenario.before, scenario.after) if dump}
    for build_dir in sorted(path.parent for path in box.index_dir.glob("[!.]*/manifest.json")):
        # the one in use before is there letter by letter
        if scenario.before is None or build_dir.name != scenario.before.build_id or in_use:
            yield from problems_with(build_dir, known)


def _names(box: Box, failed: Operation) -> Iterator[str]:
    """What an error may call a file: by its own path, that of the file it belongs to, or that of a store's folder."""
    path = Path(failed.path)
    yield str(path)
    for pattern in (_LOG_OF_DATABASE, _FRESH):
        owner = pattern.fullmatch(path.name)
        if owner:
            yield str(path.with_name(owner[1]))
    parts = path.relative_to(box.folder.resolve()).parts
    for number, part in enumerate(parts[:-1], start=1):
        if part == "chroma" or part.startswith(("fichero-", ".chroma-")):
            yield str(box.folder.resolve().joinpath(*parts[:number]))
    if path.name.startswith("etilqs_"):
        # a file that is nowhere, which the store asks for and never mentions
        yield "/chroma could not be written"
    if _GRAPH_FILE.fullmatch(failed.kind):
        # the store tells nobody, so that all there is to see is what became of the rows
        yield "The new build does not verify"
