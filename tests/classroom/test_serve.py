"""`autograder serve` and `hand-in --server`: what is taken or refused, what a verdict shows, what a kill costs."""

import hashlib
import http.client
import io
import ipaddress
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from rich.console import Console
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

pytest.importorskip("starlette", reason="the server's packages are not installed: pip install 'autograder[service]'")
from serving import HALF, RIGHT, Room, Server, line_of, run, set_up, settle

from autograder.course import batch, gradebook, spread
from autograder.course.curriculum import CourseError
from autograder.course.grade import Means
from autograder.course.receipts import only_one
from autograder.service import grading, receive, sending, settings, turns
from autograder.service import store as state

SECONDS_AWAY = float(os.environ.get("SECONDS_AWAY", "5"))  # that a database is stopped


def test_a_token_is_kept_as_a_digest_alone_and_made_once(course, enrolled, tmp_path):
    assert os.stat(tmp_path / "tokens.csv").st_mode & 0o777 == 0o600
    kept = b"".join(file.read_bytes() for file in (course.root / "classroom").glob("service.db*"))
    for token in enrolled.values():
        assert len(token) > 43 and token.encode() not in kept
        assert hashlib.sha256(token.encode()).hexdigest().encode() in kept
    assert "is there already" in line_of(run("tokens", tmp_path / "tokens.csv", "--student", "ada"))
    assert "everybody has a token" in run("tokens", tmp_path / "more.csv").output
    assert "'zoe' is not in the class" in line_of(run("tokens", tmp_path / "more.csv", "--student", "zoe"))
    assert not (tmp_path / "more.csv").exists()


def test_a_new_token_takes_the_place_of_the_old(room, tmp_path):
    assert run("tokens", tmp_path / "again.csv", "--student", "ada").exit_code == 0
    refused = room.send("ada", room.pack(**RIGHT))
    assert refused.status_code == 401 and "does not know this token" in refused.json()["error"]
    [row] = (tmp_path / "again.csv").read_text().splitlines()[1:]
    assert room.send("ada", room.pack(**RIGHT), token=row.split(",")[2]).status_code == 201
    assert room.send("ben", room.pack(**RIGHT)).status_code == 201


def test_a_receipt_means_that_the_pack_is_on_the_disk(room):
    content = room.pack(**RIGHT)
    told = room.send("ada", content)
    assert told.status_code == 201
    receipt = told.json()
    assert receipt["student"] == "ada" and receipt["sha256"] == hashlib.sha256(content).hexdigest()
    place = room.course.root / f"classroom/received/ada/01_numbers/{receipt['id']}.zip"
    assert place.read_bytes() == content
    assert not list(room.course.root.glob("classroom/received/.incoming/*"))


def test_disk_and_database_come_before_the_receipt(room, monkeypatch):
    done: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(receive.os, name, lambda *a, n=name, f=real: (done.append(n), f(*a))[1])
    add = state.add
    monkeypatch.setattr(state, "add", lambda *a: (done.append("database"), add(*a))[1])
    assert room.send("ada", room.pack(**RIGHT)).status_code == 201
    assert done[0] == "fsync" and done[-3:] == ["replace", "fsync", "database"]


def test_the_same_pack_again_is_the_same_hand_in(room):
    content = room.pack(**RIGHT)
    first, second = room.send("ada", content), room.send("ada", content)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() | {"new": False} == second.json()
    assert room.send("ben", content).json()["id"] != first.json()["id"], "somebody else's is another hand-in"
    assert room.grade() == 2
    assert len(list((room.course.root / "classroom/received/ada/01_numbers").iterdir())) == 1


def test_packs_sent_at_once_are_one_hand_in(room):
    content, told = room.pack(**RIGHT), []
    sending_it = [
        threading.Thread(target=lambda: told.append(room.send("ada", content).json()["id"])) for _ in range(8)
    ]
    for thread in sending_it:
        thread.start()
    for thread in sending_it:
        thread.join()
    assert len(told) == 8 and len(set(told)) == 1
    assert len(list((room.course.root / "classroom/received/ada/01_numbers").iterdir())) == 1


def _zip(packed: int = zipfile.ZIP_DEFLATED, **files: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", packed) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "."), data)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"no archive", "what came is not a pack"),
        (b"", "what came is not a pack"),
        (_zip(a__txt=b"text"), "this one holds 0"),
        (_zip(a__ipynb=b"{}", b__ipynb=b"{}"), "this one holds 2"),
        (_zip(numbers_chapter__ipynb=b"not JSON"), "it is not a notebook: not JSON: `autograder check --repair 01`"),
        (_zip(numbers_chapter__ipynb=b"[" * 100_000), "it is not a notebook: not JSON"),
        (_zip(numbers_chapter__ipynb=b"[1]"), "it has no cells"),
        (_zip(a__ipynb=b'{"cells": []}'), "none of 01_numbers's exercises"),
        (_zip(a__ipynb=b" " * (20 * 2**20 + 1)), "larger than 20 MB"),
        (_zip(**{f"n{number}": b"" for number in range(101)}), "more than 100 files"),
        (_zip(a__ipynb=b'{"cells": [' + b"[]," * 600_000 + b"[]]}"), "more than 1,000,000 values: clear its outputs"),
        (_zip(packed=zipfile.ZIP_LZMA, a__ipynb=b"{}"), "what came is not a pack"),
    ],
    # Not by their bytes, in which the time stands.
    ids=[
        "text",
        "nothing",
        "none",
        "two",
        "words",
        "deep",
        "a list",
        "another's",
        "large",
        "many",
        "values",
        "unusual",
    ],
)
def test_what_is_no_notebook_is_refused_in_one_line(room, content, says):
    refused = room.send("ada", content)
    assert refused.status_code == 422 and says in refused.json()["error"] and "\n" not in refused.json()["error"]
    assert not list(room.course.root.glob("classroom/received/ada/*/*")) and room.grade() == 0


