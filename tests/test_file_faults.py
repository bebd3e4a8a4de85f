"""Builds whose file operations fail; ``benchmarks/file_faults.py`` fails every one of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.failing import Proof, Scenario
from benchmarks.file_faults import spread
from benchmarks.shim import Fault, compile_shim
from tests.conftest import warm_cache
from tests.fake_llm import FakeLlm

REMEDY = "there is no C compiler on the path; install the packages gcc and libc6-dev (apt-get install -y gcc libc6-dev)"
SEED = 4


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``tests/faults.c``, compiled."""
    compiled = compile_shim(tmp_path_factory.mktemp("faults"))
    if compiled is None:
        if os.environ.get("CI"):
            pytest.fail(REMEDY)
        pytest.skip(REMEDY)
    return compiled


@pytest.fixture(scope="module")
def proof(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proof]:
    """Where builds are broken."""
    folder = tmp_path_factory.mktemp("broken")
    vectors = folder / "vectors.sqlite"
    vectors.write_bytes(warm_cache())
    with FakeLlm() as llm:
        yield Proof(folder, library, llm, vectors=vectors)


@pytest.fixture(scope="module")
def full(proof: Proof) -> Scenario:
    """A build with no index before it, as it should be."""
    return proof.full()


@pytest.fixture(scope="module")
def scenario(proof: Proof, full: Scenario) -> Scenario:
    """One card of an index in use has changed."""
    return proof.incremental(full)


def test_operations_are_seen_wherever_they_are_made(full: Scenario) -> None:
    """The library sees the builder, Chroma's process and the process that verifies, by whatever calls they write."""
    kinds = {operation.kind for operation in full.operations}
    assert {
        "write index/.lock",
        "pwrite64 index/cache/contexts.sqlite-wal",
        "mkdir index/draft/chroma by a child",
        "pwrite64 index/draft/chroma/chroma.sqlite3 by a child",
        "fwrite index/draft/chroma/UUID/data_level0.bin by a child",
        "sendfile64 index/brief/brief/chroma/chroma.sqlite3 by a child",
        "rename index/CURRENT",
        "unlink index/cache/vectors.sqlite-wal",
    } <= kinds
    assert [operation.number for operation in full.operations] == list(range(1, len(full.operations) + 1))


def test_only_chroma_writes_through_the_c_library(full: Scenario) -> None:
    """No file of ours goes through buffers of the C library, where NumPy overlooks a disk that is full at the end."""
    buffered = {operation.kind for operation in full.operations if operation.call in ("fopen", "fwrite", "fclose")}
    assert buffered
    assert not [kind for kind in buffered if "/chroma/" not in kind]


@pytest.mark.parametrize(
    ("call", "end"),
    [
        ("write", "/.lock"),
        ("pwrite64", "/contexts.sqlite-wal"),
        ("write", "/sentences/spans.npy"),
        ("pwrite64", "/chroma.sqlite3"),
        ("sendfile64", "/chroma.sqlite3"),
        ("rename", "/BUILD"),
    ],
    ids=["lock", "answers", "sentences", "rows", "copy to verify", "to its place"],
)
def test_a_fault_publishes_nothing(call: str, end: str, proof: Proof, scenario: Scenario) -> None:
    """When a file operation fails, one error names the file, and the index in use stays as it was to the letter."""
    end = end.replace("BUILD", scenario.after.build_id)
    outcome = proof.fail(scenario, Fault(1, errno.ENOSPC, call=call, end=end), recover=False)
    assert outcome.kind is not None
    assert (outcome.status, outcome.problems) == (3, [])


@pytest.mark.parametrize("name", ["HISTORY", "CURRENT"])
def test_a_fault_while_publishing_is_made_good(name: str, proof: Proof, scenario: Scenario) -> None:
    """When a rename fails that publishes, the build before stays in use, and the next run ends as a clean build."""
    outcome = proof.fail(scenario, Fault(1, errno.EIO, call="rename", end=f"/{name}"))
    assert (outcome.kind, outcome.status, outcome.problems) == (f"rename index/{name}", 3, [])


def test_a_build_that_the_disk_does_not_confirm_is_said_to_be_in_use(proof: Proof, scenario: Scenario) -> None:
    """When the folder cannot be synced after the new build came into use, the error says that it is in use."""
    outcome = proof.fail(scenario, Fault(2, errno.EIO, call="fsync", end="/index"), recover=False)
    assert (outcome.kind, outcome.status, outcome.problems) == ("fsync index", 3, [])


def test_a_disk_that_stays_full_is_made_good(proof: Proof, scenario: Scenario) -> None:
    """When nothing can be written from some moment on, one error says so, and a run with room ends as a clean build."""
    operation = spread(scenario.operations, 10, SEED)[-1]
    outcome = proof.fail(scenario, Fault(operation.number, errno.ENOSPC, lasting=True))
    assert outcome.kind is not None
    assert (outcome.status, outcome.problems) == (3, [])
