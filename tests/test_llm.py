"""The client of language models, against a real server."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest

from rag.errors import SettingsInvalid
from rag.llm import BODY_BYTES, LONGEST_WAIT_SECONDS, ChatClient, Completion, LlmFailed, Message
from tests.conftest import free_port
from tests.fake_llm import Asked, Behaviour, FakeLlm, Reply, fails, says

KEY = "sk-una-clave-muy-secreta"
PROMPT = "Una pregunta larga que nadie más debe leer, con su cifra 12345."
NOON = 1_800_000_000.0


class Waits(list[float]):
    """A sleep that takes no time and notes how long it should have been."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def in_turn(*replies: Reply) -> Behaviour:
    """A behaviour that gives these replies one after another."""
    left = list(replies)
    return lambda _: left.pop(0)


def ask(fake: FakeLlm, **changes: Any) -> tuple[Completion, Waits]:
    """One question; what waits were asked for is noted in place of waiting."""
    waits = changes.setdefault("sleep", Waits())
    options = {
        "api_key": KEY,
        "timeout_seconds": 5.0,
        "now": lambda: NOON,
        "uniform": lambda low, high: high,
        **changes,
    }
    call = {name: options.pop(name) for name in ("json_mode", "temperature") if name in options}

    async def go() -> Completion:
        async with ChatClient(options.pop("base_url", fake.url), "un-modelo", **options) as client:
            return await client.complete(
                [Message("system", "Sé breve."), Message("user", PROMPT)], max_tokens=7, **call
            )

    return asyncio.run(go()), waits


def failure(behaviour: Behaviour, **changes: Any) -> tuple[LlmFailed, FakeLlm]:
    """What a question to such a server fails with; nothing that is said of it may be indiscreet."""
    with FakeLlm(behaviour) as fake:
        with pytest.raises(LlmFailed) as caught:
            ask(fake, **changes)
        shown = "".join(traceback.format_exception(caught.value))
        message = str(caught.value)
        assert KEY not in shown
        assert "nadie más debe leer" not in message
        assert len(message) < 400
        assert message.isprintable()
        return caught.value, fake


def test_a_chat_is_sent_and_answered() -> None:
    """Model, messages, limit and key are sent as the interface wants, and the answer comes back with its counts."""
    with FakeLlm(lambda _: says("Hola.", tokens=(11, 3))) as fake:
        found, waits = ask(fake)
    [asked] = fake.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "un-modelo",
        "messages": [{"role": "system", "content": "Sé breve."}, {"role": "user", "content": PROMPT}],
        "max_tokens": 7,
        "temperature": 0.0,
        "stream": False,
    }
    assert (found.text, found.finish_reason, found.tokens_in, found.tokens_out, found.attempts) == (
        "Hola.",
        "stop",
        11,
        3,
        1,
    )
    assert 0 < found.seconds < 5
    assert not waits


def test_json_mode_is_asked_for() -> None:
    """JSON mode and temperature go into the request."""
    with FakeLlm(lambda _: says("{}")) as fake:
        ask(fake, json_mode=True, temperature=0.5)
    assert fake.asked[0].body["response_format"] == {"type": "json_object"}
    assert fake.asked[0].body["temperature"] == 0.5


def test_no_key_no_header() -> None:
    """Without a key nothing is sent as one."""
    with FakeLlm(lambda _: says("Hola.")) as fake:
        ask(fake, api_key=None)
    assert "authorization" not in fake.asked[0].headers


def test_a_slash_behind_the_address_changes_nothing() -> None:
    """An address with a slash at its end is the same address."""
    with FakeLlm(lambda _: says("Hola.")) as fake:
        ask(fake, base_url=fake.url + "/")
    assert fake.asked[0].path == "/v1/chat/completions"


USAGES: list[tuple[object, tuple[int | None, int | None]]] = [
    (None, (None, None)),
    ({}, (None, None)),
    ([], (None, None)),
    ({"prompt_tokens": "9", "completion_tokens": -1}, (None, None)),
    ({"prompt_tokens": True, "completion_tokens": 0}, (None, 0)),
]


@pytest.mark.parametrize(("usage", "counts"), USAGES, ids=[json.dumps(usage) for usage, _ in USAGES])
def test_missing_counts_are_none(usage: object, counts: tuple[int | None, int | None]) -> None:
    """Token counts that are missing or make no sense are None, and the answer is used."""
    raw = json.dumps({"choices": [{"message": {"content": "Hola."}}], "usage": usage}).encode()
    with FakeLlm(lambda _: Reply(raw)) as fake:
        found, _ = ask(fake)
    assert (found.tokens_in, found.tokens_out) == counts
    assert found.finish_reason is None


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_overload_is_tried_again(status: int) -> None:
    """Overload is tried again, after a wait that may be twice as long each time."""
    with FakeLlm(in_turn(fails(status), fails(status), fails(status), says("Hola."))) as fake:
        found, waits = ask(fake)
    assert found.attempts == 4
    assert waits == [0.5, 1.0, 2.0]


