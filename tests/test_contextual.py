"""What is said around a chunk so that it can be found: the strategies that cost nothing, and where others go."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.chunking import split_card
from rag.contextual import (
    CONTEXT_CHARS,
    CONTEXT_VERSION,
    PROMPT_VERSION,
    STRATEGIES,
    acl_version,
    check_strategy,
    contextualise,
    row_id,
)
from rag.errors import SettingsInvalid
from rag.records import Card, Chunk, ChunkRecord
from tests.fakes import make_card

BOUNDED = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

SECTIONS = "Intro.\n\n# Uno\n\nTexto de uno.\n\n## Dos\n\nTexto de dos.\n\n# Tres\n\nTexto de tres."


def records_of(card: Card, *, strategy: str, chunk_chars: int = 40) -> list[ChunkRecord]:
    return contextualise(card, split_card(card, chunk_chars=chunk_chars, overlap_chars=0), strategy=strategy)


def whole(card: Card, start: int, end: int, chunk_index: int = 0) -> Chunk:
    return Chunk(card.card_id, chunk_index, start, end, card.text[start:end])


@given(st.text(max_size=300), st.sampled_from(STRATEGIES), st.integers(20, 80))
@BOUNDED
def test_the_original_is_never_altered(text: str, strategy: str, chunk_chars: int) -> None:
    """A record keeps its chunk letter for letter, and what is indexed is the context, a blank line, and the chunk."""
    card = make_card(text=text, topics=("uno",))
    chunks = split_card(card, chunk_chars=chunk_chars, overlap_chars=0)
    records = contextualise(card, chunks, strategy=strategy)
    assert [record.chunk_original for record in records] == [chunk.text for chunk in chunks]
    for number, record in enumerate(records):
        joined = f"{record.context}\n\n{record.chunk_original}" if record.context else record.chunk_original
        assert record.text_indexed == joined
        assert (record.chunk_id, record.document_id) == (f"una::{number:02d}", "una")
        kind = "metadata" if strategy == "llm" else strategy
        assert record.context_version == f"{kind}-{CONTEXT_VERSION}"


def test_none_names_the_title_on_the_first_chunk_only() -> None:
    """Without contexts the title stands before the first chunk, and nothing before the others."""
    records = records_of(make_card(title="El título", text=SECTIONS), strategy="none")
    assert len(records) > 2
    assert [record.context for record in records] == ["El título", *[""] * (len(records) - 1)]
    assert records[0].text_indexed.startswith("El título\n\nIntro.")
    assert records[1].text_indexed == records[1].chunk_original


PLACES = [
    ("Intro", "Ficha."),
    ("Texto de uno", "Ficha › Uno."),
    ("Texto de dos", "Ficha › Uno › Dos."),
    ("Texto de tres", "Ficha › Tres."),
]


@pytest.mark.parametrize(("words", "context"), PLACES, ids=[words for words, _ in PLACES])
def test_metadata_names_title_and_sections(words: str, context: str) -> None:
    """Each chunk is told with the card's title and the sections it stands in, outermost first."""
    card = make_card(title="Ficha", text=SECTIONS)
    start = SECTIONS.index(words)
    [record] = contextualise(card, [whole(card, start, start + len(words), 7)], strategy="metadata")
    assert record.context == context


@pytest.mark.parametrize(("language", "word"), [("es", "Temas"), ("en", "Topics")])
def test_metadata_names_topics_in_the_cards_language(language: str, word: str) -> None:
    """Topics are named, in order, with a word of the card's own language."""
    card = make_card(title="Ficha", language=language, topics=("a", "b"))
    assert contextualise(card, [whole(card, 0, 5)], strategy="metadata")[0].context == f"Ficha. {word}: a, b."


def test_a_chunk_belongs_where_its_middle_is() -> None:
    """A chunk that begins with the tail of another section is told with the section of its middle."""
    text = "# Uno\n\ntexto\n\n# Dos\n\ntexto largo de la otra sección"
    card = make_card(title="Ficha", text=text)
    [record] = contextualise(card, [whole(card, 7, len(text), 1)], strategy="metadata")
    assert record.context == "Ficha › Dos."


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_contexts_have_a_limit(strategy: str) -> None:
    """However long titles, sections and topics are, a context has at most 500 characters."""
    card = make_card(title="t" * 2_000, text=f"# {'s' * 600}\n\nx", topics=("u" * 2_000,))
    [record] = contextualise(card, [whole(card, len(card.text) - 1, len(card.text))], strategy=strategy)
    assert 0 < len(record.context) <= CONTEXT_CHARS


def test_who_may_read_a_card_is_in_no_context() -> None:
    """Groups, source and licence are never part of what is indexed."""
    card = make_card(acl=("secretos",), source="https://ejemplo.invalid", license="CC0-1.0")
    for strategy in STRATEGIES:
        indexed = records_of(card, strategy=strategy)[0].text_indexed
        assert not any(word in indexed for word in ("secretos", "ejemplo.invalid", "CC0"))


PROSE = "Primera frase de la ficha. Segunda frase, que es otra cosa.\n\n# Uno\n\nLo de antes.\n\nLo que se busca."


def surroundings_of(text: str, words: str) -> list[str]:
    """The lines of the context of the chunk that begins with these words, without the first."""
    card = make_card(title="Ficha", text=text)
    start = text.index(words)
    [record] = contextualise(card, [whole(card, start, start + len(words), 3)], strategy="surroundings")
    first, *rest = record.context.split("\n")
    assert first.startswith("Ficha")
    return rest


