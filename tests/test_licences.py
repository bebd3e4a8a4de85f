"""The page of licences is up to date."""

from __future__ import annotations

from benchmarks.licences import PAGE, pinned


def test_every_package_of_the_image_has_its_licence() -> None:
    """LICENCES.md names every pinned package with its version and a licence, and none that is gone."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    named = [(row[0], row[1]) for row in rows if len(row) == 3 and row[0] not in ("package", "---")]
    assert named == pinned()
    assert all(row[2] for row in rows if len(row) == 3)
