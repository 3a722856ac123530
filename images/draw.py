"""Draw every diagram of the course, in one style.

    python images/draw.py

writes one SVG for each function marked `@diagram`, beside this file. A function's name is the file's name and its
docstring says what the picture shows: it becomes the SVG's description, and serves as alt text. Pictures are 720
units wide on a light card of their own, so that they can be read on a dark page, on a phone (at half size) and in a
grey print: the fills differ in lightness, not only in hue.
"""

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

WIDTH = 720
SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif'
MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace'

CARD, WHITE, INK, MUTED, LINE = "#fcfbf7", "#ffffff", "#1b2430", "#4b5563", "#8a8f98"
# One colour for each role, from light to dark.
INPUT, QUERY, KEY, VALUE, OUTPUT = "#fbe9b0", "#b7d8f0", "#f0ae74", "#5fae93", "#6b559f"
HEADS = (INPUT, QUERY, KEY)

Point = tuple[float, float]
DIAGRAMS: dict[str, Callable[[], str]] = {}


def diagram(takeaway: str, height: int) -> Callable:
    """Register a function that draws one picture.

    Args:
        takeaway: what to remember, written inside the picture as its title.
        height: of the picture, which is always 720 wide.

    Returns:
        A decorator for a function that draws on the SVG element it is given.
    """

    def register(draw: Callable[[ET.Element], None]) -> Callable[[ET.Element], None]:
        def render() -> str:
            svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {height}"})
            svg.attrib |= {"width": str(WIDTH), "height": str(height), "role": "img", "font-family": SANS}
            ET.SubElement(svg, "title").text = takeaway
            ET.SubElement(svg, "desc").text = " ".join(draw.__doc__.split())
            add(svg, "rect", x=1, y=1, width=WIDTH - 2, height=height - 2, rx=14, fill=CARD, stroke=LINE)
            text(svg, 24, 36, takeaway, size=20, bold=True, anchor="start")
            draw(svg)
            for child in svg:  # ET.indent would put spaces around subscripts
                child.tail = "\n"
            return ET.tostring(svg, encoding="unicode") + "\n"

        DIAGRAMS[draw.__name__] = render
        return draw

    return register


# ---- primitives


def add(parent: ET.Element, tag: str, **attributes: str | float) -> ET.Element:
    """Append an element; `font_size=12.04` becomes `font-size="12"`."""
    written = {
        name.replace("_", "-"): value if isinstance(value, str) else f"{round(value, 1):g}"
        for name, value in attributes.items()
    }
    return ET.SubElement(parent, tag, written)


def lightness(colour: str) -> float:
    """How light a `#rrggbb` colour looks: CIE L*, 0 (black) to 100 (white)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def ink_on(fill: str) -> str:
    """The text colour that can be read on `fill`."""
    return INK if lightness(fill) > 60 else WHITE


def heat(weight: float) -> str:
    """White for 0 to dark blue for 1; it skips the middle greys on which no text can be read."""
    share = 0.55 * weight if weight < 0.5 else 0.5 + 0.5 * weight
    return "#" + "".join(f"{round(255 + share * (dark - 255)):02x}" for dark in (0x1F, 0x4E, 0x79))


def text(
    svg: ET.Element,
    x: float,
    y: float,
    string: str,
    size: float = 17,
    colour: str = INK,
    anchor: str = "middle",
    bold: bool = False,
    mono: bool = False,
) -> None:
    """Write lines of text centred at height `y`; `y_{i}` sets a subscript."""
    lines = string.split("\n")
    for number, line in enumerate(lines):
        baseline = y + 0.35 * size + (number - (len(lines) - 1) / 2) * 1.25 * size
        style = {"font_weight": "bold"} if bold else {}
        style |= {"font_family": MONO} if mono else {}
        written = add(svg, "text", x=x, y=baseline, font_size=size, fill=colour, text_anchor=anchor, **style)
        written.text, *rest = re.split(r"_\{(.*?)\}", line)
        for subscript, after in zip(rest[::2], rest[1::2], strict=True):
            add(written, "tspan", dy=0.25 * size, font_size=max(13, 0.75 * size)).text = subscript
            if after:
                add(written, "tspan", dy=-0.25 * size).text = after


def shape(svg: ET.Element, x: float, y: float, string: str, anchor: str = "middle") -> None:
    """Write a tensor's shape."""
    text(svg, x, y, string, size=16, colour=MUTED, anchor=anchor, mono=True)


def box(
    svg: ET.Element,
    x: float,
    y: float,
    width: float,
    height: float,
    label: str = "",
    fill: str = WHITE,
    dashed: bool = False,
    **style: float | bool,
) -> None:
    """Draw a rounded box with a label in its middle."""
    outline = {"stroke": LINE, "stroke_dasharray": "5 4"} if dashed else {"stroke": INK}
    add(svg, "rect", x=x, y=y, width=width, height=height, rx=8, fill=fill, stroke_width=1.5, **outline)
    if label:
        text(svg, x + width / 2, y + height / 2, label, colour=ink_on(fill) if fill != "none" else INK, **style)


def line(svg: ET.Element, *points: Point, width: float = 2, colour: str = INK, dashed: bool = False) -> None:
    """Draw a line through points."""
    dash = {"stroke_dasharray": "5 4"} if dashed else {}
    path = " ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in points)
    add(svg, "polyline", points=path, fill="none", stroke=colour, stroke_width=width, stroke_linejoin="round", **dash)


