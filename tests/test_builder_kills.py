"""The builder killed; ``benchmarks/kill_loop.py`` does it a hundred times."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import pytest

from benchmarks.killing import ANYWHERE, Aim, KillLoop, Scenario, Witness
from tests.fake_llm import FakeLlm

SEED = 1


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillLoop]:
    """Where builders are killed."""
    witness = Witness()
    with FakeLlm(witness) as llm:
        yield KillLoop(tmp_path_factory.mktemp("kills"), llm, witness)


@pytest.fixture(scope="module")
def scenarios(loop: KillLoop) -> Mapping[str, Scenario]:
    """A build with no index before it, and one after an edit."""
    return {scenario.name: scenario for scenario in loop.scenarios(["new", "edited"])}


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("new", "contexts", "embedding"), ("edited", "writing", "verifying"), ("edited", ANYWHERE, "publishing")],
    ids=["first build", "before it is verified", "anywhere"],
)
def test_killed_twice_and_none_the_worse(
    name: str, first: str, second: str, loop: KillLoop, scenarios: Mapping[str, Scenario]
) -> None:
    """
    Killed alone and with its children, the builder leaves the index in use whole and its answers kept, and a third run
    ends as a clean build does.
    """
    chance = random.Random(SEED)
    planned = [Aim(first, chance.random(), with_children=False), Aim(second, chance.random(), with_children=True)]
    trial = loop.run(scenarios[name], planned, reopen=False)
    assert trial.problems == []
    assert trial.phases
