"""What each caller can learn: its own cards and the public ones, and nothing at all of any other card."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from starlette.types import ASGIApp

from app import create_app
from benchmarks.boxes import rows_of
from rag.cached_embedding import RememberingEmbedder
from rag.embedding import Embedder
from rag.manifest import read_manifest
from rag.opening import OpenIndex, assemble
from rag.records import Row
from rag.reference import COSINE_WEIGHT, PRIOR_ROWS, Reference
from rag.row_index import RowIndex
from rag.serving.engine import Engine, Loaded
from rag.settings import Settings
from tests.boxes import (
    CALLERS,
    CHAT,
    CHAT_MODELS,
    KNOWN,
    NEVER_THERE,
    NO_TOKEN,
    SHAPED,
    WRONG,
    Box,
    Call,
    Reply,
    Secret,
    ask,
    calls_about_cards,
    calls_about_questions,
    less_varying,
    secret_box,
    token_hashes,
)
from tests.fakes import hashed_vectors, make_card, make_row

Vectors = NDArray[np.float32]
Replies = Mapping[str, Mapping[Call, Reply]]

CHECKS_LEAST = 10_000
LISTS = [Call("GET", "/cards"), Call("HEAD", "/cards")]
MODELS = [Call("GET", CHAT_MODELS), Call("HEAD", CHAT_MODELS)]
SUGGESTIONS = [
    Call(method, path)
    for path in ("/suggestions", "/suggestions?language=es", "/suggestions?language=en")
    for method in ("GET", "HEAD")
]
WHO = [Call("GET", "/whoami"), Call("HEAD", "/whoami")]
FAULTS = [
    Call("POST", "/ask", b"{"),
    Call("POST", "/ask", b"{}"),
    Call("POST", "/ask", b"[]", "text/plain"),
    Call("POST", "/search", b'{"question": " "}'),
    Call("POST", "/search", b'{"question": "agua", "top_k": 99}'),
    Call("GET", "/ask"),
    Call("GET", "/ask?q=%ff"),
    Call("GET", "/cards/A.B"),
    Call("GET", "/suggestions?language=fr"),
    Call("GET", "/suggestions?language=es&language=es"),
    Call("GET", "/suggestions?a=b"),
    Call("POST", CHAT, b"{"),
    Call("POST", CHAT, b'{"messages": [{"role": "user", "content": "agua"}], "model": "otro"}'),
    Call("POST", CHAT, b'{"messages": [{"role": "user", "content": " "}], "stream": true}'),
]
OPEN = [
    Call("GET", "/"),
    Call("GET", "/healthz"),
    Call("GET", "/readyz"),
    Call("GET", "/static/app.js"),
    Call("GET", "/static/0/app.js"),
    Call("HEAD", "/static/app.js"),
    Call("GET", "/static/none.js"),
    Call("GET", "/none"),
    Call("GET", "/cards/"),
    Call("OPTIONS", "/cards"),
    Call("OPTIONS", "/ask"),
    Call("OPTIONS", "/search"),
    Call("OPTIONS", "/suggestions"),
    Call("OPTIONS", "/whoami"),
    Call("OPTIONS", "/static/app.js"),
    Call("OPTIONS", CHAT),
    Call("OPTIONS", CHAT_MODELS),
    Call("GET", CHAT),
    Call("DELETE", "/cards"),
    Call("GET", "/search"),
    Call("PUT", "/ask"),
]
"""What does not depend on who asks."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The box with its builds opened, and the rows of the whole one to make others of."""

    box: Box
    whole: OpenIndex
    reduced: OpenIndex
    rows: Sequence[Row]
    vectors: Vectors

    def remade(self, keep: Callable[[Row], Row | None]) -> OpenIndex:
        """The whole box with some of its rows changed, or left out where ``keep`` gives None."""
        changed = [keep(row) for row in self.rows]
        kept = [number for number, row in enumerate(changed) if row]
        build_dir = self.box.builds_dir / self.box.whole
        left = [row for row in changed if row]
        return assemble(build_dir, "remade", left, self.vectors[kept], thresholds=self.whole.thresholds)


Apply = Callable[[OpenIndex, str, Collection[Call]], dict[Call, Reply]]
"""Sends requests to the real application over an index, as somebody."""


