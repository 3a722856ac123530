"""Several of the ES modules of `live/` as one script, since a browser loads no module from a `file:` address.

The modules are written for it: every import is of names, from a relative path and on a line of its own, and every
export is a declaration (`export function`, `export const`).
"""

import re
from pathlib import Path

LIVE = Path(__file__).resolve().parent
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|let|class) (\w+))", re.MULTILINE)


def bundle(entries: dict[str, Path]) -> str:
    """Join modules and all that they import, each in a scope of its own.

    Args:
        entries: modules by the name that the script is to give to their exports.

    Returns:
        JavaScript that declares one constant for each entry, an object of its exports.

    Raises:
        ValueError: a module imports or exports in another form.
    """
    done: dict[Path, str] = {}
    scripts: list[str] = []
    constants = [f"const {name} = {_add(path.resolve(), done, scripts)};" for name, path in entries.items()]
    return "\n".join([*scripts, *constants]) + "\n"


def _add(path: Path, done: dict[Path, str], scripts: list[str]) -> str:
    """Append a module, after what it imports; returns the constant that holds its exports."""
    if path in done:
        return done[path]
    source = path.read_text(encoding="utf-8")

    def link(found: re.Match) -> str:
        names = found[1].replace(" as ", ": ")
        return f"const {{{names}}} = {_add((path.parent / found[2]).resolve(), done, scripts)};\n"

    body = _EXPORT.sub("", _IMPORT.sub(link, source))
    if left := re.search(r"^(import|export)\b.*", body, re.MULTILINE):
        raise ValueError(f"{path.name}: `{left[0]}` is a form that live/bundle.py does not know")
    done[path] = f"module_{len(done)}"
    exports = ", ".join(found[1] for found in _EXPORT.finditer(source))
    scripts.append(f"// {path.name}\nconst {done[path]} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();")
    return done[path]
