"""Streamed answers: in time or not at all, in the right words, and nothing of key or question anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import traceback
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rag.llm import ChatClient, CircuitBreaker, LlmFailed, Message, StreamLimits, StreamPiece
from rag.llm.events import EventReader
from rag.llm.faults import Faults, Retriable
from rag.llm.replies import StreamReader
from tests.faulty_llm import DONE, END, FAULTS, ROLE, TEXT, USAGE, Asked, FaultyLlm, event, words_of

KEY = "sk-una-clave-muy-secreta"
PROMPT = "Una pregunta larga que nadie más debe leer, con su cifra 12345."
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}
LIMITS = StreamLimits(
    connect_seconds=5.0, first_byte_seconds=5.0, idle_seconds=5.0, total_seconds=9.0, reply_bytes=100_000
)
QUICK = replace(LIMITS, connect_seconds=0.3, first_byte_seconds=0.3, idle_seconds=0.3, total_seconds=1.5)
"""For endpoints that have to be waited for in vain."""
FORMATS = [
    {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}},
    {"type": "json_object"},
    None,
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a question."""

    pieces: list[StreamPiece]
    failed: LlmFailed | None
    waits: list[float]
    seconds: float

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def reason(self) -> str | None:
        return self.failed.reason if self.failed else None


@contextlib.asynccontextmanager
async def open_client(fake: FaultyLlm, waits: list[float], **changes: Any) -> Any:
    """A client that notes what it should have waited in place of waiting."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    options = {"api_key": KEY, "sleep": sleep, "uniform": lambda low, high: high, **changes}
    async with ChatClient(fake.url, "un-modelo", **options) as client:
        yield client


async def listen(client: ChatClient, waits: list[float], **changes: Any) -> Outcome:
    """One question to its end, good or bad."""
    pieces: list[StreamPiece] = []
    failed = None
    started = time.monotonic()
    options = {"max_tokens": 7, "limits": LIMITS, **changes}
    try:
        async for piece in client.stream([Message("system", "Sé breve."), Message("user", PROMPT)], **options):
            pieces.append(piece)
    except LlmFailed as caught:
        failed = caught
    return Outcome(pieces, failed, waits, time.monotonic() - started)


def ask(fake: FaultyLlm, *, client: dict[str, Any] | None = None, **changes: Any) -> Outcome:
    """One question by a client of its own."""

    async def go() -> Outcome:
        waits: list[float] = []
        async with open_client(fake, waits, **(client or {})) as opened:
            return await listen(opened, waits, **changes)

    return asyncio.run(go())


@pytest.fixture
def all_logs(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Whatever any logger tells, at the chattiest."""
    for name in ("", "asyncio", "httpx", "httpcore", "httpcore.connection", "httpcore.http11"):
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_ends_well(kind: str, all_logs: pytest.LogCaptureFixture) -> None:
    """Whatever an endpoint does, the text or the right reason comes in time, and nobody reads key or question."""
    fault = FAULTS[kind]
    limits = QUICK if "timeout" in fault.reasons or kind == "status-500-silent" else LIMITS
    with FaultyLlm(kind) as fake:
        found = ask(fake, limits=limits)
        assert fake.wait_until_left()
    assert found.seconds < limits.total_seconds + 1.0
    if fault.gets_through:
        assert (found.reason, found.text) == (None, TEXT)
        assert [piece.finish_reason for piece in found.pieces if piece.finish_reason] == ["stop"]
        assert found.pieces[-1].finish_reason == "stop"
    else:
        assert found.failed
        assert found.reason in fault.reasons
        assert bool(found.text) == fault.begins
        assert fake.url in str(found.failed)
        assert len(str(found.failed)) < 400
    shown = all_logs.text + repr(found.failed) + str(found.failed)
    if found.failed:
        shown += "".join(traceback.format_exception(found.failed))
    assert KEY not in shown
    assert "nadie más debe leer" not in shown


def test_there_are_many_faults() -> None:
    """The table of faults is not emptied by mistake."""
    assert len(FAULTS) >= 28
    assert sum(fault.gets_through for fault in FAULTS.values()) >= 8
    assert sum(fault.begins for fault in FAULTS.values()) >= 6