@pytest.fixture(scope="module")
def opened(run_dir: Path) -> Opened:
    """Opened once."""
    box = secret_box(run_dir / "secrets")

    def assembled(build_dir: Path, rows: Sequence[Row], vectors: Vectors) -> OpenIndex:
        gate = read_manifest(build_dir).gate
        return assemble(build_dir, build_dir.name, rows, vectors, thresholds=gate["thresholds"])

    whole, reduced = box.builds_dir / box.whole, box.builds_dir / box.reduced
    rows, vectors = rows_of(whole)
    return Opened(box, assembled(whole, rows, vectors), assembled(reduced, *rows_of(reduced)), rows, vectors)


@pytest.fixture(scope="module")
def box(opened: Opened) -> Box:
    """What the cards are, as their files say."""
    return opened.box


@pytest.fixture(scope="module")
def apply(embedder: Embedder) -> Apply:
    """One model for all applications."""
    remembering = cast(Embedder, RememberingEmbedder(embedder))
    with_tokens = Settings(tokens=token_hashes(), rate_per_minute=0)

    def send(index: OpenIndex, caller: str, calls: Collection[Call]) -> dict[Call, Reply]:
        application: ASGIApp = create_app(with_tokens, Engine(with_tokens, Loaded(remembering, index)))
        return ask(application, caller, calls)

    return send


@pytest.fixture(scope="module")
def replies(opened: Opened, apply: Apply) -> Replies:
    """What everyone gets on every surface of the whole box."""
    secrets = opened.box.secrets
    ids = [*(secret.card_id for secret in secrets), NEVER_THERE]
    calls = [
        *LISTS,
        *SUGGESTIONS,
        *WHO,
        *MODELS,
        *FAULTS,
        *OPEN,
        *calls_about_questions(secrets),
        *calls_about_cards(ids),
    ]
    return {caller: apply(opened.whole, caller, calls) for caller in CALLERS}


def traces(secrets: Sequence[Secret], told: bytes) -> list[str]:
    """What of these cards stands in what somebody was told."""
    return [word for secret in secrets for word in (secret.card_id, *secret.words) if word.encode() in told]


# leaks


def test_nobody_is_told_of_a_hidden_card(box: Box, replies: Replies) -> None:
    """In all that every caller gets on every surface there is no word of a card that they may not see: 0 leaks."""
    checks = 0
    leaks: list[tuple[str, Call, str]] = []
    for caller, received in replies.items():
        hidden = [secret for secret in box.secrets if not secret.seen_by(caller)]
        # equal replies hold equal words
        leaking = {told: traces(hidden, told) for told in {reply.told for reply in received.values()}}
        checks += len(hidden) * len(received)
        leaks += [(caller, call, word) for call, reply in received.items() for word in leaking[reply.told]]
    assert leaks == []
    assert checks >= CHECKS_LEAST


def test_every_card_is_on_every_surface_for_whom_it_is(box: Box, replies: Replies) -> None:
    """Each caller gets each card on each of its own routes: whole if they may see it, else a plain 404."""
    checks = 0
    for caller in KNOWN:
        received = replies[caller]
        for secret in box.secrets:
            for call in calls_about_cards([secret.card_id]):
                reply = received[call]
                checks += 1
                if call.method == "OPTIONS":
                    assert reply.status == 204
                    continue
                assert reply.status == (200 if secret.seen_by(caller) else 404)
                if secret.seen_by(caller) and call.method == "GET":
                    assert len(traces([secret], reply.told)) == 5
    assert checks == 7 * 156 * 6


@pytest.mark.parametrize("caller", KNOWN)
def test_lists_hold_exactly_what_may_be_seen(box: Box, replies: Replies, caller: str) -> None:
    """/cards lists the visible cards, all of them, and HEAD tells their length and no other."""
    full, head = (replies[caller][call] for call in LISTS)
    listed = [card["card_id"] for card in full.object["cards"]]
    assert listed == [secret.card_id for secret in box.secrets if secret.seen_by(caller)]
    assert dict(head.headers)["content-length"] == str(len(full.body))


