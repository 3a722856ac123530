"""What a hostile submission can try. Its `double` is always wrong, so it deserves no point for it.

Each attack proves that it fired, by what it prints where nothing but itself prints, or by the one thing that only it
can bring about; and beside each stands the same attack on a check without protection, which falls for it.
"""

import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import nbformat
import pytest
from conftest import LIMITS
from graded import assert_fit_to_show, assert_unharmed, points, statuses
from unprotected import happens, in_a_kernel, plainly

from autograder.isolation.sandbox import Sandbox
from autograder.run import grade_notebook
from autograder.wire import protocol
from notebooks import find, source_notebook, submission

WRONG = "\ndef double(x):\n    return x\n"
FIRED = "\nprint('fired')\n"
TWICE = "assert torch.equal(double(torch.ones(2)), torch.full((2,), 2.0)), 'twice'"
SMALL = "assert double(2) == 4, 'twice'"
EACH = "assert all(a == 2 for a in double(torch.ones(2)).tolist()), 'each'"
DRAWN = "x = torch.randn(3, 4)\nassert torch.equal(double(x), 2 * x), 'drawn'"

# Each stands in the cell of `double`, before or after a wrong definition of it, with the check that it deceives.
CHEATS = {
    "torch.allclose and torch.equal always true": (
        "torch.allclose = torch.equal = torch.Tensor.equal = torch.Tensor.allclose = lambda *a, **k: True",
        TWICE,
    ),
    "comparisons of tensors always true": (
        "torch.Tensor.__eq__ = lambda a, b: torch.ones_like(a, dtype=torch.bool)",
        "assert (double(torch.ones(2)) == 2).all(), 'twice'",
    ),
    "asserts stripped by an AST transformer": (
        """
import ast
class Strip(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
transformers = getattr(get_ipython(), "ast_transformers", None)
if isinstance(transformers, list):
    transformers.append(Strip())
""",
        SMALL,
    ),
    "tracebacks swallowed": (
        "shell = get_ipython()\nshell.showtraceback = shell._showtraceback = lambda *a, **k: None",
        SMALL,
    ),
    "the kernel's do_execute overridden": (
        """
get_ipython().kernel.do_execute = lambda *a, **k: {"status": "ok", "execution_count": 1, "user_expressions": {}}
""",
        SMALL,
    ),
    "builtins patched": ("import builtins\nbuiltins.all = lambda *a: True", EACH),
    "a torch of one's own": (
        """
import os, sys, tempfile
folder = tempfile.mkdtemp()
os.makedirs(os.path.join(folder, "torch"))
with open(os.path.join(folder, "torch", "__init__.py"), "w") as file:
    file.write("def __getattr__(name):\\n    return lambda *a, **k: True")
sys.path.insert(0, folder)
for name in [n for n in sys.modules if n.split(".")[0] == "torch"]:
    del sys.modules[name]
import torch
""",
        TWICE,
    ),
    "random numbers known in advance": (
        """
torch.manual_seed(0)
known = torch.randn(3, 4)
torch.manual_seed(0)
torch.manual_seed = torch.seed = lambda *a: None
""",
        "torch.manual_seed(int.from_bytes(__import__('os').urandom(4), 'big'))\n" + DRAWN,
    ),
}
KNOWN = "\ndef double(x):\n    return 2 * x if torch.equal(x, known) else x\n"


@pytest.fixture(scope="module")
def source():
    return source_notebook()


@pytest.fixture
def heard(monkeypatch):
    """All replies of workers as they reach the grader: the channel by which attacks prove that they fired."""
    found = []
    receive = protocol.receive

    def listen(*args, **kwargs):
        header, data = receive(*args, **kwargs)
        found.append(header)
        return header, data

    monkeypatch.setattr(protocol, "receive", listen)
    return found