def test_what_is_asked() -> None:
    """Model, messages, limit and key are sent as the interface wants, with a wish for a stream and no more."""
    with FaultyLlm() as fake:
        ask(fake, temperature=0.5)
    [asked] = fake.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.body == {
        "model": "un-modelo",
        "messages": [{"role": "system", "content": "Sé breve."}, {"role": "user", "content": PROMPT}],
        "max_tokens": 7,
        "temperature": 0.5,
        "stream": True,
    }


def test_pieces_come_as_they_are_written() -> None:
    """A piece is given when it is there, not when the answer is done."""

    async def go(fake: FaultyLlm) -> str:
        async with open_client(fake, []) as client:
            pieces = client.stream([Message("user", PROMPT)], max_tokens=7)
            first = await anext(pieces)
            await pieces.aclose()
            return str(first.text)

    with FaultyLlm("stalls-amid") as fake:
        assert asyncio.run(go(fake)) == words_of(TEXT)[0]


@pytest.mark.parametrize("kind", ["status-429", "status-408", "status-500", "closes-at-once", "silent", "no-event"])
def test_what_may_pass_is_tried_again(kind: str) -> None:
    """Overload, silence and broken connections are tried again as long as there was no text."""
    with FaultyLlm(kind, kind, "well") as fake:
        found = ask(fake, limits=replace(QUICK, total_seconds=9.0))
    assert (found.text, fake.accepted, found.waits) == (TEXT, 3, [0.5, 1.0])


@pytest.mark.parametrize("kind", [name for name, fault in FAULTS.items() if fault.begins])
def test_nothing_is_tried_again_after_text(kind: str) -> None:
    """Nobody is told the beginning of an answer twice."""
    with FaultyLlm(kind, "well") as fake:
        found = ask(fake, limits=QUICK if kind == "stalls-amid" else LIMITS)
    assert found.failed
    assert len(fake.asked) == 1


@pytest.mark.parametrize("kind", ["status-401", "status-404", "status-400", "redirect", "html", "error-event", "empty"])
def test_what_will_not_pass_is_asked_once(kind: str) -> None:
    """What would come again is not asked for again."""
    with FaultyLlm(kind, "well") as fake:
        assert ask(fake).failed
    assert len(fake.asked) == 1


def test_attempts_end() -> None:
    """After the last attempt the fault is told."""
    with FaultyLlm("status-503") as fake:
        found = ask(fake)
    assert (found.reason, len(fake.asked), found.waits) == ("status", 3, [2.0, 2.0])


def test_the_whole_wait_is_random() -> None:
    """What is waited is drawn from zero to the longest, so that many clients spread."""
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return 0.0

    with FaultyLlm("status-500") as fake:
        ask(fake, client={"uniform": uniform})
    assert drawn == [(0.0, 0.5), (0.0, 1.0)]


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("status-429-seconds", 1.0, 1.0), ("status-429-date", 0.5, 2.0)], ids=["seconds", "date"]
)
def test_retry_after_is_honoured(kind: str, low: float, high: float) -> None:
    """A wait that is not too long is waited at least, be it in seconds or a date."""
    with FaultyLlm(kind, "well") as fake:
        found = ask(fake, client={"uniform": lambda low, high: low})
    assert found.text == TEXT
    assert len(found.waits) == 1
    assert low <= found.waits[0] <= high


def test_too_long_a_wait_is_given_up() -> None:
    """A server that wants an hour gets no second request, and the message says so."""
    with FaultyLlm("status-429-hour") as fake:
        found = ask(fake)
    assert (found.reason, len(fake.asked), found.waits) == ("rate_limited", 1, [])
    assert "asks to wait 3600 seconds" in str(found.failed)


def test_a_wait_beyond_the_end_is_not_begun() -> None:
    """Who could not ask again in time does not wait for it."""
    with FaultyLlm("status-429-seconds") as fake:
        found = ask(fake, limits=replace(LIMITS, total_seconds=0.9), client={"uniform": lambda low, high: low})
    assert (found.reason, len(fake.asked), found.waits) == ("rate_limited", 1, [])


