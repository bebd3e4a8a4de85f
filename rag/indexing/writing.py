"""Prepared cards to the files of a build, one batch after another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rag.cached_embedding import CachedEmbedder
from rag.evidence import EvidenceWriter
from rag.files import naming, sync_tree
from rag.indexing.preparing import Prepared
from rag.lexical import LexicalWriter
from rag.manifest import CHROMA_DIR, EVIDENCE_DIR, LEXICAL_DIR, REFERENCE_FILE
from rag.reference import Reference, reference_questions
from rag.store import RowWriter


@dataclass(slots=True)
class Written:
    """What was written."""

    card_rows: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Card id → how many rows it has, and a hash of them; in the order written."""
    sentences: int = 0
    acl_version: str = ""


def write_files(
    draft: Path, batches: Iterator[list[Prepared]], work: CachedEmbedder, *, told: Callable[[int], object]
) -> Written:
    """
    Write all files of a build but its manifest and outcomes, and have them on the disk.

    Memory holds one batch, and the words of the cards as numbers. ``told`` is called with the number of cards written.

    Raises:
        IndexUnwritable, CacheFailed: the store or the cache failed.
        OSError: another file could not be written; names it.
    """
    written = Written()
    description = work.description
    acl = hashlib.sha256()
    words_out = LexicalWriter()
    with (
        RowWriter(draft / CHROMA_DIR) as rows_out,
        EvidenceWriter(draft / EVIDENCE_DIR, description.dimension) as sentences_out,
    ):
        for batch in batches:
            vectors = work.passages([text for prepared in batch for text in prepared.texts])
            first = 0
            for prepared in batch:
                card_id, rows = prepared.card.card_id, prepared.rows
                behind_rows, end = first + len(rows), first + len(prepared.texts)
                rows_out.add(rows, vectors[first:behind_rows])
                sentences_out.add(card_id, prepared.evidence, prepared.languages, vectors[behind_rows:end])
                written.sentences += len(prepared.spans)
                if prepared.searched:
                    words_out.add(prepared.card, prepared.searched)
                written.card_rows[card_id] = (len(rows), prepared.digest(description.fingerprint))
                acl.update(f"{card_id}\0{rows[0].acl_version}\0".encode())
                first = end
            told(len(written.card_rows))
    written.acl_version = acl.hexdigest()[:12]
    words_out.write(draft / LEXICAL_DIR)
    with naming(draft / REFERENCE_FILE):
        _reference(work).write(draft / REFERENCE_FILE)
    sync_tree(draft)
    return written


def _reference(work: CachedEmbedder) -> Reference:
    questions = reference_questions()
    return Reference(
        {name: np.mean([work.embed_query(text) for text in texts], axis=0) for name, texts in questions.items()},
        {name: work.passages(texts).mean(axis=0) for name, texts in questions.items()},
    )
