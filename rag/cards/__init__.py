"""Markdown files to cards: every fault of every file is found and named."""

from rag.cards.reading import LANGUAGES, PARSER_VERSION, CardFiles, CardFolder, card_hash, read_cards, slug

__all__ = ["LANGUAGES", "PARSER_VERSION", "CardFiles", "CardFolder", "card_hash", "read_cards", "slug"]