def test_another_chapters_notebook_is_named(room):
    refused = room.send("ada", room.pack("02_words", shout="return text.upper()"))
    assert refused.json()["error"] == "this is the notebook of 02_words, sent as 01_numbers: `autograder hand-in 02`"
    assert room.send("ada", room.pack(), chapter="03_none").status_code == 404


def test_an_expired_and_an_unknown_token_are_told_apart(room, monkeypatch):
    assert "does not know this token" in room.send("", room.pack(), token="guessed").json()["error"]
    assert room.client.post("/api/hand-ins/01_numbers").status_code == 401
    later = state.now() + state.timedelta(days=201)
    monkeypatch.setattr(state, "now", lambda: later)
    refused = room.send("ada", room.pack())
    assert refused.status_code == 401 and "this token expired on" in refused.json()["error"]


def test_a_body_too_long_ends_early(room):
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 2**20

    headers = {"Authorization": f"Bearer {room.tokens['ada']}"}
    refused = room.client.post("/api/hand-ins/01_numbers", content=endless(), headers=headers)
    assert refused.status_code == 413 and "at most 20 MB" in refused.json()["error"]
    assert not list(room.course.root.glob("classroom/received/.incoming/*"))


def test_tries_within_an_hour_are_counted(room, monkeypatch):
    set_up(room.course, "c.Service.chapters = {'01': {'tries': 2}}")
    room.reload()
    contents = [room.pack(note=str(number), **RIGHT) for number in range(3)]
    assert [room.send("ada", content).status_code for content in contents] == [201, 201, 429]
    refused = room.send("ada", contents[2])
    assert "2 times within the last hour" in refused.json()["error"] and 0 < int(refused.headers["Retry-After"]) <= 3601
    assert room.send("ada", contents[0]).status_code == 200, "sent again it is no new try"
    assert room.send("ben", contents[2]).status_code == 201
    later = state.now() + state.timedelta(hours=1, seconds=1)
    monkeypatch.setattr(state, "now", lambda: later)
    assert room.send("ada", contents[2]).status_code == 201


def test_who_has_no_try_left_costs_the_server_no_reading(room, monkeypatch):
    set_up(room.course, "c.Service.tries = 1")
    room.reload()
    content = room.pack(**RIGHT)
    assert room.send("ada", content).status_code == 201
    monkeypatch.setattr(receive, "read_pack", lambda *_: pytest.fail("it was read"))
    assert room.send("ada", room.pack(note="another", **RIGHT)).status_code == 429
    assert room.send("ada", content).status_code == 200


def test_what_is_refused_again_and_again_is_no_longer_looked_at(room, monkeypatch):
    """It takes no try of a chapter, but there is an end to it; nobody else has less for it."""
    wrong = room.pack("02_words", shout="return text.upper()")
    assert {room.send("ada", wrong).status_code for _ in range(turns.MOST_IN_VAIN - 1)} == {422}
    good = room.pack(**RIGHT)
    assert room.send("ada", good).status_code == 201, "no try is lost"
    assert room.send("ada", good).status_code == 200, "the last that is sent for nothing"
    other = room.pack(note="other", **RIGHT)
    refused = room.send("ada", other)
    assert refused.status_code == 429 and "no new hand-ins" in refused.json()["error"]
    assert 3500 < int(refused.headers["Retry-After"]) <= 3601
    assert room.send("ben", other).status_code == 201
    later = time.monotonic() + 3601
    monkeypatch.setattr(turns.time, "monotonic", lambda: later)
    assert room.send("ada", other).status_code == 201


def test_a_closed_chapter_takes_nothing(room):
    set_up(room.course, "c.Service.open = False\nc.Service.chapters = {'02': {'open': True}}")
    room.reload()
    refused = room.send("ada", room.pack(**RIGHT))
    assert refused.status_code == 403 and "01_numbers takes no hand-ins now" in refused.json()["error"]
    assert room.send("ada", room.pack("02_words"), chapter="02_words").status_code == 201


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("c.Service.chapters = {'01': {'trys': 2}}", "no setting 'trys'"),
        ("c.Service.chapters = {'9': {}}", "there is no chapter '9'"),
        ("c.Service.show = 'everything'", "c.Service: "),
        ("c.Service.chapters = {'01': {'tries': 0}}", "c.Service: "),
    ],
)
def test_a_setting_that_cannot_be_is_named(course, line, says):
    set_up(course, line)
    with pytest.raises(CourseError, match=re.escape(says)) as error:
        nbgrader = gradebook.configure(course)
        settings.read_rules(course, nbgrader)
    assert "\n" not in str(error.value)


