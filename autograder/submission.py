"""What was handed in, read and put in order.

Students' notebooks come back with cells deleted, doubled, moved or retyped, and without metadata when another editor
wrote them. `repair` lays what it finds over the course's own notebook: locked cells always have the course's text, the
student's cells keep theirs, whatever happened to the metadata.
"""

import json
import os
import re
import stat
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.cells import flags_of, released
from autograder.source import defined_names, remembered

MAX_CELLS = 2_000
MAX_CODE = 500_000  # characters; the grader parses them, which takes far more memory than they do
MAX_DOTS = 2_000  # in one dotted name: Python's parser takes memory that grows with their square

# A part's number, and the indices of the cells that may be it.
_Candidates = tuple[int, list[int]]


class SubmissionError(Exception):
    """What was handed in is not a notebook; the message says why."""


class TooLarge(SubmissionError):
    """It is larger than what is read, most often by what its cells have put out."""


@dataclass
class Part:
    """One cell of a repaired notebook.

    Attributes:
        role: "check", "solution", "written" (an answer in words), "course" (the course's own code), "text" (its prose)
            or "added" (by the student, code or prose).
        name: the grade_id, or what else to call the cell.
        cell: the cell as a reader of the graded notebook sees it, without hidden tests.
        source: the text in the course's notebook: of a check, that which is run.
        missing: the student's notebook has no such cell.
        untouched: the student left it as it was handed out.
    """

    role: str
    name: str
    cell: NotebookNode
    source: str = ""
    missing: bool = False
    untouched: bool = False


@dataclass
class Repaired:
    """A repaired notebook: its cells in order, and what was found by name."""

    parts: list[Part]
    metadata: NotebookNode
    problems: list[str] = field(default_factory=list)

    @property
    def notebook(self) -> NotebookNode:
        """The notebook, in nbgrader's form."""
        cells = [part.cell for part in self.parts]
        return NotebookNode(nbformat=4, nbformat_minor=5, metadata=deepcopy(self.metadata), cells=cells)


def read_notebook(path: Path, max_mb: float = 20) -> NotebookNode:
    """Read a notebook that anybody may have written.

    Args:
        path: the file.
        max_mb: the largest that is read.

    Returns:
        A notebook of format 4 whose cells have a known type and text; nothing else about it is certain.

    Raises:
        SubmissionError: it is none.
    """
    try:
        # A named pipe would never end, a link could lead to another student's file.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SubmissionError("it is not a file")
            data = file.read(int(max_mb * (1 << 20)) + 1)
    except FileNotFoundError:
        raise SubmissionError("there is no notebook of that name") from None
    except OSError as error:
        raise SubmissionError(f"it cannot be read: {error.strerror}") from None
    if len(data) > max_mb * (1 << 20):
        raise TooLarge(f"it is larger than {max_mb:g} MB: clear its outputs and save it")
    return as_notebook(parse(data))


def parse(data: bytes) -> Any:
    """The JSON data in a notebook's file.

    Raises:
        SubmissionError: there is none.
    """
    if not data.strip():
        raise SubmissionError("it is empty")
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise SubmissionError("it is not a notebook: not JSON") from None


def as_notebook(notebook: Any) -> NotebookNode:
    """JSON data as a notebook of format 4.

    Raises:
        SubmissionError: it is none.
    """
    if isinstance(notebook, dict) and isinstance(notebook.get("nbformat"), int) and notebook["nbformat"] < 4:
        _cap_headings(notebook)
        try:
            notebook = nbformat.convert(nbformat.from_dict(notebook), 4)
        except Exception:
            raise SubmissionError("it is a notebook of an old format that cannot be converted") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise SubmissionError("it is not a notebook: it has no cells")
    if len(notebook["cells"]) > MAX_CELLS:
        raise SubmissionError(f"it has more than {MAX_CELLS} cells")
    try:
        cells = [cell for cell in map(_clean_cell, _encodable(notebook["cells"])) if cell is not None]
    except (RecursionError, ValueError, TypeError):
        raise SubmissionError("it is not a notebook: its cells are malformed") from None
    if sum(len(cell.source) for cell in cells if cell.cell_type == "code") > MAX_CODE:
        raise SubmissionError(f"it holds more than {MAX_CODE:,} characters of code")
    for cell in cells:
        if cell.cell_type == "code" and _most_dots(cell.source) > MAX_DOTS:
            raise SubmissionError(f"it holds a name of more than {MAX_DOTS:,} parts")
    return NotebookNode(nbformat=4, nbformat_minor=5, metadata=NotebookNode(), cells=cells)


