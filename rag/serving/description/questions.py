"""What callers send, as schemas and parameters."""

from __future__ import annotations

from typing import Any

from rag.serving.description.pieces import Schema, choice, list_of, or_null, record, text, truth, whole
from rag.serving.questions import ANSWER_LIMIT_CHARS, LANGUAGES, QUESTION_LIMIT_CHARS, TOP_K_LIMIT, TURNS_LIMIT

QUESTION = text(
    "A question in Spanish or English, with at least one letter or digit.",
    minLength=1,
    maxLength=QUESTION_LIMIT_CHARS,
    pattern=r"\S",
)
TOP_K = whole("How many cards are retrieved; what the settings say if left out.", minimum=1, maximum=TOP_K_LIMIT)
_STREAM = truth("Whether the answer is wanted in pieces, as server-sent events.")
_TURN = record(
    "A question that was asked, and what was answered.",
    {
        "question": text("As it was asked.", maxLength=QUESTION_LIMIT_CHARS),
        "answer": text("What was answered.", maxLength=ANSWER_LIMIT_CHARS),
    },
    required=["question"],
)

ASK: Schema = record(
    "A question, and how it should be answered.",
    {
        "question": QUESTION,
        "top_k": or_null(TOP_K),
        "stream": or_null(_STREAM),
        "history": or_null(
            list_of(_TURN, "What was asked before, the oldest first; it completes the question.", maxItems=TURNS_LIMIT)
        ),
    },
    required=["question"],
)
ASK_FORM: Schema = record(
    "The same as fields of a form, each once.",
    {"q": QUESTION, "top_k": TOP_K, "stream": choice(_STREAM["description"], "true", "1", "false", "0", "")},
    required=["q"],
)

# a search has neither, and does not mind to be told so
_WITHOUT: dict[str, Schema] = {
    "stream": {"enum": [False, None], "description": "Hits come whole."},
    "history": {"type": ["array", "null"], "description": "A question by itself.", "maxItems": 0},
}
SEARCH: Schema = record(
    "What to search for.", {"question": QUESTION, "top_k": or_null(TOP_K), **_WITHOUT}, required=["question"]
)
SEARCH_FORM: Schema = record(
    "The same as fields of a form, each once.",
    {"q": QUESTION, "top_k": TOP_K, "stream": choice("Hits come whole.", "false", "0", "")},
    required=["q"],
)

ASK_PARAMETERS: list[Schema] = [
    {"name": name, "in": "query", "required": name in ASK_FORM["required"], "schema": schema}
    for name, schema in ASK_FORM["properties"].items()
]
LANGUAGE_PARAMETER: Schema = {
    "name": "language",
    "in": "query",
    "schema": choice("Of the questions.", *LANGUAGES) | {"default": LANGUAGES[0]},
}


def path_parameter(name: str, description: str, **more: Any) -> Schema:
    """A part of a path."""
    return {"name": name, "in": "path", "required": True, "schema": text(description), **more}