def arrow(svg: ET.Element, *points: Point, width: float = 2, colour: str = INK, dashed: bool = False) -> None:
    """Draw a line through points that ends in an arrow head."""
    (x0, y0), (x1, y1) = points[-2:]
    length, half = 6 + 1.5 * width, 3.5 + width
    dx, dy = (x1 - x0) / math.dist(*points[-2:]), (y1 - y0) / math.dist(*points[-2:])
    back = (x1 - length * dx, y1 - length * dy)
    line(svg, *points[:-1], back, width=width, colour=colour, dashed=dashed)
    corners = ((x1, y1), (back[0] - half * dy, back[1] + half * dx), (back[0] + half * dy, back[1] - half * dx))
    add(svg, "polygon", points=" ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in corners), fill=colour)


def grid(
    svg: ET.Element,
    x: float,
    y: float,
    fills: list[list[str]],
    labels: list[list[str]] | None = None,
    width: float = 40,
    height: float = 40,
    size: float = 16,
) -> None:
    """Draw a matrix, one filled cell (with a label, if given) for each entry."""
    for i, row in enumerate(fills):
        for j, fill in enumerate(row):
            left, top = x + j * width, y + i * height
            add(svg, "rect", x=left, y=top, width=width, height=height, fill=fill, stroke=INK)
            if labels and labels[i][j]:
                text(svg, left + width / 2, top + height / 2, labels[i][j], size=size, colour=ink_on(fill))


def filled(rows: int, columns: int, fill: str = WHITE) -> list[list[str]]:
    """The fills of a matrix in one colour."""
    return [[fill] * columns for _ in range(rows)]


def plus(svg: ET.Element, x: float, y: float) -> None:
    """Draw the circled plus where a residual path is joined."""
    add(svg, "circle", cx=x, cy=y, r=13, fill=WHITE, stroke=INK, stroke_width=2)
    line(svg, (x - 7, y), (x + 7, y))
    line(svg, (x, y - 7), (x, y + 7))


def number(value: float) -> str:
    """Write a number with at most two decimals and a real minus sign."""
    return f"{round(value, 2):g}".replace("-", "−")


# ---- 00 start_here


@diagram("From a weighted average to a translator, and on", 820)
def course_map(svg: ET.Element) -> None:
    """The thirteen chapters as a winding path: start here, weighted averages, normalized dot products, queries keys and
    values, multi-head attention, positions, the transformer block, classification, seq2seq with attention, the
    encoder-decoder, a translator from German into English, a language model, and pretraining."""
    stops = [
        ("Start here", "shapes, einsum", INPUT),
        ("Weighted\naverages", "y = W x", INPUT),
        ("Normalized\ndot products", "W from x itself", INPUT),
        ("Queries, keys,\nvalues", "scale, masks", QUERY),
        ("Multi-head\nattention", "narrow, wide", QUERY),
        ("Positions", "sets get order", QUERY),
        ("Transformer\nblock", "norm, residual", QUERY),
        ("IMDB\nreviews", "a classifier", KEY),
        ("GRU with\nattention", "it learns to align", KEY),
        ("Encoder,\ndecoder", "the whole model", KEY),
        ("Multi30k\ntranslator", "Hund → dog", OUTPUT),
        ("Language\nmodel", "today's parts", OUTPUT),
        ("Pretraining", "read, then judge", OUTPUT),
    ]
    wide, high, step = 206, 128, 240
    corners = [(17 + step * (k % 3 if k // 3 % 2 == 0 else 2 - k % 3), 64 + 152 * (k // 3)) for k in range(13)]
    for (x0, y0), (x1, y1) in itertools.pairwise(corners):
        if y0 == y1:
            right = x1 > x0
            arrow(svg, (x0 + wide * right, y0 + high / 2), (x1 + wide * (not right), y0 + high / 2))
        else:
            arrow(svg, (x0 + wide / 2, y0 + high), (x0 + wide / 2, y1))
    for k, ((x, y), (name, idea, fill)) in enumerate(zip(corners, stops, strict=True)):
        box(svg, x, y, wide, high, fill=fill)
        ink = ink_on(fill)
        text(svg, x + 10, y + 18, f"{k:02}", size=21, bold=True, anchor="start", colour=ink)
        text(svg, x + wide / 2, y + 58, name, size=23, colour=ink)
        text(svg, x + wide / 2, y + 107, idea, size=21, colour=ink)


@diagram("Every exercise goes the same way", 560)
def anatomy_of_an_exercise(svg: ET.Element) -> None:
    """The steps of an exercise: read the idea, predict a tiny example, write the function, run the check. When the
    check fails, unfold a hint and try again; when it passes, go on to the next exercise."""
    steps = [
        (24, 70, "Idea", "prose and\nformulas", INPUT),
        (266, 70, "Predict", "an example,\nthen run it", QUERY),
        (508, 70, "Exercise", "write the\nfunction", KEY),
        (508, 276, "Check", "it says what\nis wrong", VALUE),
        (180, 276, "Hints", "a nudge, then\na plan", WHITE),
    ]
    for x, y, name, what, fill in steps:
        box(svg, x, y, 188, 124, fill=fill)
        text(svg, x + 94, y + 28, name, size=25, bold=True)
        text(svg, x + 94, y + 80, what, size=22)
    arrow(svg, (212, 132), (266, 132))
    arrow(svg, (454, 132), (508, 132))
    arrow(svg, (602, 194), (602, 276))
    arrow(svg, (508, 338), (368, 338))
    text(svg, 438, 318, "failed", size=22)
    arrow(svg, (274, 276), (274, 240), (546, 240), (546, 194))
    text(svg, 400, 222, "try again", size=22)
    arrow(svg, (602, 400), (602, 462))
    text(svg, 590, 430, "passed", anchor="end", size=22)
    box(svg, 508, 462, 188, 66, "next exercise", OUTPUT, size=24)
    text(svg, 24, 494, "Points come from the checks:\nvisible checks and hidden tests.", anchor="start", size=22)


@diagram("A letter that the output lacks is summed over", 360)
def einsum_picture(svg: ET.Element) -> None:
    """All dot products as three stacks of matrices, one sheet for each b: a row of the first, picked by i, and a row of
    the second, picked by j, run along the shared letter k and meet in one cell of the output."""
    colours = {"i": QUERY, "j": KEY}
    for x, name, letters, rows, columns in ((62, "x", "bik", 4, 5), (290, "y", "bjk", 3, 5), (530, "out", "bij", 4, 3)):
        text(svg, x + 15 * columns, 70, name, size=22, bold=True)
        top = 184 - 15 * rows
        for sheet in (16, 8, 0):
            fills = filled(rows, columns)
            if sheet == 0 and letters == "bij":
                fills[2][1] = OUTPUT
            elif sheet == 0:
                fills[2 if rows == 4 else 1] = [colours[letters[1]]] * columns
            grid(svg, x + sheet, top - sheet, fills, width=30, height=30)
        text(svg, x - 16, 184, letters[1], size=20, mono=True)
        text(svg, x + 15 * columns, top + 30 * rows + 18, letters[2], size=20, mono=True)
        text(svg, x + 30 * columns + 30, top - 10, "b", size=20, mono=True)
    text(svg, 360, 304, "b, i, j are in the output: one number for every choice of them", size=20)
    text(svg, 360, 334, "k is not: multiply along k, then add up", size=20)


# ---- 01 weighted_averages


@diagram("Each output is a mix of all the inputs", 412)
def weighted_average(svg: ET.Element) -> None:
    """Row i of the weights W, 0.5, 0.1, 0.3 and 0.1, says how much output y_i takes from each of the inputs x_0 to
    x_3: arrows of that thickness lead from the four rows of x to row i of y."""
    weights, x = (0.5, 0.1, 0.3, 0.1), ((4, 0), (0, 10), (10, 0), (0, 20))
    mix = [sum(w * row[k] for w, row in zip(weights, x, strict=True)) for k in (0, 1)]
    fills, labels = filled(3, 4), [[""] * 4 for _ in range(3)]
    fills[1], labels[1] = [heat(w) for w in weights], [number(w) for w in weights]
    text(svg, 148, 126, "W", size=20, bold=True)
    grid(svg, 60, 150, fills, labels, 44, 44)
    text(svg, 48, 216, "i", size=19)
    shape(svg, 148, 302, "(n, m)")
    text(svg, 410, 76, "x", size=20, bold=True)
    for j, (weight, row) in enumerate(zip(weights, x, strict=True)):
        top = 94 + 60 * j
        text(svg, 356, top + 22, f"{number(weight)} × x_{{{j}}}", anchor="end")
        grid(svg, 366, top, [[INPUT] * 2], [[number(value) for value in row]], 44, 44)
        arrow(svg, (458, top + 22), (578, 216 + 8 * (j - 1.5)), width=14 * weight)
    shape(svg, 410, 336, "(m, d)")
    fills, labels = filled(3, 2), [[""] * 2 for _ in range(3)]
    fills[1], labels[1] = [OUTPUT] * 2, [number(value) for value in mix]
    text(svg, 630, 126, "y", size=20, bold=True)
    grid(svg, 586, 150, fills, labels, 44, 44)
    text(svg, 686, 216, "i", size=19)
    shape(svg, 630, 302, "(n, d)")
    total = " + ".join(f"{number(w)} x_{{{j}}}" for j, w in enumerate(weights))
    text(svg, 360, 378, f"y_{{i}} = Σ_{{j}} w_{{ij}} x_{{j}} = {total} = ({number(mix[0])}, {number(mix[1])})", size=18)


@diagram("One matrix product computes all the averages", 400)
def matrix_form(svg: ET.Element) -> None:
    """W of shape (n, m) times X of shape (m, d) gives Y of shape (n, d): row i of W and column k of X meet in one
    cell of Y. The two sides called m must be equally long; they are summed over and vanish."""
    matrices = ((62, 3, 5, "W", "n", "m"), (330, 5, 4, "X", "m", "d"), (556, 3, 4, "Y", "n", "d"))
    for x, rows, columns, name, down, along in matrices:
        fills, top = filled(rows, columns), 206 - 17 * rows
        if name == "W":
            fills[1] = [QUERY] * columns
        elif name == "X":
            fills = [[INPUT if j == 2 else WHITE for j in range(columns)] for _ in range(rows)]
        else:
            fills[1][2] = OUTPUT
        grid(svg, x, top, fills, width=34, height=34)
        text(svg, x + 17 * columns, 80, name, size=20, bold=True)
        text(svg, x + 17 * columns, top - 16, along, size=19)
        text(svg, x - 18, 206, down, size=19)
        shape(svg, x + 17 * columns, 312, f"({down}, {along})")
    for x, y, width, height in ((62, 189, 170, 34), (398, 121, 34, 170), (624, 189, 34, 34)):
        add(svg, "rect", x=x, y=y, width=width, height=height, fill="none", stroke=INK, stroke_width=4)
    text(svg, 272, 206, "×", size=26)
    text(svg, 500, 206, "=", size=26)
    text(svg, 360, 348, "Y[i, k] = Σ_{j} W[i, j] X[j, k]", size=18)
    text(svg, 360, 376, "j, with its m values, is summed over and vanishes", size=18)


# ---- 02 normalized_dot_products


@diagram("The same x gives the weights and what they mix", 408)
def self_attention_basic(svg: ET.Element) -> None:
    """Three vectors x are multiplied with one another, giving a 3 by 3 matrix of dot products, some negative; softmax
    turns each row into weights that sum to 1; with these weights the same x is averaged, giving y."""
    x = ((1, 0), (0, 1), (-1, 0))
    scores = [[sum(a * b for a, b in zip(row, other, strict=True)) for other in x] for row in x]
    weights = [[math.exp(score) / sum(map(math.exp, row)) for score in row] for row in scores]
    y = [[sum(w * row[k] for w, row in zip(row_weights, x, strict=True)) for k in (0, 1)] for row_weights in weights]
    panels = (
        (26, 42, "x", x, lambda value: INPUT, "(B, n, d)"),
        (168, 46, "dot product\nof every pair", scores, lambda value: KEY if value < 0 else WHITE, "(B, n, n)"),
        (364, 52, "softmax\nof each row", weights, heat, "(B, n, n)"),
        (580, 57, "y: averages\nof x", y, lambda value: OUTPUT, "(B, n, d)"),
    )
    for left, width, name, values, fill, size in panels:
        middle = left + width * len(values[0]) / 2
        text(svg, middle, 92, name)
        grid(
            svg,
            left,
            124,
            [[fill(value) for value in row] for row in values],
            [[number(value) for value in row] for row in values],
            width,
            46,
        )
        shape(svg, middle, 282, size)
    for start, end in ((112, 164), (308, 360), (522, 576)):
        arrow(svg, (start, 193), (end, 193))
    arrow(svg, (68, 298), (68, 340), (637, 340), (637, 298), width=4)
    text(svg, 352, 368, "the x that made the weights is the x that is averaged")


@diagram("Softmax: any scores in, positive weights out", 408)
def softmax_steps(svg: ET.Element) -> None:
    """Softmax in two steps, as bars: the scores 2, 1, −1 and 0; their exponentials, all positive; these divided by
    their sum. The negative score −1 becomes the small positive weight 0.03, and the weights sum to 1."""
    scores = (2, 1, -1, 0)
    powers = [math.exp(score) for score in scores]
    panels = (
        (34, "scores", scores, 46, 252, "any sign"),
        (274, "exp(score)", powers, 23, 302, f"sum {number(sum(powers))}"),
        (514, "weights", [power / sum(powers) for power in powers], 265, 302, "sum 1"),
    )
    for left, name, values, scale, floor, note in panels:
        text(svg, left + 86, 80, name, bold=True)
        for k, value in enumerate(values):
            x, high = left + 43 * k, max(abs(value) * scale, 1)
            top = floor if value < 0 else floor - high
            fill = KEY if scores[k] < 0 else QUERY
            add(svg, "rect", x=x + 3, y=top, width=36, height=high, fill=fill, stroke=INK)
            text(svg, x + 21, top + high + 14 if value < 0 else top - 14, number(value), size=16)
        line(svg, (left - 4, floor), (left + 176, floor))
        text(svg, left + 86, 336, note)
    for x, step in ((216, "exp"), (456, "÷ sum")):
        arrow(svg, (x, 150), (x + 48, 150))
        text(svg, x + 18, 128, step)
    text(svg, 360, 378, "the negative score −1 becomes the small positive weight 0.03")


# ---- 03 queries_keys_values


@diagram("Queries meet keys; the weights mix the values", 600)
def attention_data_flow(svg: ET.Element) -> None:
    """Scaled dot-product attention from top to bottom: queries (B, n, d) and keys (B, m, d) give a dot product for
    every pair, (B, n, m); these are divided by the root of d, masked, and put through softmax; the resulting weights
    make a weighted sum of the values (B, m, d_v), which is the output (B, n, d_v)."""
    for x, width, name, size, fill in (
        (30, 160, "queries", "(B, n, d)", QUERY),
        (210, 160, "keys", "(B, m, d)", KEY),
        (530, 160, "values", "(B, m, d_{v})", VALUE),
    ):
        box(svg, x, 64, width, 58, fill=fill)
        text(svg, x + width / 2, 81, name, bold=True)
        text(svg, x + width / 2, 105, size, size=16, mono=True)
    arrow(svg, (110, 122), (110, 154))
    arrow(svg, (290, 122), (290, 154))
    steps = (
        "dot product of every pair",
        "divide by √d",
        "block what the mask forbids",
        "softmax over the last dim",
        "weighted sum",
    )
    for k, step in enumerate(steps):
        top = 154 + 76 * k
        box(svg, 30, top, 340, 42, step, VALUE if k == 4 else WHITE)
        arrow(svg, (200, top + 42), (200, top + 76))
        size = {3: "weights (B, n, m)", 4: ""}.get(k, "(B, n, m)")
        shape(svg, 212, top + 58, size, anchor="start")
    box(svg, 420, 298, 150, 58, fill=WHITE, dashed=True)
    text(svg, 495, 315, "mask", bold=True)
    text(svg, 495, 339, "(B, n, m)", size=16, mono=True)
    text(svg, 495, 374, "True: may attend", size=16)
    arrow(svg, (420, 327), (370, 327), dashed=True)
    arrow(svg, (610, 122), (610, 479), (370, 479))
    text(svg, 490, 458, "y_{i} = Σ_{j} w_{ij} v_{j}", size=18)
    box(svg, 30, 534, 340, 42, "", OUTPUT)
    text(svg, 140, 555, "output", bold=True, colour=WHITE)
    text(svg, 250, 555, "(B, n, d_{v})", size=16, mono=True, colour=WHITE)


@diagram("A mask says who may look at whom", 456)
def masks(svg: ET.Element) -> None:
    """Three grids, rows are queries and columns are keys. The padding mask, one row repeated, blocks the two pad
    columns; the causal mask blocks everything above the diagonal; their "and" allows only what both allow."""
    words = ("a", "dog", "ran", "pad", "pad")
    padding = [[j < 3 for j in range(5)] for _ in range(5)]
    causal = [[j <= i for j in range(5)] for i in range(5)]
    both = [[j < 3 and j <= i for j in range(5)] for i in range(5)]
    for x, name, mask, size in (
        (68, "padding", padding, "(B, 1, m)"),
        (294, "causal", causal, "(n, n)"),
        (520, "both", both, "(B, n, n)"),
    ):
        text(svg, x + 88, 78, name, bold=True)
        for k, word in enumerate(words):
            text(svg, x + 17.5 + 35 * k, 108, word, size=15)
        fills = [[VALUE if allowed else WHITE for allowed in row] for row in mask]
        grid(svg, x, 124, fills, [["" if allowed else "×" for allowed in row] for row in mask], 35, 35)
        shape(svg, x + 88, 320, size)
    text(svg, 156, 344, "one row for all", size=16)
    for k, word in enumerate(words):
        text(svg, 58, 141 + 35 * k, word, size=15, anchor="end")
    add(svg, "rect", x=66, y=122, width=179, height=39, fill="none", stroke=INK, stroke_width=4)
    text(svg, 269, 212, "and", bold=True)
    text(svg, 495, 212, "=", size=24, bold=True)
    grid(svg, 96, 374, [[VALUE]], width=24, height=24)
    text(svg, 130, 386, "True: may attend", anchor="start")
    grid(svg, 326, 374, [[WHITE]], [["×"]], width=24, height=24)
    text(svg, 360, 386, "False: weight exactly 0", anchor="start")
    text(svg, 360, 424, "a row is a query, a column is a key")


# ---- 04 multi_head_attention


@diagram("A head is a block of consecutive features", 440)
def split_merge_heads(svg: ET.Element) -> None:
    """A matrix of 4 tokens by 6 features, columns numbered 0 to 5, is split into three heads of 4 by 2: head 0 holds
    features 0 and 1, head 1 features 2 and 3, head 2 features 4 and 5. Merging puts them back side by side."""
    cell = 40
    grid(svg, 150, 72, [[HEADS[j // 2] for j in range(6)]] * 4, [[str(j) for j in range(6)]] * 4, width=cell, height=30)
    text(svg, 136, 132, "tokens", anchor="end")
    shape(svg, 410, 132, "(B, n, d)", anchor="start")
    arrow(svg, (210, 200), (210, 256), width=3)
    text(svg, 196, 228, "split", bold=True, anchor="end")
    arrow(svg, (330, 256), (330, 200), width=3)
    text(svg, 346, 228, "merge", bold=True, anchor="start")
    for head in range(3):
        x = 84 + 146 * head
        labels = [[str(2 * head), str(2 * head + 1)]] * 4
        grid(svg, x, 264, filled(4, 2, HEADS[head]), labels, width=cell, height=30)
        text(svg, x + cell, 402, f"head {head}")
    shape(svg, 500, 324, "(B, h, n, d/h)", anchor="start")
    text(svg, 500, 228, "here d = 6, h = 3", anchor="start")


@diagram("Narrow: split, then map. Wide: map, then split", 470)
def narrow_and_wide(svg: ET.Element) -> None:
    """Left, narrow: x is first split into three slices, then each slice goes through the small maps Wq, Wk, Wv of its
    own head, so a head sees one slice only. Right, wide: x first goes through the full maps Wq, Wk, Wv, whose results
    mix all slices, and is split afterwards, so every head sees all of x. On both sides the heads' outputs are put side
    by side and go through WO to give y."""
    for left, name in ((24, "narrow"), (376, "wide")):
        middle = left + 160
        heads = [middle + 108 * (head - 1) for head in range(3)]
        text(svg, middle, 72, name, size=19, bold=True)
        grid(svg, middle - 120, 92, [[HEADS[j // 2] for j in range(6)]], width=40, height=28)
        text(svg, middle - 134, 106, "x", size=19)
        if name == "narrow":
            for head, x in enumerate(heads):
                arrow(svg, (middle + 80 * (head - 1), 120), (x, 164))
                grid(svg, x - 40, 166, [[HEADS[head]] * 2], width=40, height=28)
                arrow(svg, (x, 194), (x, 238))
                box(svg, x - 52, 238, 104, 36, "Wq, Wk, Wv", size=16)
                arrow(svg, (x, 274), (x, 306))
            text(svg, middle - 54, 146, "1. split", size=17, bold=True)
            text(svg, middle - 54, 216, "2. map", size=17, bold=True)
            text(svg, middle + 54, 216, "d/h → d/h", size=16)
        else:
            arrow(svg, (middle, 120), (middle, 164), width=3)
            box(svg, middle - 120, 164, 240, 36, "Wq, Wk, Wv", size=16)
            arrow(svg, (middle, 200), (middle, 234), width=3)
            mixed = [HEADS[j % 3] for j in range(18)]
            grid(svg, middle - 120, 236, [mixed], width=40 / 3, height=28)
            for head, x in enumerate(heads):
                arrow(svg, (middle + 80 * (head - 1), 264), (x, 306))
            text(svg, middle - 54, 142, "1. map", size=17, bold=True)
            text(svg, middle + 54, 142, "d → d", size=16)
            text(svg, middle - 46, 288, "2. split", size=17, bold=True)
        for head, x in enumerate(heads):
            box(svg, x - 45, 306, 90, 36, f"head {head}")
            arrow(svg, (x, 342), (x, 370))
        box(svg, left, 370, 320, 36, "side by side, then WO")
        arrow(svg, (middle, 406), (middle, 432))
        text(svg, middle, 446, "y", size=19)
    line(svg, (360, 60), (360, 456), colour=LINE, dashed=True)


@diagram("Fewer heads of keys and values than of queries", 356)
def shared_heads(svg: ET.Element) -> None:
    """Three layers with eight heads of queries each. Multi-head: each has a head of keys and values of its own, eight
    in all. Grouped-query: four neighbouring heads of queries share one, two in all. Multi-query: all eight share a
    single one. What is kept for each position shrinks to a quarter, and to an eighth."""
    text(svg, 128, 118, "queries", anchor="end")
    text(svg, 128, 233, "keys", anchor="end")
    text(svg, 128, 259, "values", anchor="end")
    layers = (("multi-head", 8, "8 are kept"), ("grouped-query", 2, "2 are kept"), ("multi-query", 1, "1 is kept"))
    for left, (name, shared, kept) in zip((144, 338, 532), layers, strict=True):
        centres = [left + 20.5 * head + 10 for head in range(8)]
        text(svg, left + 82, 78, name, bold=True)
        for head, x in enumerate(centres):
            grid(svg, x - 8, 104, [[QUERY]], width=16, height=28)
            group = 8 // shared
            first = head // group * group
            middle = (centres[first] + centres[first + group - 1]) / 2
            line(svg, (x, 132), (middle, 220), width=1.5)
            if head == first:
                grid(svg, middle - 8, 220, [[KEY], [VALUE]], width=16, height=26)
        text(svg, left + 82, 308, kept, colour=MUTED)


# ---- 05 positions


@diagram("A position is read off waves of falling frequency", 430)
def position_encoding(svg: ET.Element) -> None:
    """Six waves over the positions 0 to 24, sine and cosine in turn, each pair slower than the one before. A vertical
    line at position 7 meets each wave in a dot; the six heights are the first six numbers of the encoding of position
    7."""
    dim, shown, chosen, left, step, high = 16, 6, 7, 90, 17.5, 46
    values = []
    for k in range(shown):
        middle, frequency = 96 + high * k + high / 2, 10_000 ** (-(k - k % 2) / dim)
        wave = math.sin if k % 2 == 0 else math.cos
        values.append(wave(chosen * frequency))
        line(svg, (left, middle), (left + 24 * step, middle), width=1, colour=LINE)
        curve = [(left + p * step / 4, middle - 18 * wave(p / 4 * frequency)) for p in range(97)]
        line(svg, *curve, width=2.5, colour="#2b6ca3" if k % 2 == 0 else "#b4621f")
        text(svg, left - 10, middle, f"{k} {'cos' if k % 2 else 'sin'}", anchor="end")
    x = left + chosen * step
    line(svg, (x, 90), (x, 384))
    for k, value in enumerate(values):
        add(svg, "circle", cx=x, cy=96 + high * k + high / 2 - 18 * value, r=6, fill=INK, stroke=CARD, stroke_width=2)
    for position in (0, chosen, 12, 18, 24):
        text(svg, left + position * step, 398, str(position), size=16, bold=position == chosen)
    text(svg, 300, 76, "position →", size=16, colour=MUTED)
    arrow(svg, (522, 234), (570, 234), width=3)
    grid(
        svg,
        580,
        96,
        [[heat((value + 1) / 2)] for value in values],
        [[f"{value:.2f}".replace("-", "−")] for value in values],
        90,
        high,
    )
    text(svg, 625, 76, "pe[7, :6]", size=16, mono=True)
    text(svg, 625, 398, "one row of pe", size=16)


@diagram("Three ways to say where a token stands", 508)
def add_concat_expand(svg: ET.Element) -> None:
    """Add: x and p of the same shape are summed. Concat: p is put beside x, so that the features double. Expand: each
    pair of positions looks up the row of its distance in a table, giving one vector for every pair."""
    cell = 26
    x, p, both = filled(3, 4, INPUT), filled(3, 4, QUERY), [[INPUT] * 4 + [QUERY] * 4] * 3
    for top, name, sign in ((70, "add", "+"), (208, "concat", ",")):
        text(svg, 24, top + 39, name, size=19, bold=True, anchor="start")
        for left, letter, fills in ((142, "x", x), (296, "p", p)):
            grid(svg, left, top, fills, width=cell, height=cell)
            text(svg, left - 16, top + 39, letter, size=18)
        text(svg, 262, top + 39, sign, size=24)
        shape(svg, 194, top + 96, "(B, n, d)")
        shape(svg, 348, top + 96, "(n, d)")
        arrow(svg, (408, top + 39), (452, top + 39))
    grid(svg, 462, 70, filled(3, 4, OUTPUT), width=cell, height=cell)
    shape(svg, 514, 166, "(B, n, d)")
    grid(svg, 462, 208, both, width=cell, height=cell)
    shape(svg, 566, 304, "(B, n, 2·d)")
    top = 356
    text(svg, 24, top + 39, "expand", size=19, bold=True, anchor="start")
    distances = [[j - i for j in range(3)] for i in range(3)]
    fills = (KEY, INPUT, WHITE, QUERY, VALUE)
    grid(
        svg,
        142,
        top,
        [[fills[k + 2] for k in row] for row in distances],
        [[number(k) for k in row] for row in distances],
        32,
        cell,
    )
    shape(svg, 190, top + 96, "(n, n)")
    text(svg, 190, top + 122, "distances", size=16)
    arrow(svg, (246, top + 39), (292, top + 39))
    grid(svg, 300, top - 26, [[fill] * 4 for fill in fills], [[number(k)] + [""] * 3 for k in range(-2, 3)], 32, cell)
    shape(svg, 364, top + 122, "(2·max_len + 1, d)")
    arrow(svg, (438, top + 39), (492, top + 39))
    for sheet in (3, 2, 1, 0):
        grid(
            svg,
            506 + 10 * sheet,
            top - 10 * sheet + 10,
            [[fills[k + 2] for k in row] for row in distances],
            width=32,
            height=cell,
        )
    shape(svg, 560, top + 106, "(n, n, d)")
    text(svg, 700, top + 130, "a row for each distance", size=16, anchor="end")


# ---- 06 transformer_block


def branch(svg: ET.Element, x: float, y: float, parts: list[tuple[str, str]], side: int = 1) -> float:
    """Draw one step of a residual path.

    Args:
        svg: what to draw on.
        x: where the path runs.
        y: where this step of it begins.
        parts: the (label, fill) of the boxes that branch off the path, in order.
        side: 1 when they lie to the right of the path, -1 to the left.

    Returns:
        The height of the path below the plus that ends the step.
    """
    middle, top = x + 120 * side, y + 28
    start = ((x, y + 12), (middle, y + 12))
    for label, fill in parts:
        high = 34 + 18 * label.count("\n")
        arrow(svg, *start, (middle, top))
        box(svg, middle - 80, top, 160, high, label, fill, size=16)
        start, top = ((middle, top + high),), top + high + 20
    arrow(svg, *start, (middle, top), (x + 13 * side, top))
    line(svg, (x, y), (x, top - 13), width=6, colour=OUTPUT)
    plus(svg, x, top)
    return top + 13


@diagram("Pre-norm leaves the residual path clear", 526)
def block_post_norm_pre_norm(svg: ET.Element) -> None:
    """The block in both orders, x at the top and y at the bottom, joined by a thick residual path. Post-norm:
    attention and the feed-forward net are added to the path, and after each addition a norm sits on the path itself.
    Pre-norm: the norms sit in the branches, before attention and before the feed-forward net, and the path is
    interrupted only by the additions."""
    for x, title, norm_first in ((100, "post-norm, as published", False), (450, "pre-norm", True)):
        text(svg, x - 70, 76, title, size=18, bold=True, anchor="start")
        text(svg, x, 102, "x", size=19)
        y = 116
        for norm, sublayer in (("norm_1", "attention,\ndropout"), ("norm_2", "feed_forward,\ndropout")):
            y = branch(svg, x, y, [(norm, INPUT)] * norm_first + [(sublayer, QUERY)])
            if not norm_first:
                line(svg, (x, y), (x, y + 16), width=6, colour=OUTPUT)
                box(svg, x - 56, y + 16, 112, 34, norm, INPUT, size=16)
                y += 50
        arrow(svg, (x, y), (x, 482), width=6, colour=OUTPUT)
        text(svg, x, 500, "y", size=19)
    line(svg, (360, 64), (360, 508), colour=LINE, dashed=True)


@diagram("The same small network at every position", 420)
def feed_forward(svg: ET.Element) -> None:
    """Four positions side by side. At each, a vector of d features is widened to the hidden size by `inner`, put
    through ReLU and narrowed back to d by `outer`. The weights are the same at each position, and nothing crosses
    between them."""
    for k in range(4):
        x = 164 + 150 * k
        text(svg, x, 76, f"x_{{{k + 1}}}", size=18)
        grid(svg, x - 32, 92, filled(1, 4, INPUT), width=16, height=20)
        arrow(svg, (x, 112), (x, 144))
        for top, fall, name in ((146, 44, "inner"), (286, -44, "outer")):
            corners = [(x - 32, top), (x + 32, top), (x + 64, top + fall), (x - 64, top + fall)]
            add(svg, "polygon", points=" ".join(f"{a:g},{b:g}" for a, b in corners), fill=QUERY, stroke=INK)
            text(svg, x, top + fall / 2, name, size=16)
        add(svg, "rect", x=x - 64, y=196, width=128, height=40, fill=WHITE, stroke=INK)
        text(svg, x, 216, "ReLU", size=16)
        arrow(svg, (x, 288), (x, 318))
        grid(svg, x - 32, 320, filled(1, 4, OUTPUT), width=16, height=20)
        text(svg, x, 358, f"y_{{{k + 1}}}", size=18)
    for y, size in ((102, "d"), (216, "hidden"), (330, "d")):
        shape(svg, 84, y, size, anchor="end")
    text(svg, 390, 394, "one set of weights; no arrow from one position to another")


# ---- 07 to 10


@diagram("Many tokens in, one mean, one answer out", 560)
def classifier(svg: ET.Element) -> None:
    """A review of three tokens and two pads is embedded, given positions, put through the blocks, averaged over the
    real tokens only, and mapped to log-probabilities of the classes. Beside each step stands the shape."""
    words = ("what", "a", "film", "pad", "pad")
    for k, word in enumerate(words):
        x, real = 74 + 86 * k, k < 3
        box(svg, x - 36, 64, 72, 38, word, INPUT if real else WHITE, dashed=not real)
        arrow(svg, (x, 102), (x, 128), dashed=not real)
        arrow(svg, (x, 168), (x, 194), dashed=not real)
        arrow(svg, (x, 250), (x, 274), dashed=not real)
        box(svg, x - 36, 274, 72, 34, fill=QUERY if real else WHITE, dashed=not real)
        if real:
            arrow(svg, (x, 308), (160 + 30 * (k - 1), 344))
        else:
            text(svg, x, 330, "×", size=22)
    box(svg, 38, 128, 416, 40, "embedding + position")
    box(svg, 46, 202, 416, 48, fill=WHITE)
    box(svg, 38, 194, 416, 48, "depth × TransformerBlock, padding masked")
    box(svg, 60, 344, 200, 40, "masked mean", VALUE)
    arrow(svg, (160, 384), (160, 412))
    box(svg, 60, 412, 200, 40, "Linear, log-softmax")
    arrow(svg, (130, 452), (130, 482))
    arrow(svg, (190, 452), (190, 482))
    box(svg, 60, 482, 94, 46, "positive\nlog 0.9", OUTPUT, size=16)
    box(svg, 166, 482, 94, 46, "negative\nlog 0.1", WHITE, size=16)
    for y, size in (
        (83, "(B, n)"),
        (148, "(B, n, d)"),
        (218, "(B, n, d)"),
        (291, "(B, n, d)"),
        (364, "(B, d)"),
        (505, "(B, num_classes)"),
    ):
        shape(svg, 490, y, size, anchor="start")


@diagram("At each step the decoder looks back at the source", 640)
def seq2seq_attention(svg: ET.Element) -> None:
    """A GRU reads the German words "ein Hund rennt" in both directions and gives one output for each. At each step of
    the decoder, attention compares its hidden state with every encoder output; the weights, here mostly on "Hund",
    mix the outputs into a context; context, hidden state and the previous word "a" go through the decoder's GRU,
    which predicts "dog" and passes on its next hidden state."""
    for k, (word, weight) in enumerate(zip(("ein", "Hund", "rennt"), (0.1, 0.8, 0.1), strict=True)):
        x = 95 + 140 * k
        box(svg, x - 55, 64, 110, 36, word, INPUT)
        arrow(svg, (x, 100), (x, 124))
        box(svg, x - 55, 124, 110, 46, "GRU")
        if k:
            arrow(svg, (x - 85, 138), (x - 55, 138))
            arrow(svg, (x - 55, 156), (x - 85, 156))
        arrow(svg, (x, 170), (x, 194))
        box(svg, x - 55, 194, 110, 38, f"h_{{{k + 1}}}", VALUE)
        arrow(svg, (x, 232), (x, 262))
        arrow(svg, (x, 304), (x, 330))
        grid(svg, x - 55, 330, [[heat(weight)]], [[number(weight)]], 110, 36)
        arrow(svg, (x, 366), (235 + 44 * (k - 1), 426), width=1 + 14 * weight)
    box(svg, 40, 262, 390, 42, "attention")
    shape(svg, 446, 82, "(B, m)", anchor="start")
    shape(svg, 446, 213, "(B, m, 2·encoder_hidden)", anchor="start")
    shape(svg, 70, 426, "weights\n(B, m)")
    box(svg, 165, 428, 140, 58, "context\nΣ_{j} w_{j} h_{j}", VALUE)
    shape(svg, 235, 504, "(B, 2·encoder_hidden)")
    box(svg, 480, 262, 100, 42, "hidden", QUERY)
    box(svg, 600, 262, 90, 42, "a", INPUT)
    text(svg, 636, 246, "previous word", size=16)
    arrow(svg, (480, 283), (430, 283))
    arrow(svg, (530, 304), (530, 428))
    arrow(svg, (645, 304), (645, 428))
    arrow(svg, (305, 450), (480, 450))
    box(svg, 480, 428, 210, 44, "decoder GRU")
    arrow(svg, (530, 472), (530, 512))
    box(svg, 470, 512, 120, 42, "next hidden", QUERY)
    arrow(svg, (645, 472), (645, 512))
    box(svg, 604, 512, 86, 42, "dog", OUTPUT)
    shape(svg, 696, 574, "(B, vocab_size)", anchor="end")
    text(svg, 24, 610, "first hidden: tanh(fc([forward; backward])) of the encoder", size=16, anchor="start")


@diagram("The decoder asks the encoder at every layer", 858)
def encoder_decoder(svg: ET.Element) -> None:
    """The whole transformer, pre-norm. Left, the encoder: source tokens are embedded, given positions, and go down a
    residual path through `depth` layers of attention and feed-forward, each behind a norm, to a final norm: the
    memory. Right, the decoder: target tokens take the same way through self-attention, cross-attention (its keys and
    values are the memory), and feed-forward; a final norm and the projection tied to the embedding give the
    logits."""
    encoder = [("norm_1", "attention,\nsource mask"), ("norm_2", "feed_forward")]
    decoder = [
        ("norm_1", "self-attention,\ntarget mask"),
        ("norm_2", "cross-attention,\nsource mask"),
        ("norm_3", "feed_forward"),
    ]
    for x, side, tokens, layer in ((76, 1, "source (B, m)", encoder), (644, -1, "target (B, n)", decoder)):
        left, y = (46 if side > 0 else 474), 176
        box(svg, left, 64, 200, 36, tokens, INPUT)
        arrow(svg, (left + 100, 100), (left + 100, 120))
        box(svg, left, 120, 200, 36, "embed + positions")
        line(svg, (x, 157), (x, y), width=6, colour=OUTPUT)
        for norm, sublayer in layer:
            y = branch(svg, x, y, [(norm, INPUT), (sublayer, KEY if sublayer.startswith("cross") else QUERY)], side)
        box(svg, min(x - 26 * side, x + 218 * side), 170, 244, y - 162, fill="none", dashed=True)
        line(svg, (x, y), (x, y + 24), width=6, colour=OUTPUT)
        box(svg, x - 45, y + 24, 90, 36, "norm", INPUT)
    text(svg, 360, 238, "depth\nlayers\neach")
    arrow(svg, (121, 534), (360, 534), (360, 451), (444, 451), width=3)
    text(svg, 136, 558, "memory", anchor="start")
    shape(svg, 214, 558, "(B, m, d)", anchor="start")
    text(svg, 136, 584, "gives keys and values", size=16, anchor="start")
    arrow(svg, (644, 719), (644, 745))
    box(svg, 474, 745, 200, 52, "linear, tied to\nthe embedding", WHITE, size=16)
    arrow(svg, (644, 797), (644, 820))
    text(svg, 464, 833, "logits", anchor="end")
    shape(svg, 674, 833, "(B, n, target_vocab)", anchor="end")
    text(svg, 30, 680, "source mask", anchor="start", bold=True)
    shape(svg, 164, 680, "(B, 1, m)", anchor="start")
    text(svg, 30, 704, "no padding", size=16, anchor="start")
    text(svg, 30, 744, "target mask", anchor="start", bold=True)
    shape(svg, 164, 744, "(B, n, n)", anchor="start")
    text(svg, 30, 768, "no padding, nothing from the future", size=16, anchor="start")


@diagram("Three attentions, and the order of a decoder layer", 640)
def three_attentions(svg: ET.Element) -> None:
    """Left, the three attentions with their masks, rows are queries and columns are keys; five source and four target
    tokens, the last source token padding. In the encoder every source token may look at every other but padding. In
    the decoder a target token may look at itself and back. In cross-attention every target token may look at the whole
    memory but padding. Right, the decoder layer as published, with a norm after each addition, and in this chapter,
    with a norm before each sublayer."""
    kinds = [
        ("encoder: self-attention", "source asks\nsource answers", "(B, h, m, m)", 5, 5, lambda i, j: j < 4),
        ("decoder: self-attention", "target asks\ntarget answers", "(B, h, n, n)", 4, 4, lambda i, j: j <= i),
        ("decoder: cross-attention", "target asks\nmemory answers", "(B, h, n, m)", 4, 5, lambda i, j: j < 4),
    ]
    for number, (title, who, size, rows, columns, allowed) in enumerate(kinds):
        y = 72 + 184 * number
        text(svg, 24, y, title, bold=True, anchor="start")
        cells = [[allowed(i, j) for j in range(columns)] for i in range(rows)]
        marks = [["" if cell else "×" for cell in row] for row in cells]
        grid(svg, 30, y + 20, [[VALUE if cell else WHITE for cell in row] for row in cells], marks, 26, 26)
        text(svg, 178, y + 42, who, size=16, anchor="start")
        text(svg, 178, y + 88, "weights", size=16, anchor="start")
        shape(svg, 178, y + 112, size, anchor="start")
    text(svg, 24, 618, "rows ask, columns answer; × is hidden", size=16, anchor="start")
    line(svg, (352, 60), (352, 622), colour=LINE, dashed=True)
    sublayers = (("self-attention", QUERY), ("cross-attention", KEY), ("feed-forward", QUERY))
    for x, title, norm_first in ((450, "published", False), (624, "here", True)):
        text(svg, x, 72, title, size=18, bold=True)
        y = 92
        shape(svg, x, y + 8, "(B, n, d)")
        y += 24
        for name, fill in sublayers:
            steps = [(name, fill), ("add", WHITE)]
            for label, colour in [("norm", INPUT), *steps] if norm_first else [*steps, ("norm", INPUT)]:
                arrow(svg, (x, y), (x, y + 18))
                box(svg, x - 74, y + 18, 148, 32, label, colour, size=16)
                y += 50
        arrow(svg, (x, y), (x, y + 22))
        shape(svg, x, y + 36, "(B, n, d)")


@diagram("Beam 2 keeps the two best beginnings", 500)
def beam_search(svg: ET.Element) -> None:
    """A tree that grows one word at each step, each node with the sum of its log-probabilities. Of all continuations
    only the two best live on, the others are pruned. Greedy decoding would take "a" and end with "a dog runs", −1.9;
    the beam finds "the dog runs", −1.3."""
    steps = (
        ((116, "a", -0.7, 0, True), (260, "the", -0.9, 0, True), (374, "that", -2.6, 0, False)),
        (
            (88, "dog", -1.7, 0, True),
            (174, "hound", -2.2, 0, False),
            (274, "dog", -1.1, 1, True),
            (360, "hound", -2.7, 1, False),
        ),
        (
            (88, "runs", -1.9, 0, True),
            (174, "walks", -3.6, 0, False),
            (274, "runs", -1.3, 2, True),
            (360, "walks", -3.0, 2, False),
        ),
    )
    box(svg, 24, 220, 76, 50, "<bos>")
    parents = [(100, 245)]
    for step, nodes in enumerate(steps):
        x = 158 + 198 * step
        text(svg, x + 62, 68, f"step {step + 1}", size=16, colour=MUTED)
        for top, word, score, parent, kept in nodes:
            fill = OUTPUT if score == -1.3 else VALUE if kept else WHITE
            arrow(svg, parents[parent], (x, top + 29), width=3 if kept else 1.5, dashed=not kept)
            box(svg, x, top, 124, 58, f"{word}\n{score:.1f}".replace("-", "−"), fill, dashed=not kept)
        parents = [(x + 124, top + 29) for top, *_ in nodes]
    text(svg, 360, 452, "numbers: summed log-probabilities; dashed: pruned", size=16)
    text(svg, 360, 476, "greedy takes “a” and ends at −1.9, the beam finds −1.3", size=16)


# ---- 11 language_model


@diagram("Without a source, the encoder and the cross-attention go", 560)
def language_model(svg: ET.Element) -> None:
    """Left, the translator: an encoder beside a decoder layer of self-attention, cross-attention and feed-forward
    network. Right, the language model: the encoder and the cross-attention are gone; a layer is RMSNorm and causal
    self-attention with rotary positions and a cache, then RMSNorm and SwiGLU, each added to the residual stream."""
    text(svg, 170, 66, "the translator", bold=True)
    text(svg, 540, 66, "the language model", bold=True)
    box(svg, 30, 92, 120, 36, "source", INPUT, dashed=True)
    box(svg, 190, 92, 120, 36, "target", INPUT)
    arrow(svg, (90, 128), (90, 160), dashed=True)
    arrow(svg, (250, 128), (250, 160))
    box(svg, 30, 160, 120, 250, "encoder", WHITE, dashed=True)
    box(svg, 178, 160, 144, 60, "self-attention", QUERY)
    arrow(svg, (250, 220), (250, 255))
    box(svg, 178, 255, 144, 60, "cross-\nattention", WHITE, dashed=True)
    arrow(svg, (150, 285), (178, 285), dashed=True)
    arrow(svg, (250, 315), (250, 350))
    box(svg, 178, 350, 144, 60, "feed-forward", QUERY)
    arrow(svg, (250, 410), (250, 450))
    text(svg, 250, 468, "logits")
    text(svg, 170, 520, "dashed: what goes", size=16)
    box(svg, 480, 92, 120, 36, "tokens", INPUT)
    arrow(svg, (540, 128), (540, 160))
    box(svg, 420, 160, 240, 250, fill="none", dashed=True)
    box(svg, 440, 176, 200, 36, "RMSNorm", KEY)
    box(svg, 440, 212, 200, 72, "causal attention,\nrotary, with a cache", QUERY)
    box(svg, 440, 304, 200, 36, "RMSNorm", KEY)
    box(svg, 440, 340, 200, 54, "SwiGLU", QUERY)
    arrow(svg, (540, 284), (540, 304))
    arrow(svg, (540, 410), (540, 436))
    text(svg, 540, 470, "RMSNorm, then logits of\nthe next token, tied to\nthe embedding")
    text(svg, 540, 530, "each sublayer adds to the residual stream", size=16)


# ---- 12 pretraining


@diagram("The same body reads without labels, then judges with few", 500)
def pretraining(svg: ET.Element) -> None:
    """Above, the body reads: of *the acting was mask* it is to guess the masked word, on many reviews without labels.
    Below, the body that has read goes on: its vectors are averaged, and a new head says positive or negative."""
    for top, name in ((88, "1. reads: reviews without labels"), (316, "2. judges: few reviews with labels")):
        text(svg, 24, top, name, bold=True, anchor="start")
    for k, word in enumerate(("the", "acting", "was", "<mask>")):
        box(svg, 24 + 96 * k, 200, 88, 38, word, KEY if k == 3 else INPUT, size=17)
        arrow(svg, (68 + 96 * k, 200), (68 + 96 * k, 172))
    box(svg, 24, 122, 376, 50, "body", QUERY)
    arrow(svg, (400, 147), (470, 147))
    box(svg, 470, 122, 226, 50, "superb? awful?", OUTPUT)
    for k, word in enumerate(("two", "hours", "wasted", ".")):
        box(svg, 24 + 96 * k, 428, 88, 38, word, INPUT, size=17)
        arrow(svg, (68 + 96 * k, 428), (68 + 96 * k, 400))
    box(svg, 24, 350, 376, 50, "the same body", QUERY)
    arrow(svg, (400, 375), (440, 375))
    box(svg, 440, 350, 84, 50, "mean", VALUE)
    arrow(svg, (524, 375), (556, 375))
    box(svg, 556, 350, 140, 50, "new head", KEY)
    arrow(svg, (626, 400), (626, 428))
    text(svg, 626, 450, "negative")
    arrow(svg, (432, 150), (432, 300), (384, 300), (384, 350), dashed=True)
    text(svg, 442, 230, "weights", anchor="start", size=16)


def main() -> None:
    """Write every diagram beside this file."""
    for name, render in DIAGRAMS.items():
        (Path(__file__).parent / f"{name}.svg").write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
