"""
Become the first process of an image: ``python -m benchmarks.image.inside ROOT CONFIG``, by root, in namespaces of its
own for mounts, network and processes. Its files are read-only, but for a small /tmp; its network is its loopback.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

TMP_MB = 64
DEVICES = ("null", "zero", "random", "urandom")
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _CAPABILITIES = 24, 38, 64


def main() -> None:
    """Take the place of this process; does not return."""
    root, config = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8"))
    _mount("--bind", str(root), str(root))
    _mount("-t", "proc", "proc", str(root / "proc"))
    _mount("-t", "tmpfs", "-o", f"size={TMP_MB}m,mode=1777,nosuid,nodev", "tmpfs", str(root / "tmp"))
    _mount("-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", str(root / "dev"))
    for name in DEVICES:
        device = root / "dev" / name
        device.touch()
        _mount("--bind", f"/dev/{name}", str(device))
    _mount("-o", "remount,bind,ro", str(root))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    user, _, group = config["User"].partition(":")
    os.chroot(root)
    os.chdir(config["WorkingDir"])
    _give_up_rights(int(user), int(group or user))
    environment = dict(pair.split("=", 1) for pair in config["Env"])
    os.execvpe(config["Cmd"][0], config["Cmd"], environment)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _give_up_rights(user: int, group: int) -> None:
    """All capabilities go, and no program can get any back."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


if __name__ == "__main__":
    main()
