"""Collecting a download: each layout, nothing lost, nothing written elsewhere; and what lies in a wrong place."""

import io
import json
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import cli
from autograder.course.collect import _files, collect, match_chapter, strays
from autograder.course.curriculum import CourseError


def notebook(mark: str = "", exercise: str = "double") -> bytes:
    cell = {"cell_type": "code", "source": mark, "metadata": {"nbgrader": {"grade_id": exercise}}}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for name, content in files.items():
            out.writestr(zipfile.ZipInfo(name, (2026, 3, 1, 12, 0, 0)), content)
    return packed.getvalue()


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


def test_earlier_hand_ins_are_kept(course, inbox):
    name = LAYOUTS["nbgrader"]
    assert inbox(course, {name: notebook("1")})[0] == {("ada", "01_numbers"): "new"}
    assert inbox(course, {name: notebook("1")})[0] == {("ada", "01_numbers"): "unchanged"}
    assert inbox(course, {name: notebook("2")})[0] == {("ada", "01_numbers"): "replaces an earlier one"}
    inbox(course, {name: notebook("3")})
    kept = sorted(inbox.submitted.parent.glob("earlier/ada/01_numbers/*"))
    assert [path.read_bytes() for path in kept] == [notebook("1"), notebook("2")]


def test_of_two_copies_the_later_one_counts_and_the_other_is_kept_and_named(course, inbox):
    files = {"ada/numbers_chapter.ipynb": notebook("1"), "ada/numbers_chapter (1).ipynb": notebook("2")}
    taken, left = inbox(course, files)
    assert taken == {("ada", "01_numbers"): "new"} and "newer" in left["ada/numbers_chapter.ipynb"]
    assert (inbox.submitted / "ada/01_numbers/numbers_chapter.ipynb").read_bytes() == notebook("2")
    assert [p.read_bytes() for p in inbox.submitted.parent.glob("earlier/ada/*/*")] == [notebook("1")]


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
