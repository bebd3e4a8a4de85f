"""The command that measures answers of a real endpoint, with one of ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.llm_answers import ANSWERS_FILE, READABLE_FILE, main, sample
from benchmarks.llm_report import ANSWERABLE
from rag.settings import PREFIX
from tests.conftest import MODEL_DIR
from tests.fake_llm import Asked, FakeLlm, Reply, says

REFUSES = "NADA [cite:none]"


def behave(asked: Asked) -> Reply:
    """The first words of the first card, with its marker, and something that no card says."""
    shown = re.search(r'<(?:card|ficha) id="([^"]+)"[^\n]*\n([^\n.]+\.)', asked.prompt)
    said = f"{shown[2]} [cite:{shown[1]}] El rey vive en Marte. [cite:nadie]" if shown else REFUSES
    return says(
        json.dumps({"answer": said, "citations": [], "refused": False}) if "response_format" in asked.body else said
    )


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, sample_index_dir: Path) -> None:
    """The example cards' index, as a user's environment would name it."""
    monkeypatch.setenv(f"{PREFIX}INDEX_DIR", str(sample_index_dir))
    monkeypatch.setenv(f"{PREFIX}MODEL_DIR", str(MODEL_DIR))


@pytest.mark.usefixtures("settings")
def test_answers_are_kept_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each question is asked in both ways, once and for all; the figures say what became of the model's marks."""
    with FakeLlm(behave) as llm:
        arguments = ["--base-url", llm.url, "--model", "fake", "--questions", "6", "--out", str(tmp_path)]
        assert main(arguments) == 0
        first = capsys.readouterr().out
        asked = len(llm.asked)
        path = tmp_path / ANSWERS_FILE
        lines = path.read_text("utf-8").splitlines()
        path.write_text("\n".join(lines)[:-9], "utf-8")
        assert main(arguments) == 0
        again = capsys.readouterr().out
        # only the question whose answer was cut off
        assert asked <= len(llm.asked) <= asked + 2
        with pytest.raises(SystemExit, match="name another folder"):
            main([*arguments, "--model", "other"])
    written = [json.loads(line) for line in lines]
    assert len(written) == 12
    assert len(path.read_text("utf-8").splitlines()) == 12
    by_model = [one for one in written if one["answer"]["mode"] == "llm"]
    assert by_model
    assert all(one["checked"]["unknown"] and one["answer"]["rejected"]["unknown"] for one in by_model)
    assert all((one["first_delta_seconds"] is None) == (one["mode"] == "whole") for one in by_model)
    unknown = sum(one["checked"].get("unknown", 0) for one in written if one["mode"] == "stream")
    assert f" {unknown} unknown, 0 malformed" in first.partition("\nstream\n")[2]
    assert "a line was cut off" in again
    assert "1/1 " in again
    text = (tmp_path / READABLE_FILE).read_text("utf-8")
    assert all(f"## {one['question']}\n" in text for one in written)


def test_the_sample_is_fixed_and_even() -> None:
    """A seed gives the same questions: three fifths have an answer, and half of each kind are in each language."""
    chosen = sample(60, 1)
    assert chosen == sample(60, 1)
    assert chosen != sample(60, 2)
    kinds = [(kind, case.language) for kind, case in chosen]
    assert {kind: kinds.count(kind) for kind in sorted(set(kinds))} == {
        ("answerable", "en"): 18,
        ("answerable", "es"): 18,
        ("near_miss", "en"): 6,
        ("near_miss", "es"): 6,
        ("off_topic", "en"): 6,
        ("off_topic", "es"): 6,
    }
    assert all(bool(case.grades) == (kind == ANSWERABLE) and not case.held_out for kind, case in chosen)


def test_few_in_a_language_are_made_up_for() -> None:
    """Where a language has fewer questions of a kind than it should, the other one has more."""
    near = [case.language for kind, case in sample(150, 1) if kind == "near_miss"]
    assert (near.count("en"), near.count("es")) == (10, 20)