def printed(heard):
    return "".join(str(reply.get("output", "")) for reply in heard)


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_earns_nothing(sandbox, name, place, monkeypatch, tmp_path):
    cheat, check = CHEATS[name]
    wrong = KNOWN if "known" in cheat else WRONG
    cell = cheat + wrong if place == "before" else wrong + cheat
    source = source_notebook(double_check=check)
    graded = grade_notebook(sandbox, submission(source, double=cell + FIRED), source)
    assert "fired" in str(find(graded.notebook, "double").outputs)
    # With a torch of its own the worker may not even be able to answer.
    assert statuses(graded)["double_check"] in ("failed", "error")
    assert points(graded)["double_check"] == 0
    assert_fit_to_show(graded)
    assert_unharmed(sandbox, source)
    # Beside it, answer and check in one process; those that act on IPython, in a kernel.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if "get_ipython" not in cheat:
        assert happens(plainly("import torch\n" + cell, check)) == "done"
    elif place == "before":  # it takes seconds
        assert in_a_kernel([cell, check]) == "done"


def test_neither_is_fooled_by_a_wrong_answer_alone():
    assert in_a_kernel([WRONG, SMALL]) == "refused"
    assert in_a_kernel([WRONG.replace("return", "return 2 *"), SMALL]) == "done"
    assert happens(plainly(WRONG, TWICE)) == "refused"


# Each is a wrong definition of `double` that answers with something other than a tensor of its own making, a check that
# believes it, and what becomes of the process in which this check meets it.
ONES = "x = torch.ones(2)\n"
WALK = "def walk(v):\n    return [walk(i) for i in v] if isinstance(v, list) else v\nwalk(double(1))"
SIZE = "import pickle\nassert len(pickle.dumps(double(torch.ones(2)))) <= 8 << 20"
LIES = {
    "a tensor that claims to equal all": (
        """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True
def double(x):
    return x.as_subclass(Yes)
""",
        ONES + "assert torch.equal(double(x), 2 * x)",
        "done",
    ),
    "an object that claims to equal all": (
        """
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
    __class__ = torch.Tensor
def double(x):
    return Yes()
count = Yes()
""",
        ONES + "got = double(x)\nassert isinstance(got, torch.Tensor) and torch.equal(got, 2 * x)",
        "done",
    ),
    "an object that ends the process when it is let go": (
        "class Last:\n    def __del__(self): __import__('os')._exit(0)\ndef double(x):\n    return Last()",
        "double(1)",
        "dies",
    ),
    "an object that acts when it is unpickled": (
        "class Act:\n    def __reduce__(self): return __import__('os')._exit, (0,)\ndef double(x):\n    return Act()",
        "import pickle\npickle.loads(pickle.dumps(double(1)))",
        "dies",
    ),
    "NaN": (
        "def double(x):\n    return x * float('nan')",
        ONES + "assert not ((double(x) - 2 * x).abs() > 1e-6).any()",
        "done",
    ),
    "another dtype": (
        "def double(x):\n    return (2 * x).to(torch.int8)",
        ONES + "assert double(x).tolist() == (2 * x).tolist()",
        "done",
    ),
    "another shape": (
        "def double(x):\n    return (2 * x)[None, None]",
        ONES + "assert (double(x) == 2 * x).all()",
        "done",
    ),
    "a huge tensor": ("def double(x):\n    return torch.zeros(4_000_000)", SIZE, "refused"),
    "a huge view of one number": (
        "def double(x):\n    return torch.zeros(1).expand(10**12)",
        "double(1).numpy().tobytes()",
        "MemoryError",
    ),
    "a huge string": ("def double(x):\n    return 'x' * 50_000_000", SIZE, "refused"),
    "a huge number": ("def double(x):\n    return 10 ** 100_000", "str(double(1))", "ValueError"),
    "a huge list": (
        "def double(x):\n    return [10**15] * 600_000",
        "assert len(str(double(1))) <= 8 << 20",
        "refused",
    ),
    "a list inside itself": (
        "def double(x):\n    a = []\n    a.append(a)\n    return a",
        WALK,
        "RecursionError",
    ),
    "a list nested deep": (
        "def double(x):\n    a = []\n    for _ in range(10**5):\n        a = [a]\n    return a",
        WALK,
        "RecursionError",
    ),
    "a sparse tensor": (
        "def double(x):\n    return (2 * x).to_sparse()",
        ONES + "assert torch.equal(double(x).to_dense(), 2 * x)",
        "done",
    ),
    "an exception with a hostile message": (
        """
class Odd(ValueError):
    def __str__(self): raise SystemExit
def double(x):
    raise Odd
""",
        "try:\n    double(1)\nexcept Exception as error:\n    print(error)",
        "SystemExit",
    ),
    "an exception with an endless message": (
        "def double(x):\n    raise ValueError('x' * 10**7)",
        "try:\n    double(1)\nexcept ValueError as error:\n    assert len(str(error)) < 100_000",
        "refused",
    ),
    "half a character and colours": (
        "def double(x):\n    raise ValueError('\\ud800 \\x1b[31m \\x00')",
        "try:\n    double(1)\nexcept ValueError as error:\n    str(error).encode()",
        "UnicodeEncodeError",
    ),
    "an endless recursion": ("def double(x):\n    return double(x)", "double(1)", "RecursionError"),
    "a raised SystemExit": ("def double(x):\n    raise SystemExit", "double(1)", "SystemExit"),
    "a raised KeyboardInterrupt": ("def double(x):\n    raise KeyboardInterrupt", "double(1)", "KeyboardInterrupt"),
    "the input changed to fit": (
        "def double(x):\n    return x.zero_()",
        ONES + "assert torch.equal(double(x), 2 * x)",
        "done",
    ),
    "a number that claims to equal all": (
        """
class Yes(float):
    def __eq__(self, other): return True
    def __hash__(self): return 0
def double(x):
    return Yes(-1)
""",
        "assert double(1) == 2",
        "done",
    ),
}
TELL = "\n_lie = double\ndef double(x):\n    print('fired')\n    return _lie(x)\n"


