"""Pages that show what a student wrote: feedback, and formgrader's. It is shown as text, and never acts.

`nbgrader_config.py` has nbconvert use `markdown` in place of its own filter, which lets a notebook's HTML through. What
a student wrote gets no class, id, style or size, by which it could lie over the page or look like a part of it; no link
that works, and no picture but one that came with the notebook. The course's own locked cells may have more.
"""

import html
import re
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree

import bleach
from bleach.css_sanitizer import CSSSanitizer
from jinja2 import pass_context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

convert: Callable[..., str] | None
try:
    from latex2mathml.converter import convert
except ModuleNotFoundError:  # formulas then stay as they were typed
    convert = None

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
# A formula, or code that may look like one.
FORMULA = re.compile(
    r"(?P<code>```.*?```|`[^`\n]*`)|\$\$(?P<block>.+?)\$\$|(?<![\\$])\$(?P<inline>[^$\n]+?(?:\n[^$\n]+?)*)\$", re.DOTALL
)
_LONGEST_FORMULA, _MOST_FORMULAS = 1_000, 100
# The time for tags, headings and tables grows with their number squared: these cost a second, and few write so many.
_LONGEST_TEXT, _MOST_MARKS = 20_000, 2_000
_MARK = re.compile("[<#|=*~`]")
_DATA = re.compile("data:image/[a-z]+;base64,[A-Za-z0-9+/=]+")
_MATHML = """
    math mfrac mi mmultiscripts mn mo mover mpadded mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext
    mtr munder munderover
""".split()  # noqa: SIM905
_MATHML_ATTRIBUTES = ("accent", "display", "fence", "form", "mathvariant", "movablelimits", "separator", "stretchy")


@pass_context
def markdown(context: Mapping[str, Any], source: str) -> str:
    """Markdown as HTML that does nothing: the course's own if the cell is locked, a student's otherwise."""
    cell = context.get("cell", {})
    if cell.get("metadata", {}).get("nbgrader", {}).get("locked"):
        source, formulas = _without_formulas(source)
        return _with_formulas(of_the_course(source), formulas)
    return of_a_student(source, cell.get("attachments", {}))


def of_the_course(source: str) -> str:
    """Markdown of the course's own as HTML that does nothing: no script, no handler, no frame, no strange address."""
    css = CSSSanitizer(allowed_css_properties=["text-align"])
    protocols = ["http", "https", "mailto", "data"]
    return bleach.clean(_rendered(source), tags=_TAGS, attributes=_allowed, css_sanitizer=css, protocols=protocols)


def of_a_student(source: str, attachments: dict[str, dict[str, str]] | None = None) -> str:
    """Markdown that anybody may have written as HTML that only reads: tags without attributes, addresses as text.

    What is very long, or mostly marks, is shown as it was typed.

    Args:
        source: the text.
        attachments: pictures that the cell brought along, by name and by type, in base64.
    """
    text = _DATA.sub("", source)
    if len(text) > _LONGEST_TEXT or len(_MARK.findall(text)) > _MOST_MARKS:
        return f'<pre class="tex2jax_ignore">{html.escape(source)}</pre>'
    source, formulas = _without_formulas(source)
    page = bleach.clean(
        _rendered(source, attachments or {}),
        tags=_TAGS,
        attributes={"a": ["href"], "img": lambda tag, name, value: name == "alt" or _is_picture(name, value)},
        protocols=["http", "https", "mailto", "data"],
    )
    page = re.sub(r'<a(?: href="([^"]*)")?>(.*?)</a>', _told, page, flags=re.DOTALL)
    pictures = {"img": lambda tag, name, value: name == "alt" or _is_picture(name, value)}
    page = bleach.clean(page, tags=[tag for tag in _TAGS if tag != "a"], attributes=pictures, protocols=["data"])
    # MathJax, where a page loads it, would find formulas of its own in the text, with links and styles in them.
    return f'<div class="tex2jax_ignore">{_with_formulas(page, formulas)}</div>'


def _without_formulas(source: str) -> tuple[str, list[str]]:
    """Markdown with a mark in the place of each formula, and the formulas as MathML."""
    formulas: list[str] = []

    def keep(found: re.Match) -> str:
        latex = found["block"] or found["inline"]
        if found["code"] or len(formulas) == _MOST_FORMULAS or not (math := _mathml(latex, bool(found["block"]))):
            return found[0]
        formulas.append(math)
        return f"\ue000{len(formulas) - 1}\ue001"

    return FORMULA.sub(keep, source.replace("\ue000", "\ufffd")), formulas


def _with_formulas(page: str, formulas: list[str]) -> str:
    # A mark that nothing stands for was typed by a student, as an entity.
    known = {f"\ue000{number}\ue001": formula for number, formula in enumerate(formulas)}
    return re.sub("\ue000([0-9]{1,3})\ue001", lambda found: known.get(found[0], ""), page)


def _rendered(source: str, attachments: dict[str, dict[str, str]] | None = None) -> str:
    renderer = IPythonRenderer(escape=False, attachments=attachments or {}, embed_images=False, path="")
    page = MarkdownWithMath(renderer=renderer).render(source)
    # The marks of formulas: nbconvert takes headings apart, and puts them together in ASCII.
    return page.replace("&#57344;", "\ue000").replace("&#57345;", "\ue001")


def _allowed(tag: str, name: str, value: str) -> bool:
    if name not in (*_ATTRIBUTES["*"], *_ATTRIBUTES.get(tag, ())):
        return False
    if name == "src":
        return value.startswith(_PICTURES) or ("://" not in value and ":" not in value)
    if name == "href":
        return value.startswith(("#", "http://", "https://", "mailto:")) or ":" not in value
    return True


def _is_picture(name: str, value: str) -> bool:
    return name == "src" and value.startswith(_PICTURES)


def _told(link: re.Match) -> str:
    """A link as its text and its address."""
    address, text = html.unescape(link[1] or ""), link[2]
    if "://" not in address or address in html.unescape(text):
        return "" if html.unescape(text) == "¶" else text  # which stands beside each heading, and leads to it
    return f"{text} ({html.escape(address)})"


def _mathml(latex: str, block: bool) -> str:
    """A formula as MathML that holds nothing but numbers, letters and their places; empty where that fails."""
    if convert is None or len(latex) > _LONGEST_FORMULA:
        return ""
    try:
        # Its text is not always escaped, and is no XML then.
        return _bare(ElementTree.fromstring(convert(latex, display="block" if block else "inline")))
    except Exception:  # whatever it raises at a formula that is none
        return ""


def _bare(element: ElementTree.Element) -> str:
    tag = element.tag.rpartition("}")[2]
    if tag not in _MATHML:
        raise ValueError(tag)
    kept = [(name, element.get(name, "")) for name in _MATHML_ATTRIBUTES]
    attributes = "".join(f' {name}="{value}"' for name, value in kept if re.fullmatch("[a-z-]{1,30}", value))
    inside = "".join(_bare(child) + html.escape(child.tail or "") for child in element)
    return f"<{tag}{attributes}>{html.escape(element.text or '')}{inside}</{tag}>"
