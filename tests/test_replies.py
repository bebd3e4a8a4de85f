"""What is read from a model's reply that should be JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.replies import CITATIONS_READ, STARTS_TRIED, Reply, ReplyUnreadable, read_reply
from tests.conftest import CASES_DIR
from tests.growth import grows_in_step

BOUNDED = settings(
    max_examples=200, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def read(text: str) -> Reply | None:
    """The reply, or None for the typed failure."""
    try:
        return read_reply(text)
    except ReplyUnreadable:
        return None


def reply(answer: str, *card_ids: str, refused: bool = False) -> Reply:
    return Reply(answer, card_ids, refused)


BLOCKS = (CASES_DIR / "O17_llm_json" / "llm.txt").read_text("utf-8").split("=====\n")
OUTCOMES = [
    reply("Use ```dosis``` así", "card-1"),
    reply("ok", "card-1"),
    reply("ok"),
    reply("ok"),
    reply("ok"),
    reply("línea\nrota", "card-1"),
    None,
    reply("ok", "card-1"),
    None,
]


@pytest.mark.parametrize(
    ("text", "expected"), list(zip(BLOCKS, OUTCOMES, strict=True)), ids=[repr(block) for block in BLOCKS]
)
def test_replies_that_broke_others(text: str, expected: Reply | None) -> None:
    """Each of them gives its answer, or the one failure that there is."""
    assert read(text) == expected


DEEP = 100_000
READ: list[tuple[str, str, Reply | None]] = [
    ("just as asked", '{"answer": "ok", "citations": ["a", "b"], "refused": false}', reply("ok", "a", "b")),
    ("a fence without an end", '```json\n{"answer": "ok"}', reply("ok")),
    ("a byte order mark", '\ufeff{"answer": "ok"}', reply("ok")),
    ("sentences in a list", '{"answer": ["Uno. [cite:a]", "Dos."], "citations": []}', reply("Uno. [cite:a]\nDos.")),
    ("an empty list of sentences", '{"answer": [], "citations": []}', None),
    ("a list of other things", '{"answer": ["Uno.", 2]}', None),
    ("words behind", '{"answer": "ok"}\n\nEspero que ayude.', reply("ok")),
    ("a thought with an object", '<think>{"answer": "no"}</think>{"answer": "sí"}', reply("sí")),
    ("a thought with prose", "<think>{x}</think> Beba agua.", reply("Beba agua.")),
    ("prose", "Beba agua [cite:a].", reply("Beba agua [cite:a].")),
    ("capitals and blanks", '{" ANSWER ": "ok", "Citations": ["a"]}', reply("ok", "a")),
    ("commas in strings", '{"answer": "a,] b,} \\",}", "citations": ["a",],}', reply('a,] b,} ",}', "a")),
    ("braces in strings", '{"answer": "con {llaves} y [corchetes]"}', reply("con {llaves} y [corchetes]")),
    ("an object in an object", '{"result": {"answer": "ok"}}', reply("ok")),
    ("an object in a list of lists", '[["x"], {"answer": "ok"}]', reply("ok")),
    ("citations of other kinds", '{"answer": "ok", "citations": ["a", 1, null, {"id": "b"}]}', reply("ok", "a")),
    ("citations as an object", '{"answer": "ok", "citations": {"a": 1}}', reply("ok")),
    ("a refusal", '{"answer": "", "citations": [], "refused": true}', reply("", refused=True)),
    ("a refusal and no more", '{"refused": true}', reply("", refused=True)),
    ("a refusal with words", '{"answer": "No sé.", "refused": true}', reply("No sé.", refused=True)),
    ("a refusal in words", '{"answer": "ok", "refused": "true"}', reply("ok")),
    ("half a pair", '{"answer": "\\ud83d ya"}', reply("? ya")),
    ("no number", '{"answer": "ok", "n": NaN}', reply("ok")),
    ("half an object first", '{"answer" {"answer": "ok"}', reply("ok")),
    ("nothing", "", None),
    ("blanks", " \n", None),
    ("a thought and nothing", "<think>a</think>", None),
    ("an empty answer", '{"answer": "  "}', None),
    ("no answer", '{"respuesta": "ok"}', None),
    ("an answer in pieces", '{"answer": ["a", "b"]}', reply("a\nb")),
    ("an answer that is a number", '{"answer": 5}', None),
    ("an object cut off", '{"answer": "ok", "citations": ["a"', None),
    ("single quotes", "{'answer': 'ok'}", None),
    ("a list of words", '["ok"]', None),
    ("a string", '"ok"', None),
    ("code", "```\nok\n```", None),
    ("the end of an object", 'a", "citations": []}', None),
    ("the end of a thought in an object", '{"answer": "a</think>b", "citations": []}', None),
    ("a long number as answer", f'{{"answer": {"9" * 5_000}}}', None),
    ("a long number beside it", f'{{"answer": "ok", "n": {"9" * 5_000}}}', None),
    ("deep lists", "[" * DEEP, None),
    ("deep objects", '{"a":' * DEEP, None),
    ("something deep beside it", f'{{"answer": "ok", "x": {"[" * DEEP}{"]" * DEEP}}}', None),
    ("too many starts", "{" * STARTS_TRIED + '{"answer": "ok"}', None),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in READ], ids=[row[0].replace(" ", "-") for row in READ]
)
def test_a_reply_is_read_or_refused(text: str, expected: Reply | None) -> None:
    """What can be understood is; all else is the typed failure, and no JSON is ever an answer."""
    assert read(text) == expected


def test_only_some_citations_are_read() -> None:
    """Of an endless list of cards the first are read."""
    found = read(json.dumps({"answer": "ok", "citations": [f"card-{number}" for number in range(1_000)]}))
    assert found == reply("ok", *(f"card-{number}" for number in range(CITATIONS_READ)))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["answer", "x"]), inner, max_size=2),
    max_leaves=8,
)
BEFORE = st.sampled_from(["", "Aquí está:\n", "```json\n", "<think>{pienso}</think>", "pienso</think>"])
BEHIND = st.sampled_from(["", "\n```", " fin.", ' {"answer": "otra"}'])


@given(st.text().filter(str.strip), st.lists(st.text(max_size=9), max_size=4), BEFORE, BEHIND)
@BOUNDED
def test_an_object_comes_back(answer: str, card_ids: list[str], before: str, behind: str) -> None:
    """An object as it was asked for is read as it is, whatever stands around it."""
    text = json.dumps({"answer": answer, "citations": card_ids, "refused": False})
    assert read(before + text + behind) == reply(answer, *card_ids)


@given(st.one_of(VALUES.map(json.dumps), st.lists(st.sampled_from([*'{}[]",:\\ a', "answer", "null"])).map("".join)))
@BOUNDED
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever a model writes gives an answer with words, a refusal, or the typed failure."""
    found = read(text)
    assert found is None or found.refused or found.answer.strip()


@pytest.mark.parametrize(
    "piece", ["{", "[", '"', '"\\', "\\", ",", ", ", ",}", '{"a":', '{"answer": "', "a", "</think>"]
)
def test_reading_grows_with_the_reply(piece: str) -> None:
    """No reply makes reading slow."""
    assert grows_in_step(lambda text: read("{" + text), piece, times=2_500)
