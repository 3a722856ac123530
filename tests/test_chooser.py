"""The chooser of heads: chapter 04 draws all heads of any model small, for the live figure to enlarge one."""

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from autograder.course.curriculum import find_course
from live.display import MIME

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
    assert [o.output_type for o in outputs] == ["display_data"]  # so nothing on stderr either
    assert "image/png" in outputs[0].data
    shown = outputs[0].data[MIME]
    assert shown["figure"] == "heads" and (shown["data"]["rows"], shown["data"]["columns"]) == (
        list("abcd"),
        list("vwxyz"),
    )
    assert len(shown["data"]["weights"]) == 2 and len(shown["data"]["weights"][0]) == 3


@pytest.mark.parametrize("chapter", [pytest.param(c, id=c.folder) for c in COURSE.chapters])
def test_no_widget_is_stored(chapter):
    notebook = nbformat.read(COURSE.solution(chapter), as_version=4)
    assert "widgets" not in notebook.metadata
    stored = [c.id for c in notebook.cells for o in c.get("outputs", []) if WIDGET in o.get("data", {})]
    assert stored == [], "a widget is dead without its kernel: delete this output, and leave the figure before it"