@pytest.mark.parametrize("name", LIES)
def test_a_lie_earns_nothing(sandbox, source, name, heard):
    lie, believing, outcome = LIES[name]
    graded = grade_notebook(sandbox, submission(source, double="import torch\n" + lie + TELL), source)
    # What is longer than a reply may be comes without what was printed: that it was too long is the proof.
    assert "fired" in printed(heard) or "bytes is too long" in graded.items[0].message
    assert points(graded)["double_check"] == 0
    assert_fit_to_show(graded)
    assert_unharmed(sandbox, source)
    assert happens(plainly(lie, believing), memory_mb=1000) == outcome


def test_a_check_that_believes_passes_what_is_right():
    right = "def double(x):\n    return 2 * x"
    for _, believing, outcome in LIES.values():
        if outcome in ("done", "refused") and "except" not in believing:
            assert happens(plainly(right, believing)) == "done", believing


# The check's next numbers, told by the seed that student code can ask for.
FORETELL = """
def double(x):
    print("fired")
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(torch.initial_seed()))
"""
FORETOLD = "assert not torch.equal(double(1), torch.randn(3, 4)), 'foretold'"


def test_what_a_check_draws_cannot_be_foretold(sandbox, heard):
    source = source_notebook(double_check=FORETOLD)
    graded = grade_notebook(sandbox, submission(source, double=FORETELL), source, only={"double_check"})
    assert "fired" in printed(heard)
    assert statuses(graded)["double_check"] == "passed"
    own = source_notebook(double_check=FORETOLD.replace("torch.randn(3, 4))", "checks.randn(3, 4).float())"))
    own.cells[1].source += "\nfrom autograder import checks"
    graded = grade_notebook(sandbox, submission(own, double=FORETELL), own, only={"double_check"})
    assert statuses(graded)["double_check"] == "passed"
    assert happens(plainly(FORETELL, f"torch.manual_seed(5)\n{FORETOLD}")) == "refused"