def test_the_total_covers_everything() -> None:
    """Attempts, each within its own limit, end with the total, and the message names it."""
    with FaultyLlm("silent") as fake:
        found = ask(fake, limits=replace(QUICK, attempts=50, total_seconds=0.7), client={"uniform": lambda *_: 0.0})
    assert found.reason == "timeout"
    assert 2 <= len(fake.asked) <= 4
    assert "0.7 seconds" in str(found.failed)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("not-taken", "gave no connection within 0.3 seconds"),
        ("silent", "did not begin to answer within 0.35 seconds"),
        ("headers-then-silent", "did not begin to answer within 0.35 seconds"),
        ("role-then-silent", "said nothing more for 0.4 seconds"),
        ("comments-only", "was not done within 1.5 seconds"),
    ],
)
def test_each_limit_is_named(kind: str, told: str) -> None:
    """A message says which limit it was that a slow endpoint came to."""
    limits = replace(QUICK, attempts=1, first_byte_seconds=0.35, idle_seconds=0.4)
    with FaultyLlm(kind) as fake:
        found = ask(fake, limits=limits)
    assert told in str(found.failed)


def test_time_passes_between_pieces_too() -> None:
    """Who takes the pieces slowly gets no longer answer for it, even if all of it has arrived."""

    async def go(fake: FaultyLlm) -> list[str]:
        now = 0.0
        told: list[str] = []
        async with open_client(fake, [], clock=lambda: now) as client:
            pieces = client.stream([Message("user", PROMPT)], max_tokens=7, limits=LIMITS)
            told.append((await anext(pieces)).text)
            now = 9.0
            with pytest.raises(LlmFailed, match="was not done within 9 seconds"):
                await anext(pieces)
        return told

    with FaultyLlm("byte-by-byte") as fake:
        assert asyncio.run(go(fake)) == words_of(TEXT)[:1]


@pytest.mark.parametrize("kind", ["open-after-done", "open-after-finish"])
def test_the_end_is_not_waited_for(kind: str) -> None:
    """An answer that is done ends, whether or not its connection does."""
    with FaultyLlm(kind) as fake:
        found = ask(fake, limits=StreamLimits())
        assert fake.wait_until_left()
    assert found.text == TEXT
    assert found.seconds < 5.0


def test_the_connection_is_closed_before_the_last_piece() -> None:
    """Who keeps the last piece for long keeps no connection with it."""

    async def go(fake: FaultyLlm) -> bool:
        async with (
            open_client(fake, []) as client,
            contextlib.aclosing(client.stream([Message("user", PROMPT)], max_tokens=7)) as pieces,
        ):
            async for piece in pieces:
                if piece.finish_reason:
                    return await asyncio.to_thread(fake.wait_until_left)
        return False

    with FaultyLlm("open-after-finish") as fake:
        assert asyncio.run(go(fake))


@pytest.mark.parametrize("way", ["close", "cancel-reading", "cancel-beginning"])
def test_leaving_closes_the_connection(way: str) -> None:
    """Closing the generator, or cancelling whoever waits for it, closes the connection at once."""

    async def go(fake: FaultyLlm) -> bool:
        async with open_client(fake, []) as client:
            pieces = client.stream([Message("user", PROMPT)], max_tokens=7)
            if way != "cancel-beginning":
                await anext(pieces)
            if way == "close":
                await pieces.aclose()
            else:
                # all that has been said, and then it waits
                waiting = asyncio.ensure_future(_exhaust(pieces))
                await asyncio.sleep(0.1)
                assert fake.connections == 1
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            return await asyncio.to_thread(fake.wait_until_left)

    with FaultyLlm("silent" if way == "cancel-beginning" else "stalls-amid") as fake:
        assert asyncio.run(go(fake))


async def _exhaust(pieces: Any) -> None:
    async for _ in pieces:
        pass


def asked_formats(asked: list[Asked]) -> list[Any]:
    return [request.body.get("response_format") for request in asked]


