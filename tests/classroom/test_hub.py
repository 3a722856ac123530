"""A JupyterHub with its proxy, two classes, their servers as its services: two students and an instructor at work.

The configuration is the one that docs/hub.md speaks of; only who may sign in, and as whom servers run, is of the test.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import nbformat
import psutil
import pytest

pytest.importorskip("jupyterhub", reason="JupyterHub is not installed: pip install 'autograder[hub]'")
pytest.importorskip("starlette", reason="the server's packages are not installed: pip install 'autograder[service]'")
from pages import open_notebook
from serving import AUTOGRADER, run

from autograder.course import gradebook
from autograder.course.curriculum import Course
from autograder.course.generate import generate

playwright = pytest.importorskip("playwright.sync_api")


REPOSITORY = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
PROXY = ["npx", "--yes", "--prefer-offline", "--loglevel=error", "--package", "configurable-http-proxy@5.1.0", "--"]
# A hand-in's verdict is waited for 45 seconds; on a machine that is that busy the next one's is.
LATE, TRIES = "It is not graded yet", 4
PATIENCE = 300  # seconds, for anything: on a machine that is busy with much else each program takes a while to start
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium")
OF_THE_TEST = """
load_subconfig({config!r})
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "secret"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {homes!r}
c.Spawner.args = ["--allow-root"]
c.Spawner.default_url = "/api"  # the test opens what it wants to see
c.Spawner.http_timeout = c.Spawner.start_timeout = {patience}
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.command = {proxy!r}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
for service in c.JupyterHub.services:
    service["url"] = "http://127.0.0.1:" + str({services!r}[service["name"]])
