"""The diagrams: what is committed is what `images/draw.py` draws, and it can be read."""

import itertools
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import pytest
from PIL import ImageFont

IMAGES = Path(__file__).parents[1] / "images"
FONTS = Path(matplotlib.get_data_path(), "fonts", "ttf")
DRAW = runpy.run_path(str(IMAGES / "draw.py"))
SVG = "{http://www.w3.org/2000/svg}"
Rectangle = tuple[float, float, float, float]


@pytest.fixture(params=sorted(DRAW["DIAGRAMS"]))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def svg(name: str) -> ET.Element:
    return ET.fromstring((IMAGES / f"{name}.svg").read_text(encoding="utf-8"))


def test_no_image_without_a_function():
    assert {path.stem for path in IMAGES.glob("*.svg")} == set(DRAW["DIAGRAMS"])


def test_committed_file_is_what_is_drawn(name: str):
    assert (IMAGES / f"{name}.svg").read_bytes() == DRAW["DIAGRAMS"][name]().encode(), "run `python images/draw.py`"


def test_stands_alone(name: str, svg: ET.Element):
    assert (IMAGES / f"{name}.svg").stat().st_size < 60_000
    assert svg[0].tag == f"{SVG}title" and svg[0].text
    assert svg[1].tag == f"{SVG}desc" and svg[1].text
    drawn = {element.tag.removeprefix(SVG) for element in svg.iter()} - {"svg"}
    assert drawn <= {"title", "desc", "rect", "circle", "polygon", "polyline", "text", "tspan"}, "text stays text"


def test_takeaway_is_written_in_the_picture(svg: ET.Element):
    assert svg.find(f"{SVG}title").text == svg.find(f"{SVG}text").text


def test_large_enough_on_a_phone(svg: ET.Element):
    assert svg.get("viewBox").split()[2] == "720"
    assert min(float(element.get("font-size")) for element in svg.iter(f"{SVG}text")) >= 15
    assert min((float(element.get("font-size", 99)) for element in svg.iter(f"{SVG}tspan")), default=99) >= 13


def test_roles_differ_in_a_grey_print():
    shades = [DRAW["lightness"](DRAW[role]) for role in ("INPUT", "QUERY", "KEY", "VALUE", "OUTPUT")]
    assert all(light - dark > 6 for light, dark in itertools.pairwise(shades))


@pytest.mark.parametrize("weight", [step / 100 for step in range(101)])
def test_a_number_can_be_read_on_its_heat(weight: float):
    fill = DRAW["heat"](weight)
    light, dark = sorted((luminance(fill), luminance(DRAW["ink_on"](fill))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5  # the contrast that WCAG asks of text


def luminance(colour: str) -> float:
    """The relative luminance of a colour, 0 to 1."""
    return ((DRAW["lightness"](colour) + 16) / 116) ** 3


# ---- layout, measured in DejaVu Sans: wider than the fonts of macOS, Windows, Android and iOS


def text_boxes(svg: ET.Element) -> list[tuple[str, Rectangle]]:
    """Where each text stands: (text, (left, top, right, bottom))."""
    found = []
    for element in svg.iter(f"{SVG}text"):
        size, width = float(element.get("font-size")), 0.0
        mono, bold = "font-family" in element.attrib, "font-weight" in element.attrib
        file = f"DejaVuSans{'Mono' * mono}{'-Bold' * bold}.ttf"
        for part in (element, *element):
            font = ImageFont.truetype(FONTS / file, float(part.get("font-size", size)))
            width += font.getlength(part.text or "")
        left = float(element.get("x")) - width * {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor")]
        baseline = float(element.get("y"))
        found.append(("".join(element.itertext()), (left, baseline - 0.75 * size, left + width, baseline + 0.2 * size)))
    return found


def edges(svg: ET.Element) -> list[Rectangle]:
    """The two ends of every straight stroke, the card's own outline aside."""
    strokes = []
    for rect in list(svg.iter(f"{SVG}rect"))[1:]:
        x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        strokes += [(*a, *b) for a, b in itertools.pairwise(corners)]
    for polyline in svg.iter(f"{SVG}polyline"):
        points = [tuple(map(float, point.split(","))) for point in polyline.get("points").split()]
        strokes += [(*a, *b) for a, b in itertools.pairwise(points)]
    return strokes


def crosses(stroke: Rectangle, box: Rectangle) -> bool:
    """Whether a straight stroke enters a box (Liang-Barsky clipping)."""
    (x0, y0, x1, y1), (left, top, right, bottom) = stroke, box
    enter, leave = 0.0, 1.0
    for step, low, high in ((x1 - x0, left - x0, right - x0), (y1 - y0, top - y0, bottom - y0)):
        if step == 0:
            if low > 0 or high < 0:
                return False
            continue
        near, far = sorted((low / step, high / step))
        enter, leave = max(enter, near), min(leave, far)
    return enter < leave


def test_text_stays_on_the_card(svg: ET.Element):
    height = float(svg.get("height"))
    for written, (left, top, right, bottom) in text_boxes(svg):
        assert left > 8 and top > 8 and right < 712 and bottom < height - 8, written


def test_texts_do_not_overlap(svg: ET.Element):
    for (one, a), (other, b) in itertools.combinations(text_boxes(svg), 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, f"{one!r} overlaps {other!r}"


def test_no_line_runs_through_a_text(svg: ET.Element):
    for written, box in text_boxes(svg):
        hit = [stroke for stroke in edges(svg) if crosses(stroke, box)]
        assert not hit, f"{written!r} at {box} is crossed by {hit[0]}"