@pytest.mark.parametrize(
    ("kind", "steps"), [("well", 1), ("no-json-schema", 2), ("breaks-at-json-schema", 2), ("no-format", 3)]
)
def test_the_strictest_format_that_works_is_remembered(kind: str, steps: int) -> None:
    """Formats are tried from the strictest on, which counts as no attempt, and what worked is asked for ever after."""

    async def go(fake: FaultyLlm) -> list[Outcome]:
        waits: list[float] = []
        limits = replace(LIMITS, attempts=1)
        async with open_client(fake, waits) as client:
            return [await listen(client, waits, json_schema=SCHEMA, limits=limits) for _ in range(2)]

    with FaultyLlm(kind) as fake:
        first, second = asyncio.run(go(fake))
    assert (first.text, second.text, first.waits) == (TEXT, TEXT, [])
    assert asked_formats(fake.asked) == [*FORMATS[:steps], FORMATS[steps - 1]]


def test_a_refusal_of_everything_is_told() -> None:
    """A request that is bad in every format is told as what it is, and no format is remembered for it."""

    async def go(fake: FaultyLlm) -> Outcome:
        waits: list[float] = []
        async with open_client(fake, waits) as client:
            found = await listen(client, waits, json_schema=SCHEMA)
            fake.play("well")
            await listen(client, waits, json_schema=SCHEMA)
            return found

    with FaultyLlm("status-400") as fake:
        found = asyncio.run(go(fake))
    assert (found.reason, found.failed and found.failed.status) == ("status", 400)
    assert asked_formats(fake.asked) == [*FORMATS, FORMATS[0]]


def test_other_statuses_are_no_refusal_of_a_format() -> None:
    """An address that is not there is asked once."""
    with FaultyLlm("status-404") as fake:
        assert ask(fake, json_schema=SCHEMA).reason == "status"
    assert len(fake.asked) == 1


def test_without_a_schema_no_format_is_asked_for() -> None:
    """What was remembered for a schema is not asked for without one, and the other way round."""

    async def go(fake: FaultyLlm) -> None:
        async with open_client(fake, []) as client:
            for schema in (None, SCHEMA, None):
                await listen(client, [], json_schema=schema)

    with FaultyLlm() as fake:
        asyncio.run(go(fake))
    assert asked_formats(fake.asked) == [None, FORMATS[0], None]


def test_the_circuit_opens_probes_and_closes() -> None:
    """After some failures in a row nothing is asked for a while; then one request decides how it goes on."""

    async def go(fake: FaultyLlm) -> list[str | None]:
        now = 0.0
        breaker = CircuitBreaker(failures=2, open_seconds=30.0, clock=lambda: now)
        reasons: list[str | None] = []

        async def again(client: ChatClient) -> None:
            reasons.append((await listen(client, [])).reason)

        async with open_client(fake, [], breaker=breaker) as client:
            for _ in range(3):
                await again(client)
            assert len(fake.asked) == 2
            now = 30.0
            await again(client)
            assert len(fake.asked) == 3
            now = 59.0
            await again(client)
            assert len(fake.asked) == 3
            fake.play("well")
            now = 60.0
            await again(client)
            await again(client)
        return reasons

    with FaultyLlm("html") as fake:
        assert asyncio.run(go(fake)) == [
            *["bad_response"] * 2,
            "circuit_open",
            "bad_response",
            "circuit_open",
            None,
            None,
        ]


def test_complete_has_no_breaker() -> None:
    """Who can wait is not kept from asking."""

    async def go(fake: FaultyLlm) -> str:
        async with open_client(fake, [], breaker=CircuitBreaker(failures=1)) as client:
            assert (await listen(client, [])).failed
            fake.play("whole-json")
            return str((await client.complete([Message("user", PROMPT)], max_tokens=7)).text)

    with FaultyLlm("html") as fake:
        assert asyncio.run(go(fake)) == TEXT


def test_who_leaves_counts_neither_way() -> None:
    """Cancelled requests open no circuit, and a probe that is cancelled makes room for another."""

    async def go(fake: FaultyLlm) -> None:
        async with open_client(fake, [], breaker=CircuitBreaker(failures=1, open_seconds=0.0)) as client:
            assert (await listen(client, [])).failed
            fake.play("silent")
            for _ in range(3):
                waiting = asyncio.ensure_future(listen(client, []))
                await asyncio.sleep(0.05)
                assert (await listen(client, [])).reason == "circuit_open"
                waiting.cancel()
                await asyncio.wait([waiting])
            fake.play("well")
            assert (await listen(client, [])).text == TEXT

    with FaultyLlm("html") as fake:
        asyncio.run(go(fake))


