"""Bodies that no honest client sends, on every route that reads one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.hostile_bodies import ROUTES, hostile_bodies
from benchmarks.hostile_http import try_all
from tests.conftest import running

COUNT = 600
"""``python -m benchmarks.hostile_http`` sends thousands."""


@pytest.fixture(scope="module")
def caller(hostile_index_dir: Path) -> Iterator[httpx.Client]:
    """A caller of a service over one card."""
    with (
        running({"FICHERO_INDEX_DIR": str(hostile_index_dir)}) as started,
        httpx.Client(base_url=started.url, timeout=30) as client,
    ):
        yield client


def test_no_body_makes_a_fault(caller: httpx.Client) -> None:
    """Each gets an answer, or a 4xx with a problem document; on the chat route, OpenAI's error object."""
    statuses, faults = try_all(caller, hostile_bodies(COUNT))
    assert not faults
    assert {200, 400, 413, 415, 422} <= set(statuses)


def test_the_bodies_are_as_many_and_the_same() -> None:
    """What fails once can be tried again, and every route gets its share."""
    made = hostile_bodies(COUNT)
    assert made == hostile_bodies(COUNT)
    assert {request.route for request in made} == set(ROUTES)
