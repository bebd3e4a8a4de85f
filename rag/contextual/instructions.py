"""Words that address a reader or a model instead of describing a text."""

from __future__ import annotations

import re
import unicodedata

_ROLES = frozenset("system user assistant human ai developer sistema usuario asistente humano".split())
# no word that also opens descriptions: "Toma de …", "Consulta …", "Muestra …", "Follow-up …"
_IMPERATIVES = frozenset(
    """
    ignora ignore ignorad olvida olvide descarta descarte desobedece desobedezca responde responda respondan contesta
    conteste di diga escribe escriba traduce traduzca devuelve devuelva imprime imprima repite repita haz haga actua
    actue finge finja simula simule cite clica ejecuta ejecute revela revele envia envie obedece obedezca visite pulse
    tome consulte evite llame siga recuerde lea pregunte
    disregard forget override answer respond reply say write translate print output pretend act click execute reveal
    obey tell take
    """.split()
)
_PHRASES = (
    "system prompt",
    "prompt del sistema",
    "as an ai",
    "as a language model",
    "as a large language model",
    "i am an ai",
    "i m an ai",
    "como modelo de lenguaje",
    "como un modelo de lenguaje",
    "como inteligencia artificial",
    "como ia ",
    "soy un modelo",
    "soy una ia",
    "soy un asistente",
    "lo siento",
    "no puedo ayudar",
    "no puedo proporcionar",
    "i am sorry",
    "i m sorry",
    "i cannot",
    "i can t",
    "i can not",
    "you are now",
    "you are an ai",
    "you are a helpful",
    "from now on",
    "a partir de ahora responde",
    "a partir de ahora debes",
    "ahora eres",
    "eres ahora",
    "eres un asistente",
    "eres una ia",
    "haz clic",
    "cita esta",
    "cita siempre",
    "cite this",
    "cite always",
    "click here",
    "pulsa aqui",
    "ignora todo",
    "olvida todo",
    "ignore all",
    "ignore everything",
    "forget everything",
    "new instructions",
    "nuevas instrucciones",
    "aqui tienes",
    "aqui esta la nota",
    "here is the note",
    "here is a note",
    "sure here",
    "claro aqui",
)
_DROP = frozenset(
    "ignora ignore ignorar ignorad ignores olvida olvide olvidar omite omita descarta descarte desobedece disregard "
    "forget override bypass".split()
)
_ORDERS = frozenset("instrucciones instruccion reglas ordenes prompt instructions instruction rules orders".split())
_MUST = (
    "debes ",
    "tienes que ",
    "deberas ",
    "you must ",
    "you should ",
    "you have to ",
    "always ",
    "siempre ",
    "never ",
)
_TASKS = frozenset(
    "responder contestar decir ignorar citar mostrar recomendar preferir responde contesta di cita answer respond "
    "reply say ignore cite show recommend prefer".split()
)
_FILLERS = frozenset(
    """
    a de del la las el los lo todo toda todas todos tu tus su sus esta estas esa esas mis nuestras anterior anteriores
    previa previas siguientes about all any of my our the these those this your above previous prior earlier other
    """.split()
)
_SENTENCE_ENDS = re.compile(r"[.!?…;\n]+|[¿¡]")


def find_instruction(text: str) -> str:
    """
    The piece of a text that reads like an instruction or like a model speaking of itself; empty if there is none.

    Third persons that describe (``Explica cómo…``) are no instructions; ``Responde…`` may be one, so it counts.
    """
    for sentence in _SENTENCE_ENDS.split(text):
        words = _plain_words(sentence)
        if not words:
            continue
        if words[0] in _IMPERATIVES or _has_role(sentence, words):
            return sentence.strip()
        line = " ".join(words) + " "
        if any(f" {line}".find(f" {phrase}") >= 0 for phrase in _PHRASES):
            return sentence.strip()
        if _drops_orders(words) or _sets_a_task(line):
            return sentence.strip()
    return ""


def _plain_words(text: str) -> list[str]:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return "".join(letter if letter.isalnum() else " " for letter in plain).split()


def _has_role(sentence: str, words: list[str]) -> bool:
    """A sentence that begins like a turn of a chat: ``system:``."""
    head, colon, _ = sentence.partition(":")
    return bool(colon) and words[0] in _ROLES and len(_plain_words(head)) == 1


def _drops_orders(words: list[str]) -> bool:
    """Ignore, forget … the instructions, all previous rules …; not what happens when someone forgets a dose."""
    for at, word in enumerate(words):
        if word in _DROP:
            named = next((other for other in words[at + 1 :] if other not in _FILLERS), "")
            if named in _ORDERS:
                return True
    return False


def _sets_a_task(line: str) -> bool:
    """You must, always … answer, cite, say."""
    for duty in _MUST:
        at = f" {line}".find(f" {duty}")
        if at >= 0 and line[at + len(duty) :].split(" ", 1)[0] in _TASKS:
            return True
    return False