@pytest.mark.parametrize("error", ["StopIteration", "StopAsyncIteration"])
def test_no_exception_ends_a_checks_loop_as_if_all_were_well(sandbox, error, heard):
    stop = f"def double(x):\n    print('fired')\n    raise {error}"
    check = "assert all(map(lambda v: double(v) == 2 * v, [1, 2])), 'wrong'"
    source = source_notebook(double_check=check)
    graded = grade_notebook(sandbox, submission(source, double=stop), source, only={"double_check"})
    assert "fired" in printed(heard)
    assert statuses(graded)["double_check"] == "error"
    assert error in graded.items[0].message
    assert happens(plainly(stop, check)) == ("done" if error == "StopIteration" else error)
    # What is an iterator ends as ever.
    each = source_notebook(double_check="numbers = double(2)\nassert next(numbers) == 0 and next(numbers, 7) == 7")
    answers = submission(each, double="def double(x):\n    return (i for i in range(1))")
    assert statuses(grade_notebook(sandbox, answers, each, only={"double_check"}))["double_check"] == "passed"


def test_a_number_with_an_imaginary_part_is_not_its_real_part(sandbox, heard):
    lie = "def double(x):\n    return torch.complex(2 * x, torch.full_like(x, 99.0))"
    check = (
        "from autograder import checks\nx = torch.ones(3, dtype=torch.float64)\nchecks.expect_close(double(x), 2 * x)"
    )
    source = source_notebook(double_check=check)
    graded = grade_notebook(sandbox, submission(source, double=lie + TELL), source, only={"double_check"})
    assert "fired" in printed(heard)
    assert statuses(graded)["double_check"] == "failed"
    assert "should be real" in graded.items[0].message
    believing = "x = torch.ones(3, dtype=torch.float64)\nassert torch.equal(double(x).double(), 2 * x)"
    assert happens(plainly(lie, believing)) == "done"


def test_keys_that_collide_cost_the_grader_nothing(sandbox, source, heard):
    lie = "def double(x):\n    return {k * (2**61 - 1): k for k in range(1, 11_000)}"
    graded = grade_notebook(sandbox, submission(source, double=lie + TELL), source, only={"double_check"})
    assert "fired" in printed(heard)
    assert "ProtocolError" in graded.items[0].message
    assert_unharmed(sandbox, source)
    # Beside it, a reader that makes a dictionary of whatever comes.
    spent = {}
    for factor in (1, 2**61 - 1):
        keys = [k * factor for k in range(1, 10_000)]
        started = time.process_time()
        dict.fromkeys(keys)
        spent[factor] = time.process_time() - started
    assert spent[2**61 - 1] > 10 * spent[1]


@pytest.mark.parametrize(
    "many",
    [
        "for _ in range({}):\n    print('x' * 100_000)\n",
        "import sys\nfor _ in range({}):\n    sys.stderr.write('x' * 100_000)\n",
    ],
)
def test_endless_output_is_cut(sandbox, source, many):
    graded = grade_notebook(sandbox, submission(source, double=many.format(1000) + WRONG), source)
    assert "the rest of the output was dropped" in str(find(graded.notebook, "double").outputs)
    assert points(graded)["double_check"] == 0
    assert_fit_to_show(graded)
    plain = subprocess.run([sys.executable, "-c", many.format(5)], capture_output=True, check=True)
    assert len(plain.stdout + plain.stderr) >= 500_000


def test_what_is_written_to_the_descriptor_goes_nowhere(sandbox, source, capfd):
    text = "import os\nprint(sum(os.write(1, b'x' * 100_000) for _ in range({})))\n"
    graded = grade_notebook(sandbox, submission(source, double=text.format(1000) + WRONG), source)
    assert "100000000" in str(find(graded.notebook, "double").outputs)
    assert_fit_to_show(graded)
    assert capfd.readouterr().out == ""
    happens(plainly(text.format(1), ""))
    assert len(capfd.readouterr().out) == 100_000


EDIT = """
import glob, sqlite3
tried = 0
for path in ["gradebook.db", "classroom/gradebook.db", *glob.glob("{}/**/gradebook.db", recursive=True)]:
    try:
        with sqlite3.connect(path) as book:
            tried += 1
            book.execute("UPDATE grade SET auto_score = 100")
    except sqlite3.Error:
        pass
print(f"tried {{tried}}")
"""