def _cap_headings(notebook: dict) -> None:
    """Old formats say how many `#` a heading has by a number, and conversion writes as many."""
    sheets = notebook.get("worksheets")
    for sheet in sheets if isinstance(sheets, list) else []:
        cells = sheet.get("cells") if isinstance(sheet, dict) else None
        for cell in cells if isinstance(cells, list) else []:
            if isinstance(cell, dict) and "level" in cell:
                level = cell["level"]
                cell["level"] = min(max(level, 1), 6) if type(level) is int else 1


@remembered
def _most_dots(text: str) -> int:
    """The dots of the longest dotted name, or of what could be one across blanks and continued lines."""
    runs = re.findall(r"[\w.\s\\]+", text)
    return max((len(re.findall(r"\.[\s\\]*\w", run)) for run in runs), default=0)


def _encodable(cells: list) -> list:
    """The same cells without half characters, which JSON can hold but no file can."""
    text = json.dumps(cells, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-8", "replace"))
    return cells


def _clean_cell(cell: Any) -> NotebookNode | None:
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    clean = NotebookNode(cell_type=cell["cell_type"], source=source.replace("\r\n", "\n"), metadata=NotebookNode())
    clean.grade_id = grade_id if isinstance(grade_id, str) else None
    clean.id = cell["id"] if isinstance(cell.get("id"), str) else None
    clean.outputs = cell["outputs"] if isinstance(cell.get("outputs"), list) else []
    clean.execution_count = count if type(count := cell.get("execution_count")) is int else None
    if isinstance(attachments := cell.get("attachments"), dict) and all(map(_is_attachment, attachments.values())):
        clean.attachments = attachments
    return clean


def _is_attachment(bundle: Any) -> bool:
    return isinstance(bundle, dict) and all(isinstance(data, str) for data in bundle.values())


def _is_output(output: Any) -> bool:
    try:
        nbformat.validate(output, ref="output", version=4)
    except Exception:
        return False
    return True


def repair(submitted: NotebookNode, source: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """Mend a submission.

    Args:
        submitted: what was handed in.
        source: the course's notebook, with or without solutions and hidden tests.

    Returns:
        The notebook as nbgrader wants it, without solutions and hidden tests, and what was found, by cell name.

    Raises:
        SubmissionError: what was handed in is not a notebook.
    """
    repaired = lay_over(as_notebook(submitted), source)
    for part in repaired.parts:
        if part.cell.cell_type == "code":
            part.cell.outputs = [nbformat.from_dict(output) for output in part.cell.outputs if _is_output(output)]
    return repaired.notebook, repaired.problems


def lay_over(submitted: NotebookNode, source: NotebookNode) -> Repaired:
    """Lay a submission over the course's notebook.

    Args:
        submitted: what was handed in, from `read_notebook` or `as_notebook`.
        source: the course's notebook, with or without solutions and hidden tests.

    Returns:
        The cells in the course's order, each of the student's additions behind the cell that it followed.
    """
    parts = [_part(cell, i) for i, cell in enumerate(source.cells)]
    problems: list[str] = []
    claims = _claim(parts, source.cells, submitted.cells, problems)
    owner = {index: number for number, index in claims.items()}

    behind: dict[int, list[Part]] = {}
    place = -1
    for index, cell in enumerate(submitted.cells):
        if index in owner:
            place = owner[index]
        elif cell.source.strip() and not _is_copy(cell, parts):
            behind.setdefault(place, []).append(_added(cell, index))

    for number, part in enumerate(parts):
        _fill(part, submitted.cells[claims[number]] if number in claims else None, problems)
    ordered = [*behind.get(-1, [])]
    for number, part in enumerate(parts):
        ordered += [part, *behind.get(number, [])]
    _normal.cache_clear()  # kept until here, so that a class does not fill the memory
    return Repaired(ordered, NotebookNode(source.metadata), problems)


def _part(cell: NotebookNode, index: int) -> Part:
    flags = flags_of(cell)
    code = cell.cell_type == "code"
    if flags.get("solution") or flags.get("task"):
        role = "solution" if code else "written"
    elif flags.get("grade") and code:
        role = "check"
    else:
        role = "course" if code else "text"
    mended = NotebookNode(cell_type=cell.cell_type, id=cell.get("id") or f"cell-{index}", source=released(cell))
    mended.metadata = NotebookNode(nbgrader=deepcopy(flags)) if flags else NotebookNode()
    if code:
        mended.update(outputs=[], execution_count=None)
    elif "attachments" in cell:
        mended.attachments = deepcopy(cell.attachments)
    return Part(role, flags.get("grade_id") or f"cell {index + 1}", mended, cell.source)


def _claim(
    parts: list[Part], source: list[NotebookNode], cells: list[NotebookNode], problems: list[str]
) -> dict[int, int]:
    """Which of the student's cells is which of the course's: the index of one by the number of the other.

    The rules are tried one after the other; each names cells that may be a part's own, and sees what is claimed so far.
    """
    claims: dict[int, int] = {}
    for rule in (_by_name, _by_id_or_text, _by_definition, _by_place):
        for number, found in rule(parts, source, cells, claims):
            candidates = [i for i in found if i not in claims.values()]
            if number in claims or not candidates:
                continue
            if len(candidates) > 1:
                problems.append(f"`{parts[number].name}` is there {len(candidates)} times")
            changed = [i for i in candidates if not _same(cells[i].source, parts[number].cell.source)]
            # As in the student's own notebook, the last one counts.
            claims[number] = (changed or candidates)[-1]
    return claims


def _by_name(parts: list[Part], source: list, cells: list[NotebookNode], claims: dict) -> Iterator[_Candidates]:
    names = [cell.grade_id for cell in cells]  # read once: a notebook's attributes are slow
    for number, part in enumerate(parts):
        if flags_of(part.cell):
            yield number, [i for i, name in enumerate(names) if name == part.name]


def _by_id_or_text(parts: list[Part], source: list, cells: list[NotebookNode], claims: dict) -> Iterator[_Candidates]:
    ids = [cell.id for cell in cells]
    for number, part in enumerate(parts):
        yield number, [i for i, own in enumerate(ids) if own and own == source[number].get("id")][:1]
        if number not in claims and part.role != "solution":
            same = [i for i, cell in enumerate(cells) if _same(cell.source, part.cell.source)]
            yield number, [i for i in same if i not in claims.values()][:1]


def _by_definition(parts: list[Part], source: list, cells: list[NotebookNode], claims: dict) -> Iterator[_Candidates]:
    """A solution that lost its metadata is known by the name that it defines."""
    unclaimed = [n for n, part in enumerate(parts) if part.role == "solution" and n not in claims]
    defined = [set(defined_names(cell.source)) for cell in cells] if unclaimed else []
    for number in unclaimed:
        wanted = set(defined_names(parts[number].source)[:1])
        yield number, [i for i, names in enumerate(defined) if wanted & names]


def _by_place(parts: list[Part], source: list, cells: list[NotebookNode], claims: dict) -> Iterator[_Candidates]:
    """An answer in words that lost its metadata is the prose behind what stood before it."""
    for number, part in enumerate(parts):
        if part.role == "written" and number not in claims and number - 1 in claims:
            index = claims[number - 1] + 1
            yield number, [index] if index < len(cells) and cells[index].cell_type == "markdown" else []


def _fill(part: Part, cell: NotebookNode | None, problems: list[str]) -> None:
    locked = part.role == "check" or bool(flags_of(part.cell).get("locked"))
    if cell is None:
        part.missing = True
        if flags_of(part.cell):
            problems.append(f"`{part.name}` is missing")
        return
    part.untouched = _same(cell.source, part.cell.source)
    if flags_of(part.cell) and cell.cell_type != part.cell.cell_type:
        problems.append(f"`{part.name}` was turned into a {cell.cell_type} cell")
    if flags_of(part.cell) and cell.grade_id != part.name:
        problems.append(f"`{part.name}` had lost its metadata")
    if part.cell.cell_type == "code":
        part.cell.execution_count = cell.execution_count
    if not locked:
        part.cell.source = cell.source
        if part.cell.cell_type == "code":
            part.cell.outputs = cell.outputs
        elif "attachments" in cell:
            part.cell.attachments = cell.attachments
    elif not part.untouched and not _same(cell.source, part.source):
        problems.append(f"`{part.name}` is locked, but was changed: the course's own text is used")


def _added(cell: NotebookNode, index: int) -> Part:
    if cell.cell_type == "raw":  # which a page would take over as it is, markup and all
        quoted = "\n".join(f"    {line}" for line in cell.source.split("\n"))
        cell = NotebookNode(cell_type="markdown", source=quoted)
    kept = NotebookNode(cell_type=cell.cell_type, id=f"added-{index}", source=cell.source, metadata=NotebookNode())
    if cell.cell_type == "code":
        kept.update(outputs=cell.outputs, execution_count=cell.execution_count)
    elif "attachments" in cell:
        kept.attachments = cell.attachments
    return Part("added", f"cell {index + 1}", kept, cell.source)


def _is_copy(cell: NotebookNode, parts: list[Part]) -> bool:
    """Whether a cell only repeats what the course handed out, or bears the name of a locked cell."""
    for part in parts:
        if part.role == "check" and cell.grade_id == part.name:
            return True
        if part.role in ("check", "solution") and _same(cell.source, part.cell.source):
            return True
    return False


def _same(one: str, other: str) -> bool:
    return _normal(one) == _normal(other)


@lru_cache(maxsize=2 * MAX_CELLS)
def _normal(text: str) -> str:
    """A text without the blanks and blank lines that editors add and drop."""
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))
