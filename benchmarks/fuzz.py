"""Texts that find new ways through the card reader or the marker scanner: ``python -m benchmarks.fuzz TARGET``."""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from rag.cards import read_cards
from rag.cards.hidden import find_hidden
from rag.markers import MarkerScanner, without_markers

ROOT = Path(__file__).resolve().parent.parent
CRASHES_DIR = ROOT / ".cache" / "crashes"
MOST_BYTES = 400
SIGNS = (
    *(
        b"---\n",
        b"\n",
        b": ",
        b"- ",
        b"[",
        b"]",
        b'"',
        b"'",
        b"#",
        b"|\n",
        b"&a",
        b"*a",
        b"!!",
        b"\xff",
        b"\x00",
        b"\xef\xbb\xbf",
    ),
    *(
        b"title: ",
        b"id: ",
        b"acl: ",
        b"language: es\n",
        b"questions:\n  - ",
        b"<!--",
        b"-->",
        b"```",
        b"\\u202e",
        b"\r",
    ),
    *(
        b"[cite:",
        b"[cite:a]",
        b"](",
        b")",
        b"\xe2\x80\x8b",
        b"&#91;",
        "［".encode(),
        "с".encode(),
        b"cite",
        b":",
        b"a, b",
    ),
)
Target = Callable[[bytes], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz for so many seconds; 1 if anything raised, with what it was kept and named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    tried, ways, crashes = fuzz(TARGETS[given.target], seconds=given.seconds, seed=given.seed)
    print(f"{tried:,} texts, {ways:,} ways through, {len(crashes)} crashes")
    for said, content in crashes.items():
        CRASHES_DIR.mkdir(parents=True, exist_ok=True)
        path = CRASHES_DIR / f"{given.target}-{hashlib.sha256(content).hexdigest()[:12]}"
        path.write_bytes(content)
        print(f"{said}: {path.relative_to(ROOT)}, {content[:200]!r}")
    return 1 if crashes else 0


def fuzz(target: Target, *, seconds: float, seed: int = 1) -> tuple[int, int, Mapping[str, bytes]]:
    """Texts tried, steps from line to line that were seen, and the first text for each way to fail."""
    chance, end = random.Random(seed), time.monotonic() + seconds
    kept: list[bytes] = [b"---\ntitle: A\nlanguage: es\n---\n\nUno [cite:a].\n", b""]
    seen: set[tuple[str, int, int]] = set()
    crashes: dict[str, bytes] = {}
    tried = 0
    while time.monotonic() < end:
        content = _changed(chance, kept)
        steps, failure = _run(target, content)
        tried += 1
        if failure:
            crashes.setdefault(failure, content)
        if not steps <= seen:
            seen |= steps
            kept.append(content)
    return tried, len(seen), crashes


def _run(target: Target, content: bytes) -> tuple[set[tuple[str, int, int]], str | None]:
    """The steps from line to line that a text takes in rag/, and how it failed."""
    steps: set[tuple[str, int, int]] = set()
    before: dict[int, int] = {}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if "/rag/" not in name:
            return None
        if event == "line":
            steps.add((name, before.get(id(frame), 0), frame.f_lineno))
            before[id(frame)] = frame.f_lineno
        return trace

    sys.settrace(trace)
    try:
        target(content)
    except Exception as error:
        return steps, f"{type(error).__name__}: {str(error)[:100]}"
    finally:
        sys.settrace(None)
    return steps, None


def _changed(chance: random.Random, kept: Sequence[bytes]) -> bytes:
    content = bytearray(chance.choice(kept))
    for _ in range(chance.randint(1, 5)):
        start = chance.randint(0, len(content))
        stop = min(len(content), start + chance.randint(0, 12))
        other = chance.choice(kept)
        cut = chance.randint(0, len(other))
        piece = chance.choice(
            (b"", chance.choice(SIGNS), chance.choice(SIGNS) * 3, other[cut : cut + 40], chance.randbytes(1))
        )
        content[start : chance.choice((start, stop))] = piece
    return bytes(content[:MOST_BYTES])


def read_card(content: bytes) -> None:
    """A file that is a card, or whose faults are named: nothing is raised."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.md").write_bytes(content)
        read_cards(Path(folder))
    find_hidden("a.md", content.decode("utf-8", "replace"))


def scan_markers(content: bytes) -> None:
    """A text in pieces gives what the whole gives, and none of it is a marker any more."""
    text = content.decode("utf-8", "surrogateescape")
    whole, pieces = MarkerScanner(), MarkerScanner()
    expected = [*whole.feed(text), *whole.finish()]
    found = [token for letter in text for token in pieces.feed(letter)] + pieces.finish()
    markers = [[token for token in tokens if not isinstance(token, str)] for tokens in (expected, found)]
    texts = ["".join(token for token in tokens if isinstance(token, str)) for tokens in (expected, found)]
    if markers[0] != markers[1] or texts[0] != texts[1]:
        raise AssertionError("pieces differ from the whole")
    cleaned = without_markers(text)
    if without_markers(cleaned) != cleaned:
        raise AssertionError("a marker is left")


TARGETS: Mapping[str, Target] = {"cards": read_card, "markers": scan_markers}


if __name__ == "__main__":
    sys.exit(main())
