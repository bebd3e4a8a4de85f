"""Which of the two languages a question is in."""

from __future__ import annotations

# words that one language uses all the time and the other never or hardly ever
_WORDS = {
    "es": frozenset(
        """
        a al algo antes aunque cada como con cual cuales cuando cuanta cuantas cuanto cuantos de debe debo
        del desde donde dos el ella ellos en entre era es esa ese eso esta estaba estan estar este esto
        estoy fue fueron ha hace hacer hasta hay la las le les lo los mas me mi mis muy nada ni nos o otra
        otro para pero poco por porque puede puedo pueden que quien quienes se segun ser si siempre sin
        sobre solo son soy su sus tambien tan tengo tiene tienen tipo todo todos tras tu un una unas unos
        usted y ya yo hola gracias fecha año años mujer hombre llama llamo tomar dosis pastilla medico
        """.split()
    ),
    "en": frozenset(
        """
        about after all am an and any are at be been before by can could did do does for from get had has
        have he her his how i if in is it its just many may more most much my no not of off on or our out
        she should so some than that the their them then there these they this to too was we were what when
        where which while who whom whose why will with would you your hello thanks take tablet medicine name
        year years day time did's which's
        """.split()
    ),
}
_SPANISH_SIGNS = frozenset("¿¡ñáéíóúü")


def detect_language(text: str, *, default: str = "es") -> str:
    """``es`` or ``en``: the one with more of its everyday words; ``default`` when neither says anything."""
    spanish, english = _counts(text)
    if spanish == english:
        return default if spanish == 0 else _by_ending(_plain_words(text), default)
    return "es" if spanish > english else "en"


def word_lean(text: str) -> int:
    """How many more of its everyday words and signs speak for Spanish than for English; below 0 for English."""
    spanish, english = _counts(text)
    return spanish - english


def _counts(text: str) -> tuple[int, int]:
    words = _plain_words(text)
    signs = any(letter in _SPANISH_SIGNS for letter in text.lower())
    return sum(word in _WORDS["es"] for word in words) + 2 * signs, sum(word in _WORDS["en"] for word in words)


def _plain_words(text: str) -> list[str]:
    words = "".join(letter if letter.isalpha() else " " for letter in text.lower()).split()
    return [word.translate(_PLAIN) for word in words]


_PLAIN = str.maketrans("áéíóúü", "aeiouu")


def _by_ending(words: list[str], default: str) -> str:
    """A tie is settled by how the words end: most Spanish ones end in a vowel, n or s, few English ones in a or o."""
    spanish = sum(word.endswith(("a", "o", "os", "as", "ar", "er", "cion")) for word in words)
    return "es" if spanish * 2 >= len(words) else "en" if words else default
