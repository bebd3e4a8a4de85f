"""The folder of builds: which one is in use, which were before, who may write, and what is left over."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rag.errors import IndexMissing, IndexUnusable, RagError
from rag.files import naming, remove_tree, write_whole

CURRENT_FILE, HISTORY_FILE, LOCK_FILE = "CURRENT", "HISTORY", ".lock"
MANIFEST_FILE = "manifest.json"
_DRAFT = ".draft-"
_NAME = re.compile(r"[0-9A-Za-z]{1,64}(-2)?")


class BuildRunning(RagError):
    """Another builder is at work on the same index."""


class NoEarlierBuild(RagError):
    """There is no build to go back to."""


class NotConfirmed(RagError):
    """Another build is in use, but the disk did not say that it will stay so."""


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
    if not _NAME.fullmatch(name) or not (index_dir / name).is_dir():
        raise IndexUnusable(index_dir, f"{CURRENT_FILE} names {name[:40]!r}, which is not there")
    return index_dir / name


def build_in_use(index_dir: Path) -> Path | None:
    """The folder of the build in use, or None."""
    try:
        return current_build(index_dir)
    except (IndexMissing, IndexUnusable):
        return None


def history(index_dir: Path) -> list[str]:
    """Names of the build in use and of those that were in use before it and are still there, newest first."""
    current = build_in_use(index_dir)
    try:
        names = (index_dir / HISTORY_FILE).read_text("utf-8").split()
    except (OSError, ValueError):
        names = []
    names = [name for name in names if _NAME.fullmatch(name) and (index_dir / name / MANIFEST_FILE).is_file()]
    if current is None:
        return names
    # what stands before the build in use was gone back from
    older = names[names.index(current.name) + 1 :] if current.name in names else names
    return [current.name, *older]


def use_build(index_dir: Path, name: str) -> None:
    """
    Make a build the one in use, by rename, so that readers see the old one or the new one.

    The history is written first: stopped in between, the old build is in use and what was before it is still known.

    Raises:
        OSError: a file could not be written; names it. The build in use is still the one before.
        NotConfirmed: the build is in use, but the disk did not confirm it.
    """
    names = [name, *(other for other in history(index_dir) if other != name)]
    write_whole(index_dir / HISTORY_FILE, "".join(f"{entry}\n" for entry in names).encode())
    _set_current(index_dir, name)


def earlier_build(index_dir: Path) -> tuple[str, str]:
    """
    The names of the build in use and of the one that was before it.

    Raises:
        IndexMissing, IndexUnusable: no build is in use.
        NoEarlierBuild: there was none before.
    """
    current = current_build(index_dir).name
    older = history(index_dir)[1:]
    if not older:
        raise NoEarlierBuild(f"{index_dir} holds no build from before {current}; nothing was changed.")
    return current, older[0]


def roll_back(index_dir: Path, name: str) -> None:
    """
    Make a build from before the one in use; the history stays, so that one can go further back.

    Raises:
        OSError, NotConfirmed: as for ``use_build``.
    """
    _set_current(index_dir, name)


def _set_current(index_dir: Path, name: str) -> None:
    try:
        write_whole(index_dir / CURRENT_FILE, f"{name}\n".encode())
    except OSError as error:
        if build_in_use(index_dir) != index_dir / name:
            raise
        raise NotConfirmed(
            f"Index {name} is in use, but the disk did not confirm it: {error}. After a power cut the one before may "
            "be in its place; both are whole."
        ) from error


def draft_dir(index_dir: Path, build_id: str) -> Path:
    """
    A fresh, empty folder beside the builds for one to be made in; older drafts go.

    It is this process's own, as a process of a killed builder may still be writing in that one's.
    """
    remove_drafts(index_dir)
    draft = index_dir / f"{_DRAFT}{build_id}-{os.getpid()}"
    draft.mkdir()
    return draft


def remove_drafts(index_dir: Path) -> None:
    """Remove what failed or killed builders left, as far as that is possible; the next one tries again."""
    for path in index_dir.glob(f"{_DRAFT}*"):
        shutil.rmtree(path, ignore_errors=True)
    for name in (CURRENT_FILE, HISTORY_FILE):
        for path in index_dir.glob(f".{name}.*"):
            with suppress(OSError):
                path.unlink()


def publish(index_dir: Path, draft: Path, build_id: str) -> Path:
    """
    Move a finished draft to its place, make it the build in use, and give its folder.

    A build of the same id that is in use stays whole beside it: the new one then gets the name ``ID-2``.
    """
    used = build_in_use(index_dir)
    place = next(path for path in folders_of(index_dir, build_id) if path != used)
    _discard(index_dir, place)
    draft.rename(place)
    use_build(index_dir, place.name)
    return place


def folders_of(index_dir: Path, build_id: str) -> tuple[Path, Path]:
    """The two folders that a build of this id may have."""
    return index_dir / build_id, index_dir / f"{build_id}-2"


def remove_other_builds(index_dir: Path, *, keep: Collection[str]) -> None:
    """
    Remove all builds but these, and what failed builders left.

    Raises:
        OSError: something could not be removed; names it.
    """
    for path in sorted(index_dir.iterdir()):
        if path.is_dir() and path.name not in keep and (path / MANIFEST_FILE).is_file():
            _discard(index_dir, path)
    for path in index_dir.glob(f"{_DRAFT}*"):
        remove_tree(path)


def _discard(index_dir: Path, build_dir: Path) -> None:
    """Remove a build; stopped half-way, what is left counts as a draft and no longer as a build."""
    if build_dir.exists():
        doomed = index_dir / f"{_DRAFT}{build_dir.name}-old"
        shutil.rmtree(doomed, ignore_errors=True)
        build_dir.rename(doomed)
        remove_tree(doomed)


@contextmanager
def builder_lock(index_dir: Path) -> Iterator[None]:
    """
    One builder at a time; the kernel lets go of the lock however the builder ends.

    Raises:
        BuildRunning: another one holds it.
    """
    path = index_dir / LOCK_FILE
    # without a buffer, so that nothing is left to be written, and to fail, at the end
    with path.open("ab", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BuildRunning(f"Another builder is at work in {index_dir}; wait until it has finished.") from error
        with naming(path):
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        yield
