"""The build in use, opened: checked, in memory, and ready to search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.builds import build_in_use, current_build
from rag.embedding import ModelDescription
from rag.errors import IndexMissing, IndexUnusable
from rag.evidence import Evidence, open_evidence
from rag.lexical import LexicalIndex, open_lexical
from rag.manifest import CHROMA_DIR, EVIDENCE_DIR, LEXICAL_DIR, REFERENCE_FILE, check_files, read_manifest
from rag.records import Row
from rag.reference import open_reference, reference_questions
from rag.row_index import RowIndex
from rag.store import read_rows

OPEN_ATTEMPTS = 3
"""How often opening begins again because another build came into use meanwhile."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """A build in memory, checked and ready to search."""

    build_id: str
    rows: RowIndex
    lexical: LexicalIndex
    evidence: Evidence
    thresholds: Mapping[str, float]
    """The gate for questions in each language, calibrated when the index was built."""


def open_index(index_dir: Path, model: ModelDescription, *, known: OpenIndex | None = None) -> OpenIndex:
    """
    Open the build in use for questions embedded with this model; ``known`` itself, if it is that build.

    A builder may remove a build while it is being opened. When another one is in use by then, that is opened instead.

    Raises:
        IndexMissing: there is none.
        IndexUnusable: a file is damaged or missing, or the build is of another format or model.
    """
    attempts = 0
    while True:
        attempts += 1
        before = build_in_use(index_dir)
        try:
            return _open_build(current_build(index_dir), model, known)
        except (IndexMissing, IndexUnusable):
            if attempts == OPEN_ATTEMPTS or build_in_use(index_dir) in (before, None):
                raise


def _open_build(build_dir: Path, model: ModelDescription, known: OpenIndex | None) -> OpenIndex:
    manifest = read_manifest(build_dir)
    if manifest.model_fingerprint != model.fingerprint:
        made_by = f"{manifest.model_name} ({manifest.model_fingerprint})"
        raise IndexUnusable(build_dir, f"it was made with the model {made_by}, not {model.name} ({model.fingerprint})")
    if known and known.build_id == manifest.build_id:
        return known
    missing = set(reference_questions()) - set(manifest.gate["thresholds"])
    if missing:
        raise IndexUnusable(build_dir, f"its gate is not calibrated for questions in {', '.join(sorted(missing))}")
    check_files(build_dir, manifest)
    rows, vectors = read_rows(build_dir / CHROMA_DIR)
    if len(rows) != manifest.counts["rows"] or vectors.shape != (len(rows), model.dimension):
        found = f"{len(rows)} rows with vectors of shape {vectors.shape}"
        raise IndexUnusable(build_dir, f"{found}, where {manifest.counts['rows']} rows of {model.dimension} should be")
    return assemble(build_dir, manifest.build_id, rows, vectors, thresholds=manifest.gate["thresholds"])


def assemble(
    build_dir: Path, build_id: str, rows: Sequence[Row], vectors: Vectors, *, thresholds: Mapping[str, float]
) -> OpenIndex:
    """
    Put a build together from rows and vectors, (n, d) float32, that its store gave, and its other files.

    Raises:
        IndexUnusable: one of those files is missing or damaged.
    """
    try:
        lexical = open_lexical(build_dir / LEXICAL_DIR)
        evidence = open_evidence(build_dir / EVIDENCE_DIR)
        reference = open_reference(build_dir / REFERENCE_FILE)
    except (OSError, ValueError, KeyError) as error:
        raise IndexUnusable(build_dir, f"its words or sentences cannot be read: {error}") from error
    return OpenIndex(build_id, RowIndex(rows, vectors, reference), lexical, evidence, thresholds)
