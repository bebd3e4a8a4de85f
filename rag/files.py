"""Files that are there whole or not at all, and faults that name their file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

_YOUNG_SECONDS = 60.0


def write_whole(path: Path, data: bytes) -> None:
    """
    Write a file by rename: readers see what was there before or all of it, whenever the process or the machine stops.

    Raises:
        OSError: it could not be written; names the file.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with naming(path):
        try:
            with fresh.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """
    Write an array as ``.npy``.

    Raises:
        OSError: it could not be written; names the file.
    """
    kind = np.lib.format.dtype_to_descr(array.dtype)
    with naming(path), path.open("wb") as file:
        # into a file, NumPy itself writes by the C library and takes no notice when the last of it meets a full disk
        write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": array.shape})
        file.write(np.ascontiguousarray(array).data)


def sync_tree(folder: Path) -> None:
    """
    Have everything below a folder on the disk before it is relied on.

    Raises:
        OSError: the disk did not take it; names the file.
    """
    for path in [*sorted(folder.rglob("*")), folder]:
        with naming(path):
            _sync(path)


def remove_tree(folder: Path) -> None:
    """
    Remove a folder with all that is in it.

    Raises:
        OSError: something could not be removed; names the folder.
    """
    try:
        shutil.rmtree(folder)
    except OSError as error:
        # the file is named by its last part alone
        error.filename = str(folder)
        raise


@contextmanager
def temporary_dir(prefix: str, *, parent: Path | None = None) -> Iterator[Path]:
    """
    A folder of our own, removed at the end with all that is in it.

    Raises:
        OSError: it could not be made or removed; names the folder.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    # let go of when the process ends, however it does
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    except BaseException:
        # what went wrong first is what is to be known
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(lock)
    remove_tree(folder)


def sweep_temporary(prefix: str) -> None:
    """
    Remove folders that ``temporary_dir`` made in the system's place for them and whose process was killed.

    Only our own user's, and none of the last minute, which may not be locked yet; what cannot be removed stays.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                status = os.fstat(lock)
                if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _YOUNG_SECONDS:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an ``OSError`` name this file if it names none, as those of a full or broken disk do."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
