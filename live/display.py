"""Show a live figure in a notebook, and leave in the notebook what the book and a reader without a kernel need."""

import base64
import io
import json
import os
from typing import Any

import numpy as np
from IPython.display import display

from live.bundle import LIVE, bundle
from live.models import MODELS, find_model, pack_model

# What a saved output holds besides pictures: the figure's name and data, from which the book makes the live one.
MIME = "application/vnd.attention.live+json"
MANY = 1000  # numbers in a tensor: more travel in half precision, which is a fifth of their digits


def figures() -> list[str]:
    """The names that `show` knows: the modules in `live/` with a `render`."""
    return sorted(path.stem for path in LIVE.glob("*.js") if path.stem != "book")


def show(figure: str, data: dict | None = None, still: Any = None, alt: str | None = None) -> None:
    """Show a figure that the reader can move, as the output of the cell.

    Its output is the picture that stands for it, with its data, from which the book makes the live figure. Where a page
    shows the outputs (JupyterLab, Notebook, VS Code, Colab), the live figure follows, and hides the picture. So the
    picture is what a reader finds in a notebook that was saved and opened again without its kernel.

    Args:
        figure: its name, one of `figures()`.
        data: what it shows: numbers, strings, lists, tensors and arrays by name; `live/README.md` says which.
        still: a matplotlib figure that stands for it where nothing moves; it is closed.
        alt: what the figure shows, in a sentence, for those who cannot see it.

    Raises:
        ValueError: there is no such figure, or the data holds something that cannot be sent to the page.
        FileNotFoundError: the figure needs a trained model whose files are not in the course's folder.
    """
    if figure not in figures():
        raise ValueError(f"there is no live figure {figure!r}; there are {', '.join(figures())}")
    plain = as_plain(figure, data or {})
    alt = alt or f"A figure to move: {figure}"
    bundled = {MIME: {"figure": figure, "data": plain, "alt": alt}, "text/plain": alt}
    if still is not None:
        bundled["image/png"] = _png(still)
    display(bundled, raw=True)
    if _has_page():
        display(_widget(figure, plain, alt))


def as_plain(figure: str, data: dict) -> dict:
    """The data as the page gets it: JSON, numbers with five digits, large tensors packed.

    Raises:
        ValueError: something in it cannot be sent.
    """
    try:
        return json.loads(json.dumps(data, default=_as_list, allow_nan=False), parse_float=_short)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the data of the figure {figure!r} cannot be sent to the page: {error}") from None


def _as_list(value: object) -> object:
    """A tensor, an array or one number of them as lists; a large one as half-precision numbers in base64."""
    if hasattr(value, "tolist"):
        values = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        if values.size <= MANY or values.dtype.kind != "f":
            return values.tolist()
        planes = values.astype("<f2").tobytes()
        return {"halves": base64.b64encode(planes[0::2] + planes[1::2]).decode(), "shape": list(values.shape)}
    raise TypeError(f"a {type(value).__name__} is neither a number, a string, a list, a dict nor a tensor")


def _short(number: str) -> float:
    return float(f"{float(number):.5g}")  # more digits would only make the page heavier


def _png(figure: Any) -> str:
    import matplotlib.pyplot as plt

    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    plt.close(figure)
    return base64.b64encode(picture.getvalue()).decode()


def _has_page() -> bool:
    """Whether a page shows this kernel's outputs: Jupyter's server, VS Code and Colab say so; nbclient does not."""
    return any(name in os.environ for name in ("JPY_SESSION_NAME", "VSCODE_PID", "COLAB_RELEASE_TAG"))


def _widget(figure: str, data: dict, alt: str) -> object:
    import anywidget
    import traitlets

    module = bundle({"figure": LIVE / f"{figure}.js", "tensors": LIVE / "lib/tensors.js"})

    class Figure(anywidget.AnyWidget):
        _esm = module + (LIVE / "lib/widget.mjs").read_text(encoding="utf-8")
        _css = (LIVE / "live.css").read_text(encoding="utf-8")
        data = traitlets.Dict().tag(sync=True)
        alt = traitlets.Unicode().tag(sync=True)

    widget = Figure(data=data, alt=alt)
    if figure in MODELS:
        # A model is sent when the page asks for it, so that no notebook is saved with megabytes of weights in it.
        packed = pack_model(*find_model(MODELS[figure]))
        widget.on_msg(lambda _, message, __: widget.send({"kind": "model"}, [packed]))
    return widget
