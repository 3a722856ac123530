"""Collecting a download: each layout, nothing lost, nothing written elsewhere; and what lies in a wrong place.

And a hostile class: whatever a student writes into names, archives and dates, it is nobody else's hand-in, it comes
when the LMS says that it came, and it costs the others nothing.
"""

import io
import json
import os
import re
import shutil
import sqlite3
import stat
import struct
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from autograder import cli
from autograder.course import collect as module
from autograder.course.collect import _files, _time_in, collect, match_chapter, strays
from autograder.course.curriculum import CourseError
from autograder.course.owner import NOTE, readings

pytestmark = pytest.mark.usefixtures("sandboxed")


def notebook(mark: str = "", exercise: str = "double") -> bytes:
    cell = {"cell_type": "code", "source": mark, "metadata": {"nbgrader": {"grade_id": exercise}}}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


LMS_TIME = (2026, 3, 1, 12, 0, 0)


def archive(_when: tuple = LMS_TIME, **files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for name, content in files.items():
            out.writestr(zipfile.ZipInfo(name, _when), content)
    return packed.getvalue()


def moodle(full_name: str, number: int, file: str = "", folders: bool = False) -> str:
    """The path that Moodle gives a file in a download: `mod/assign/locallib.php` and `clean_filename`."""

    def clean(name: str) -> str:
        return re.sub(r"\.\.+", "", re.sub(r"[\x00-\x1f\x7f]|[&<>\"`|':\\\\/]", "", name))

    prefix = clean(f"{full_name.replace('_', ' ')}_{number}") + "_assignsubmission_file_"
    return f"{prefix}/{file}" if folders else clean(prefix + file)


def canvas(sortable_name: str, number: int, attachment: int, file: str, late: bool = False) -> str:
    """The name that Canvas gives a file in a download: `lib/content_zipper.rb`."""
    name = re.sub(r"_(\d+)_", r"\1", sortable_name).lower()
    owner = re.sub(r"\W", "", "_".join([name, *(["LATE"] if late else []), str(number)]))
    return f"{owner}_{attachment}_" + re.sub(r'[\x00/\\\\:*?"<>|]+', "_", file)


def marks(submitted: Path) -> dict[str, set[str]]:
    """For each student's folder what stands in the first cells of the notebooks in it."""
    found: dict[str, set[str]] = {}
    for path in filter(Path.is_file, submitted.rglob("*.ipynb")):
        text = json.loads(path.read_bytes())["cells"][0]["source"]
        found.setdefault(path.relative_to(submitted).parts[0], set()).add(text)
    return found


@pytest.fixture
def inbox(tmp_path):
    """Pack files and collect them: `inbox(files)`; returns who got what, and what was left, by place."""
    submitted = tmp_path / "classroom/submitted"

    def inbox(course, files, **options):
        (tmp_path / "in.zip").write_bytes(archive(**files))
        taken, left = collect(tmp_path / "in.zip", submitted, course.chapters, **options)
        return {(t.student, t.chapter.folder): t.how for t in taken}, {str(one.place): one.why for one in left}

    inbox.submitted = submitted
    return inbox


LAYOUTS = {
    "nbgrader": "ada/01_numbers/numbers_chapter.ipynb",
    "no chapter": "ada/numbers_chapter.ipynb",
    "hyphens": "ada/01-numbers/numbers_chapter.ipynb",
    "a browser's second copy": "ada/01_numbers/numbers_chapter (1).ipynb",
    "another name altogether": "ada/homework.ipynb",
    "the folder alone tells": "ada/01_numbers/mine.ipynb",
    "Moodle": "Ada Lovelace_123_assignsubmission_file_/numbers_chapter.ipynb",
    "Moodle without folders": "Ada Lovelace_123_assignsubmission_file_numbers_chapter.ipynb",
    "Canvas": "lovelaceada_77_991_numbers_chapter.ipynb",
    "Canvas, late and again": "lovelaceada_LATE_77_991_numbers_chapter-2.ipynb",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_is_taken_for_the_right_student(course, inbox, layout):
    known = [("Ada Lovelace", "ada"), ("77", "ada")]
    taken, left = inbox(course, {LAYOUTS[layout]: notebook(layout)}, known=known)
    assert (taken, left) == ({("ada", "01_numbers"): "new"}, {})
    folder = inbox.submitted / "ada/01_numbers"
    assert layout.encode() in (folder / "numbers_chapter.ipynb").read_bytes()
    assert (folder / "timestamp.txt").read_text().startswith("2026-0")


def test_a_students_own_archive_is_opened_and_an_unknown_name_is_a_student(course, inbox):
    packed = archive(**{"02_words/words_chapter.ipynb": notebook(exercise="shout")})
    assert inbox(course, {"Ben B_5_assignsubmission_file_/mine.zip": packed})[0] == {("Ben B", "02_words"): "new"}


def test_a_bare_notebook_is_refused_with_what_to_do(course, inbox, tmp_path):
    taken, left = inbox(course, {"numbers_chapter.ipynb": notebook()})
    assert taken == {} and "put it into a folder named after its student" in left["numbers_chapter.ipynb"]
    bare = tmp_path / "numbers_chapter.ipynb"
    bare.write_bytes(notebook())
    with pytest.raises(CourseError, match="does not say whose it is: put it into FOLDER/STUDENT/ and collect FOLDER"):
        collect(bare, inbox.submitted, course.chapters)


def test_who_is_not_in_the_gradebook_is_named(course, tmp_path):
    (tmp_path / "students.csv").write_text("name,id\nAda Lovelace,ada\n")
    (tmp_path / "in.zip").write_bytes(
        archive(
            **{
                moodle("Ada Lovelace", 7, "numbers_chapter.ipynb"): notebook(),
                moodle("Ada L", 8, "numbers_chapter.ipynb"): notebook(),
            }
        )
    )

    def told(*arguments: str) -> str:
        return CliRunner().invoke(cli.app, [*arguments, "--class", "a"]).output

    assert "1 student added" in told("students", "add", str(tmp_path / "students.csv"))
    shown = told("collect", str(tmp_path / "in.zip"))
    assert "2 notebooks of 2 students: in " in shown and "not in the gradebook so far: Ada L;" in shown


def test_a_notebook_that_was_cut_short_is_named_and_kept(course, tmp_path):
    files = {
        "ada/numbers_chapter.ipynb": notebook()[:-9],
        "ben/numbers_chapter.ipynb": b"\n",
        "cem/x.ipynb": notebook(),
    }
    (tmp_path / "in.zip").write_bytes(archive(**files))
    for how in ("new", "unchanged"):
        done = CliRunner().invoke(cli.app, ["collect", str(tmp_path / "in.zip")], catch_exceptions=False)
        assert done.exit_code == 0 and f"ada, 01_numbers: {how}" in done.stdout
        do = "it is kept and gets no points: ask for it anew"
        assert done.stderr.splitlines() == [
            f"autograder: ada, 01_numbers: it is not a notebook: not JSON; {do}",
            f"autograder: ben, 01_numbers: it is empty; {do}",
        ]
    kept = course.root / "classroom/submitted/ada/01_numbers/numbers_chapter.ipynb"
    assert kept.read_bytes() == notebook()[:-9]


def test_another_classs_download_is_refused_whole(course, tmp_path):
    monday, tuesday = ["Ada Lovelace", "Ben B", "Cem C", "Dua D"], ["Eva E", "Fay F"]
    for name, people in (("monday", monday), ("tuesday", tuesday)):
        rows = [f"{person},{person.split()[0].lower()}" for person in people]
        (tmp_path / f"{name}.csv").write_text("\n".join(["name,id", *rows]))
        done = CliRunner().invoke(cli.app, ["students", "add", str(tmp_path / f"{name}.csv"), "--class", name])
        assert done.exit_code == 0, done.output
        files = {moodle(person, 10 + n, "numbers_chapter.ipynb"): notebook(person) for n, person in enumerate(people)}
        (tmp_path / f"{name}.zip").write_bytes(archive(**files))

    def collected(download: str, name: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli.app, ["collect", str(tmp_path / f"{download}.zip"), "--class", name])
        return done.exit_code, str(done.exception) if isinstance(done.exception, CourseError) else done.output

    _, told = collected("monday", "tuesday")
    assert told.endswith(
        "monday.zip was not collected: none of the 4 people in it is in the gradebook of class tuesday "
        "(Ada Lovelace_10, Ben B_11, Cem C_12, …); 4 of them are in class monday: add --class monday"
    )
    assert not (course.root / "classroom/tuesday/submitted").exists()
    strangers = {moodle("Gus G", 30, "numbers_chapter.ipynb"): notebook("his")}
    (tmp_path / "new.zip").write_bytes(archive(**strangers))
    _, told = collected("new", "tuesday")
    assert "the one person in it is not in the gradebook of class tuesday (Gus G_30); " in told
    assert "`autograder students add FILE --class tuesday`" in told and "--groups" in told and "\n" not in told

    # One whom the class knows is enough, and whoever came with them is no stranger the next time.
    assert collected("tuesday", "tuesday")[0] == 0
    (tmp_path / "both.zip").write_bytes(
        archive(**strangers | {moodle("Eva E", 10, "numbers_chapter.ipynb"): notebook("her second")})
    )
    assert collected("both", "tuesday")[0] == 0
    assert collected("new", "tuesday")[0] == 0
    # A person who is known, and whose hand-in is not clear, is no stranger.
    (tmp_path / "twice.zip").write_bytes(
        archive(**{moodle("Ada Lovelace", number, "numbers_chapter.ipynb"): notebook() for number in (7, 8)})
    )
    assert collected("twice", "monday")[0] == module.SOMETHING_LEFT
    # A class that nobody was entered into has nothing to compare with.
    (course.root / "classroom/new").mkdir()
    assert collected("monday", "new")[0] == 0


def test_earlier_hand_ins_are_kept(course, inbox):
    name = LAYOUTS["nbgrader"]
    assert inbox(course, {name: notebook("1")})[0] == {("ada", "01_numbers"): "new"}
    assert inbox(course, {name: notebook("1")})[0] == {("ada", "01_numbers"): "unchanged"}
    assert inbox(course, {name: notebook("2")})[0] == {("ada", "01_numbers"): "replaces an earlier one"}
    inbox(course, {name: notebook("3")})
    kept = sorted(inbox.submitted.parent.glob("earlier/ada/01_numbers/*"))
    assert [path.read_bytes() for path in kept] == [notebook("1"), notebook("2")]


def test_of_the_same_notebook_the_first_time_that_is_known_counts(course, inbox, tmp_path):
    def collected(month: int) -> datetime | None:
        with zipfile.ZipFile(tmp_path / "in.zip", "w") as download:
            download.writestr(zipfile.ZipInfo(LAYOUTS["nbgrader"], (2026, month, 1, 12, 0, 0)), notebook())
        [taken], _ = collect(tmp_path / "in.zip", inbox.submitted, course.chapters)
        return taken.handed_in_at

    inbox(course, {LAYOUTS["nbgrader"]: notebook()})
    time_of_it = inbox.submitted / "ada/01_numbers/timestamp.txt"
    time_of_it.unlink()  # as after a download that says no time
    assert collected(5).month == collected(6).month == 5
    assert time_of_it.read_text().startswith("2026-05-01")


def test_of_two_copies_the_later_one_counts_and_the_other_is_kept_and_named(course, inbox):
    files = {"ada/numbers_chapter.ipynb": notebook("1"), "ada/numbers_chapter (1).ipynb": notebook("2")}
    taken, left = inbox(course, files)
    assert taken == {("ada", "01_numbers"): "new"} and "newer" in left["ada/numbers_chapter.ipynb"]
    assert (inbox.submitted / "ada/01_numbers/numbers_chapter.ipynb").read_bytes() == notebook("2")
    assert [p.read_bytes() for p in inbox.submitted.parent.glob("earlier/ada/*/*")] == [notebook("1")]


def pack(mark: str) -> bytes:
    return archive(**{"Ada/01_numbers/numbers_chapter.ipynb": notebook(mark)})


def test_a_former_pack_does_not_take_the_place_of_the_notebook_it_was_made_of(course, inbox, tmp_path):
    folder = {
        "notebooks/01_numbers/numbers_chapter.ipynb": notebook("solved"),
        "handed-in/Ada-01_numbers-20260228-235959.zip": pack("blank"),
        "handed-in/Ada-01_numbers-20260228-235959.txt": b"the receipt",
        "handed-in/Ada-01_numbers-20260301-080000.zip": pack("solved"),  # the same again
        "handed-in/.name": b"Ada",
    }
    taken, left = inbox(course, {"ada/course.zip": archive(**{f"attention/{at}": f for at, f in folder.items()})})
    assert taken == {("ada", "01_numbers"): "new"} and marks(inbox.submitted) == {"ada": {"solved"}}
    [(other, why)] = left.items()
    assert "228-235959.zip" in other and "lies outside handed-in/; this one is kept in earlier/" in why
    assert marks(inbox.submitted.parent / "earlier") == {"ada": {"blank"}}
    # Unpacked, whatever times the files got.
    for second, at in enumerate(sorted(folder, reverse=True)):
        (path := tmp_path / "in/ada" / at).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(folder[at])
        os.utime(path, (1_772_000_000 + second,) * 2)
    collect(tmp_path / "in", inbox.submitted, course.chapters)
    assert marks(inbox.submitted) == {"ada": {"solved"}}


def test_of_packs_that_came_at_once_the_last_counts_and_else_what_came_last(course, inbox, tmp_path):
    packs = {
        "handed-in/Ada-01_numbers-20260302-080000.zip": pack("second"),
        "handed-in/Ada-01_numbers-20260301-080000.zip": pack("first"),
    }
    inbox(course, {moodle("ada", 7, "packs.zip"): archive(**packs)})
    assert marks(inbox.submitted) == {"ada": {"second"}}
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as later:
        for day, name, content in ((3, "numbers_chapter.ipynb", notebook("third")), (4, "packs.zip", archive(**packs))):
            later.writestr(zipfile.ZipInfo(moodle("ada", 7, name), (2026, 3, day, 12, 0, 0)), content)
    collect(tmp_path / "in.zip", inbox.submitted, course.chapters)
    assert marks(inbox.submitted) == {"ada": {"second"}} and "third" in marks(inbox.submitted.parent / "earlier")["ada"]


def test_a_group_hands_in_once(course, inbox):
    files = {"ada+ben/numbers_chapter.ipynb": notebook(), "Team 7/numbers_chapter.ipynb": notebook()}
    taken, _ = inbox(course, files, groups={"Team 7": ["cem", "dua"]})
    assert {student for student, _ in taken} == {"ada", "ben", "cem", "dua"}


def test_nothing_is_written_elsewhere_and_what_is_left_is_named(course, inbox, tmp_path):
    link = zipfile.ZipInfo("ada/link.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("../../evil/numbers_chapter.ipynb", notebook())
        out.writestr("/etc/numbers_chapter.ipynb", notebook())
        out.writestr(link, "/etc/passwd")
        out.writestr("ada/bomb.ipynb", b" " * (21 << 20))
        out.writestr("ada/essay.pdf", b"x")
        out.writestr("ada/unknown.ipynb", notebook(exercise="nothing"))
        out.writestr("loose.ipynb", notebook())
        out.writestr("ben/numbers_chapter.ipynb", notebook())
    (tmp_path / "in.zip").write_bytes(packed.getvalue())
    before = set(tmp_path.rglob("*"))
    taken, left = collect(tmp_path / "in.zip", inbox.submitted, course.chapters)
    assert [t.student for t in taken] == ["ben"]
    assert len(left) == 7, left
    new = {p for p in set(tmp_path.rglob("*")) - before if p.is_file()}
    assert {p.relative_to(inbox.submitted).parts[0] for p in new} == {"ben"}


def test_a_link_in_a_folder_is_not_followed(course, tmp_path):
    (tmp_path / "secret.ipynb").write_bytes(notebook())
    (tmp_path / "in/ada").mkdir(parents=True)
    (tmp_path / "in/ada/numbers_chapter.ipynb").symlink_to(tmp_path / "secret.ipynb")
    left = []
    assert list(_files(tmp_path / "in", left)) == [] and "link" in left[0].why
    with pytest.raises(CourseError, match="no zip archive"):
        (tmp_path / "x.zip").write_bytes(b"PK")
        collect(tmp_path / "x.zip", tmp_path / "s", course.chapters)


def test_what_lies_in_a_wrong_place_is_named(course, hand_in):
    right = hand_in("ada", "01_numbers")
    submitted = course.root / "classroom/submitted"
    for place in (
        "ben/01-numbers/numbers_chapter.ipynb",
        "cem/numbers_chapter.ipynb",
        "dua/01_numbers/numbers_chapter (1).ipynb",
        "eva.zip",
        "fay/numbers.zip",
    ):
        (submitted / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(right, submitted / place)
    shutil.copy(right, right.with_name("notes.ipynb"))
    found = {str(one.place): one.why for one in strays(submitted, course.chapters)}
    assert {Path(place).parts[0] for place in found} == {"ben", "cem", "dua", "eva.zip", "fay"}
    assert "should be called numbers_chapter.ipynb" in found["dua/01_numbers/numbers_chapter (1).ipynb"]
    assert [str(one.place) for one in strays(submitted, course.chapters, "cem")] == ["cem/numbers_chapter.ipynb"]
    told = CliRunner().invoke(cli.app, ["grade", "--workers", "1"], catch_exceptions=False)
    assert told.exit_code == 3 and "not graded: cem/numbers_chapter.ipynb" in told.stderr

    told = CliRunner().invoke(cli.app, ["collect", str(submitted), "--submitted", "sorted"], catch_exceptions=False)
    assert "cem, 01_numbers: new" in told.stdout
    assert {p.parts[-3] for p in Path("sorted").rglob("*.ipynb")} == {"ada", "ben", "cem", "dua"}


def test_a_name_that_could_be_two_chapters_goes_by_the_exercises(course):
    assert match_chapter(Path("final.ipynb"), notebook(exercise="shout"), course.chapters).folder == "02_words"
    assert match_chapter(Path("final.ipynb"), b"{", course.chapters) is None


# What a student can write, and how it might become another's hand-in: the name of the file, of the one who hands in.
# In each, Eve (number 666) attacks Ada (number 123 in Moodle, 77 in Canvas), whom the gradebook knows.
ADA = [("Ada Lovelace", "ada"), ("Lovelace Ada", "ada"), ("77", "ada"), ("ada@uni.edu", "ada"), ("ada", "ada")]
MOODLES = [("123", "ada")]
EVE = [("Eve Evil", "eve"), ("Evil Eve", "eve"), ("666", "eve"), ("eve", "eve")]
IMPERSONATIONS = {
    "Moodle, the file bears Ada's prefix": moodle(
        "Eve Evil", 666, "Ada Lovelace_123_assignsubmission_file_numbers_chapter.ipynb"
    ),
    "Moodle, so does the file in a folder": moodle(
        "Eve Evil", 666, "Ada Lovelace_123_assignsubmission_file_/numbers_chapter.ipynb", folders=True
    ),
    "Moodle, the file bears Ada's folder": moodle("Eve Evil", 666, "ada/../ada/numbers_chapter.ipynb", folders=True),
    "Moodle, Eve is called like Ada": moodle("Ada Lovelace", 666, "numbers_chapter.ipynb"),
    "Moodle, Eve is called like Ada's folder": moodle("ada", 666, "numbers_chapter.ipynb"),
    "Moodle, Eve is called like Ada's address": moodle("ada@uni.edu", 666, "numbers_chapter.ipynb"),
    "Moodle, Eve is called like Ada's number": moodle("77", 666, "numbers_chapter.ipynb"),
    "Moodle, Eve is called like Ada's prefix": moodle("Ada Lovelace_123_assignsubmission_file_", 666, "x.ipynb"),
    "Moodle, Eve is called like a group": moodle("Zoe+ada", 666, "numbers_chapter.ipynb"),
    "Canvas, the file bears Ada's fields": canvas("Evil, Eve", 666, 991, "lovelaceada_77_990_numbers_chapter.ipynb"),
    "Canvas, Eve is called like Ada": canvas("Lovelace, Ada", 666, 991, "numbers_chapter.ipynb"),
    "Canvas, Eve is called like Ada's fields": canvas("lovelaceada_77", 666, 991, "numbers_chapter.ipynb"),
    "Canvas, so, twice": canvas("lovelaceada__77__990_", 666, 991, "numbers_chapter.ipynb"),
    "Canvas, Eve's name reads as Moodle's": canvas(
        "ada__123__assignsubmission_file", 666, 991, "numbers_chapter.ipynb"
    ),
    "Canvas, Eve is called like a group": canvas("zoe+ada", 666, 991, "numbers_chapter.ipynb"),
}


@pytest.mark.parametrize("numbers_known", [True, False])
@pytest.mark.parametrize("attack", IMPERSONATIONS)
def test_nobody_takes_anothers_place(course, inbox, attack, numbers_known):
    system = attack.split(",")[0]
    hers = moodle("Ada Lovelace", 123, "x.ipynb") if system == "Moodle" else canvas("Lovelace, Ada", 77, 990, "x.ipynb")
    files = {hers: notebook("Ada's"), IMPERSONATIONS[attack]: notebook("Eve's")}
    known = ADA + (MOODLES + EVE if numbers_known else EVE[:2])
    _, left = inbox(course, files, known=known)
    fired = [m for m in marks(inbox.submitted).values() if "Eve's" in m] or [p for p in left if p != hers]
    assert fired, "Eve's file was never looked at"
    got = marks(inbox.submitted)
    assert "Eve's" not in got.get("ada", set())
    assert got.get("ada") == {"Ada's"} or "--groups TABLE" in left[hers]
    if numbers_known or attack != "Moodle, Eve is called like Ada":  # two of one name, and nothing tells them apart
        assert got["ada"] == {"Ada's"}
    assert set(got) <= {"ada", "eve"} or not numbers_known or system == "Moodle"


def test_the_second_of_two_equal_names_is_named_with_what_to_type_and_that_helps(course, inbox, tmp_path):
    files = {moodle("Ann Lee", n, "numbers_chapter.ipynb"): notebook(str(n)) for n in (5, 6)}
    taken, left = inbox(course, files)
    assert taken == {} and all("put the line Ann Lee_" in why for why in left.values()) and len(left) == 2
    taken, left = inbox(course, files, groups={"Ann Lee_5": ["ann"], "Ann Lee_6": ["anna"]})
    assert marks(inbox.submitted) == {"ann": {"5"}, "anna": {"6"}} and not left


def test_who_came_by_a_name_before_keeps_it(course, inbox):
    """One display name, two people, one download after the other."""
    for first, second in ((moodle, (5, 6)), (lambda name, n, file: canvas(name, n, 990 + n, file), (7, 8))):
        one, other = (first("Ben B", n, "numbers_chapter.ipynb") for n in second)
        taken, left = inbox(course, {one: notebook("his")})
        [(student, _)] = taken
        taken, left = inbox(course, {other: notebook("another's")})
        assert taken == {} and "number" in left[other] and "before" in left[other]
        assert inbox(course, {one: notebook("his, again")})[0] == {(student, "01_numbers"): "replaces an earlier one"}
        assert marks(inbox.submitted)[student] == {"his, again"}


def test_a_name_alone_does_not_replace_what_came_otherwise(course, inbox):
    """What an instructor sorted by hand, say, or a server took."""
    inbox(course, {"Ada Lovelace/numbers_chapter.ipynb": notebook("hers")})
    file = moodle("Ada Lovelace", 666, "numbers_chapter.ipynb")
    taken, left = inbox(course, {file: notebook("another's")})
    assert taken == {} and "put the line Ada Lovelace_666,STUDENT into a table" in left[file]
    assert marks(inbox.submitted) == {"Ada Lovelace": {"hers"}}
    taken, left = inbox(course, {file: notebook("hers, again")}, groups={"Ada Lovelace_666": ["Ada Lovelace"]})
    assert marks(inbox.submitted) == {"Ada Lovelace": {"hers, again"}} and not left


def test_a_number_of_the_gradebook_decides_whatever_the_name(course, inbox):
    files = {
        canvas("Anybody", 666, 991, "x.ipynb"): notebook("Eve's"),
        canvas("", 77, 990, "x.ipynb"): notebook("Ada's"),
    }
    assert inbox(course, files, known=ADA + EVE)[1] == {}
    assert marks(inbox.submitted) == {"ada": {"Ada's"}, "eve": {"Eve's"}}


@pytest.mark.parametrize("first", ["the team", "Eve"])
def test_whoever_is_called_like_a_group_is_not_the_group(course, inbox, first):
    """Not before it, not after it, not in one download with it, and not beside one of it; a number of it decides."""
    groups, known = {"Team 7": ["ada", "ben"]}, [*ADA, ("900", "ben"), *EVE]
    team, evil, hers = (
        canvas(called, number, 991, "x.ipynb")
        for called, number in (("Team 7", 900), ("Team 7", 666), ("Lovelace, Ada", 77))
    )
    files = {team: notebook("the team's"), evil: notebook("Eve's")}
    for name in [team, evil] if first == "the team" else [evil, team]:
        taken, left = inbox(course, {name: files[name]}, groups=groups, known=known)
        assert not taken if name == evil else set(taken) == {("ada", "01_numbers"), ("ben", "01_numbers")}
        assert name != evil or "the number of none of it: put the line team7_666,STUDENT" in left[evil]
    assert marks(inbox.submitted) == {"ada": {"the team's"}, "ben": {"the team's"}}
    assert list(inbox(course, files, groups=groups, known=known)[1]) == [evil]
    shutil.rmtree(inbox.submitted)
    inbox(course, {hers: notebook("Ada's"), evil: notebook("Eve's")}, groups=groups, known=known)
    assert marks(inbox.submitted) == {"ada": {"Ada's"}}


def test_a_group_whose_numbers_nobody_knows_is_named_with_what_to_type_and_that_helps(course, inbox):
    said = {"Team 7_900": moodle("Team 7", 900, "x.ipynb"), "team7_900": canvas("Team 7", 900, 991, "x.ipynb")}
    for label, file in said.items():
        taken, left = inbox(course, {file: notebook("the team's")}, groups={"Team 7": ["ada"]})
        assert taken == {} and f"put the line {label},STUDENT" in left[file]
        taken, left = inbox(course, {file: notebook("the team's")}, groups={label: ["ada", "ben"]})
        assert {student for student, _ in taken} == {"ada", "ben"} and left == {}


def test_the_very_same_file_counts_from_the_earlier_of_its_times(course, tmp_path):
    """And that time is shown, whichever download is collected first; another file in between has its own."""
    submitted = tmp_path / "classroom/submitted"
    stamp = submitted / "ada/01_numbers/timestamp.txt"

    def collected(mark: str, *when: int) -> tuple[str, str]:
        (tmp_path / "in.zip").write_bytes(archive((*when, 0, 0, 0), **{"ada/x.ipynb": notebook(mark)}))
        [one], _ = collect(tmp_path / "in.zip", submitted, course.chapters)
        text = stamp.read_text() if stamp.exists() else ""
        assert (f"{one.handed_in_at:%Y-%m-%d %H:%M:%S} UTC\n" if one.handed_in_at else "") == text
        there = f"{_time_in(text.strip()).astimezone():%m-%d}" if text else ""
        return one.how, there

    assert collected("1", 1980, 1, 1) == ("new", "")
    assert collected("1", 2026, 3, 9) == ("unchanged", "03-09")
    assert collected("1", 1980, 1, 1) == ("unchanged", "03-09")
    assert collected("1", 2026, 3, 5) == ("unchanged", "03-05")
    assert collected("1", 2026, 3, 7) == ("unchanged", "03-05")
    assert collected("2", 2026, 3, 7) == ("replaces an earlier one", "03-07")
    assert collected("1", 2026, 3, 8) == ("replaces an earlier one", "03-08")


def test_a_number_of_one_assignment_that_is_by_chance_somebodys_is_not_theirs(course, inbox):
    """Moodle counts participants anew for each assignment."""
    evil, hers = moodle("Eve Evil", 77, "x.ipynb"), moodle("Ada Lovelace", 123, "x.ipynb")
    for known in (ADA, ADA + EVE):
        _, left = inbox(course, {evil: notebook("Eve's"), hers: notebook("Ada's")}, known=known)
        assert marks(inbox.submitted) == {"ada": {"Ada's"}} and "the number is ada's and the name" in left[evil]
        assert "put the line Eve Evil_77,STUDENT" in left[evil]


def test_names_that_differ_by_blanks_or_case_are_different_people(course, inbox):
    names = ["Ann Alee", "Anna Lee", "anna lee", "AnnaLee"]
    files = {moodle(name, 10 + n, "numbers_chapter.ipynb"): notebook(name) for n, name in enumerate(names)}
    assert inbox(course, files, known=[("Anna Lee", "anna")])[1] == {}
    assert marks(inbox.submitted) == {("anna" if n == "Anna Lee" else n): {n} for n in names}


def test_what_a_file_is_called_like_in_canvas_is_not_taken_for_a_number(course, inbox):
    files = {
        canvas("Lovelace, Ada", 77, 991, "01_numbers.zip"): archive(**{"numbers_chapter.ipynb": notebook("Ada's")}),
        canvas("Boole, George", 78, 992, "10_20_words_chapter.ipynb"): notebook("his", "shout"),
    }
    assert inbox(course, files)[1] == {}
    assert marks(inbox.submitted) == {"lovelaceada": {"Ada's"}, "boolegeorge": {"his"}}


# What hostile names are made of: what an LMS writes, what paths and folders mean, what looks like something else.
PIECES = st.sampled_from(
    """_ __ _77_ _123_ _666 _991_ 77 123 ada lovelaceada Ada|Lovelace Lovelace,|Ada + | .. / \\ _LATE .zip . - (1)
    _assignsubmission_file_ _assignsubmission_ submission \u202e \u200b \u0661 é e\u0301 ada@uni.edu numbers_chapter
    words_chapter.ipynb""".replace("|", "\u2423").split()
).map(lambda piece: piece.replace("\u2423", " "))
NAMES = st.lists(PIECES | st.text(max_size=3), max_size=7).map("".join)


@pytest.mark.parametrize("system", ["Moodle", "Moodle's folders", "Canvas"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, file=NAMES, known=st.booleans(), first=st.booleans())
@example(name="lovelaceada_77", file="numbers_chapter", known=False, first=True)
@example(name="Ada Lovelace", file="123_assignsubmission_file_x", known=False, first=False)
@example(name="", file="77_77_", known=False, first=False)
def test_whatever_a_student_is_called_and_calls_a_file(course, system, name, file, known, first):
    """Ada's folder holds Ada's work or nothing; whoever is called anything is taken for one person, or named."""
    if system == "Canvas":
        hers, evil = canvas("Lovelace, Ada", 77, 990, "x.ipynb"), canvas(name, 666, 991, f"{file}.ipynb")
    else:
        folders = system != "Moodle"
        hers = moodle("Ada Lovelace", 123, "x.ipynb", folders)
        evil = moodle(name, 666, f"{file}.ipynb".replace("\x00", ""), folders)
    files = [(hers, notebook("Ada's")), (evil, notebook("Eve's"))]
    gradebook = ADA + (MOODLES + EVE if known else [])
    with tempfile.TemporaryDirectory() as folder:
        submitted = Path(folder, "classroom/submitted")
        with zipfile.ZipFile(Path(folder, "in.zip"), "w") as out:
            for path, content in files if first else files[::-1]:
                out.writestr(zipfile.ZipInfo(path.encode(errors="replace").decode(), LMS_TIME), content)
        taken, left = collect(Path(folder, "in.zip"), submitted, course.chapters, gradebook)
        got = marks(submitted)
        assert got.get("ada", {"Ada's"}) == {"Ada's"}
        assert len(taken) + len(left) == 2
        assert sum("Eve's" in found for found in got.values()) <= 1
        inside = {p for p in Path(folder).rglob("*") if p.is_file()} - {Path(folder, "in.zip")}
        assert {p.relative_to(submitted).parts[1:] for p in inside} <= {
            ("01_numbers", "numbers_chapter.ipynb"), ("01_numbers", "timestamp.txt"), (NOTE,)
        } | {("02_words", "words_chapter.ipynb"), ("02_words", "timestamp.txt")}  # fmt: skip
        times = {p.read_text() for p in submitted.rglob("timestamp.txt")}
        assert times <= {f"{datetime(*LMS_TIME).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC\n"}


@given(NAMES | st.text(max_size=60))
def test_what_comes_after_moodles_fields_decides_nothing(file):
    for path in (moodle("Ada Lovelace", 123, file), f"{moodle('Ada Lovelace', 123)}/{file}"):
        assert {(one.name, one.number) for one, _ in readings(PurePosixPath(path))} == {("Ada Lovelace", "123")}


def test_a_students_dates_and_timestamp_do_not_count(course, inbox, tmp_path):
    """The date in an archive of one's own, a timestamp.txt in it; in a folder the file's time is the LMS's."""
    early = (2020, 1, 1, 0, 0, 0)
    stamped = {"numbers_chapter.ipynb": notebook("Eve's"), "timestamp.txt": b"2020-01-01 00:00:00 UTC"}
    name = moodle("Eve Evil", 666, "mine.zip", folders=True)
    inbox(course, {name: archive(early, **stamped), moodle("Eve Evil", 666, "timestamp.txt", True): b"2020-01-01"})
    told = inbox.submitted / "Eve Evil/01_numbers/timestamp.txt"
    assert told.read_text() == f"{datetime(*LMS_TIME).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC\n"

    unpacked = tmp_path / "unpacked" / moodle("Eve Evil", 666, "numbers_chapter.ipynb", folders=True)
    unpacked.parent.mkdir(parents=True)
    unpacked.write_bytes(notebook("Eve's second"))
    unpacked.with_name("timestamp.txt").write_text("2020-01-01 00:00:00 UTC")
    when = datetime(2026, 3, 5, 8, 0, tzinfo=UTC).timestamp()
    os.utime(unpacked, (when, when))
    taken, left = collect(tmp_path / "unpacked", inbox.submitted, course.chapters)
    assert [t.how for t in taken] == ["replaces an earlier one"] and left == []
    assert told.read_text() == "2026-03-05 08:00:00 UTC\n"

    # A time that nobody knows is no earlier one: not in the folder, and not in the gradebook either.
    inbox(course, {})
    (tmp_path / "in.zip").write_bytes(archive((1980, 1, 1, 0, 0, 0), **{name: archive(early, **stamped)}))
    [last], _ = collect(tmp_path / "in.zip", inbox.submitted, course.chapters)
    assert last.handed_in_at is None and not told.exists()


def test_an_unknown_time_is_shown_and_is_nobodys_earlier_one(course, hand_in, tmp_path):
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli.app, [*map(str, arguments)], catch_exceptions=False)
        return done.stdout

    right = hand_in("ada", "01_numbers", double="return 2 * x").read_bytes()
    shutil.rmtree(course.root / "classroom/submitted")
    (tmp_path / "1.zip").write_bytes(archive(**{"ada/x.ipynb": right}))
    (tmp_path / "2.zip").write_bytes(archive((1980, 1, 1, 0, 0, 0), **{"ada/x.ipynb": right + b" "}))
    assert "handed in 2026-0" in run("collect", tmp_path / "1.zip")
    run("grade", "--workers", 1)
    assert "handed in at an unknown time" in run("collect", tmp_path / "2.zip")
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        assert db.execute("SELECT timestamp FROM submitted_assignment").fetchone() != (None,)
        db.execute("UPDATE assignment SET duedate = '2026-01-01 00:00:00.000000'")
    [row] = [line for line in run("grade", "--workers", 1).splitlines() if " ada " in line]
    assert row.split()[3] == "?"
    with sqlite3.connect(course.root / "classroom/gradebook.db") as db:
        assert db.execute("SELECT timestamp FROM submitted_assignment").fetchall() == [(None,)]


def entries(count: int) -> bytes:
    """An archive of so many empty notebooks."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for n in range(count):
            out.writestr(f"{n}.ipynb", b"")
    return packed.getvalue()


def bomb(megabytes: int) -> bytes:
    """Less than a megabyte that is ten times so many megabytes unpacked."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for n in range(10):
            out.writestr(f"{n}.ipynb", b" " * (megabytes << 20))
    return packed.getvalue()


def broken(kind: str) -> bytes:
    """An archive that makes Python's reader raise something of its own."""
    packed = io.BytesIO()
    how = zipfile.ZIP_LZMA if kind == "LZMA" else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(packed, "w", how) as out:
        out.writestr("numbers_chapter.ipynb", notebook())
    content = bytearray(packed.getvalue())
    if kind == "a bad stream":
        content[60:90] = b"\xff" * 30
    if kind == "a wrong version":
        at = content.index(b"PK\x01\x02")
        content[at + 6 : at + 8] = struct.pack("<H", 999)
    if kind == "a password":
        for at in (content.index(b"PK\x01\x02") + 8, 6):
            content[at] |= 1
    return bytes(content)


HEAVY = {
    "a bomb": lambda: bomb(19),
    "a bomb of large files": lambda: bomb(21),
    "too many files": lambda: entries(1_001),
    "too deep": lambda: archive(**{"/".join("d" * 25) + "/numbers_chapter.ipynb": notebook()}),
    "archives in archives": lambda: archive(**{"a.zip": archive(**{"b.zip": archive(**{"x.ipynb": notebook()})})}),
    "a large file": lambda: archive(**{"x.ipynb": b" " * (21 << 20)}),
    **{kind: lambda kind=kind: broken(kind) for kind in ("a bad stream", "a wrong version", "a password", "LZMA")},
    "a name too long": lambda: archive(**{f"{'x' * 5_000}.txt": notebook()}),
    "no archive": lambda: b"PK\x03\x04",
}


@pytest.mark.parametrize("kind", HEAVY)
def test_whoever_hands_in_too_much_is_named_and_the_class_goes_on(course, inbox, kind):
    evil = moodle("Eve Evil", 666, "mine.zip", folders=True)
    files = {evil: HEAVY[kind](), moodle("Ada Lovelace", 123, "numbers_chapter.ipynb"): notebook("Ada's")}
    files |= {f"ben{n}/numbers_chapter.ipynb": notebook(str(n)) for n in range(3)}
    taken, left = inbox(course, files)
    assert {student for student, _ in taken} == {"Ada Lovelace", "ben0", "ben1", "ben2"}
    assert len(left) == 1 and next(iter(left)).startswith("Eve Evil_666"), left
    assert "\n" not in "".join(left.values())


def test_a_cap_is_each_students_own(course, inbox, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES_TOGETHER", 1_000)
    files = {f"student{n}/numbers_chapter.ipynb": notebook("x" * 500) for n in range(20)}
    assert len(inbox(course, files)[0]) == 20
    files["student0/words_chapter.ipynb"] = notebook("x" * 500, "shout")
    assert inbox(course, files)[1] == {
        "student0": "more than 0 MB from one student: nothing of it is taken; ask for the notebooks alone"
    }


def test_kept_work_is_never_overwritten(course, inbox):
    """Whatever lies in earlier/: a gap in the numbers, a file of another's making, the same work again."""
    name = LAYOUTS["nbgrader"]
    for mark in "123":
        inbox(course, {name: notebook(mark)})
    earlier = inbox.submitted.parent / "earlier/ada/01_numbers"
    (earlier / "numbers_chapter_001.ipynb").unlink()
    (earlier / "numbers_chapter_003.ipynb").write_bytes(b"mine")
    for mark in "456453":
        inbox(course, {name: notebook(mark)})
    kept = {path.read_bytes() for path in earlier.iterdir()}
    assert kept == {b"mine", *(notebook(mark) for mark in "23456")}


def test_what_cannot_be_written_is_named_and_the_class_goes_on(course, inbox, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    inbox.submitted.mkdir(parents=True)
    (inbox.submitted / "ada").symlink_to(tmp_path / "elsewhere")
    (inbox.submitted / "ben/01_numbers/numbers_chapter.ipynb").mkdir(parents=True)
    taken, left = inbox(course, {f"{name}/numbers_chapter.ipynb": notebook() for name in ("ada", "ben", "cem")})
    assert set(taken) == {("cem", "01_numbers")} and len(left) == 2 and not list((tmp_path / "elsewhere").iterdir())


def test_a_whole_copy_of_the_course_is_the_students_work_alone(course, inbox):
    """The handed-out notebooks and the answers of earlier chapters lie in it too, and what the course kept aside."""
    copy = {
        "attention/notebooks/01_numbers/numbers_chapter.ipynb": notebook("Ada's"),
        "attention/notebooks/01_numbers/numbers_chapter.ipynb.2026-03-01-120000.bak": notebook("older"),
        "attention/originals/01_numbers/numbers_chapter.ipynb": notebook("handed out"),
        "attention/notebooks/reference/words_chapter.ipynb": notebook("an answer", "shout"),
    }
    taken, left = inbox(course, {moodle("Ada Lovelace", 123, "all.zip", folders=True): archive(**copy)})
    assert taken == {("Ada Lovelace", "01_numbers"): "new"} and marks(inbox.submitted) == {"Ada Lovelace": {"Ada's"}}
    assert {Path(place).name for place in left} == {"originals", "reference"}


def test_names_are_read_by_nbgraders_own_expression(course, inbox):
    """`FileNameCollectorPlugin.named_regexp`; one that takes what a student wrote is found out."""
    pattern = r".*_(?P<student_id>\w+?)_attempt_(?P<timestamp>[0-9\-]+)_(?P<file_id>.+)"
    files = {
        "ps1_ada_attempt_2026-01-30-15-00-00_numbers_chapter.ipynb": notebook("Ada's"),
        "ps1_eve_attempt_2026-01-30-15-00-00_x_ada_attempt_2020-01-30-15-00-00_numbers_chapter.ipynb": notebook(
            "Eve's"
        ),
    }
    taken, left = inbox(course, files, pattern=pattern)
    assert taken == {("ada", "01_numbers"): "new"} and marks(inbox.submitted) == {"ada": {"Ada's"}}
    assert "may say" in next(iter(left.values()))
    assert "2026-01-30 15:00:00" in (inbox.submitted / "ada/01_numbers/timestamp.txt").read_text()
