"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rag.files import naming, remove_tree, sweep_temporary, sync_tree, temporary_dir, write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """What is written takes the place of what was there, and nothing else is left in the folder."""
    path = tmp_path / "dato"
    for data in (b"uno", b"", b"\x00" * 100_000):
        write_whole(path, data)
        assert path.read_bytes() == data
        assert list(tmp_path.iterdir()) == [path]


def test_an_open_reader_keeps_the_old_file(tmp_path: Path) -> None:
    """A process that has the old file open goes on reading the old file."""
    path = tmp_path / "dato"
    write_whole(path, b"viejo")
    with path.open("rb") as reader:
        write_whole(path, b"nuevo")
        assert reader.read() == b"viejo"


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    """Where the new file cannot take its place, the error names that place, and no half file is left."""
    path = tmp_path / "dato"
    path.mkdir()
    with pytest.raises(OSError, match="dato"):
        write_whole(path, b"nuevo")
    assert list(tmp_path.iterdir()) == [path]
    assert path.is_dir()


def test_an_error_without_a_name_is_given_one(tmp_path: Path) -> None:
    """A full disk is told with the file that was being written, and a name that is there stays."""
    with pytest.raises(OSError, match="dato") as caught, naming(tmp_path / "dato"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(FileNotFoundError, match="otra") as found, naming(tmp_path / "dato"):
        (tmp_path / "otra").read_bytes()
    assert "dato" not in str(found.value)


def test_a_whole_tree_is_synchronised(tmp_path: Path) -> None:
    """Every file and folder below is opened and synchronised; one that cannot be is named."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "dato").write_bytes(b"x")
    sync_tree(tmp_path)
    (tmp_path / "a" / "roto").symlink_to(tmp_path / "no-hay")
    with pytest.raises(FileNotFoundError, match="roto"):
        sync_tree(tmp_path)


def test_what_is_temporary_goes_and_an_error_stays(tmp_path: Path) -> None:
    """A temporary folder is made where it is wanted, and gone at the end, whether or not something went wrong in it."""
    with temporary_dir("breve-", parent=tmp_path) as folder:
        (folder / "dato").write_bytes(b"x")
        assert folder.parent == tmp_path
    with pytest.raises(IsADirectoryError), temporary_dir("breve-", parent=tmp_path) as folder:
        folder.write_bytes(b"x")
    assert not list(tmp_path.iterdir())


def test_what_killed_processes_left_is_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a killed process goes; one in use, a fresh one, one of another name and a link do not."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os, signal, sys\nfrom rag.files import temporary_dir\n"
    code += "with temporary_dir('breve-') as folder:\n (folder / 'dato').touch()\n os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    [left] = tmp_path.iterdir()
    sweep_temporary("breve-")
    assert left.exists(), "it is too young"
    for name in ("otra-1", "lejos"):
        (tmp_path / name).mkdir()
    (tmp_path / "breve-enlace").symlink_to(tmp_path / "lejos")
    with temporary_dir("breve-") as used:
        for path in (left, used, tmp_path / "otra-1", tmp_path / "lejos"):
            os.utime(path, (1, 1))
        sweep_temporary("breve-")
        assert sorted(tmp_path.iterdir()) == sorted(
            [used, *(tmp_path / name for name in ("otra-1", "lejos", "breve-enlace"))]
        )


def test_a_folder_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    """Where there is no such folder to remove, the error names all of its path."""
    with pytest.raises(FileNotFoundError) as caught:
        remove_tree(tmp_path / "no-hay")
    assert caught.value.filename == str(tmp_path / "no-hay")
