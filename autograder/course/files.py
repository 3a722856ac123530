"""Files that are there whole or not at all."""

import csv
import io
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

# What ends the name of a file that was kept aside.
KEPT_ASIDE = ".bak"


def replace_file(path: Path, content: bytes, backup: Path | None = None) -> None:
    """Write a file under another name and rename it, so that whoever reads it finds the old one or the new.

    Args:
        path: the file.
        content: all of it.
        backup: what the old file is called from now on, if it is to be kept.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_bytes(content)
        if backup:
            path.rename(backup)
        os.replace(temporary, path)
    except OSError as error:  # a full disk, most often, which names no file
        error.filename = error.filename or str(path)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if backup and backup.exists() and not path.exists():
            backup.rename(path)
        raise


def replace_table(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV as `replace_file` does."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    replace_file(path, text.getvalue().encode())