def test_surroundings_name_opening_and_what_stands_before() -> None:
    """A chunk is told with the card's first sentence and with the words right before it, without lone signs."""
    text = PROSE.replace("# Uno", "Relleno que llena sitio. " * 8 + "\n\n# Uno")
    opening, tail = surroundings_of(text, "Lo que se busca")
    assert opening == "Primera frase de la ficha."
    assert tail.endswith("sitio. Uno Lo de antes.")
    assert 120 < len(tail) <= 160
    assert tail.split()[0] in ("Relleno", "que", "llena", "sitio.")


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        ("Primera frase de la ficha.", []),
        ("Segunda frase, que es", ["Primera frase de la ficha."]),
        ("Lo de antes.", ["Primera frase de la ficha. Segunda frase, que es otra cosa. Uno"]),
    ],
)
def test_surroundings_do_not_say_a_thing_twice(words: str, rest: list[str]) -> None:
    """The first sentence is left out where the chunk, or what stands before it, has it."""
    assert surroundings_of(PROSE, words) == rest


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        ("# Título\n\n- Un punto que\n  sigue aquí. Otro.", "Un punto que sigue aquí."),
        ("| A | B |\n|---|---|\n| 1 | 2 |\n\nTexto sin punto", "Texto sin punto"),
        ("Toma 1.5 ml. Y más.", "Toma 1.5 ml."),
    ],
    ids=["item", "after-a-table", "inner-points"],
)
def test_the_opening_is_a_sentence_of_the_text(text: str, opening: str) -> None:
    """The first sentence is taken from prose or a list, not from headings and tables."""
    filler = " relleno" * 30
    assert surroundings_of(f"{text}\n\n{filler}\n\nfinal", "final")[0] == opening


def test_a_long_opening_is_cut_at_a_word() -> None:
    """A first sentence that does not end is cut at a word, and says so."""
    opening = surroundings_of("palabra " * 60 + "final", "final")[0]
    assert opening == "palabra " * 19 + "palabra …"


def test_a_generated_context_follows_the_metadata() -> None:
    """A generated context stands on a line below the metadata, and the version of the row says that it is there."""
    card = make_card(title="Ficha", text=SECTIONS, topics=("a",))
    chunks = split_card(card, chunk_chars=40, overlap_chars=0)
    records = contextualise(card, chunks, strategy="llm", generated={1: "Lo que se dice de uno."})
    free = contextualise(card, chunks, strategy="metadata")
    assert records[1].context == f"{free[1].context}\nLo que se dice de uno."
    assert records[1].context_version == f"llm-{PROMPT_VERSION}"
    assert [*records[:1], *records[2:]] == [*free[:1], *free[2:]]
    assert records[1].context_version != free[1].context_version


@pytest.mark.parametrize("strategy", ["none", "metadata", "surroundings"])
def test_other_strategies_leave_generated_contexts_out(strategy: str) -> None:
    """What was generated is used by its own strategy only."""
    card = make_card()
    chunks = split_card(card, chunk_chars=40, overlap_chars=0)
    records = contextualise(card, chunks, strategy=strategy, generated={0: "Generado."})
    assert records == contextualise(card, chunks, strategy=strategy)


ROWS = [f"| Envase {letter} | 0{number}:00 |" for number, letter in enumerate("ABCDEF")]
TABLE = "\n".join(["| Envase | Hora |", "|---|---|", *ROWS])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("chunk_chars", range(22, 140, 6))
@pytest.mark.parametrize("before", ["", "Lo que se toma.\n\n", "Lo que se toma cada día por la mañana.\n"])
def test_each_row_is_indexed_with_its_header(before: str, chunk_chars: int, strategy: str) -> None:
    """Wherever a table is cut, what is indexed with a row begins with or holds the header row."""
    card = make_card(text=before + TABLE)
    records = records_of(card, strategy=strategy, chunk_chars=chunk_chars)
    for row in ROWS:
        holders = [record for record in records if row in record.chunk_original]
        assert holders
        assert all("| Envase | Hora |" in record.text_indexed for record in holders)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_chunk_with_the_header_does_not_repeat_it(strategy: str) -> None:
    """A chunk that begins at or above the header row is not told it again."""
    for before in ("", "Texto.\n\n"):
        card = make_card(text=before + TABLE)
        [record] = records_of(card, strategy=strategy, chunk_chars=400)
        assert record.text_indexed.count("| Envase | Hora |") == 1


def test_each_table_has_its_own_header() -> None:
    """A piece of the second table is told the header of the second."""
    text = "| A |\n|---|\n| 1 |\n\n| B |\n|---|\n| 2 |\n| 3 |"
    card = make_card(text=text)
    start = text.index("| 3")
    [record] = contextualise(card, [whole(card, start, len(text), 4)], strategy="none")
    assert record.context == "| B |"


def test_unknown_strategies_are_refused() -> None:
    """A strategy that does not exist is refused by name, with those that do."""
    for call in (lambda: check_strategy("llm2"), lambda: contextualise(make_card(), [], strategy="llm2")):
        with pytest.raises(SettingsInvalid, match=r"'llm2'.*none, metadata, surroundings, llm"):
            call()
    for strategy in STRATEGIES:
        check_strategy(strategy)


def test_row_ids_count_with_two_digits() -> None:
    """Row ids have at least two digits, and more when they need them."""
    assert [row_id("una", number) for number in (0, 7, 99, 100)] == ["una::00", "una::07", "una::99", "una::100"]


def test_the_acl_version_follows_the_groups() -> None:
    """Another set of groups has another version, and the same one the same."""
    acls = [(), ("a",), ("b",), ("a", "b"), ("ab",)]
    assert len({acl_version(acl) for acl in acls}) == len(acls)
    assert acl_version(("a", "b")) == acl_version(["a", "b"])
