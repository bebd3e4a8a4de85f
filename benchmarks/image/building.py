"""From the Dockerfile to a folder that holds the image's files, by a container engine or by buildah."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.service import ROOT

SUITE = "bookworm"
BASE_PACKAGES = "python3,python3-venv,ca-certificates"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
NEEDED = ("buildah", "debootstrap")
REMEDY = f"there is no container engine, nor {' and '.join(NEEDED)} in its place (Debian: apt-get install)"
BASE_NAME, NAME = "localhost/fichero-base", "localhost/fichero"


class CannotBuild(Exception):
    """There is nothing to build with, or the build failed."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image as a folder."""

    root: Path
    config: Mapping[str, Any]
    """As Docker names things: ``Env``, ``Cmd``, ``User``, ``Labels``, ``Healthcheck`` …"""
    base_root: Path
    """The same of what it was built on."""


def build_image(work: Path, *, base_image: str | None = None) -> Image:
    """
    Build the Dockerfile of this project; ``work`` is a folder for all that comes of it.

    Where an engine runs, it builds on ``base_image`` or the Dockerfile's own; without one, buildah does, as root, on
    that or on a Debian made for it.

    Raises:
        CannotBuild: there is nothing to build with, or the build failed.
    """
    work.mkdir(parents=True, exist_ok=True)
    revision = _output(["git", "rev-parse", "HEAD"], cwd=ROOT)
    if shutil.which("docker") and _succeeds(["docker", "info"]):
        return _by_docker(work, revision, base_image)
    if os.geteuid() != 0 or not all(map(shutil.which, NEEDED)):
        raise CannotBuild(REMEDY)
    return _by_buildah(work, revision, base_image)


def _by_docker(work: Path, revision: str, base_image: str | None) -> Image:
    on = ["--build-arg", f"BASE_IMAGE={base_image}"] if base_image else []
    _run(["docker", "build", "--tag", NAME, "--build-arg", f"REVISION={revision}", *on, "."], cwd=ROOT)
    config = json.loads(_output(["docker", "image", "inspect", NAME]))[0]["Config"]
    base = base_image or _default_base()
    return Image(_exported(work / "root", NAME), config, _exported(work / "base", base))


def _exported(folder: Path, name: str) -> Path:
    """The files of an image of Docker's in a fresh folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    container = _output(["docker", "create", name])
    try:
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as export:
            _run(["tar", "--extract", "--numeric-owner", "--directory", str(folder)], stdin=export.stdout)
    finally:
        _run(["docker", "rm", container], stdout=subprocess.DEVNULL)
    return folder


def _by_buildah(work: Path, revision: str, base_image: str | None) -> Image:
    # folders and no overlays: what is in a container already cannot stack more of them
    storage = ["--storage-driver", "vfs", "--root", str(work / "storage"), "--runroot", str(work / "run")]
    buildah = ["buildah", *storage]
    # what an earlier build left would only be kept
    _run([*buildah, "rm", "--all"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if base_image is None:
        base_image = BASE_NAME
        if not _succeeds([*buildah, "inspect", "--type", "image", BASE_NAME]):
            _make_base(buildah, work / "debian")
    arguments = {"BASE_IMAGE": base_image, "REVISION": revision}
    given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    # Docker's format has the health check
    _run([*buildah, "build", "--isolation", "chroot", "--format", "docker", "--tag", NAME, *given, "."], cwd=ROOT)
    config = json.loads(_output([*buildah, "inspect", "--type", "image", NAME]))["Docker"]["config"]
    roots = [Path(_output([*buildah, "mount", _output([*buildah, "from", name])])) for name in (NAME, base_image)]
    return Image(roots[0], config, roots[1])


def _make_base(buildah: Sequence[str], folder: Path) -> None:
    """A small Debian with Python, which trusts whom this machine trusts."""
    shutil.rmtree(folder, ignore_errors=True)
    _run(["debootstrap", "--variant=minbase", f"--include={BASE_PACKAGES}", SUITE, str(folder)])
    shutil.rmtree(folder / "var" / "cache" / "apt")
    shutil.rmtree(folder / "var" / "lib" / "apt" / "lists")
    shutil.copyfile(Path("/") / CERTIFICATES, folder / CERTIFICATES)
    (folder / "etc" / "pip.conf").write_text(f"[global]\ncert = /{CERTIFICATES}\n", "utf-8")
    container = _output([*buildah, "from", "scratch"])
    _run([*buildah, "add", container, str(folder), "/"], stdout=subprocess.DEVNULL)
    _run([*buildah, "commit", "--rm", container, BASE_NAME])
    shutil.rmtree(folder)


def _default_base() -> str:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    return next(line.partition("BASE_IMAGE=")[2] for line in lines if line.startswith("ARG BASE_IMAGE="))


def _run(command: Sequence[str], **options: Any) -> None:
    status = subprocess.run(command, check=False, **options).returncode
    if status:
        raise CannotBuild(f"`{' '.join(command[:6])} …` ended with {status}; what it printed says why")


def _output(command: Sequence[str], **options: Any) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, **options)
    if done.returncode:
        raise CannotBuild(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.strip()}")
    return str(done.stdout).strip()


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
