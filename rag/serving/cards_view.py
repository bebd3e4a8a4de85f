"""Cards as the API shows them. Access rules stay inside."""

from __future__ import annotations

import json
from typing import Any

from rag.records import Card, card_url


def card_link(card: Card) -> dict[str, Any]:
    """A card in a list."""
    return {
        "card_id": card.card_id,
        "title": card.title,
        "language": card.language,
        "topics": card.topics,
        "questions": card.questions,
        "url": card_url(card.card_id),
    }


def card_as_object(card: Card) -> dict[str, Any]:
    """A whole card; citations' offsets count the code points of ``text``."""
    return card_link(card) | {
        "license": card.license,
        "source": card.source,
        "accessed_at": card.accessed_at,
        "text": card.text,
    }


def card_as_markdown(card: Card) -> str:
    """A whole card as a file that this project can read again, less its access rule."""
    values = {
        "id": card.card_id,
        "title": card.title,
        "language": card.language,
        "topics": list(card.topics),
        "questions": list(card.questions),
        "license": card.license,
        "source": card.source,
        "accessed_at": card.accessed_at,
    }
    # JSON strings and lists are YAML, and quote whatever needs quoting
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value]
    return "\n".join(["---", *lines, "---", "", card.text, ""])
