"""One root error, and one child for each different reaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class RagError(Exception):
    """Anything this project refuses, with a message that says what, where and the remedy."""


class SettingsInvalid(RagError):
    """A setting is unknown or has a value that cannot be used."""


class IndexMissing(RagError):
    """There is no index where the settings say one should be."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"No index at {path}. Build one with: make ingest")
        self.path = path


class IndexUnusable(RagError):
    """The index is damaged, or was made by another model or format."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"The index at {path} cannot be used: {what}. Rebuild it with: make ingest-clean")
        self.path = path


class IndexUnwritable(RagError):
    """A build could not be written."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} could not be written: {what}. Look for a full or failing disk, then build again")
        self.path = path


class CacheFailed(RagError):
    """A cache of the builder cannot be read or written."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"The cache {path} failed: {what}. Look for a full or failing disk; the file may be deleted")
        self.path = path


class ModelMissing(RagError):
    """There is no embedding model where the settings say one should be."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"No embedding model at {path}. Make one with: make model")
        self.path = path


class ModelUnusable(RagError):
    """The model folder is damaged or gives other vectors than it should."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"The model at {path} cannot be used: {what}. Remove the folder and run: make model")
        self.path = path


_RERANKER_REMEDY = (
    "FICHERO_RERANKER_DIR takes a folder with model.onnx and tokenizer.json of one model; leave it empty to go without"
)


class RerankerMissing(RagError):
    """There is no cross-encoder where the settings say one should be."""

    def __init__(self, path: Path) -> None:
        """``path`` is what is not there, the folder or a file of it."""
        super().__init__(f"No cross-encoder: there is no {path}. {_RERANKER_REMEDY}")
        self.path = path


class RerankerUnusable(RagError):
    """The cross-encoder does not load, is of another kind, or gives no scores."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"The cross-encoder at {path} cannot be used: {what}. {_RERANKER_REMEDY}")
        self.path = path


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one card file."""

    file: str
    """Path below the cards folder."""
    line: int
    """Counted from 1."""
    message: str
    """What, the value, the remedy."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class CardsInvalid(RagError):
    """At least one card cannot be read; every fault of every file is listed."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)
