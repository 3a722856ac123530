"""`autograder hand-in --server`: a pack sent to a class's server, its receipt, and the verdict if it comes soon.

Needs nothing but Python's own library. What is sent again is not doubled: the server knows a pack by its SHA-256.
"""

import glob
import hashlib
import http.client
import ipaddress
import json
import os
import random
import socket
import ssl
import time
import zipfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from rich.console import Console

from autograder.course.curriculum import Chapter, Course, CourseError
from autograder.course.files import replace_file
from autograder.course.packing import Packed, known_name, prepare
from autograder.plain import plain
from autograder.verdict import in_words

_TOKEN, _TOKEN_FILE = "AUTOGRADER_TOKEN", "token.txt"
# A notebook server's own on a JupyterHub. It is for that Hub's services alone: for the one that its environment names.
_HUBS_TOKEN, SERVER = "JUPYTERHUB_API_TOKEN", "AUTOGRADER_SERVER"
_MOST_BYTES = 20 * 2**20  # that a server takes
_LONGEST_ANSWER = 4 * 2**20
_TIMEOUT = 60  # seconds, for each answer
_PAUSES = (1, 3, 8)  # seconds between tries
_PATIENCE = (*_PAUSES, 20, 30, 30)  # as long as a server answers that it has trouble: its database may be back soon
_WAIT = 45  # seconds for a verdict
_CLOCK_MAY_BE_OFF = 120  # seconds, before it is said
_RECEIPT = "\nreceipt:  "
_SIGNS = {"passed": "✓", "not attempted": "–"}


class _Away(Exception):
    """The server cannot be reached; it may help to try again."""


class _InTrouble(_Away):
    """The server answers that it has trouble of its own."""


def run(
    course: Course, chapter: Chapter, *, name: str | None, repair: bool, server: str, token_file: Path | None
) -> int:
    """Pack a notebook, send it, and print the server's receipt and verdict.

    Args:
        course: a student's copy, or the repository.
        chapter: what is handed in.
        name: of the student, on the pack; by default the one of last time, or the server's.
        repair: first mend what is wrong with the notebook itself.
        server: its address.
        token_file: holds the token, unless the environment variable AUTOGRADER_TOKEN does.

    Returns:
        The exit status, 0.

    Raises:
        CourseError: nothing was sent, and why; or the server did not take it. The pack stays here.
    """
    address, token = _read_address(server), _read_token(course, server, token_file)
    console = Console(soft_wrap=True)

    def ask_name() -> str:
        try:
            return str(_ask(address, token, "GET", "/api/me")["student"])
        except _Away as error:
            raise CourseError(f"{_where(address)} cannot be reached: {error}; try again later, or add --name") from None

    packed = prepare(course, chapter, known_name(course, chapter, name, ask_name), console, repair=repair)
    packed = _sent_before(packed, chapter) or packed
    content = packed.archive.read_bytes()
    if len(content) > _MOST_BYTES:
        raise CourseError(
            f"{packed.archive} has {len(content) / 2**20:.0f} MB, and the server takes {_MOST_BYTES >> 20}: clear the "
            "notebook's outputs, save it, hand in again"
        )
    try:
        told = _send(address, token, chapter, content, console)
    except _Away as error:
        raise CourseError(
            f"not handed in: {_where(address)} cannot be reached ({error}); the pack is kept in {packed.archive}: run "
            "this again later"
        ) from None
    except CourseError as error:
        raise CourseError(f"not handed in: {error} (the pack is kept in {packed.archive})") from None
    if told.get("sha256") != hashlib.sha256(content).hexdigest():
        raise CourseError(
            f"not handed in: {_where(address)} has received something else than {packed.archive}: try again"
        )
    receipt = _receipt(told, address)
    replace_file(packed.archive.with_suffix(".txt"), f"{packed.receipt}{receipt}".encode())
    console.print(f"{packed.receipt}{receipt}", markup=False, highlight=False, end="")
    console.print(_verdict(address, token, str(told["id"])), markup=False, highlight=False, end="")
    return 0


