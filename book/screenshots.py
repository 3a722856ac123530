"""Take the README's pictures: a film of the book's translator, a page of the book, twelve heads, the marks of a class.

Usage: `make book`, then `python book/screenshots.py`. The marks take minutes: the class is graded first. The film also
stands in the book for readers without JavaScript.
"""

import html
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "book/_build/html"
COLOURS = 64  # fewer make smaller files


def main() -> None:
    """Write the pictures."""
    if not (SITE / "index.html").is_file():
        sys.exit(f"{SITE / 'index.html'} is not there: run `make book` first")
    pictures = {"translator.gif": write_film, "chapter.png": write_chapter, "translation.png": write_heads}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, write in (pictures | {"marks.png": write_marks}).items():
            page = browser.new_page(device_scale_factor=1 if name.endswith("gif") else 1.5)
            file = ROOT / "images/screenshots" / name
            write(page, file)
            page.close()
            if name.endswith("png"):
                with Image.open(file) as picture:
                    picture.quantize(COLOURS, Image.Quantize.FASTOCTREE).save(file, optimize=True)
        browser.close()


def write_chapter(page: Page, file: Path) -> None:
    """A page of the book: code, a question, and the figure that answers it."""
    page.set_viewport_size({"width": 1280, "height": 860})
    page.goto((SITE / "chapters/03_queries_keys_values/queries_keys_values.html").as_uri())
    asked = page.locator("p", has_text="Predict the picture on the right").first
    page.locator("details", has_text="Show the result").evaluate_all("all => all.forEach((one) => (one.open = true))")
    asked.evaluate("asked => scrollTo(0, asked.getBoundingClientRect().top + scrollY - 380)")
    page.wait_for_timeout(500)  # the contents beside it follow
    page.screenshot(path=file)


def write_heads(page: Page, file: Path) -> None:
    """The heads of chapter 10's translation, and one of them large."""
    page.set_viewport_size({"width": 1000, "height": 1200})
    page.goto((SITE / "chapters/10_multi30k_translator/multi30k_translator.html").as_uri())
    figure = page.locator("[data-figure=heads] .live")
    figure.get_by_role("button", name="layer 1, head 0", exact=True).click()
    page.mouse.move(0, 0)
    figure.screenshot(path=file)


def write_marks(page: Page, file: Path) -> None:
    """The marks of the example class in the first four chapters."""
    command = "autograder example-class 00 01 02 03"
    run = [str(Path(sys.executable).with_name("autograder")), *command.split()[1:]]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"COLUMNS": "100"})
    if "total" not in done.stdout:
        sys.exit(f"the example class was not graded:\n{done.stderr}")
    draw_marks(page, command, done.stdout, file)


def draw_marks(page: Page, command: str, printed: str, file: Path) -> None:
    """Draw a terminal with a command and the table of marks that it printed."""
    table = "\n".join(
        line.rstrip() for line in printed[printed.index("Marks") :].split("What the class")[0].splitlines()
    )
    style = "background: #1b2030; border-radius: 12px; color: #f0f2f5; display: inline-block; padding: 20px 24px"
    told = f'<b style="color: #8cd0ff">$ {command}</b>\n{html.escape(table.strip())}'
    page.set_content(f'<pre style="{style}; font: 16px/1.4 DejaVu Sans Mono, monospace">{told}</pre>')
    page.locator("pre").screenshot(path=file, omit_background=True)


def write_film(page: Page, file: Path) -> None:
    """Film the translator on a page: one picture for each piece of the translation, as it is chosen.

    Args:
        page: the book's first page, open, or an empty one.
        file: the GIF; an old one is replaced.
    """
    if page.url == "about:blank":
        page.goto((SITE / "index.html").as_uri())
    figure = page.locator("[data-figure=translator] .live")
    page.set_viewport_size({"width": 1000, "height": 1800})  # all of the figure is seen at once
    page.evaluate("window.scrollTo(0, 0)")
    words = figure.locator(".live-english button")
    figure.locator("ol li").first.wait_for(timeout=120_000)  # the search is drawn last
    pictures = []
    for i in range(words.count()):
        words.nth(i).focus()
        top, end = figure.bounding_box(), figure.locator(".live-bars").bounding_box()
        assert top and end, "the figure is hidden"
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
