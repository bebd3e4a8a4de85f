"""Keep the pieces that Spanish and English need, and drop the other rows of the embedding table with them."""

from __future__ import annotations

import copy
import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tqdm import tqdm
from wordfreq import top_n_list

from rag.model_export.weights import Encoder

WORDS_PER_LANGUAGE = 320_000
BRACKETED_WORDS_PER_LANGUAGE = 60_000
LANGUAGES = ("es", "en")
_SPACE_MARK = "▁"
_BATCH_WORDS = 10_000


def frequent_words() -> list[str]:
    """
    The most frequent words of each language (PyPI ``wordfreq``): plain, capitalised, in upper case.

    The commonest also stand behind a bracket: a piece that begins a word without a space (¿Por, (The) is another one.
    """
    forms: set[str] = set()
    for language in LANGUAGES:
        for rank, word in enumerate(top_n_list(language, WORDS_PER_LANGUAGE)):
            forms.update((word, word.capitalize(), word.upper()))
            if rank < BRACKETED_WORDS_PER_LANGUAGE:
                forms.update(("(" + word, "(" + word.capitalize()))
    return sorted(forms)


def pieces_in_use(tokenizer: dict[str, Any], words: Sequence[str]) -> list[int]:
    """
    Ids, ascending, of the pieces that these words need, of the special tokens, and of what no word list holds.

    That is: Latin pieces of one or two letters, so that an unknown word falls apart into letters and not into
    unknowns; single Greek letters (µ, α); and every run of digits, punctuation and Latin-1 symbols.
    """
    vocabulary = tokenizer["model"]["vocab"]
    kept = {token["id"] for token in tokenizer["added_tokens"] if token["id"] < len(vocabulary)}
    kept.update(number for number, (piece, _) in enumerate(vocabulary) if _is_basic(piece.removeprefix(_SPACE_MARK)))
    model = Tokenizer.from_str(json.dumps(tokenizer))
    with tqdm(total=len(words), desc="Vocabulary", unit=" words", mininterval=1.0) as progress:
        for first in range(0, len(words), _BATCH_WORDS):
            batch = words[first : first + _BATCH_WORDS]
            for encoding in model.encode_batch_fast(batch, add_special_tokens=False):
                kept.update(encoding.ids)
            progress.update(len(batch))
    return sorted(kept)


def _is_basic(piece: str) -> bool:
    scripts = {_script(letter) for letter in piece}
    if len(piece) <= 1:
        return scripts <= {"latin", "greek", "sign", "latin-1 sign"}
    return scripts <= {"latin-1 sign"} or (len(piece) == 2 and scripts <= {"latin", "sign", "latin-1 sign"})


def _script(letter: str) -> str:
    if unicodedata.category(letter)[0] not in "LM":
        return "latin-1 sign" if ord(letter) < 0x100 else "sign"
    first = unicodedata.name(letter, "?").split()[0]
    if first in {"LATIN", "COMBINING", "FEMININE", "MASCULINE"}:
        return "latin"
    return "greek" if first in {"GREEK", "MICRO"} else "other"


def prune(encoder: Encoder, kept: Sequence[int]) -> Encoder:
    """The same encoder with only these pieces (ids ascending), renumbered in their order."""
    number = {old: new for new, old in enumerate(kept)}
    tokenizer = copy.deepcopy(encoder.tokenizer)
    model = tokenizer["model"]
    model["vocab"] = [model["vocab"][old] for old in kept]
    model["unk_id"] = number[model["unk_id"]]
    tokenizer["added_tokens"] = [
        {**token, "id": number[token["id"]]} for token in tokenizer["added_tokens"] if token["id"] in number
    ]
    special_tokens = tokenizer["post_processor"]["special_tokens"]
    for token in special_tokens.values():
        token["ids"] = [number[old] for old in token["ids"]]
    tensors = {**encoder.tensors, "word": np.ascontiguousarray(encoder.tensors["word"][list(kept)])}
    return Encoder(encoder.config, tensors, tokenizer)


def share_of_equal_tokens(full: dict[str, Any], pruned: dict[str, Any], texts: Iterable[str]) -> tuple[int, int]:
    """How many tokens of the full tokenizer the pruned one gives too, in the same place, and how many there are."""
    wide, narrow = Tokenizer.from_str(json.dumps(full)), Tokenizer.from_str(json.dumps(pruned))
    equal = total = 0
    for text in texts:
        ours = narrow.encode(text, add_special_tokens=False)
        have = set(zip(ours.tokens, ours.offsets, strict=True))
        theirs = wide.encode(text, add_special_tokens=False)
        total += len(theirs.tokens)
        equal += sum((token, offset) in have for token, offset in zip(theirs.tokens, theirs.offsets, strict=True))
    return equal, total
