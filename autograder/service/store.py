"""What a server remembers: tokens, hand-ins and their verdicts, in SQLite or PostgreSQL.

It lies beside the gradebook: in a file `service.db` where the gradebook is a file, else in tables of its own in the
gradebook's database. The notebooks themselves are files (`receive.py`).
"""

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader.apps.baseapp import NbGrader
from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Engine,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    delete,
    event,
    func,
    insert,
    literal,
    select,
    update,
)

from autograder.course.hand_ins import submitted_folder

_TABLES = MetaData()
_TOKENS = Table(
    "service_token",
    _TABLES,
    Column("digest", String(64), primary_key=True),
    Column("student", String(255), nullable=False, index=True),
    Column("expires_at", DateTime, nullable=False),
)
_INSTRUCTORS = Table(
    "service_instructor",
    _TABLES,
    Column("digest", String(64), primary_key=True),
    Column("name", String(255), nullable=False, index=True),
    Column("expires_at", DateTime, nullable=False),
)
_HAND_INS = Table(
    "service_hand_in",
    _TABLES,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", String(16), nullable=False, unique=True),
    Column("student", String(255), nullable=False),
    Column("chapter", String(255), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("received_at", DateTime, nullable=False),
    Column("seed", String(20), nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("graded_at", DateTime),
    Column("verdict", Text),
    Column("points", Float),
    Column("seconds_late", Float),
    Column("counts", Boolean, nullable=False, default=False),
    UniqueConstraint("student", "chapter", "sha256"),
)
# So often a hand-in is begun before those that came after it go first.
_PATIENCE = 3


@dataclass(frozen=True)
class Known:
    """Whose a token is: a student's, by the folder's name, or an instructor's."""

    name: str
    teaches: bool
    expires_at: datetime


@dataclass(frozen=True)
class Received:
    """One hand-in.

    Attributes:
        number: counts hand-ins in the order in which they came.
        id: of the receipt.
        student: the folder's name.
        chapter: the folder's name.
        sha256: of the pack.
        received_at: by the server's clock, in UTC.
        seed: what random numbers come from, however often it is graded.
        attempts: how often grading it was begun.
        graded_at: None as long as there is no verdict.
        verdict: why the notebook could not be graded, and the verdict on each check.
        points: the sum over its checks, without penalty.
        seconds_late: by the due date of the moment of grading.
        counts: whether its marks stand in the gradebook.
    """

    number: int
    id: str
    student: str
    chapter: str
    sha256: str
    received_at: datetime
    seed: int
    attempts: int
    graded_at: datetime | None
    verdict: dict[str, Any]
    points: float
    seconds_late: float
    counts: bool


def home(nbgrader: NbGrader) -> Path:
    """The folder of a class, which holds that of its hand-ins."""
    return Path(os.path.normpath(submitted_folder(nbgrader))).parent


def open_store(nbgrader: NbGrader) -> Engine:
    """The database of a class's server; it is made if need be.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: it cannot be reached.
    """
    url = nbgrader.coursedir.db_url
    if not url.startswith("sqlite"):
        engine = create_engine(url, pool_pre_ping=True)
    else:
        home(nbgrader).mkdir(parents=True, exist_ok=True)
        engine = create_engine(f"sqlite:///{home(nbgrader) / 'service.db'}", connect_args={"timeout": 60})

        @event.listens_for(engine, "connect")
        def set_up(connection: Any, _: object) -> None:
            # One writes while others read; what was committed is on the disk, whatever happens to the machine.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")

    _TABLES.create_all(engine)
    return engine


def now() -> datetime:
    """The time in UTC, as the database keeps it."""
    return datetime.now(UTC).replace(tzinfo=None)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def make_tokens(
    store: Engine, people: Iterable[str], days: int, keep: Callable[[dict[str, str]], None], teaches: bool = False
) -> dict[str, str]:
    """Make a token for each of some people, in place of those that they have; only its digest is kept.

    Args:
        store: the database.
        people: who gets one.
        days: how long it is good for.
        keep: writes the tokens down; if it raises, none is made.
        teaches: whether they are instructors.

    Returns:
        Each one's token, 32 random bytes as text.
    """
    made = {name: f"ag_{secrets.token_urlsafe(32)}" for name in people}
    expires = now() + timedelta(days=days)
    table, name_column = _tokens(teaches)
    with store.begin() as db:
        for name, token in made.items():
            db.execute(delete(table).where(name_column == name))
            db.execute(insert(table).values({name_column: name, "digest": _digest(token), "expires_at": expires}))
        keep(made)
    return made


def take_back(store: Engine, people: Iterable[str], teaches: bool = False) -> int:
    """Take the tokens of some people back; returns how many there were."""
    table, name_column = _tokens(teaches)
    with store.begin() as db:
        return db.execute(delete(table).where(name_column.in_(list(people)))).rowcount


def _tokens(teaches: bool) -> tuple[Table, Column]:
    return (_INSTRUCTORS, _INSTRUCTORS.c.name) if teaches else (_TOKENS, _TOKENS.c.student)


def with_token(store: Engine) -> set[str]:
    """The students who have a token that has not expired."""
    with store.connect() as db:
        return set(db.scalars(select(_TOKENS.c.student).where(_TOKENS.c.expires_at > now())))


def whose_token(store: Engine, token: str) -> Known | None:
    """Whose a token is; None if it is nobody's."""
    digest = _digest(token)
    with store.connect() as db:
        for teaches in (False, True):
            table, name_column = _tokens(teaches)
            row = db.execute(select(name_column, table.c.expires_at).where(table.c.digest == digest)).one_or_none()
            if row:
                return Known(row[0], teaches, row[1])
    return None


def _received(row: Any) -> Received:
    told = dict(row._mapping) | {"seed": int(row.seed), "verdict": json.loads(row.verdict or "{}")}
    return Received(**told | {"points": row.points or 0.0, "seconds_late": row.seconds_late or 0.0})


def add(store: Engine, id: str, student: str, chapter: str, sha256: str) -> Received:
    """Write a hand-in down.

    Raises:
        sqlalchemy.exc.IntegrityError: this student has handed in this very pack for this chapter before.
    """
    values = {"id": id, "student": student, "chapter": chapter, "sha256": sha256}
    more = {"received_at": now().replace(microsecond=0), "seed": str(secrets.randbits(64))}
    with store.begin() as db:
        return _received(db.execute(insert(_HAND_INS).values(**values, **more).returning(_HAND_INS)).one())


def find_same(store: Engine, student: str, chapter: str, sha256: str) -> Received | None:
    """The hand-in of this very pack, if there is one."""
    c = _HAND_INS.c
    with store.connect() as db:
        asked = select(_HAND_INS).where(c.student == student, c.chapter == chapter, c.sha256 == sha256)
        row = db.execute(asked).one_or_none()
    return _received(row) if row else None


def find(store: Engine, student: str, id: str) -> Received | None:
    """A student's hand-in by its receipt; None if there is none, or it is somebody else's."""
    with store.connect() as db:
        asked = select(_HAND_INS).where(_HAND_INS.c.student == student, _HAND_INS.c.id == id)
        row = db.execute(asked).one_or_none()
    return _received(row) if row else None


def since(store: Engine, student: str, chapter: str, begin: datetime) -> list[datetime]:
    """When a student handed in a chapter after a point in time, in order."""
    c = _HAND_INS.c
    asked = select(c.received_at).where(c.student == student, c.chapter == chapter, c.received_at > begin)
    with store.connect() as db:
        return list(db.scalars(asked.order_by(c.number)))


def of_student(store: Engine, student: str, most: int) -> list[Received]:
    """A student's hand-ins, the newest first."""
    asked = select(_HAND_INS).where(_HAND_INS.c.student == student).order_by(_HAND_INS.c.number.desc()).limit(most)
    with store.connect() as db:
        return [_received(row) for row in db.execute(asked)]


def newest(store: Engine, most: int, chapter: str | None = None) -> list[Received]:
    """The newest hand-ins of the class, the newest first; without their verdicts, which pages of many have no room for.

    Args:
        store: the database.
        most: how many.
        chapter: only of this one, by its folder.
    """
    c = _HAND_INS.c
    asked = select(*(column for column in c if column is not c.verdict), literal("").label("verdict"))
    if chapter is not None:
        asked = asked.where(c.chapter == chapter)
    with store.connect() as db:
        return [_received(row) for row in db.execute(asked.order_by(c.number.desc()).limit(most))]


def last_verdicts(store: Engine, begin: datetime) -> list[Received]:
    """Of each student and chapter the last hand-in since a point in time that has a verdict."""
    c = _HAND_INS.c
    last = select(func.max(c.number)).where(c.received_at > begin, c.graded_at.is_not(None))
    asked = select(_HAND_INS).where(c.number.in_(last.group_by(c.student, c.chapter)))
    with store.connect() as db:
        return [_received(row) for row in db.execute(asked.order_by(c.number))]


def tally(store: Engine) -> dict[str, tuple[int, int, int]]:
    """For each chapter that was handed in: by how many students, how often, how many of them have no verdict yet."""
    c = _HAND_INS.c
    number, graded = func.count(), func.count(c.graded_at)
    asked = select(c.chapter, func.count(c.student.distinct()), number, number - graded).group_by(c.chapter)
    with store.connect() as db:
        return {chapter: (students, often, left) for chapter, students, often, left in db.execute(asked)}


def waiting(store: Engine, most: int) -> list[Received]:
    """Hand-ins without a verdict, oldest first; those whose grading never came to its end go last."""
    c = _HAND_INS.c
    asked = select(_HAND_INS).where(c.graded_at.is_(None)).order_by(c.attempts >= _PATIENCE, c.number).limit(most)
    with store.connect() as db:
        return [_received(row) for row in db.execute(asked)]


def ahead_of(store: Engine, one: Received) -> int:
    """How many hand-ins without a verdict came before this one."""
    c = _HAND_INS.c
    asked = select(func.count()).select_from(_HAND_INS).where(c.graded_at.is_(None), c.number < one.number)
    with store.connect() as db:
        return db.scalar(asked) or 0


def begin_grading(store: Engine, ones: Iterable[Received]) -> None:
    """Note that hand-ins are about to be graded."""
    numbers = [one.number for one in ones]
    with store.begin() as db:
        db.execute(update(_HAND_INS).where(_HAND_INS.c.number.in_(numbers)).values(attempts=_HAND_INS.c.attempts + 1))


def is_last_try(one: Received) -> bool:
    """Whether a verdict is taken as it is, though the machine may have had a part in it."""
    return one.attempts + 1 >= _PATIENCE


def counted(store: Engine, student: str, chapter: str) -> Received | None:
    """The hand-in whose marks stand in the gradebook."""
    c = _HAND_INS.c
    with store.connect() as db:
        asked = select(_HAND_INS).where(c.student == student, c.chapter == chapter, c.counts)
        row = db.execute(asked).one_or_none()
    return _received(row) if row else None


def write_verdict(
    store: Engine, one: Received, verdict: dict[str, Any], points: float, seconds_late: float, counts: bool
) -> None:
    """Give a hand-in its verdict, unless it has one.

    Args:
        store: the database.
        one: the hand-in.
        verdict: see `Received`.
        points: see `Received`.
        seconds_late: see `Received`.
        counts: whether its marks stand in the gradebook from now on, in place of those of another hand-in.
    """
    c = _HAND_INS.c
    values = {"verdict": json.dumps(verdict), "points": points, "seconds_late": seconds_late, "counts": counts}
    with store.begin() as db:
        if counts:
            others = (c.student == one.student, c.chapter == one.chapter, c.number != one.number)
            db.execute(update(_HAND_INS).where(*others).values(counts=False))
        db.execute(
            update(_HAND_INS).where(c.number == one.number, c.graded_at.is_(None)).values(graded_at=now(), **values)
        )
