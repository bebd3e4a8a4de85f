"""The folder of builds: which one is in use, who may write, and what is left over."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag.errors import IndexMissing, IndexUnusable, RagError

CURRENT_FILE, LOCK_FILE = "CURRENT", ".lock"
_DRAFT = ".draft-"


class BuildRunning(RagError):
    """Another builder is at work on the same index."""


def current_build(index_dir: Path) -> Path:
    """
    The folder of the build in use.

    Raises:
        IndexMissing: no build is in use.
        IndexUnusable: CURRENT names no build of this folder.
    """
    try:
        name = (index_dir / CURRENT_FILE).read_text("utf-8").strip()
    except FileNotFoundError as error:
        raise IndexMissing(index_dir) from error
    except (OSError, ValueError) as error:
        raise IndexUnusable(index_dir, f"{CURRENT_FILE} cannot be read: {error}") from error
    if not name.isalnum() or len(name) > 64 or not (index_dir / name).is_dir():
        raise IndexUnusable(index_dir, f"{CURRENT_FILE} names {name[:40]!r}, which is not there")
    return index_dir / name


def use_build(index_dir: Path, build_id: str) -> None:
    """Make a build the one in use, by rename, so that readers see the old name or the new one."""
    fresh = index_dir / f".{CURRENT_FILE}.{os.getpid()}"
    fresh.write_text(build_id + "\n", "utf-8")
    fresh.replace(index_dir / CURRENT_FILE)


def build_in_use(index_dir: Path) -> str | None:
    """The id of the build in use, or None."""
    try:
        return current_build(index_dir).name
    except (IndexMissing, IndexUnusable):
        return None


def draft_dir(index_dir: Path, build_id: str) -> Path:
    """A fresh, empty folder beside the builds for one to be made in."""
    draft = index_dir / f"{_DRAFT}{build_id}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    return draft


def publish(index_dir: Path, draft: Path, build_id: str) -> None:
    """Move a finished draft to its place and make it the build in use."""
    shutil.rmtree(index_dir / build_id, ignore_errors=True)
    draft.rename(index_dir / build_id)
    use_build(index_dir, build_id)


def remove_other_builds(index_dir: Path, *, keep: set[str | None]) -> None:
    """Remove drafts, and all builds but these."""
    for path in index_dir.iterdir():
        is_build = path.is_dir() and (path.name.startswith(_DRAFT) or (path / "manifest.json").is_file())
        if is_build and path.name not in keep:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def builder_lock(index_dir: Path) -> Iterator[None]:
    """
    One builder at a time; the kernel lets go of the lock however the builder ends.

    Raises:
        BuildRunning: another one holds it.
    """
    with (index_dir / LOCK_FILE).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BuildRunning(f"Another builder is at work in {index_dir}; wait until it has finished.") from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
