"""The service is ended, and started again on what that left: the command at its smallest."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.endings import Tally, how_it_ended, kill_round, stop_round

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("with_model", [False, True], ids=["quotes", "model"])
def test_sigterm_under_load_loses_nothing(sample_index_dir: Path, with_model: bool) -> None:
    """Everything sent before the signal has a whole reply, or a stream that says how it ended."""
    tally = Tally()
    stop_round(tally, random.Random(1), {"FICHERO_INDEX_DIR": str(sample_index_dir)}, with_model=with_model)
    assert tally.faults == []
    assert sum(tally.ends.values()) >= 16


def test_a_killed_service_starts_again(sample_index_dir: Path) -> None:
    """After SIGKILL the next start is ready and answers."""
    tally = Tally()
    kill_round(tally, random.Random(1), {"FICHERO_INDEX_DIR": str(sample_index_dir)})
    assert tally.faults == []
    assert len(tally.ready_seconds) == 1


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        (b"", ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "with 200"),
        (b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", "with 503"),
        (CHUNKED, ""),
        (CHUNKED + b"5\r\nevent: done\n\r\n", ""),
        (CHUNKED + b"event: delta\n\n\r\n0\r\n\r\n", ""),
        (CHUNKED + b"event: done\ndata: {}\n\n\r\n0\r\n\r\n", "streams to done"),
        (CHUNKED + b"event: error\ndata: {}\n\n\r\n0\r\n\r\n", "streams to error"),
    ],
)
def test_half_a_reply_is_none(reply: bytes, end: str) -> None:
    """Only what has come to its end counts, and a stream only with its last event."""
    assert how_it_ended(reply) == end