@pytest.mark.parametrize("caller", KNOWN)
def test_suggestions_are_of_what_may_be_seen(box: Box, replies: Replies, caller: str) -> None:
    """/suggestions are six visible cards; the first two are not public where the caller may see such, and no others."""
    known = {secret.card_id: secret for secret in box.secrets}
    closed = any(secret.seen_by(caller) and not secret.seen_by(NO_TOKEN) for secret in box.secrets)
    for call in SUGGESTIONS:
        if call.method == "GET":
            cards = [known[found["card_id"]] for found in replies[caller][call].object["suggestions"]]
            assert len(cards) == len(set(cards)) == 6
            assert all(card.seen_by(caller) for card in cards)
            assert [not card.seen_by(NO_TOKEN) for card in cards] == [closed] * 2 + [False] * 4


@pytest.mark.parametrize("caller", KNOWN)
def test_everyone_is_told_their_own_groups(replies: Replies, caller: str) -> None:
    """/whoami names the groups of the token and the public, and no other."""
    assert replies[caller][WHO[0]].object == {"groups": sorted(CALLERS[caller] | {"public"})}


@pytest.mark.parametrize("caller", KNOWN)
def test_questions_find_exactly_what_may_be_seen(box: Box, replies: Replies, caller: str) -> None:
    """A question about a card finds it first for those who may see it, and as many others for those who may not."""
    visible = {secret.card_id for secret in box.secrets if secret.seen_by(caller)}
    aimed = {secret.question: secret for secret in box.secrets}
    for call in calls_about_questions(box.secrets):
        if call.path == "/search":
            found = replies[caller][call].object
            ids = [card["card_id"] for card in found["retrieved"]]
            assert len(set(ids)) == len(ids) == 20
            assert set(ids) <= visible
            target = aimed.get(found["question"])
            if target:
                assert (target.card_id == ids[0]) == target.seen_by(caller)


@pytest.mark.parametrize("caller", KNOWN)
def test_answers_are_made_of_what_may_be_seen(box: Box, replies: Replies, caller: str) -> None:
    """Whatever an answer or a refusal names, by whichever route it was asked for, its caller may open."""
    answered = refused = 0
    for call in calls_about_questions(box.secrets):
        reply = replies[caller][call]
        assert reply.status == 200
        if call.path == "/search" or call.method == "HEAD":
            continue
        answer = reply.answer
        refusal = answer["refusal"] or {"nearest": []}
        named = [*answer["citations"], *answer["retrieved"], *refusal["nearest"]]
        named += [segment for segment in answer["segments"] if segment["type"] == "citation"]
        assert named
        for card in named:
            assert replies[caller][Call("GET", f"/cards/{card['card_id']}")].status == 200
        answered, refused = answered + bool(answer["citations"]), refused + bool(answer["refusal"])
    assert answered
    assert refused


@pytest.mark.parametrize("caller", KNOWN)
def test_forbidden_is_absent_to_the_byte(box: Box, replies: Replies, caller: str) -> None:
    """Each route of each hidden card gives status, headers and bytes of a card that never existed."""
    received = replies[caller]
    for secret in box.secrets:
        if not secret.seen_by(caller):
            for call in calls_about_cards([secret.card_id]):
                absent = replace(call, path=call.path.replace(secret.card_id, NEVER_THERE))
                assert received[call] == received[absent]


@pytest.mark.parametrize("form", ["{}/", "{}?a=b", "{}.json", "{}.md.md", "./{}", "%2e/{}", "{}%00", "{}::00", "upper"])
def test_no_spelling_of_an_id_opens_a_hidden_card(opened: Opened, apply: Apply, form: str) -> None:
    """Other spellings of a hidden card's path give what they give for a card that never existed."""
    hidden = next(secret.card_id for secret in opened.box.secrets if not secret.seen_by(NO_TOKEN))
    paths = [(name.upper() if form == "upper" else form.format(name)) for name in (hidden, NEVER_THERE)]
    calls = [Call("GET", f"/cards/{path}") for path in paths]
    received = apply(opened.whole, NO_TOKEN, calls)
    assert received[calls[0]] == received[calls[1]]
    assert received[calls[0]].status == 404


def test_a_wrong_token_gets_one_reply(replies: Replies) -> None:
    """With an unknown token each route that depends on the caller is 401 with the same bytes, two shapes in all."""
    received = replies[WRONG]
    shut = {call: reply for call, reply in received.items() if call not in OPEN and call.method != "OPTIONS"}
    assert {reply.status for reply in shut.values()} == {401}
    for shaped in (True, False):
        of_kind = {call: reply for call, reply in shut.items() if (call.path in SHAPED) == shaped}
        for method in ("GET", "HEAD", "POST"):
            assert len({reply for call, reply in of_kind.items() if call.method == method}) == 1
        assert len({reply.headers for reply in of_kind.values()}) == 1


