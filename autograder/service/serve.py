"""`autograder serve`: the server and, beside it, the process that grades."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from autograder.course import gradebook
from autograder.course.batch import require_sandbox
from autograder.course.curriculum import Course, CourseError
from autograder.course.grade import Means
from autograder.service import receive
from autograder.service import store as state
from autograder.service.people import by_token
from autograder.service.settings import instructors_group, read_rules

_PATIENCE = 15  # seconds for what is being graded to be put down


def run(
    course: Course,
    *,
    host: str,
    port: int,
    certificate: Path | None,
    key: Path | None,
    means: Means,
    on_hub: bool = False,
) -> int:
    """Serve a class until Ctrl-C.

    Args:
        course: the course, with its solutions, and which class of it.
        host: the address to listen at.
        port: 0 for any that is free.
        certificate: for https, with those of who signed it.
        key: of the certificate.
        means: what is graded with.
        on_hub: as a service of a JupyterHub, which says where to listen and who is who.

    Returns:
        The exit status, 0.

    Raises:
        CourseError: another server serves this class, there is no sandbox, a package is missing, a setting is wrong.
    """
    try:
        import uvicorn

        from autograder.service.app import Class, make_app
        from autograder.service.connections import Connection, allow_many

        if on_hub:
            from autograder.service import hub as jupyterhub
    except ModuleNotFoundError as error:
        extra = "service,hub" if on_hub else "service"
        raise CourseError(f'the server needs more packages ({error.name}): pip install "autograder[{extra}]"') from None
    if means.scheduler is None and not means.unsafe:
        require_sandbox()
    if (certificate is None) != (key is None):
        raise CourseError("https needs both --certificate and --key")
    for file in filter(None, (certificate, key)):
        if not file.is_file():
            raise CourseError(f"there is no file {file}")
    nbgrader = gradebook.configure(course)
    rules = read_rules(course, nbgrader)
    hub = jupyterhub.from_environment(instructors_group(nbgrader)) if on_hub else None
    if hub:
        host, port = hub.host, hub.port
    received = state.home(nbgrader) / "received"
    with _only_server(received):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service manager's way to say Ctrl-C
        receive.tidy(received)
        try:
            store = state.open_store(nbgrader)
            waiting, known = len(state.waiting(store, 10_000)), len(state.with_token(store))
        except SQLAlchemyError as error:
            cause = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise CourseError(f"the server's database cannot be opened: {cause}") from error
        who: dict[str, Any] = {"identify": by_token(store)}
        if hub:
            who = {"identify": jupyterhub.by_hub(hub), "hub": hub, "prefix": hub.prefix, "secure": hub.secure}
        app: Any = make_app(Class(course, nbgrader, rules, received, store, **who))
        options: dict[str, Any] = {"log_level": "warning", "server_header": False, "access_log": False}
        options |= {"timeout_graceful_shutdown": 5, "ssl_certfile": certificate, "ssl_keyfile": key}
        options |= {"http": Connection, "ws": "none"}
        allow_many()
        server = uvicorn.Server(uvicorn.Config(app, host=host, port=port, **options))
        try:
            with _listening(server.config) as sock, _grader(course, means):
                where = f"{'https' if certificate else 'http'}://{host}:{sock.getsockname()[1]}"
                who_is = f"{known} students have tokens"
                if hub:
                    where, who_is = f"{where}{hub.prefix}", f"the Hub says who is who, and {hub.group} are instructors"
                print(f"Listening at {where}; {who_is}, {waiting} hand-ins wait; Ctrl-C ends it", flush=True)
                server.run(sockets=[sock])
        except KeyboardInterrupt:
            pass
    return 0


@contextmanager
def _listening(config: Any) -> Iterator[Any]:
    """The socket that the server listens at.

    Raises:
        CourseError: the address is not this machine's, or another program has it.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)  # whoever reads the address may ask at once
    except OSError as error:
        raise CourseError(f"cannot listen at {config.host}, port {config.port}: {error.strerror}") from error
    with sock:
        yield sock


@contextmanager
def _only_server(received: Path) -> Iterator[None]:
    received.mkdir(parents=True, exist_ok=True)
    with (received / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError(f"another `autograder serve` serves {received.parent}: stop that one first") from None
        yield


@contextmanager
def _grader(course: Course, means: Means) -> Iterator[None]:
    """The process that grades, begun again whenever it ends before the server does."""
    told = {"class": course.class_name, "server": os.getpid(), "workers": means.workers}
    told |= {"scheduler": means.scheduler, "unsafe": means.unsafe}
    command = [sys.executable, "-m", "autograder.service.grading", str(course.root), json.dumps(told)]
    done = threading.Event()
    running: list[subprocess.Popen] = []

    def begin() -> None:
        # In a session of its own: Ctrl-C is for the server, which then stops this in good order.
        running[:] = [subprocess.Popen(command, cwd=course.root, start_new_session=True)]

    def look_after() -> None:
        while not done.wait(1):
            if (status := running[0].poll()) is not None:
                print(
                    f"autograder: the grading process ended ({status}) and is begun again", file=sys.stderr, flush=True
                )
                begin()

    begin()
    watch = threading.Thread(target=look_after, daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()
        running[0].terminate()
        try:
            running[0].wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            running[0].kill()
