"""The builder killed at random moments: ``python -m benchmarks.kill_loop --kills 100``.

A few of the example cards are built with contexts of a language model that stands outside the builder, remembers what
it was asked, and takes its time. SIGKILL ends the builder alone or with all its children, in builds with no index
before them and in builds after a change. After each kill the index in use has to open, no answer that was kept may be
asked for again, and a rerun has to end as a clean build of the same cards does.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.boxes import write_reference_vectors
from benchmarks.killing import ANYWHERE, PHASES, Aim, KillLoop, Scenario, Witness
from benchmarks.machine import describe_machine
from tests.fake_llm import FakeLlm

TWICE = 0.2
"""How often the rerun after a kill is killed too."""
_ASKING = ("new", "changed", "edited")
"""Scenarios with chunks to ask about and texts to embed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 when anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_loop", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    options = parser.parse_args(arguments)
    witness = Witness()
    print(describe_machine())
    with tempfile.TemporaryDirectory(prefix="fichero-kills-") as work, FakeLlm(witness) as llm:
        vectors = Path(work) / "vectors.sqlite"
        write_reference_vectors(vectors)
        loop = KillLoop(Path(work), llm, witness, vectors=vectors)
        scenarios = list(loop.scenarios())
        for scenario in scenarios:
            phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in scenario.seconds.items())
            print(f"{scenario.name}: clean build {scenario.after.build_id}; seconds: {phases}", flush=True)
        return _run_all(loop, scenarios, options)


def _run_all(loop: KillLoop, scenarios: Sequence[Scenario], options: argparse.Namespace) -> int:
    phases: Counter[str] = Counter()
    names: Counter[str] = Counter()
    again, wrong, quicker = 0, 0, 0
    for scenario, planned in aims(scenarios, random.Random(options.seed)):
        if phases.total() >= options.kills:
            break
        trial = loop.run(scenario, planned)
        phases.update(trial.phases)
        names[scenario.name] += len(trial.phases)
        again += trial.asked_again
        wrong += bool(trial.problems)
        quicker += len(trial.phases) < len(planned)
        how = "with its children" if planned[0].with_children else "alone"
        print(
            f"{phases.total()}/{options.kills} {scenario.name}, killed {how}: {', '.join(trial.phases) or 'too late'}; "
            f"{trial.asked_again} asked again",
            flush=True,
        )
        for problem in trial.problems:
            print(f"    WRONG: {problem}", flush=True)
    print(f"{phases.total()} kills: " + ", ".join(f"{phases[phase]} {phase}" for phase in PHASES))
    print("In builds: " + ", ".join(f"{count} {name}" for name, count in names.items()))
    print(f"{again} calls were in flight and made again; {quicker} kills came too late; {wrong} rounds went wrong.")
    return 1 if wrong else 0


def aims(scenarios: Sequence[Scenario], chance: random.Random) -> Iterator[tuple[Scenario, list[Aim]]]:
    """Without end: each scenario with each phase that it has, killed with children and without, in a random order."""
    asking, others = ("contexts", "contexts", "embedding"), ("writing", "verifying", "publishing", ANYWHERE)
    ways = [
        (scenario, phase, with_children)
        for scenario in scenarios
        for phase in (*(asking if scenario.name in _ASKING else ()), *others)
        for with_children in (True, False)
    ]
    while True:
        for scenario, phase, with_children in chance.sample(ways, len(ways)):
            planned = [Aim(phase, chance.random(), with_children)]
            if chance.random() < TWICE:
                planned.append(Aim(ANYWHERE, chance.random(), not with_children))
            yield scenario, planned


if __name__ == "__main__":
    sys.exit(main())
