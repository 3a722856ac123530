"""One list of pins: the lock and the conda environment agree with pyproject.toml."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]


def test_every_dependency_is_pinned():
    assert [pin for pin in PINS if "==" not in pin] == []


def test_lock_has_the_same_versions():
    def normal(line: str) -> str:
        return line.lower().replace("_", "-")

    locked = {normal(line) for line in (ROOT / "requirements.lock").read_text().splitlines()}
    assert [pin for pin in PINS if normal(pin) not in locked] == []


def test_conda_environment_has_the_same_pins():
    lines = (ROOT / "environment.yml").read_text().splitlines()
    assert [line.split("- ")[1] for line in lines if "==" in line] == PINS