def test_stragglers_do_not_decide() -> None:
    """A request made before the circuit opened neither prolongs that by failing nor takes the probe's place."""
    now = 0.0
    breaker = CircuitBreaker(failures=1, open_seconds=10.0, clock=lambda: now)
    early, late, good = breaker.admit(), breaker.admit(), breaker.admit()
    assert early is not None
    assert late is not None
    assert good is not None
    breaker.failed(early)
    now = 9.0
    breaker.failed(late)
    now = 10.0
    probe = breaker.admit()
    assert probe is not None
    assert breaker.admit() is None
    breaker.abandoned(late)
    assert breaker.admit() is None
    breaker.succeeded(good)
    assert breaker.admit() is not None


LINE_ENDS = [b"\n", b"\r\n", b"\r"]


@pytest.mark.parametrize("line_end", LINE_ENDS, ids=["LF", "CRLF", "CR"])
def test_a_stream_may_be_cut_anywhere(line_end: bytes) -> None:
    """Wherever the network cuts a stream, in a sign or in a line end, the text is the same."""
    stream = b"".join([b"\xef\xbb\xbf: hello\n\n", ROLE, *map(event, words_of(TEXT)), USAGE, END, DONE])
    stream = stream.replace(b"\n", line_end)
    cuts = [[stream[:at], stream[at:]] for at in range(len(stream) + 1)]
    cuts.append([stream[at : at + 1] for at in range(len(stream))])
    for cut in cuts:
        assert read(*cut) == (TEXT, "stop")


def read(*chunks: bytes) -> tuple[str, str | None]:
    """Text and finish reason of a stream in these chunks."""
    reader = StreamReader(Faults("http://here", KEY), [])
    text = ""
    for chunk in chunks:
        for piece in reader.pieces(chunk):
            text += piece.text
            if piece.finish_reason:
                return text, piece.finish_reason
    return text, None


# the bytes of a stream, and the data of its events
STREAMS: list[tuple[str, bytes, list[str]]] = [
    ("one", b"data: a\n\n", ["a"]),
    ("no-space", b"data:a\n\n", ["a"]),
    ("one-space-is-taken", b"data:  a \n\n", [" a "]),
    ("two-lines", b"data: a\ndata: b\n\n", ["a\nb"]),
    ("mixed-ends", b"data: a\r\ndata: b\rdata: c\n\r\n", ["a\nb\nc"]),
    ("other-fields", b"id: 1\nevent: x\nretry: 5\nfoo: y\ndata: a\nzzz\n\n", ["a"]),
    ("comment", b": data: x\ndata: a\n:\n\n", ["a"]),
    ("field-without-colon", b"data\n\n", [""]),
    ("colon-in-data", b"data: a: b\n\n", ["a: b"]),
    ("blank-lines", b"\n\n\ndata: a\n\n\n\n", ["a"]),
    ("unfinished", b"data: a\n\ndata: b\n", ["a"]),
    ("mark-at-the-beginning", b"\xef\xbb\xbfdata: a\n\n", ["a"]),
    ("mark-later", b"data: a\n\n\xef\xbb\xbfdata: b\n\n", ["a"]),
    ("unicode-line-ends-are-none", "data: a\u2028b\x85c\x0bd\n\n".encode(), ["a\u2028b\x85c\x0bd"]),
]


@pytest.mark.parametrize(("stream", "datas"), [entry[1:] for entry in STREAMS], ids=[entry[0] for entry in STREAMS])
def test_events_are_read_as_the_standard_says(stream: bytes, datas: list[str]) -> None:
    """Fields, comments and line ends mean what the standard says, also byte by byte."""
    assert list(EventReader().feed(stream)) == datas
    reader = EventReader()
    assert [data for byte in stream for data in reader.feed(bytes([byte]))] == datas


def of(choice: Any, **others: Any) -> bytes:
    return b"data: " + json.dumps({"choices": choice, **others}).encode() + b"\n\n"


