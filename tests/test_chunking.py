"""Cards to chunks: spans that cover the text and can be told apart by their words."""

from __future__ import annotations

import re
import statistics
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag.cards import read_cards
from rag.chunking import MINIMUM_CHARS, check_chunking, split_card
from rag.contextual import contextualise
from rag.errors import SettingsInvalid
from rag.markdown import Kind, scan_lines
from rag.records import Chunk
from tests.conftest import CASES_DIR, ROOT
from tests.fakes import make_card

BOUNDED = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

WORD = st.one_of(
    st.sampled_from(
        ["la", "pastilla", "azul.", "¿Cuándo?", "¡Ya!", "8", "h.", "año", "cafe\u0301", "👩‍⚕️", "日本語", "(uno)"]
    ),
    st.text(alphabet="abcdefñ", min_size=1, max_size=12),
)
LONG_WORD = st.integers(15, 130).map("x".__mul__)
SENTENCE = st.lists(st.one_of(WORD, WORD, WORD, LONG_WORD), min_size=1, max_size=14).map(" ".join)
ROW = st.lists(st.sampled_from(["uno", "Envase F83", "", "11:00", "sí, con comida"]), min_size=2, max_size=4)
TABLE = st.lists(ROW, min_size=1, max_size=8).map(
    lambda rows: "\n".join(["| a | b |", "|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])
)
BLOCK = st.one_of(
    SENTENCE,
    SENTENCE,
    TABLE,
    st.tuples(st.integers(1, 4), SENTENCE).map(lambda heading: f"{'#' * heading[0]} {heading[1]}"),
    st.lists(SENTENCE, min_size=1, max_size=5).map(lambda items: "\n".join(f"- {item}" for item in items)),
    SENTENCE.map(lambda code: f"```\n{code}\n```"),
    st.just("---"),
)
MARKDOWN = st.lists(st.tuples(BLOCK, st.sampled_from(["\n", "\n\n", "\n \n\n"])), max_size=8).map(
    lambda blocks: "".join(block + end for block, end in blocks)
)
TEXT = st.one_of(MARKDOWN, MARKDOWN, st.text(max_size=400))


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    chunk_chars = draw(st.integers(MINIMUM_CHARS, 160))
    return chunk_chars, draw(st.integers(0, chunk_chars // 2))


def cut(text: str, chunk_chars: int, overlap_chars: int) -> list[Chunk]:
    return split_card(make_card(text=text), chunk_chars=chunk_chars, overlap_chars=overlap_chars)


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


@given(TEXT, sizes())
@BOUNDED
def test_chunks_are_spans(text: str, size: tuple[int, int]) -> None:
    """A chunk is the text between its offsets, numbered from 0, within the limit, without white space around."""
    chunks = cut(text, *size)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.card_id == "una"
        assert text[chunk.start : chunk.end] == chunk.text
        assert 0 < len(chunk.text) <= size[0]
        assert chunk.text == chunk.text.strip()


@given(TEXT, sizes())
@BOUNDED
def test_chunks_hold_every_word(text: str, size: tuple[int, int]) -> None:
    """No letter of the text is outside all chunks; a word that fits into a chunk is whole in one."""
    chunks = cut(text, *size)
    held = {position for chunk in chunks for position in range(chunk.start, chunk.end)}
    assert all(letter.isspace() for position, letter in enumerate(text) if position not in held)
    for start, end in words(text):
        if end - start <= size[0]:
            assert any(chunk.start <= start and end <= chunk.end for chunk in chunks)


@given(TEXT, sizes())
@BOUNDED
def test_chunks_move_on(text: str, size: tuple[int, int]) -> None:
    """Each chunk begins and ends behind the one before, so none is contained in it, and repeats at most the overlap."""
    for before, chunk in pairwise(cut(text, *size)):
        assert before.start < chunk.start
        assert before.end < chunk.end
        assert before.end - chunk.start <= size[1]


@given(TEXT, sizes())
@BOUNDED
def test_chunks_begin_and_end_at_words(text: str, size: tuple[int, int]) -> None:
    """A chunk is cut inside a word only when that word is longer than a chunk."""
    long = [(start, end) for start, end in words(text) if end - start > size[0]]
    for chunk in cut(text, *size):
        for edge in (chunk.start, chunk.end):
            inside = 0 < edge < len(text) and not text[edge - 1].isspace() and not text[edge].isspace()
            assert not inside or any(start < edge < end for start, end in long)


@given(TEXT, sizes())
@BOUNDED
def test_rows_that_fit_are_whole(text: str, size: tuple[int, int]) -> None:
    """A table row that fits into a chunk is never cut, neither by a chunk's end nor by an overlap."""
    chunks = cut(text, *size)
    for line in scan_lines(text):
        start, end = line.start, line.start + len(text[line.start : line.end].rstrip())
        if line.kind is Kind.TABLE_ROW and end - start <= size[0]:
            edges = {edge for chunk in chunks for edge in (chunk.start, chunk.end)}
            assert not any(start < edge < end for edge in edges), text[start:end]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=2, max_size=10), sizes())
@example([(False, 5), (True, 12), (False, 1)], (20, 3))
@BOUNDED
def test_a_heading_ends_no_chunk_when_it_fits_with_what_follows(
    shape: list[tuple[bool, int]], size: tuple[int, int]
) -> None:
    """A heading that fits into a chunk together with the paragraph below it does not end one."""
    blocks = [f"## {'h' * length}" if heading else ("p" * 4 + " ") * (length // 5) + "p" for heading, length in shape]
    text = "\n\n".join(blocks)
    ends = {chunk.end for chunk in cut(text, *size)}
    start = 0
    for block, after in pairwise(blocks):
        end = start + len(block)
        fits = end + 2 + len(after) - start <= size[0]
        if block.startswith("#") and not after.startswith("#") and fits:
            assert end not in ends, (block, after)
        start = end + 2


@given(TEXT, sizes())
@BOUNDED
def test_the_same_card_gives_the_same_chunks(text: str, size: tuple[int, int]) -> None:
    """Cutting is repeatable, and a text that fits is one chunk."""
    chunks = cut(text, *size)
    assert cut(text, *size) == chunks
    if text.strip() and len(text.strip()) <= size[0] - size[1]:
        assert [chunk.text for chunk in chunks] == [text.strip()]


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\n", "\u2003\n"], ids=["empty", "space", "lines", "em-space"])
def test_blank_text_gives_no_chunk(text: str) -> None:
    """A text without a word gives no chunk."""
    assert cut(text, 400, 60) == []


def test_a_word_longer_than_a_chunk_is_cut_by_character() -> None:
    """Nothing is lost of a word that no chunk can hold."""
    chunks = cut("a" * 1_000, 100, 20)
    assert "".join(chunk.text for chunk in chunks) == "a" * 1_000


def test_an_overlap_repeats_the_last_words() -> None:
    """A chunk begins with whole words of the one before, no more of them than the overlap has room for."""
    text = "uno dos tres cuatro cinco seis siete ocho nueve diez once doce"
    chunks = cut(text, 24, 8)
    assert [chunk.text for chunk in chunks[:2]] == ["uno dos tres cuatro", "cuatro cinco seis siete"]
    assert all(chunk.start < before.end for before, chunk in pairwise(chunks))


def test_paragraphs_are_kept_before_sentences_and_sentences_before_words() -> None:
    """A cut falls on the strongest break that leaves pieces small enough."""
    first, second = "Uno dos tres. Cuatro cinco seis.", "Siete ocho nueve. Diez once doce."
    assert [chunk.text for chunk in cut(f"{first}\n\n{second}", 40, 0)] == [first, second]
    assert [chunk.text for chunk in cut(f"{first} {second}", 36, 0)] == [first, second]


HEADINGS = [
    ("behind a blank line", "Uno dos tres cuatro cinco.\n\n## Sección\n\nSeis siete ocho nueve diez.", 50, 10),
    ("behind no blank line", "Uno dos tres cuatro cinco.\n## Sección\n\nSeis siete ocho nueve diez.", 50, 10),
    ("first of its chunk", f"{'a ' * 18}a\n\n{'b ' * 13}b\n\n## Sección\n\nSeis siete ocho nueve.", 40, 12),
    ("two in a row", "Uno dos tres cuatro cinco.\n\n# A\n\n## B\n\nSeis siete ocho nueve.", 40, 0),
    ("underlined", "Uno dos tres cuatro cinco.\n\nSección\n---\n\nSeis siete ocho nueve.", 40, 0),
]


@pytest.mark.parametrize(
    ("text", "chunk_chars", "overlap_chars"), [row[1:] for row in HEADINGS], ids=[row[0] for row in HEADINGS]
)
def test_headings_stay_with_their_section(text: str, chunk_chars: int, overlap_chars: int) -> None:
    """The chunk that holds a heading also holds the words below it, as both fit."""
    with_heading = [chunk.text for chunk in cut(text, chunk_chars, overlap_chars) if "Seis" in chunk.text]
    assert "ección" in with_heading[0] or "## B" in with_heading[0]
    assert not any(chunk.text.endswith(("Sección", "---", "## B")) for chunk in cut(text, chunk_chars, overlap_chars))


TABLE_TEXT = "Texto.\n\n| Envase | Hora |\n|---|---|\n" + "\n".join(f"| Envase {n} | 0{n}:00 |" for n in range(9))


@pytest.mark.parametrize("indent", ["", "  "], ids=["flush", "indented"])
@pytest.mark.parametrize("chunk_chars", range(24, 80, 5))
def test_rows_of_a_table_are_whole(chunk_chars: int, indent: str) -> None:
    """Whatever the budget, no row that fits is cut, indented or not."""
    text = TABLE_TEXT.replace("\n|", f"\n{indent}|")
    for overlap_chars in (0, chunk_chars // 4, chunk_chars // 2):
        chunks = cut(text, chunk_chars, overlap_chars)
        for number in range(9):
            assert any(f"| Envase {number} | 0{number}:00 |" in chunk.text for chunk in chunks)
        assert all(chunk.text.count("|") % 3 == 0 for chunk in chunks)


def test_a_typical_card_gives_three_or_four_chunks() -> None:
    """Cards of about 1,100 characters become 3 or 4 chunks with the default settings, in the median."""
    cards = [card for card in read_cards(ROOT / "cards").cards if 1_050 <= len(card.text) <= 1_150]
    counts = [len(split_card(card, chunk_chars=400, overlap_chars=60)) for card in cards]
    assert len(cards) > 10
    assert statistics.median(counts) in (3, 4)
    assert max(counts) <= 5


BAD_SIZES = [(50, 50), (50, 80), (0, 0), (50, -1), (50, 26), (19, 0), (-400, 0)]


@pytest.mark.parametrize(("chunk_chars", "overlap_chars"), BAD_SIZES, ids=str)
def test_sizes_that_could_not_work_are_refused(chunk_chars: int, overlap_chars: int) -> None:
    """Settings under which cutting would not move on are refused, by the check and by the cut, with their value."""
    with pytest.raises(SettingsInvalid, match=str(chunk_chars)):
        check_chunking(chunk_chars=chunk_chars, overlap_chars=overlap_chars)
    with pytest.raises(SettingsInvalid, match=str(chunk_chars)):
        cut("uno dos", chunk_chars, overlap_chars)


@pytest.mark.parametrize(("chunk_chars", "overlap_chars"), [(20, 0), (20, 10), (50, 25), (4_000, 2_000)], ids=str)
def test_sizes_at_the_edge_are_accepted(chunk_chars: int, overlap_chars: int) -> None:
    """An overlap goes up to half a chunk, and a chunk down to the minimum."""
    check_chunking(chunk_chars=chunk_chars, overlap_chars=overlap_chars)


def case_sizes() -> list[tuple[int, int]]:
    lines = (CASES_DIR / "O07_chunk_config" / "config.txt").read_text("utf-8").splitlines()
    found = [re.fullmatch(r"chunk_size=(-?\d+) overlap=(-?\d+)", line.strip()) for line in lines]
    return [(int(match[1]), int(match[2])) for match in found if match]


@pytest.mark.parametrize(("chunk_chars", "overlap_chars"), case_sizes()[:4], ids=str)
def test_case_o07_refused_settings(chunk_chars: int, overlap_chars: int) -> None:
    """The settings of the case under which cutting would not move on are refused."""
    with pytest.raises(SettingsInvalid):
        check_chunking(chunk_chars=chunk_chars, overlap_chars=overlap_chars)


@pytest.mark.parametrize(("chunk_chars", "overlap_chars"), [*case_sizes()[4:], (50, 25), (400, 60), (97, 13)], ids=str)
def test_case_o07_a_run_of_letters(chunk_chars: int, overlap_chars: int) -> None:
    """A card with a run of thousands of letters is covered by spans that only inside the run begin amid a word."""
    [card] = read_cards(CASES_DIR / "O07_chunk_config" / "cards").cards
    chunks = split_card(card, chunk_chars=chunk_chars, overlap_chars=overlap_chars)
    run = max(words(card.text), key=lambda word: word[1] - word[0])
    assert run[1] - run[0] >= 5_000
    held: set[int] = set()
    for before, chunk in pairwise([None, *chunks]):
        assert chunk is not None
        assert card.text[chunk.start : chunk.end] == chunk.text
        assert len(chunk.text) <= chunk_chars
        assert before is None or before.end < chunk.end
        assert chunk.start == 0 or card.text[chunk.start - 1].isspace() or run[0] < chunk.start < run[1]
        held.update(range(chunk.start, chunk.end))
    assert all(card.text[at].isspace() for at in range(len(card.text)) if at not in held)


@pytest.mark.parametrize("strategy", ["none", "metadata"])
def test_case_o08_every_row_is_found_with_its_columns(strategy: str) -> None:
    """No row of a long table is cut, and what is indexed with each one says what its columns mean."""
    [card] = read_cards(CASES_DIR / "O08_table" / "cards").cards
    chunks = split_card(card, chunk_chars=400, overlap_chars=60)
    records = contextualise(card, chunks, strategy=strategy)
    assert len(chunks) > 1
    rows = [card.text[line.start : line.end] for line in scan_lines(card.text) if line.kind is Kind.TABLE_ROW]
    assert len(rows) >= 97
    for row in rows:
        holders = [record for record in records if row.strip() in record.chunk_original]
        assert holders
        assert all("| Envase | Hora | Con comida |" in record.text_indexed for record in holders)
    assert all(chunk.text.startswith("|") and chunk.text.endswith("|") for chunk in chunks)