def test_the_list_of_models_tells_nothing(replies: Replies) -> None:
    """Chat clients are told of the same model whoever asks, to the byte."""
    for call in MODELS:
        assert len({replies[caller][call] for caller in KNOWN}) == 1


def test_what_is_open_is_the_same_for_all(replies: Replies) -> None:
    """Page, health, readiness, methods and unknown paths are the same bytes for everyone, even with a wrong token."""
    for call in OPEN:
        assert len({received[call] for received in replies.values()}) == 1


def test_faults_are_the_same_for_all(replies: Replies) -> None:
    """A request that cannot be read gets the same bytes whoever sends it."""
    for call in FAULTS:
        assert len({replies[caller][call] for caller in KNOWN}) == 1
        assert 400 <= replies[NO_TOKEN][call].status < 500


# with hidden cards, and without them


def differences(received: Mapping[Call, Reply], others: Mapping[Call, Reply]) -> list[Call]:
    """The requests that two boxes answer differently."""

    def plain(reply: Reply) -> object:
        headers = dict(reply.headers)
        # that of an answer changes with the digits of its times
        headers.pop("content-length", None)
        return headers, less_varying(reply.status, headers, reply.body)

    return [call for call, reply in received.items() if plain(reply) != plain(others[call])]


def test_a_box_built_without_the_hidden_cards_answers_alike(opened: Opened, replies: Replies, apply: Apply) -> None:
    """Had the hidden cards never been written, the public would get the same: ranks, scores, gate, all but the name."""
    assert opened.reduced.build_id != opened.whole.build_id
    assert opened.reduced.thresholds == opened.whole.thresholds
    received = replies[NO_TOKEN]
    assert differences(received, apply(opened.reduced, NO_TOKEN, received)) == []


@pytest.mark.parametrize("caller", KNOWN)
def test_hidden_rows_change_nothing(opened: Opened, replies: Replies, apply: Apply, caller: str) -> None:
    """Every caller gets the same from every route whether the rows that they may not see are loaded or not."""
    visible = {secret.card_id for secret in opened.box.secrets if secret.seen_by(caller)}
    other = opened.remade(lambda row: row if row.card.card_id in visible else None)
    assert differences(replies[caller], apply(other, caller, replies[caller])) == []


def test_the_comparison_sees_a_difference(opened: Opened, replies: Replies, apply: Apply) -> None:
    """Without one of the public cards the public gets other answers, so the comparisons here compare something."""
    missing = next(secret.card_id for secret in opened.box.secrets if secret.seen_by(NO_TOKEN))
    other = opened.remade(lambda row: None if row.card.card_id == missing else row)
    calls = differences(replies[NO_TOKEN], apply(other, NO_TOKEN, replies[NO_TOKEN]))
    suggestions = {call.path for call in SUGGESTIONS} & {call.path for call in calls}
    assert suggestions
    assert {"/cards", "/search", f"/cards/{missing}", f"/cards/{missing}.md"} <= {call.path for call in calls}


@pytest.mark.parametrize("group", ["public", "nurses"])
def test_a_card_without_groups_is_nobodys(opened: Opened, apply: Apply, group: str) -> None:
    """Cards whose acl came back empty are on no surface for anyone, to the byte as if they had not been loaded."""
    bared = [secret for secret in opened.box.secrets if group in secret.groups]
    ids = {secret.card_id for secret in bared}

    def bare(row: Row) -> Row:
        return replace(row, card=replace(row.card, acl=())) if row.card.card_id in ids else row

    with_bare = opened.remade(bare)
    without = opened.remade(lambda row: None if row.card.card_id in ids else row)
    asked = [call for call in calls_about_questions(opened.box.secrets) if call.content.startswith(b"{")]
    calls = [*LISTS, *SUGGESTIONS, *asked, *calls_about_cards(ids)]
    for caller in KNOWN:
        received = apply(with_bare, caller, calls)
        assert traces(bared, b"".join({reply.told for reply in received.values()})) == []
        assert differences(received, apply(without, caller, calls)) == []