def test_every_answer_has_the_headers(room):
    for answer in (room.send("ada", room.pack()), room.client.get("/nothing"), room.client.get("/api/me")):
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert (
            answer.headers["Referrer-Policy"] in ("no-referrer", "same-origin")
            and answer.headers["Cache-Control"] == "no-store"
        )


def test_a_full_disk_gives_no_receipt(room, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(receive.os, "replace", full)
        refused = room.send("ada", room.pack(**RIGHT))
    assert refused.status_code == 503 and "try again later" in refused.json()["error"]
    assert room.send("ada", room.pack(**RIGHT)).status_code == 201


@pytest.mark.parametrize("step", ["whose_token", "find_same", "since", "add"])
def test_a_database_that_is_away_gives_no_receipt_and_loses_nothing(room, sandboxed, monkeypatch, step):
    def away(*_: object) -> None:
        raise OperationalError("", {}, OSError("connection refused"))

    content = room.pack(**RIGHT)
    with monkeypatch.context() as patch:
        patch.setattr(state, step, away)
        refused = [room.send("ada", content) for _ in range(2)]
    assert {answer.status_code for answer in refused} == {503} and "try again later" in refused[0].json()["error"]
    told = [room.send("ada", content) for _ in range(2)]
    assert [answer.status_code for answer in told] == [201, 200] and told[0].json()["id"] == told[1].json()["id"]
    assert room.grade() == 1 and room.mark("ada") == 3
    for name in ("begin_grading", "write_verdict"):
        id = room.send("ada", room.pack(note=name, **HALF)).json()["id"]
        with monkeypatch.context() as patch:
            patch.setattr(state, name, away)
            with pytest.raises(OperationalError):
                room.grade()
        assert not room.look("ada", id)["graded"]
        assert room.grade() == 1 and room.look("ada", id)["points"] == 2 and room.mark("ada") == 2


def test_a_hubs_token_is_for_the_server_that_the_hub_named(course, monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "hubs")
    monkeypatch.setenv("AUTOGRADER_SERVER", "https://hub.example.org/services/monday")
    assert sending._read_token(course, "https://hub.example.org/services/monday", None) == "hubs"
    with pytest.raises(CourseError, match="there is no token"):
        sending._read_token(course, "https://elsewhere.example.org", None)
    monkeypatch.setenv("AUTOGRADER_TOKEN", "own")
    assert sending._read_token(course, "https://hub.example.org/services/monday", None) == "own"


def test_a_clock_that_is_off_is_said_and_does_not_count():
    told = {"received_at": "2026-01-01T12:00:00+00:00", "student": "ada", "id": "1", "new": True}
    assert "ahead; the server's counts" in sending._receipt(told, sending._read_address("https://example.org"))
    told["received_at"] = (datetime.now(UTC) + timedelta(seconds=10_000)).isoformat()
    assert "behind; the server's counts" in sending._receipt(told, sending._read_address("https://example.org"))
    told["received_at"] = datetime.now(UTC).isoformat()
    assert "clock" not in sending._receipt(told, sending._read_address("https://example.org"))


def test_a_verdict_is_told_in_the_words_of_check():
    check = {"exercise": "double", "points": 0, "max_points": 2, "status": "timeout", "message": "20 seconds"}
    assert "✗ double: 0 of 2, took too long\n" in sending.show({"points": 0, "max_points": 2, "checks": [check]})


# Verdicts.


def test_a_verdict_is_that_of_grade(room, sandboxed):
    for student, answers in (("ada", RIGHT), ("ben", HALF)):
        room.send(student, room.pack(**answers))
    assert room.grade() == 2 and room.grade() == 0
    assert room.mark("ada") == 3 and room.mark("ben") == 2
    before = (room.course.root / "classroom/autograded/ben/01_numbers/.autograder.json").read_bytes()
    assert run("grade", "--workers", 1).exit_code == 0
    assert (room.course.root / "classroom/autograded/ben/01_numbers/.autograder.json").read_bytes() == before, "kept"
    assert run("grade", "--workers", 1, "--force").exit_code == 0
    assert room.mark("ada") == 3 and room.mark("ben") == 2


@pytest.mark.parametrize("show", ["nothing", "points", "messages"])
def test_students_see_what_the_instructor_allows(room, sandboxed, show):
    set_up(room.course, f"c.Service.show = {show!r}")
    room.reload()
    id = room.send("ben", room.pack(**HALF)).json()["id"]
    waiting = room.look("ben", id)
    assert not waiting["graded"] and "points" not in waiting and waiting["ahead"] == 0
    room.grade()
    told = room.look("ben", id)
    assert told["graded"] and ("points" in told) == (show != "nothing") and ("checks" in told) == (show == "messages")
    shown = sending.show(told)
    assert ("2 of 3 points" in shown) == (show != "nothing")
    assert ("this does not hold: assert halve(4) == 2" in shown) == (show == "messages")
    assert "error" in room.look("ada", id), "another student's"


@pytest.mark.parametrize(("counts", "mark"), [("last", 2), ("best", 3)])
def test_the_last_or_the_best_counts(room, sandboxed, counts, mark):
    set_up(room.course, f"c.Service.counts = {counts!r}")
    room.reload()
    ids = []
    for answers in (HALF, RIGHT, HALF):
        ids.append(room.send("ada", room.pack(note=str(len(ids)), **answers)).json()["id"])
        if len(ids) > 1:
            room.grade()  # the first two are graded together
    assert room.mark("ada") == mark
    assert [room.look("ada", id)["points"] for id in ids] == [2, 3, 2]
    assert [room.look("ada", id)["counts"] for id in ids] == [False, counts == "best", counts == "last"]


def test_what_is_late_is_so_by_the_gradebook_and_a_late_better_one_may_not_be_the_best(room, sandboxed, monkeypatch):
    set_up(room.course, "c.Service.counts = 'best'\nc.LateSubmissionPlugin.penalty_method = 'zero'")
    due = state.now() + state.timedelta(hours=1)
    assert run("due", "01", f"{due.isoformat()}+00:00").exit_code == 0
    first = room.send("ada", room.pack(**HALF)).json()["id"]
    room.grade()
    later = due + state.timedelta(minutes=5)
    monkeypatch.setattr(state, "now", lambda: later)
    second = room.send("ada", room.pack(**RIGHT)).json()["id"]
    third = room.send("ben", room.pack(**RIGHT)).json()["id"]
    room.grade()
    assert room.look("ada", first)["seconds_late"] == 0 and 299 <= room.look("ada", second)["seconds_late"] <= 300
    assert room.mark("ada") == 2 and room.look("ada", first)["counts"] and not room.look("ada", second)["counts"]
    assert "late by 0:0" in sending.show(room.look("ben", third))
    with gradebook.open_gradebook(gradebook.configure(room.course)) as book:
        assert book.find_submission_notebook("numbers_chapter", "01_numbers", "ben").late_submission_penalty == 3


def test_what_grading_cannot_take_is_told_and_holds_up_nobody(room, sandboxed):
    id = room.send("ada", room.pack(**RIGHT)).json()["id"]
    other = room.send("ben", room.pack(**RIGHT)).json()["id"]
    (room.course.root / f"classroom/received/ada/01_numbers/{id}.zip").unlink()
    assert room.grade() == 2 and room.grade() == 0
    shown = sending.show(room.look("ada", id))
    assert "cannot be read any more: it is gone" in shown and "classroom" not in shown, "no path is shown"
    assert room.look("ben", other)["points"] == 3
    assert room.mark("ada") is None


def test_who_grades_where_is_nothing_for_students(room, sandboxed, monkeypatch):
    id = room.send("ada", room.pack(**RIGHT)).json()["id"]

    class Died:
        def submit(self, *_: object, **__: object) -> Future:
            died: Future = Future()
            died.set_exception(RuntimeError("worker tls://10.0.0.7:40513 of ada died"))
            return died

        def nthreads(self) -> dict[str, int]:
            return {"one": 1}

    monkeypatch.setattr(spread, "_client", lambda *_: nullcontext(Died()))
    nbgrader = gradebook.configure(room.course)
    rules = settings.read_rules(room.course, nbgrader)
    for _ in range(3):
        grading.grade_waiting(room.course, nbgrader, room.store, rules, Means(workers=2, scheduler="tcp://10.0.0.7:1"))
    told = room.look("ada", id)
    assert told["ungradable"] == "the grading process died each time: RuntimeError"


def test_a_hand_in_waits_while_somebody_grades(room, sandboxed):
    room.send("ada", room.pack(**RIGHT))
    with only_one(gradebook.configure(room.course)), pytest.raises(CourseError, match="is at work"):
        room.grade()
    assert room.grade() == 1 and room.mark("ada") == 3


def test_what_a_machine_may_have_spoilt_is_tried_again_and_then_taken(room, sandboxed, monkeypatch):
    id = room.send("ada", room.pack(**RIGHT)).json()["id"]
    in_doubt = {"double_check": "the clock ran out"}
    judged = batch.grade_jobs
    doubtful = lambda *a: ((hand_in, replace(one, in_doubt=in_doubt)) for hand_in, one in judged(*a))  # noqa: E731
    monkeypatch.setattr(batch, "grade_jobs", doubtful)
    assert [room.grade() for _ in range(4)] == [1, 1, 1, 0]
    assert room.look("ada", id)["points"] == 3


@pytest.fixture
def room_on_postgresql(course, postgresql, pack, tmp_path, monkeypatch) -> Iterator[Room]:
    """A class's server without a network, all that it knows in PostgreSQL."""
    with create_engine(f"{postgresql}/postgres", isolation_level="AUTOCOMMIT").connect() as db:
        # A server that was killed may still be connected.
        db.execute(text("DROP DATABASE IF EXISTS served WITH (FORCE)"))
        db.execute(text("CREATE DATABASE served"))
    monkeypatch.setenv("GRADEBOOK_URL", f"{postgresql}/served")
    (tmp_path / "students.csv").write_text("id\nada\nben\ncem\n")
    assert run("students", "add", tmp_path / "students.csv").exit_code == 0
    assert run("tokens", tmp_path / "tokens.csv").exit_code == 0
    rows = [row.split(",") for row in (tmp_path / "tokens.csv").read_text().splitlines()[1:]]
    store = state.open_store(gradebook.configure(course))
    room = Room(course, {student: token for student, _, token in rows}, store, None, pack)  # type: ignore[arg-type]
    room.reload()
    yield room
    store.dispose()


def test_on_postgresql_it_is_the_same(room_on_postgresql, sandboxed):
    room = room_on_postgresql
    contents = [room.pack(note=note, **answers) for note, answers in (("1", HALF), ("2", RIGHT))]
    ids = [room.send("ada", content).json()["id"] for content in contents]
    assert room.send("ada", contents[0]).json()["id"] == ids[0]
    assert room.grade() == 2 and room.grade() == 0
    assert [room.look("ada", id)["points"] for id in ids] == [2, 3] and room.mark("ada") == 3
    assert [room.look("ada", id)["counts"] for id in ids] == [False, True]
    assert not list((room.course.root / "classroom").glob("service.db*"))


# The real thing: processes, sockets, kills.


@pytest.fixture
def server(room, sandboxed) -> Iterator[Server]:
    server = Server(room.course)
    yield server
    if server.process.poll() is None:
        assert server.stop() == ""
        assert server.process.returncode == 0


def test_a_student_hands_in_and_reads_the_verdict(room, server, own):
    own(**HALF)
    (room.course.root / "token.txt").write_text(room.tokens["ada"] + "\n")
    done = run("hand-in", "01", "--server", server.url)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"by {server.url} from ada" in done.output and "2 of 3 points" in done.output
    assert "✗ halve: 0 of 1, failed" in done.output and room.tokens["ada"] not in done.output
    [archive] = (room.course.root / "handed-in").glob("ada-01_numbers-*.zip")  # the server says what she is called
    told = archive.with_suffix(".txt").read_text()
    assert hashlib.sha256(archive.read_bytes()).hexdigest() in told and "receipt:  " in told
    assert "serves" in line_of(run("serve", "--port", "0")), "a second server is turned away"
    in_notebook = f"from autograder.course.packing import hand_in\nhand_in(chapter='01', server={server.url!r})"
    done = subprocess.run([sys.executable, "-c", in_notebook], cwd=room.course.root, capture_output=True, text=True)
    assert f"by {server.url} from ada" in done.stdout, done
    for token, says in (("wrong", "does not know this token"), ("two words", "holds no token")):
        assert says in line_of(run("hand-in", "01", "--server", server.url, AUTOGRADER_TOKEN=token))


def test_a_server_that_is_away_costs_a_line_and_no_file(room, own, monkeypatch):
    own(**RIGHT)
    paused: list[float] = []
    monkeypatch.setattr(sending.time, "sleep", paused.append)
    away = ("hand-in", "01", "--name", "Ada", "--server", "http://127.0.0.1:9")
    told = line_of(run(*away, AUTOGRADER_TOKEN=room.tokens["ada"]))
    assert len(paused) == 3 and paused == sorted(paused)
    [archive] = (room.course.root / "handed-in").glob("Ada-*.zip")
    assert "not handed in" in told and str(archive) in told and "run this again later" in told


def test_a_server_in_trouble_is_asked_for_longer_than_a_minute(course, monkeypatch):
    paused: list[float] = []
    monkeypatch.setattr(sending.time, "sleep", paused.append)

    def in_trouble(*_: object) -> None:
        raise sending._InTrouble("something failed at the server")

    monkeypatch.setattr(sending, "_ask", in_trouble)
    address = sending._read_address("https://example.org")
    with pytest.raises(sending._Away):
        sending._send(address, "token", course.find("01"), b"", Console(file=io.StringIO()))
    assert len(paused) == 6 and sum(paused) > 60


@pytest.mark.parametrize(
    ("server", "says"),
    [("http://example.org", "would show your token"), ("ftp://x", "no server's address"), ("", "no server's address")],
)
def test_an_address_that_cannot_be_is_refused_before_anything_is_sent(course, own, server, says):
    own(**RIGHT)
    with pytest.raises(CourseError, match=says):
        sending.run(
            course, course.find("01"), name="Ada", repair=False, server=server, token_file=course.root / "none.txt"
        )
    assert not (course.root / "handed-in").exists()


def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_is_doubled(room, server, own, monkeypatch):
    own(**RIGHT)
    lost: list[str] = []
    ask = sending._ask

    def lossy(address, token, method, path, body=None):
        told = ask(address, token, method, path, body)
        if method == "POST" and len(lost) < 2:
            lost.append(told["id"])
            raise sending._Away("connection reset")
        return told

    monkeypatch.setattr(sending, "_ask", lossy)
    monkeypatch.setattr(sending, "_PATIENCE", (0, 0, 0))
    done = run("hand-in", "01", "--name", "Ada", "--server", server.url, AUTOGRADER_TOKEN=room.tokens["ada"])
    assert done.exit_code == 0 and f"receipt:  {lost[0]}" in done.output and "3 of 3 points" in done.output
    assert len(list((room.course.root / "classroom/received/ada/01_numbers").iterdir())) == 1


def test_run_again_after_the_network_failed_it_is_the_same_hand_in(room, sandboxed, own, monkeypatch):
    """The server had it, every answer was lost, and the student did what the line says: no try is lost to that."""
    set_up(room.course, "c.Service.tries = 1")
    own(**RIGHT)
    (room.course.root / "token.txt").write_text(room.tokens["ada"])
    ask, sent, server = sending._ask, [], Server(room.course)

    def lossy(address, token, method, path, body=None):
        told = ask(address, token, method, path, body)
        if method == "POST":
            sent.append(told["id"])
            raise sending._Away("connection reset")
        return told

    try:
        hand_in = ("hand-in", "01", "--server", server.url)
        monkeypatch.setattr(sending, "_PATIENCE", (0, 0, 0))
        with monkeypatch.context() as patch:
            patch.setattr(sending, "_ask", lossy)
            assert "run this again later" in line_of(run(*hand_in))
        packs = sorted((room.course.root / "handed-in").glob("*.zip"))
        time.sleep(1.1)  # its name and its manifest would say another time
        done = run(*hand_in)
        assert done.exit_code == 0 and f"receipt:  {sent[0]}" in done.output, (done.output, done.exception)
        assert sorted((room.course.root / "handed-in").glob("*.zip")) == packs and str(packs[0]) in done.output
        assert "receipt:  " in packs[0].with_suffix(".txt").read_text()
        assert len(list((room.course.root / "classroom/received/ada/01_numbers").iterdir())) == 1
        assert "1 time within the last hour" in line_of(run(*hand_in)), "what has a receipt is packed anew"
    finally:
        server.stop()


def test_whoever_is_refused_reads_why_though_the_body_is_long(room, server):
    host = server.url.removeprefix("http://")
    for size, status in ((10 * 2**20, 401), (100 * 2**20, 413)):
        connection = http.client.HTTPConnection(host, timeout=30)
        token = "wrong" if status == 401 else room.tokens["ada"]
        connection.putrequest("POST", "/api/hand-ins/01_numbers")
        connection.putheader("Authorization", f"Bearer {token}")
        connection.putheader("Content-Length", str(size))
        connection.endheaders()
        if status == 401:
            connection.send(b"x" * size)
        assert connection.getresponse().status == status
        connection.close()


def test_it_takes_more_connections_than_a_shell_allows(room, sandboxed):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        server = Server(room.course)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    try:
        soft, hard = psutil.Process(server.process.pid).rlimit(psutil.RLIMIT_NOFILE)
        assert soft == min(hard, 65_536)
    finally:
        server.stop()


def test_one_student_fills_no_disk_with_what_never_ends(room, server):
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST /api/hand-ins/01_numbers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {room.tokens['ben']}\r\n"
    held = []
    for _ in range(8):
        held.append(socket.create_connection((host, int(port)), timeout=10))
        held[-1].sendall(f"{head}Content-Length: {2**20}\r\n\r\n".encode() + b"x" * 1000)
    assert room.send("ada", room.pack(**RIGHT)).status_code == 201
    time.sleep(0.5)
    coming = list(room.course.root.glob("classroom/received/.incoming/*"))
    assert len(coming) <= turns.MOST_AT_ONCE, "the others wait"
    for one in held:
        one.close()


def test_postgresql_is_away_while_hand_ins_come(room_on_postgresql, postgresql_server, sandboxed):
    """It goes without a word in the midst of receipts and gradings, and comes back: the students' command waits."""
    room, (_, control) = room_on_postgresql, postgresql_server
    set_up(room.course, "c.Service.tries = 100")
    contents = {s: [room.pack(note=f"{s}{n}", **(HALF, RIGHT)[n % 2]) for n in range(4)] for s in room.tokens}
    told: dict[str, list[dict]] = {student: [] for student in contents}
    said = io.StringIO()
    server = Server(room.course)

    def hand_in(student: str) -> None:
        address, chapter = sending._read_address(server.url), room.course.find("01")
        for content in contents[student]:
            told[student].append(
                sending._send(address, room.tokens[student], chapter, content, Console(file=said, width=200))
            )
            time.sleep(0.5)

    threads = [threading.Thread(target=hand_in, args=(student,), daemon=True) for student in contents]
    try:
        for thread in threads:
            thread.start()
        while not all(told.values()):
            assert all(thread.is_alive() for thread in threads)
            time.sleep(0.01)
        control("stop")
        browser = requests.get(server.url, cookies={"autograder-session": "x"}, allow_redirects=False)
        assert browser.status_code == 303, "who is not signed in is asked for the token"
        time.sleep(SECONDS_AWAY)
        control("start")
        for thread in threads:
            thread.join(120)
        receipts = {one["id"]: student for student, ones in told.items() for one in ones}
        for id, student in receipts.items():
            settle(room, {student: id}, 120)
        assert server.process.poll() is None
    finally:
        printed = server.stop()
    assert "something failed at the server: try again later" in said.getvalue()
    assert "Traceback" not in printed, printed
    assert {s: [one["sha256"] for one in ones] for s, ones in told.items()} == {
        s: [hashlib.sha256(content).hexdigest() for content in packs] for s, packs in contents.items()
    }
    assert len(receipts) == 12
    with room.store.connect() as db:
        rows = db.execute(text("SELECT id, points FROM service_hand_in WHERE graded_at IS NOT NULL")).all()
    assert sorted(id for id, _ in rows) == sorted(receipts), "no hand-in but those with a receipt, each once"
    assert sorted(points for _, points in rows) == [2] * 6 + [3] * 6
    assert [room.mark(student) for student in contents] == [3, 3, 3]


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine that nobody else signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    begin = datetime.now(UTC) - timedelta(days=1)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + timedelta(days=2))
        .add_extension(here, critical=False)
        .sign(key, hashes.SHA256())
    )
    chain, secret = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(signed.public_bytes(Encoding.PEM))
    secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return chain, secret


