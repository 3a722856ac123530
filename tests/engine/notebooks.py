"""A tiny course of one notebook, and submissions to it."""

import nbformat
from nbformat import NotebookNode

IMPORTS = "import torch\nfrom torch import nn\nimport torch.nn.functional as F"

DOUBLE = '''def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION'''

DOUBLE_CHECK = """assert torch.equal(double(torch.ones(2)), torch.full((2,), 2.0)), "double(1) should be 2"
### BEGIN HIDDEN TESTS
secret_of_the_check = torch.randn(3, 4)
got, expected = double(secret_of_the_check.clone()), secret_of_the_check * 2
assert isinstance(got, torch.Tensor), "double should return a tensor"
assert got.shape == expected.shape and torch.allclose(got, expected), "double should be right for random numbers"
### END HIDDEN TESTS"""

COUNT = """def count(x):
    ### BEGIN SOLUTION
    return x.numel()
    ### END SOLUTION"""

COUNT_CHECK = """n = int(torch.randint(2, 50, ()))
assert count(torch.zeros(n, 3)) == 3 * n, "count should be the number of entries\""""

LAYER = """class Layer(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return self.linear(x).relu()
    ### END SOLUTION"""

LAYER_CHECK = """layer = Layer(3)
assert isinstance(layer.linear, nn.Linear), "linear should be an nn.Linear"
state = {k: torch.randn_like(v) for k, v in layer.state_dict().items()}
layer.load_state_dict(state)
x = torch.randn(5, 3)
wanted = F.linear(x, state["linear.weight"], state["linear.bias"]).relu()
assert torch.allclose(layer(x), wanted, atol=1e-6), "the layer should be relu(linear(x))"
layer(x).sum().backward()
assert layer.linear.weight.grad is not None, "gradients should reach the weights\""""

ANSWERS = {
    "double": "def double(x):\n    return x + x",
    "count": "def count(x):\n    return x.numel()",
    "Layer": LAYER.replace("    ### BEGIN SOLUTION\n", "").replace("    ### END SOLUTION", ""),
}


def _cell(kind: str, text: str, name: str | None = None, **flags) -> NotebookNode:
    cell = nbformat.v4.new_code_cell(text) if kind == "code" else nbformat.v4.new_markdown_cell(text)
    if name:
        defaults = {"grade": False, "solution": False, "locked": False, "task": False}
        cell.metadata.nbgrader = {"grade_id": name, "schema_version": 3, "cell_type": kind} | defaults | flags
    cell.id = f"{name or 'plain'}-{abs(hash(text)) % 10**8}"
    return cell


def source_notebook(**checks: str) -> NotebookNode:
    """The course's notebook; keywords replace the text of a check cell by its grade_id."""
    cells = [_cell("markdown", "# A tiny chapter"), _cell("code", IMPORTS)]
    for name, solution, check, points in (
        ("double", DOUBLE, DOUBLE_CHECK, 2),
        ("count", COUNT, COUNT_CHECK, 1),
        ("Layer", LAYER, LAYER_CHECK, 4),
    ):
        cells.append(_cell("markdown", f"## {name}"))
        cells.append(_cell("code", solution, name, solution=True))
        text = checks.get(f"{name}_check", check)
        cells.append(_cell("code", text, f"{name}_check", grade=True, locked=True, points=points))
    cells.append(_cell("markdown", "The model answer", "why", solution=True, grade=True, points=1))
    return nbformat.v4.new_notebook(cells=cells)


def release(source: NotebookNode) -> NotebookNode:
    """The notebook that students get."""
    from autograder.cells import released

    notebook = nbformat.from_dict(source)
    for cell, original in zip(notebook.cells, source.cells, strict=True):
        cell.source = released(original)
    return notebook


def submission(source: NotebookNode, **answers: str) -> NotebookNode:
    """A submission: all answers right, but for those given by keyword."""
    notebook = release(source)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in ANSWERS:
            cell.source = (ANSWERS | answers)[name]
    return notebook


def find(notebook: NotebookNode, name: str) -> NotebookNode:
    """The cell with this grade_id."""
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)
