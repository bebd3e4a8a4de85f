"""Every file operation of a build, failed in turn: ``python -m benchmarks.file_faults``.

A build is run once to count its operations below a box, in all its processes, with the library of ``tests/faults.c``.
Then each of them is made to fail, with a full disk (ENOSPC) and a broken one (EIO). After each, nothing may be
half-published, one error has to name what failed, and a run without faults has to end as a clean build does.
"""

from __future__ import annotations

import argparse
import errno
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.boxes import write_reference_vectors
from benchmarks.failing import HARMLESS, Outcome, Proof, Scenario, harmless
from benchmarks.machine import describe_machine
from benchmarks.shim import Fault, Operation, compile_shim, fault_at
from rag.builds import CURRENT_FILE, HISTORY_FILE
from tests.fake_llm import FakeLlm


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 when anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.file_faults", description=__doc__)
    parser.add_argument("--runs", type=int, help="of each scenario and error; by default, one for every operation")
    parser.add_argument("--lasting", action="store_true", help="let everything after the operation fail too")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--seed", type=int, default=1, help="of the choice and the order (default: %(default)s)")
    options = parser.parse_args(arguments)
    end = time.monotonic() + 60 * options.minutes
    print(describe_machine())
    with tempfile.TemporaryDirectory(prefix="fichero-faults-") as work, FakeLlm() as llm:
        library = compile_shim(Path(work))
        if library is None:
            raise SystemExit("There is no C compiler; install the packages gcc and libc6-dev.")
        vectors = Path(work) / "vectors.sqlite"
        write_reference_vectors(vectors)
        proof = Proof(Path(work), library, llm, vectors=vectors)
        outcomes = list(_run_all(proof, options, end))
    return _summarise(outcomes)


def _run_all(proof: Proof, options: argparse.Namespace, end: float) -> Iterator[Outcome]:
    planned: list[tuple[int, Scenario, Fault]] = []
    for scenario in (proof.full(), proof.incremental(), proof.graph()):
        breakable = scenario.breakable
        kinds = len({operation.kind for operation in breakable})
        print(f"{scenario.name}: {len(breakable)} of {len(scenario.operations)} operations, {kinds} kinds", flush=True)
        for turn, operation in enumerate(spread(breakable, options.runs or len(breakable), options.seed)):
            for error in (errno.ENOSPC, errno.EIO):
                once = fault_at(operation, scenario.operations, error)
                planned.append((turn, scenario, Fault(operation.number, error, True) if options.lasting else once))
    # by turns, so that a run cut short has seen as much of each
    planned.sort(key=lambda plan: plan[0])
    for count, (_, scenario, fault) in enumerate(planned, start=1):
        if time.monotonic() > end:
            print(f"Stopped after {count - 1} of {len(planned)} runs.")
            return
        outcome = proof.fail(scenario, fault)
        print(f"{count}/{len(planned)} {scenario.name}: {fault}, {outcome.kind}: status {outcome.status}", flush=True)
        for problem in outcome.problems:
            print(f"    WRONG: {problem}", flush=True)
        yield outcome


def spread(operations: Sequence[Operation], count: int, seed: int) -> list[Operation]:
    """So many operations: first and last, renames to a build's place and into use, one of each kind, then others."""
    chance = random.Random(seed)
    names = [f"rename index/{name}" for name in ("BUILD", HISTORY_FILE, CURRENT_FILE)]
    chosen = [operations[0], operations[-1], *(one for one in operations if one.kind in names)]
    kinds: dict[str, list[Operation]] = {}
    for operation in operations:
        kinds.setdefault(operation.kind, []).append(operation)
    one_each = [chance.choice(kinds[kind]) for kind in chance.sample(list(kinds), len(kinds))]
    rest = chance.sample(operations, len(operations))
    return list(dict.fromkeys([*chosen, *one_each, *rest]))[:count]


def _summarise(outcomes: Sequence[Outcome]) -> int:
    made = [outcome for outcome in outcomes if outcome.kind]
    refused = sum(outcome.status != 0 for outcome in made)
    wrong = sum(bool(outcome.problems) for outcome in outcomes)
    kinds = len({outcome.kind for outcome in made})
    print(f"{len(made)} faults in {kinds} kinds of operation: {refused} stopped the build, {wrong} went wrong.")
    for why in HARMLESS:
        passed = sum(one.status == 0 and one.kind is not None and harmless(one.kind) == why for one in made)
        print(f"{passed} were not felt: {why}.")
    return 1 if wrong or not made else 0


if __name__ == "__main__":
    sys.exit(main())
