"""Every setting, and what is said of one that cannot be used."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from rag.errors import SettingsInvalid
from rag.settings import PORT, PREFIX, Settings, parse_settings

TOKEN = "una-contraseña-larga"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()
OTHER = hashlib.sha256(b"otra").hexdigest()

# variable, text, field, value: every setting at least once
GOOD: list[tuple[str, str, str, Any]] = [
    ("FICHERO_CARDS_DIR", "otras", "cards_dir", Path("otras")),
    ("FICHERO_INDEX_DIR", "/datos/índice", "index_dir", Path("/datos/índice")),
    ("FICHERO_MODEL_DIR", " modelo ", "model_dir", Path("modelo")),
    ("FICHERO_GOLDEN_DIR", "casos", "golden_dir", Path("casos")),
    ("FICHERO_RERANKER_DIR", "modelos/cruzado", "reranker_dir", Path("modelos/cruzado")),
    ("FICHERO_HOST", "127.0.0.1", "host", "127.0.0.1"),
    ("PORT", "1", "port", 1),
    ("PORT", "65535", "port", 65_535),
    ("FICHERO_TOP_K", "20", "top_k", 20),
    ("FICHERO_MIN_SIMILARITY", "0.84", "min_similarity", 0.84),
    ("FICHERO_MIN_SIMILARITY", "-1", "min_similarity", -1.0),
    ("FICHERO_FUSION", "Ranks", "fusion", "ranks"),
    ("FICHERO_TOKENS", f"{DIGEST}=staff", "tokens", {DIGEST: frozenset({"staff"})}),
    (
        "FICHERO_TOKENS",
        f" {DIGEST} = staff , nurses ; {OTHER}=staff; ",
        "tokens",
        {DIGEST: frozenset({"staff", "nurses"}), OTHER: frozenset({"staff"})},
    ),
    ("FICHERO_RATE_PER_MINUTE", "0", "rate_per_minute", 0),
    (
        "FICHERO_TRUSTED_PROXIES",
        "10.0.0.0/8, ::1",
        "trusted_proxies",
        (ip_network("10.0.0.0/8"), ip_network("::1/128")),
    ),
    ("FICHERO_THREADS", "1", "threads", 1),
    ("FICHERO_PLAIN_MARKDOWN", "1", "plain_markdown", True),
    ("FICHERO_PLAIN_MARKDOWN", "Yes", "plain_markdown", True),
    ("FICHERO_PLAIN_MARKDOWN", "false", "plain_markdown", False),
    ("FICHERO_CHUNK_CHARS", "20", "chunk_chars", 20),
    ("FICHERO_OVERLAP_CHARS", "0", "overlap_chars", 0),
    ("FICHERO_CONTEXT", "None", "context", "none"),
    ("FICHERO_CONTEXT", "surroundings", "context", "surroundings"),
    ("FICHERO_CONTEXT", "LLM", "context", "llm"),
    ("FICHERO_CONTEXT_COVERAGE", "0", "context_coverage", 0.0),
    ("FICHERO_CONTEXT_COVERAGE", "1.0", "context_coverage", 1.0),
    ("FICHERO_CONTEXT_PRIVATE", "1", "context_private", True),
    ("FICHERO_LLM_BASE_URL", "http://localhost:8080/v1", "llm_base_url", "http://localhost:8080/v1"),
    ("FICHERO_LLM_BASE_URL", "https://[::1]/v1/", "llm_base_url", "https://[::1]/v1"),
    ("FICHERO_LLM_MODEL", "grupo/Modelo:1.5b", "llm_model", "grupo/Modelo:1.5b"),
    ("FICHERO_LLM_API_KEY", "sk-1234", "llm_api_key", "sk-1234"),
    ("FICHERO_LLM_TIMEOUT_SECONDS", "2.5", "llm_timeout_seconds", 2.5),
    ("FICHERO_LLM_CONCURRENCY", "64", "llm_concurrency", 64),
    ("FICHERO_LLM_CONNECT_SECONDS", "0.05", "llm_connect_seconds", 0.05),
    ("FICHERO_LLM_FIRST_BYTE_SECONDS", "7.5", "llm_first_byte_seconds", 7.5),
    ("FICHERO_LLM_IDLE_SECONDS", "4", "llm_idle_seconds", 4.0),
    ("FICHERO_LLM_TOTAL_SECONDS", "600", "llm_total_seconds", 600.0),
    ("FICHERO_LLM_MAX_TOKENS", "16", "llm_max_tokens", 16),
    ("FICHERO_LLM_MAX_TOKENS", "4096", "llm_max_tokens", 4_096),
    ("FICHERO_LLM_PRICE_IN", "0.15", "llm_price_in", 0.15),
    ("FICHERO_LLM_PRICE_OUT", "12", "llm_price_out", 12.0),
    ("FICHERO_LOG_LEVEL", "WARNING", "log_level", "warning"),
    ("FICHERO_LOG_FORMAT", "TEXT", "log_format", "text"),
]

BAD: list[tuple[str, str]] = [
    ("FICHERO_RATE_PER_MINUTE", "-1"),
    ("FICHERO_TRUSTED_PROXIES", "proxy.example"),
    ("FICHERO_TRUSTED_PROXIES", "10.0.0.1/8"),
    ("PORT", "0"),
    ("PORT", "65536"),
    ("PORT", "http"),
    ("PORT", "80.0"),
    ("FICHERO_TOP_K", "0"),
    ("FICHERO_TOP_K", "21"),
    ("FICHERO_TOP_K", "-1"),
    ("FICHERO_TOP_K", "--5"),
    ("FICHERO_TOP_K", "five"),
    ("FICHERO_TOP_K", "5²"),
    ("FICHERO_TOP_K", "٥"),
    ("FICHERO_TOP_K", "1_0"),
    ("FICHERO_TOP_K", "9" * 5_000),
    ("FICHERO_MIN_SIMILARITY", "1.01"),
    ("FICHERO_MIN_SIMILARITY", "-2"),
    ("FICHERO_MIN_SIMILARITY", "nan"),
    ("FICHERO_MIN_SIMILARITY", "inf"),
    ("FICHERO_MIN_SIMILARITY", "0,84"),
    ("FICHERO_THREADS", "0"),
    ("FICHERO_THREADS", "65"),
    ("FICHERO_PLAIN_MARKDOWN", "maybe"),
    ("FICHERO_PLAIN_MARKDOWN", "2"),
    ("FICHERO_CHUNK_CHARS", "19"),
    ("FICHERO_CHUNK_CHARS", "4001"),
    ("FICHERO_OVERLAP_CHARS", "-1"),
    ("FICHERO_OVERLAP_CHARS", "2001"),
    ("FICHERO_CONTEXT", "gpt"),
    ("FICHERO_CONTEXT_COVERAGE", "1.1"),
    ("FICHERO_CONTEXT_COVERAGE", "80"),
    ("FICHERO_CONTEXT_COVERAGE", "80%"),
    ("FICHERO_CONTEXT_COVERAGE", "-0.1"),
    ("FICHERO_CONTEXT_COVERAGE", "nan"),
    ("FICHERO_CONTEXT_PRIVATE", "staff"),
    ("FICHERO_LLM_BASE_URL", "localhost:8080/v1"),
    ("FICHERO_LLM_BASE_URL", "ftp://localhost/v1"),
    ("FICHERO_LLM_BASE_URL", "http:///v1"),
    ("FICHERO_LLM_BASE_URL", "http://localhost:0/v1"),
    ("FICHERO_LLM_BASE_URL", "http://localhost:http/v1"),
    ("FICHERO_LLM_BASE_URL", "http://[::1/v1"),
    ("FICHERO_LLM_BASE_URL", "http://local host/v1"),
    ("FICHERO_LLM_BASE_URL", "http://nombre:clave@localhost/v1"),
    ("FICHERO_LLM_BASE_URL", "http://localhost/v1?key=1"),
    ("FICHERO_LLM_BASE_URL", "http://localhost/v1#x"),
    ("FICHERO_LLM_MODEL", "m" * 201),
    ("FICHERO_LLM_API_KEY", "con espacio"),
    ("FICHERO_LLM_API_KEY", "contraseña"),
    ("FICHERO_LLM_TIMEOUT_SECONDS", "0"),
    ("FICHERO_LLM_TIMEOUT_SECONDS", "1e3"),
    ("FICHERO_LLM_TIMEOUT_SECONDS", "inf"),
    ("FICHERO_LLM_CONCURRENCY", "0"),
    ("FICHERO_LLM_CONCURRENCY", "65"),
    ("FICHERO_LLM_CONNECT_SECONDS", "0.04"),
    ("FICHERO_LLM_FIRST_BYTE_SECONDS", "600.1"),
    ("FICHERO_LLM_IDLE_SECONDS", "none"),
    ("FICHERO_LLM_TOTAL_SECONDS", "0"),
    ("FICHERO_LLM_TOTAL_SECONDS", "-45"),
    ("FICHERO_LLM_MAX_TOKENS", "15"),
    ("FICHERO_LLM_MAX_TOKENS", "4097"),
    ("FICHERO_LLM_MAX_TOKENS", "400.5"),
    ("FICHERO_LLM_PRICE_IN", "-1"),
    ("FICHERO_LLM_PRICE_IN", "0,15"),
    ("FICHERO_LLM_PRICE_OUT", "1_0"),
    ("FICHERO_LOG_LEVEL", "loud"),
    ("FICHERO_LOG_FORMAT", "xml"),
    ("FICHERO_TOKENS", "staff"),
    ("FICHERO_TOKENS", f"{DIGEST}"),
    ("FICHERO_TOKENS", f"{DIGEST}="),
    ("FICHERO_TOKENS", f"{DIGEST}=Staff"),
    ("FICHERO_TOKENS", f"{DIGEST}=sta ff"),
    ("FICHERO_TOKENS", f"{DIGEST.upper()}=staff"),
    ("FICHERO_TOKENS", f"{DIGEST[:-1]}=staff"),
    ("FICHERO_TOKENS", f"{DIGEST}=staff,{OTHER}=nurses"),
]


def refusal(environment: Mapping[str, str]) -> str:
    with pytest.raises(SettingsInvalid) as caught:
        parse_settings(environment)
    return str(caught.value)


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"), GOOD, ids=[f"{variable}={text[:12]}" for variable, text, *_ in GOOD]
)
def test_a_setting_is_read(variable: str, text: str, name: str, value: object) -> None:
    """A variable sets its own field and leaves the others at their defaults."""
    changed, plain = parse_settings({variable: text}), Settings()
    assert getattr(changed, name) == value
    assert all(
        getattr(changed, field.name) == getattr(plain, field.name) for field in fields(plain) if field.name != name
    )


def test_every_setting_has_a_variable() -> None:
    """There is no setting that the environment cannot reach, and the table above tests all of them."""
    assert {name for _, _, name, _ in GOOD} == {field.name for field in fields(Settings)}


@pytest.mark.parametrize("environment", [{}, {"HOME": "/x"}, {variable: " " for variable, *_ in GOOD}], ids=str)
def test_absent_and_empty_variables_leave_the_defaults(environment: Mapping[str, str]) -> None:
    """A variable that is empty, blank or not ours changes nothing."""
    assert parse_settings(environment) == Settings()


@pytest.mark.parametrize(("variable", "text"), BAD, ids=[f"{variable}={text[:12]}" for variable, text in BAD])
def test_a_bad_value_names_its_variable(variable: str, text: str) -> None:
    """A value that cannot be used is refused in one line with the variable and what it takes."""
    message = refusal({variable: text})
    assert message.startswith(f"{variable} is ")
    assert " takes " in message or "each entry " in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize("variable", ["FICHERO_", "FICHERO_XYZZY", "FICHERO_Ñ"])
def test_an_unknown_variable_lists_the_known(variable: str) -> None:
    """A variable with our prefix that means nothing stops the start, and the message lists all that do."""
    message = refusal({variable: TOKEN})
    assert variable in message
    assert TOKEN not in message
    assert all(known in message for known, *_ in GOOD)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("FICHERO_TOPK", "FICHERO_TOP_K"),
        ("FICHERO_top_k", "FICHERO_TOP_K"),
        ("FICHERO_TOKEN", "FICHERO_TOKENS"),
        ("FICHERO_INDEX", "FICHERO_INDEX_DIR"),
        ("FICHERO_PORT", "PORT"),
    ],
)
def test_a_slip_is_guessed(variable: str, meant: str) -> None:
    """The nearest known variable is offered, and then no list."""
    message = refusal({variable: TOKEN})
    assert message == f"The setting {variable} is unknown. Did you mean {meant}?"


@pytest.mark.parametrize(
    "text",
    [TOKEN, f"{TOKEN}=staff", f"{DIGEST}={TOKEN}", f"{DIGEST}=staff;{TOKEN}=nurses", f"{DIGEST}=staff,{TOKEN}"],
    ids=["alone", "for-the-hash", "as-a-group", "second-entry", "second-group"],
)
def test_a_token_is_never_echoed(text: str) -> None:
    """Someone who writes the token itself does not find it in the message or in the traceback's messages."""
    with pytest.raises(SettingsInvalid) as caught:
        parse_settings({"FICHERO_TOKENS": text})
    shown = "".join(traceback.format_exception_only(caught.value))
    if caught.value.__cause__:
        shown += "".join(traceback.format_exception_only(caught.value.__cause__))
    assert TOKEN not in shown
    assert DIGEST not in shown
    assert "FICHERO_TOKENS" in shown


