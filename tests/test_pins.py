"""One list of pins, and a lock that holds for every Python that the course runs on."""

import os
import re
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PARTS = ("torch", "course", "book", "test")


def requirements(file: str) -> list[Requirement]:
    """The requirements of a file of the lock."""
    lines = (ROOT / "environment" / file).read_text().splitlines()
    return [Requirement(line.removesuffix("\\")) for line in lines if line[:1] not in ("", "#", " ", "-")]


def pins() -> list[Requirement]:
    """What pyproject.toml asks for, without its own name for two of its parts together."""
    extras = PROJECT["optional-dependencies"].values()
    asked = [Requirement(pin) for pin in [*PROJECT["dependencies"], *(pin for extra in extras for pin in extra)]]
    return [pin for pin in asked if pin.name != PROJECT["name"]]


def exact(requirement: Requirement) -> tuple[str, str]:
    return canonicalize_name(requirement.name), str(requirement.specifier)


def test_every_dependency_is_pinned():
    assert [pin for pin in pins() if not re.fullmatch(r"==[\d.]+", str(pin.specifier))] == []


def test_lock_has_the_same_versions():
    locked = {exact(requirement) for part in PARTS for requirement in requirements(f"{part}.lock")}
    assert [pin for pin in map(exact, pins()) if pin not in locked] == []
    [torch] = (pin for pin in pins() if pin.name == "torch")
    assert [str(requirement) for requirement in requirements("torch-cpu.lock")] == [f"{torch}+cpu"]


def test_the_lock_holds_what_the_autograder_needs():
    """It is installed beside the course, and pip is told to fetch nothing for it."""
    told = tomllib.loads((ROOT / "autograder/pyproject.toml").read_text())["project"]
    locked = {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for part in PARTS
        for pin in requirements(f"{part}.lock")
    }
    for need in map(
        Requirement,
        [*told["dependencies"], *(need for extra in told["optional-dependencies"].values() for need in extra)],
    ):
        assert need.name == told["name"] or need.specifier.contains(locked[canonicalize_name(need.name)]), need


def test_every_locked_package_has_hashes():
    for part in (*PARTS, "torch-cpu"):
        text = (ROOT / f"environment/{part}.lock").read_text()
        assert len(re.findall(r"^\S+==.*\\\n    --hash=sha256:\w{64}", text, re.M)) == len(requirements(f"{part}.lock"))


def test_conda_and_whoever_installs_in_another_way_get_the_same_versions():
    locked = {str(requirement) for part in PARTS for requirement in requirements(f"{part}.lock")}
    assert {str(requirement) for requirement in requirements("versions.txt")} == locked
    [*_, by_pip] = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert {"--constraint environment/versions.txt", "--editable .", "--editable ./autograder"} <= set(by_pip["pip"])


def test_students_do_not_get_what_only_maintainers_need():
    course = {canonicalize_name(requirement.name) for requirement in requirements("course.lock")}
    assert course.isdisjoint({"playwright", "sphinx", "psycopg2-binary", "pytest", "hypothesis", "mypy", "ruff", "uv"})


@pytest.fixture(scope="module")
def index():
    """Python's package index."""
    try:
        urllib.request.urlopen("https://pypi.org/simple/pip/", timeout=20).close()
    except (urllib.error.URLError, TimeoutError) as error:
        pytest.skip(f"pypi.org cannot be reached: {error}")


LINUX, MAC, WINDOWS = "x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"
EVERY_PYTHON = [(python, LINUX) for python in ("3.11.0", "3.11.5", "3.12", "3.13", "3.14")]


@pytest.mark.parametrize(("python", "platform"), [*EVERY_PYTHON, ("3.11.0", MAC), ("3.14", WINDOWS)])
def test_lock_resolves_to_wheels(index, python, platform, tmp_path):
    """All packages, by their hashes, ready-made, and nothing that one of them needs is missing or too old."""
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)
    files = [option for part in PARTS for option in ("--requirement", f"environment/{part}.lock")]
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--quiet",
        "--no-config",
        "--dry-run",
        "--target",
        tmp_path,
    ]
    command += ["--python-version", python, "--python-platform", platform, "--only-binary", ":all:", "--require-hashes"]
    environment = os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}  # torch has no build for older ones
    done = subprocess.run([*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.xdist_group("kept")
def test_tests_of_a_group_are_kept_together(request):
    """Which depends on how pytest and pytest-xdist get on; without it what a group shares is made several times."""
    if not request.config.getoption("loadgroup", False):
        pytest.skip("only with --dist loadgroup")
    assert request.node.nodeid.endswith("@kept")