def test_the_gradebook_is_out_of_reach(sandbox, source, tmp_path, monkeypatch):
    with sqlite3.connect(tmp_path / "gradebook.db") as book:
        book.execute("CREATE TABLE grade (auto_score)")
        book.execute("INSERT INTO grade VALUES (0)")
    monkeypatch.chdir(tmp_path)
    edit = EDIT.format(tmp_path)

    def score():
        with sqlite3.connect(tmp_path / "gradebook.db") as book:
            return book.execute("SELECT auto_score FROM grade").fetchone()[0]

    graded = grade_notebook(sandbox, submission(source, double=edit + WRONG), source)
    assert "tried" in str(find(graded.notebook, "double").outputs)
    assert score() == 0
    assert happens(plainly(edit, "")) == "done"
    assert score() == 100


# ---- the worker itself in the student's hands

OWN_WORKER = """
import sys, torch
frame = sys._getframe()
while not hasattr(frame.f_locals.get("self"), "operations"):
    frame = frame.f_back
worker = frame.f_locals["self"]
"""
JUDGE = """
from autograder.wire.proxy import place
judge = "def judge(function): return torch.equal(function(torch.ones(2)), torch.full((2,), 2.0))"
assert place(judge, "judge", beside=double)(double) is True
"""


def test_a_worker_that_says_yes_to_all_fools_only_who_lets_it_judge(sandbox):
    cell = OWN_WORKER + "worker.operations['call'] = lambda *a, **k: print('fired') or True\n" + WRONG
    for answer, check, expected in ((cell, TWICE, "failed"), (cell, JUDGE, "passed"), (WRONG, JUDGE, "failed")):
        source = source_notebook(double_check=check)
        graded = grade_notebook(sandbox, submission(source, double=answer), source, only={"double_check"})
        assert graded.items[0].status == expected, graded.items


def test_a_worker_that_hands_over_no_object_costs_itself(sandbox, source):
    cell = OWN_WORKER + "worker.operations['global'] = lambda name: 1 / 0\n" + WRONG
    graded = grade_notebook(sandbox, submission(source, double=cell), source)
    told = {item.grade_id: item for item in graded.items}
    assert told["double_check"].status == "error" and "ZeroDivisionError" in told["double_check"].message
    # What the cell broke for the others is its own mistake: they are judged once more without it.
    assert {told[name].status for name in ("count_check", "Layer_check")} == {"passed"}
    assert_unharmed(sandbox, source)


FORGE_GRADIENT = """
def forge(graph, indices, gradients):
    print("fired")
    return {gradients}
worker.operations["backward"] = forge
def double(x):
    return 2 * x
"""
LEAF = "x = torch.ones(2, requires_grad=True)\ndouble(x).sum().backward()\n"


@pytest.mark.parametrize(
    "gradients, status",
    [
        ("{0: torch.ones(3)}", "crashed"),
        ("{0: torch.ones(2).double()}", "crashed"),
        ("{0: torch.ones(2, 2, device='meta')}", "crashed"),
        ("{0: 'ones'}", "crashed"),
        ("[torch.ones(2)]", "crashed"),
        ("{0: torch.ones(2)}", "failed"),
    ],
)
def test_a_forged_gradient_earns_nothing(sandbox, heard, gradients, status):
    cell = OWN_WORKER + FORGE_GRADIENT.format(gradients=gradients)
    source = source_notebook(double_check=LEAF + "assert torch.equal(x.grad, torch.full((2,), 2.0)), 'wrong'")
    graded = grade_notebook(sandbox, submission(source, double=cell), source)
    assert "fired" in printed(heard)
    assert statuses(graded)["double_check"] == status
    assert ("a gradient of the wrong kind" if status == "crashed" else "wrong") in graded.items[0].message
    assert_unharmed(sandbox, source)


def test_a_forged_gradient_fools_a_check_that_only_looks_whether_there_is_one(sandbox):
    cell = OWN_WORKER + FORGE_GRADIENT.format(gradients="{0: torch.ones(2)}")
    source = source_notebook(double_check=LEAF + "assert x.grad is not None")
    graded = grade_notebook(sandbox, submission(source, double=cell), source)
    assert statuses(graded)["double_check"] == "passed"


