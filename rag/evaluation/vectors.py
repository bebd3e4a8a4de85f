"""Where the vectors are kept that an evaluation has a use for and the index does not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rag.embedding import ModelDescription
from rag.errors import CacheFailed
from rag.indexing import EVALUATION_FILE
from rag.vector_cache import VectorCache


@contextmanager
def open_cache(index_dir: Path, model: ModelDescription) -> Iterator[VectorCache]:
    """
    A cache beside the index, and not the builder's: its runs are evaluations, and the builder counts builds.

    Where nothing can be written there, as in a read-only image, the vectors are kept for this one time.
    """
    with ExitStack() as stack:
        try:
            cache = VectorCache(index_dir / EVALUATION_FILE, model_fingerprint=model.fingerprint)
        except (CacheFailed, OSError):
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="fichero-evaluation-"))
            cache = VectorCache(Path(work) / "vectors.sqlite", model_fingerprint=model.fingerprint)
        yield stack.enter_context(cache)
