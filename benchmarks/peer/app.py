"""
LangChain's parent-document retriever over Chroma, and its ensemble with BM25, behind the least that can be called a
service. Runs in an environment of its own: ``python -m benchmarks.peer.app build|serve FOLDER``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from langchain_chroma import Chroma
from langchain_classic.retrievers import EnsembleRetriever, ParentDocumentRetriever
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_text_splitters import RecursiveCharacterTextSplitter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rag.cards import read_cards
from rag.embedding import Embedder, load_embedder

# as the service cuts
CHUNK_CHARS, OVERLAP_CHARS = 400, 60
CHUNKS, CARDS = 20, 10
PUBLIC = "public"
MODEL_DIR = "PEER_MODEL_DIR"


class SameModel(Embeddings):
    """The service's own model, loaded as the service loads it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of passages."""
        found: list[list[float]] = self._embedder.embed_passages(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        found: list[float] = self._embedder.embed_query(text).tolist()
        return found


def documents() -> list[Document]:
    """Every public card with all that the service reads of it: title, text, and the questions it names."""
    cards = read_cards(Path("cards")).cards
    return [
        Document(
            "\n\n".join([card.title, card.text, *card.questions]), metadata={"id": card.card_id, "title": card.title}
        )
        for card in cards
        if PUBLIC in card.acl
    ]


def parent_retriever(folder: Path) -> Any:
    """The parent-document retriever on the disk; empty where nothing was built."""
    store = Chroma(
        collection_name="chunks",
        embedding_function=SameModel(load_embedder(Path(os.environ.get(MODEL_DIR, "model")))),
        persist_directory=str(folder / "chroma"),
        collection_metadata={"hnsw:space": "cosine"},
    )
    return ParentDocumentRetriever(
        vectorstore=store,
        docstore=create_kv_docstore(LocalFileStore(folder / "documents")),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARS, chunk_overlap=OVERLAP_CHARS),
        search_kwargs={"k": CHUNKS},
    )


def build(folder: Path) -> None:
    """Write the index."""
    parent_retriever(folder).add_documents(documents())


def serve(folder: Path) -> None:
    """Answer POST /ask and /ensemble on ``PORT`` with the cards found, best first."""
    parent = parent_retriever(folder)
    words = BM25Retriever.from_documents(documents(), k=CARDS)
    both = EnsembleRetriever(retrievers=[words, parent], weights=[0.5, 0.5])

    def route(retriever: Any) -> Callable[[Request], Any]:
        async def ask(request: Request) -> Response:
            question = (await request.json())["question"]
            found = await run_in_threadpool(retriever.invoke, question)
            passages = [{"card_id": one.metadata["id"], "text": one.page_content} for one in found[:CARDS]]
            return JSONResponse({"question": question, "retrieved": passages})

        return ask

    routes = [Route("/ask", route(parent), methods=["POST"]), Route("/ensemble", route(both), methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), port=int(os.environ["PORT"]), access_log=False, log_level="warning")


if __name__ == "__main__":
    {"build": build, "serve": serve}[sys.argv[1]](Path(sys.argv[2]))
