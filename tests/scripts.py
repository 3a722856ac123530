"""How tests run what `results/` is made of: in a process of its own, since its scripts change folder when imported."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run_code(code: str) -> None:
    """Run code that may import from `results/` and `tests/`; it has to end without an error."""
    there = os.environ | {"PYTHONPATH": os.pathsep.join(str(path) for path in (ROOT / "results", ROOT / "tests", ROOT))}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
