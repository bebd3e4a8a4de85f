"""Where figures come from."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe_machine() -> str:
    """One line: processor, cores, Python."""
    return f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}"


def processor() -> str:
    """The processor's name, as far as the system tells."""
    return system_field(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine()


def system_field(path: Path, name: str) -> str | None:
    """What stands behind the first such name in a file of the kernel; None where there is no such file or name."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
