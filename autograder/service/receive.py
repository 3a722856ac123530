"""A pack that a student sent, looked at as data, and put on the disk before anybody is told that it has come."""

import hashlib
import io
import os
import secrets
import threading
import zipfile
from datetime import UTC, timedelta
from pathlib import Path, PurePosixPath

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from autograder.course.collect import match_chapter
from autograder.course.curriculum import Chapter
from autograder.service import store as state
from autograder.service.settings import Rules
from autograder.service.store import Received
from autograder.submission import SubmissionError, as_notebook, parse

MOST_BYTES = 20 * 2**20  # of a pack, and of the notebook in it
_MOST_FILES = 100
_MOST_VALUES = 1_000_000  # in the notebook: read, each takes far more memory than its two bytes, and all others wait
_PACKED_AS_USUAL = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_INCOMING = ".incoming"
# So many packs are unpacked and read at once: each may take some hundred megabytes for a moment.
_few = threading.BoundedSemaphore(2)
# One hand-in at a time is counted and written down: two of one student's that come together cannot both be the last.
_one_at_a_time = threading.Lock()


class Refused(Exception):
    """What is not taken: a line for the student, the status of HTTP, and after how many seconds to try again."""

    def __init__(self, line: str, status: int = 422, retry_after: int = 0) -> None:
        super().__init__(line)
        self.line, self.status, self.retry_after = line, status, retry_after


def incoming(received: Path) -> Path:
    """A new name for a pack that is on its way; its folder is made if need be."""
    folder = received / _INCOMING
    folder.mkdir(parents=True, exist_ok=True)
    return folder / secrets.token_hex(8)


def place_of(received: Path, one: Received) -> Path:
    """Where a hand-in's pack lies."""
    return received / one.student / one.chapter / f"{one.id}.zip"


def tidy(received: Path) -> None:
    """Remove what an interrupted server left half-received; nobody has a receipt for that."""
    for file in received.glob(f"{_INCOMING}/*"):
        file.unlink()


def read_pack(pack: Path, chapter: Chapter, chapters: list[Chapter]) -> bytes:
    """The notebook in a pack.

    Args:
        pack: the archive that `autograder hand-in` made, or that anybody made.
        chapter: what it was handed in for.
        chapters: of the course.

    Raises:
        Refused: there is none, or it is not of this chapter.
    """
    again = f"`autograder hand-in {chapter.number}` packs and sends it"
    content = pack.read_bytes()
    try:
        if content.count(b"PK\x01\x02") > _MOST_FILES:  # what starts an entry of its table of contents
            raise Refused(f"the pack holds more than {_MOST_FILES} files: {again}")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = [info for info in archive.infolist() if info.filename.endswith(".ipynb")]
            if len(found) != 1:
                raise Refused(f"a pack holds one notebook, and this one holds {len(found)}: {again}")
            if found[0].compress_type not in _PACKED_AS_USUAL:
                raise ValueError("it is packed in an unusual way")  # others may take any amount of memory
            with archive.open(found[0]) as file:
                notebook = file.read(MOST_BYTES + 1)
    except Refused:
        raise
    except Exception as error:  # whatever a damaged archive makes Python's own reader raise
        raise Refused(f"what came is not a pack: {again}") from error
    if len(notebook) > MOST_BYTES:
        raise Refused(f"the notebook is larger than {MOST_BYTES >> 20} MB: clear its outputs, save it, hand in again")
    if sum(map(notebook.count, (b"{", b"[", b","))) > _MOST_VALUES:
        raise Refused(
            f"the notebook holds more than {_MOST_VALUES:,} values: clear its outputs, save it, hand in again"
        )
    try:
        as_notebook(parse(notebook))
    except SubmissionError as error:
        raise Refused(f"the notebook cannot be read: {error}: `autograder check --repair {chapter.number}`") from None
    name = PurePosixPath(PurePosixPath(found[0].filename).name)
    # Its exercises say what it is; its name does where another editor lost their metadata.
    is_of = match_chapter(PurePosixPath("-"), notebook, chapters) or match_chapter(name, notebook, chapters)
    if is_of is None:
        raise Refused(f"the notebook holds none of {chapter.folder}'s exercises: hand in the one of that chapter")
    if is_of != chapter:
        raise Refused(
            f"this is the notebook of {is_of.folder}, sent as {chapter.folder}: `autograder hand-in {is_of.number}`"
        )
    return notebook


def take(
    store: Engine, received: Path, student: str, chapter: Chapter, chapters: list[Chapter], rules: Rules, pack: Path
) -> tuple[Received, bool]:
    """Take a pack in: it and its receipt are on the disk when this returns.

    Args:
        store: the database.
        received: the folder of packs.
        student: who sent it.
        chapter: what it was sent for.
        chapters: of the course.
        rules: of the chapter.
        pack: where it was written to; it is moved from there.

    Returns:
        The hand-in, and whether it is new: the same pack sent again is the same hand-in.

    Raises:
        Refused: it is not taken.
        OSError: it cannot be written.
    """
    with pack.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    if same := state.find_same(store, student, chapter.folder, sha256):
        return same, False
    _count_tries(store, student, chapter, rules)
    with _few:
        read_pack(pack, chapter, chapters)
    with _one_at_a_time:
        if same := state.find_same(store, student, chapter.folder, sha256):
            return same, False
        _count_tries(store, student, chapter, rules)
        id = secrets.token_hex(8)
        place = received / student / chapter.folder / f"{id}.zip"
        _make_durably(place.parent)
        os.replace(pack, place)
        _sync(place.parent)
        try:
            return state.add(store, id, student, chapter.folder, sha256), True
        except IntegrityError:  # by another server: the database knows better than this process
            place.unlink()
            return state.find_same(store, student, chapter.folder, sha256), False  # type: ignore[return-value]


def _count_tries(store: Engine, student: str, chapter: Chapter, rules: Rules) -> None:
    hour = timedelta(hours=1)
    before = state.since(store, student, chapter.folder, state.now() - hour)
    if len(before) < rules.tries:
        return
    free = before[-rules.tries] + hour
    wait = max(1, int((free - state.now()).total_seconds()) + 1)
    at = free.replace(tzinfo=UTC).astimezone()
    raise Refused(
        f"{chapter.folder} was handed in {len(before)} time{'s' * (len(before) != 1)} within the last hour, and more "
        f"are not taken: try again after {at:%H:%M:%S} {at.tzname()}",
        429,
        wait,
    )


def _make_durably(folder: Path) -> None:
    """Make a folder and those above it that are not there, so that they are still there after a power cut."""
    if not folder.is_dir():
        _make_durably(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
