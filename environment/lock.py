"""Write the lock anew from the pins in pyproject.toml: one resolution, by uv, for every Python and platform.

    make lock            keeps what is locked, adds what a changed pin needs
    make lock UPGRADE=1  takes the newest of everything that is not pinned

Its parts are installed one after the other, each checked by its hashes: torch, or its build without CUDA where there is
one, then the course, then what only `make book` and `make test` need. `versions.txt` is all of it without hashes, for
`environment.yml` and whoever installs in another way.
"""

import re
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
OLDEST = "3.11.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CPU_WHEEL = r"torch-{}(?:\+|%2B)cpu-cp3(?:11|12|13|14)-cp3\d\d-manylinux_2_28_(?:x86_64|aarch64)\.whl#sha256=(\w{{64}})"
# torch, and what it brings along for graphics cards.
CUDA = re.compile(r"(torch|triton|nvidia-.+|cuda-.+)==")
HEADER = "# Written by `make lock` from the pins in pyproject.toml: do not edit.\n"


def main() -> None:
    """Write every file of the lock."""
    constraints = HERE / "versions.txt"
    constraints.touch()
    locked = [] if "--upgrade" in sys.argv else re.findall(r"^[^#\s].*", constraints.read_text(encoding="utf-8"), re.M)
    extras = PROJECT["project"]["optional-dependencies"].values()
    pinned = {name_of(pin) for pins in (PROJECT["project"]["dependencies"], *extras) for pin in pins}
    known = [version for version in locked if name_of(version) not in pinned]  # a pin may have changed
    everything = compile_pins("--all-extras", "--generate-hashes", constraints=known)
    versions = [block.split(" \\\n")[0] for block in everything]
    course = names(versions)
    book = names(versions, "--extra", "book") - course

    parts = {
        "torch.lock": [b for b in everything if CUDA.match(b)],
        "course.lock": [b for b in everything if name_of(b) in course and not CUDA.match(b)],
        "book.lock": [b for b in everything if name_of(b) in book],
        "test.lock": [b for b in everything if name_of(b) not in course | book],
        "versions.txt": [f"{version}\n" for version in versions],
    }
    [torch] = re.findall(r"^torch==(\S+)", "\n".join(parts["torch.lock"]), re.M)
    parts["torch-cpu.lock"] = cpu_build(torch)
    for file, blocks in parts.items():
        (HERE / file).write_text(HEADER + "".join(blocks), encoding="utf-8")
        print(f"environment/{file}: {sum(not b.startswith('-') for b in blocks)} packages")


def compile_pins(*options: str, constraints: list[str]) -> list[str]:
    """What uv resolves the project's pins to.

    Args:
        options: further options for `uv pip compile`.
        constraints: versions to keep, as requirements.

    Returns:
        One text for each package: its requirement, with hashes if these were asked for.
    """
    kept, build = HERE / ".constraints.in", HERE / ".build.in"
    try:
        kept.write_text("\n".join(constraints), encoding="utf-8")
        # What builds the course's own package is installed with it, so that nothing unlocked is fetched for that.
        build.write_text("\n".join(PROJECT["build-system"]["requires"]), encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-config", "--universal"]
        command += ["--python-version", OLDEST, "--only-binary", ":all:", "--no-annotate", "--no-header"]
        command += ["--constraint", str(kept), *options, "pyproject.toml", str(build)]
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    finally:
        kept.unlink(missing_ok=True)
        build.unlink(missing_ok=True)
    if done.returncode:
        sys.exit(done.stderr)
    return re.findall(r"^[^#\s].*\n(?:[ \t]+.*\n)*", done.stdout, re.M)


def names(versions: list[str], *options: str) -> set[str]:
    """The packages that a part of the project needs, at the given versions."""
    return {name_of(block) for block in compile_pins(*options, constraints=versions)}


def name_of(block: str) -> str:
    """The package that a requirement is about."""
    return block.partition("==")[0]


def cpu_build(torch: str) -> list[str]:
    """torch without CUDA, for Linux: its hashes from PyTorch's own index, or as they are if that is not reached.

    Args:
        torch: the version.
    """
    file = HERE / "torch-cpu.lock"
    try:
        with urllib.request.urlopen(f"{CPU_INDEX}/torch/", timeout=20) as page:
            hashes = sorted(set(re.findall(CPU_WHEEL.format(re.escape(torch)), page.read().decode())))
    except OSError as error:
        if not file.is_file() or f"torch=={torch}+cpu" not in file.read_text(encoding="utf-8"):
            sys.exit(f"{CPU_INDEX} cannot be reached ({error}), and it alone knows the hashes of torch {torch}+cpu")
        hashes = re.findall(r"sha256:(\w{64})", file.read_text(encoding="utf-8"))
    if not hashes:
        sys.exit(f"{CPU_INDEX} has no torch {torch}+cpu")
    requirement = " \\\n    ".join([f"torch=={torch}+cpu", *(f"--hash=sha256:{h}" for h in hashes)])
    return [f"--index-url {CPU_INDEX}\n", f"{requirement}\n"]


if __name__ == "__main__":
    main()
