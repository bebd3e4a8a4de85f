"""What a figure has to say about where it comes from."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from rag.evaluation.machine import processor, system_field

_PACKAGES = ("chromadb", "numpy", "onnxruntime", "starlette", "tokenizers", "uvicorn")


def describe_machine() -> str:
    """One line: processor, cores, memory, Python and packages."""
    flags = (system_field(Path("/proc/cpuinfo"), "flags") or "").split()
    vnni = "with VNNI" if any("vnni" in flag for flag in flags) else "without VNNI"
    kib = (system_field(Path("/proc/meminfo"), "MemTotal") or "0").split()[0]
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"{processor()} ({vnni}), {os.cpu_count()} cores, {int(kib) / 2**20:.0f} GiB; "
        f"Python {platform.python_version()}; {packages}"
    )
