"""One frozen record of every setting, parsed from a mapping of environment variables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag.errors import SettingsInvalid

PREFIX = "FICHERO_"
PORT = "PORT"
LOG_FORMATS = ("json", "text")

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_GROUP = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SECRET = frozenset({PREFIX + "TOKENS", PREFIX + "LLM_API_KEY", PREFIX + "LLM_BASE_URL"})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; each is the variable ``FICHERO_`` plus its name in capitals, and ``PORT``."""

    cards_dir: Path = Path("cards")
    index_dir: Path = Path("index")
    model_dir: Path = Path("model")
    golden_dir: Path = Path("tests/golden")
    """Golden cases, and the floors that a build has to reach on them; a folder that is not there is none."""
    reranker_dir: Path | None = None
    """Of a cross-encoder, ``model.onnx`` and ``tokenizer.json``, that orders the best cards anew; None is none."""
    host: str = "0.0.0.0"
    port: int = 8000
    top_k: int = 5
    """Cards retrieved for a question that does not say."""
    min_similarity: float | None = None
    """The gate, a cosine; None takes the one calibrated at build time."""
    fusion: str = "coverage"
    """How vectors and words make one ranking: ``coverage``, ``ranks`` (reciprocal ranks) or ``dense`` (no words)."""
    tokens: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """SHA-256 of a bearer token → its groups."""
    rate_per_minute: int = 300
    """Questions from one address; a fifth of them may come at once. 0 is no limit."""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Those whose ``X-Forwarded-For`` is believed."""
    threads: int = 2
    """Of the embedding model, and of the cross-encoder."""
    plain_markdown: bool = False
    """Files without front matter are public cards."""
    chunk_chars: int = 400
    overlap_chars: int = 60
    context: str = "metadata"
    context_coverage: float = 0.8
    """The share of chunks that have to get a generated context; a build with fewer is not published."""
    context_private: bool = False
    """Cards that the public may not read go to the language model too."""
    llm_base_url: str | None = None
    """Of an OpenAI-compatible service, with its version: requests go to ``{llm_base_url}/chat/completions``."""
    llm_model: str | None = None
    llm_api_key: str | None = field(default=None, repr=False)
    llm_timeout_seconds: float = 60.0
    """Of one attempt, while an index is built."""
    llm_concurrency: int = 4
    """Contexts, or answers, at a time."""
    llm_connect_seconds: float = 3.0
    """Of an answer to a person: until there is a connection."""
    llm_first_byte_seconds: float = 15.0
    """Of an answer to a person: from the request to the first byte of the answer."""
    llm_idle_seconds: float = 10.0
    """Of an answer to a person: between two pieces of it."""
    llm_total_seconds: float = 45.0
    """Of an answer to a person: everything, with other attempts."""
    llm_max_tokens: int = 400
    """Of an answer to a person."""
    llm_price_in: float = 0.0
    """Of a million tokens, in any currency; 0 means unknown."""
    llm_price_out: float = 0.0
    log_level: str = "info"
    log_format: str = LOG_FORMATS[0]


def parse_settings(environment: Mapping[str, str]) -> Settings:
    """
    The settings that an environment makes; an empty variable counts as absent.

    Raises:
        SettingsInvalid: a variable with our prefix is unknown, or a value cannot be read.
    """
    known = {_variable(entry.name): entry.name for entry in fields(Settings)}
    values: dict[str, Any] = {}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX) and variable != PORT:
            continue
        if variable not in known:
            raise SettingsInvalid(_unknown(variable, known))
        if text.strip():
            values[known[variable]] = _parse(variable, text.strip())
    return Settings(**values)


def shown(settings: Settings) -> str:
    """Every setting as its variable, one a line in order, with nothing that is secret."""
    lines = []
    for entry in fields(Settings):
        value = getattr(settings, entry.name)
        if entry.name == "tokens":
            value = "; ".join(f"***={','.join(sorted(groups))}" for groups in value.values())
        elif entry.name == "llm_api_key":
            value = "***" if value else None
        elif entry.name == "trusted_proxies":
            value = ",".join(map(str, value))
        elif isinstance(value, bool):
            value = int(value)
        lines.append(f"{_variable(entry.name)}={'' if value is None else value}")
    return "\n".join(sorted(lines))


def _variable(name: str) -> str:
    return PORT if name == "port" else PREFIX + name.upper()


def _unknown(variable: str, known: Mapping[str, str]) -> str:
    # what all have in common says nothing of how near two are
    by_name = {name.removeprefix(PREFIX): name for name in known}
    near = difflib.get_close_matches(variable.removeprefix(PREFIX).upper(), by_name, n=1)
    hint = f"Did you mean {by_name[near[0]]}?" if near else f"Known: {', '.join(sorted(known))}."
    return f"The setting {variable} is unknown. {hint}"


def _parse(variable: str, text: str) -> Any:
    try:
        return _PARSERS[variable](text)
    except ValueError as error:
        # someone may have put a token, a key or a password there, so these are not shown
        shown = "set" if variable in _SECRET else repr(text[:80])
        raise SettingsInvalid(f"{variable} is {shown}, but {error}.") from error


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise ValueError(f"it takes a whole number from {low} to {high}")
        return int(text)

    return parse


def _cosine(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 2.0
    if not -1.0 <= value <= 1.0:
        raise ValueError("it takes a cosine from -1 to 1, such as 0.84")
    return value


def _decimal(low: float, high: float, example: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not low <= float(text) <= high:
            raise ValueError(f"it takes a number from {low:g} to {high:g}, such as {example}")
        return float(text)

    return parse


def _web_address(text: str) -> str:
    takes = "it takes an address such as http://localhost:8080/v1"
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise ValueError(takes) from None
    if parts.scheme not in ("http", "https") or not has_host or not text.isprintable() or " " in text:
        raise ValueError(takes)
    if "@" in parts.netloc:
        raise ValueError(f"{takes}, without a name or password in it; the key is FICHERO_LLM_API_KEY")
    if parts.query or parts.fragment:
        raise ValueError(f"{takes}, without ? or #")
    return text.rstrip("/")


def _model_name(text: str) -> str:
    if not text.isprintable() or len(text) > 200:
        raise ValueError("it takes the name of a model, of at most 200 signs")
    return text


def _key(text: str) -> str:
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("it takes a key of printable ASCII signs without spaces")
    return text


def _flag(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text.lower() not in words:
        raise ValueError("it takes 1 or 0")
    return words[text.lower()]


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"it takes one of: {', '.join(names)}")
        return text.lower()

    return parse


def _tokens(text: str) -> dict[str, frozenset[str]]:
    """``SHA256=group,group; SHA256=group``; never echoes more than the first letters of an entry."""
    tokens: dict[str, frozenset[str]] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        digest, _, names = entry.partition("=")
        groups = frozenset(name.strip() for name in names.split(",") if name.strip())
        if not _SHA256.fullmatch(digest.strip()):
            raise ValueError("each entry begins with the SHA-256 of a token in 64 lower-case hexadecimal digits")
        if not groups or not all(_GROUP.fullmatch(group) for group in groups):
            raise ValueError(
                "each entry names groups behind the hash, such as HASH=staff,nurses; entries are set apart by ;"
            )
        tokens[digest.strip()] = groups
    return tokens


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("it takes addresses or networks such as 10.0.0.0/8, set apart by commas") from None


_PARSERS: dict[str, Callable[[str], Any]] = {
    "FICHERO_CARDS_DIR": Path,
    "FICHERO_INDEX_DIR": Path,
    "FICHERO_MODEL_DIR": Path,
    "FICHERO_GOLDEN_DIR": Path,
    "FICHERO_RERANKER_DIR": Path,
    "FICHERO_HOST": str,
    "PORT": _whole(1, 65_535),
    "FICHERO_TOP_K": _whole(1, 20),
    "FICHERO_MIN_SIMILARITY": _cosine,
    "FICHERO_FUSION": _one_of("coverage", "ranks", "dense"),
    "FICHERO_TOKENS": _tokens,
    "FICHERO_RATE_PER_MINUTE": _whole(0, 1_000_000),
    "FICHERO_TRUSTED_PROXIES": _networks,
    "FICHERO_THREADS": _whole(1, 64),
    "FICHERO_PLAIN_MARKDOWN": _flag,
    "FICHERO_CHUNK_CHARS": _whole(20, 4_000),
    "FICHERO_OVERLAP_CHARS": _whole(0, 2_000),
    "FICHERO_CONTEXT": _one_of("none", "metadata", "surroundings", "llm"),
    "FICHERO_CONTEXT_COVERAGE": _decimal(0, 1, "0.8"),
    "FICHERO_CONTEXT_PRIVATE": _flag,
    "FICHERO_LLM_BASE_URL": _web_address,
    "FICHERO_LLM_MODEL": _model_name,
    "FICHERO_LLM_API_KEY": _key,
    "FICHERO_LLM_TIMEOUT_SECONDS": _decimal(0.1, 3_600, "60"),
    "FICHERO_LLM_CONCURRENCY": _whole(1, 64),
    "FICHERO_LLM_CONNECT_SECONDS": _decimal(0.05, 600, "3"),
    "FICHERO_LLM_FIRST_BYTE_SECONDS": _decimal(0.05, 600, "15"),
    "FICHERO_LLM_IDLE_SECONDS": _decimal(0.05, 600, "10"),
    "FICHERO_LLM_TOTAL_SECONDS": _decimal(0.05, 600, "45"),
    "FICHERO_LLM_MAX_TOKENS": _whole(16, 4_096),
    "FICHERO_LLM_PRICE_IN": _decimal(0, 100_000, "0.15"),
    "FICHERO_LLM_PRICE_OUT": _decimal(0, 100_000, "0.60"),
    "FICHERO_LOG_FORMAT": _one_of(*LOG_FORMATS),
    "FICHERO_LOG_LEVEL": _one_of("debug", "info", "warning", "error"),
}
