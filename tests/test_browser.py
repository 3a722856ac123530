"""JupyterLab in a real browser: a student answers, checks and validates; an instructor reads marks and grades."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import psutil
import pytest
from nbgrader.api import Gradebook
from pages import open_notebook

from autograder.course import example_class
from autograder.course.curriculum import find_course

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium"),
    pytest.mark.xdist_group("lab"),  # one JupyterLab for all of them
    pytest.mark.flaky(reruns=1, only_rerun=["TimeoutError", "no kernel"]),  # on a busy machine it now and then hangs
]

CHAPTER = "01_weighted_averages"
WINDOWING = '{"windowingMode": "none"}'  # every cell is in the page, so that it can be found


@pytest.fixture(scope="module")
def folder(repository, tmp_path_factory):
    """A copy of what `make lab` and formgrader need, so that nothing is written into the repository."""
    root = tmp_path_factory.mktemp("lab")
    (root / "autograder").mkdir()
    for name in ("Makefile", "pyproject.toml", "nbgrader_config.py", "autograder/pyproject.toml"):
        shutil.copy2(repository / name, root / name)
    for name in ("environment", "notebooks", "images", f"solutions/{CHAPTER}"):
        shutil.copytree(repository / name, root / name)
    shutil.copy2(repository / "solutions/curriculum.toml", root / "solutions")
    (root / ".venv").symlink_to(repository / ".venv")
    settings = root / "settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text(WINDOWING)
    return root


@pytest.fixture(scope="module")
def lab(folder):
    """JupyterLab, started by `make lab`; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = {f"JUPYTER_{kind}_DIR": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    places |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "work")}
    options = f"--no-browser --allow-root --port={port} --ServerApp.port_retries=0 --IdentityProvider.token=secret"
    with (folder / "lab.log").open("w") as log:
        server = subprocess.Popen(
            ["make", "lab", f"LAB_OPTIONS={options}"],
            cwd=folder,
            env=os.environ | places | {"SHELL": "/bin/bash"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api", server, folder / "lab.log")
        yield address
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, 15)
        server.wait(timeout=60)


def _wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(120):
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url):
            return
        time.sleep(0.5)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


def _new_page(browser):
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    page.set_default_timeout(60_000)
    return page


def _open(browser, lab, notebook):
    """A page of JupyterLab with a notebook of chapter 01."""
    page = _new_page(browser)
    open_notebook(page, f"{lab}/lab/tree/notebooks/{CHAPTER}/{notebook}?token=secret&reset")
    page.locator(".jp-ToolbarButtonComponent-label:visible", has_text="Validate").wait_for()
    return page


def _cell(page, text):
    return page.locator(".jp-CodeCell", has=page.locator(".cm-content", has_text=text)).first


def _run(page, text):
    """Run the code cell that contains a text; returns its output."""
    cell = _cell(page, text)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    playwright.expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]:"), timeout=60_000)
    return cell.locator(".jp-OutputArea").inner_text()


def _answer(page, signature, body):
    """Type an answer in place of a solution cell's text and run it."""
    cell = _cell(page, signature)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(f"{signature}\n    {body}")
    return _run(page, signature)


def _answers(repository):
    """The source of chapter 01's solution cells, by their ids."""
    notebook = nbformat.read(repository / f"solutions/{CHAPTER}/weighted_averages.ipynb", as_version=4)
    cells = [c for c in notebook.cells if c.cell_type == "code" and c.metadata.get("nbgrader", {}).get("solution")]
    return {cell.metadata.nbgrader.grade_id: cell.source for cell in cells}


def _reference(repository, name):
    return _answers(repository)[name].split("### BEGIN SOLUTION\n    ")[1].split("\n    ### END SOLUTION")[0]


