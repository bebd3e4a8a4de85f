"""The doctor: what is well, what is not, and what to do about it; and the settings as they are in use."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

from rag.settings import parse_settings, shown
from tests.conftest import MODEL_DIR

Run = Callable[..., subprocess.CompletedProcess[str]]
EXIT_UNUSABLE = 3


def test_all_is_well(run_command: Run, hostile_index_dir: Path) -> None:
    """Every check is a line with its figures, and the status is 0."""
    settings = {"FICHERO_INDEX_DIR": str(hostile_index_dir), "FICHERO_MODEL_DIR": str(MODEL_DIR)}
    done = run_command("-m", "rag.doctor", environment=settings)
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.removeprefix("ok      ").partition(":")[0] for line in done.stdout.splitlines()]
    assert names == ["settings", "temporary folder", "model", "index", "a question", "language model"]


def test_what_is_wrong_is_said_with_the_remedy(run_command: Run, tmp_path: Path) -> None:
    """The first check that fails names the place and the command that helps, and ends with 3."""
    settings = {"FICHERO_INDEX_DIR": str(tmp_path), "FICHERO_MODEL_DIR": str(MODEL_DIR)}
    done = run_command("-m", "rag.doctor", environment=settings)
    assert done.returncode == EXIT_UNUSABLE
    last = done.stdout.splitlines()[-1]
    assert last.startswith("FAILED  index: ")
    assert "make ingest" in last
    wrong = run_command("-m", "rag.doctor", environment={"FICHERO_TOPK": "3"})
    assert wrong.returncode == EXIT_UNUSABLE
    assert wrong.stdout.startswith("FAILED  settings: The setting FICHERO_TOPK is unknown.")


def test_settings_are_printed_without_secrets(run_command: Run) -> None:
    """``app.py --print-config`` prints every setting as it is in use, and neither tokens nor keys."""
    digest = hashlib.sha256(b"una").hexdigest()
    settings = {
        "FICHERO_TOKENS": f"{digest}=staff,nurses",
        "FICHERO_LLM_API_KEY": "sk-secreta",
        "FICHERO_TRUSTED_PROXIES": "10.0.0.0/8,::1",
        "PORT": "8123",
    }
    done = run_command("app.py", "--print-config", environment=settings)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines == sorted(lines)
    for line in ("PORT=8123", "FICHERO_TOKENS=***=nurses,staff", "FICHERO_LLM_API_KEY=***", "FICHERO_TOP_K=5"):
        assert line in lines
    assert digest not in done.stdout
    assert "secreta" not in done.stdout


def test_what_is_printed_can_be_set_again() -> None:
    """Printed settings without secrets make the same settings."""
    settings = parse_settings({"FICHERO_TRUSTED_PROXIES": "10.0.0.0/8,::1", "FICHERO_PLAIN_MARKDOWN": "1"})
    again = dict(line.split("=", 1) for line in shown(settings).splitlines())
    assert parse_settings(again) == settings
