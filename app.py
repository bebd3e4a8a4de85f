"""The service: routes and composition. Start it with ``python app.py``; settings are environment variables."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rag.answering import Event, retrieved_cards
from rag.errors import RagError
from rag.records import Answer, Card
from rag.serving.admission import OVERLOADED
from rag.serving.assets import REVALIDATED, Asset, make_asset, read_assets
from rag.serving.callers import caller_of
from rag.serving.cards_view import card_as_markdown, card_as_object, card_link
from rag.serving.chat import chat_problem_block, chunk_blocks, completion, model_list, read_chat, with_chat_errors
from rag.serving.connections import BoundedConnection, most_connections
from rag.serving.description import describe
from rag.serving.engine import Engine
from rag.serving.envelope import Envelope, raw_reply
from rag.serving.identity import PUBLIC_KEYS, groups_of
from rag.serving.loading import Loading
from rag.serving.logs import configure_logging
from rag.serving.metering import CONTENT_TYPE, Meter
from rag.serving.problems import Problem, handle_fault, handle_http_exception, handle_problem
from rag.serving.questions import Question, read_language, read_question, read_search
from rag.serving.rate import RateLimit
from rag.serving.stopping import STOPPED, StoppableServer, Stopping
from rag.serving.streaming import (
    EventStream,
    Left,
    Stopped,
    event_blocks,
    last_answer,
    problem_block,
    unless_left,
)
from rag.serving.suggestions import Suggester
from rag.serving.writing import writer_of
from rag.settings import Settings, parse_settings, shown

STATIC_DIR = Path(__file__).resolve().parent / "static"
EXIT_UNUSABLE = 3
"""Exit status when settings, model or index cannot be used."""
SHUTDOWN_SECONDS = 5


def create_app(
    settings: Settings, engine: Engine, *, lifespan: Any = None, stopping: Stopping | None = None
) -> ASGIApp:
    """
    The ASGI application; ``engine`` is loaded by whoever runs it, in the lifespan or before, and ``stopping`` begun by
    whoever ends it.
    """
    assets = read_assets(STATIC_DIR)
    app = Starlette(
        routes=[
            Route("/", assets.page),
            Route("/ask", ask, methods=["GET", "POST"]),
            Route("/search", search, methods=["POST"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/models", models),
            Route("/cards", list_cards),
            Route("/cards/{card_id}.md", show_markdown),
            Route("/cards/{card_id}", show_card),
            Route("/suggestions", suggestions),
            Route("/whoami", whoami),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/openapi.json", openapi),
            Route("/static/{name}", assets.file),
            Route("/static/{version}/{name}", assets.file),
        ],
        lifespan=lifespan,
        exception_handlers={Problem: handle_problem, HTTPException: handle_http_exception, Exception: handle_fault},
    )
    app.state.settings = settings
    app.state.engine = engine
    meter = app.state.meter = Meter(engine)
    app.state.rate = RateLimit(settings.rate_per_minute)
    app.state.stopping = stopping or Stopping()
    app.state.suggester = Suggester()
    app.state.description = make_asset("openapi.json", orjson.dumps(describe()))
    # a redirect would repeat what the caller sent
    app.router.redirect_slashes = False
    # outermost, so that faults of ours wear the same headers
    return Envelope(app, meter.note_request)


async def ask(request: Request) -> ASGIApp:
    """GET or POST /ask: a cited answer, or a refusal; in pieces if that is asked for."""
    groups = _groups(request)
    _admit(request)
    question = await read_question(request)
    events = _answer(request, question, groups)
    if question.stream:
        blocks = event_blocks(events, request.scope["request_id"])
        return EventStream(blocks, stopping=request.app.state.stopping, problem_block=problem_block)
    return await _whole(request, events, lambda answer: answer)


@with_chat_errors
async def chat(request: Request) -> ASGIApp:
    """POST /v1/chat/completions: the same answer, for clients of OpenAI's protocol."""
    groups = _groups(request, stand_for_none=PUBLIC_KEYS)
    _admit(request)
    asked = await read_chat(request)
    events, created = _answer(request, asked.question, groups), int(time.time())
    if asked.question.stream:
        request_id = request.scope["request_id"]
        blocks = chunk_blocks(events, request_id, created=created, include_usage=asked.include_usage)
        return EventStream(blocks, stopping=request.app.state.stopping, problem_block=chat_problem_block)
    return await _whole(request, events, lambda answer: completion(answer, created=created))


@with_chat_errors
async def models(request: Request) -> ASGIApp:
    """GET /v1/models: the one name that chat clients can ask for."""
    _groups(request, stand_for_none=PUBLIC_KEYS)
    return _json(model_list())


async def search(request: Request) -> Response:
    """POST /search: retrieval only."""
    groups, engine = _groups(request), _engine(request)
    _admit(request)
    question = await read_search(request)
    found, version = await engine.search(question.text, groups, top_k=question.top_k)
    return _json(
        {
            "request_id": request.scope["request_id"],
            "question": question.text,
            "language": found.language,
            "passed": found.passed,
            "best_score": found.best_score,
            "threshold": found.threshold,
            "question_truncated": found.truncated,
            "retrieved": retrieved_cards(found.passages),
            "index_version": version,
            "timings_ms": {"embed": round(found.embed_ms, 2), "search": round(found.search_ms, 2)},
        }
    )