def test_the_window_asks_nothing_and_opens_the_first_chapter(lab, browser):
    # The first test: JupyterLab opens again what another one had open.
    page = _new_page(browser)
    open_notebook(page, f"{lab}/login?token=secret&next=%2F")
    page.locator(".jp-ToolbarButtonComponent-label:visible", has_text="Validate").wait_for()
    assert "/lab/tree/notebooks/00_start_here/start_here.ipynb" in page.url
    assert page.get_by_text("Jupyter news").count() == 0
    page.get_by_text("Nbgrader", exact=True).first.click()
    menu = page.locator(".lm-Menu").inner_text()
    assert "Formgrader" in menu
    assert not re.search("Create Assignment|Assignment List|Course List", menu)
    page.close()


def test_the_classic_page_has_its_own_fonts_after_jupyterlab(lab, browser):
    page, refused = _new_page(browser), []
    page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
    for view in ("lab/tree", "notebooks"):
        page.goto(f"{lab}/{view}/notebooks/{CHAPTER}/weighted_averages.ipynb?token=secret")
        page.locator("mjx-container:visible").first.wait_for()
        page.wait_for_load_state("networkidle")
    assert [url for url in refused if "/static/" in url] == []
    page.close()


def _processes():
    """The command line and the environment of each process that tells them.

    Others' come and go meanwhile, so they are asked for nothing but what process_iter itself finds out.
    """
    found = (process.info for process in psutil.process_iter(["cmdline", "environ"]))
    return [(info["cmdline"] or [], info["environ"] or {}) for info in found]


def test_a_student_works_through_chapter_01(lab, browser, repository, folder):
    page = _open(browser, lab, "weighted_averages.ipynb")
    assert _run(page, "import matplotlib.pyplot as plt") == ""

    _answer(page, "def weighted_avg(x, weights):", "return weights.mT @ x")
    assert "✗ weighted_avg" in _run(page, "check.weighted_avg(weighted_avg)")
    kernels = [environ for line, environ in _processes() if str(folder / "runtime/kernel-") in " ".join(line)]
    assert {environ.get("OMP_WAIT_POLICY") for environ in kernels} == {"passive"}

    for name, arguments in (
        ("weighted_avg", "x, weights"),
        ("weighted_avg_einsum", "x, weights"),
        ("window_weights", "n, width"),
    ):
        _answer(page, f"def {name}({arguments}):", _reference(repository, name))
        assert f"✓ {name}" in _run(page, f"check.{name}({name})")


def test_validate_asks_for_the_written_answer_then_succeeds(lab, browser, folder, repository):
    path = folder / "notebooks" / CHAPTER / "weighted_averages.ipynb"
    notebook, answers = nbformat.read(path, as_version=4), _answers(repository)
    # Validate runs everything: without the cells that draw it takes half the time.
    notebook.cells = [c for c in notebook.cells if "nbgrader" in c.metadata or c.source.startswith(("import", "from"))]
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    nbformat.write(notebook, path.with_name("answered.ipynb"))
    page = _open(browser, lab, "answered.ipynb")
    assert "You did not provide a response." in _validate(page)
    page.get_by_role("paragraph").filter(has_text="YOUR ANSWER HERE").dblclick()
    page.locator(".jp-MarkdownCell .cm-content", has_text="YOUR ANSWER HERE").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("The loop starts many small operations, the product one large one.")
    page.keyboard.press("Control+Enter")
    assert "Success! Your notebook passes all the tests." in _validate(page)
    page.close()


def _validate(page):
    """Save, press nbgrader's Validate, which reads the file, and return what its dialog says."""
    # Jupyter empties the file and then writes it: until it has answered, Validate would read an empty one.
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "/api/contents/" in answer.url):
        page.keyboard.press("Control+s")
    page.locator(".jp-ToolbarButtonComponent-label:visible", has_text="Validate").click()
    dialog = page.locator(".jp-Dialog-content", has_text="Validation Results")
    dialog.wait_for(timeout=300_000)
    text = dialog.inner_text()
    dialog.get_by_text("Ok", exact=True).click()
    return text