def test_over_https_only_the_right_server_gets_a_token(room, sandboxed, own, tmp_path):
    own(**RIGHT)
    chain, key = _certificate(tmp_path)
    assert "both" in line_of(run("serve", "--certificate", chain))
    server = Server(room.course, "--certificate", str(chain), "--key", str(key))
    try:
        hand_in = ("hand-in", "01", "--name", "Ada", "--server", server.url)
        told = line_of(run(*hand_in, AUTOGRADER_TOKEN=room.tokens["ada"]))
        assert "cannot prove that it is your class's server" in told and "the pack is kept" in told
        assert "this machine's clock" not in told
        done = run(*hand_in, AUTOGRADER_TOKEN=room.tokens["ada"], SSL_CERT_FILE=str(chain))
        assert done.exit_code == 0 and "3 of 3 points" in done.output, (done.output, done.exception)
    finally:
        server.stop()


def test_a_grading_process_that_dies_is_begun_again(room, sandboxed):
    server = Server(room.course)
    [child] = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    id = room.send("ada", room.pack(**RIGHT)).json()["id"]
    settle(room, {"ada": id})
    assert "the grading process ended (-9) and is begun again" in server.stop()
    assert room.mark("ada") == 3


def _workers_of(server: Server) -> list[psutil.Process]:
    """The Dask workers on this machine of the process that grades."""
    [grader] = psutil.Process(server.process.pid).children()
    # process_iter leaves out what has ended meanwhile, as the processes of students' code do.
    forked = [p for p in psutil.process_iter(["cmdline", "ppid"]) if "forkserver" in " ".join(p.info["cmdline"] or [])]
    descendants = grader.children(recursive=True)
    return [p for p in forked if p in descendants and p.info["ppid"] != grader.pid]


