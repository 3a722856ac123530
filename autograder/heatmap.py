"""Two tensors side by side as tables of shaded numbers, in HTML."""

import torch
from torch import Tensor

# A heat map larger than this says nothing in a card: its first rows and columns are shown.
_MOST_CELLS = 12


def heat_maps_of(expected: Tensor, got: Tensor) -> str:
    """Expected and got side by side as tables of shaded numbers: of more than two dimensions the matrix most off."""
    if expected.shape != got.shape or expected.dim() < 1 or expected.dtype == torch.bool or not expected.numel():
        return ""
    wrong = (expected.double() - got.double()).abs().nan_to_num(nan=torch.inf)
    item = tuple((wrong == wrong.max()).nonzero()[0, :-2].tolist()) if wrong.dim() > 2 else ()
    two = [t.double()[item].reshape(-1, t.shape[-1])[:_MOST_CELLS, :_MOST_CELLS] for t in (expected, got)]
    top = max(float(t.nan_to_num(0, 0, 0).abs().max()) for t in two) or 1.0
    place = f" (item {', '.join(map(str, item))})" if item else ""
    tables = "".join(_table(name + place, t, top) for name, t in zip(("expected", "got"), two, strict=True))
    return f'<div style="display:flex;gap:1.5em;flex-wrap:wrap;margin-top:.5em">{tables}</div>'


def _table(title: str, values: Tensor, top: float) -> str:
    rows = ""
    for row in values.tolist():
        cells = "".join(f'<td style="{_shade(v / top)}">{v:.2g}</td>' for v in row)
        rows += f"<tr>{cells}</tr>"
    caption = f'<caption style="text-align:left;white-space:nowrap">{title}</caption>'
    return f'<table style="border-collapse:collapse;font-size:85%">{caption}{rows}</table>'


def _shade(share: float) -> str:
    """Blue for positive, orange for negative, the paler the smaller; the text keeps its contrast."""
    strength = min(abs(share), 1.0) if share == share else 0.0
    red, green, blue = (8, 81, 156) if share >= 0 else (166, 54, 3)
    mixed = [round(255 + strength * (c - 255)) for c in (red, green, blue)]
    channels = [(c / 3294.6) if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in mixed]
    light = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True))
    ink = "#fff" if light < 0.179 else "#000"  # the one of the two that stands out more, by WCAG's luminance
    return f"background:rgb({mixed[0]},{mixed[1]},{mixed[2]});color:{ink};text-align:right;padding:1px 5px"
