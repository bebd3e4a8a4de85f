"""Add a model folder to a bill of materials (CycloneDX): ``python -m rag.model_export.bill BILL MODEL_DIR``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rag.embedding import DESCRIPTION_FILE, read_description
from rag.errors import RagError


def main() -> int:
    """Run the command; 2 when bill or model cannot be read."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    path, model_dir = map(Path, sys.argv[1:])
    try:
        bill = json.loads(path.read_text("utf-8"))
        bill.setdefault("components", []).append(component(model_dir))
        path.write_text(json.dumps(bill, indent=1, sort_keys=True, ensure_ascii=False), "utf-8")
    except (RagError, OSError, ValueError) as error:
        print(f"The model was not added to {path}: {error}", file=sys.stderr)
        return 2
    return 0


def component(model_dir: Path) -> dict[str, Any]:
    """
    The model as a part of something, with the hash of each of its files.

    Raises:
        ModelMissing, ModelUnusable: there is no readable model.
    """
    model = read_description(model_dir)
    licence = json.loads((model_dir / DESCRIPTION_FILE).read_text("utf-8")).get("license")
    files = [
        {"type": "file", "name": name, "hashes": [{"alg": "SHA-256", "content": sha256}]}
        for name, sha256 in sorted(model.files.items())
    ]
    licences = {"licenses": [{"expression": licence}]} if licence else {}
    return (
        {"type": "machine-learning-model", "name": model.name, "version": model.fingerprint}
        | licences
        | {"components": files}
    )


if __name__ == "__main__":
    sys.exit(main())