@pytest.fixture
def cluster(course) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """The address of a Dask scheduler, and two workers that nobody starts again."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dask = str(Path(sys.executable).with_name("dask"))
    with subprocess.Popen([dask, "scheduler", "--host", address, "--no-dashboard"]) as scheduler:
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        workers = [subprocess.Popen([dask, "worker", address, *options]) for _ in range(2)]
        yield address, workers
        for process in (*workers, scheduler):
            process.kill()
        for process in workers:
            process.wait(30)


@pytest.mark.parametrize("where", ["here", "on a cluster"])
def test_the_hand_ins_of_a_killed_worker_are_graded_once(room, sandboxed, request, where):
    set_up(room.course, "c.Service.tries = 100")
    slow = {name: f"import time; time.sleep(0.3); {body}" for name, body in HALF.items()}
    receipts = {}
    for number in range(4):
        for student in room.tokens:
            receipts[room.send(student, room.pack(note=f"{number}", **slow)).json()["id"]] = student
    options, workers = ["--workers", "2"], []
    if where != "here":
        address, workers = request.getfixturevalue("cluster")
        options = ["--scheduler", address]
    server = Server(room.course, *options)
    try:
        until = time.monotonic() + 300
        while not (graded := sum(room.look(student, id)["graded"] for id, student in receipts.items())):
            assert time.monotonic() < until, "nothing is graded"
            time.sleep(0.02)
        workers = workers or _workers_of(server)
        assert graded < len(receipts) and len(workers) == 2
        workers[0].kill()
        for id, student in receipts.items():
            settle(room, {student: id}, 300)
    finally:
        server.stop()
    told = [room.look(student, id) for id, student in receipts.items()]
    assert [one["points"] for one in told] == [2] * len(receipts)
    with room.store.connect() as db:
        assert db.scalar(text("SELECT count(*) FROM service_hand_in")) == len(receipts)
    for student in room.tokens:
        assert room.mark(student) == 2
        assert sum(one["counts"] for one in told if one["student"] == student) == 1


def test_a_chapter_that_is_away_for_a_moment_costs_nobody_a_verdict(room, sandboxed):
    set_up(room.course, "c.Service.tries = 100")
    ids = [room.send("ada", room.pack("02_words", shout="return text.upper()"), chapter="02_words").json()["id"]]
    ids.append(room.send("ada", room.pack(**RIGHT)).json()["id"])
    notebook = room.course.solution(room.course.find("02"))
    notebook.rename(notebook.with_suffix(".away"))
    room.grade()
    assert [room.look("ada", id)["graded"] for id in ids] == [False, True]
    notebook.with_suffix(".away").rename(notebook)
    room.grade()
    assert room.look("ada", ids[0])["points"] == 3


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_any_moment_lose_nothing_and_double_nothing(room, sandboxed, seed):
    """The server and its grader are killed while hand-ins come in and are graded; what has a receipt has a verdict."""
    set_up(room.course, "c.Service.tries = 100")
    random_ = random.Random(seed)
    contents = {s: [room.pack(note=f"{s}{n}", **(HALF, RIGHT)[n % 2]) for n in range(4)] for s in room.tokens}
    receipts: dict[str, tuple[str, str]] = {}  # of each pack: whose it is, and the receipt

    def keep_sending(student: str, address: list[str], done: threading.Event) -> None:
        for content in contents[student]:
            while not done.is_set():
                try:
                    where = sending._read_address(address[0])
                    told = sending._ask(where, room.tokens[student], "POST", "/api/hand-ins/01_numbers", content)
                except sending._Away:
                    time.sleep(0.05)
                    continue
                assert receipts.setdefault(told["sha256"], (student, told["id"])) == (student, told["id"])
                break

    address, done = ["http://127.0.0.1:9"], threading.Event()
    threads = [threading.Thread(target=keep_sending, args=(student, address, done)) for student in contents]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            server = Server(room.course)
            address[0] = server.url
            time.sleep(random_.uniform(0.0, 2.5))
            server.kill()
        server = Server(room.course)
        address[0] = server.url
        for thread in threads:
            thread.join(60)
    finally:
        done.set()
    try:
        assert {hashlib.sha256(c).hexdigest() for packs in contents.values() for c in packs} == receipts.keys()
        for student, id in receipts.values():
            settle(room, {student: id})
    finally:
        server.stop()
    room.reload()
    ones = [room.look(student, id) for student, id in receipts.values()]
    assert sorted(one["points"] for one in ones) == [2] * 6 + [3] * 6
    for student in contents:
        mine = [one for one in ones if one["student"] == student]
        assert [one["sha256"] for one in mine if one["counts"]] == [hashlib.sha256(contents[student][-1]).hexdigest()]
        assert room.mark(student) == 3
        packs = list((room.course.root / f"classroom/received/{student}/01_numbers").glob("*.zip"))
        assert {one["id"] for one in mine} <= {pack.stem for pack in packs}
        placed = room.course.root / f"classroom/submitted/{student}/01_numbers/numbers_chapter.ipynb"
        assert b"return x / 2" in placed.read_bytes()


KILL_AT = """
import os, signal, sys
from sqlalchemy import event, Engine
left = int(sys.argv.pop(1))

