"""
Is all well? Checks settings, model and index in the order in which a start needs them: ``python -m rag.doctor``.

Each check is a line; one that fails says what to do, and the exit status is then 3, as that of the service would be.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rag.embedding import Embedder, load_embedder
from rag.errors import RagError
from rag.opening import OpenIndex, open_index
from rag.records import PUBLIC_GROUP
from rag.reranking import load_reranker
from rag.retrieval import retrieve
from rag.settings import Settings, parse_settings

EXIT_UNUSABLE = 3
_Found = TypeVar("_Found")
_QUESTION = "¿Cómo se toma un medicamento?"


class Failed(Exception):
    """A check failed; the rest makes no sense."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m rag.doctor", description=__doc__)
    parser.parse_args(arguments)
    try:
        settings = _check("settings", lambda: parse_settings(os.environ), lambda _: "can be read")
        _check("temporary folder", _temporary_folder, str)
        embedder = _check("model", lambda: load_embedder(settings.model_dir, threads=settings.threads), _about_model)
        index = _check("index", lambda: open_index(settings.index_dir, embedder.description), _about_index)
        if folder := settings.reranker_dir:
            _check("cross-encoder", lambda: load_reranker(folder, threads=settings.threads), lambda _: str(folder))
        _check("a question", lambda: _milliseconds(settings, embedder, index), lambda spent: f"{spent:.0f} ms")
    except Failed:
        return EXIT_UNUSABLE
    _print(
        "language model", f"{settings.llm_model} at {settings.llm_base_url}" if settings.llm_model else "none is set"
    )
    return 0


def _check(name: str, look: Callable[[], _Found], tell: Callable[[_Found], str]) -> _Found:
    started = time.perf_counter()
    try:
        found = look()
    except (RagError, OSError) as error:
        print(f"FAILED  {name}: {error}")
        raise Failed from error
    _print(name, f"{tell(found)} ({time.perf_counter() - started:.1f} s)")
    return found


def _print(name: str, text: str) -> None:
    print(f"ok      {name}: {text}")


def _temporary_folder() -> Path:
    """Where Chroma's folder is copied to be opened."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
        return Path(file.name).parent


def _about_model(embedder: Embedder) -> str:
    description = embedder.description
    return f"{description.name}, {description.dimension} dimensions; files and canary vectors are as they were made"


def _about_index(index: OpenIndex) -> str:
    public = len(index.rows.cards([PUBLIC_GROUP]))
    return f"build {index.build_id}, {public} public cards; every file is as it was built"


def _milliseconds(settings: Settings, embedder: Embedder, index: OpenIndex) -> float:
    started = time.perf_counter()
    retrieve(_QUESTION, [PUBLIC_GROUP], index=index, embedder=embedder, top_k=settings.top_k)
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    sys.exit(main())
