"""An image that runs as under a strict engine, without one: namespaces, a read-only root, a memory limit."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.image.building import Image
from benchmarks.service import ROOT

MEMORY_BYTES = 512 * 10**6
_GROUPS = Path("/sys/fs/cgroup")
_PROBE = """import json, sys, urllib.error, urllib.request
method, url, body = sys.argv[1:]
request = urllib.request.Request(url, body.encode() or None, {"Content-Type": "application/json"}, method=method)
try:
    with urllib.request.urlopen(request, timeout=10) as reply:
        print(json.dumps([reply.status, dict(reply.headers), reply.read().decode()]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, dict(error.headers), error.read().decode()]))
except OSError:
    print("null")
"""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came over HTTP."""

    status: int
    headers: Mapping[str, str]
    text: str


class Container:
    """A running image."""

    def __init__(self, image: Image, process: subprocess.Popen[bytes], group: Path | None) -> None:
        self._image = image
        self._process = process
        self._group = group
        self.started = time.monotonic()
        port = dict(pair.split("=", 1) for pair in image.config["Env"])["PORT"]
        self.url = f"http://127.0.0.1:{port}"

    @property
    def pid(self) -> int:
        """Of its first process, as seen from outside."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return int(children.read_text("ascii").split()[0])

    def ask(self, path: str, body: object = None) -> Reply | None:
        """A request from within its network; None if nobody listens."""
        method, text = ("GET", "") if body is None else ("POST", json.dumps(body))
        command = [
            "nsenter",
            f"--target={self.pid}",
            "--net",
            sys.executable,
            "-c",
            _PROBE,
            method,
            self.url + path,
            text,
        ]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return Reply(*found) if found else None

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command inside, as its user and with its environment."""
        user, _, group = self._image.config["User"].partition(":")
        into = [f"--target={self.pid}", "--mount", "--net", "--pid", "--root", "--wd"]
        become = [f"--setuid={user}", f"--setgid={group or user}"]
        inside = ["/usr/bin/env", "-i", *self._image.config["Env"], *command]
        return subprocess.run(["nsenter", *into, *become, *inside], check=False, capture_output=True, text=True)

    def status_fields(self) -> dict[str, str]:
        """What the kernel says of its first process."""
        lines = Path(f"/proc/{self.pid}/status").read_text("utf-8").splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def interfaces(self) -> list[str]:
        """Of its network, by name."""
        lines = Path(f"/proc/{self.pid}/net/dev").read_text("utf-8").splitlines()[2:]
        return [line.partition(":")[0].strip() for line in lines]

    def memory_bytes(self) -> int | None:
        """The most that it has used at once, with the files in its /tmp; None where nothing limits it."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            if self._group and (self._group / name).exists():
                return int((self._group / name).read_text("ascii"))
        return None

    def signal(self, number: int) -> None:
        """Send a signal to its first process."""
        os.kill(self.pid, number)

    def wait(self, seconds: float) -> float | None:
        """Seconds until it had ended; None if it goes on for longer than that."""
        started = time.monotonic()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - started

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None


@contextmanager
def running(image: Image, work: Path) -> Iterator[Container]:
    """Run an image; killed at the end if it still goes on. Its output is ours."""
    config = work / "config.json"
    config.write_text(json.dumps(image.config), "utf-8")
    apart = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation=private"]
    command = [*apart, sys.executable, "-m", "benchmarks.image.inside", str(image.root), str(config)]
    with _limited() as group:
        if group:
            # entered before anything is started, so that all of it counts; 0 is who writes it
            command = ["sh", "-c", 'echo 0 > "$0" && exec "$@"', str(group / "cgroup.procs"), *command]
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            yield Container(image, process, group)
        finally:
            process.kill()
            process.wait()


@contextmanager
def _limited() -> Iterator[Path | None]:
    """A control group of our own with the memory limit; None where none can be made."""
    old = (_GROUPS / "memory" / "fichero-image", "memory.limit_in_bytes", "memory.swappiness", "0")
    new = (_GROUPS / "fichero-image", "memory.max", "memory.swap.max", "0")
    group, limit, swap, none = old if (_GROUPS / "memory").is_dir() else new
    try:
        group.mkdir(exist_ok=True)
        (group / limit).write_text(str(MEMORY_BYTES))
    except OSError:
        yield None
        return
    with contextlib.suppress(OSError):
        (group / swap).write_text(none)
    try:
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    for _ in range(50):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return
