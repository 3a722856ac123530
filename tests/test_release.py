"""The release: nbgrader's, in step with solutions/, in step with the curriculum, and without a leak."""

import contextlib
import copy
import shutil
import subprocess
import sys

import nbformat
import pytest
from typer.testing import CliRunner

from autograder import cli
from autograder.course.curriculum import Chapter, find_course
from autograder.course.release import against_curriculum, broken_checks, leaks


@pytest.fixture(scope="module")
def course(repository):
    return find_course(repository)


@pytest.fixture(scope="module")
def chapter(course):
    return course.find("01")


@pytest.fixture
def source(course, chapter):
    return nbformat.read(course.solution(chapter), as_version=4)


@pytest.fixture
def released(course, chapter):
    return nbformat.read(course.notebook(chapter), as_version=4)


def cell(notebook, name):
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)


def release(root, *arguments):
    with contextlib.chdir(root):
        return CliRunner().invoke(cli.app, ["release", *arguments])


def test_the_notebooks_are_what_the_solutions_give(repository):
    done = release(repository, "--check")
    assert (done.exit_code, done.stderr) == (0, "")


def test_drift_is_named_and_a_release_mends_it(repository, tmp_path):
    for name in ("solutions/01_weighted_averages", "notebooks/01_weighted_averages"):
        shutil.copytree(repository / name, tmp_path / name, ignore=shutil.ignore_patterns("*.bak"))
    for name in ("nbgrader_config.py", "solutions/curriculum.toml", "notebooks/curriculum.toml"):
        shutil.copy(repository / name, tmp_path / name)
    notebook = tmp_path / "notebooks/01_weighted_averages/weighted_averages.ipynb"
    notebook.write_text(notebook.read_text().replace("Attention, in the end,", "Attention, somehow,"))
    (notebook.parent / "stray.txt").write_text("x")
    done = release(tmp_path, "--check")
    assert done.exit_code == 1
    assert "weighted_averages.ipynb is not what solutions/ gives: run `autograder release" in done.stderr
    assert "stray.txt" in done.stderr
    assert release(tmp_path).exit_code == 0
    assert release(tmp_path, "--check").exit_code == 0
    assert "Attention, in the end," in notebook.read_text()


def test_the_release_as_it_is_leaks_nothing(source, released):
    assert leaks(source, released) == []


@pytest.mark.parametrize(
    ("name", "spoil", "complaint"),
    [
        (
            "window_weights",
            lambda c: c.update(source=c.source + "\n    return band / band.sum(dim=1, keepdim=True)"),
            "window_weights: the line",
        ),
        (
            "weighted_avg",
            lambda c: c.update(source="def weighted_avg(x, weights): ..."),
            "nothing is left for the student",
        ),
        (
            "weighted_avg_check",
            lambda c: c.update(source=c.source + "\nfrom checks.weighted_averages.hidden import x"),
            "contains '.hidden import'",
        ),
        ("weighted_avg_check", lambda c: c.update(outputs=[{"output_type": "stream"}]), "still has its output"),
    ],
)
def test_each_kind_of_leak_is_named(source, released, name, spoil, complaint):
    spoil(cell(released, name))
    assert any(complaint in c for c in leaks(source, released))


def test_a_model_answer_left_in_is_named(source, released):
    cell(released, "why_matrix_form").source = cell(source, "why_matrix_form").source
    assert any(c.startswith("why_matrix_form: the line") for c in leaks(source, released))


