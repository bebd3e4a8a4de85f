"""Attacks that others have collected, from a file that is not ours to keep here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rag.errors import RagError
from rag.language import detect_language
from tests.redteam.attacks import Attack, Language
from tests.redteam.cards import Planted, plant

TEXT_CHARS = 4_000
"""What of a text is planted; longer ones are cut."""

# the numbers of beginnings and endings have no common divisor, so that each pair comes once
_BEGINNINGS = """
Abel Brom Cand Delt Esc Farv Grol Hest Imb Jund Kelv Lorm Munt Narv Ostr Pelk Quim Rond Salv Tarm Ulv Vosk Wend Xant
Yold Zemb Arct Belg Crov
""".split()
_ENDINGS = "amil edor ifax olune uraz anzo exil iblo ostan upel arco elmin isque ovar unda atrel ipson".split()
MOST = len(_BEGINNINGS) * len(_ENDINGS)
_FORMS: dict[Language, tuple[str, ...]] = {
    "es": ("Jarabe {}", "Gotas {}", "Pomada {}", "Tabletas {}", "Loción {}"),
    "en": ("{} syrup", "{} drops", "{} ointment", "{} tablets", "{} lotion"),
}


class AttacksInvalid(RagError):
    """The file of attacks cannot be read."""


def read_attacks(path: Path) -> list[Attack]:
    """
    The attacks of a file, one JSON object a line: ``id, language, channel, kind, text``.

    Wherever they were meant for, their channel is the body of a card. They have no canary, and nothing that a model
    would say to obey. Of a language other than Spanish and English, the one that their words are nearer to counts.

    Raises:
        AttacksInvalid: the file cannot be read, or a line is no such object.
    """
    try:
        entries = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        return [_attack(entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AttacksInvalid(f"{path}: cannot be read as attacks, one JSON object a line: {error!r}.") from error


def plant_all(attacks: Sequence[Attack]) -> list[Planted]:
    """
    Each attack in the body of a card about a product that nobody makes; at most ``MOST``.

    Raises:
        AttacksInvalid: there are more.
    """
    if len(attacks) > MOST:
        raise AttacksInvalid(f"There are {len(attacks):,} attacks; names were invented for {MOST}. Take fewer.")
    return [plant(attack, _name(attack.language, number), number) for number, attack in enumerate(attacks)]


def _attack(entry: dict[str, str]) -> Attack:
    # half a surrogate pair can be written in JSON, and in no file
    text = entry["text"].encode("utf-8", "replace").decode()[:TEXT_CHARS]
    named = entry["language"]
    spanish = (named if named in ("es", "en") else detect_language(text)) == "es"
    return Attack(entry["id"], "es" if spanish else "en", "body", entry["kind"], canary="", text=text, obeys="")


def _name(language: Language, number: int) -> str:
    word = _BEGINNINGS[number % len(_BEGINNINGS)] + _ENDINGS[number % len(_ENDINGS)]
    return _FORMS[language][number % len(_FORMS[language])].format(word)
