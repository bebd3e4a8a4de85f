"""How often one caller may ask, and who a caller is."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from rag.serving.callers import caller_of
from rag.serving.problems import Problem
from rag.serving.rate import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def allowed(limit: RateLimit, caller: str) -> bool:
    try:
        limit.take(caller)
    except Problem as problem:
        return (problem.status, problem.slug) != (429, "too-many-requests")
    return True


def test_a_burst_is_allowed_and_then_the_steady_rate() -> None:
    """60 a minute are twelve at once, then one a second; what is refused is not counted."""
    clock = Clock()
    limit = RateLimit(60, clock=clock)
    assert [allowed(limit, "a") for _ in range(14)] == [True] * 12 + [False] * 2
    assert allowed(limit, "b")
    clock.now += 1
    assert [allowed(limit, "a") for _ in range(2)] == [True, False]
    clock.now += 3600
    assert [allowed(limit, "a") for _ in range(13)] == [True] * 12 + [False]


def test_who_waits_as_told_is_served() -> None:
    """After the seconds of Retry-After the next question is allowed, also where one takes many seconds."""
    clock = Clock()
    limit = RateLimit(2, clock=clock)
    assert allowed(limit, "a")
    with pytest.raises(Problem) as problem:
        limit.take("a")
    clock.now += int(problem.value.headers["Retry-After"])
    assert allowed(limit, "a")


def test_zero_is_no_limit() -> None:
    """0 a minute lets everything through and remembers nobody."""
    limit = RateLimit(0)
    assert all(allowed(limit, "a") for _ in range(1000))


def test_few_callers_are_remembered() -> None:
    """The caller who asked longest ago is forgotten first, and memory stays bounded."""
    clock = Clock()
    limit = RateLimit(5, most_callers=3, clock=clock)
    for caller in ("a", "b", "c"):
        assert allowed(limit, caller)
    assert not allowed(limit, "a")
    assert allowed(limit, "d")
    assert not allowed(limit, "a")
    assert allowed(limit, "b")
    assert len(limit._left) == 3


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 10)), max_size=200))
def test_no_caller_gets_more_than_burst_and_rate(asked: list[tuple[str, float]]) -> None:
    """Whenever questions come, the allowed ones of a caller never exceed the burst and what time has added."""
    clock = Clock()
    limit, counts = RateLimit(30, clock=clock), {"a": 0, "b": 0}
    for caller, pause in asked:
        clock.now += pause
        counts[caller] += allowed(limit, caller)
        assert counts[caller] <= 6 + clock.now * 0.5 + 1e-6


def request(peer: str | None, *forwarded: str) -> Request:
    headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in forwarded]
    return Request({"type": "http", "headers": headers, "client": (peer, 1) if peer else None})


TRUSTED = [ip_network("10.0.0.0/8"), ip_network("fd00::/8"), ip_network("127.0.0.1")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.1"], "192.0.2.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.9, 10.9.9.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["<script>"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:1234"], "198.51.100.1"),
        ("fd00::1", ["[2001:db8:1:2:3:4:5:6]:443"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", [], "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", [], "192.0.2.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("fe80::1%eth0", [], "fe80::/64"),
        (None, ["198.51.100.1"], ""),
        ("testclient", ["198.51.100.1"], ""),
    ],
)
def test_only_trusted_proxies_are_believed(peer: str | None, forwarded: list[str], caller: str) -> None:
    """The caller is the first address from the right that no trusted proxy has; IPv6 counts by its network."""
    assert caller_of(request(peer, *forwarded), TRUSTED) == caller


def test_nobody_is_believed_by_default() -> None:
    """Without trusted proxies the header changes nothing."""
    assert caller_of(request("127.0.0.1", "198.51.100.1"), ()) == "127.0.0.1"


@given(st.text(max_size=60), st.lists(st.text(st.characters(max_codepoint=255), max_size=60), max_size=3))
def test_any_header_gives_a_caller(peer: str, forwarded: list[str]) -> None:
    """No peer and no header is an error, and what comes out is short."""
    assert len(caller_of(request(peer, *forwarded), TRUSTED)) < 50
