"""File operations that fail on demand, in a program and all its children: the Python side of ``tests/faults.c``."""

from __future__ import annotations

import errno
import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.boxes import ROOT

FOREVER = 2**63
_PLAN = "=QQQq32s128s4096s"

# parts of paths that change from run to run
_FOLDED = (
    (re.compile(r"\.draft-[0-9a-f]+-\d+-[^/]+"), "brief"),
    (re.compile(r"\.draft-[^/]+"), "draft"),
    (re.compile(r"\.chroma-[^/]+"), "brief"),
    (re.compile(r"index/[0-9a-f]{16}(?=/|$)"), "index/BUILD"),
    (re.compile(r"chroma/[0-9a-f]{8}-[0-9a-f-]{27}"), "chroma/UUID"),
    (re.compile(r"fichero-[^/]+"), "brief"),
    (re.compile(r"etilqs_[0-9a-f]+"), "etilqs"),
    (re.compile(r"/\.(\w[\w.]*)\.\d+$"), r"/\1 (fresh)"),
    (re.compile(r"^(tmp|index/brief)/[a-z0-9_]{8}$"), r"\1/probe"),
)


@dataclass(frozen=True, slots=True)
class Operation:
    """A file operation, as the library saw it."""

    number: int
    call: str
    path: str
    """Absolute."""
    failed: bool
    kind: str
    """Call, path below the box without what changes from run to run, and whether a child made it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What to do to a build."""

    number: int
    """Of the operation, counted from 1."""
    error: int
    lasting: bool = False
    """All operations after it fail too."""
    call: str = ""
    end: str = ""
    """Where not empty, only calls of this name count, on paths that end so."""

    def __str__(self) -> str:
        which = f"{self.call} {self.end}".strip() or "operation"
        return f"{which} {self.number}{' and all after it' if self.lasting else ''} with {errno.errorcode[self.error]}"


class Shim:
    """The library, in a folder of its own, where its plan and its log stand beside it."""

    def __init__(self, library: Path, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._library = folder / library.name
        shutil.copyfile(library, self._library)
        self.environment = {"LD_PRELOAD": str(self._library)}

    def plan(self, below: Path, fault: Fault | None = None) -> None:
        """Count from now on, and let this fail."""
        fault = fault or Fault(0, 0)
        last = FOREVER if fault.lasting else fault.number
        words = (word.encode() for word in (fault.call, fault.end, str(below.resolve())))
        Path(f"{self._library}.plan").write_bytes(struct.pack(_PLAN, 0, fault.number, last, fault.error, *words))
        Path(f"{self._library}.log").unlink(missing_ok=True)
        self._below = below.resolve()

    def operations(self, parent: int) -> list[Operation]:
        """Those of the run, in order; ``parent`` is the process that was started."""
        log = Path(f"{self._library}.log")
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        found = [self._operation(line, parent) for line in lines]
        return sorted(found, key=lambda operation: operation.number)

    def _operation(self, line: str, parent: int) -> Operation:
        number, process, call, path = line.split("\t")
        path = path.removesuffix(" (deleted)")
        kind = str(Path(path).relative_to(self._below))
        for pattern, stands_for in _FOLDED:
            kind = pattern.sub(stands_for, kind)
        made_by = "" if int(process) == parent else " by a child"
        return Operation(int(number.lstrip("!")), call, path, number.startswith("!"), f"{call} {kind}{made_by}")


def fault_at(operation: Operation, among: Sequence[Operation], error: int) -> Fault:
    """This operation of one run, failing in another: by its call and the end of its path, as others come and go."""
    name = Path(operation.path).name
    # names that change from run to run are of no use
    end = f"/{name}" if name in operation.kind else ""
    alike = [one.number for one in among if one.call == operation.call and one.path.endswith(end)]
    return Fault(alike.index(operation.number) + 1, error, call=operation.call, end=end)


def compile_shim(folder: Path) -> Path | None:
    """The library, compiled; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "faults.so"
    options = ["-std=c11", "-O1", "-U_FORTIFY_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *options, "-o", library, ROOT / "tests" / "faults.c", "-ldl"], check=True)
    return library