def test_the_whole_wait_is_random() -> None:
    """What is waited is drawn from zero to the longest, so that many clients spread."""
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return 0.25

    with FakeLlm(in_turn(*[fails(503)] * 7, says("Hola."))) as fake:
        _, waits = ask(fake, attempts=8, uniform=uniform)
    assert drawn == [(0.0, longest) for longest in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0)]
    assert waits == [0.25] * 7


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), (" 7 ", 7.0), (formatdate(NOON + 30, usegmt=True), 30.0), (formatdate(NOON - 30, usegmt=True), 0.0)],
    ids=["seconds", "blanks", "date", "past-date"],
)
def test_retry_after_is_honoured(status: int, header: str, seconds: float) -> None:
    """What Retry-After asks for, in seconds or as a date, is waited at least, and at most a second more."""
    with FakeLlm(in_turn(fails(status, retry_after=header), says("Hola."))) as fake:
        found, waits = ask(fake, uniform=lambda low, high: (low + high) / 2)
    assert found.attempts == 2
    assert list(waits) == pytest.approx([seconds + 0.5], abs=1e-6)


@pytest.mark.parametrize("header", ["soon", "-1", "1.5", "²", ""])
def test_an_unreadable_retry_after_is_none(header: str) -> None:
    """A Retry-After that cannot be read leaves the usual wait."""
    with FakeLlm(in_turn(fails(429, retry_after=header.encode().decode("latin-1")), says("Hola."))) as fake:
        assert ask(fake)[1] == [0.5]


@pytest.mark.parametrize(
    "header", [str(int(LONGEST_WAIT_SECONDS) + 1), "9" * 400, formatdate(NOON + 3_600, usegmt=True)]
)
def test_too_long_a_wait_is_given_up(header: str) -> None:
    """A server that asks for more than a minute is given up at once, and the message says so."""
    waits = Waits()
    failed, fake = failure(lambda _: fails(429, retry_after=header), sleep=waits)
    assert (failed.reason, failed.status, len(fake.asked), list(waits)) == ("rate_limited", 429, 1, [])
    assert "asks to wait" in str(failed)


@pytest.mark.parametrize(
    ("status", "reason"), [(429, "rate_limited"), (408, "status"), (500, "status"), (503, "status")]
)
def test_attempts_end(status: int, reason: str) -> None:
    """After the last attempt the fault is told, with its status and what to do."""
    failed, fake = failure(lambda _: fails(status), attempts=3)
    assert (failed.reason, failed.status, len(fake.asked)) == (reason, status, 3)
    assert fake.url in str(failed)
    assert not failed.is_hopeless


@pytest.mark.parametrize(
    ("status", "reason", "hopeless"),
    [
        (400, "status", False),
        (401, "denied", True),
        (403, "denied", True),
        (404, "status", True),
        (409, "status", False),
        (422, "status", False),
        (301, "redirect", True),
        (307, "redirect", True),
    ],
)
def test_other_statuses_are_not_tried_again(status: int, reason: str, hopeless: bool) -> None:
    """No other status is tried again, and those that every request would get say that they are hopeless."""
    failed, fake = failure(lambda _: fails(status, location="/v1/otra"))
    assert (failed.reason, failed.status, failed.is_hopeless) == (reason, status, hopeless)
    assert len(fake.asked) == 1


BROKEN: list[tuple[str, bytes, str]] = [
    ("empty", b"", "bad_response"),
    ("html", b"<html>502</html>", "bad_response"),
    ("cut", b'{"choices": [', "bad_response"),
    ("not-utf-8", b'{"choices": "\xff"}', "bad_response"),
    ("deep", b"[" * 100_000, "bad_response"),
    ("long-number", b"9" * 10_000, "bad_response"),
    ("list", b"[]", "bad_response"),
    ("no-choices", b"{}", "bad_response"),
    ("choices-empty", b'{"choices": []}', "bad_response"),
    ("choices-no-list", b'{"choices": {"0": 1}}', "bad_response"),
    ("choice-null", b'{"choices": [null]}', "bad_response"),
    ("no-message", b'{"choices": [{"text": "hola"}]}', "bad_response"),
    ("content-null", b'{"choices": [{"message": {"content": null}}]}', "bad_response"),
    ("content-parts", b'{"choices": [{"message": {"content": [{"text": "hola"}]}}]}', "bad_response"),
    ("error", b'{"error": {"message": "no room"}}', "error_body"),
    ("error-text", b'{"error": "no room"}', "error_body"),
    ("error-and-choices", b'{"error": {"code": 1}, "choices": [{"message": {"content": "x"}}]}', "error_body"),
    ("too-large", b" " * (BODY_BYTES + 1), "too_large"),
]


