"""Film the translator in the book, for the README and for readers without JavaScript.

Usage: `make book`, then `python book/screenshots.py`. It writes `images/screenshots/translator.gif`.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
COLOURS = 64  # of the film: fewer make it smaller


def main() -> None:
    """Write the film."""
    index = ROOT / "book/_build/html/index.html"
    if not index.is_file():
        sys.exit(f"{index} is not there: run `make book` first")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(index.as_uri())
        write_film(page, ROOT / "images/screenshots/translator.gif")
        browser.close()


def write_film(page: Page, file: Path) -> None:
    """Film the translator on a page: one picture for each piece of the translation, as it is chosen.

    Args:
        page: the book's first page, open.
        file: the GIF; an old one is replaced.
    """
    figure = page.locator("[data-figure=translator] .live")
    page.set_viewport_size({"width": 1000, "height": 1800})  # all of the figure is seen at once
    page.evaluate("window.scrollTo(0, 0)")
    words = figure.locator(".live-english button")
    figure.locator("ol li").first.wait_for(timeout=120_000)  # the search is drawn last
    pictures = []
    for i in range(words.count()):
        words.nth(i).focus()
        top, end = figure.bounding_box(), figure.locator(".live-bars").bounding_box()
        height = end["y"] + end["height"] - top["y"] + 8
        shot = page.screenshot(clip={"x": top["x"], "y": top["y"], "width": top["width"], "height": height})
        pictures.append(Image.open(io.BytesIO(shot)).convert("RGB"))
    size = (max(p.width for p in pictures), max(p.height for p in pictures))
    frames = [Image.new("RGB", size, pictures[0].getpixel((8, 8))) for _ in pictures]
    for frame, picture in zip(frames, pictures, strict=True):
        frame.paste(picture)
    # One palette for all, so that what stays the same is stored once.
    palette = frames[len(frames) // 2].quantize(COLOURS, Image.Quantize.FASTOCTREE)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    frames[0].save(file, save_all=True, append_images=frames[1:], duration=900, loop=0, optimize=True)


if __name__ == "__main__":
    main()
