"""Files that are there whole or not at all."""

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it, so that whoever reads it finds the old one or the new."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content)
    os.replace(temporary, path)
