"""Requests made from the description of the interface, proper ones and others, and all that can be checked then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from rag.serving.description import describe
from tests.conftest import Server, running

EXAMPLES = 5
"""Of each operation; ``--hypothesis-profile deep`` tries as many as it says."""
TAKING_INPUT = [
    ("/ask", "get"),
    ("/ask", "post"),
    ("/search", "post"),
    ("/v1/chat/completions", "post"),
    ("/suggestions", "get"),
]
"""Of these a description can say what they do not take."""
PROPER = [
    (path, method, GenerationMode.POSITIVE)
    for path, item in sorted(describe()["paths"].items())
    for method in sorted(item)
    if method in ("get", "post", "put", "delete", "patch", "head", "options")
]
IMPROPER = [(path, method, GenerationMode.NEGATIVE) for path, method in TAKING_INPUT]
TRIED = [*PROPER, *IMPROPER]


@pytest.fixture(scope="module")
def schema(hostile_index_dir: Path) -> Iterator[Any]:
    """The description, as a service over one card gives it."""
    with running({"FICHERO_INDEX_DIR": str(hostile_index_dir)}) as started:
        yield loaded(started)


def loaded(server: Server) -> Any:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


@pytest.mark.parametrize(("path", "method", "mode"), TRIED, ids=[f"{way.value} {of} {at}" for at, of, way in TRIED])
def test_replies_are_as_described(schema: Any, path: str, method: str, mode: GenerationMode) -> None:
    """Whatever an operation is asked, its reply has a status, a form and headers that the description names."""
    # no schema can say that a question has to have a letter or a digit, so a fair one may be refused
    deep = settings.get_current_profile_name() == "deep"

    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=settings().max_examples if deep else EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    ask()
