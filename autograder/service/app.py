"""What the server answers: an ASGI application.

Who somebody is, is said by their token alone. Whatever is refused is told in one line, as `{"error": …}`.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autograder.cells import exercise_of
from autograder.course.curriculum import Chapter, Course
from autograder.service import receive
from autograder.service import store as state
from autograder.service.receive import Refused
from autograder.service.settings import Rules
from autograder.service.store import Received

_MOST_SECONDS = 120  # for a pack to come
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Class:
    """What the server serves: a course's chapters with their rules, the folder of packs, the database."""

    course: Course
    rules: Mapping[Chapter, Rules]
    received: Path
    store: Engine


def make_app(served: Class) -> ASGIApp:
    """The application for one class."""

    async def whoami(request: Request) -> Response:
        return JSONResponse({"student": await _student(request, served)})

    async def hand_in(request: Request) -> Response:
        try:
            return await take(request)
        except Refused as error:
            if error.status != 413:
                await _drain(request)  # whoever is still sending would not read the answer
            raise

    async def take(request: Request) -> Response:
        student = await _student(request, served)
        chapter = _chapter(request, served)
        rules = served.rules[chapter]
        if not rules.open:
            raise Refused(f"{chapter.folder} takes no hand-ins now: ask your instructor; your file stays with you", 403)
        pack = await run_sync(receive.incoming, served.received)
        try:
            await _save(request, pack)
            take_in = partial(receive.take, served.store, served.received, student, chapter, served.course.chapters)
            one, new = await run_sync(take_in, rules, pack)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(partial(pack.unlink, missing_ok=True))
        return JSONResponse(_receipt(one) | {"new": new}, 201 if new else 200)

    async def verdict(request: Request) -> Response:
        student = await _student(request, served)
        one = await run_sync(state.find, served.store, student, request.path_params["id"])
        if one is None:
            raise Refused("there is no hand-in of yours with this receipt", 404)
        told = _receipt(one) | _shown(one, served)
        if one.graded_at is None:
            told["ahead"] = await run_sync(state.ahead_of, served.store, one)
        return JSONResponse(told)

    routes = [
        Route("/api/me", whoami),
        Route("/api/hand-ins/{chapter}", hand_in, methods=["POST"]),
        Route("/api/receipts/{id}", verdict),
    ]
    handlers: Any = {Refused: _refused, HTTPException: _http, OSError: _failed, SQLAlchemyError: _failed}
    handlers[Exception] = _failed  # which is also told with its traceback
    return _with_headers(Starlette(routes=routes, exception_handlers=handlers))


async def _student(request: Request, served: Class) -> str:
    """Who sends a request.

    Raises:
        Refused: nobody that the server knows.
    """
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Refused("the server wants a token: see AUTOGRADER_TOKEN in `autograder hand-in --help`", 401)
    known = await run_sync(state.whose_token, served.store, token.strip())
    if known is None:
        raise Refused("the server does not know this token: copy it again, whole, or ask your instructor for one", 401)
    student, expires = known
    if expires <= state.now():
        raise Refused(f"this token expired on {expires:%Y-%m-%d}: ask your instructor for a new one", 401)
    return student


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


def _receipt(one: Received) -> dict[str, Any]:
    when = one.received_at.replace(tzinfo=UTC).isoformat()
    told = {"id": one.id, "student": one.student, "chapter": one.chapter, "sha256": one.sha256, "received_at": when}
    return told | {"graded": one.graded_at is not None}


def _shown(one: Received, served: Class) -> dict[str, Any]:
    """What of a verdict its student may see now."""
    rules = next((rules for chapter, rules in served.rules.items() if chapter.folder == one.chapter), None)
    if one.graded_at is None or rules is None:
        return {}
    told: dict[str, Any] = {"seconds_late": one.seconds_late, "ungradable": one.verdict.get("ungradable", "")}
    items = one.verdict.get("items", [])
    if rules.show != "nothing":
        told |= {"points": one.points, "max_points": sum(item["max_points"] for item in items), "counts": one.counts}
    if rules.show == "messages":
        kept = ("status", "points", "max_points", "message")
        told["checks"] = [
            {"exercise": exercise_of(i["grade_id"]) or i["grade_id"]} | {k: i[k] for k in kept} for i in items
        ]
    return told


def _refused(request: Request, error: Refused) -> Response:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": error.line}, error.status, headers=headers)


def _http(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": f"the server has nothing here: {error.detail}"}, error.status_code, error.headers)


def _failed(request: Request, error: Exception) -> Response:
    told = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, {request.url.path}: {type(error).__name__}: {error}"
    print(f"autograder: {' '.join(told.split())[:500]}", flush=True)
    return JSONResponse({"error": "something failed at the server: try again later; your file stays with you"}, 503)


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

        await app(scope, receive, with_headers if scope["type"] == "http" else send)

    return wrapped
