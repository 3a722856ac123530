"""Take the README's pictures of the book: `make book`, then `python book/screenshots.py`.

They go to `images/screenshots`: the first page, and the translator while a reader goes through its words.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
COLOURS = 32  # of the film: fewer make it smaller


def main() -> None:
    """Write the pictures."""
    index = ROOT / "book/_build/html/index.html"
    if not index.is_file():
        sys.exit(f"{index} is not there: run `make book` first")
    folder = ROOT / "images/screenshots"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.goto(index.as_uri())
        write_film(page, folder / "translator.gif")
        page.locator(".live-english button", has_text="dog").focus()
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=folder / "book.png")
        browser.close()


def write_film(page: Page, file: Path) -> None:
    """Film the translator on a page: one picture for each piece of the translation, as it is chosen.

    Args:
        page: the book's first page, open.
        file: the GIF; an old one is replaced.
    """
    figure = page.locator("[data-figure=translator] .live")
    figure.scroll_into_view_if_needed()
    words = figure.locator(".live-english button")
    figure.locator("ol li").first.wait_for(timeout=120_000)  # the search is drawn last
    pictures = []
    for i in range(words.count()):
        words.nth(i).focus()
        top, end = figure.bounding_box(), figure.locator(".live-bars").bounding_box()
        height = end["y"] + end["height"] - top["y"] + 8
        clip = {"x": top["x"], "y": top["y"] + page.evaluate("scrollY"), "width": top["width"], "height": height}
        shot = page.screenshot(clip=clip, full_page=True)
        pictures.append(Image.open(io.BytesIO(shot)).convert("RGB"))
    size = (max(p.width for p in pictures), max(p.height for p in pictures))
    frames = [Image.new("RGB", size, pictures[0].getpixel((8, 8))) for _ in pictures]
    for frame, picture in zip(frames, pictures, strict=True):
        frame.paste(picture)
    palette = frames[len(frames) // 2].quantize(COLOURS)  # one for all: what stays the same is stored once
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    frames[0].save(file, save_all=True, append_images=frames[1:], duration=900, loop=0, optimize=True)


if __name__ == "__main__":
    main()
