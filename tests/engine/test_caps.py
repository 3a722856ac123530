"""What a small reply shows must not cost the grader much: tensors are refused before they are built, at both ends."""

from pathlib import Path

import nbformat
import pytest
import torch
from conftest import LIMITS
from unprotected import happens, plainly

from autograder.run import grade_notebook
from autograder.wire import protocol
from notebooks import source_notebook, submission

# A check as they are written: it widens what it gets, and compares.
STATE = """
layer = Layer(3)
state = {name: value.double() for name, value in layer.state_dict().items()}
assert sum(value.sum() for value in state.values()).isfinite()
"""
CLASS = """
class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        SHOWN
"""
# In the worker, the student's code lifts the limits that an honest one keeps to.
UNLIMITED = """
import sys
frame = sys._getframe()
while not hasattr(frame.f_locals.get("self"), "operations"):
    frame = frame.f_back
frame.f_locals["self"].tensor_bytes = 1 << 60
"""
EXPANDED = 'self.register_buffer("shown", torch.zeros(1, dtype=torch.DTYPE).expand(150_000_000))'
OFTEN = "self.many = torch.zeros(LENGTH)\n    def state_dict(self): return {str(i): self.many for i in range(1000)}"
# What the class shows, whether its worker lets that pass, and what the grader says of it.
ATTACKS = {
    "a buffer that is a view of one number": (
        EXPANDED.replace("DTYPE", "float32"),
        False,
        "more memory than the limit",
    ),
    "the same, and the worker lets it pass": (EXPANDED.replace("DTYPE", "bool"), True, "is too long"),
    "what is just short enough in its own dtype": (
        OFTEN.replace("LENGTH", "7_000_000, dtype=torch.bool"),
        True,
        "ProtocolError",
    ),
    "a thousand names for one tensor": (OFTEN.replace("LENGTH", "400_000"), False, "ProtocolError"),
}


def _peak_mb(act) -> float:
    """The most memory that this process has while it does something, in megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    act()
    (peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(peak.split()[1]) / 1024


@pytest.mark.parametrize("name", ATTACKS)
def test_what_a_reply_shows_is_refused_before_it_is_built(sandbox, name):
    shown, lifted, told = ATTACKS[name]
    attack = CLASS.replace("SHOWN", shown)
    source = source_notebook(Layer_check=STATE)
    graded = []

    def grade(cell: str) -> None:
        graded.append(grade_notebook(sandbox, submission(source, Layer=cell), source, only={"Layer_check"}).items[0])

    right = _peak_mb(lambda: grade(CLASS.replace("SHOWN", "")))
    hostile = _peak_mb(lambda: grade((UNLIMITED if lifted else "") + attack))
    assert graded[0].status == "passed"
    assert graded[1].points == 0
    assert told in graded[1].message
    assert hostile < 1.15 * right
    # Beside it, the same check where nothing refuses it.
    act = plainly("import torch\nfrom torch import nn\n" + attack, STATE)
    assert happens(act, memory_mb=5 * LIMITS.reply_mb) in ("RuntimeError", "MemoryError")


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.float32, torch.float64])
def test_numbers_count_as_what_they_become(dtype):
    tensor = torch.zeros(1, dtype=dtype).expand(1000)
    with pytest.raises(ValueError, match="more memory than the limit"):
        protocol.describe(tensor, 7999)
    described, blob = protocol.describe(tensor, 8000)
    with pytest.raises(protocol.ProtocolError, match="more memory than the limit"):
        protocol.Reader([described], bytearray(blob), None, 7999)
    reader = protocol.Reader([described], bytearray(blob), None, 8000)
    assert reader.decode(["tensor", 0]).shape == (1000,)
    with pytest.raises(protocol.ProtocolError, match="more memory than the limit"):
        reader.decode(["list", ["tensor", 0], ["tensor", 0]])


PRINTS = "print('x' * 90_000)"
RAISES = "def f(n):\n    if n: f(n - 1)\n    raise ValueError('\\U0001F600' * 4_000)\nf(9)"


@pytest.mark.parametrize("cell", [PRINTS, RAISES])
def test_many_cells_leave_no_more_than_the_notebook_may(sandbox, cell):
    """Each keeps to its own cap; together they would make a hundred times of what was handed in."""
    source = source_notebook()
    handed_in = submission(source)
    handed_in.cells[1:1] = [nbformat.v4.new_code_cell(cell) for _ in range(150)]
    graded = grade_notebook(sandbox, handed_in, source, run_cells="all")  # else a raise leaves a short line
    assert {item.status for item in graded.items} == {"passed"}
    size = len(nbformat.writes(graded.notebook).encode())
    ran = [c for c in graded.notebook.cells if c.cell_type == "code" and c.source == cell]
    assert len(ran) == 150 and ran[0].outputs
    if cell == PRINTS:
        assert len(ran[0].outputs[0].text) > 9_000 and not ran[-1].outputs, "it fired, and ran into the cap"
    else:
        assert all(one.outputs[0].ename for one in ran), "each still says that it failed"
    assert size < 2 * (LIMITS.notebook_output_kb << 10) + 1_000 * len(ran)  # nbformat writes a message down twice
    assert len(ran) * (LIMITS.output_kb << 10) > 10 * (LIMITS.notebook_output_kb << 10), "each within its own cap"
