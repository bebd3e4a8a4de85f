"""
What each package of the service costs: its files, and what importing it alone takes in time and memory:
``python -m benchmarks.packages``.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution

from benchmarks.licences import pinned
from benchmarks.machine import describe_machine
from benchmarks.service import ROOT

SERVED = (
    "numpy", "onnxruntime", "tokenizers", "starlette.applications", "uvicorn", "httpx", "orjson", "prometheus_client",
    "Stemmer",
)  # fmt: skip
"""Modules that the service imports from packages, by its own statements."""
OF_BUILDER = ("chromadb", "chromadb_rust_bindings", "yaml", "tqdm", "pydantic")
SHOWN_MB = 0.2
TURNS = 3
_LEFT_OUT = re.compile(r"pip uninstall --yes ([^\\\n]*)")
_IMPORT = """import sys, time
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
before, started = resident(), time.perf_counter()
__import__(sys.argv[1])
print((time.perf_counter() - started) * 1e3, (resident() - before) / 1e3)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    argparse.ArgumentParser(prog="python -m benchmarks.packages", description=__doc__).parse_args(arguments)
    print(describe_machine())
    left_out = taken_out()
    sizes = {name: _megabytes(name) for name, _ in pinned()}
    kept = sum(size for name, size in sizes.items() if name not in left_out)
    print(f"files: {kept:.0f} MB in the image, {sum(sizes.values()) - kept:.0f} MB taken out of it again")
    for name, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
        if size >= SHOWN_MB:
            print(f"  {name:32}{size:8.1f} MB{'  (taken out)' if name in left_out else ''}")
    print(f"imported alone, median of {TURNS}:")
    for module in (*SERVED, *OF_BUILDER):
        measured = [_import(module) for _ in range(TURNS)]
        milliseconds, megabytes = (statistics.median(column) for column in zip(*measured, strict=True))
        whose = "" if module in SERVED else "  (not by the service)"
        print(f"  {module:32}{milliseconds:8.0f} ms{megabytes:8.1f} MB{whose}")
    return 0


def taken_out() -> set[str]:
    """The packages that the image does without, though others ask for them."""
    return set(" ".join(_LEFT_OUT.findall((ROOT / "Dockerfile").read_text("utf-8"))).split())


def _megabytes(name: str) -> float:
    """Of a package's installed files; 0 where it is for other systems."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return 0.0
    places = (file.locate() for file in files)
    return sum(place.stat().st_size for place in places if place.is_file()) / 1e6  # type: ignore[attr-defined]


def _import(module: str) -> tuple[float, float]:
    """Milliseconds and megabytes of one import in a fresh process."""
    command = [sys.executable, "-c", _IMPORT, module]
    milliseconds, megabytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(milliseconds), float(megabytes)


if __name__ == "__main__":
    sys.exit(main())
