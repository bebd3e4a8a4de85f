"""
Build the image of this project and run it as it should be run: not as root, read-only, with a small /tmp, without a
network, within 512 MB. Prints what was checked and measured; exit status 1 if anything is not as promised.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.image.building import CannotBuild, build_image
from benchmarks.image.checks import check_files, check_running
from benchmarks.image.running import running
from benchmarks.machine import describe_machine
from benchmarks.service import ROOT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.image", description=__doc__)
    parser.add_argument("--base-image", help="to build on (default: the Dockerfile's, or a Debian that is made for it)")
    parser.add_argument("--work", type=Path, default=ROOT / ".cache" / "image", help="folder for all that is built")
    options = parser.parse_args(arguments)
    work: Path = options.work.resolve()
    try:
        image = build_image(work, base_image=options.base_image)
    except CannotBuild as error:
        print(f"The image was not built: {error}.", file=sys.stderr)
        return 2
    findings = list(check_files(image))
    with running(image, work) as container:
        findings += check_running(container)
    print(describe_machine())
    for finding in findings:
        print(f"{'ok    ' if finding.holds else 'FAILED'} {finding.what}: {finding.found}")
    return int(not all(finding.holds for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
