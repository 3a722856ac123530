"""Pages that show what a student wrote: feedback, and formgrader's. It is shown as text, and never acts.

`nbgrader_config.py` has nbconvert use `markdown` in place of its own filter, which lets a notebook's HTML through.
"""

from collections.abc import Mapping
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer
from jinja2 import pass_context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

_TAGS = """
    a abbr b blockquote br caption cite code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5
    h6 hr i img ins kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u
    ul var
""".split()  # noqa: SIM905
_ATTRIBUTES = {
    "*": ["class", "title", "align"],
    "a": ["href", "id", "rel"],
    "img": ["src", "alt", "width", "height"],
    "td": ["colspan", "rowspan", "style"],
    "th": ["colspan", "rowspan", "style"],
    **{f"h{level}": ["id"] for level in range(1, 7)},
}
_PICTURES = ("data:image/png;", "data:image/jpeg;", "data:image/gif;", "data:image/webp;")


def _allowed(tag: str, name: str, value: str) -> bool:
    if name not in (*_ATTRIBUTES["*"], *_ATTRIBUTES.get(tag, ())):
        return False
    if name == "src":
        return value.startswith(_PICTURES) or ("://" not in value and ":" not in value)
    if name == "href":
        return value.startswith(("#", "http://", "https://", "mailto:")) or ":" not in value
    return True


@pass_context
def markdown(context: Mapping[str, Any], source: str) -> str:
    """Markdown as HTML that does nothing: no script, no handler, no frame, no link but to an address or a file."""
    cell = context.get("cell", {})
    renderer = IPythonRenderer(escape=False, attachments=cell.get("attachments", {}), embed_images=False, path="")
    html = MarkdownWithMath(renderer=renderer).render(source)
    css = CSSSanitizer(allowed_css_properties=["text-align"])
    protocols = ["http", "https", "mailto", "data"]
    return bleach.clean(html, tags=_TAGS, attributes=_allowed, css_sanitizer=css, protocols=protocols)
