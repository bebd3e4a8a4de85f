"""The service behind nginx, with the configuration of docs/deploy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import ROOT, Server, free_port, running
from tests.test_stopping import QUESTION, with_slow_model

CONFIG = ROOT / "docs" / "deploy" / "nginx.conf"
REMEDY = "there is no nginx on the path; install the package nginx-light (apt-get install -y nginx-light)"


@contextmanager
def proxied(server: Server, folder: Path) -> Iterator[str]:
    """The address of nginx in front of a service."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        if os.environ.get("CI"):
            pytest.fail(REMEDY)
        pytest.skip(REMEDY)
    port = free_port()
    site = CONFIG.read_text("utf-8").replace("127.0.0.1:8000", server.url.removeprefix("http://"))
    site = re.sub(r"listen 80;", f"listen 127.0.0.1:{port};", site)
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    whole = f"daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{site}}}\n"
    config.write_text(whole, "utf-8")
    process = subprocess.Popen([nginx, "-p", str(folder), "-c", str(config), "-e", str(folder / "log")])
    try:
        for _ in range(100):
            try:
                httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5)
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def test_a_stream_is_not_held_back(sample_index_dir: Path, tmp_path: Path) -> None:
    """The sources of an answer arrive through the proxy while the language model is still silent."""
    with with_slow_model(sample_index_dir) as server, proxied(server, tmp_path) as address:
        body = {"question": QUESTION, "stream": True}
        with httpx.stream("POST", f"{address}/ask", json=body, timeout=10) as reply:
            arrived = ""
            for piece in reply.iter_text():
                arrived += piece
                if "event: sources" in arrived:
                    break
        assert "event: sources" in arrived
        assert "event: done" not in arrived


def test_visitors_are_told_apart_where_the_proxy_is_trusted(hostile_index_dir: Path, tmp_path: Path) -> None:
    """Each visitor has a limit of their own, whatever addresses they claim to come from."""
    settings = {
        "FICHERO_INDEX_DIR": str(hostile_index_dir),
        "FICHERO_RATE_PER_MINUTE": "5",
        "FICHERO_TRUSTED_PROXIES": "127.0.0.1",
    }
    with running(settings) as server, proxied(server, tmp_path) as address:

        def ask(claimed: str) -> int:
            headers = {"X-Forwarded-For": claimed} if claimed else {}
            return httpx.post(f"{address}/ask", json={"question": "¿Qué?"}, headers=headers, timeout=20).status_code

        # nginx writes our real address behind what we claim, and that is the loopback, a trusted hop here
        assert [ask("198.51.100.1"), ask("198.51.100.1"), ask("198.51.100.2")] == [200, 429, 200]
        direct = httpx.post(f"{server.url}/search", json={"question": "¿Qué?"}, timeout=20)
        assert direct.status_code == 200