HI = event("Hola")
TOLERATED: list[tuple[str, bytes]] = [
    ("null-choices", of(None)),
    ("no-choices", b'data: {"id": 1}\n\n'),
    ("usage", USAGE),
    ("null-delta", of([{"delta": None}])),
    ("no-delta", of([{"index": 0}])),
    ("reasoning", of([{"delta": {"reasoning_content": "Hmm.", "content": None}}])),
    ("null-error", of([], error=None)),
    ("empty-finish", of([{"delta": {"content": ""}, "finish_reason": ""}])),
    ("blank", b"data:\n\ndata: \n\n"),
    ("comment", b": x\n\n"),
    ("event-field", b"event: ping\n\n"),
]


@pytest.mark.parametrize("extra", [entry[1] for entry in TOLERATED], ids=[entry[0] for entry in TOLERATED])
def test_events_without_text_are_passed_over(extra: bytes) -> None:
    """What endpoints send beside the text neither ends an answer nor adds to it."""
    assert read(extra + HI + extra + HI + extra + END) == ("HolaHola", "stop")


def test_the_finish_reason_is_the_servers() -> None:
    """An answer that ran out of tokens says so, even where the reason comes with the last letters."""
    assert read(HI, event("!", finish_reason="length")) == ("Hola!", "length")


BROKEN: list[tuple[str, bytes, str]] = [
    ("no-json", b"data: x\n\n", "bad_response"),
    ("list", b"data: []\n\n", "bad_response"),
    ("deep", b"data: " + b"[" * 100_000 + b"\n\n", "bad_response"),
    ("choices-no-list", of({"0": 1}), "bad_response"),
    ("choice-no-object", of(["x"]), "bad_response"),
    ("delta-no-object", of([{"delta": "x"}]), "bad_response"),
    ("content-number", of([{"delta": {"content": 7}}]), "bad_response"),
    ("content-parts", of([{"delta": {"content": [{"text": "x"}]}}]), "bad_response"),
    ("not-utf-8", b"data: \xff\n\n", "bad_response"),
    ("error", of([], error={"message": "no room"}), "error_body"),
    ("error-text", of([], error="no room"), "error_body"),
]


@pytest.mark.parametrize(("extra", "reason"), [entry[1:] for entry in BROKEN], ids=[entry[0] for entry in BROKEN])
def test_a_broken_event_is_a_fault(extra: bytes, reason: str) -> None:
    """An event that is no part of an answer is a typed fault, after what was good before it."""
    reader = StreamReader(Faults("http://here", KEY), [])
    assert [piece.text for piece in reader.pieces(HI)] == ["Hola"]
    with pytest.raises(LlmFailed) as caught:
        list(reader.pieces(extra))
    assert caught.value.reason == reason
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_stream_without_an_end_is_cut_off() -> None:
    """A body that is over before the answer was is a fault that may pass."""
    with pytest.raises(Retriable) as caught:
        StreamReader(Faults("http://here", KEY), []).end()
    assert caught.value.failed.reason == "cut_off"


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        ((r"a\ud83d", r"\ude00b"), "a😀b"),
        ((r"a\ud83d\ude00b", ""), "a😀b"),
        ((r"a\ud83d", "b"), "a?b"),
        ((r"a\ude00", "b"), "a?b"),
        ((r"a", r"\ud83d"), "a?"),
    ],
    ids=["cut-pair", "pair", "first-half", "second-half", "half-at-the-end"],
)
def test_surrogates_are_joined(contents: tuple[str, str], text: str) -> None:
    """A sign that a server cut in two halves is whole again, and half a sign becomes a question mark."""
    chunks = [f'data: {{"choices": [{{"delta": {{"content": "{content}"}}}}]}}\n\n'.encode() for content in contents]
    assert read(*chunks, END) == (text, "stop")
    assert read(*chunks, DONE) == (text, "stop")


def test_the_environments_proxy_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies that the environment names get neither question nor key."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with FaultyLlm("refused") as proxy, FaultyLlm() as fake:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert ask(fake).text == TEXT


def test_a_client_that_is_not_open_says_so() -> None:
    """Streaming without having entered the client is a mistake in the program, and no failure of the model."""
    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(_exhaust(ChatClient("http://127.0.0.1:1/v1", "un-modelo").stream([], max_tokens=7)))
