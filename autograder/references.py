"""The reference of earlier notebooks, importable while a check runs."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

from autograder.source import execute_definitions, in_package


@lru_cache(maxsize=64)
def _module_from_text(name: str, text: str) -> ModuleType:
    module = ModuleType(name)
    execute_definitions(text, f"<{name}>", module.__dict__)
    return module


class _ReferenceFinder(Loader):
    """Imports the reference of earlier chapters while a check runs."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = modules

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname in self.modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _module_from_text(spec.name, self.modules[spec.name])

    def exec_module(self, module: ModuleType) -> None:
        pass  # it was executed when it was made


@contextlib.contextmanager
def importable(modules: Mapping[str, str]) -> Iterator[None]:
    modules = {name: text for name, text in modules.items() if not in_package(name, modules)}  # packages are here
    finder = _ReferenceFinder(modules)
    hidden = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
    # A reference that switches its own loader on does not do so here, where it would find what students handed in.
    stands_in = [name for name in ("autograder.course.imports",) if name not in sys.modules]
    sys.modules.update({name: ModuleType(name) for name in stands_in})
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in (*modules, *stands_in):
            sys.modules.pop(name, None)
        sys.modules.update(hidden)
