"""Markdown files to cards: every fault of every file is found and named, and so is text that is hidden in one."""

from rag.cards.hidden import HiddenKind, HiddenText
from rag.cards.reading import LANGUAGES, PARSER_VERSION, CardFiles, CardFolder, card_hash, read_cards, slug

__all__ = [
    "LANGUAGES",
    "PARSER_VERSION",
    "CardFiles",
    "CardFolder",
    "HiddenKind",
    "HiddenText",
    "card_hash",
    "read_cards",
    "slug",
]