@pytest.mark.parametrize(("raw", "reason"), [entry[1:] for entry in BROKEN], ids=[entry[0] for entry in BROKEN])
def test_a_broken_answer_is_a_fault(raw: bytes, reason: str) -> None:
    """Whatever comes with status 200 and is no answer is a typed fault, and is not tried again."""
    failed, fake = failure(lambda _: Reply(raw))
    assert (failed.reason, len(fake.asked)) == (reason, 1)


def test_a_body_of_the_largest_size_is_read() -> None:
    """The cap is on more than it says, not on exactly that."""
    raw = json.dumps({"choices": [{"message": {"content": "Hola."}}]}).encode()
    with FakeLlm(lambda _: Reply(raw.ljust(BODY_BYTES))) as fake:
        assert ask(fake)[0].text == "Hola."


def test_compressed_answers_are_refused() -> None:
    """An answer that might unpack to any size is refused."""
    failed, fake = failure(lambda _: Reply(b"x", headers={"Content-Encoding": "gzip"}))
    assert failed.reason == "bad_response"
    assert fake.asked[0].headers["accept-encoding"] == "identity"


def test_half_a_surrogate_becomes_a_question_mark() -> None:
    """Text that cannot be stored as UTF-8 arrives as text that can."""
    raw = b'{"choices": [{"message": {"content": "a\\ud800b"}}]}'
    with FakeLlm(lambda _: Reply(raw)) as fake:
        assert ask(fake)[0].text == "a?b"


@pytest.mark.parametrize(
    "slow",
    [Reply(says("Hola.").raw, wait_seconds=0.6), Reply(says("Hola.").raw, drip_seconds=0.05)],
    ids=["silent", "dripping"],
)
def test_an_attempt_has_a_limit(slow: Reply) -> None:
    """A server that says nothing, or says it byte by byte, is left after the limit, and tried again."""
    failed, fake = failure(lambda _: slow, timeout_seconds=0.15, attempts=2)
    assert (failed.reason, failed.status, len(fake.asked)) == ("timeout", None, 2)
    assert "0.15 seconds" in str(failed)


def test_nobody_there_is_tried_again() -> None:
    """A port where nobody listens is tried as often as overload is."""
    waits = Waits()
    failed, _ = failure(lambda _: says(""), base_url=f"http://127.0.0.1:{free_port()}/v1", sleep=waits)
    assert failed.reason == "unreachable"
    assert len(waits) == 3


def test_a_cut_connection_is_tried_again() -> None:
    """A body shorter than announced counts as a broken connection."""
    short = Reply(b"{}", headers={"Content-Length": "50", "Connection": "close"})
    with FakeLlm(in_turn(short, says("Hola."))) as fake:
        assert ask(fake)[0].attempts == 2


def test_the_environments_proxy_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies that the environment names get neither question nor key."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with FakeLlm(lambda _: says("Hola.")) as fake:
        assert ask(fake)[0].text == "Hola."


def echo_prompt(asked: Asked) -> Reply:
    return fails(400, f"cannot read: {asked.prompt}")


def echo_key(asked: Asked) -> Reply:
    return fails(400, asked.headers["authorization"])


@pytest.mark.parametrize("behaviour", [echo_prompt, echo_key], ids=["prompt", "key"])
def test_echoes_are_not_passed_on(behaviour: Callable[[Asked], Reply]) -> None:
    """What a server repeats of prompt or key is in no message."""
    failed, _ = failure(behaviour)
    assert str(failed).count("answered 400. ") == 1


def test_a_little_of_the_servers_words_is_shown() -> None:
    """The start of the server's own message is shown in one line, without control characters."""
    failed, _ = failure(lambda _: fails(400, "the model\n\x1b[31m is\x00 unknown " + "x" * 500))
    assert "answered 400: the model [31m is unknown xxx" in str(failed)


def test_the_key_is_in_no_representation() -> None:
    """Neither repr nor str of a client shows its key."""
    client = ChatClient("http://127.0.0.1:1/v1", "un-modelo", api_key=KEY)
    assert KEY not in f"{client!r} {client}"
    assert "un-modelo" in repr(client)


def test_an_address_is_shown_without_credentials() -> None:
    """A name and password in the address are not shown."""
    assert "clave" not in repr(ChatClient("http://nombre:clave@127.0.0.1:1/v1", "un-modelo"))


@pytest.mark.parametrize("key", ["con espacio", "con\nsalto", "con-eñe"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    """A key with other signs is refused at once, and not shown."""
    with pytest.raises(SettingsInvalid) as caught:
        ChatClient("http://127.0.0.1:1/v1", "un-modelo", api_key=key)
    assert key not in str(caught.value)


def test_a_client_opens_again() -> None:
    """A client that was left may be entered again, in another event loop."""
    with FakeLlm(lambda _: says("Hola.")) as fake:
        client = ChatClient(fake.url, "un-modelo")

        async def go() -> str:
            async with client:
                return (await client.complete([Message("user", "Hola")], max_tokens=5)).text

        assert [asyncio.run(go()), asyncio.run(go())] == ["Hola.", "Hola."]
