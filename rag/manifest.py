"""What a build says of itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag.builds import MANIFEST_FILE
from rag.errors import IndexMissing, IndexUnusable
from rag.files import naming, write_whole

INDEX_FORMAT = 5
"""Raise it when an index written before could not be read any more."""
CHROMA_DIR, LEXICAL_DIR, EVIDENCE_DIR = "chroma", "lexical", "sentences"
REFERENCE_FILE, OUTCOMES_FILE = "reference.npz", "outcomes.json"
_SEAL = "seal"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that shaped a build, its counts and its calibrated gate."""

    build_id: str
    index_format: int
    model_name: str
    model_fingerprint: str
    dimension: int
    model: Mapping[str, Any]
    """Its files with their hashes, prefixes, pooling and token limit."""
    chunker: Mapping[str, int]
    parser_version: int
    context_version: str
    sentences_version: int
    lexical_version: int
    reference_version: int
    chromadb_version: str
    card_hashes: Mapping[str, str]
    """Card id → hash of everything in the card."""
    card_rows: Mapping[str, tuple[int, str]]
    """Card id → how many rows it has, and a hash of them."""
    acl_version: str
    """Changes whenever the groups of any card change."""
    contexts: Mapping[str, Any] | None
    """What generated contexts cost and how many were taken; None where none were asked for."""
    counts: Mapping[str, int]
    gate: Mapping[str, Any]
    """As ``rag.gate`` calibrated it: the thresholds by the question's language, and what they rest on."""
    evaluation: Mapping[str, float]
    """Measure → per cent, on the golden cases that are about these cards; empty where none are."""
    files: Mapping[str, str]
    """Path below the build → SHA-256."""


def write_manifest(build_dir: Path, manifest: Manifest) -> None:
    """Write the manifest into a build."""
    write_whole(build_dir / MANIFEST_FILE, sealed(asdict(manifest)))


def sealed(values: Mapping[str, Any]) -> bytes:
    """The text of a manifest with its own hash in it, as it holds those of all other files."""
    whole = {**values, _SEAL: _hash_of(values)}
    return json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"


def _hash_of(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_manifest(build_dir: Path) -> Manifest:
    """
    Read the manifest of a build, without checking its files.

    Raises:
        IndexMissing: there is none.
        IndexUnusable: it cannot be read, or is of another format.
    """
    try:
        found: dict[str, Any] = json.loads((build_dir / MANIFEST_FILE).read_text("utf-8"))
        if found["index_format"] != INDEX_FORMAT:
            what = f"its format is {found['index_format']}, this version reads {INDEX_FORMAT}"
            raise IndexUnusable(build_dir, what)
        if found.pop(_SEAL) != _hash_of(found):
            raise ValueError("it is not as it was written")
        found["card_rows"] = {
            card_id: (int(count), str(digest)) for card_id, (count, digest) in found["card_rows"].items()
        }
        manifest = Manifest(**found)
        _check_values(manifest)
        return manifest
    except FileNotFoundError as error:
        raise IndexMissing(build_dir) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IndexUnusable(build_dir, f"{MANIFEST_FILE} cannot be read: {error!r}") from error


def read_if_usable(build_dir: Path | None, *, whole: bool = False) -> Manifest | None:
    """The manifest of a build, or None where there is no such build; ``whole`` asks for its files unchanged too."""
    try:
        manifest = read_manifest(build_dir) if build_dir else None
        if build_dir and manifest and whole:
            check_files(build_dir, manifest)
    except (IndexMissing, IndexUnusable):
        return None
    return manifest


def _check_values(manifest: Manifest) -> None:
    """
    Check what the server will rely on.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: something is missing or of another kind.
    """
    if not all(isinstance(manifest.counts[name], int) for name in ("cards", "rows", "sentences")):
        raise ValueError("a count is no whole number")
    if not all(isinstance(value, float) for value in manifest.gate["thresholds"].values()):
        raise ValueError("a threshold is no number")
    parts = {name.partition("/")[0] for name in manifest.files}
    missing = {CHROMA_DIR, LEXICAL_DIR, EVIDENCE_DIR, REFERENCE_FILE} - parts
    if missing:
        raise ValueError(f"it names no file of {', '.join(sorted(missing))}")


def check_files(build_dir: Path, manifest: Manifest) -> None:
    """
    Check that a build holds the files of its manifest, unchanged.

    Raises:
        IndexUnusable: one is missing or differs; names it.
    """
    for name, wanted in sorted(manifest.files.items()):
        try:
            found = _sha256(build_dir / name)
        except OSError as error:
            raise IndexUnusable(build_dir, f"{name} cannot be read: {error.strerror}") from error
        if found != wanted:
            raise IndexUnusable(build_dir, f"{name} is not the file that was built")


def file_hashes(build_dir: Path) -> dict[str, str]:
    """The hashes of all files of a build but the manifest, by path below it."""
    files = sorted(path for path in build_dir.rglob("*") if path.is_file() and path.name != MANIFEST_FILE)
    return {path.relative_to(build_dir).as_posix(): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    with naming(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