def _read_address(server: str) -> SplitResult:
    """A server's address.

    Raises:
        CourseError: it is none, or would show the token to the network.
    """
    address = urlsplit(server if "//" in server else f"https://{server}")
    try:
        port_is_fine = address.port != 0
    except ValueError:
        port_is_fine = False
    if address.scheme not in ("http", "https") or not address.hostname or not port_is_fine:
        raise CourseError(f"{plain(server)[:200]!r} is no server's address: write it as https://HOST")
    if address.scheme == "http" and not _is_here(address.hostname):
        raise CourseError(
            f"{_where(address)} would show your token to the network: the address should begin with https://"
        )
    return address


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _where(address: SplitResult) -> str:
    return plain(f"{address.scheme}://{address.hostname}{f':{address.port}' if address.port else ''}")


def _read_token(course: Course, server: str, file: Path | None) -> str:
    """The student's token, which never stands in a command; on a JupyterHub the notebook server's own.

    Raises:
        CourseError: there is none, or it is none.
    """
    token = os.environ.get(_TOKEN, "")
    place = f"the environment variable {_TOKEN}"
    if not token.strip() and server == os.environ.get(SERVER) and (hubs := os.environ.get(_HUBS_TOKEN)):
        token, place = hubs, f"the environment variable {_HUBS_TOKEN}"
    if file or not token.strip():
        place = str(file or course.root / _TOKEN_FILE)
        try:
            token = Path(place).read_text(encoding="utf-8-sig", errors="replace")
        except OSError:
            raise CourseError(
                f"there is no token: put the one that your instructor gave you into the file {place}"
            ) from None
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CourseError(f"{place} holds no token: it is one word, copied whole from what your instructor gave you")
    return token


def _ask(address: SplitResult, token: str, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    """One question and its answer; no redirection is followed, since the token would go along.

    Raises:
        _Away: there is no answer, or one that says that the server has trouble.
        CourseError: the server refuses, and why.
    """
    kind = http.client.HTTPConnection if address.scheme == "http" else http.client.HTTPSConnection
    connection = kind(str(address.hostname), address.port, timeout=_TIMEOUT)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/zip"}
    try:
        with closing(connection):
            connection.request(method, address.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            status, content = answer.status, answer.read(_LONGEST_ANSWER)
    except ssl.SSLCertVerificationError as error:
        clock = ""
        if "expired" in error.verify_message or "not yet valid" in error.verify_message:
            clock = f"; is it right that it is {datetime.now():%Y-%m-%d, %H:%M}, as this machine's clock says?"
        raise CourseError(
            f"{_where(address)} cannot prove that it is your class's server: {error.verify_message}{clock}"
        ) from None
    except socket.gaierror:
        raise _Away("nothing is known by this name; is the address right, and this machine online?") from None
    except (OSError, http.client.HTTPException) as error:
        raise _Away(plain(getattr(error, "strerror", None) or str(error) or type(error).__name__)) from None
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict) and status in (200, 201):
        return told
    said = plain(str(told["error"]))[:500] if isinstance(told, dict) and "error" in told else ""
    if status == 408 or status >= 500:
        raise _InTrouble(said or f"it answers {status}")
    raise CourseError(said or f"{_where(address)} answers {status}, as no class's server does: is the address right?")


def _send(address: SplitResult, token: str, chapter: Chapter, content: bytes, console: Console) -> dict[str, Any]:
    """Send a pack, several times if need be; returns the server's receipt.

    Raises:
        _Away: the server could not be reached, time and again.
        CourseError: it did not take the pack, and why.
    """
    for number, pause in enumerate((*_PATIENCE, None)):
        try:
            return _ask(address, token, "POST", f"/api/hand-ins/{quote(chapter.folder)}", content)
        except _Away as error:
            if pause is None or (number >= len(_PAUSES) and not isinstance(error, _InTrouble)):
                raise
            console.print(f"{_where(address)}: {error}; trying again", markup=False, highlight=False)
            time.sleep(pause * random.uniform(0.7, 1.3))  # a whole class does not come back at one moment
    raise AssertionError("the last try returns or raises")


def _sent_before(packed: Packed, chapter: Chapter) -> Packed | None:
    """The pack before this one, if no server has given a receipt for it and it holds the same notebook; this one is
    then removed. The server may have it, and the answer was lost: sent again, it is no second hand-in."""
    of_chapter = packed.archive.name[: -len("20270131-120000.zip")]
    packs = sorted(packed.archive.parent.glob(f"{glob.escape(of_chapter)}{'[0-9]' * 8}-{'[0-9]' * 6}.zip"))
    if not (older := packs[: packs.index(packed.archive)]):
        return None
    receipt = older[-1].with_suffix(".txt")
    try:
        text = receipt.read_text(encoding="utf-8")
        if _RECEIPT in text or _notebook(older[-1], chapter) != _notebook(packed.archive, chapter):
            return None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):  # moved, or no longer as it was packed
        return None
    for file in (packed.archive, packed.archive.with_suffix(".txt")):
        file.unlink()
    return Packed(older[-1], text, packed.notes)


