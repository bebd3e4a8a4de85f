"""What a model thinks aloud, and what of its text is for the reader."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag.answering.thoughts import Thoughts
from tests.cutting import CUTS, pieces_of
from tests.growth import grows_in_step

BOUNDED = settings(
    max_examples=200, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def read(pieces: Iterable[str]) -> tuple[str, str]:
    """What is left for the reader at the end, and what was enclosed."""
    thoughts = Thoughts()
    said = [part for piece in pieces for part in thoughts.feed(piece)] + list(thoughts.finish())
    begin = max((at + 1 for at, part in enumerate(said) if part is None), default=0)
    return "".join(part or "" for part in said[begin:]), thoughts.enclosed


READ = [
    ("no thought", "Beba agua.", "Beba agua.", ""),
    ("a thought", "<think>pienso</think>Beba agua.", "Beba agua.", ""),
    ("capitals", "<THINK>pienso</Think>Beba agua.", "Beba agua.", ""),
    ("blanks around", " \n<think>\npienso\n</think>\n\nBeba agua. ", "Beba agua. ", ""),
    ("an empty thought", "<think></think>Beba agua.", "Beba agua.", ""),
    ("two thoughts", "<think>a</think> <think>b</think>Beba agua.", "Beba agua.", ""),
    ("no beginning", "pienso</think>Beba agua.", "Beba agua.", ""),
    ("two ends", "a</think>b</think>Beba agua.", "Beba agua.", ""),
    ("a thought behind an answer", "Hola. <think>pienso</think>Beba agua.", "Beba agua.", ""),
    ("no end", "<think>pienso", "", ""),
    ("half an end", "<think>pienso</thin", "", ""),
    ("nothing behind", "<think>pienso</think>", "", ""),
    ("letters that grow in lower case", "İİİİİ</think>Beba agua.", "Beba agua.", ""),
    ("half a tag", "<thin", "<thin", ""),
    ("half an end in text", "Beba agua </thi", "Beba agua </thi", ""),
    ("a comparison", "a < b </ c", "a < b </ c", ""),
    ("another tag", "<thinking>x</thinking>", "<thinking>x</thinking>", ""),
    ("JSON", ' {"answer": "ok"}', "", '{"answer": "ok"}'),
    ("JSON behind a thought", '<think>{a}</think>\n{"answer": "ok"}', "", '{"answer": "ok"}'),
    ("a fence", '```json\n{"answer": "ok"}\n```', "", '```json\n{"answer": "ok"}\n```'),
    ("JSON as a thought", '{"answer": "no"}</think>Beba agua.', "Beba agua.", ""),
    ("inline code", "`agua` sí", "`agua` sí", ""),
    ("two backticks", "``", "``", ""),
    ("nothing", "", "", ""),
]


@pytest.mark.parametrize(
    ("text", "left", "enclosed"), [row[1:] for row in READ], ids=[row[0].replace(" ", "-") for row in READ]
)
@pytest.mark.parametrize("size", [1, 3, 100], ids=["by letters", "by threes", "whole"])
def test_thoughts_are_left_out(text: str, left: str, enclosed: str, size: int) -> None:
    """What stands between the tags, or before an end, is for nobody; objects and code are kept apart."""
    assert read(text[at : at + size] for at in range(0, len(text), size)) == (left, enclosed)


SIGNS = ["<think>", "</think>", "<thi", "nk>", "</thi", "<", "{", "}", "```", "`", " ", "\n", "agua", "İ", "THINK>"]


@given(st.lists(st.sampled_from(SIGNS), max_size=12).map("".join), CUTS)
@example("<think>a</think>b", [7, 9])
@BOUNDED
def test_pieces_give_what_the_whole_gives(text: str, cuts: list[int]) -> None:
    """However a text is cut, the same is left of it."""
    assert read(pieces_of(text, cuts)) == read([text])


def test_text_comes_out_at_once() -> None:
    """Text that can be no tag is not kept back, nor is what stands before the half of one."""
    thoughts = Thoughts()
    assert list(thoughts.feed("Beba")) == ["Beba"]
    assert list(thoughts.feed(" agua</th")) == [" agua"]
    assert list(thoughts.feed("e")) == ["</the"]


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<", "{", "`", " ", "a</think><think>"])
def test_reading_grows_with_the_text(piece: str) -> None:
    """No text makes it slow."""
    assert grows_in_step(lambda text: read([text]), piece, times=5_000)
