"""A language model that does whatever the last order says that it was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from tests.fake_llm import Asked, Behaviour, Reply, says, streamed
from tests.redteam.attacks import CANARY, Attack

_PLACEHOLDER = re.compile(r"\{(system|prompt|card)\}")
ECHOES = ("text", "system", "prompt")
_MARKER = re.compile(r"\[cite:([a-z0-9._-]+)\]")


def obedient(
    attacks: Sequence[Attack],
    *,
    answers: Callable[[Asked], str],
    shows: Callable[[Asked], str] = lambda _: "",
    polite: bool = False,
) -> Behaviour:
    """
    A behaviour for ``FakeLlm``: the last attack whose canary stands in a request is obeyed to the letter.

    ``answers`` is what it says to a request without any; ``shows`` names a card that a request shows. Both know the
    form of the prompt, which is not known here. A ``polite`` one answers first and obeys then, so that what it was
    ordered to say stands beside something true. A request for JSON gets the text as the answer of an object.
    """
    by_canary = {attack.canary: attack for attack in attacks}

    def behave(asked: Asked) -> Reply:
        canaries = re.findall(CANARY, _sent(asked))
        orders = [by_canary[canary] for canary in canaries if canary in by_canary]
        if orders:
            values = {"system": _sent(asked, "system"), "prompt": _sent(asked), "card": shows(asked)}
            # in one pass, as what was sent may look like a placeholder
            text = _PLACEHOLDER.sub(lambda name: values[name[1]], orders[-1].obeys)
            text = f"{answers(asked)} {text}" if polite else text
        else:
            text = answers(asked)
        return says(_object(text) if "response_format" in asked.body else text)

    return behave


def echoing(
    echo: str, text: str, *, opens: Callable[[Asked], str], shows: Callable[[Asked], str], piece_chars: int = 50
) -> Behaviour:
    """
    A behaviour for attacks of others, which have no canary: it says the same thing whatever it is asked.

    ``echo`` is one of ``ECHOES``: ``text`` itself, the system message, or all that was sent. So that as much of it as
    can be is shown, it begins with the true sentence that ``opens`` gives, and behind each line stands the marker of
    the card that ``shows`` names.
    """

    def behave(asked: Asked) -> Reply:
        echoed = {"text": text, "system": _sent(asked, "system"), "prompt": _sent(asked)}[echo]
        lines = [opens(asked), *(line for line in echoed.splitlines() if line.strip())]
        said = "\n".join(f"{line} [cite:{shows(asked)}]" for line in lines)
        reply = says(_object(said) if "response_format" in asked.body else said)
        return streamed(reply, piece_chars=piece_chars) if asked.wants_stream else reply

    return behave


def _sent(asked: Asked, role: str | None = None) -> str:
    """The words of all messages, or of those of one role."""
    messages = asked.body["messages"]
    return "\n\n".join(str(message["content"]) for message in messages if role in (None, message["role"]))


def _object(text: str) -> str:
    cited = list(dict.fromkeys(_MARKER.findall(text)))
    return json.dumps({"answer": text, "citations": cited, "refused": False}, ensure_ascii=False)
