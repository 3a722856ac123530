"""What a hostile submission can try. Its `double` is always wrong, so it deserves no point for it."""

import json
import os

import nbformat
import pytest

from autograder.run import grade_notebook
from notebooks import find, source_notebook, submission

WRONG = "\ndef double(x):\n    return x\n"

# Each runs in the cell of `double`, before or after a wrong definition of it.
CHEATS = {
    "torch.allclose and torch.equal always true": """
import torch
torch.allclose = torch.equal = torch.Tensor.equal = torch.Tensor.allclose = lambda *a, **k: True
torch.Tensor.__eq__ = lambda *a: True
""",
    "asserts stripped by an AST transformer": """
import ast
class Strip(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
get_ipython().ast_transformers.append(Strip())
""",
    "a hook before each cell publishes a fake result": """
get_ipython().events.register("pre_run_cell", lambda *a: print("passed"))
get_ipython().display_pub.publish({"text/plain": "2.0"})
""",
    "the kernel's do_execute overridden": """
get_ipython().kernel.do_execute = lambda *a, **k: {"status": "ok", "execution_count": 1}
""",
    "builtins patched": """
import builtins
builtins.isinstance = builtins.all = builtins.any = lambda *a: True
builtins.AssertionError = type("AssertionError", (BaseException,), {})
builtins.len = builtins.id = lambda *a: 2
""",
    "json and socket patched": """
import json, socket, struct
json.dumps = lambda *a, **k: '{"id": 1, "value": true, "changed": [], "generators": [], "tensors": []}'
socket.socket.sendall = socket.socket.send
""",
    "IPython patched": "import IPython\nIPython.get_ipython = lambda: None\n",
    "a torch of one's own": """
import os, sys
os.makedirs("/tmp/torch", exist_ok=True)
open("/tmp/torch/__init__.py", "w").write("allclose = equal = lambda *a, **k: True")
sys.path.insert(0, "/tmp")
for name in [n for n in sys.modules if n.split(".")[0] == "torch"]:
    del sys.modules[name]
import torch
""",
    "the worker rewritten": """
import sys
for name in ("worker", "protocol"):
    module = sys.modules[name]
    for key, value in list(vars(module).items()):
        if callable(value) and not key.startswith("__"):
            setattr(module, key, lambda *a, **k: True)
""",
    "the gradebook edited": """
import glob, sqlite3
for path in ["gradebook.db", *glob.glob("/**/gradebook.db"), "classroom/gradebook.db"]:
    try:
        with sqlite3.connect(path) as book:
            book.execute("UPDATE grade SET auto_score = 100")
    except sqlite3.Error:
        pass
""",
    "process limits raised": """
import resource
for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        continue
    raise SystemExit("raised")
""",
    "threads left running": """
import threading
def spin():
    while True:
        pass
for _ in range(4):
    threading.Thread(target=spin, daemon=True).start()
""",
    "100 MB printed": "for _ in range(1000):\n    print('x' * 100_000)\n",
    "100 MB written to the descriptor": "import os\nfor _ in range(1000):\n    os.write(1, b'x' * 100_000)\n",
    "random seeds fixed": "import torch, random\ntorch.manual_seed(0)\nrandom.seed(0)\ntorch.seed = lambda: 0\n",
    "sys.exit": "import sys\nsys.exit(0)\n",
}