"""


def hand_out(course: Course, file: Path) -> None:
    """Release the chapters, and pack them as `autograder release --zip` does: this tiny course has not all it wants."""
    notebooks = course.root / "notebooks"
    for chapter in course.chapters:
        generate(gradebook.configure(course), chapter, notebooks, tell_gradebook=True)
    shutil.copy(course.root / "solutions/curriculum.toml", notebooks)
    with zipfile.ZipFile(file, "w") as archive:
        for path in notebooks.rglob("*.*"):
            for folder in ("notebooks", "originals"):
                archive.write(path, Path("attention", folder, path.relative_to(notebooks)))
        for path in REPOSITORY.glob("environment/jupyter/**/*.*"):
            archive.write(path, Path("attention", path.relative_to(REPOSITORY)))


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


@pytest.fixture
def hub(course, sandboxed, tmp_path, empty_gradebook):
    """The Hub's address; what it says is in hub.log."""
    if shutil.which("npx") is None:
        pytest.skip("npm is missing, which fetches configurable-http-proxy: apt-get install npm")
    # Where npm has put it: the Hub then starts the proxy itself, and not through npm.
    proxy = subprocess.run([*PROXY, "which", "configurable-http-proxy"], capture_output=True, text=True)
    if proxy.returncode:
        pytest.skip("npm cannot fetch configurable-http-proxy")
    for name, table in (("monday", "id\nada\nben\n"), ("tuesday", "id\ncem\n")):
        (tmp_path / f"{name}.csv").write_text(table)
        (course.root / "classroom" / name).mkdir()
        shutil.copy(empty_gradebook, course.root / "classroom" / name / "gradebook.db")
        assert run("students", "add", tmp_path / f"{name}.csv", "--class", name).exit_code == 0
    hand_out(replace(course, class_name="monday"), tmp_path / "attention.zip")
    public, hub_port, api, monday, tuesday = free_ports(5)
    config = {"config": str(REPOSITORY / "docs/jupyterhub_config.py"), "homes": f"{tmp_path}/homes/{{username}}"}
    config |= {"hub": hub_port, "api": api, "services": {"monday": monday, "tuesday": tuesday}, "patience": PATIENCE}
    config["proxy"] = [proxy.stdout.strip()]
    (tmp_path / "jupyterhub_config.py").write_text(OF_THE_TEST.format(**config))
    address = f"http://127.0.0.1:{public}"
    settings = {"HUB_ADDRESS": address, "HUB_COURSE": str(course.root), "HUB_HANDOUT": f"{tmp_path}/attention.zip"}
    settings["JUPYTER_DATA_DIR"] = settings["JUPYTER_CONFIG_DIR"] = str(tmp_path / "jupyter")
    with (tmp_path / "hub.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(tmp_path / "jupyterhub_config.py")],
            cwd=tmp_path,
            env=os.environ | settings,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        for service in ("/hub/login", "/services/monday/api/me", "/services/tuesday/api/me"):
            _wait_for(f"{address}{service}", server, tmp_path / "hub.log")
        yield address
    finally:
        # Asked to end, the Hub would ask each of its servers, for twenty seconds.
        for process in [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        server.wait(timeout=60)


def _wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(url)
            return
        except urllib.error.HTTPError as error:
            if error.code == 401:  # a service that wants to know who asks
                return
        except OSError:
            pass
        time.sleep(0.25)
    raise AssertionError(log.read_text())


def _sign_in(page, address: str, name: str) -> None:
    """Sign in to the Hub, and let it start the notebook server."""
    page.goto(f"{address}/hub/login?next=/hub/spawn")
    page.fill("#username_input", name)
    page.fill("#password_input", "secret")
    page.click("#login_submit", no_wait_after=True)


def _hand_in_from_lab(page, address: str, name: str, halve: str, why: str, shot) -> None:
    """Answer in JupyterLab, save, hand in from the notebook itself, read the verdict."""
    open_notebook(page, f"{address}/user/{name}/lab/tree/attention/notebooks/01_numbers/numbers_chapter.ipynb?reset")

    def write(within: str, begins: str, text: str, kind: str = "CodeCell") -> None:
        cell = page.locator(f".jp-{kind}", has_text=within).first
        if kind == "MarkdownCell":
            cell.dblclick()
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(f"{begins}{text}")
        page.keyboard.press("Shift+Enter")

    write("def double(x)", "def double(x):\n    ", "return x + x")
    write("def halve(x)", "def halve(x):\n    ", halve)
    write("YOUR ANSWER HERE", "", why, "MarkdownCell")
    page.keyboard.press("Control+s")  # after the last cell stands a new one
    page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
    for number in range(TRIES):
        page.keyboard.insert_text("from autograder.course.packing import hand_in; hand_in()")
        page.keyboard.press("Shift+Enter")
        card = page.locator("pre[role=status]").nth(number)
        card.wait_for()
        if LATE not in (said := card.inner_text()):
            break
    shot(page, f"lab-{name}")
    assert page.get_by_text("Create Assignment").or_(page.get_by_text("Jupyter news")).count() == 0
    assert f"by {address} from {name}" in said and "3 of 3 points by its checks" in said, said


def _hand_in_from_terminal(home: Path, address: str, name: str, halve: str, why: str) -> None:
    """The same in a terminal of the notebook server: with what the Hub gave it, and nothing else."""
    environment = _environment(name)
    notebook = home / "attention/notebooks/01_numbers/numbers_chapter.ipynb"
    content = nbformat.read(notebook, as_version=4)
    answers = {"double": "def double(x):\n    return x + x", "halve": f"def halve(x):\n    {halve}", "why": why}
    for cell in content.cells:
        cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    nbformat.write(content, notebook)
    command = [*AUTOGRADER, "hand-in", "01"]
    for _ in range(TRIES):
        done = subprocess.run(command, cwd=home / "attention", env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if LATE not in done.stdout:
            break
    assert f"by {address} from {name}" in done.stdout and "2 of 3 points by its checks" in done.stdout, done.stdout
    assert environment["JUPYTERHUB_API_TOKEN"] not in done.stdout


def _mark(page, address: str, submission: str, points: str, shot) -> None:
    """Mark a written answer in formgrader, in the instructor's own notebook server."""
    with page.expect_response("**/formgrader/api/comments?**"):  # the last that it loads
        page.goto(f"{address}/user/ines/formgrader/submissions/{submission}")
    page.wait_for_load_state("networkidle")
    score = page.locator("input.score").last
    with page.expect_response(lambda answer: "/formgrader/api/grade/" in answer.url and answer.request.method == "PUT"):
        score.fill(points)
        score.blur()
    shot(page, "formgrader")


def test_two_classes_on_a_jupyterhub(hub, course, tmp_path):
    """Release, work, hand in, verdict, a mark by hand, feedback; nbgrader's own exchange beside it."""
    shots = os.environ.get("SCREENSHOTS")

    def shot(page, name: str) -> None:
        if shots:
            page.screenshot(path=f"{shots}/hub-{name}.png")

    with ThreadPoolExecutor(1) as background, playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        pages = {}
        for name in ("ines", "ada", "ben"):
            pages[name] = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
            pages[name].set_default_timeout(1000 * PATIENCE)
            playwright.expect.set_options(timeout=1000 * PATIENCE)
            _sign_in(pages[name], hub, name)
        for name, page in pages.items():
            page.wait_for_url(re.compile(f"/user/{name}/"))
        ada, ben, ines = pages["ada"], pages["ben"], pages["ines"]
        beside = background.submit(_exchange, course, tmp_path)
        _hand_in_from_lab(ada, hub, "ada", "return x / 2", "Because ada.", shot)
        _hand_in_from_terminal(tmp_path / "homes/ben", hub, "ben", "return x", "Because ben.")

        ada.goto(f"{hub}/services/monday/")  # by the Hub's OAuth
        ada.get_by_text("3 of 3 points by its checks").first.wait_for()
        assert "monday" in ada.inner_text("header") and "· ada" in ada.inner_text("header")
        shot(ada, "student")
        ben.goto(f"{hub}/services/monday/")
        ben.get_by_text("2 of 3 points by its checks").first.wait_for()
        assert "this does not hold: assert halve(4) == 2" in ben.inner_text("main")
        assert ben.goto(f"{hub}/services/monday/chapters/01_numbers").status == 403
        assert ben.goto(f"{hub}/services/tuesday/").status == 403, "another class"
        shot(ben, "other-class")

        ines.goto(f"{hub}/services/monday/")
        ines.get_by_text("Everything is graded").wait_for()
        assert "1 of 2 who tried" in ines.inner_text("main")
        shot(ines, "class")
        with gradebook.open_gradebook(gradebook.configure(replace(course, class_name="monday"))) as book:
            submission = book.find_submission_notebook("numbers_chapter", "01_numbers", "ada").id
        _mark(ines, hub, submission, "1", shot)
        ines.goto(f"{hub}/services/monday/chapters/01_numbers")
        ines.get_by_role("button", name="Give feedback back now").click()
        ines.get_by_text("2 pages given back").wait_for()
        shot(ines, "chapter")
        ada.goto(f"{hub}/services/monday/")
        ada.get_by_role("link", name="Your feedback").click()
        ada.get_by_text("4 of 4 points").first.wait_for()
        assert "Because ada." in ada.content() and "Because ben." not in ada.content()
        shot(ada, "feedback")
        browser.close()
    assert not (course.root / "classroom/tuesday/received").exists() or not list(
        (course.root / "classroom/tuesday/received").glob("*/*/*.zip")
    )
    environment = beside.result()
    assert list((course.root / "classroom/monday/submitted").glob("*/02_words/words_chapter.ipynb"))
    graded = subprocess.run(
        [*AUTOGRADER, "grade", "02"], cwd=course.root, env=environment, capture_output=True, text=True
    )
    assert graded.returncode == 0, graded.stderr


def _exchange(course, tmp_path: Path) -> dict[str, str]:
    """Another chapter through nbgrader's exchange, in the environment that the Hub gave each notebook server.

    Returns:
        The instructor's.
    """
    exchange, home = tmp_path / "exchange", tmp_path / "homes/ada"
    exchange.mkdir()
    exchange.chmod(0o777)
    there = ["--Exchange.root", str(exchange), "--course", "attention-monday"]
    nbgrader = [sys.executable, "-m", "nbgrader"]
    of = {"ines": _environment("ines"), "ada": _environment("ada")}
    for who, folder, command in (
        ("ines", course.root, ["release_assignment", "02_words"]),
        ("ada", home, ["fetch_assignment", "02_words"]),
        ("ada", home, ["submit", "02_words"]),
        ("ines", course.root, ["collect", "02_words"]),
    ):
        done = subprocess.run([*nbgrader, *command, *there], cwd=folder, env=of[who], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return of["ines"]


def _environment(name: str) -> dict[str, str]:
    """The environment of a person's notebook server."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if f"/user/{name}/" == process.environ().get("JUPYTERHUB_SERVICE_PREFIX"):
                return process.environ()
    raise AssertionError(f"{name}'s server is gone")
