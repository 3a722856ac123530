"""The chooser of heads: alive in JupyterLab, a figure everywhere else."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from autograder.course.curriculum import find_course

COURSE = find_course()
WIDGET = "application/vnd.jupyter.widget-view+json"
IMPORTS = """\
import matplotlib.pyplot as plt
import torch

import autograder.course.imports
from multi_head_attention import choose_head

plt.style.use("attention_course.figures")"""
CHOOSE = "choose_head(torch.rand(2, 3, 4, 5).softmax(-1), list('abcd'), list('vwxyz'))"


def test_a_notebook_run_without_a_page_keeps_the_figure_and_says_nothing(monkeypatch):
    monkeypatch.chdir(COURSE.solution(COURSE.find("04")).parent)
    notebook = new_notebook(cells=[new_code_cell(IMPORTS), new_code_cell(CHOOSE)])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [o for cell in notebook.cells for o in cell.outputs]
    assert [o.output_type for o in outputs] == ["display_data", "execute_result"]  # so nothing on stderr either
    assert "image/png" in outputs[0].data and WIDGET in outputs[1].data


@pytest.mark.parametrize("chapter", [pytest.param(c, id=c.folder) for c in COURSE.chapters])
def test_no_widget_is_stored(chapter):
    notebook = nbformat.read(COURSE.solution(chapter), as_version=4)
    assert "widgets" not in notebook.metadata
    stored = [c.id for c in notebook.cells for o in c.get("outputs", []) if WIDGET in o.get("data", {})]
    assert stored == [], "a widget is dead without its kernel: delete this output, and leave the figure before it"


@pytest.fixture
def lab(tmp_path, repository):
    """JupyterLab on a notebook with a chooser in it; its address."""
    for name in ("solutions/04_multi_head_attention", "solutions/03_queries_keys_values"):
        shutil.copytree(repository / name, tmp_path / name)
    for name in ("01_weighted_averages", "02_normalized_dot_products"):
        shutil.copytree(repository / "solutions" / name, tmp_path / "solutions" / name)
    shutil.copy2(repository / "solutions/curriculum.toml", tmp_path / "solutions")
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    notebook = new_notebook(cells=[new_code_cell(IMPORTS), new_code_cell(CHOOSE)], metadata={"kernelspec": kernel})
    nbformat.write(notebook, tmp_path / "solutions/04_multi_head_attention/try.ipynb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=secret", f"--ServerApp.root_dir={tmp_path}"]
    places = {f"JUPYTER_{kind}_DIR": str(tmp_path / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(command, env=os.environ | places, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            assert server.poll() is None, (tmp_path / "lab.log").read_text()
            with suppress(OSError), urllib.request.urlopen(f"{address}/api") as reply:
                json.load(reply)
                break
            time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is missing: apt-get install chromium")
def test_a_reader_chooses_a_head(lab):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport={"width": 1200, "height": 1400})
        page.set_default_timeout(90_000)
        page.goto(f"{lab}/lab/tree/solutions/04_multi_head_attention/try.ipynb?token=secret&reset")
        playwright.expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible(timeout=90_000)
        page.get_by_text("Run", exact=True).first.click()
        page.get_by_text("Run All Cells", exact=True).click()
        menus = page.locator(".widget-dropdown select")
        playwright.expect(menus).to_have_count(2, timeout=90_000)
        picture = page.locator(".widget-output img")
        playwright.expect(picture).to_have_count(1, timeout=90_000)
        before = picture.get_attribute("src")
        menus.nth(1).select_option("2")
        page.wait_for_function("before => document.querySelector('.widget-output img')?.src !== before", arg=before)
        playwright.expect(picture).to_have_count(1)
        browser.close()