def step(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def before(real):
    def wrapped(*arguments, **options):
        step()
        done = real(*arguments, **options)
        step()
        return done
    return wrapped

os.replace, os.unlink = before(os.replace), before(os.unlink)
event.listen(Engine, "commit", step)
from pathlib import Path
from autograder.course import gradebook
from autograder.course.curriculum import find_course
from autograder.course.grade import Means
from autograder.service import grading, settings, store
course = find_course(Path(sys.argv[1]))
nbgrader = gradebook.configure(course)
rules, state = settings.read_rules(course, nbgrader), store.open_store(nbgrader)
while grading.grade_waiting(course, nbgrader, state, rules, Means(workers=1)):
    pass
print("steps left:", left)
"""


@pytest.mark.parametrize("counts", ["last", "best"])
def test_a_kill_between_any_two_writes_leaves_one_verdict(room, sandboxed, counts, everything):
    """Each write of the grading process in turn is the last that it makes; then it is started again."""
    set_up(room.course, f"c.Service.counts = {counts!r}\nc.Service.tries = 1000")
    room.reload()
    expected = {"last": 2, "best": 3}[counts]
    moments = range(1, 200) if everything else sorted(random.Random(counts).sample(range(1, 24), 5))
    killed = 0
    for moment in moments:
        answers = (RIGHT, HALF)
        sent = [room.send("ada", room.pack(note=f"{moment}-{n}", **answers[n])).json()["id"] for n in range(2)]
        command = [sys.executable, "-c", KILL_AT, str(moment), str(room.course.root)]
        first = subprocess.run(command, cwd=room.course.root, capture_output=True, text=True, timeout=60)
        assert first.returncode in (0, -signal.SIGKILL), first.stderr
        killed += first.returncode != 0
        room.grade()
        told = [room.look("ada", id) for id in sent]
        assert [one["points"] for one in told] == [3, 2] and all(one["graded"] for one in told), moment
        assert [one["counts"] for one in told] == [counts == "best", counts == "last"], moment
        assert room.mark("ada") == expected, moment
        assert room.grade() == 0
        if everything and first.returncode == 0:
            break
    assert killed
