"""What a small reply shows must not cost the grader much: tensors are refused before they are built, at both ends."""

from pathlib import Path

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
