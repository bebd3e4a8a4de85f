"""What the image leaves out is not missed."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from tests.conftest import ROOT, running

LEFT_OUT = re.compile(r"pip uninstall --yes (kubernetes[^\\\n]*)")


def test_what_the_image_leaves_out_is_not_missed(hostile_index_dir: Path, tmp_path: Path) -> None:
    """Without the packages that the Dockerfile takes out again, the service starts, answers and describes itself."""
    found = LEFT_OUT.search((ROOT / "Dockerfile").read_text("utf-8"))
    assert found
    names = [name.replace("-", "_") for name in found[1].split()]
    assert len(names) > 3
    # every Python process, the reader of Chroma's rows too, finds none of them
    blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in names)
    (tmp_path / "sitecustomize.py").write_text(f"import sys\n{blocked}", "utf-8")
    settings = {
        "FICHERO_INDEX_DIR": str(hostile_index_dir),
        "PYTHONPATH": str(tmp_path),
        "FICHERO_MIN_SIMILARITY": "0",
        "FICHERO_LLM_BASE_URL": "http://127.0.0.1:9/v1",
        "FICHERO_LLM_MODEL": "none",
    }
    with running(settings) as server:
        answer = httpx.post(f"{server.url}/ask", json={"question": "¿Qué dice la ficha?"}, timeout=30)
        assert answer.status_code == 200
        assert answer.json()["degraded_reason"]
        assert (
            httpx.get(f"{server.url}/openapi.json").status_code == httpx.get(f"{server.url}/metrics").status_code == 200
        )
