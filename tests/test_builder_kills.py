"""The builder killed; ``benchmarks/kill_loop.py`` does it a hundred times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from benchmarks.killing import ANYWHERE, Aim, KillLoop, Scenario, Witness
from tests.conftest import warm_cache
from tests.fake_llm import FakeLlm


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillLoop]:
    """Where builders are killed."""
    folder, witness = tmp_path_factory.mktemp("kills"), Witness()
    vectors = folder / "vectors.sqlite"
    vectors.write_bytes(warm_cache())
    with FakeLlm(witness) as llm:
        yield KillLoop(folder, llm, witness, vectors=vectors)


@pytest.fixture(scope="module")
def scenarios(loop: KillLoop) -> Mapping[str, Scenario]:
    """A build with no index before it, and one after an edit."""
    return {scenario.name: scenario for scenario in loop.scenarios(["new", "edited"])}


@pytest.mark.parametrize(
    ("name", "aims"),
    [
        ("new", [("contexts", 0.5), ("embedding", 0.3), (ANYWHERE, 0.5)]),
        ("edited", [("writing", 0.5), ("verifying", 0.3), ("publishing", 0.0)]),
    ],
    ids=["first build", "after an edit"],
)
def test_killed_three_times_and_none_the_worse(
    name: str, aims: Sequence[tuple[str, float]], loop: KillLoop, scenarios: Mapping[str, Scenario]
) -> None:
    """
    Killed alone and with its children, the builder leaves the index in use whole and its answers kept, and a last run
    ends as a clean build does.
    """
    planned = [Aim(phase, share, with_children=number % 2 == 1) for number, (phase, share) in enumerate(aims)]
    trial = loop.run(scenarios[name], planned, reopen=False)
    assert trial.problems == []
    # on a busy machine the builder may be quicker than the last aim
    assert len(trial.phases) >= 2
