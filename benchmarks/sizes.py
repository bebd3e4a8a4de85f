"""How much lies in a folder."""

from __future__ import annotations

import os
from pathlib import Path


def folder_bytes(root: Path) -> int:
    """Of all files below a folder, each counted once."""
    seen: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            status = os.lstat(os.path.join(folder, name))
            seen[status.st_dev, status.st_ino] = status.st_size
    return sum(seen.values())