def test_the_commands_are_found_in_terminals_login_shells_and_kernels(lab, browser, folder):
    page = _new_page(browser)
    page.goto(f"{lab}/lab?token=secret&reset")
    page.locator(".jp-LauncherCard[title='Start a new terminal session']").click()
    page.locator(".jp-Terminal .xterm-screen").click()
    for line in (
        "command -v autograder nbgrader jupyter > seen",
        "bash -l",
        "command -v autograder nbgrader jupyter >> seen",
    ):
        page.keyboard.type(line)
        page.keyboard.press("Enter")
    commands = [str(folder / ".venv/bin" / name) for name in ("autograder", "nbgrader", "jupyter")]
    end = time.monotonic() + 60
    while not (folder / "seen").exists() or len((folder / "seen").read_text().split()) < 6:
        assert time.monotonic() < end, (folder / "seen").read_text()
        time.sleep(0.5)
    assert (folder / "seen").read_text().split() == [*commands, *commands]
    page.close()

    urllib.request.urlopen(urllib.request.Request(f"{lab}/api/kernels?token=secret", data=b"{}", method="POST")).close()
    here = str(folder / "runtime")
    kernels = [environ for line, environ in _processes() if "ipykernel_launcher" in line]
    [path, *_] = [environ["PATH"] for environ in kernels if environ.get("JUPYTER_RUNTIME_DIR") == here]
    assert os.path.samefile(shutil.which("autograder", path=path), commands[0])


@pytest.fixture(scope="module")
def earned(sandboxed, folder):
    """The example class, graded by the engine: each student's points."""
    course = find_course(folder)
    example_class.build(course, course.chapters, folder / "classroom/submitted")
    script = "from autograder.cli import main; main()"
    command = [sys.executable, "-c", script, "grade", "--workers", "1", "--json", "verdicts.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 3, done.stderr  # one of them handed in what is no notebook
    points = dict.fromkeys(example_class.STUDENTS, 0.0)
    for item in json.loads((folder / "verdicts.json").read_text())["items"]:
        points[item["student"]] += item["points"]
    return points


def test_a_narrow_window_has_room_for_the_notebook(lab, browser):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{lab}/notebooks/notebooks/{CHAPTER}/weighted_averages.ipynb?token=secret")
    page.get_by_role("heading", name="Weighted averages").wait_for(timeout=60_000)
    assert page.locator(".jp-Notebook").bounding_box()["width"] >= 380
    page.close()


def _marks_shown(page):
    rows = page.locator("tbody tr").all()
    return {row.locator(".student-id").inner_text(): row.locator(".score").inner_text() for row in rows}


def test_formgrader_shows_the_marks_and_its_button_gives_them(lab, browser, folder, earned):
    assert earned["all_right"] == earned["lost_metadata"] == 4
    assert earned["all_wrong"] == earned["broken_notebook"] == earned["untouched"] == 0
    assert 0 < earned["half_done"] < 4

    target = f"%2Fformgrader%2Fmanage_submissions%2F{CHAPTER}"
    page = _new_page(browser)
    page.goto(f"{lab}/login?token=secret&next={target}")
    page.locator(".glyphicon-flash").first.wait_for()
    expected = {student: f"{points:g} / 5" for student, points in earned.items()}
    assert _marks_shown(page) == expected

    with Gradebook(f"sqlite:///{folder}/classroom/gradebook.db", "attention") as gradebook:
        gradebook.remove_submission(CHAPTER, "half_done")
    shutil.rmtree(folder / "classroom/autograded/half_done")
    page.reload()
    row = page.locator("tbody tr", has_text="half_done")
    playwright.expect(row).to_contain_text("needs autograding")
    row.locator(".glyphicon-flash").click()
    playwright.expect(page.locator("#success-modal")).to_contain_text("Successfully autograded", timeout=60_000)
    playwright.expect(row.locator(".score")).to_have_text(expected["half_done"])
    assert _marks_shown(page) == expected
