"""A build judged by a fresh process before it is put into use: ``python -m rag.verification``.

The process knows only the files. It reads them as a server does, finds every row by its own text, sets the gate, and
asks the golden cases.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.cached_embedding import CachedEmbedder
from rag.cases import Case
from rag.embedding import Embedder, load_embedder
from rag.errors import RagError
from rag.files import temporary_dir
from rag.gate import Gate, calibrate
from rag.manifest import CHROMA_DIR, check_files, read_manifest
from rag.measuring import Outcome, evaluate
from rag.opening import assemble
from rag.records import PUBLIC_GROUP, Row
from rag.reference import reference_questions
from rag.store import read_rows
from rag.vector_cache import VectorCache

RECALL_TOLERANCE = 1e-4
"""A row is found by its text when no other row is nearer than itself by more than this cosine."""
FRESH_ROWS, FRESH_COSINE = 8, 0.999
"""So many rows are embedded anew, and have to be this near to what is stored: the cache is not believed blindly."""
_BLOCK_ROWS = 256
_OPEN = dict.fromkeys(reference_questions(), -1.0)
_ROOT = Path(__file__).resolve().parent.parent

Vectors = NDArray[np.float32]


class BuildFailed(RagError):
    """A build was made but does not hold what it should; the index in use is untouched."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a fresh process found in a build."""

    rows: int
    gate: Gate
    outcomes: Mapping[str, Outcome]


def verify_build(build_dir: Path, model_dir: Path, cache_file: Path, run: int, cases: Sequence[Case]) -> Verified:
    """
    Let a fresh process check a build whose manifest lacks only its gate and figures.

    Every file has the hash of the manifest, every row is there and is the nearest to its own text's vector, a sample of
    the rows embeds to what is stored. ``run`` is that of the cache.

    Raises:
        BuildFailed: something is not so; says what.
    """
    given = {
        "build_dir": str(build_dir.absolute()),
        "model_dir": str(model_dir.absolute()),
        "cache_file": str(cache_file.absolute()),
        "run": run,
        "cases": [asdict(case) for case in cases],
    }
    # its copy of the rows stands beside the build, where the next builder removes what a killed one left
    with temporary_dir(f"{build_dir.name}-", parent=build_dir.parent) as work:
        ended = subprocess.run(
            [sys.executable, "-m", "rag.verification"],
            cwd=_ROOT,
            env={**os.environ, "TMPDIR": str(work.absolute())},
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )
    if ended.returncode != 0:
        lines = ended.stderr.strip().splitlines() or [f"its process ended with {ended.returncode}"]
        raise BuildFailed(f"The new build does not verify: {lines[-1]} The index in use is untouched.")
    found = json.loads(ended.stdout)
    outcomes = {key: Outcome(**outcome) for key, outcome in found["outcomes"].items()}
    return Verified(found["rows"], Gate(**found["gate"]), outcomes)


def _verify(given: Mapping[str, Any]) -> dict[str, Any]:
    build_dir = Path(given["build_dir"])
    manifest = read_manifest(build_dir)
    check_files(build_dir, manifest)
    rows, vectors = read_rows(build_dir / CHROMA_DIR)
    if len(rows) != manifest.counts["rows"]:
        raise BuildFailed(f"{len(rows)} rows come back, {manifest.counts['rows']} were written.")
    embedder = load_embedder(Path(given["model_dir"]))
    with VectorCache(
        Path(given["cache_file"]), model_fingerprint=embedder.description.fingerprint, run=given["run"]
    ) as cache:
        work = CachedEmbedder(embedder, cache)
        check_self_recall(rows, vectors, work)
        check_sample(rows, vectors, embedder)
        cases = [Case(**{**case, "groups": tuple(case["groups"])}) for case in given["cases"]]
        index = assemble(build_dir, manifest.build_id, rows, vectors, thresholds=_OPEN)
        gate = calibrate(index, _caller(rows), work, cases)
        outcomes = evaluate(cases, index=replace(index, thresholds=gate.thresholds), embedder=work).outcomes
    return {
        "rows": len(rows),
        "gate": asdict(gate),
        "outcomes": {key: asdict(outcome) for key, outcome in outcomes.items()},
    }


def check_self_recall(rows: Sequence[Row], vectors: Vectors, work: CachedEmbedder) -> None:
    """
    Check that the text of every row, embedded, finds that row first among ``vectors``, (n, d) float32.

    Raises:
        BuildFailed: one does not; names it.
    """
    for first in range(0, len(rows), _BLOCK_ROWS):
        block = rows[first : first + _BLOCK_ROWS]
        cosines = work.passages([row.text_indexed for row in block]) @ vectors.T
        own = cosines[np.arange(len(block)), np.arange(first, first + len(block))]
        lost = np.flatnonzero(~(own >= cosines.max(axis=1) - RECALL_TOLERANCE) | ~(own >= FRESH_COSINE))
        if len(lost):
            row = block[lost[0]]
            raise BuildFailed(f"Row {row.row_id} is not found by its own text: its vector is that of another text.")


def check_sample(rows: Sequence[Row], vectors: Vectors, embedder: Embedder) -> None:
    """
    Check some rows, spread evenly, against the model itself.

    Raises:
        BuildFailed: the model gives another vector than the stored one.
    """
    for number in np.unique(np.linspace(0, len(rows) - 1, FRESH_ROWS).astype(int)) if rows else ():
        cosine = float(embedder.embed_passages([rows[number].text_indexed])[0] @ vectors[number])
        if not cosine >= FRESH_COSINE:
            raise BuildFailed(
                f"Row {rows[number].row_id} is at cosine {cosine:.4f} from what the model gives now; "
                "drop the cache with: make ingest-clean."
            )


def _caller(rows: Sequence[Row]) -> set[str]:
    """The groups to calibrate as: the public's; where nothing is public, all."""
    groups = {group for row in rows for group in row.card.acl}
    return {PUBLIC_GROUP} if PUBLIC_GROUP in groups else groups


def main() -> int:
    """Read what to verify as JSON, print what was found as JSON; 1 and one line when the build does not verify."""
    try:
        print(json.dumps(_verify(json.load(sys.stdin))))
    except (RagError, OSError) as error:
        print(f"{error}".replace("\n", " "), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
