"""Jupyter's server as the course starts it: `JUPYTER_CONFIG_PATH` names this folder."""

import os

from jupyter_server.base.handlers import FileFindHandler

# The threads of a kernel's torch give way while they wait for each other. By default they spin: where another program
# takes a core, a chapter then needs ten times as long, or more. On an idle machine it is the same.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


class _Forgetful(dict):
    def __setitem__(self, key: str, value: str) -> None:
        pass


# Where a file was found is kept by its name alone, and JupyterLab and Notebook have fonts of the same names: what the
# one has asked for was refused to the other, and formulas lost their letters.
FileFindHandler._static_paths = _Forgetful()
