"""What the server answers: an ASGI application. Programs speak with it under `/api/`; pages are in `site.py`.

Who somebody is, is said by their token alone. Whatever is refused is told in one line, as `{"error": …}`.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autograder.course.curriculum import Chapter
from autograder.plain import plain
from autograder.service import receive, site, telling
from autograder.service import store as state
from autograder.service.receive import Refused
from autograder.service.site import Class
from autograder.service.turns import Turns

__all__ = ["Class", "make_app"]

_MOST_SECONDS = 120  # for a pack to come
_MOST_TAKEN = 8  # packs at once: the others wait where they hold up no page
_IN_VAIN = (413, 422, 429)  # a connection that was lost is nobody's fault
_RECEIPT = re.compile("[0-9a-f]{16}")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def make_app(served: Class) -> ASGIApp:
    """The application for one class."""
    few = anyio.CapacityLimiter(_MOST_TAKEN)
    turns = Turns()

    async def whoami(request: Request) -> Response:
        return JSONResponse({"student": await _student(request, served)})

    async def hand_in(request: Request) -> Response:
        try:
            return await take(request)
        except Refused as error:
            if error.status not in (408, 413):
                await _drain(request)  # whoever is still sending would not read the answer
            raise

    async def take(request: Request) -> Response:
        student = await _student(request, served)
        chapter = _chapter(request, served)
        rules = served.rules[chapter]
        if not rules.open:
            raise Refused(f"{chapter.folder} takes no hand-ins now: ask your instructor; your file stays with you", 403)
        async with turns.turn(student, _MOST_SECONDS):
            pack = await run_sync(receive.incoming, served.received)
            try:
                await _save(request, pack)
                take_in = partial(receive.take, served.store, served.received, student, chapter, served.course.chapters)
                one, new = await run_sync(take_in, rules, pack, limiter=few)
            except Refused as error:
                if error.status in _IN_VAIN:
                    turns.note_in_vain(student)
                raise
            finally:
                with anyio.CancelScope(shield=True):
                    await run_sync(partial(pack.unlink, missing_ok=True))
        if not new:
            turns.note_in_vain(student)
        return JSONResponse(telling.receipt(one) | {"new": new}, 201 if new else 200)

    async def verdict(request: Request) -> Response:
        student = await _student(request, served)
        id = request.path_params["id"]
        # What is no receipt's never reaches the database, which may take offence at it.
        one = await run_sync(state.find, served.store, student, id) if _RECEIPT.fullmatch(id) else None
        if one is None:
            raise Refused("there is no hand-in of yours with this receipt", 404)
        told = telling.receipt(one) | telling.verdict(one, served.rules_of(one.chapter))
        if one.graded_at is None:
            told["ahead"] = await run_sync(state.ahead_of, served.store, one)
        return JSONResponse(told)

    routes: list[BaseRoute] = [
        Route("/api/me", whoami),
        Route("/api/hand-ins/{chapter}", hand_in, methods=["POST"]),
        Route("/api/receipts/{id}", verdict),
        *site.routes(served),
    ]
    if (prefix := served.prefix.rstrip("/")) != "":
        routes = [Mount(prefix, routes=routes)]
    handlers: Any = {Refused: _refused, HTTPException: _http, OSError: _failed, SQLAlchemyError: _failed}
    handlers[Exception] = _failed  # which is also told with its traceback
    return _with_headers(Starlette(routes=routes, exception_handlers=handlers))


async def _student(request: Request, served: Class) -> str:
    """Who sends a request.

    Raises:
        Refused: nobody that the server knows, or no student.
    """
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Refused("the server wants a token: see AUTOGRADER_TOKEN in `autograder hand-in --help`", 401)
    person = await served.identify(token.strip())
    if person.teaches:
        raise Refused("instructors hand nothing in: try it as a student that you enter for that", 403)
    return person.name


def _chapter(request: Request, served: Class) -> Chapter:
    wanted = request.path_params["chapter"]
    for chapter in served.rules:
        if wanted == chapter.folder:
            return chapter
    raise Refused(f"this course has no chapter {wanted[:80]!r}", 404)


async def _save(request: Request, pack: Path) -> None:
    """Write a request's body to a file, as far as it may be that long.

    Raises:
        Refused: it is too long, or does not come to its end.
    """
    most = receive.MOST_BYTES
    too_large = Refused(f"a hand-in has at most {most >> 20} MB: clear the notebook's outputs, save it, try again", 413)
    told = request.headers.get("content-length", "0")
    if not told.isdecimal() or int(told) > most:
        raise too_large
    size = 0
    try:
        with anyio.fail_after(_MOST_SECONDS):
            async with await anyio.open_file(pack, "wb") as file:
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        raise too_large
                    await file.write(chunk)
    except TimeoutError:
        raise Refused("the hand-in did not come to its end: try again", 408) from None
    except ClientDisconnect:
        raise Refused("the connection was lost", 400) from None


async def _drain(request: Request) -> None:
    """Take the rest of a request's body from the line, as far as a hand-in may be long, and let it go."""
    size = 0
    with (
        anyio.move_on_after(_MOST_SECONDS),
        suppress(ClientDisconnect, RuntimeError),
    ):  # the latter: it was taken before
        async for chunk in request.stream():
            size += len(chunk)
            if size > receive.MOST_BYTES:
                return


def _refused(request: Request, error: Refused) -> Response:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    if not _is_api(request):
        return site.refusal(request, error.line, error.status, headers)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": error.line}, error.status, headers=headers)


def _http(request: Request, error: HTTPException) -> Response:
    if not _is_api(request):
        return site.refusal(request, f"There is nothing here: {error.detail}.", error.status_code, error.headers)
    return JSONResponse({"error": f"the server has nothing here: {error.detail}"}, error.status_code, error.headers)


def _failed(request: Request, error: Exception) -> Response:
    told = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, {request.url.path}: {type(error).__name__}: {error}"
    print(f"autograder: {plain(' '.join(told.split()))[:500]}", flush=True)
    line = "something failed at the server: try again later; your file stays with you"
    if not _is_api(request):
        return site.refusal(request, line, 503, {})
    return JSONResponse({"error": line}, 503)


def _is_api(request: Request) -> bool:
    """Whether a program asks, which reads JSON."""
    return "/api/" in request.url.path


def _with_headers(app: ASGIApp) -> ASGIApp:
    """The headers that every answer has."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope.get("scheme") == "https":
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        if scope["type"] != "http":
            return await app(scope, receive, send)
        # Two words on where the body ends: a proxy in front may believe the other one.
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            error = {"error": "the request says in two ways how long it is"}
            return await JSONResponse(error, 400, {"Connection": "close"})(scope, receive, with_headers)
        return await app(scope, receive, with_headers)

    return wrapped