async def list_cards(request: Request) -> Response:
    """GET /cards: the cards that the caller may see, in order of id."""
    groups, index = _groups(request), _engine(request).loaded.index
    return _json({"cards": [card_link(card) for card in index.rows.cards(groups)], "index_version": index.build_id})


async def show_card(request: Request) -> Response:
    """GET /cards/{id}: a whole card."""
    card, version = _card(request)
    return _json(card_as_object(card) | {"index_version": version})


async def show_markdown(request: Request) -> Response:
    """GET /cards/{id}.md: a whole card as a Markdown file."""
    card, _ = _card(request)
    return Response(card_as_markdown(card), media_type="text/markdown; charset=utf-8")


async def suggestions(request: Request) -> Response:
    """GET /suggestions: questions to begin with, from the cards that the caller may see."""
    groups, language, index = _groups(request), read_language(request), _engine(request).loaded.index
    suggester: Suggester = request.app.state.suggester
    found = await suggester.suggest(index, groups, language)
    return _json({"suggestions": found, "index_version": index.build_id})


async def whoami(request: Request) -> Response:
    """GET /whoami: the groups of the caller."""
    return _json({"groups": sorted(_groups(request))})


async def healthz(request: Request) -> Response:
    """GET /healthz: the process is alive."""
    return _json({"status": "alive"})


async def readyz(request: Request) -> Response:
    """GET /readyz: which verified and warm index answers, and why the last reload took none; or 503 with the cause."""
    engine = _engine(request)
    version = engine.loaded.index.build_id
    return _json({"status": "ready", "index_version": version, "reload_failed": engine.reload_failed})


async def metrics(request: Request) -> Response:
    """GET /metrics: what happened so far, and how things are, for Prometheus."""
    return Response(_meter(request).exposition(), headers={"Content-Type": CONTENT_TYPE})


async def openapi(request: Request) -> Response:
    """GET /openapi.json: this interface, described."""
    description: Asset = request.app.state.description
    return description.reply(request, REVALIDATED)


def _groups(request: Request, *, stand_for_none: Collection[str] = ()) -> frozenset[str]:
    settings: Settings = request.app.state.settings
    return groups_of(request, settings.tokens, stand_for_none=stand_for_none)


def _admit(request: Request) -> None:
    """Turn a question away before it is read, where its caller asks too often or too many are waiting."""
    settings: Settings = request.app.state.settings
    rate: RateLimit = request.app.state.rate
    rate.take(caller_of(request, settings.trusted_proxies))
    _engine(request).line.check()


def _engine(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


def _meter(request: Request) -> Meter:
    meter: Meter = request.app.state.meter
    return meter


def _answer(request: Request, question: Question, groups: Collection[str]) -> AsyncGenerator[Event, None]:
    """The events of an answer, counted. What is not ready yet says so before a stream begins."""
    engine, meter = _engine(request), _meter(request)
    engine.loaded  # noqa: B018
    return meter.count(
        engine.answer(
            question.text,
            groups,
            top_k=question.top_k,
            request_id=request.scope["request_id"],
            history=question.history,
            whole=not question.stream,
        ),
        request.scope["notes"],
    )


async def _whole(request: Request, events: AsyncGenerator[Event, None], shape: Callable[[Answer], object]) -> Response:
    """The answer that events end in, as JSON; nothing for a caller who left."""
    answering = last_answer(events)
    try:
        if _engine(request).writes:
            answer = await unless_left(answering, request.receive, request.app.state.stopping)
        else:
            answer = await answering
    except Left:
        return Response(status_code=499)
    except Stopped:
        raise STOPPED from None
    return _json(shape(answer))


def _card(request: Request) -> tuple[Card, str]:
    """A card that is there and may be seen; anything else is equally absent."""
    groups, index = _groups(request), _engine(request).loaded.index
    card = index.rows.card(request.path_params["card_id"], groups)
    if card is None:
        raise Problem(404, "not-found", "There is no such card, or you may not see it.")
    return card, index.build_id


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; 3 when settings, model or index cannot be used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print-config", action="store_true", help="print all settings, secrets masked, and end")
    options = parser.parse_args(arguments)
    try:
        settings = parse_settings(os.environ)
        if options.print_config:
            print(shown(settings))
            return 0
        writer = writer_of(settings)
    except RagError as error:
        print(error, file=sys.stderr)
        return EXIT_UNUSABLE
    configure_logging(settings.log_level, settings.log_format)
    # a build that comes into use before loading begins is the one that is loaded
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    engine = Engine(settings, writer=writer)

    def stop() -> None:
        server.should_exit = True

    stopping, refusal = Stopping(), raw_reply(OVERLOADED)

    def refuse_if_full() -> bytes | None:
        if not engine.line.is_full:
            return None
        engine.line.turn_away()
        return refusal()

    class Connection(BoundedConnection):
        most = most_connections()
        overloaded = staticmethod(refuse_if_full)

    config = uvicorn.Config(
        create_app(settings, engine, lifespan=Loading(engine, stop=stop).lifespan, stopping=stopping),
        host=settings.host,
        port=settings.port,
        # bounded in number and in time; uvicorn's other one, httptools, lets headers of any size through
        http=Connection,
        # of proxies only those are believed that the settings name
        proxy_headers=False,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = StoppableServer(config, stopping)
    server.run()
    return EXIT_UNUSABLE if engine.failure or not server.started else 0


if __name__ == "__main__":
    sys.exit(main())
