"""The server's pages: a student's own hand-ins and feedback; the class, for its instructors.

They hold what students wrote as text alone. One script, known by its digest, shows what is new; without it the pages
are as whole. What changes anything is a form of a page that this very session was given.
"""

import base64
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.to_thread import run_sync
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from nbgrader.apps.baseapp import NbGrader
from sqlalchemy import Engine
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

import autograder.course
from autograder.course.curriculum import CLASS, Chapter, Course
from autograder.course.prose import with_code
from autograder.plain import plain, shown
from autograder.service import overview, telling
from autograder.service import store as state
from autograder.service.people import SECONDS, Identify, Person, Sessions
from autograder.service.receive import Refused
from autograder.service.settings import Rules
from autograder.verdict import in_words

_HERE = Path(__file__).parent
_COURSE = Path(autograder.course.__file__).parent
_SCRIPT = (_HERE / "live.js").read_text(encoding="utf-8")
_DIGEST = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_DIGEST}'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    # Without it browsers would not say where a form is from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# Of a whole page that was written elsewhere, and holds neither script nor form.
_WRITTEN = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'; sandbox"
    ),
}
_MOST_SHOWN = 100  # of a student's hand-ins
_MOST_STUCK = 8
_LONGEST_FORM = 10_000
_SECONDS_FOR_A_FORM = 20
_MINUTES_TO_SIGN_IN = 10
_SECONDS_FRESH = 2  # so old may be what instructors see
_SECONDS_TO_GIVE_BACK = 900


@dataclass(frozen=True)
class Class:
    """What the server serves.

    Attributes:
        course: its chapters.
        nbgrader: configured for the class.
        rules: of each chapter.
        received: the folder of packs.
        store: the database.
        identify: says whose a token is.
        hub: the JupyterHub that it is a service of, if it is.
        prefix: what all its addresses begin with; it begins and ends with a slash.
        secure: whether browsers reach it by https, though it does not look so from here.
    """

    course: Course
    nbgrader: NbGrader
    rules: Mapping[Chapter, Rules]
    received: Path
    store: Engine
    identify: Identify
    hub: Any = None
    prefix: str = "/"
    secure: bool = False
    sessions: Sessions = field(default_factory=lambda: Sessions(SECONDS))
    asked: Sessions = field(default_factory=lambda: Sessions(60 * _MINUTES_TO_SIGN_IN))

    def rules_of(self, folder: str) -> Rules | None:
        """The rules of a chapter; None if the course does not have it now."""
        return next((rules for chapter, rules in self.rules.items() if chapter.folder == folder), None)

    def chapter(self, folder: str) -> Chapter:
        """A chapter by its folder.

        Raises:
            Refused: the course has none.
        """
        for chapter in self.rules:
            if chapter.folder == folder:
                return chapter
        raise Refused(f"this course has no chapter {folder[:80]!r}", 404)


