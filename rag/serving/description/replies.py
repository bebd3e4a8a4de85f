"""What the service sends: the records of ``rag.records`` and the objects around them, as schemas."""

from __future__ import annotations

from rag.serving.description.pieces import (
    Schema,
    choice,
    list_of,
    map_of,
    number,
    or_null,
    record,
    ref,
    text,
    truth,
    whole,
)
from rag.serving.engine import REASONS, UNEXPECTED
from rag.serving.problems import problem_type, slugs_of
from rag.serving.questions import LANGUAGES

_CARD_ID = text("The id of a card.", pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")
_TITLE = text("The title of the card.")
_URL = text("The path of the card on this service.", pattern="^/cards/")
_LANGUAGE = choice("The language it is written in.", *LANGUAGES)
_VERSION = text("The build of the index that answered.")
_REQUEST_ID = text("The request's own id, also in the header X-Request-Id.", pattern="^[0-9a-f]{32}$")
_MILLISECONDS = map_of(number("Milliseconds.", minimum=0), "How long each part took.")

_LINK = {"card_id": _CARD_ID, "title": _TITLE, "url": _URL, "language": _LANGUAGE}
_SOURCE = {
    "license": or_null(text("The license of the card.")),
    "source": or_null(text("Where the card's text is from.")),
    "accessed_at": or_null(text("When it was taken from there.", format="date")),
}
_LISTED = {
    **_LINK,
    "topics": list_of(text("A topic."), "What the card is about."),
    "questions": list_of(text("A question."), "How people ask for what the card says."),
}

_ANSWERS: dict[str, Schema] = {
    "TextSegment": record(
        "A piece of the answer's text.",
        {
            "text": text("The text itself, never markup."),
            "language": _LANGUAGE,
            "type": {"const": "text"},
            "supported": truth("False for a sentence that cites cards which do not say so."),
        },
    ),
    "CitationSegment": record(
        "The place of a citation in the text.",
        {
            "citation": whole("Its place in citations, counted from 0.", minimum=0),
            "number": whole("The number to show; a card has one.", minimum=1),
            "card_id": _CARD_ID,
            "type": {"const": "citation"},
        },
    ),
    "Citation": record(
        "A quote and where it stands: the code points from start to end of the card's text are the quote.",
        {
            "number": whole("The number of its card.", minimum=1),
            **_LINK,
            **_SOURCE,
            "quote": text("The quoted sentence, to the letter; empty if the verdict is not valid."),
            "start": whole("Of the quote, in code points.", minimum=0),
            "end": whole("Of the quote, in code points.", minimum=0),
            "score": number("How near the quote is to the question."),
            "verdict": choice("Whether the card says what the sentence says.", "valid", "unsupported"),
        },
    ),
    "CardLink": record("A card that is named and not quoted.", _LINK),
    "RetrievedCard": record(
        "A card that the question found.",
        {
            **_LINK,
            "score": number("The cosine of its best chunk."),
            "dense_score": number("By vectors alone."),
            "lexical_score": number("The share of the question's words that it covers.", minimum=0, maximum=1),
            "rank_score": number("Both together, in this order unless there is a rerank_score."),
            "rerank_score": or_null(number("Of the cross-encoder, where there is one.")),
            "chunk_index": whole("Its best chunk.", minimum=0),
        },
    ),
    "Refusal": record(
        "Why there is no answer.",
        {
            "reason": choice("Stable.", "below_threshold", "no_cards", "no_evidence", "llm_refused"),
            "best_score": or_null(number("Of the nearest card, on the scale of threshold.")),
            "threshold": number("What was asked for."),
            "nearest": list_of(ref("CardLink"), "The nearest cards that the caller may see."),
        },
    ),
    "Answer": record(
        "An answer with its citations, or a refusal.",
        {
            "request_id": _REQUEST_ID,
            "question": text("As it was asked."),
            "searched": or_null(text("What was searched for in its place, where the history completed it.")),
            "question_truncated": truth(
                "It is longer than the embedding model reads: its end counted by its words alone."
            ),
            "answer": text("The text with a marker [cite:card-id] for each citation that holds."),
            "segments": list_of(
                {"oneOf": [ref("TextSegment"), ref("CitationSegment")]}, "The answer in pieces, in reading order."
            ),
            "language": choice("The language of the question.", *LANGUAGES),
            "mode": choice("Who wrote the text.", "extractive", "llm"),
            "degraded": truth("A language model should have written it, and could not."),
            "degraded_reason": or_null(text("Why not; stable.")),
            "refusal": or_null(ref("Refusal")),
            "citations": list_of(ref("Citation"), "Those of the text, in its order."),
            "rejected": map_of(
                whole("How many.", minimum=1),
                "What a language model wrote and is not shown: unknown and malformed markers, withheld sentences.",
            ),
            "retrieved": list_of(ref("RetrievedCard"), "The cards that could be cited, best first."),
            "index_version": _VERSION,
            "timings_ms": _MILLISECONDS,
        },
    ),
    "Found": record(
        "What a question found.",
        {
            "request_id": _REQUEST_ID,
            "question": text("As it was asked."),
            "language": choice("The language of the question.", *LANGUAGES),
            "passed": truth("Whether a card is near enough for an answer."),
            "best_score": or_null(number("Of the nearest card, on the scale of threshold.")),
            "threshold": number("What is near enough."),
            "question_truncated": truth("The end of the question counted by its words alone."),
            "retrieved": list_of(ref("RetrievedCard"), "The cards, best first."),
            "index_version": _VERSION,
            "timings_ms": _MILLISECONDS,
        },
    ),
}

_EVENTS: dict[str, Schema] = {
    "SourcesEvent": record(
        "Data of the event sources.",
        {"request_id": _REQUEST_ID, "retrieved": list_of(ref("RetrievedCard"), "The cards that can be cited.")},
    ),
    "CitationEvent": record(
        "Data of the event citation.", {"segment": ref("CitationSegment"), "citation": ref("Citation")}
    ),
}

_BOX: dict[str, Schema] = {
    "CardList": record(
        "The cards that the caller may see.",
        {
            "cards": list_of(record("A card in a list.", _LISTED), "In order of id."),
            "index_version": _VERSION,
        },
    ),
    "Card": record(
        "A whole card.",
        {**_LISTED, **_SOURCE, "text": text("Its text, in Markdown."), "index_version": _VERSION},
    ),
    "Suggestions": record(
        "Questions to begin with.",
        {
            "suggestions": list_of(
                record(
                    "A question and the card that answers it.",
                    {"question": text("What could be asked."), "language": _LANGUAGE, "card_id": _CARD_ID},
                ),
                "Best first.",
            ),
            "index_version": _VERSION,
        },
    ),
    "Caller": record("Who is asking.", {"groups": list_of(text("A group."), "In order.", minItems=1)}),
    "Alive": record("The process is alive.", {"status": {"const": "alive"}}),
    "Ready": record(
        "The service answers.",
        {
            "status": {"const": "ready"},
            "index_version": _VERSION,
            "reload_failed": or_null(choice("Why the last reload took nothing.", *REASONS.values(), UNEXPECTED)),
        },
    ),
}


def problem_schema(status: int | None = None) -> Schema:
    """A problem document; that of one status names the types it may have."""
    if status is None:
        title, detail = text("What the type means."), text("What the caller can do about it; never their own words.")
        kind, code = text("Stable.", pattern=f"^{problem_type('')}"), whole("The status of the reply.")
        return record(
            "What RFC 9457 says of a problem.", {"type": kind, "title": title, "status": code, "detail": detail}
        )
    kinds = [problem_type(slug) for slug in slugs_of(status)]
    return {"allOf": [ref("Problem"), {"properties": {"type": {"enum": kinds}, "status": {"const": status}}}]}


REPLIES: dict[str, Schema] = {**_ANSWERS, **_EVENTS, **_BOX, "Problem": problem_schema()}
"""By the name under which ``components`` holds it."""
