"""What the image leaves out is not missed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx

from rag.builds import current_build
from tests.conftest import ROOT, running

LEFT_OUT = re.compile(r"pip uninstall --yes (kubernetes[^\\\n]*)")


def test_what_the_image_leaves_out_is_not_missed(hostile_index_dir: Path, tmp_path: Path) -> None:
    """Without the packages that the Dockerfile takes out again, the service starts, answers and describes itself."""
    found = LEFT_OUT.search((ROOT / "Dockerfile").read_text("utf-8"))
    assert found
    names = [name.replace("-", "_") for name in found[1].split()]
    assert len(names) > 3
    blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in names)
    (tmp_path / "sitecustomize.py").write_text(f"import sys\n{blocked}", "utf-8")
    settings = {
        "FICHERO_INDEX_DIR": str(hostile_index_dir),
        "PYTHONPATH": str(tmp_path),
        "FICHERO_MIN_SIMILARITY": "0",
        "FICHERO_LLM_BASE_URL": "http://127.0.0.1:9/v1",
        "FICHERO_LLM_MODEL": "none",
    }
    # the reader of Chroma's rows has an environment of its own
    copy = shutil.copytree(current_build(hostile_index_dir) / "chroma", tmp_path / "chroma")
    for other_engine in ("", "import chromadb.api.rust\nsys.modules['chromadb_rust_bindings'] = None\n"):
        read = f"sys.argv = ['', 'read', {str(copy)!r}, {str(tmp_path / 'rows')!r}]"
        run = f"{read}\nrunpy.run_module('rag.store', run_name='__main__')"
        reader = f"import runpy, sys\n{blocked}{other_engine}{run}"
        done = subprocess.run([sys.executable, "-c", reader], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "rows").stat().st_size > 0
        (tmp_path / "rows").unlink()
    with running(settings) as server:
        answer = httpx.post(f"{server.url}/ask", json={"question": "¿Qué dice la ficha?"}, timeout=30)
        assert answer.status_code == 200
        assert answer.json()["degraded_reason"]
        assert (
            httpx.get(f"{server.url}/openapi.json").status_code == httpx.get(f"{server.url}/metrics").status_code == 200
        )