def routes(served: Class) -> list[Route]:
    """The pages' addresses."""
    alone = anyio.Lock()
    seen: list[tuple[float, overview.Overview]] = []

    async def look_over() -> overview.Overview:
        async with alone:  # a whole team that looks at once costs one look
            if not seen or time.monotonic() - seen[0][0] > _SECONDS_FRESH:
                looked = await run_sync(overview.look_over, served.course, served.nbgrader, served.store)
                seen[:] = [(time.monotonic(), looked)]
            return seen[0][1]

    async def home(request: Request) -> Response:
        person = await _person(request, served)
        if person.teaches:
            told: dict[str, Any] = {
                "seen": await look_over(),
                "hours": overview.HOURS,
                "most": _MOST_STUCK,
                "titles": {chapter.folder: f"{chapter.number} {chapter.title}" for chapter in served.rules},
                "script": Markup(_SCRIPT),
            }
            return _page(request, served, person, "class.html", rules=served.rules, **told)
        return await run_sync(_student_page, request, served, person)

    async def sign_in(request: Request) -> Response:
        if served.hub:
            raise Refused("on a Hub it is the Hub that signs in", 404)
        if request.method == "GET":
            return _page(request, served, None, "sign_in.html")
        _require_own(request)
        token = (await _form(request)).get("token", "").strip()
        try:
            await served.identify(token)
        except Refused as error:
            return _page(request, served, None, "sign_in.html", status=error.status, wrong=f"{error.line}.")
        return _signed_in(request, served, token)

    async def sign_out(request: Request) -> Response:
        cookie = await _own_cookie(request, served)
        served.sessions.end(cookie)
        links = [(served.prefix, "Sign in again")]
        if served.hub:
            links.append((f"{served.hub.auth.hub_host}{served.hub.auth.hub_prefix}logout", "Sign out of the Hub too"))
        answer = _page(request, served, None, "told.html", title="Signed out", line="", links=links)
        _set_cookie(answer, request, served, _cookie_name(request, served), "", 0)
        return answer

    async def back_from_hub(request: Request) -> Response:
        from autograder.service.hub import token_of

        asked = request.cookies.get(_asked_name(request, served), "")
        verifier = served.asked.secret(asked)
        if not served.hub or verifier is None or request.query_params.get("state") != asked:
            raise Refused("this sign-in was begun elsewhere, or too long ago: go back and begin again", 403)
        served.asked.end(asked)
        if "code" not in request.query_params:
            raise Refused("the Hub does not let you into this class: ask your instructor", 403)
        token = await token_of(served.hub, request.query_params["code"], verifier)
        await served.identify(token)
        answer = _signed_in(request, served, token)
        _set_cookie(answer, request, served, _asked_name(request, served), "", 0)
        return answer

    async def feedback(request: Request) -> Response:
        person = await _person(request, served)
        chapter = served.chapter(request.path_params["chapter"])
        file = None if person.teaches else overview.feedback_file(served.nbgrader, person.name, chapter)
        if file is None:
            raise Refused(f"no feedback on {chapter.folder} was given back to you", 404)
        return Response(await run_sync(file.read_bytes), media_type="text/html; charset=utf-8", headers=_WRITTEN)

    async def chapter_page(request: Request) -> Response:
        person = await _person(request, served, teaches=True)
        return await run_sync(_chapter_page, request, served, person)

    async def chapter_insights(request: Request) -> Response:
        await _person(request, served, teaches=True)
        chapter = served.chapter(request.path_params["chapter"])
        page = await run_sync(overview.insights_page, served.course, served.nbgrader, chapter)
        if page is None:
            raise Refused(f"nothing of {chapter.folder} is graded yet", 404)
        return Response(page.encode(errors="replace"), media_type="text/html; charset=utf-8", headers=_WRITTEN)

    giving = anyio.Lock()

    async def give_back(request: Request) -> Response:
        await _own_cookie(request, served)
        await _person(request, served, teaches=True)
        chapter = served.chapter(request.path_params["chapter"])
        async with giving:
            told = await run_sync(_give_back, served.course, chapter)
        if told:
            raise Refused(f"feedback could not be given back: {told}", 500)
        return RedirectResponse(f"{served.prefix}chapters/{chapter.folder}#feedback", 303)

    def page(call: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def asked(request: Request) -> Response:
            request.state.served = served  # what a refusal's page is drawn with
            try:
                return await call(request)
            except _NobodyYet:
                return _ask_who(request, served)

        return asked

    return [
        Route("/", page(home)),
        Route("/sign-in", page(sign_in), methods=["GET", "POST"]),
        Route("/sign-out", page(sign_out), methods=["POST"]),
        Route("/oauth_callback", page(back_from_hub)),
        Route("/feedback/{chapter}", page(feedback)),
        Route("/chapters/{chapter}", page(chapter_page)),
        Route("/chapters/{chapter}/insights", page(chapter_insights)),
        Route("/chapters/{chapter}/feedback", page(give_back), methods=["POST"]),
    ]


def refusal(request: Request, line: str, status: int, headers: Mapping[str, str] | None) -> Response:
    """A page that says in a line what is wrong."""
    served = getattr(request.state, "served", None)
    links = [(served.prefix, "Go on")] if served else []
    title = {403: "Not for you", 404: "Not here"}.get(status, "That did not work")
    page = _render("told.html", title=title, line=line, links=links)
    return HTMLResponse(page, status, {**_HEADERS, **(headers or {})})


class _NobodyYet(Exception):
    """The browser has not said yet who it is."""


async def _person(request: Request, served: Class, teaches: bool = False) -> Person:
    """Who looks at a page.

    Raises:
        _NobodyYet: it is to be asked.
        Refused: it is no instructor, and should be.
    """
    token = served.sessions.secret(request.cookies.get(_cookie_name(request, served), ""))
    if token is None:
        raise _NobodyYet
    try:
        person = await served.identify(token)
    except Refused as error:
        if error.status == 401:  # expired, or taken back
            raise _NobodyYet from None
        raise
    if teaches and not person.teaches:
        raise Refused("this page is for instructors", 403)
    return person


def _ask_who(request: Request, served: Class) -> Response:
    if request.headers.get("sec-fetch-mode", "navigate") != "navigate":
        raise Refused("sign in first", 401)
    if not served.hub:
        return RedirectResponse(f"{served.prefix}sign-in", 303)
    from autograder.service import hub

    verifier, challenge = hub.challenge(served.hub)
    asked = served.asked.begin(verifier)
    answer = RedirectResponse(hub.sign_in_address(served.hub, asked, challenge), 303)
    _set_cookie(answer, request, served, _asked_name(request, served), asked, 60 * _MINUTES_TO_SIGN_IN)
    return answer


def _signed_in(request: Request, served: Class, token: str) -> Response:
    answer = RedirectResponse(served.prefix, 303)
    _set_cookie(answer, request, served, _cookie_name(request, served), served.sessions.begin(token), SECONDS)
    return answer


def _is_https(request: Request, served: Class) -> bool:
    return served.secure or request.url.scheme == "https"


def _kept_to(request: Request, served: Class) -> str:
    """How a cookie's name begins that a browser keeps to https, and where it can to this host: no neighbour sets it."""
    if not _is_https(request, served):
        return ""
    return "__Host-" if served.prefix == "/" else "__Secure-"


def _cookie_name(request: Request, served: Class) -> str:
    return f"{_kept_to(request, served)}autograder-session"


def _asked_name(request: Request, served: Class) -> str:
    return f"{_kept_to(request, served)}autograder-asked"


def _set_cookie(answer: Response, request: Request, served: Class, name: str, value: str, seconds: int) -> None:
    options: Any = {"path": served.prefix, "httponly": True, "secure": _is_https(request, served)}
    answer.set_cookie(name, value, max_age=seconds, samesite="lax", **options)


def _require_own(request: Request) -> None:
    """See to it that a form comes from a page of this server.

    Raises:
        Refused: it does not, or the browser does not say so.
    """
    site = request.headers.get("sec-fetch-site")
    origin = urlsplit(request.headers.get("origin", "")).netloc
    if site != "same-origin" and (site is not None or not origin or origin != request.headers.get("host")):
        raise Refused("this form is of another page: go back, load the page again, and try once more", 403)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form.

    Raises:
        Refused: it is too long, or none, or does not come to its end.
    """
    content = b""
    try:
        with anyio.fail_after(_SECONDS_FOR_A_FORM):
            async for chunk in request.stream():
                content += chunk
                if len(content) > _LONGEST_FORM:
                    raise Refused("this form is too long", 413)
    except TimeoutError:
        raise Refused("this form did not come to its end: try again", 408) from None
    except ClientDisconnect:
        raise Refused("the connection was lost", 400) from None
    try:
        fields = parse_qs(content.decode(), max_num_fields=20)
    except ValueError:
        raise Refused("this is no form of these pages", 422) from None
    return {name: values[0] for name, values in fields.items()}


async def _own_cookie(request: Request, served: Class) -> str:
    """The session whose form this is.

    Raises:
        Refused: the form is of no page that this session was given.
    """
    _require_own(request)
    cookie = request.cookies.get(_cookie_name(request, served), "")
    if not served.sessions.is_proof(cookie, (await _form(request)).get("proof", "")):
        raise Refused("this form is of an earlier session: go back, load the page again, and try once more", 403)
    return cookie


def _student_page(request: Request, served: Class, person: Person) -> Response:
    ones = state.of_student(served.store, person.name, _MOST_SHOWN)
    chapters = []
    for chapter in served.rules:
        mine = [(o, telling.verdict(o, served.rules[chapter])) for o in ones if o.chapter == chapter.folder]
        file = overview.feedback_file(served.nbgrader, person.name, chapter)
        given = datetime.fromtimestamp(file.stat().st_mtime, UTC).replace(tzinfo=None) if file else None
        if mine or file:
            chapters.append((chapter, mine, bool(file), given))
    chapters.sort(key=lambda row: -max((one.number for one, _ in row[1]), default=0))
    due = overview.due_for(served.nbgrader, person.name)
    waiting = any(one.graded_at is None for one in ones)
    told: dict[str, Any] = {"chapters": chapters, "due": due, "waiting": waiting, "rules": served.rules}
    told["on_hub"] = bool(served.hub)
    return _page(request, served, person, "student.html", script=Markup(_SCRIPT), **told)


def _chapter_page(request: Request, served: Class, person: Person) -> Response:
    chapter = served.chapter(request.path_params["chapter"])
    rows = overview.of_chapter(served.nbgrader, served.store, chapter)
    given, newest = overview.feedback_given(served.nbgrader, chapter)
    told: dict[str, Any] = {"chapter": chapter, "rows": rows, "given": given, "newest": newest}
    told["most"] = sum(exercise.points for exercise in chapter.exercises if exercise.kind == "code")
    return _page(request, served, person, "chapter.html", script=Markup(_SCRIPT), **told)


def _give_back(course: Course, chapter: Chapter) -> str:
    """Write a chapter's feedback pages, in a process of its own; what went wrong, if anything did."""
    command = [sys.executable, "-c", "from autograder.cli import main; main()", "feedback", chapter.folder]
    environment = os.environ | {CLASS: course.class_name}
    try:
        done = subprocess.run(
            command, cwd=course.root, env=environment, capture_output=True, text=True, timeout=_SECONDS_TO_GIVE_BACK
        )
    except subprocess.TimeoutExpired:
        return "it took too long"
    said = (done.stderr.strip().splitlines() or ["nobody said why"])[-1]
    return plain(said.removeprefix("autograder: "))[:300] if done.returncode else ""


def _page(
    request: Request, served: Class, person: Person | None, template: str, *, status: int = 200, **told: Any
) -> HTMLResponse:
    cookie = request.cookies.get(_cookie_name(request, served), "")
    about = {"course": served.nbgrader.coursedir.course_id, "class_name": served.course.class_name}
    about |= {"person": person, "prefix": served.prefix, "proof": served.sessions.proof(cookie) if person else ""}
    return HTMLResponse(_render(template, now=state.now(), **about, **told), status, _HEADERS)


def _at(when: datetime) -> Markup:
    """A time in UTC by this machine's clock."""
    here = when.replace(tzinfo=UTC).astimezone()
    return Markup('<time datetime="{}"><span>{}</span> <span>{}</span></time>').format(
        here.isoformat(), f"{here:%Y-%m-%d,}", f"{here:%H:%M:%S} {here.tzname()}"
    )


def _number(points: float) -> str:
    return f"{round(points, 2):g}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _text(value: object) -> object:
    """Text with what would steer a reader's eye written out; line ends stay."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_text
)
_TEMPLATES.filters |= {
    "at": _at,
    "number": _number,
    "duration": _duration,
    "with_code": with_code,
    "in_words": in_words,
}
_STYLE = Markup((_COURSE / "page.css").read_text(encoding="utf-8"))


def _render(template: str, **told: Any) -> str:
    page = _TEMPLATES.get_template(template).render(style=_STYLE, **told)
    return page.encode(errors="replace").decode()
