"""Vectors of texts already embedded."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.vector_cache import VectorCache
from tests.fakes import hashed_vectors

BOUNDED = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def a_cache(folder: Path, model: str = "m") -> VectorCache:
    return VectorCache(folder / "cache" / "vectors.sqlite", model_fingerprint=model)


def test_what_is_put_is_got(tmp_path: Path) -> None:
    """A vector comes back letter for letter, and a text that was never put has none."""
    vectors = hashed_vectors(["a", "b"])
    with a_cache(tmp_path) as cache:
        cache.put(["a", "b"], vectors)
        for text, vector in zip("ab", vectors, strict=True):
            found = cache.get([text]).get(text)
            assert found is not None
            assert found.dtype == np.float32
            assert np.array_equal(found, vector)
        assert cache.get(["c"]).get("c") is None
        assert cache.get(["A"]).get("A") is None


@given(st.lists(st.text(), unique=True, max_size=6))
@BOUNDED
def test_each_text_has_its_own_vector(texts: list[str]) -> None:
    """Whatever the texts, none gets the vector of another."""
    with VectorCache(Path(":memory:"), model_fingerprint="m") as cache:
        cache.put(texts, np.arange(len(texts) * 2, dtype=np.float32).reshape(-1, 2))
        for number, text in enumerate(texts):
            found = cache.get([text]).get(text)
            assert found is not None
            assert found.tolist() == [2 * number, 2 * number + 1]


def test_it_is_on_disk_at_once(tmp_path: Path) -> None:
    """What was put is there for another process, though the first never closed, and for the next run."""
    first = a_cache(tmp_path)
    first.put(["a"], hashed_vectors(["a"]))
    with a_cache(tmp_path) as second:
        assert second.get(["a"]).get("a") is not None
    with first:
        pass
    with a_cache(tmp_path) as third:
        assert third.get(["a"]).get("a") is not None


def test_another_model_has_other_vectors(tmp_path: Path) -> None:
    """A text embedded by one model is not known to another, and both are kept."""
    with a_cache(tmp_path, "uno") as one, a_cache(tmp_path, "dos") as two:
        one.put(["a"], hashed_vectors(["x"]))
        assert two.get(["a"]).get("a") is None
        two.put(["a"], hashed_vectors(["y"]))
        found = [one.get(["a"]).get("a"), two.get(["a"]).get("a")]
    assert [vector.tolist() for vector in found if vector is not None] == hashed_vectors(["x", "y"]).tolist()


def test_putting_again_replaces(tmp_path: Path) -> None:
    """The last vector of a text is the one that is kept."""
    with a_cache(tmp_path) as cache:
        cache.put(["a"], hashed_vectors(["x"]))
        cache.put(["a", "a"], hashed_vectors(["y", "z"]))
        found = cache.get(["a"]).get("a")
    assert found is not None
    assert found.tolist() == hashed_vectors(["z"])[0].tolist()


def test_a_put_is_all_or_nothing(tmp_path: Path) -> None:
    """Texts and vectors that do not match in number are refused, and nothing of them is kept."""
    with a_cache(tmp_path) as cache:
        with pytest.raises(ValueError, match="zip"):
            cache.put(["a", "b"], hashed_vectors(["a"]))
        assert cache.get(["a"]).get("a") is None


def test_nothing_can_be_put(tmp_path: Path) -> None:
    """No texts are no change."""
    with a_cache(tmp_path) as cache:
        cache.put([], np.empty((0, 8), np.float32))
        assert cache.get([""]).get("") is None


def test_it_is_closed_at_the_end(tmp_path: Path) -> None:
    """Behind its block the file is let go of."""
    with a_cache(tmp_path) as cache:
        pass
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        cache.get(["a"]).get("a")
