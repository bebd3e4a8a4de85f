"""The page's pure modules, which have tests of their own under ``tests/js``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from tests.conftest import ROOT

REMEDY = "there is no Node on the path; install the package nodejs (apt-get install -y nodejs)"
LEAST_TESTS = 100
"""Fewer would mean that a file was not found."""


def test_the_modules_pass_their_own_tests() -> None:
    """Every test under ``tests/js`` runs with Node and passes."""
    node = shutil.which("node")
    if node is None:
        if os.environ.get("CI"):
            pytest.fail(REMEDY)
        pytest.skip(REMEDY)
    # named one by one: what a folder means to --test depends on the version of Node
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "js").glob("*.test.js"))
    command = [node, "--test", "--test-reporter=tap", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    counts = {name: int(count) for name, count in re.findall(r"^# (tests|pass) (\d+)$", done.stdout, re.MULTILINE)}
    assert done.returncode == 0, done.stdout + done.stderr
    assert counts["pass"] == counts["tests"] >= LEAST_TESTS
