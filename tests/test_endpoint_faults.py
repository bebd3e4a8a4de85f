"""Whatever an endpoint does, the real service answers: the model's text, or quotes with the reason."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conftest import Server, running
from tests.faulty_llm import FAULTS, FaultyLlm
from tests.test_written_answers import KEY, QUESTION, WRITTEN, llm_settings, stream

LIMIT_SECONDS = 15.0
"""By far more than the limits of the service here, and by far less than forever."""


@pytest.fixture(scope="module")
def faulty(sample_index_dir: Path, run_dir: Path) -> Iterator[tuple[Server, FaultyLlm, Path]]:
    """A service whose model fails as a test wants, and what the service logs."""
    log = run_dir / f"faulty-{time.monotonic_ns()}.log"
    with FaultyLlm(text=WRITTEN) as llm:
        settings = {**llm_settings(sample_index_dir, llm.url), "FICHERO_LOG_LEVEL": "debug"}
        with running(settings, log=log) as server:
            yield server, llm, log


# a prompt of several lines in a header is no header, and a flood may be slower than the time there is
ALSO = {"echo": {"unreachable"}} | {kind: {"timeout"} for kind in FAULTS if "flood" in kind}
HASTY = {"FICHERO_LLM_TOTAL_SECONDS": "0.3"}
PLAYED = [kind for kind in FAULTS if kind not in ("refused", "not-taken")]


@pytest.mark.parametrize("kind", PLAYED)
def test_every_fault_ends_in_an_answer(faulty: tuple[Server, FaultyLlm, Path], kind: str) -> None:
    """Whatever the endpoint does, an answer comes in time: the model's, or quotes with the reason; never the key."""
    server, llm, log = faulty
    fault = FAULTS[kind]
    for streaming in (False, True):
        llm.play(kind)
        began = time.monotonic()
        if streaming:
            answer = stream(server.url).answer
        else:
            answer = httpx.post(f"{server.url}/ask", json={"question": QUESTION}, timeout=30).json()
        assert time.monotonic() - began < LIMIT_SECONDS
        assert KEY not in json.dumps(answer)
        assert answer["citations"]
        assert all(citation["verdict"] == "valid" for citation in answer["citations"])
        if fault.gets_through:
            assert (answer["mode"], answer["answer"]) == ("llm", WRITTEN)
        else:
            assert (answer["mode"], answer["degraded"]) == ("extractive", True)
            assert answer["degraded_reason"] in fault.reasons | ALSO.get(kind, set())
    # one that goes well, so that the circuit does not open
    llm.play("well")
    assert stream(server.url).answer["mode"] == "llm"
    assert KEY not in log.read_text("utf-8")


def test_nobody_is_there(sample_index_dir: Path) -> None:
    """An endpoint that cannot be reached costs nothing but its answers, and soon not even the attempt."""
    with FaultyLlm("refused") as llm, running({**llm_settings(sample_index_dir, llm.url), **HASTY}) as server:
        reasons = [stream(server.url).answer["degraded_reason"] for _ in range(6)]
    assert reasons == ["unreachable"] * 5 + ["circuit_open"]


@pytest.fixture(scope="module")
def patient(sample_index_dir: Path) -> Iterator[tuple[Server, FaultyLlm]]:
    """A service that would wait for a minute for a model which stops amid its answer."""
    minute = {f"FICHERO_LLM_{name}_SECONDS": "60" for name in ("FIRST_BYTE", "IDLE", "TOTAL")}
    with (
        FaultyLlm("stalls-amid", text=WRITTEN) as llm,
        running({**llm_settings(sample_index_dir, llm.url), **minute}) as server,
    ):
        yield server, llm


@pytest.mark.parametrize("streaming", [False, True])
def test_who_leaves_ends_the_models_work(patient: tuple[Server, FaultyLlm], streaming: bool) -> None:
    """When the caller closes the connection, the endpoint's is closed at once."""
    server, llm = patient
    body = json.dumps({"question": QUESTION, "stream": streaming}).encode()
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as caller:
        head = f"POST /ask HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        caller.sendall(head.encode() + body)
        end = time.monotonic() + LIMIT_SECONDS
        while not llm.connections and time.monotonic() < end:
            time.sleep(0.01)
        assert llm.connections
    # a second is meant, and a busy machine is granted more
    assert llm.wait_until_left(5.0)
