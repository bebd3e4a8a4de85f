"""Cards to a sealed index that is put into use only when it is whole."""

from rag.indexing.builder import (
    CONTEXTS_FILE,
    EVALUATION_FILE,
    VECTORS_FILE,
    Builder,
    BuildReport,
    CleanupFailed,
    Progress,
    go_back,
    usable_cards,
)
from rag.indexing.changes import Changes
from rag.indexing.composing import open_builder
from rag.indexing.preparing import BuildOptions

__all__ = [
    "CONTEXTS_FILE",
    "EVALUATION_FILE",
    "VECTORS_FILE",
    "BuildOptions",
    "BuildReport",
    "Builder",
    "Changes",
    "CleanupFailed",
    "Progress",
    "go_back",
    "open_builder",
    "usable_cards",
]