def test_a_solution_shown_in_another_cell_is_named(source, released):
    text = copy.deepcopy(released.cells[0])
    text.source = '    return torch.einsum("...ij,...jk->...ik", weights, x)'
    released.cells.append(text)
    assert any(c.startswith("weighted_avg_einsum: the line") for c in leaks(source, released))


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("weighted_avg_check", {"points": 3}, "weighted_avg is worth 3 points, not the 1 of the curriculum"),
        ("weighted_avg", {"grade_id": "weighted_average"}, "the curriculum knows no cell weighted_average"),
        ("weighted_avg", {"grade_id": "weighted_average"}, "there is no code cell with the grade_id weighted_avg"),
        ("weighted_avg_check", {"grade_id": "weighted_avg_test"}, "the curriculum knows no cell weighted_avg_test"),
        ("why_matrix_form", {"grade": False}, "there is no written cell with the grade_id why_matrix_form"),
    ],
)
def test_each_difference_from_the_curriculum_is_named(chapter, source, name, change, complaint):
    cell(source, name).metadata.nbgrader.update(change)
    assert complaint in against_curriculum(chapter, source)


def test_a_check_without_hidden_tests_is_named(chapter, source):
    cell(source, "weighted_avg_check").source = "assert True"
    assert any("weighted_avg_check (no hidden test" in c for c in against_curriculum(chapter, source))


def test_every_chapter_keeps_the_curriculum(course):
    complaints = {
        c.folder: against_curriculum(c, nbformat.read(course.solution(c), as_version=4)) for c in course.chapters
    }
    assert {folder: wrong for folder, wrong in complaints.items() if wrong} == {}


def test_a_release_loses_no_work(repository, tmp_path):
    for name in ("solutions/01_weighted_averages", "notebooks/01_weighted_averages"):
        shutil.copytree(repository / name, tmp_path / name, ignore=shutil.ignore_patterns("*.bak"))
    for name in ("nbgrader_config.py", "solutions/curriculum.toml", "notebooks/curriculum.toml"):
        shutil.copy(repository / name, tmp_path / name)
    folder = tmp_path / "notebooks/01_weighted_averages"
    notebook = nbformat.read(folder / "weighted_averages.ipynb", as_version=4)
    cell(notebook, "weighted_avg").source = "def weighted_avg(x, weights):\n    return weights @ x"
    nbformat.write(notebook, folder / "weighted_averages.ipynb")
    (folder / "scratch.txt").write_text("my notes")
    done = release(tmp_path, "01")
    assert done.exit_code == 0 and done.stderr.count("kept aside as") == 2
    (kept,) = folder.glob("weighted_averages.ipynb.*.bak")
    assert "return weights @ x" in kept.read_text()
    (notes,) = folder.glob("scratch.txt.*.bak")
    assert notes.read_text() == "my notes"
    assert "raise NotImplementedError()" in (folder / "weighted_averages.ipynb").read_text()
    assert release(tmp_path, "01", "--check").exit_code == 0
    assert "kept aside" not in release(tmp_path, "01").stderr
    # Nor does nbgrader's exchange hand it out.
    (exchange := tmp_path / "exchange").mkdir()
    exchange.chmod(0o777)
    hand_out = ["release_assignment", folder.name, f"--Exchange.root={exchange}"]
    subprocess.run([sys.executable, "-m", "nbgrader", *hand_out], cwd=tmp_path, check=True, capture_output=True)
    handed_out = {path.name for path in exchange.rglob("*") if path.is_file()}
    assert "weighted_averages.ipynb" in handed_out and not [name for name in handed_out if name.endswith(".bak")]


@pytest.mark.parametrize("text, told", [("x = (", "line 1: SyntaxError"), ("\n{}[1]", "line 2: KeyError: 1")])
def test_a_visible_check_that_does_not_import_is_named(tmp_path, monkeypatch, text, told):
    import checks

    name = f"odd_chapter_{len(text)}"  # what was imported once stays known
    (tmp_path / name).mkdir()
    (tmp_path / name / "visible.py").write_text(text)
    chapter = Chapter(f"99_{name}", name, "Odd", ())
    assert broken_checks(chapter) == [], "a course may keep its checks elsewhere"
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    [line] = broken_checks(chapter)
    assert f"{tmp_path}/{name}/visible.py" in line and told in line
