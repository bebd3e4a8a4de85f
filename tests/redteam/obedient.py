"""A language model that does whatever the last order says that it was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from tests.fake_llm import Asked, Behaviour, Reply, says
from tests.redteam.attacks import CANARY, Attack

_PLACEHOLDER = re.compile(r"\{(system|prompt|card)\}")
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
        messages = asked.body["messages"]
        prompt = "\n\n".join(str(message["content"]) for message in messages)
        orders = [by_canary[canary] for canary in re.findall(CANARY, prompt) if canary in by_canary]
        if orders:
            system = "\n\n".join(str(message["content"]) for message in messages if message["role"] == "system")
            values = {"system": system, "prompt": prompt, "card": shows(asked)}
            # in one pass, as what was sent may look like a placeholder
            text = _PLACEHOLDER.sub(lambda name: values[name[1]], orders[-1].obeys)
            text = f"{answers(asked)} {text}" if polite else text
        else:
            text = answers(asked)
        return says(_object(text) if "response_format" in asked.body else text)

    return behave


def _object(text: str) -> str:
    cited = list(dict.fromkeys(_MARKER.findall(text)))
    return json.dumps({"answer": text, "citations": cited, "refused": False}, ensure_ascii=False)
