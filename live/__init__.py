"""Figures that a reader moves: in JupyterLab through anywidget, in the book through a script tag.

from live import show

show("temperature", {"words": ["dog", "cat"], "scores": [2.0, 1.0]}, still=figure)
"""

from live.display import show

__all__ = ["show"]