# the rows, at random


SOME_GROUPS = ["public", "staff", "nurses", "staf"]
DIRECTIONS = hashed_vectors([f"direction {number}" for number in range(6)], 8)
TOLERANCE = 5e-5


@dataclass(frozen=True, slots=True)
class Drawn:
    """A card at random: its groups, its language, and which direction each of its chunks has."""

    acl: tuple[str, ...]
    language: str
    chunks: tuple[int, ...]


CARDS = st.lists(
    st.builds(
        Drawn,
        st.lists(st.sampled_from(SOME_GROUPS), unique=True, max_size=3).map(lambda acl: tuple(sorted(acl))),
        st.sampled_from(["es", "en"]),
        st.lists(st.integers(0, len(DIRECTIONS) - 1), min_size=1, max_size=9).map(tuple),
    ),
    max_size=12,
)


def brute_force(
    rows: Sequence[Row], vectors: Vectors, reference: Reference, question: Vectors, language: str
) -> Iterator[tuple[Row, float]]:
    """Each row with its score as decision 3 defines it, in double precision, one by one."""
    asked, centre = question.astype(np.float64), reference.as_questions[language].astype(np.float64)
    for row, vector in zip(rows, vectors.astype(np.float64), strict=True):
        prior = reference.as_passages[row.card.language].astype(np.float64)
        public = [
            other
            for other, of in zip(vectors.astype(np.float64), rows, strict=True)
            if of.card.language == row.card.language and "public" in of.card.acl
        ]
        mean = (np.sum(public, axis=0) + PRIOR_ROWS * prior) / (len(public) + PRIOR_ROWS)
        apart, aside = vector - mean, asked - centre
        centred = apart @ aside / np.linalg.norm(apart) / np.linalg.norm(aside)
        yield row, float(centred + COSINE_WEIGHT * (vector @ asked - mean @ centre))


@settings(derandomize=True, max_examples=150, deadline=None, database=None)
@given(
    cards=CARDS,
    groups=st.sets(st.sampled_from([*SOME_GROUPS, "visitors", ""])),
    language=st.sampled_from(["es", "en"]),
    count=st.integers(1, 12),
)
def test_search_is_brute_force_over_the_visible_rows(
    cards: list[Drawn], groups: set[str], language: str, count: int
) -> None:
    """For any access rules and any caller, hits are the best chunks of the best visible cards, as if no others were."""
    es, en, es_passage, en_passage = hashed_vectors(["es", "en", "es passage", "en passage"], 8) * 0.8
    reference = Reference({"es": es, "en": en}, {"es": es_passage, "en": en_passage})
    question = hashed_vectors(["question"], 8)[0]
    rows = [
        make_row(
            make_card(f"c{number:02d}", "x" * 20, acl=card.acl, language=card.language), chunk, start=chunk, end=20
        )
        for number, card in enumerate(cards)
        for chunk in range(len(card.chunks))
    ]
    vectors = DIRECTIONS[[direction for card in cards for direction in card.chunks]].reshape(-1, 8)
    visible = [number for number, row in enumerate(rows) if groups & set(row.card.acl)]
    # hidden rows are not even given to it
    public = {number for number, row in enumerate(rows) if "public" in row.card.acl}
    known = sorted(public | set(visible))
    scores = {
        row.row_id: score
        for row, score in brute_force([rows[number] for number in known], vectors[known], reference, question, language)
    }
    best: dict[str, float] = {}
    for number in visible:
        card_id, score = rows[number].card.card_id, scores[rows[number].row_id]
        best[card_id] = max(score, best.get(card_id, score))
    index = RowIndex(rows, vectors, reference)
    hits = index.search(question, language, groups, count=count)
    found = [hit.card.card_id for hit in hits]
    assert len(set(found)) == len(found) == min(count, len(best))
    assert [hit.score for hit in hits] == pytest.approx(sorted(best.values(), reverse=True)[: len(hits)], abs=TOLERANCE)
    for hit in hits:
        row_id = f"{hit.card.card_id}::{hit.chunk_index:02d}"
        assert scores[row_id] == pytest.approx(hit.score, abs=TOLERANCE)
        assert hit.score == pytest.approx(best[hit.card.card_id], abs=TOLERANCE)
    assert [card.card_id for card in index.cards(groups)] == sorted(best)