# Each is a wrong definition of `double` that answers with something other than a tensor of its own making.
LIES = {
    "a tensor that claims to equal all": """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True
def double(x):
    return x.as_subclass(Yes)
""",
    "an object that claims to equal all": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __getattr__(self, name): return Yes()
    def __call__(self, *a, **k): return Yes()
    def __len__(self): return 2
    def __iter__(self): return iter([Yes()])
    def __float__(self): return 2.0
    def __array__(self, *a): return __import__("numpy").full(2, 2.0)
    def __torch_function__(self, *a, **k): return True
    def __reduce__(self): return (__import__("os").system, ("true",))
    def __del__(self): __import__("os")._exit(0)
    __class__ = torch.Tensor
def double(x):
    return Yes()
count = Yes()
""",
    "NaN": "def double(x):\n    return x * float('nan')\n",
    "another dtype": "def double(x):\n    return (2 * x).to(torch.int8)\n",
    "another shape": "def double(x):\n    return (2 * x)[None, None]\n",
    "a huge tensor": "def double(x):\n    return torch.zeros(4_000_000)\n",
    "a huge view of one number": "def double(x):\n    return torch.zeros(1).expand(10**12)\n",
    "a huge string": "def double(x):\n    return 'x' * 50_000_000\n",
    "a huge number": "def double(x):\n    return 10 ** 100_000\n",
    "a huge list": "def double(x):\n    return [0] * 30_000_000\n",
    "keys that collide": "def double(x):\n    return {k * (2**61 - 1): k for k in range(1, 20_000)}\n",
    "a list inside itself": "def double(x):\n    a = []\n    a.append(a)\n    return a\n",
    "a list nested deep": "def double(x):\n    a = []\n    for _ in range(10**5):\n        a = [a]\n    return a\n",
    "a sparse tensor": "def double(x):\n    return (2 * x).to_sparse()\n",
    "an exception with a hostile message": """
class Odd(ValueError):
    def __str__(self): raise SystemExit
def double(x):
    raise Odd
""",
    "an exception with an endless message": "def double(x):\n    raise ValueError('x' * 10**7)\n",
    "half a character and colours": "def double(x):\n    raise ValueError('\\ud800 \\x1b[31m \\x00')\n",
    "an endless recursion": "def double(x):\n    return double(x)\n",
    "a raised SystemExit": "def double(x):\n    raise SystemExit\n",
    "a raised KeyboardInterrupt": "def double(x):\n    raise KeyboardInterrupt\n",
    "the input changed to fit": "def double(x):\n    x.zero_()\n    return x\n",
}


@pytest.fixture(scope="module")
def source():
    return source_notebook()


def statuses(graded):
    return {item.grade_id: item.status for item in graded.items}


def points(graded):
    return {item.grade_id: item.points for item in graded.items}


def assert_unharmed(sandbox, source):
    """An honest submission that comes next gets all it deserves."""
    graded = grade_notebook(sandbox, submission(source), source)
    assert set(statuses(graded).values()) == {"passed"}, graded.items


def assert_fit_to_show(graded):
    nbformat.validate(graded.notebook)
    text = json.dumps(graded.notebook, ensure_ascii=False)
    text.encode()
    for word in ("secret_of_the_check", "/root/", "hunter2", "\\u001b", "\\u0000"):
        assert word not in text
    assert len(text) < 100_000


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_earns_nothing(sandbox, source, name, place):
    cell = CHEATS[name] + WRONG if place == "before" else WRONG + CHEATS[name]
    graded = grade_notebook(sandbox, submission(source, double=cell), source)
    assert points(graded)["double_check"] == 0
    assert_fit_to_show(graded)
    assert_unharmed(sandbox, source)


@pytest.mark.parametrize("name", LIES)
def test_a_lie_earns_nothing(sandbox, source, name):
    graded = grade_notebook(sandbox, submission(source, double="import torch\n" + LIES[name]), source)
    assert points(graded)["double_check"] == 0
    assert_fit_to_show(graded)
    assert_unharmed(sandbox, source)


def test_a_number_cannot_claim_to_equal_all(sandbox, source):
    cell = """
class Yes(int):
    def __eq__(self, other): return True
    def __hash__(self): return 0
def count(x):
    return Yes(-1)
"""
    assert points(grade_notebook(sandbox, submission(source, count=cell), source))["count_check"] == 0


OWN_WORKER = """
import sys, torch
frame = sys._getframe()
while not hasattr(frame.f_locals.get("self"), "operations"):
    frame = frame.f_back
worker = frame.f_locals["self"]
"""


def test_a_worker_that_hands_over_no_object_costs_itself(sandbox, source):
    cell = OWN_WORKER + "worker.operations['global'] = lambda name: [][0] if name == 'x' else 1 / 0\n" + WRONG
    graded = grade_notebook(sandbox, submission(source, double=cell), source)
    assert set(statuses(graded).values()) == {"error"}
    assert_unharmed(sandbox, source)


@pytest.mark.parametrize("gradient", ["torch.ones(3)", "torch.ones(2).double()", "torch.ones(2, 2, device='meta')"])
def test_a_forged_gradient_earns_nothing(sandbox, gradient):
    check = "x = torch.ones(2, requires_grad=True)\ndouble(x).sum().backward()\nassert torch.equal(x.grad, 2 * x)"
    source = source_notebook(double_check=check)
    cell = f"""
def forge(reader):
    import protocol
    writer = protocol.Writer(worker._export)
    return {{"gradients": [[0, writer.tensor({gradient})]]}}, writer
worker._backward = forge
def double(x):
    return 2 * x
"""
    graded = grade_notebook(sandbox, submission(source, double=OWN_WORKER + cell), source)
    assert statuses(graded)["double_check"] == "crashed"
    assert_unharmed(sandbox, source)


def test_no_check_can_catch_the_loss_of_its_worker(sandbox):
    source = source_notebook(double_check="try:\n    double(1)\nexcept Exception:\n    pass\nfinally:\n    x = 1")
    graded = grade_notebook(sandbox, submission(source, double="import os\ndef double(x): os._exit(0)"), source)
    assert statuses(graded)["double_check"] == "crashed"


def test_the_processor_time_is_limited(source):
    from dataclasses import replace

    from conftest import LIMITS

    from autograder.isolation.sandbox import Sandbox

    with Sandbox(replace(LIMITS, cpu_seconds=1, cell_seconds=10), preload=()) as sandbox:
        graded = grade_notebook(sandbox, submission(source, double=WRONG + "while True: pass"), source)
    assert statuses(graded) == {"double_check": "timeout", "count_check": "passed", "Layer_check": "passed"}
    assert "processor time" in graded.items[0].message


def test_the_submission_time_is_limited(source):
    from dataclasses import replace

    from conftest import LIMITS

    from autograder.isolation.sandbox import Sandbox

    with Sandbox(replace(LIMITS, submission_seconds=1, cell_seconds=10), preload=()) as sandbox:
        graded = grade_notebook(sandbox, submission(source, double=WRONG + "while True: pass"), source)
    assert set(statuses(graded).values()) == {"timeout"}


def test_tags_that_skip_execution_do_nothing(sandbox, source):
    notebook = submission(source, double=WRONG)
    for cell in notebook.cells:
        cell.metadata.tags = ["skip-execution", "raises-exception", "remove_cell"]
        cell.metadata.nbgrader = dict(cell.metadata.get("nbgrader", {}), points=100, solution=True)
    graded = grade_notebook(sandbox, notebook, source)
    assert points(graded) == {"double_check": 0, "count_check": 1, "Layer_check": 4}
    assert find(graded.notebook, "double_check").metadata == find(source, "double_check").metadata


def test_files_beside_a_notebook_are_not_seen(sandbox, source, tmp_path):
    package = tmp_path / "torch" / "__init__.py"
    package.parent.mkdir()
    package.write_text("allclose = equal = lambda *a, **k: True")
    nbformat.write(submission(source, double=WRONG), tmp_path / "chapter.ipynb")
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        graded = grade_notebook(sandbox, tmp_path / "chapter.ipynb", source)
    finally:
        os.chdir(here)
    assert points(graded)["double_check"] == 0


def test_only_the_references_of_earlier_chapters_can_be_imported(sandbox, source):
    cell = "from earlier import twice\ndef double(x):\n    return twice(x)"
    modules = {"earlier": "def twice(x):\n    return 2 * x\n"}
    assert (
        points(grade_notebook(sandbox, submission(source, double=cell), source, modules=modules))["double_check"] == 2
    )
    graded = grade_notebook(
        sandbox, submission(source, double=cell.replace("earlier", "later")), source, modules=modules
    )
    assert statuses(graded)["double_check"] == "error"


def test_the_whole_of_a_dead_sandbox_is_started_again(sandbox, source):
    sandbox._process.kill()
    assert_unharmed(sandbox, source)