@pytest.mark.parametrize(
    ("variable", "text", "secret"),
    [
        ("FICHERO_LLM_API_KEY", "sk-1234 secreta", "1234"),
        ("FICHERO_LLM_BASE_URL", "https://nombre:sk-1234@localhost/v1", "1234"),
        ("FICHERO_LLM_BASE_URL", "https://localhost/v1?key=sk-1234", "1234"),
    ],
)
def test_a_key_is_never_echoed(variable: str, text: str, secret: str) -> None:
    """A key in a value that is refused is neither in the message nor in what it was raised from."""
    with pytest.raises(SettingsInvalid) as caught:
        parse_settings({variable: text})
    assert secret not in "".join(traceback.format_exception(caught.value))


def test_the_key_is_not_in_the_representation() -> None:
    """Printing the settings does not print the key."""
    settings = parse_settings({"FICHERO_LLM_API_KEY": "sk-1234"})
    assert settings.llm_api_key == "sk-1234"
    assert "sk-1234" not in repr(settings)


def test_settings_cannot_be_changed() -> None:
    """Settings are frozen."""
    with pytest.raises(FrozenInstanceError):
        Settings().top_k = 3  # type: ignore[misc]


def test_prefix() -> None:
    """All variables but the port carry the prefix."""
    assert all(variable.startswith(PREFIX) or variable == PORT for variable, *_ in GOOD)
