"""The cache of what a language model wrote."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from rag.contextual import ContextCache, prompt
from rag.contextual import cache as cache_module
from rag.contextual.cache import KeptAnswer
from rag.errors import CacheFailed
from rag.records import Card, Chunk
from tests.conftest import ROOT
from tests.fakes import make_card

ANSWER = KeptAnswer("Trata de algo.", "stop", 100, 20, 1.5)
CHUNK = Chunk("una", 0, 0, 6, "Texto.")


def opened(path: Path, *, model: str = "un-modelo", parser_version: int = 1) -> ContextCache:
    return ContextCache(path, model=model, parser_version=parser_version)


def test_an_answer_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    """What was put is there, letter for letter, in another cache on the same file; what was not is None."""
    strange = KeptAnswer("«ñ»\n\x00\U0001f600", None, None, None, 0.25)
    with opened(tmp_path / "carpeta" / "contexts.sqlite") as cache:
        cache.put(b"a", ANSWER)
        cache.put(b"b", strange)
    with opened(tmp_path / "carpeta" / "contexts.sqlite") as cache:
        assert (cache.get(b"a"), cache.get(b"b"), cache.get(b"c")) == (ANSWER, strange, None)
        assert len(cache) == 2


def test_an_answer_is_on_disk_at_once(tmp_path: Path) -> None:
    """A process that is killed right after it kept an answer leaves it to the next one."""
    path = tmp_path / "contexts.sqlite"
    program = (
        "import os, signal, sys; from pathlib import Path; from rag.contextual import ContextCache; "
        "from rag.contextual.cache import KeptAnswer; "
        "cache = ContextCache(Path(sys.argv[1]), model='un-modelo', parser_version=1); "
        "cache.put(b'a', KeptAnswer('Trata de algo.', 'stop', 100, 20, 1.5)); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(path)], cwd=ROOT, check=False)
    assert killed.returncode == -9
    with opened(path) as cache:
        assert cache.get(b"a") == ANSWER


CARD = make_card(text="Texto. Texto.")
OTHERS: list[tuple[str, Card, Chunk]] = [
    ("title", make_card(text=CARD.text, title="Otra"), CHUNK),
    ("text", make_card(text="Texto. Texto!"), CHUNK),
    ("language", make_card(text=CARD.text, language="en"), CHUNK),
    ("place", CARD, Chunk("una", 0, 7, 13, "Texto.")),
    ("chunk", CARD, Chunk("una", 0, 0, 5, "Texto")),
]


@pytest.mark.parametrize(("card", "chunk"), [entry[1:] for entry in OTHERS], ids=[entry[0] for entry in OTHERS])
def test_another_question_has_another_key(tmp_path: Path, card: Card, chunk: Chunk) -> None:
    """Whatever changes the question changes the key."""
    with opened(tmp_path / "contexts.sqlite") as cache:
        assert cache.key(card, chunk) != cache.key(CARD, CHUNK)


def test_models_and_parsers_have_their_own_keys(tmp_path: Path) -> None:
    """Another model or parser version has other keys, and the same ones the same."""
    keys = []
    for model, parser_version in [("a", 1), ("b", 1), ("a", 2), ("a", 1)]:
        with opened(tmp_path / "contexts.sqlite", model=model, parser_version=parser_version) as cache:
            keys.append(cache.key(CARD, CHUNK))
    assert keys[0] == keys[3]
    assert len(set(keys)) == 3


@pytest.mark.parametrize("name", ["PROMPT_VERSION", "GENERATOR_VERSION"])
def test_prompt_and_generator_have_their_own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Another version of the prompt or of the generator has other keys."""
    with opened(tmp_path / "contexts.sqlite") as cache:
        before = cache.key(CARD, CHUNK)
    monkeypatch.setattr(cache_module, name, getattr(prompt, name) + 1)
    with opened(tmp_path / "contexts.sqlite") as cache:
        assert cache.key(CARD, CHUNK) != before


@pytest.mark.parametrize(
    "card",
    [
        make_card("otra", CARD.text, title=CARD.title),
        make_card(text=CARD.text, acl=("staff",)),
        make_card(text=CARD.text, source="x", license="y", accessed_at="2026-01-01", topics=("z",)),
    ],
    ids=["id", "acl", "the-rest"],
)
def test_what_is_not_sent_is_not_in_the_key(tmp_path: Path, card: Card) -> None:
    """Groups, id, source, licence and topics of a card ask no new question."""
    with opened(tmp_path / "contexts.sqlite") as cache:
        assert cache.key(card, CHUNK) == cache.key(CARD, CHUNK)


def test_trimming_drops_what_two_publications_had_no_use_for(tmp_path: Path) -> None:
    """An answer outlives one publication that does not use it, and not two."""
    path = tmp_path / "contexts.sqlite"
    with opened(path) as cache:
        cache.put(b"used", ANSWER)
        cache.put(b"once", ANSWER)
        assert cache.trim() == 0
    with opened(path) as cache:
        assert cache.get(b"used") == ANSWER
        assert cache.trim() == 0
        assert len(cache) == 2
    with opened(path) as cache:
        assert cache.get(b"used") == ANSWER
        assert cache.trim() == 1
        assert (cache.get(b"used"), cache.get(b"once")) == (ANSWER, None)


def test_builds_that_publish_nothing_age_nothing(tmp_path: Path) -> None:
    """However often the cache is opened without a publication, nothing gets older."""
    path = tmp_path / "contexts.sqlite"
    with opened(path) as cache:
        cache.put(b"a", ANSWER)
        cache.trim()
    for _ in range(5):
        with opened(path):
            pass
    with opened(path) as cache:
        assert cache.trim() == 0
        assert cache.get(b"a") == ANSWER


def test_a_file_that_is_no_cache_is_named(tmp_path: Path) -> None:
    """A file that SQLite cannot read is refused by name, and left as it is."""
    path = tmp_path / "contexts.sqlite"
    path.write_bytes(b"no es una base de datos" * 100)
    with pytest.raises(CacheFailed, match=r"contexts\.sqlite"):
        opened(path)
    assert path.read_bytes().startswith(b"no es")


def test_a_failing_disk_is_named(tmp_path: Path) -> None:
    """A write that fails names the file, so that no more answers are paid for."""
    path = tmp_path / "contexts.sqlite"
    with opened(path) as cache:
        other = sqlite3.connect(path)
        other.execute("DROP TABLE answers")
        other.commit()
        other.close()
        for call in (lambda: cache.put(b"a", ANSWER), lambda: cache.get(b"a"), cache.trim):
            with pytest.raises(CacheFailed, match=r"contexts\.sqlite"):
                call()
