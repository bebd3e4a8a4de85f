"""Lighthouse over the running page: ``python -m benchmarks.lighthouse``. Needs Node, npm and a Chromium."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from benchmarks.browser import FLAGS, REMEDY, find_chromium
from benchmarks.service import ROOT, started_service

VERSION = "12.2.3"
CACHE_DIR = ROOT / ".cache" / "lighthouse"
LEAST = {"accessibility": 100, "best-practices": 95, "performance": 95}
FORMS: Mapping[str, list[str]] = {"mobile": [], "desktop": ["--preset=desktop"]}


@dataclass(frozen=True, slots=True)
class Result:
    """What Lighthouse says of the page in one form."""

    scores: Mapping[str, int]
    first_paint_ms: float
    """As it would be on the slow line and processor that Lighthouse computes with."""
    seen_first_paint_ms: float
    """As it was here."""
    largest_paint_ms: float
    kilobytes: float
    requests: int
    strangers: list[str]
    """Requests to other hosts."""
    lost: list[str]
    """Audits that were not passed."""

    @property
    def good_enough(self) -> bool:
        return not self.strangers and all(self.scores[name] >= least for name, least in LEAST.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if a score is under its floor, or another host was asked for anything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lighthouse", description=__doc__)
    parser.parse_args(arguments)
    chromium = find_chromium()
    if chromium is None or shutil.which("npm") is None:
        print(REMEDY if chromium is None else "there is no npm on the path; install Node 20 with npm", file=sys.stderr)
        return 1
    program = _installed()
    with started_service() as service:
        service.wait_until_ready()
        results = {form: _run(program, chromium, f"{service.url}/", options) for form, options in FORMS.items()}
    for form, result in results.items():
        scores = ", ".join(f"{name} {score}" for name, score in result.scores.items())
        print(
            f"{form}: {scores}; first paint {result.seen_first_paint_ms:.0f} ms here, "
            f"{result.first_paint_ms:.0f} ms as computed for a slow line, largest {result.largest_paint_ms:.0f} ms; "
            f"{result.requests} requests, {result.kilobytes:.0f} KB, {len(result.strangers)} to other hosts"
        )
        for name in result.lost:
            print(f"  not passed: {name}")
    return int(not all(result.good_enough for result in results.values()))


def _installed() -> str:
    """Lighthouse of our version, installed once."""
    program = CACHE_DIR / "node_modules" / ".bin" / "lighthouse"
    if not program.exists():
        CACHE_DIR.mkdir(parents=True, exist_ok=True)
        command = [
            "npm",
            "install",
            "--prefix",
            str(CACHE_DIR),
            "--silent",
            "--no-audit",
            "--no-fund",
            f"lighthouse@{VERSION}",
        ]
        subprocess.run(command, cwd=CACHE_DIR, check=True, env={**os.environ, "PUPPETEER_SKIP_DOWNLOAD": "1"})
    return str(program)


def _run(program: str, chromium: str, url: str, options: Sequence[str]) -> Result:
    command = [
        program, url, "--quiet", "--output=json", "--only-categories=" + ",".join(LEAST), *options,
        f"--chrome-flags=--headless {' '.join(FLAGS)}",
    ]  # fmt: skip
    environment = {**os.environ, "CHROME_PATH": chromium}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"Lighthouse failed: {done.stderr.strip()[-400:]}")
    return _result(json.loads(done.stdout), urlsplit(url).netloc)


def _result(found: Mapping[str, Any], host: str) -> Result:
    audits = found["audits"]
    requests = audits["network-requests"]["details"]["items"]
    lost = [
        f"{audit['id']} ({audit['score']}) {audit.get('displayValue', '')}".strip()
        for category in found["categories"].values()
        for audit in (audits[reference["id"]] for reference in category["auditRefs"] if reference["weight"])
        if audit["score"] is not None and audit["score"] < 1
    ]
    return Result(
        {name: round(category["score"] * 100) for name, category in found["categories"].items()},
        audits["first-contentful-paint"]["numericValue"],
        audits["metrics"]["details"]["items"][0]["observedFirstContentfulPaint"],
        audits["largest-contentful-paint"]["numericValue"],
        sum(request.get("transferSize", 0) for request in requests) / 1000,
        len(requests),
        [request["url"] for request in requests if urlsplit(request["url"]).netloc != host],
        lost,
    )


if __name__ == "__main__":
    sys.exit(main())
