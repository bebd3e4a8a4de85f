"""What the image is made of and under which licences, as LICENCES.md: ``python -m benchmarks.licences``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from benchmarks.service import ROOT

REQUIREMENTS = ROOT / "requirements.txt"
PAGE = ROOT / "LICENCES.md"
_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", re.MULTILINE)
_LONGEST = 60
_HEAD = """# Licences

The project is under the [MIT licence](LICENSE). What an image built from it holds besides:

| part | licence |
|---|---|
| the embedding model, intfloat/multilingual-e5-small, exported and in 8 bits | MIT |
| the example cards in `cards/` | CC0-1.0 |
| Python, of the base image | PSF-2.0 |
| Debian's packages, of the base image | their own, in `/usr/share/doc/*/copyright` there |

and these packages, with the licences that they state themselves (`python -m benchmarks.licences` writes this page from
the installed ones; "not installed" are those for other systems):

| package | version | licence |
|---|---|---|
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    if arguments or sys.argv[1:]:
        print("This command takes no arguments; it writes LICENCES.md.", file=sys.stderr)
        return 2
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(pinned())} packages")
    return 0


def page() -> str:
    """The whole page."""
    rows = [f"| {name} | {version} | {stated_licence(name)} |\n" for name, version in pinned()]
    return _HEAD + "".join(rows)


def pinned() -> list[tuple[str, str]]:
    """Names and versions of all that the image installs, in order."""
    return _PINNED.findall(REQUIREMENTS.read_text("utf-8"))


def stated_licence(name: str) -> str:
    """What a package says of itself, in one short line."""
    try:
        found = metadata(name).json
    except PackageNotFoundError:
        return "not installed"
    candidates = [found.get("license_expression"), *_classifiers(found.get("classifier", []))]
    lines = str(found.get("license", "")).strip().splitlines()
    candidates += [line.strip() for line in lines[:1] if len(line) <= _LONGEST]
    return next((str(text) for text in candidates if text), "see its files")


def _classifiers(classifiers: Iterable[str]) -> Iterator[str]:
    for classifier in classifiers:
        kind, _, rest = classifier.partition(" :: ")
        if kind == "License":
            yield Path(rest.replace(" :: ", "/")).name


if __name__ == "__main__":
    sys.exit(main())
