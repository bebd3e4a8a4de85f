"""The fuzzing command: what it runs on, for a moment, and that it would find something."""

from __future__ import annotations

import pytest

from benchmarks.fuzz import TARGETS, fuzz


@pytest.mark.parametrize("name", TARGETS)
def test_a_moment_of_fuzzing_finds_nothing(name: str) -> None:
    """Texts that go new ways raise nothing; ``python -m benchmarks.fuzz`` goes on for longer."""
    tried, ways, crashes = fuzz(TARGETS[name], seconds=1.0)
    assert tried
    assert ways
    assert not crashes


def test_a_fault_is_found_and_kept() -> None:
    """What raises is given back with the text that made it."""

    def fragile(content: bytes) -> None:
        if b"\x00" in content:
            raise ValueError("a zero")

    _, _, crashes = fuzz(fragile, seconds=0.5)
    assert b"\x00" in crashes["ValueError: a zero"]
