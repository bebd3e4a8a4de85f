"""Addresses and markup in what a model writes: only those that the cards hold are kept."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

# a scheme with two slashes, two slashes alone, a scheme that does harm without any, www., a host with a path, or mail
_ADDRESS = re.compile(
    # each to the next blank: what is left of it could be an address again
    r"(?:(?<![a-z0-9])[a-z][a-z0-9+.-]{0,19}:)?//[^\s<>\"“”«»]+"
    r"|(?:javascript|vbscript|(?<![a-z])(?:data|mailto|tel|sms|file|blob|view-source))\s{0,3}:[^\s<>\"“”«»]+"
    r"|\bwww\.[^\s<>\"“”«»]+"
    r"|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}[^\s<>\"“”«»]*"
    r"|\b(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}(?::\d{1,5})?[/?#][^\s<>\"“”«»]*"
    # a bare host is one only by its end, else a missing blank behind a stop would make one
    r"|\b(?:[\w-]{1,63}\.){1,8}(?:com|net|org|info|biz|edu|gov|gob|app|dev|xyz|site|online|shop|store|link|click|cloud"
    r"|invalid|test|example|localhost"
    r"|(?-i:io|co|ai|me|tv|es|eu|cat|gal|eus|mx|ar|cl|pe|uy|ve|uk|us|ca|au|de|fr|it|pt|nl|ch|ru|cn|in|br|jp))\b(?![\w-])",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?…*_'’\"»)]}"
_TAG = re.compile(r"<(?=[A-Za-z/!?])[^<>]{0,2000}>")
_OPEN_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_TARGET = re.compile(r"\]\((?:[^()\n]|\([^()\n]{0,200}\)){0,2000}\)|\]\(|\]\[[^\[\]\n]{0,200}\]")
_DEFINITION = re.compile(r"^(?:[ \t]{0,3}\[[^\[\]\n]{1,200}\]:)+", re.MULTILINE)


def addresses(texts: Iterable[str]) -> frozenset[str]:
    """The addresses that stand in texts, without what ends the sentence around them."""
    return frozenset(
        address for text in texts for found in _ADDRESS.finditer(text) for address in _spellings(found.group())
    )


def without_links(text: str, known: Collection[str]) -> str:
    """
    A text without links, images, addresses and tags, but for the links and addresses in ``known``.

    The words of a link stay where its target goes.
    """
    text = _TAG.sub(lambda tag: _kept_address(tag.group()[1:-1], known), text)
    text = _DEFINITION.sub("", _OPEN_TAG.sub("‹", text))
    # where a target stood, its neighbours may make a tag
    text = _OPEN_TAG.sub("‹", _without_targets(text, known))
    return _ADDRESS.sub(lambda found: _kept_in_sentence(found.group(), known), text)


def _kept_address(found: str, known: Collection[str]) -> str:
    """The address if it is known, else nothing."""
    return next((address for address in _spellings(found) if address in known), "")


def _kept_in_sentence(found: str, known: Collection[str]) -> str:
    """The same, with the signs behind it."""
    kept, ending = _kept_address(found, known), found[len(found.rstrip(_TRAILING)) :]
    return kept if kept.endswith(ending) else kept + ending


def _spellings(found: str) -> list[str]:
    """An address as found, and as it would be without the signs behind it."""
    return list(dict.fromkeys((found, found.rstrip(_TRAILING), found.partition(")")[0].rstrip(_TRAILING))))


def _without_targets(text: str, known: Collection[str]) -> str:
    """Links of Markdown keep their words, and their target if it is known; images keep neither sign nor target."""
    pieces, position = [], 0
    for found in _TARGET.finditer(text):
        target = found.group()[2:].strip("()[]<> ")
        if target in known and found.group().startswith("](") and not _is_image(text, found.start()):
            continue
        opening = text.rfind("[", position, found.start())
        before = text[position : found.start()]
        if opening >= 0:
            image = opening > position and text[opening - 1] == "!"
            before = text[position : opening - image] + text[opening + 1 : found.start()]
        # a target without an end is left to what follows, and apart from the words
        pieces.append(before if found.end() - found.start() > 2 else before + " ")
        position = found.end()
    return "".join((*pieces, text[position:]))


def _is_image(text: str, bracket: int) -> bool:
    opening = text.rfind("[", 0, bracket)
    return opening > 0 and text[opening - 1] == "!"
