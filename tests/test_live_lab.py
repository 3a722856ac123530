"""The live figures in JupyterLab: they move when the notebook runs; opened again, a picture stands for each."""

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
import psutil
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from pages import open_notebook, run_all_cells

from live.display import MIME

playwright = pytest.importorskip("playwright.sync_api")
# On a busy machine JupyterLab, or a widget in it, now and then hangs for good: a new one is started then.
pytestmark = pytest.mark.flaky(reruns=1, only_rerun=["TimeoutError", "no kernel", "not shown"])
WIDGET = "application/vnd.jupyter.widget-view+json"
CELLS = [
    "import matplotlib.pyplot as plt\n\nfrom live import show",
    """\
picture, axis = plt.subplots(figsize=(4, 2))
axis.bar(["dog", "cat"], [0.7, 0.3])
show("temperature", {"words": ["dog", "cat"], "scores": [2.0, 1.0]}, still=picture, alt="Two bars")""",
    'show("translator")',
]
MORE = """\
import torch

weights = torch.tensor([[[0.9, 0.1], [0.2, 0.8]]])  # a student's own
show("heads", {"rows": ["a", "b"], "columns": ["x", "y"], "weights": weights})"""


def _notebook() -> nbformat.NotebookNode:
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    return new_notebook(cells=[new_code_cell(cell) for cell in [*CELLS, MORE]], metadata={"kernelspec": kernel})


def test_a_notebook_run_without_a_page_keeps_picture_and_data_and_no_widget(tmp_path):
    notebook = _notebook()
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    assert [output.output_type for output in outputs] == ["display_data"] * 3  # so nothing on stderr either
    assert set(outputs[0].data) == {MIME, "image/png", "text/plain"}
    assert outputs[0].data[MIME]["data"] == {"words": ["dog", "cat"], "scores": [2.0, 1.0]}
    assert outputs[2].data[MIME]["data"]["weights"] == [[[0.9, 0.1], [0.2, 0.8]]]
    assert not any(WIDGET in output.data for output in outputs) and "widgets" not in notebook.metadata


def test_mistakes_are_told_in_a_line(tmp_path):
    from live import show

    with pytest.raises(ValueError, match="no live figure 'triangel'; there are alignments, "):
        show("triangel")
    with pytest.raises(ValueError, match="'temperature' cannot be sent to the page: a set is neither"):
        show("temperature", {"words": {"dog"}})


@pytest.fixture
def lab(tmp_path):
    """JupyterLab on a notebook with live figures in it; its address."""
    nbformat.write(_notebook(), tmp_path / "try.ipynb")
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
        # Asked to end, it would wait a minute for the kernel that the test has ended.
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(server.pid).children(recursive=True):
                process.kill()
        server.kill()
        server.wait(timeout=60)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is missing: apt-get install chromium")
def test_figures_move_and_come_back_as_pictures(lab, tmp_path):
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport={"width": 1200, "height": 2400})
        page.set_default_timeout(200_000)
        address = f"{lab}/lab/tree/try.ipynb?token=secret&reset"
        open_notebook(page, address)
        run_all_cells(page, page.locator(".live-translation", has_text="dog"))
        figure = page.get_by_role("group", name="Two bars")
        figure.get_by_role("button", name="T = 0.05").click()
        playwright.expect(figure).to_contain_text("softmax has become argmax", timeout=60_000)
        playwright.expect(page.locator(".jp-RenderedImage")).to_be_hidden()
        playwright.expect(page.locator(".live-weights")).to_contain_text("90")
        page.keyboard.press("Control+s")
        path = tmp_path / "try.ipynb"
        page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
        assert path.stat().st_size < 300_000  # the model is not in it

        for kernel in json.loads(page.evaluate("fetch('/api/kernels').then((reply) => reply.text())")):
            page.evaluate(
                """(id) => fetch(`/api/kernels/${id}?token=secret`, {method: "DELETE", headers:
                {"X-XSRFToken": document.cookie.match(/_xsrf=([^;]*)/)[1]}})""",
                kernel["id"],
            )
        open_notebook(page, address)
        page.locator(".jp-RenderedImage img").wait_for()
        browser.close()