def _notebook(pack: Path, chapter: Chapter) -> bytes:
    with zipfile.ZipFile(pack) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(f"/{chapter.folder}/{chapter.module}.ipynb")]
        return archive.read(name)


def _receipt(told: dict[str, Any], address: SplitResult) -> str:
    try:
        here = datetime.fromisoformat(str(told["received_at"])).astimezone()
    except ValueError:
        raise CourseError(f"{_where(address)} answers as no class's server does: is the address right?") from None
    again = "" if told.get("new") else ", and not now: it is the same pack"
    off = round((datetime.now(UTC) - here).total_seconds())
    if told.get("new") and abs(off) > _CLOCK_MAY_BE_OFF:
        way = "ahead" if off > 0 else "behind"
        again += f"\nclock:    this machine's is {timedelta(seconds=abs(off))} {way}; the server's counts"
    return (
        f"received: {here:%Y-%m-%d at %H:%M:%S} {here.tzname()} by {_where(address)} from {plain(str(told['student']))}"
        f"{again}{_RECEIPT}{plain(str(told['id']))}\n"
    )


def _verdict(address: SplitResult, token: str, id: str) -> str:
    """What the server tells of a hand-in, after waiting for it a while."""
    until = time.monotonic() + _WAIT
    pause = 0.5
    while True:
        try:
            told = _ask(address, token, "GET", f"/api/receipts/{quote(id)}")
        except (_Away, CourseError) as error:
            told = {"graded": False, "trouble": str(error)}
        if told.get("graded"):
            return show(told)
        if time.monotonic() + pause > until:
            ahead = told.get("ahead")
            before = f", {ahead} came before it" if ahead else ""
            page = f"{_where(address)}{plain(address.path.rstrip('/'))}/"
            return f"It is not graded yet{before}: nothing more is to be done, and {page} will show it.\n"
        time.sleep(pause)
        pause = min(3.0, pause * 1.5)


def show(told: dict[str, Any]) -> str:
    """A verdict in lines, as much of it as the instructor lets students see."""
    lines = []
    if late := float(told.get("seconds_late") or 0):
        lines.append(f"late by {timedelta(seconds=round(late))}")
    if told.get("ungradable"):
        lines.append(
            f"It could not be graded: {plain(str(told['ungradable']))}; `autograder check --repair` mends what can be"
        )
    elif "points" not in told:
        lines.append("It is graded; your instructor gives the marks back.")
    else:
        stands = "" if told.get("counts") else "; a better or later one of yours counts"
        lines.append(f"graded:   {told['points']:g} of {told['max_points']:g} points by its checks{stands}")
    for check in told.get("checks", []):
        sign = _SIGNS.get(check["status"], "✗")
        of = f"{check['points']:g} of {check['max_points']:g}"
        lines.append(f"  {sign} {plain(check['exercise'])}: {of}, {plain(in_words(check['status']))}")
        if check["status"] not in _SIGNS:
            lines += [f"      {plain(line)}" for line in str(check["message"]).split("\n") if line.strip()][:12]
    return "".join(f"{line}\n" for line in lines)
