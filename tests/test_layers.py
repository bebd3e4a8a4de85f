"""Who imports whom in rag/."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

# a module imports only from layers below its own; within a folder its modules are free
LAYERS = [
    ["records", "errors", "files"],
    [
        "markdown",
        "language",
        "lexical",
        "fusion",
        "terms",
        "things",
        "reference",
        "settings",
        "builds",
        "evidence",
        "vector_cache",
        "embedding",
        "reranking",
        "store",
        "metrics",
        "llm",
        "markers",
        "links",
        "replies",
        "quantities",
    ],
    [
        "cases",
        "cards",
        "chunking",
        "contextual",
        "sentences",
        "row_index",
        "cached_embedding",
        "manifest",
        "prompting",
    ],
    ["claims", "opening", "model_export"],
    ["retrieval", "support"],
    ["answering", "gate"],
    ["measuring"],
    ["verification"],
    ["indexing"],
    ["evaluation", "serving", "doctor"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# packages that only these modules may import
CONFINED = {
    "chromadb": {"store"},
    "chromadb_rust_bindings": {"store"},
    "onnxruntime": {"embedding", "reranking", "model_export"},
    "tokenizers": {"embedding", "reranking", "model_export"},
    "onnx": {"model_export"},
    "safetensors": {"model_export"},
    "wordfreq": {"model_export"},
    "yaml": {"cards"},
    "starlette": {"serving"},
    "sqlite3": {"vector_cache", "contextual"},
    "httpx": {"llm"},
    "Stemmer": {"lexical"},
    "prometheus_client": {"serving"},
}

FILES = sorted(path for path in (ROOT / "rag").rglob("*.py") if path != ROOT / "rag" / "__init__.py")


def module_of(path: Path) -> str:
    """The module or folder right below rag/ that a file belongs to."""
    return path.relative_to(ROOT / "rag").parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Full names of all that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # `from rag import embedding` imports a module of ours
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "rag" else {str(node.module)}
            )
            assert node.level == 0, f"{path.name} imports relatively"
    return found


def own_imports(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports_of(path) if name.startswith("rag.")}


def test_every_module_has_a_layer() -> None:
    """The table of layers names every module of rag/, and none that is not there."""
    assert {module_of(path) for path in FILES} == set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_go_down(path: Path) -> None:
    """A module imports only from lower layers, and never from a sibling."""
    module = module_of(path)
    above = {name for name in own_imports(path) - {module} if LEVEL[name] >= LEVEL[module]}
    assert not above


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_heavy_packages_are_confined(path: Path) -> None:
    """Each heavy package is imported by the one module that is about it."""
    packages = {name.split(".")[0] for name in imports_of(path)}
    misplaced = {name for name in packages & set(CONFINED) if module_of(path) not in CONFINED[name]}
    assert not misplaced


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_imports_what_sits_on_top(path: Path) -> None:
    """The service, the builder and the tests import rag/, and it imports none of them."""
    assert not {name.split(".")[0] for name in imports_of(path)} & {"app", "build_index", "tests", "benchmarks"}


def test_chroma_is_not_loaded_at_import() -> None:
    """The store imports chromadb only inside functions, or for types."""
    tree = ast.parse((ROOT / "rag" / "store.py").read_text("utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in top if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith("chromadb") for name in names)
