"""Questions that have nothing to do with any box of cards, and what they say about a model and an index.

They answer two things at build time. How close does an unrelated question come: that is where the gate stands. And
where does a language lie in the model's space: e5 puts a question nearer to text of its own language, whatever it is
about, and ranking has to take that out.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

REFERENCE_VERSION = 2
"""Raise it when the questions or what is made of them changes."""
PRIOR_ROWS = 10
"""The generic mean of a language counts as much as this many rows."""
COSINE_WEIGHT = 2.0
"""Of the cosine's lead over an unrelated question, beside the centred cosine."""

_TINY = 1e-6
_QUESTIONS_FILE = Path(__file__).with_name("reference_questions.txt")

Vectors = NDArray[np.float32]


def reference_questions() -> dict[str, list[str]]:
    """The questions by language."""
    questions: dict[str, list[str]] = {}
    language = ""
    for line in _QUESTIONS_FILE.read_text("utf-8").splitlines():
        if line.startswith("# "):
            language = line[2:].strip()
        elif line.strip():
            questions.setdefault(language, []).append(line.strip())
    return questions


@dataclass(frozen=True, slots=True)
class Reference:
    """Mean vectors of the reference questions by language, (d,) float32: as questions, and as passages."""

    as_questions: Mapping[str, Vectors]
    as_passages: Mapping[str, Vectors]

    def write(self, path: Path) -> None:
        """Write into an ``.npz`` file."""
        arrays = {f"question_{name}": vector for name, vector in self.as_questions.items()}
        arrays |= {f"passage_{name}": vector for name, vector in self.as_passages.items()}
        np.savez(path, allow_pickle=False, **arrays)


def open_reference(path: Path) -> Reference:
    """
    Read what ``Reference.write`` wrote.

    Raises:
        OSError, ValueError: the file is missing or damaged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = {name.partition("_")[2] for name in arrays.files}
            return Reference(
                {name: arrays[f"question_{name}"] for name in names},
                {name: arrays[f"passage_{name}"] for name in names},
            )
    except (EOFError, KeyError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path.name} holds no reference vectors: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Placed:
    """What vectors are to the centres of languages, whatever is asked; arrays are (n,)."""

    languages: NDArray[np.intp]
    to_centres: Mapping[str, Vectors]
    """Language → dot products with its unrelated questions' mean."""
    apart: Vectors
    """Distances from the mean of their own language."""

    def at(self, places: NDArray[np.intp]) -> Placed:
        """Some of them."""
        to_centres = {name: values[places] for name, values in self.to_centres.items()}
        return Placed(self.languages[places], to_centres, self.apart[places])


class LanguageCentring:
    """
    Scores that do not favour the language of the question.

    For a question q in language a and a vector v in language b, with m(b) the mean of the public rows of b and r(a)
    that of unrelated questions in a:

        score = cos(v - m(b), q - r(a)) + 2 (v·q - m(b)·r(a))

    The first term compares what is special about both; the second is the cosine's lead over an unrelated question.
    Only public rows enter the means, so that hidden cards change nothing for those who may not see them.
    """

    def __init__(self, matrix: Vectors, languages: Sequence[str], public: Sequence[bool], reference: Reference) -> None:
        """``matrix`` is (n, d) float32; ``languages`` and ``public`` tell of its rows."""
        named, counted = np.asarray(languages), np.asarray(public, bool)
        self._numbers = {name: number for number, name in enumerate(sorted(reference.as_passages))}
        self._means = np.stack(
            [_mean(matrix[(named == name) & counted], reference.as_passages[name]) for name in self._numbers]
        )
        self._squares = np.einsum("ld,ld->l", self._means, self._means)
        self._centres = reference.as_questions
        spanish, english = (self._centres.get(name, np.zeros_like(self._means[0])) for name in ("es", "en"))
        self._apart = spanish - english
        self._middle = float((spanish + english) @ self._apart) / 2
        self._half = float(self._apart @ self._apart) / 2

    def lean(self, question: Vectors) -> float:
        """Where a question vector, (d,), lies between unrelated Spanish questions, 1, and English ones, -1."""
        return (float(question @ self._apart) - self._middle) / self._half if self._half > _TINY else 0.0

    def number(self, language: str) -> int:
        """The number by which vectors are told their language."""
        return self._numbers[language]

    def place(self, vectors: Vectors, languages: NDArray[np.intp]) -> Placed:
        """What these vectors, (n, d), of the languages with these numbers, (n,), are to the centres."""
        dots = vectors @ np.stack([*self._centres.values(), *self._means]).T
        to_mean = dots[np.arange(len(vectors)), len(self._centres) + languages]
        apart = np.sqrt(np.maximum(1.0 - 2.0 * to_mean + self._squares[languages], _TINY))
        to_centres = {name: np.ascontiguousarray(dots[:, number]) for number, name in enumerate(self._centres)}
        return Placed(languages, to_centres, apart)

    def score(self, cosines: Vectors, placed: Placed, question: Vectors, language: str) -> Vectors:
        """The scores, (n,) float32, of vectors whose cosines with a question in this language are known."""
        centre = self._centres[language]
        level, offset = self._means @ centre, self._means @ question
        length = np.float32(max(float(np.linalg.norm(question - centre)), _TINY))
        centred = cosines - placed.to_centres[language]
        centred += (level - offset)[placed.languages]
        centred /= placed.apart * length
        centred += np.float32(COSINE_WEIGHT) * (cosines - level[placed.languages])
        return centred

    def compare(
        self, vectors: Vectors, languages: NDArray[np.intp], question: Vectors, language: str
    ) -> tuple[Vectors, Vectors]:
        """
        Cosines and scores, each (n,) float32, of a question with vectors, (n, d) float32, all of unit length.

        ``languages`` holds the number of each vector's language, ``language`` is the question's.
        """
        cosines = vectors @ question
        return cosines, self.score(cosines, self.place(vectors, languages), question, language)


def _mean(rows: Vectors, prior: Vectors) -> Vectors:
    mean: Vectors = (rows.sum(axis=0) + PRIOR_ROWS * prior) / np.float32(len(rows) + PRIOR_ROWS)
    return mean
