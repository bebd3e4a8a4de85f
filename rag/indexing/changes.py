"""How a build differs from the one before it."""

from __future__ import annotations

from dataclasses import dataclass

from rag.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Changes:
    """How a build differs from the one that was in use, counted in cards and in their rows."""

    added: int
    changed: int
    removed: int
    unchanged: int
    rows_new: int
    """Of added and changed cards."""
    rows_kept: int
    """Of unchanged cards: equal to those of the build before."""


def changes_between(old: Manifest | None, new: Manifest) -> Changes:
    """Compare two builds card by card; a card is unchanged if all that is stored of it is."""
    before = old.card_rows if old else {}
    unchanged = {card_id for card_id, rows in new.card_rows.items() if before.get(card_id) == rows}
    rows_kept = sum(new.card_rows[card_id][0] for card_id in unchanged)
    added = len(set(new.card_rows) - set(before))
    return Changes(
        added=added,
        changed=len(new.card_rows) - added - len(unchanged),
        removed=len(set(before) - set(new.card_rows)),
        unchanged=len(unchanged),
        rows_new=new.counts["rows"] - rows_kept,
        rows_kept=rows_kept,
    )
