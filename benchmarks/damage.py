"""
Damage to the files of model and index, and whether a start finds it: ``python -m benchmarks.damage``.

Each time one file is changed, cut or gone. The start has to be refused; or, where the damage is of no consequence, all
questions have to be answered as from the whole files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.machine import describe_machine
from benchmarks.service import golden_questions
from rag.builds import CURRENT_FILE, current_build
from rag.errors import RagError
from rag.serving.engine import Engine
from rag.serving.streaming import last_answer
from rag.settings import Settings, parse_settings

QUESTIONS = 12
REFUSED, HARMLESS, HARMFUL = "refused", "harmless", "HARMFUL"
VARYING = ("request_id", "timings_ms")


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to one file, named by its path below ``model`` or ``index``."""

    kind: str
    """``flip``, ``cut`` or ``missing``."""
    name: str
    at: int = 0
    """The byte whose lowest bit changes, or the length that is left."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + ("" if self.kind == "missing" else f" at {self.at}")


class Copy:
    """A model and an index of which one file at a time is damaged; the real ones stay as they are."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        build = current_build(settings.index_dir)
        self.folder = folder
        (folder / "model").mkdir()
        for path in settings.model_dir.iterdir():
            (folder / "model" / path.name).symlink_to(path.resolve())
        (folder / "index").mkdir()
        shutil.copyfile(settings.index_dir / CURRENT_FILE, folder / "index" / CURRENT_FILE)
        shutil.copytree(build, folder / "index" / build.name)
        self.settings = Settings(index_dir=folder / "index", model_dir=folder / "model", threads=settings.threads)

    def names(self) -> list[str]:
        """All files, in order."""
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return (self.folder / name).stat().st_size

    def verdict(self, damage: Damage, whole: Sequence[object]) -> tuple[str, str]:
        """What a start makes of the damage, and what it says; the file is as before afterwards."""
        path = self.folder / damage.name
        kept = path.with_name(f".kept-{path.name}")
        path.rename(kept)
        try:
            _write_damaged(damage, kept, path)
            try:
                found = answers(self.settings)
            except RagError as error:
                return REFUSED, str(error).splitlines()[0]
            return (HARMLESS, "") if found == whole else (HARMFUL, "other answers")
        finally:
            path.unlink(missing_ok=True)
            kept.rename(path)


def _write_damaged(damage: Damage, source: Path, path: Path) -> None:
    if damage.kind == "missing":
        return
    shutil.copyfile(source, path)
    with path.open("r+b") as file:
        if damage.kind == "cut":
            file.truncate(damage.at)
        else:
            file.seek(damage.at)
            byte = file.read(1)[0]
            file.seek(damage.at)
            file.write(bytes([byte ^ 1]))


def answers(settings: Settings) -> list[object]:
    """
    The answers of a service that starts with these files, less what differs from one to the next.

    Raises:
        RagError: it would not start.
    """
    engine = Engine(settings)
    engine.load()

    async def ask_all() -> list[object]:
        found: list[object] = []
        for question in golden_questions(QUESTIONS):
            answer = await last_answer(engine.answer(question, ["public"], top_k=None, request_id=""))
            found.append({name: value for name, value in asdict(answer).items() if name not in VARYING})
        return found

    return asyncio.run(ask_all())


def damages(copy: Copy, *, flips: int, cuts: int, missing: int, seed: int) -> Iterator[Damage]:
    """So many of each kind, every file in turn, at places that the seed chooses."""
    generator, names = random.Random(seed), copy.names()
    filled = [name for name in names if copy.size(name)]
    for number in range(flips):
        name = filled[number % len(filled)]
        yield Damage("flip", name, generator.randrange(copy.size(name)))
    for number in range(cuts):
        name = filled[number % len(filled)]
        yield Damage("cut", name, generator.randrange(copy.size(name)))
    for number in range(missing):
        yield Damage("missing", names[number % len(names)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if damage went unnoticed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damage", description=__doc__)
    parser.add_argument("--flips", type=int, default=500, help="files with one bit changed (default: 500)")
    parser.add_argument("--cuts", type=int, default=100, help="files cut short (default: 100)")
    parser.add_argument("--missing", type=int, default=20, help="files taken away (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the places (default: 1)")
    parser.add_argument("--json", action="store_true", help="print every damage and its verdict as JSON")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(parse_settings(os.environ), Path(folder))
        whole = answers(copy.settings)
        done = [
            (damage, *copy.verdict(damage, whole))
            for damage in damages(
                copy, flips=options.flips, cuts=options.cuts, missing=options.missing, seed=options.seed
            )
        ]
    counts = Counter((damage.kind, verdict) for damage, verdict, _ in done)
    if options.json:
        print(json.dumps([[str(damage), verdict, said] for damage, verdict, said in done], indent=1))
    else:
        print(describe_machine())
        for (kind, verdict), count in sorted(counts.items()):
            print(f"{kind}: {count} {verdict}")
        for damage in sorted({str(damage) for damage, verdict, _ in done if verdict != REFUSED}):
            print(f"not refused: {damage}")
    return int(any(verdict == HARMFUL for _, verdict, _ in done))


if __name__ == "__main__":
    sys.exit(main())