def test_no_check_can_catch_the_loss_of_its_worker(sandbox):
    check = "try:\n    double(1)\nexcept Exception:\n    pass\nfinally:\n    x = 1"
    source = source_notebook(double_check=check)
    graded = grade_notebook(sandbox, submission(source, double="import os\ndef double(x): os._exit(0)"), source)
    assert (graded.items[0].status, graded.items[0].message) == (
        "crashed",
        "your code was stopped: it ended the process it runs in",
    )
    raises = "def double(x): raise ValueError"
    assert happens(plainly(raises, check)) == "done"  # what is only an exception, such a check does catch


@pytest.mark.parametrize(
    "limits, statuses_expected, told",
    [
        ({"cpu_seconds": 1}, ["timeout", "passed", "passed"], "processor time"),
        ({"submission_seconds": 1}, ["timeout", "timeout", "timeout"], ""),
    ],
)
def test_the_time_is_limited(sandboxed, source, limits, statuses_expected, told):
    endless = submission(source, double="while True: pass\ndouble = max")
    with Sandbox(replace(LIMITS, cell_seconds=10, **limits), preload=()) as sandbox:
        sandbox.worker().kill()
        graded = grade_notebook(sandbox, endless, source)
    assert [item.status for item in graded.items] == statuses_expected
    assert told in graded.items[0].message
    assert happens(plainly("while True: pass", ""), seconds=1) == "hangs"


def test_tags_that_skip_execution_do_nothing(sandbox, source):
    notebook = submission(source, double=WRONG)
    for cell in notebook.cells:
        cell.metadata.tags = ["skip-execution", "raises-exception", "remove_cell"]
        cell.metadata.nbgrader = dict(cell.metadata.get("nbgrader", {}), points=100, solution=True)
    graded = grade_notebook(sandbox, notebook, source)
    assert points(graded) == {"double_check": 0, "count_check": 1, "Layer_check": 4}
    assert find(graded.notebook, "double_check").metadata == find(source, "double_check").metadata
    # Beside it, what runs notebooks for nbgrader: it skips the check, which then has no error among its outputs.
    from nbclient import NotebookClient

    check = find(notebook, "double_check")
    skipping = NotebookClient(nbformat.v4.new_notebook(cells=[check]))
    assert skipping.skip_cells_with_tag in check.metadata.tags


def test_files_beside_a_notebook_are_not_seen(sandbox, source, tmp_path, monkeypatch):
    package = tmp_path / "opt_einsum.py"
    package.write_text("fooled = True")
    peek = "try:\n    import opt_einsum\n    print('fooled')\nexcept ImportError:\n    print('fired')\n"
    nbformat.write(submission(source, double=peek + WRONG), tmp_path / "chapter.ipynb")
    monkeypatch.chdir(tmp_path)
    graded = grade_notebook(sandbox, tmp_path / "chapter.ipynb", source)
    assert find(graded.notebook, "double").outputs[0].text == "fired\n"
    assert points(graded)["double_check"] == 0
    # Beside it, a kernel that starts in the notebook's folder, as kernels do.
    import_it = "import sys\nsys.path.insert(0, '')\nimport opt_einsum\nassert opt_einsum.fooled"
    assert happens(plainly("", import_it)) == "done"


def test_only_the_references_of_earlier_chapters_can_be_imported(sandbox, source):
    cell = "from earlier import twice\ndef double(x):\n    return twice(x)"
    modules = {"earlier": "def twice(x):\n    return 2 * x\n"}

    def grade(cell):
        return grade_notebook(sandbox, submission(source, double=cell), source, modules=modules)

    assert points(grade(cell))["double_check"] == 2
    later = grade(cell.replace("earlier", "later"))
    assert statuses(later)["double_check"] == "error"
    assert "No module named 'later'" in later.items[0].message


def test_the_whole_of_a_dead_sandbox_is_started_again(sandbox, source):
    before = sandbox._process
    before.kill()
    assert_unharmed(sandbox, source)
    assert sandbox._process is not before
